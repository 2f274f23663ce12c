"""The ledger of claims as figures, for readers who have never seen a claim's id."""

import textwrap

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from nli_lib.report.claims import VERDICTS
from nli_lib.report.ledger_page import PAPERS, interval, region
from nli_lib.report.style import COLOURS, INK, PALE, SMALL, drawing

CONFIRMS = "#e4ecf2"


def ledger_figure(ledger: pd.DataFrame, *, title: str = "") -> Figure:
    """Every claim that was tested, in words: our value with its interval against the shaded values that confirm it.

    ``ledger`` as `nli_lib.report.claims.ledger` makes it. Each row has a scale of its own, because statistics differ in
    unit; the numbers stand at the right, and the paper's value, where it is a number, is an open diamond. Claims that
    are not testable are left out: they stand in the table.
    """
    tested = ledger[ledger["verdict"] != VERDICTS[3]].reset_index(drop=True)
    paper = pd.to_numeric(tested["paper_value"], errors="coerce")  # NaN where the paper has words
    numbers = tested[["value", "low", "high", "region_low", "region_high"]].assign(paper=paper).astype(float)
    finite = numbers.where(np.isfinite(numbers))
    first, width = finite.min(axis=1), (finite.max(axis=1) - finite.min(axis=1)).replace(0, 1)
    at = numbers.sub(first, axis=0).div(width, axis=0) / 1.24 + 0.1  # onto 0 to 1, with room around
    with drawing(height=1.3 + 0.8 * max(1, len(tested))) as (figure, axes):
        edges = at[["region_low", "region_high"]].clip(0, 1)
        axes.barh(at.index, edges["region_high"] - edges["region_low"], 0.48, edges["region_low"], color=CONFIRMS)
        for verdict, marker in zip(VERDICTS[:3], "os^", strict=True):
            ours = at[tested["verdict"] == verdict]
            axes.hlines(ours.index, ours["low"], ours["high"], color=COLOURS[verdict], lw=2.4)
            axes.plot(ours["value"], ours.index, marker, color=COLOURS[verdict], ms=7.5, label=verdict)
        axes.plot(at["paper"], at.index, "D", mfc="white", mec=INK, ms=6.5, label="the paper")
        for row, claim in tested.iterrows():
            words = f"{claim['verdict']}: {' '.join(interval(claim))}\nconfirms: {region(claim)}"
            axes.text(1.06, row, words, va="center", fontsize=SMALL)
        if tested.empty:
            axes.text(1, 0, f"None of the {len(ledger)} declared claims can be tested with these records.", ha="center")
        axes.set(xticks=[], xlim=(-0.02, 2.75), ylim=(max(1, len(tested)) - 0.4, -0.6), title=title)
        axes.set_yticks(at.index, [textwrap.fill(claim, 30) for claim in tested["claim"]])
        axes.tick_params(axis="y", length=0)
        axes.spines[["left", "bottom"]].set_visible(False)
        handles, labels = axes.get_legend_handles_labels()
        handles, labels = [*handles, Patch(color=CONFIRMS)], [*labels, "confirms"]
        figure.legend(handles, labels, loc="outside lower center", ncols=5, columnspacing=1.1, handlelength=1.4)
    return figure


def verdict_bars(ledger: pd.DataFrame, *, title: str = "") -> Figure:
    """How many claims of each paper have each verdict: one stacked bar a paper, the numbers in it."""
    counts = pd.crosstab(ledger["paper"], ledger["verdict"])
    counts = counts.reindex(index=[key for key in PAPERS if key in counts.index], columns=list(VERDICTS), fill_value=0)
    counts = counts.rename(index=PAPERS).iloc[::-1]
    colours = [COLOURS.get(verdict, PALE) for verdict in counts]
    with drawing(height=0.9 + 0.38 * len(counts)) as (figure, axes):
        counts.plot.barh(stacked=True, color=colours, width=0.8, ax=axes, legend=False)
        for bars, verdict in zip(axes.containers, counts, strict=True):
            words = [str(n) if n else "" for n in counts[verdict]]
            ink = "white" if verdict in COLOURS else INK
            axes.bar_label(bars, words, label_type="center", color=ink, fontsize=SMALL)
        axes.set(xlabel="claims", ylabel="", title=title)
        axes.tick_params(axis="y", length=0)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
