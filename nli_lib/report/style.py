"""The house style (house.mplstyle), what colours mean (colours.yaml), and the small helpers that every figure shares.

    with drawing(1, 2) as (figure, panels): ...        the style, for drawings made elsewhere

No global state: every figure is drawn inside its own ``rc_context``.
"""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import yaml
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure

STYLE = mpl.rc_params_from_file(Path(__file__).with_name("house.mplstyle"), use_default_template=False)
INK, SMALL, WIDTH = STYLE["text.color"], STYLE["xtick.labelsize"], STYLE["figure.figsize"][0]
SERIES = STYLE["axes.prop_cycle"].by_key()["color"]  # for what has no colour of its own
HALO = [patheffects.withStroke(linewidth=2.5, foreground="white")]  # keeps text legible over points
GROUPS = yaml.safe_load(Path(__file__).with_name("colours.yaml").read_text(encoding="utf-8"))
COLOURS = {name: colour for group in GROUPS.values() for name, colour in group.items()}
TWIN, PALE = "random twin", "#d9d9d9"
GREY = COLOURS[TWIN]


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the house style; ``@styled()`` does so for a function. The figures made meanwhile are laid out while the
    style holds and taken out of pyplot, so that none is shown twice."""
    others = plt.get_fignums()
    with plt.rc_context(STYLE):
        try:
            yield
            for number in set(plt.get_fignums()).difference(others):
                plt.figure(number).draw_without_rendering()
        finally:  # an error leaves no half-made figure that the next cell would show
            for number in set(plt.get_fignums()).difference(others):
                plt.close(number)


def headline(figure: Figure, title: str) -> None:
    """A title over all panels, in lines that do not widen the figure; none where it is ""."""
    if title:
        figure.suptitle(textwrap.fill(title, 66), x=0.01, ha="left")


@contextmanager
def drawing(
    rows: int = 1, columns: int = 1, *, height: float = 4.2, **options: object
) -> Iterator[tuple[Figure, Axes]]:
    """A figure in the house style for a drawing of one's own, out of pyplot at the end: show it by its name.

    with drawing(1, 2, height=3, sharey=True) as (figure, panels): ...
    """
    with styled():
        yield plt.subplots(rows, columns, figsize=(WIDTH, height), **options)


def palette(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name: its own (`COLOURS`, upper and lower case alike), grey where it is a random twin, and the
    colours of `SERIES` in turn for the others."""
    known = {name: GREY if TWIN in name else COLOURS.get(name.lower()) for name in map(str, names)}
    others = [name for name, colour in known.items() if colour is None]
    return known | {name: SERIES[place % len(SERIES)] for place, name in enumerate(others)}


def label_points(axes: Axes, x: Sequence[float], y: Sequence[float], names: Sequence[str]) -> list:
    """Write names beside points, first come first served; a name without room is left out.

    Returns the annotations that found room. The axes must have their limits and size already. (adjustText would place
    every name, in a crowd far from its point.)
    """
    renderer = axes.figure.canvas.get_renderer()
    frame, placed = axes.get_window_extent(renderer), []
    taken = [text.get_window_extent(renderer) for text in axes.texts]
    look = {"textcoords": "offset points", "va": "center", "fontsize": SMALL, "path_effects": HALO}
    heights = (10, 10, -10, -10, 20, 20, -20, -20)
    offsets = [(7, 0), (-7, 0), *zip((5, -5) * 4, heights, strict=True)]
    for px, py, name in zip(x, y, names, strict=True):
        for offset in offsets:
            side = "left" if offset[0] > 0 else "right"
            text = axes.annotate(name, (px, py), xytext=offset, ha=side, **look)
            box = text.get_window_extent(renderer).expanded(1.03, 1.1)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                placed.append(text)
                break
            text.remove()
    return placed
