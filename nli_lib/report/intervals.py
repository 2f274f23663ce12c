"""The figure of the book: estimates with their intervals, by row and by condition."""

import itertools
import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nli_lib.report.names import name_of
from nli_lib.report.style import INK, drawing, palette
from nli_lib.stats import Estimate

MARKERS = ("o", "s", "^", "v", "P", "X", "d", "*")


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
    within: tuple[float, float] = (-np.inf, np.inf),
) -> Figure:
    """One dot with its interval for each row of ``table``: a line of the figure for each ``y``, a colour a ``hue``.

    table      columns ``value``, ``y``, ``hue`` (None: one condition) and, where there are intervals, low and high;
               rows without a value are left out, ends that are NaN draw no whisker
    reference  a value for each ``y``, drawn as a tick (the accuracy of the majority label), or one for all, a line
    paper      the paper's value for a ``y``, or for a (y, hue): an open diamond
    within     the values that are possible, such as (0, 1): a whisker ends there, though a t interval need not

    A table without values gives a figure that says so.

    Names are those of `names.name_of`, colours those of `style.palette`: a label, a level, a view or a corpus has its
    own, a random twin is grey.
    """
    shown = table.dropna(subset=[value]).assign(low=table.get("low", np.nan), high=table.get("high", np.nan))
    conditions = shown[hue].astype(str) if hue else pd.Series("", index=shown.index)
    titles, names = list(shown[y].unique()), list(conditions.unique())
    place, colours, paper = {name: at for at, name in enumerate(titles)}, palette(names), paper or {}
    with drawing(height=max(2.6, 0.9 + len(titles) * (0.2 + 0.15 * len(names)))) as (figure, axes):
        axes.set_title(textwrap.fill(title, 52))  # a longer line would widen the figure and make its text small
        if shown.empty:
            axes.text(0.5, 0.5, "Nothing to show for this corpus.", ha="center", va="center")
            axes.set_axis_off()
            return figure
        for row in range(1, len(titles), 2):
            axes.axhspan(row - 0.5, row + 0.5, color="#f4f4f4", lw=0, zorder=0)
        diamonds = [(of, place[key]) for key, of in paper.items() if key in place]
        for number, (name, marker) in enumerate(zip(names, itertools.cycle(MARKERS))):
            part = shown[conditions == name]
            at = part[y].map(place).to_numpy() + (number - (len(names) - 1) / 2) * 0.66 / len(names)
            values, ends = part[value].to_numpy(dtype=float), part[["low", "high"]].to_numpy(dtype=float).clip(*within)
            reach = np.nan_to_num(np.stack([values - ends[:, 0], ends[:, 1] - values])).clip(0)
            look = {"color": colours[name], "label": name_of(name), "capsize": 2.5, "lw": 1.4, "ms": 6, "zorder": 3}
            axes.errorbar(values, at, xerr=reach, fmt=marker, **look)
            diamonds += [(paper[key, name], x) for x, key in zip(at, part[y], strict=True) if (key, name) in paper]
        if isinstance(reference, Mapping):
            known = np.array([(reference[name], at) for name, at in place.items() if name in reference])
            if len(known):
                axes.vlines(known[:, 0], known[:, 1] - 0.4, known[:, 1] + 0.4, color=INK, lw=1.6, label=reference_label)
        elif reference is not None:
            label = f"{reference_label} {reference:.3g}" if reference else reference_label
            axes.axvline(reference, color=INK, ls="--", lw=1, label=label)
        if diamonds:
            look = {"marker": "D", "s": 44, "facecolor": "white", "edgecolor": INK, "lw": 1.2, "zorder": 5}
            axes.scatter(*np.array(diamonds).T, label="the paper", **look)
        axes.set_yticks(range(len(titles)), list(map(name_of, titles)))
        axes.set(ylim=(len(titles) - 0.5, -0.5), xlabel=xlabel or value)
        axes.grid(axis="x")
        axes.tick_params(axis="y", length=0)
        handles, labels = axes.get_legend_handles_labels()
        if any(labels):
            wide = max(map(len, labels)) > 42  # such names side by side would make the drawing small
            figure.legend(handles, labels, loc="outside lower center", ncols=1 if wide else 3)
    return figure


def bounded(estimate: Estimate, least: float, most: float) -> Estimate:
    """An estimate whose interval ends where the possible values do, though a t interval need not."""
    return estimate._replace(low=max(estimate.low, least), high=min(estimate.high, most))
