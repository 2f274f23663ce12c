"""The ledger of claims as figures, for readers who have never seen a claim's id."""

from __future__ import annotations

import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nli_lib.report.claims import VERDICTS
from nli_lib.report.ledger_page import PAPERS, interval, region
from nli_lib.report.style import COLOURS, INK, PALE, SMALL, WIDTH, drawing, styled

MARKERS = dict(zip(VERDICTS, "os^", strict=False))
CONFIRMS = "#e4ecf2"


@styled()
def ledger_figure(ledger: pd.DataFrame, *, title: str = "") -> Figure:
    """Every claim that was tested, in words: our value with its interval against the shaded values that confirm it.

    ``ledger`` as `nli_lib.report.claims.ledger` makes it. Each row has a scale of its own, because statistics differ in
    unit; the numbers stand at the right, and the paper's value, where it is a number, is an open diamond. Claims that
    are not testable are left out: they stand in the table.
    """
    tested = ledger[ledger["verdict"] != VERDICTS[3]].reset_index(drop=True)
    figure, axes = plt.subplots(figsize=(WIDTH, 1.3 + 0.8 * len(tested)))
    axes.set(xticks=[], xlim=(-0.02, 2.75), ylim=(len(tested) - 0.4, -0.6), title=title)
    axes.spines[["left", "bottom"]].set_visible(False)
    if tested.empty:
        axes.set(yticks=[], ylim=(1, -1))
        axes.text(1, 0, f"None of the {len(ledger)} declared claims can be tested with these records.", ha="center")
        return figure
    for row, claim in tested.iterrows():
        paper = pd.to_numeric(claim["paper_value"], errors="coerce")  # NaN where the paper has words
        ends = claim[["low", "high", "region_low", "region_high"]].to_numpy(dtype=float)
        seen = np.array([claim["value"], paper, *ends])
        first, width = np.min(seen[np.isfinite(seen)]), np.ptp(seen[np.isfinite(seen)]) or 1.0
        value, paper, low, high, start, stop = (seen - first) / width / 1.24 + 0.1  # onto 0 to 1, with room around
        axes.fill_between(np.clip([start, stop], 0, 1), row - 0.24, row + 0.24, color=CONFIRMS, lw=0, zorder=0)
        axes.vlines([edge for edge in (start, stop) if np.isfinite(edge)], row - 0.24, row + 0.24, color=INK, lw=0.8)
        axes.plot([low, high], [row, row], color=COLOURS[claim["verdict"]], lw=2.4, zorder=3)
        axes.plot(value, row, marker=MARKERS[claim["verdict"]], color=COLOURS[claim["verdict"]], ms=7.5, zorder=4)
        axes.plot(paper, row, marker="D", mfc="white", mec=INK, ms=6.5, zorder=5)
        numbers = f"{claim['verdict']}: {' '.join(interval(claim))}\nconfirms: {region(claim)}"
        axes.text(1.06, row, numbers, va="center", fontsize=SMALL)
    axes.set_yticks(range(len(tested)), [textwrap.fill(claim, 30) for claim in tested["claim"]])
    axes.tick_params(axis="y", length=0)
    for verdict in VERDICTS[:3]:
        axes.plot([], [], marker=MARKERS[verdict], color=COLOURS[verdict], ms=7, lw=2.4, label=verdict)
    axes.plot([], [], marker="D", mfc="white", mec=INK, ls="", ms=6.5, label="the paper")
    axes.fill_between([], [], color=CONFIRMS, label="confirms")
    legend = {"loc": "outside lower center", "ncols": 5, "columnspacing": 1.1, "handlelength": 1.4}
    figure.legend(*axes.get_legend_handles_labels(), **legend)
    return figure


def verdict_bars(ledger: pd.DataFrame, *, title: str = "") -> Figure:
    """How many claims of each paper have each verdict: one stacked bar a paper, the numbers in it."""
    counts = pd.crosstab(ledger["paper"], ledger["verdict"])
    counts = counts.reindex(index=[key for key in PAPERS if key in counts.index], columns=list(VERDICTS), fill_value=0)
    with drawing(height=0.9 + 0.38 * len(counts)) as (figure, axes):
        start = np.zeros(len(counts))
        for verdict, number in counts.items():
            colour = COLOURS.get(verdict, PALE)
            bars = axes.barh([PAPERS[key] for key in counts.index], number, left=start, color=colour, label=verdict)
            ink = "white" if verdict in COLOURS else INK
            axes.bar_label(bars, [str(n) if n else "" for n in number], label_type="center", color=ink, fontsize=SMALL)
            start += number.to_numpy()
        axes.invert_yaxis()
        axes.set(xlabel="claims", title=title)
        axes.tick_params(axis="y", length=0)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
