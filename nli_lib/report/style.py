"""The house style as a dictionary, what colours mean, and the small helpers that every figure shares.

    with drawing(1, 2) as (figure, panels): ...        the style, for drawings made elsewhere

No global state: every figure is drawn inside its own ``rc_context``. Colours keep their meaning in all figures and
differ in lightness as well as in hue, so they can be told apart in greyscale and with colour vision deficiency.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH, SMALL = 7.0, 11  # inches, and the smallest text in points: a figure is still legible on a phone
INK, GREY, PALE = "#222222", "#8c8c8c", "#d9d9d9"
# One colour for one thing in the whole book. Labels differ in hue, levels are greens, views violets.
LABEL_COLOURS = {"entailment": "#2272b4", "neutral": "#e69f00", "contradiction": "#7b1e48"}
LABEL_COLOURS |= {"not_entailment": "#7b1e48", "non_contradiction": "#2272b4"}
LEVEL_COLOURS = {"easy": "#a6d38c", "ambiguous": "#52a35e", "hard": "#14532d"}
VIEW_COLOURS = {"pair": "#4b2e83", "hypothesis": "#9b7fc8", "premise": "#cbb8e6"}
CORPUS_COLOURS = {"snli": "#17798a", "mnli": "#a0522d", "multinli": "#a0522d", "wanli": "#d96a9b"}
CORPUS_COLOURS |= {"fever": "#8a8d1f", "anli": "#4d6a9a", "planted": "#c4a484"}
VERDICT_COLOURS = {"held": "#00806a", "not held": "#c1121f", "inconclusive": "#b08900"}
SEED_COLOURS = {"seed 0": "#2f3b45", "seed 1": "#5c6b77", "seed 2": "#9aa6af"}
REFERENCE_COLOURS = {"author's label, judged by five": "#5b3a29", "gold label, judged by 100": "#e2711d"}
TWIN = "random twin"
COLOURS = {**LABEL_COLOURS, **LEVEL_COLOURS, **VIEW_COLOURS, **CORPUS_COLOURS, **VERDICT_COLOURS, **SEED_COLOURS}
COLOURS |= REFERENCE_COLOURS
COLOURS |= {TWIN: GREY, "all pairs": INK}
HALO = [patheffects.withStroke(linewidth=2.5, foreground="white")]  # keeps text legible over points
SERIES = ("#12406b", "#d1761a", "#3f9c8f", "#b0473b", "#8fb9dd", "#6b6b6b")  # for what has no colour of its own
STYLE = {
    "figure.figsize": (WIDTH, 4.2),
    "figure.dpi": 120,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 160,
    "font.family": "sans-serif",
    "font.size": 12,
    "figure.titlesize": 12.5,
    "figure.titleweight": "bold",
    "axes.titlesize": 12.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 12,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": mpl.cycler(color=SERIES),
    "axes.axisbelow": True,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "text.color": INK,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "svg.fonttype": "none",
}


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Run a drawing function in the house style and take its figure out of pyplot, so that none is shown twice."""

    @wraps(draw)
    def inner(*args, **kwargs) -> Figure:
        with plt.rc_context(STYLE):
            figure = draw(*args, **kwargs)
            figure.draw_without_rendering()  # the layout is computed here, while the style holds
        plt.close(figure)
        return figure

    return inner


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
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(rows, columns, figsize=(WIDTH, height), **options)
        yield figure, panels
        figure.draw_without_rendering()
    plt.close(figure)


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
