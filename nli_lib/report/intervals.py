"""The figure of the book: estimates with their intervals, by row and by condition."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nli_lib.report.style import HALO, INK, SMALL, TWIN, WIDTH, palette, styled

MARKERS = ("o", "s", "^", "v", "P", "X")
TWIN_MARKERS = ("d", "*")


@styled()
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
    shown["condition"] = shown[hue].astype(str) if hue else ""
    titles, names = list(shown[y].unique()), list(shown["condition"].unique())
    place, colours = {name: at for at, name in enumerate(titles)}, palette(names)
    height = 3.6 if upright else max(2.6, 0.9 + len(titles) * (0.2 + 0.15 * len(names)))
    figure, axes = plt.subplots(figsize=(WIDTH, height))
    for row in range(1, len(titles), 2):
        (axes.axvspan if upright else axes.axhspan)(row - 0.5, row + 0.5, color="#f4f4f4", lw=0, zorder=0)
    diamonds = [(place[key], of) for key, of in (paper or {}).items() if key in place]
    for number, (name, marker) in enumerate(zip(names, _markers(names), strict=True)):
        part = shown[shown["condition"] == name]
        at = part[y].map(place).to_numpy() + (number - (len(names) - 1) / 2) * 0.66 / len(names)
        values, ends = part[value].to_numpy(dtype=float), part[["low", "high"]].to_numpy(dtype=float)
        ends = ends if within is None else ends.clip(*within)
        reach = np.nan_to_num(np.stack([values - ends[:, 0], ends[:, 1] - values])).clip(0)
        look = {"fmt": marker, "color": colours[name], "label": name, "capsize": 2.5, "lw": 1.4, "ms": 6, "zorder": 3}
        axes.errorbar(*_along(at, values, upright), **{"yerr" if upright else "xerr": reach}, **look)
        if upright:
            for x, of in zip(at, values, strict=True):
                text = {"xytext": (9, 0), "textcoords": "offset points", "va": "center", "fontsize": SMALL}
                axes.annotate(f"{of:.3f}", (x, of), **text, path_effects=HALO)
        diamonds += [(x, paper[key, name]) for x, key in zip(at, part[y], strict=True) if (key, name) in (paper or {})]
    if isinstance(reference, Mapping):
        known = np.array([(at, reference[name]) for name, at in place.items() if name in reference])
        if len(known):
            ticks = axes.hlines if upright else axes.vlines
            ticks(known[:, 1], known[:, 0] - 0.4, known[:, 0] + 0.4, color=INK, lw=1.6, label=reference_label)
    elif reference is not None:
        line = axes.axhline if upright else axes.axvline
        line(reference, color=INK, ls="--", lw=1, label=f"{reference_label} {reference:.3g}")
    if diamonds:
        look = {"marker": "D", "s": 44, "facecolor": "white", "edgecolor": INK, "lw": 1.2, "zorder": 5}
        axes.scatter(*_along(*np.array(diamonds).T, upright), label="the paper", **look)
    long, short = ("x", "y") if upright else ("y", "x")
    axes.set(**{f"{long}ticks": range(len(titles)), f"{long}ticklabels": titles, f"{short}label": xlabel or value})
    limits = (-0.5, len(titles) - 0.5)
    axes.set(**{f"{long}lim": limits if upright else limits[::-1]})  # rows are read from the top
    axes.set_title(textwrap.fill(title, 52))  # a longer line would widen the figure and make its text small
    axes.grid(axis=short)
    axes.tick_params(axis=long, length=0)
    handles, labels = axes.get_legend_handles_labels()
    if any(labels):
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _along(at: np.ndarray, values: np.ndarray, upright: bool) -> tuple[np.ndarray, np.ndarray]:
    """(x, y) of values at places along the other axis."""
    return (at, values) if upright else (values, at)


def _markers(names: list[str]) -> list[str]:
    """A marker for each condition, random twins counted apart."""
    twins, others = itertools.cycle(TWIN_MARKERS), itertools.cycle(MARKERS)
    return [next(twins if TWIN in name else others) for name in names]


def _nothing(title: str) -> Figure:
    figure, axes = plt.subplots(figsize=(WIDTH, 1.2))
    axes.text(0.5, 0.5, "Nothing to show for this corpus.", ha="center", va="center")
    axes.set_axis_off()
    axes.set_title(textwrap.fill(title, 52))
    return figure
