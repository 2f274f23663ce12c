"""The ledger of claims as a figure, for readers who have never seen a claim's id."""

from __future__ import annotations

import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nli_lib.report.claims import VERDICTS
from nli_lib.report.style import COLOURS, INK, WIDTH, styled

MARKERS = dict(zip(VERDICTS, "os^", strict=False))


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
        marker, colour = MARKERS[claim["verdict"]], COLOURS[claim["verdict"]]
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
        marker, colour = MARKERS[verdict], COLOURS[verdict]
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
