"""The map of agreement: every score against every other, in an order in which those that agree are neighbours."""

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from nli_lib.agreement import square
from nli_lib.plots import INK, SERIES, SMALL, drawing

COLOURS = LinearSegmentedColormap.from_list("agreement", [SERIES[1], "white", SERIES[0]])  # -1, 0, 1
DARK = 0.6  # |rho| from which on a number is white on its colour
PALE = 0.1  # |rho| below which no number is written


def score_map(
    table: pd.DataFrame, order: Sequence[str], *, groups: Sequence[Sequence[str]] = (), title: str = ""
) -> Figure:
    """A square of rank correlations in hundredths, the scores numbered in the given order; blank where none is known.

    table   `score_agreement.agreement`; on the diagonal stands how far a score agrees with itself in another training
    groups  of scores that are one thing under two names: a frame is drawn around those that are neighbours
    """
    rho = square(table, names=order).to_numpy(dtype=float)
    numbered = [f"{name}  {at}" for at, name in enumerate(order, 1)]
    with drawing(height=1.3 + 0.27 * len(order)) as (figure, axes):
        axes.set_title(textwrap.fill(title, 52))
        if not len(order):
            axes.text(0.5, 0.5, "Nothing to show for this corpus.", ha="center", va="center")
            axes.set_axis_off()
            return figure
        axes.imshow(np.ma.masked_invalid(rho), cmap=COLOURS, vmin=-1, vmax=1, aspect="auto")
        for y, x in np.argwhere(np.abs(np.nan_to_num(rho)) >= PALE):
            colour = "white" if abs(rho[y, x]) >= DARK else INK
            text = f"{100 * rho[y, x]:.0f}".replace("-", "−")
            axes.text(x, y, text, ha="center", va="center", color=colour, fontsize=SMALL - 2)
        for start, size in _runs(order, groups):
            frame = {"fill": False, "edgecolor": INK, "lw": 1.6}
            axes.add_patch(Rectangle((start - 0.5, start - 0.5), size, size, **frame))
        places = range(len(order))
        axes.set(xticks=places, yticks=places, xticklabels=range(1, len(order) + 1), yticklabels=numbered)
        axes.set_xlabel("rank correlation in hundredths; on the diagonal, with itself in another training")
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
    return figure


def _runs(order: Sequence[str], groups: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """(first place, size) of every run of two or more neighbours that belong to one group."""
    of = {name: at for at, group in enumerate(groups) for name in group}
    codes = np.array([of.get(name, -1 - at) for at, name in enumerate(order)])
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    sizes = np.diff(np.append(starts, len(codes)))
    return [(int(start), int(size)) for start, size in zip(starts, sizes, strict=True) if size > 1]
