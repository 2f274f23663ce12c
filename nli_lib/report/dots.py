"""Figures made of dots with intervals: suites of accuracies, partial input, and the ledger of claims."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nli_lib.report.claims import VERDICTS
from nli_lib.report.style import COLOURS, GREY, HALO, INK, SERIES, WIDTH, paper_marks, styled

MARKERS = ("o", "s", "^", "v", "P", "X")
TWIN, TWIN_MARKERS = "random twin", ("d", "*")
VERDICT_MARKS = dict(zip(VERDICTS, (("o", "#2272b4"), ("s", "#7b1e48"), ("^", "#d1761a"), ("", GREY)), strict=True))


@styled
def suite_accuracy(
    table: pd.DataFrame,
    *,
    majority: Mapping[str, float] | None = None,
    paper: Mapping[str, float] | None = None,
    title: str = "",
    xlabel: str = "accuracy",
) -> Figure:
    """Accuracy on each test set, one dot with its interval for each condition.

    ``table``: title, condition, accuracy, low, high (shares); NaN ends draw no interval. A condition whose name holds
    "random twin" is grey. ``majority`` maps a title to the accuracy of the most frequent label, drawn as an upright
    tick; ``paper`` maps a title to the paper's accuracy, drawn as an open diamond. ``xlabel`` names another measure.
    """
    titles, conditions = list(table["title"].unique()), list(table["condition"].unique())
    height = max(2.6, 0.9 + len(titles) * (0.2 + 0.15 * len(conditions)))
    figure, axes = plt.subplots(figsize=(WIDTH, height))
    rows = np.arange(len(titles))
    for row in rows[1::2]:
        axes.axhspan(row - 0.5, row + 0.5, color="#f4f4f4", lw=0, zorder=0)
    for place, condition in enumerate(conditions):
        part = table[table["condition"] == condition].set_index("title")
        at = [titles.index(name) for name in part.index]
        shift = (place - (len(conditions) - 1) / 2) * 0.66 / len(conditions)
        _dots(axes, part, np.array(at) + shift, condition, *_look(conditions, condition))
    if majority:
        known = [name for name in titles if name in majority]
        at = np.array([titles.index(name) for name in known])
        axes.vlines([majority[name] for name in known], at - 0.4, at + 0.4, color=INK, lw=1.6, label="majority label")
    if paper:
        paper_marks(axes, {titles.index(name): value for name, value in paper.items() if name in titles})
    axes.set(yticks=rows, yticklabels=titles, ylim=(len(titles) - 0.5, -0.5), xlabel=xlabel)
    axes.set_title(textwrap.fill(title, 58))  # a longer line would widen the figure and make its text small
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3)
    return figure


@styled
def partial_input(
    table: pd.DataFrame, *, chance: float = 1 / 3, paper: Mapping[tuple[str, str], float] | None = None
) -> Figure:
    """What one of the two texts gives away: accuracy by corpus and view, as dots with intervals above a line at chance.

    ``table``: corpus, view, accuracy, low, high. ``paper`` maps (corpus, view) to the paper's accuracy.
    """
    views, corpora = list(table["view"].unique()), list(table["corpus"].unique())
    figure, axes = plt.subplots(figsize=(WIDTH, 3.6))
    axes.axhline(chance, color=INK, ls="--", lw=1)
    axes.annotate(f"chance {chance:.3f}", (1, chance), xycoords=("axes fraction", "data"), xytext=(0, 3),
                  textcoords="offset points", ha="right", fontsize=9)  # fmt: skip
    paper_at = {}
    for place, corpus in enumerate(corpora):
        part = table[table["corpus"] == corpus].set_index("view").reindex(views)
        at = np.arange(len(views)) + (place - (len(corpora) - 1) / 2) * 0.5 / max(1, len(corpora))
        colour, marker = SERIES[place % len(SERIES)], MARKERS[place % len(MARKERS)]
        _dots(axes, part, at, corpus, colour, marker, upright=True)
        for x, view in zip(at, views, strict=True):
            if np.isfinite(part.loc[view, "accuracy"]):
                axes.annotate(f"{part.loc[view, 'accuracy']:.3f}", (x, part.loc[view, "accuracy"]), xytext=(9, 0),
                              textcoords="offset points", va="center", fontsize=9, path_effects=HALO)  # fmt: skip
            if paper and (corpus, view) in paper:
                paper_at[x - 0.05] = paper[corpus, view]
    if paper_at:
        paper_marks(axes, paper_at, upright=True)
    axes.set(xticks=np.arange(len(views)), xticklabels=views, xlim=(-0.5, len(views) - 0.5), ylabel="accuracy")
    axes.margins(y=0.12)
    axes.grid(axis="y")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


@styled
def ledger_figure(ledger: pd.DataFrame, *, title: str = "") -> Figure:
    """Every claim that was tested: our value with its interval against the shaded values that would confirm it.

    ``ledger`` as `nli_lib.report.claims.ledger` makes it. Each row has a scale of its own, because statistics differ in
    unit; the numbers stand at the right, and the paper's value, where it is a number, is an open diamond. Claims that
    are not testable are left out: they stand in the table.
    """
    tested = ledger[ledger["verdict"] != VERDICTS[3]].reset_index(drop=True)
    if tested.empty:
        return _nothing(len(ledger), title)
    figure, axes = plt.subplots(figsize=(WIDTH, 1.3 + 0.54 * len(tested)))
    for row, claim in tested.iterrows():
        scale = _row_scale(claim)
        start, stop = np.clip(scale([claim["region_low"], claim["region_high"]]), 0, 1)
        axes.fill_between([start, stop], row - 0.24, row + 0.24, color="#dcead9", lw=0, zorder=0)
        for edge in (claim["region_low"], claim["region_high"]):
            if np.isfinite(edge):
                axes.plot([scale(edge)] * 2, [row - 0.24, row + 0.24], color="#5b8a54", lw=1.2, zorder=1)
        marker, colour = VERDICT_MARKS[claim["verdict"]]
        axes.plot(scale([claim["low"], claim["high"]]), [row, row], color=colour, lw=2.4, zorder=3)
        axes.plot(scale(claim["value"]), row, marker=marker, color=colour, ms=7.5, zorder=4)
        paper = _number(claim["paper_value"])
        if paper is not None:
            axes.plot(scale(paper), row, marker="D", mfc="white", mec=INK, ms=6.5, zorder=5)
        axes.text(1.04, row, _row_words(claim), va="center", fontsize=9)
    names = [textwrap.fill(claim_id, 21, break_on_hyphens=True) for claim_id in tested["id"]]
    axes.set(
        yticks=range(len(tested)), yticklabels=names, xticks=[], xlim=(-0.02, 2.02), ylim=(len(tested) - 0.4, -0.6)
    )
    axes.set_title(title)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    _ledger_legend(figure, axes)
    return figure


def _row_scale(claim: pd.Series):
    """A row's own linear scale, onto 0 to 1: its value, interval, border and the paper's value, with room around."""
    seen = [claim["value"], claim["low"], claim["high"], claim["region_low"], claim["region_high"]]
    seen.append(_number(claim["paper_value"]))
    seen = [v for v in seen if v is not None and np.isfinite(v)]
    width = max(seen) - min(seen) or 1.0
    first, last = min(seen) - 0.12 * width, max(seen) + 0.12 * width
    return lambda values: (np.asarray(values, dtype=float) - first) / (last - first)


def _row_words(claim: pd.Series) -> str:
    numbers = f"{claim['value']:.3g} [{claim['low']:.3g}, {claim['high']:.3g}]"
    return f"{claim['verdict']}: {numbers}\nwould confirm: {claim['confirm']}"


def _number(value: float | str) -> float | None:
    """The paper's value where it is a number; None where it is words."""
    try:
        return float(value)
    except ValueError:
        return None


def _ledger_legend(figure: Figure, axes: Axes) -> None:
    for verdict in VERDICTS[:3]:
        marker, colour = VERDICT_MARKS[verdict]
        axes.plot([], [], marker=marker, color=colour, ms=7, lw=2.4, label=verdict)
    axes.plot([], [], marker="D", mfc="white", mec=INK, ls="", ms=6.5, label="the paper")
    axes.fill_between([], [], color="#dcead9", label="would confirm")
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, columnspacing=1.1, handlelength=1.4
    )


def _nothing(declared: int, title: str) -> Figure:
    figure, axes = plt.subplots(figsize=(WIDTH, 1.6))
    axes.text(
        0.5, 0.5, f"None of the {declared} declared claims can be tested with these records.", ha="center", va="center"
    )
    axes.set_axis_off()
    axes.set_title(title)
    return figure


def _look(conditions: list[str], condition: str) -> tuple[str, str]:
    """(colour, marker): grey for a random twin, a label's own colour, otherwise by the place among the others."""
    if TWIN in condition:
        place = [name for name in conditions if TWIN in name].index(condition)
        return COLOURS[TWIN], TWIN_MARKERS[place % len(TWIN_MARKERS)]
    place = [name for name in conditions if TWIN not in name].index(condition)
    return COLOURS.get(condition, SERIES[place % len(SERIES)]), MARKERS[place % len(MARKERS)]


def _dots(
    axes: Axes, part: pd.DataFrame, at: np.ndarray, name: str, colour: str, marker: str, upright: bool = False
) -> None:
    """Dots at ``accuracy`` with whiskers to low and high, along x (or along y when ``upright``)."""
    value = part["accuracy"].to_numpy(dtype=float)
    reach = np.vstack([value - part["low"].to_numpy(dtype=float), part["high"].to_numpy(dtype=float) - value])
    reach = np.nan_to_num(np.clip(reach, 0, None))
    x, y = (at, value) if upright else (value, at)
    error = {"yerr": reach} if upright else {"xerr": reach}
    axes.errorbar(x, y, **error, fmt=marker, color=colour, ms=6, capsize=2.5, lw=1.4, label=name, zorder=3)
