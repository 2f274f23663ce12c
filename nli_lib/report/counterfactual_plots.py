"""Figures of the chapters on counterfactuals."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from nli_lib.plots import SMALL, drawing, headline, palette
from nli_lib.report.counterfactuals import ALL, BOTH


def diversity_by_size(table: pd.DataFrame, *, paper: Mapping[str, float] | None = None, title: str = "") -> Figure:
    """Self-BLEU against the number of revisions, a line for each set: solid for all revisions, dashed for one of each
    original; a dotted level for what the paper prints.

    table  as `diversity_table` makes it; both texts of a pair are shown, the mean over directions and draws at the
           sizes that every direction of a set has
    """
    shown = table[table["text"] == BOTH]
    means = shown.groupby(["set", "revisions", "direction", "size"])["value"].mean().reset_index()
    wanted = means.groupby(["set", "revisions"])["direction"].transform("nunique")
    means = means[means.groupby(["set", "revisions", "size"])["direction"].transform("nunique") == wanted]
    lines = means.groupby(["set", "revisions", "size"])["value"].mean()
    names = list(table["set"].unique())
    colours = palette(names)
    with drawing(height=3.6) as (figure, axes):
        for (name, revisions), line in lines.groupby(level=[0, 1]):
            sizes, dash = line.index.get_level_values("size"), "-" if revisions == ALL else "--"
            label = f"{name}, {'all revisions' if revisions == ALL else revisions}"
            axes.plot(sizes, line, dash, marker="o", ms=4, color=colours[name], label=label)
        for name, value in (paper or {}).items():
            axes.axhline(value, ls=":", color=colours[name])
            axes.annotate(f"the paper, {name}", (0.01, value), xycoords=("axes fraction", "data"), va="bottom",
                          fontsize=SMALL, color=colours[name])  # fmt: skip
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.set(xlabel="revisions compared, by direction", ylabel="Self-BLEU", ylim=(0, None))
        figure.legend(loc="outside lower center", ncols=2)
        headline(figure, title)
    return figure
