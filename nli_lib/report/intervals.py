"""The figure of the book: estimates with their intervals, by row and by condition."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nli_lib.report.style import HALO, INK, SMALL, TWIN, WIDTH, palette, styled

MARKERS = ("o", "s", "^", "v", "P", "X")
TWIN_MARKERS = ("d", "*")


@styled
def interval_plot(
    table: pd.DataFrame,
    *,
    value: str = "accuracy",
    y: str = "title",
    hue: str | None = "condition",
    xlabel: str = "",
    title: str = "",
    reference: Mapping[str, float] | float | None = None,
    reference_label: str = "majority label",
    paper: Mapping[object, float] | None = None,
    upright: bool = False,
    within: tuple[float, float] | None = None,
) -> Figure:
    """One dot with its interval for each row of ``table``: a line of the figure for each ``y``, a colour a ``hue``.

    table      columns ``value``, ``y``, ``hue`` (None: one condition) and, where there are intervals, low and high;
               rows without a value are left out, ends that are NaN draw no whisker
    reference  a value for each ``y``, drawn as a tick (the accuracy of the majority label), or one for all, a line
    paper      the paper's value for a ``y``, or for a (y, hue): an open diamond
    upright    the values run upwards and each is written beside its dot: for few of them
    within     the values that are possible, such as (0, 1): a whisker ends there, though a t interval need not

    A table without values gives a figure that says so.

    Colours are those of `style.palette`: a label, a level, a view or a corpus has its own, a random twin is grey.
    """
    if table[value].notna().sum() == 0:
        return _nothing(title)
    shown = table.dropna(subset=[value]).assign(low=table.get("low", np.nan), high=table.get("high", np.nan))
    conditions = shown[hue].astype(str) if hue else pd.Series("", index=shown.index)
    titles, names = list(shown[y].unique()), list(conditions.unique())
    size = (WIDTH, max(2.6, 0.9 + len(titles) * (0.2 + 0.15 * len(names))))
    figure, axes = plt.subplots(figsize=(WIDTH, 3.6) if upright else size)
    colours, place = palette(names), {name: at for at, name in enumerate(titles)}

    def draw(kind: str, at: np.ndarray | float, of: np.ndarray | float, **look: object) -> None:
        getattr(axes, kind)(*((at, of) if upright else (of, at)), **look)

    for row in range(1, len(titles), 2):
        (axes.axvspan if upright else axes.axhspan)(row - 0.5, row + 0.5, color="#f4f4f4", lw=0, zorder=0)
    diamonds = []
    for number, name in enumerate(names):
        part = shown[conditions == name]
        at = part[y].map(place).to_numpy() + (number - (len(names) - 1) / 2) * 0.66 / len(names)
        values, ends = part[value].to_numpy(dtype=float), part[["low", "high"]].to_numpy(dtype=float)
        ends = ends if within is None else ends.clip(*within)
        reach = np.nan_to_num(np.stack([values - ends[:, 0], ends[:, 1] - values])).clip(0)
        marks = TWIN_MARKERS if TWIN in name else MARKERS
        marker = marks[[other for other in names if (TWIN in other) == (TWIN in name)].index(name) % len(marks)]
        whiskers = {"yerr" if upright else "xerr": reach, "capsize": 2.5, "lw": 1.4, "ms": 6, "zorder": 3}
        draw("errorbar", at, values, fmt=marker, color=colours[name], label=name, **whiskers)
        for x, of in zip(at, values, strict=True) if upright else ():
            axes.annotate(f"{of:.3f}", (x, of), xytext=(9, 0), textcoords="offset points", va="center",
                          fontsize=SMALL, path_effects=HALO)  # fmt: skip
        diamonds += [(x, paper[key, name]) for x, key in zip(at, part[y], strict=True) if (key, name) in (paper or {})]
    diamonds += [(place[key], of) for key, of in (paper or {}).items() if key in place]
    if isinstance(reference, Mapping):
        known = [(at, reference[name]) for name, at in place.items() if name in reference]
        for at, of in known:
            draw("plot", np.array([at - 0.4, at + 0.4]), [of, of], color=INK, lw=1.6)
        axes.plot([], [], color=INK, lw=1.6, label=reference_label) if known else None
    elif reference is not None:
        line = axes.axhline if upright else axes.axvline
        line(reference, color=INK, ls="--", lw=1, label=f"{reference_label} {reference:.3g}")
    if diamonds:
        look = {"marker": "D", "s": 44, "facecolor": "white", "edgecolor": INK, "lw": 1.2, "zorder": 5}
        draw("scatter", *np.array(diamonds).T, label="the paper", **look)
    long, short = ("x", "y") if upright else ("y", "x")
    axes.set(**{f"{long}ticks": range(len(titles)), f"{long}ticklabels": titles, f"{short}label": xlabel or value})
    axes.set(xlim=(-0.5, len(titles) - 0.5)) if upright else axes.set(ylim=(len(titles) - 0.5, -0.5))
    axes.set_title(textwrap.fill(title, 52))  # a longer line would widen the figure and make its text small
    axes.grid(axis=short)
    axes.tick_params(axis=long, length=0)
    handles, labels = axes.get_legend_handles_labels()
    if any(labels):
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _nothing(title: str) -> Figure:
    figure, axes = plt.subplots(figsize=(WIDTH, 1.2))
    axes.text(0.5, 0.5, "Nothing to show for this corpus.", ha="center", va="center")
    axes.set_axis_off()
    axes.set_title(textwrap.fill(title, 52))
    return figure
