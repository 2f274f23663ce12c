"""The figures of the book: arrays or tidy tables in, a matplotlib Figure out.

The style and what colours mean are in ``nli_lib.report.style``; estimates with their intervals are drawn by
``nli_lib.report.intervals``, the claims by ``nli_lib.report.ledger``.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nli_lib.measure.artifacts import share_at_z, z_threshold
from nli_lib.report.style import GREY, INK, PALE, SERIES, SMALL, WIDTH, drawing, headline, label_points, palette, styled


@styled()
def data_map(
    variability: np.ndarray,
    confidence: np.ndarray,
    correctness: np.ndarray,
    *,
    epochs: int,
    overlay: np.ndarray | None = None,
    overlay_name: str = "random twin",
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
    if not len(v) == len(c) == len(share):
        raise ValueError(f"arrays of unequal length: {len(v)}, {len(c)}, {len(share)}")
    if len(share) and not 0 <= share.min() <= share.max() <= 1:
        raise ValueError(f"correctness must be a share from 0 to 1, not {share.min():g} to {share.max():g}")
    figure = plt.figure(figsize=(WIDTH, 5.4))
    grid = figure.add_gridspec(3, 2, width_ratios=(2.6, 1))
    axes = figure.add_subplot(grid[:, 0])
    colours = mpl.colors.LinearSegmentedColormap.from_list("ink", plt.get_cmap("cividis")(np.linspace(0, 0.93, 256)))
    if len(v) > dense:
        points = axes.hexbin(v, c, C=share, gridsize=70, cmap=colours, vmin=0, vmax=1, extent=(0, 0.5, 0, 1))
    else:
        points = axes.scatter(
            v, c, c=share, s=max(3, min(14, 2e4 / len(v))), cmap=colours, vmin=0, vmax=1, lw=0, alpha=0.75
        )
    points.set_rasterized(True)
    if overlay is not None:
        ring = np.asarray(overlay, dtype=bool)
        axes.scatter(v[ring], c[ring], s=26, facecolor="none", edgecolor="#d1231a", lw=0.9, label=overlay_name)
        axes.legend(loc="lower left")
    axes.set(xlabel="variability", ylabel="confidence", xlim=(-0.01, 0.51), ylim=(-0.02, 1.04))
    box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": PALE, "alpha": 0.9}
    for x, y, name in ((0.93, 0.5, "ambiguous"), (0.45, 0.95, "easy to learn"), (0.3, 0.14, "hard to learn")):
        axes.text(x, y, name, transform=axes.transAxes, ha="right" if x > 0.5 else "center", va="center", bbox=box)
    bar = figure.colorbar(points, ax=axes, location="top", shrink=0.75, pad=0.01, aspect=34)
    bar.set_label(f"correctness: share of {epochs} epochs", fontsize=SMALL)
    sides = {
        "variability": (v, np.linspace(0, 0.5, 26)),
        "confidence": (c, np.linspace(0, 1, 26)),
        "correctness": (share, (np.arange(epochs + 2) - 0.5) / epochs),
    }
    for row, (name, (values, bins)) in enumerate(sides.items()):
        side = figure.add_subplot(grid[row, 1])
        side.hist(values, bins=bins, color=SERIES[0], edgecolor="white", lw=0.4)
        side.set(xlabel=name, ylabel="pairs")
        side.yaxis.set_major_locator(mpl.ticker.MaxNLocator(3, integer=True))
        side.yaxis.set_major_formatter(mpl.ticker.EngFormatter(sep=""))
    headline(figure, title)
    return figure


@styled()
def competency(
    table: pd.DataFrame,
    *,
    alpha: float = 0.01,
    tests: int | None = None,
    iso: Sequence[float] = (10, 20, 40),
    named: int = 4,
    p0: float | None = None,
    title: str = "",
) -> Figure:
    """Competency plot (Gardner et al. 2021): p(label | feature) against how often the feature occurs.

    ``table``: feature, label (a name), n, p; a column ``panel`` draws one panel a value, all on one axis of n. Curves
    of equal z (`share_at_z`): dotted at ``iso``, dashed at the one-sided ``alpha``, solid at alpha divided by ``tests``
    (default: the rows of the panel). ``p0`` is the share that z compares with, one over the labels of the table unless
    given. The ``named`` features of highest z of each label are ringed and carry their names where there is room.
    """
    p0 = 1 / table["label"].nunique() if p0 is None else p0
    colours = palette(table["label"].unique())
    panels = table["panel"].unique() if "panel" in table.columns else [None]
    figure, rows = plt.subplots(len(panels), 1, figsize=(WIDTH, 4.1 * len(panels)), squeeze=False, sharex=True)
    reach = (max(1, table["n"].min()) * 0.85, table["n"].max() * 2.4)
    for axes, panel in zip(rows[:, 0], panels, strict=True):
        part = table if panel is None else table[table["panel"] == panel]
        part = part.sample(frac=1, random_state=0, ignore_index=True)  # so that no label lies on top of the others
        axes.scatter(part["n"], part["p"], s=11, c=part["label"].map(colours), alpha=0.65, lw=0, rasterized=True)
        axes.set(xscale="log", xlim=reach, ylim=(-0.03, 1.12), ylabel="p(label | feature)")
        axes.set_title(str(panel) if panel is not None else title)
        lines = _curves(axes, reach, p0, iso, alpha, tests if tests is not None else len(part))
        z = (part["p"] - p0) / np.sqrt(p0 * (1 - p0) / part["n"])
        order = z.sort_values(ascending=False, kind="stable").index
        top = part.loc[part.loc[order].groupby("label", sort=False).head(named).index]
        axes.scatter(top["n"], top["p"], s=24, facecolor="none", edgecolor=INK, lw=0.8)
        figure.draw_without_rendering()
        label_points(axes, top["n"], top["p"], top["feature"])
    rows[-1, 0].set_xlabel("n(feature): pairs that contain it")
    dots = [plt.Line2D([], [], marker="o", ls="", color=colour, label=name) for name, colour in colours.items()]
    figure.legend(handles=[*dots, *lines], loc="outside lower center", ncols=3)
    return figure


def _curves(
    axes: Axes, reach: tuple[float, float], p0: float, iso: Sequence[float], alpha: float, tests: int
) -> list[plt.Line2D]:
    """The null share, the curves of equal z, each named where it enters, and the two lines of significance, which are
    returned for the legend."""
    across = np.geomspace(*reach, 400)
    axes.axhline(p0, color=GREY, lw=0.8)
    for z in iso:
        p = share_at_z(across, z, p0)
        axes.plot(across[p <= 1], p[p <= 1], color="#666666", ls=":", lw=1)
        start = int(np.argmax(p <= 1))
        if p[start] <= 1 and across[start] < reach[1] / 1.5:
            axes.text(across[start], 1.03, f"z = {z:g}", fontsize=SMALL, color="#444444", ha="center", va="bottom")
    lines = []
    for number, dash, name in ((1, "--", f"α = {alpha:g}"), (max(1, tests), "-", f"α = {alpha:g}, Bonferroni")):
        p = share_at_z(across, z_threshold(alpha, number), p0)
        lines += axes.plot(across[p <= 1], p[p <= 1], color=INK, ls=dash, lw=1.2, label=name)
    return lines


@styled()
def z_by_rank(tops: pd.DataFrame, *, title: str = "") -> Figure:
    """The highest z of each label by rank, one panel a label: all pairs, a random twin, and what a filter keeps.

    ``tops``: label, rank, z, pairs ("before", "random twin" or "after") and line, the z of significance (dotted), as
    `report.filtered.strongest` makes it.
    """
    labels, names = tops["label"].unique(), {"before": "all pairs", "random twin": "random twin", "after": "kept"}
    figure, panels = plt.subplots(1, len(labels), figsize=(WIDTH, 3.1), sharey=True, squeeze=False)
    for axes, label in zip(panels[0], labels, strict=True):
        colours = {**palette(["random twin"]), "before": INK, "after": palette(labels)[label]}
        for name, told in names.items():
            part = tops[(tops["label"] == label) & (tops["pairs"] == name)]
            look = {"color": colours[name], "lw": 2.2 if name == "after" else 1.2}
            axes.plot(part["rank"], part["z"], "--" if name == "random twin" else "-", label=told, **look)
        axes.axhline(tops["line"].max(), ls=":", color=INK, lw=0.9)
        axes.set(title=str(label), xlabel="rank", ylim=(0, None))
    panels[0, 0].set_ylabel("z")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold") if title else None
    return figure


def similarity_densities(table: pd.DataFrame) -> Figure:
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
            axes.set(title=corpus, xlabel="cosine similarity", ylabel="density")
        handles = [plt.Line2D([], [], color=colour, label=label) for label, colour in colours.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


@styled()
def correlation_plot(
    x: np.ndarray,
    y: np.ndarray,
    *,
    xlabel: str,
    ylabel: str,
    bins: int = 10,
    note: str = "",
    title: str = "",
) -> Figure:
    """Scatter of two scores with the mean of y in ``bins`` groups of equal size along x (two standard errors as bars).

    x, y (N,). ``note`` is written in the corner, for example the correlation with its interval.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"x {x.shape} and y {y.shape} must be (N,) both")
    figure, axes = plt.subplots(figsize=(WIDTH, 4.0))
    axes.scatter(x, y, s=max(4, min(18, 2e4 / max(1, len(x)))), color=SERIES[4], alpha=0.5, lw=0, rasterized=True)
    groups = [part for part in np.array_split(np.argsort(x, kind="stable"), bins) if len(part) > 1]
    means = np.array([[x[g].mean(), y[g].mean(), 2 * y[g].std(ddof=1) / np.sqrt(len(g))] for g in groups])
    if len(means):
        axes.errorbar(
            means[:, 0], means[:, 1], yerr=means[:, 2], fmt="o-", color=SERIES[0], ms=6, capsize=3,
            label=f"mean of each {100 / bins:.0f} %",
        )  # fmt: skip
        axes.legend(loc="upper right")
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axes.margins(y=0.14)
    if note:
        axes.text(0.02, 0.98, note, transform=axes.transAxes, va="top")
    return figure
