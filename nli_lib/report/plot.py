"""The figures of the book: arrays or tidy tables in, a matplotlib Figure out.

The style and what colours mean are in ``nli_lib.report.style``; estimates with their intervals are drawn by
``nli_lib.report.intervals``, the claims by ``nli_lib.report.ledger``.
"""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from nli_lib.measure.features import share_at_z, z_threshold
from nli_lib.report.names import name_of
from nli_lib.report.style import GREY, INK, SERIES, SMALL, TWIN, WIDTH, drawing, headline, label_points, palette, styled

ALPHA = 0.01  # of the lines of significance


@styled()
def data_map(
    variability: pd.Series,
    confidence: pd.Series,
    correctness: pd.Series,
    *,
    epochs: int,
    overlay: np.ndarray | None = None,
    overlay_name: str = TWIN,
    title: str = "",
    dense: int = 50_000,
) -> Figure:
    """The data map of cartography: variability across, confidence up, correctness as colour, and three histograms.

    variability, confidence (N,); correctness (N,) as a share of the ``epochs``, 0 to 1, as
    `nli_lib.measure.dynamics.correctness` gives it (or its mean over seeds). ``overlay`` (N,) bool rings some examples,
    such as planted ones or a random twin. Above ``dense`` examples the map is drawn in hexagons coloured by their mean
    correctness.

    *Departures*: cartography divides counts by the largest count that occurs; here 1 always means every epoch.
    """
    v, c, share = (np.asarray(values, dtype=float) for values in (variability, confidence, correctness))
    if len(share) and not 0 <= share.min() <= share.max() <= 1:
        raise ValueError(f"correctness must be a share from 0 to 1, not {share.min():g} to {share.max():g}")
    sides = {
        "variability": (v, np.linspace(0, 0.5, 26)),
        "confidence": (c, np.linspace(0, 1, 26)),
        "correctness": (share, (np.arange(epochs + 2) - 0.5) / epochs),
    }
    places = [["map", side] for side in sides]
    figure, panels = plt.subplot_mosaic(places, figsize=(WIDTH, 5.4), width_ratios=(2.6, 1))
    axes, colours = panels["map"], {"cmap": "cividis", "vmin": 0, "vmax": 1, "rasterized": True}
    if len(v) > dense:
        points = axes.hexbin(v, c, C=share, gridsize=70, extent=(0, 0.5, 0, 1), **colours)
    else:
        points = axes.scatter(v, c, c=share, s=max(3, min(14, 2e4 / len(v))), lw=0, alpha=0.75, **colours)
    if overlay is not None:
        ring = np.asarray(overlay, dtype=bool)
        axes.scatter(v[ring], c[ring], s=26, facecolor="none", edgecolor="#d1231a", lw=0.9, label=overlay_name)
        axes.legend(loc="lower left")
    axes.set(xlabel="variability", ylabel="confidence", xlim=(-0.01, 0.51), ylim=(-0.02, 1.04))
    box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": GREY, "alpha": 0.9}
    for x, y, name in ((0.85, 0.5, "ambiguous"), (0.45, 0.95, "easy to learn"), (0.3, 0.14, "hard to learn")):
        axes.text(x, y, name, transform=axes.transAxes, ha="center", va="center", bbox=box)
    bar = figure.colorbar(points, ax=axes, location="top", shrink=0.75, pad=0.01, aspect=34)
    bar.set_label(f"correctness: share of {epochs} epochs", fontsize=SMALL)
    for name, (values, bins) in sides.items():
        panels[name].hist(values, bins=bins, color=SERIES[0], edgecolor="white", lw=0.4)
        panels[name].set(xlabel=name, ylabel="pairs")
        panels[name].yaxis.set_major_formatter(mpl.ticker.EngFormatter(sep=""))
    headline(figure, title)
    return figure


def significance(n: np.ndarray, p0: float, tests: int) -> pd.DataFrame:
    """The shares of a label that are significant at `ALPHA` in ``n`` pairs, one-sided against ``p0``: the columns are
    the line without correction and the line after Bonferroni for so many ``tests``; NaN where no share is high enough.
    """
    lines = {f"α = {ALPHA:g}": 1, f"α = {ALPHA:g}, Bonferroni": max(1, tests)}
    shares = {name: share_at_z(n, z_threshold(ALPHA, number), p0) for name, number in lines.items()}
    return pd.DataFrame(shares, index=n).where(lambda share: share <= 1)


@styled()
def competency(
    table: pd.DataFrame,
    *,
    tests: int | Mapping[str, int] | None = None,
    iso: Sequence[float] = (10, 20, 40),
    named: int = 4,
    p0: float | None = None,
    title: str = "",
) -> Figure:
    """Competency plot (Gardner et al. 2021): p(label | feature) against how often the feature occurs.

    ``table``: feature, label (a name), n, p; a column ``panel`` draws one panel a value, all on one axis of n. Curves
    of equal z (`share_at_z`): dotted at ``iso``, dashed and solid the lines of `significance` with ``tests``, one
    number or one a panel (default: the rows of the panel). ``p0`` is the share that z compares with, one over the
    labels of the table unless given. The ``named`` features of highest z of each label are ringed and carry their
    names where there is room.
    """
    p0 = 1 / table["label"].nunique() if p0 is None else p0
    colours = palette(table["label"].unique())
    parts = list(table.groupby("panel", sort=False)) if "panel" in table else [(title, table)]
    figure, rows = plt.subplots(len(parts), 1, figsize=(WIDTH, 4.1 * len(parts)), squeeze=False, sharex=True)
    reach = (max(1, table["n"].min()) * 0.85, table["n"].max() * 2.4)
    across = np.geomspace(*reach, 400)
    for axes, (name, part) in zip(rows[:, 0], parts, strict=True):
        part = part.sample(frac=1, random_state=0)  # so that no label lies on top of the others
        axes.scatter(part["n"], part["p"], s=11, c=part["label"].map(colours), alpha=0.65, lw=0, rasterized=True)
        axes.axhline(p0, color=GREY, lw=0.8)
        for z in iso:
            n, p = across[share_at_z(across, z, p0) <= 1], share_at_z(across, z, p0)
            axes.plot(n, p[p <= 1], color="#666666", ls=":", lw=1)
            if len(n) and n[0] < reach[1] / 1.5:
                axes.text(n[0], 1.03, f"z = {z:g}", fontsize=SMALL, color="#444444", ha="center", va="bottom")
        count = tests[name] if isinstance(tests, Mapping) else tests
        lines = significance(across, p0, len(part) if count is None else count)
        lines.plot(ax=axes, style=["--", "-"], color=INK, lw=1.2, legend=False)
        axes.set(xscale="log", xlim=reach, ylim=(-0.03, 1.12), ylabel="p(label | feature)", title=name_of(name))
        z = (part["p"] - p0) / np.sqrt(p0 * (1 - p0) / part["n"])
        top = part.loc[z.sort_values(ascending=False).index].groupby("label", sort=False).head(named)
        axes.scatter(top["n"], top["p"], s=24, facecolor="none", edgecolor=INK, lw=0.8)
        figure.draw_without_rendering()
        label_points(axes, top["n"], top["p"], top["feature"])
    rows[-1, 0].set_xlabel("n(feature): pairs that contain it")
    headline(figure, title if "panel" in table else "")
    dots = [plt.Line2D([], [], marker="o", ls="", color=colour, label=name) for name, colour in colours.items()]
    figure.legend(handles=[*dots, *axes.get_legend_handles_labels()[0]], loc="outside lower center", ncols=3)
    return figure


def z_by_rank(tops: pd.DataFrame, *, title: str = "") -> Figure:
    """The highest z of each label by rank, one panel a label: all pairs, a random twin, and what a filter keeps.

    ``tops``: label, rank, z, pairs ("before", "random twin" or "after") and line, the z of significance (dotted), as
    `report.filtered.strongest` makes it.
    """
    labels, names = tops["label"].unique(), {"before": "all pairs", TWIN: TWIN, "after": "kept"}
    with drawing(1, len(labels), height=3.1, sharey=True, squeeze=False) as (figure, panels):
        for axes, label in zip(panels[0], labels, strict=True):
            curves = tops[tops["label"] == label].pivot(index="rank", columns="pairs", values="z")[list(names)]
            colours = [INK, GREY, palette(labels)[label]]
            curves.rename(columns=names).plot(ax=axes, color=colours, style=["-", "--", "-"], legend=False)
            axes.axhline(tops["line"].max(), ls=":", color=INK, lw=0.9)
            axes.set(title=str(label), xlabel="rank", ylabel="z", ylim=(0, None))
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        headline(figure, title)
    return figure


def similarity_densities(table: pd.DataFrame, *, title: str = "") -> Figure:
    """Density of premise-hypothesis similarity by label, one panel a corpus on shared axes (WANLI, Figure 4).

    ``table``: corpus, label (a name), similarity (cosine, -1 to 1). Gaussian kernel, Scott's bandwidth; a tick at the
    foot of each curve marks its median. A label without two different values has no curve.
    """
    corpora, colours = table["corpus"].unique(), palette(table["label"].unique())
    with drawing(1, len(corpora), height=3.4, sharex=True, sharey=True, squeeze=False) as (figure, rows):
        for axes, corpus in zip(rows[0], corpora, strict=True):
            part = table[table["corpus"] == corpus]
            look = {"hue": "label", "palette": colours, "common_norm": False, "cut": 0, "warn_singular": False}
            sns.kdeplot(part, x="similarity", **look, fill=True, alpha=0.07, linewidth=1.8, ax=axes, legend=False)
            for label, median in part.groupby("label")["similarity"].median().items():
                axes.plot([median] * 2, [0, 0.06], color=colours[label], lw=2.6, transform=axes.get_xaxis_transform())
            axes.set(title=name_of(corpus), xlabel="cosine similarity", ylabel="density")
        handles = [plt.Line2D([], [], color=colour, label=label) for label, colour in colours.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
        headline(figure, title)
    return figure
