"""The figures of the book: arrays or tidy tables in, a matplotlib figure in the house style out.

The style stands in house.mplstyle, what colours mean in colours.yaml. Every figure is drawn inside its own
``rc_context``, so that there is no global state::

    interval_plot(table, title="...")                  estimates with their intervals, by row and by condition
    data_map(variability, confidence, correctness, epochs=4)
    with drawing(1, 2) as (figure, panels): ...        the style, for a drawing of one's own

Figures of `interactive_map` answer the pointer: a point says which example or feature it is. They are plotly figures,
shown with `nli_lib.study.show_interactive`; their texts come from a corpus and are escaped, since plotly reads tags.
"""

import itertools
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import yaml
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from plotly import express
from plotly.graph_objects import Figure as PlotlyFigure

from nli_lib.measure.features import share_at_z, z_threshold
from nli_lib.names import HOVER_WORDS, name_of
from nli_lib.stats import Estimate

STYLE = mpl.rc_params_from_file(Path(__file__).with_name("house.mplstyle"), use_default_template=False)
INK, SMALL, WIDTH = STYLE["text.color"], STYLE["xtick.labelsize"], STYLE["figure.figsize"][0]
SERIES = STYLE["axes.prop_cycle"].by_key()["color"]  # for what has no colour of its own
HALO = [patheffects.withStroke(linewidth=2.5, foreground="white")]  # keeps text legible over points
GROUPS = yaml.safe_load(Path(__file__).with_name("colours.yaml").read_text(encoding="utf-8"))
COLOURS = {name: colour for group in GROUPS.values() for name, colour in group.items()}
TWIN, PALE = "random twin", "#d9d9d9"
GREY = COLOURS[TWIN]


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the house style; ``@styled()`` does so for a function. The figures made meanwhile are laid out while the
    style holds and taken out of pyplot, so that none is shown twice."""
    others = plt.get_fignums()
    with plt.rc_context(STYLE):
        try:
            yield
            for number in set(plt.get_fignums()).difference(others):
                plt.figure(number).draw_without_rendering()
        finally:  # an error leaves no half-made figure that the next cell would show
            for number in set(plt.get_fignums()).difference(others):
                plt.close(number)


def headline(figure: Figure, title: str) -> None:
    """A title over all panels, in lines that do not widen the figure; none where it is ""."""
    if title:
        figure.suptitle(textwrap.fill(title, 66), x=0.01, ha="left")


@contextmanager
def drawing(
    rows: int = 1, columns: int = 1, *, height: float = 4.2, **options: object
) -> Iterator[tuple[Figure, Axes]]:
    """A figure in the house style for a drawing of one's own, out of pyplot at the end: show it by its name.

    with drawing(1, 2, height=3, sharey=True) as (figure, panels): ...
    """
    with styled():
        yield plt.subplots(rows, columns, figsize=(WIDTH, height), **options)


def palette(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name: its own (`COLOURS`, upper and lower case alike), grey where it is a random twin, and the
    colours of `SERIES` in turn for the others."""
    known = {name: GREY if TWIN in name else COLOURS.get(name.lower()) for name in map(str, names)}
    others = [name for name, colour in known.items() if colour is None]
    return known | {name: SERIES[place % len(SERIES)] for place, name in enumerate(others)}


def label_points(axes: Axes, x: Sequence[float], y: Sequence[float], names: Sequence[str]) -> None:
    """Write names beside points, first come first served; a name without room is left out.

    The axes must have their limits and size already. (adjustText would place every name, in a crowd far from its
    point.)
    """
    renderer = axes.figure.canvas.get_renderer()
    frame = axes.get_window_extent(renderer)
    taken = [text.get_window_extent(renderer) for text in axes.texts]
    look = {"textcoords": "offset points", "va": "center", "fontsize": SMALL, "path_effects": HALO}
    heights = (10, 10, -10, -10, 20, 20, -20, -20)
    offsets = [(7, 0), (-7, 0), *zip((5, -5) * 4, heights, strict=True)]
    for px, py, name in zip(x, y, names, strict=True):
        for offset in offsets:
            side = "left" if offset[0] > 0 else "right"
            text = axes.annotate(name, (px, py), xytext=offset, ha=side, **look)
            box = text.get_window_extent(renderer).expanded(1.03, 1.1)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()


# ---------------------------------------------------------------- plot


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

    Notes
    -----
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
    `measure.features.top_in_sets` makes it.
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


# ---------------------------------------------------------------- intervals


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

    A table without values gives a figure that says so.

    Names are those of `names.name_of`, colours those of `palette`: a label, a level, a view or a corpus has its
    own, a random twin is grey.

    Parameters
    ----------
    table
        columns ``value``, ``y``, ``hue`` (None: one condition) and, where there are intervals, low and high; rows
        without a value are left out, ends that are NaN draw no whisker
    reference
        a value for each ``y``, drawn as a tick (the accuracy of the majority label), or one for all, a line
    paper
        the paper's value for a ``y``, or for a (y, hue): an open diamond
    within
        the values that are possible, such as (0, 1): a whisker ends there, though a t interval need not
    """
    shown = table.assign(low=table.get("low", np.nan), high=table.get("high", np.nan)).dropna(subset=[value])
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


# ---------------------------------------------------------------- boxes


MEAN = {"marker": "D", "markerfacecolor": "white", "markeredgecolor": INK, "markersize": 4}


def boxes(
    table: pd.DataFrame,
    columns: Sequence[str],
    *,
    group: str,
    order: Sequence[str],
    hue: str | None = None,
    notes: Mapping[tuple[str, str], str] | None = None,
    height: float = 2.5,
    title: str = "",
) -> Figure:
    """One panel for each of ``columns``: its boxes over the values of ``group`` in ``order``, split by ``hue``.

    The box spans the quartiles, the whiskers reach the last value within 1.5 of its length; points beyond are not
    drawn, the mean is a diamond. A column of zeros and ones is drawn as bars of its share instead. ``notes`` maps
    (column, value of group) to lines written below that group, such as stars of significance.
    """
    down, colours = -(-len(columns) // 2), palette(table[hue].unique()) if hue else {}
    look = {"x": group, "order": order, "saturation": 1, "linewidth": 0.9, "legend": False}
    look |= {"hue": hue, "palette": colours} if hue else {"color": SERIES[4]}
    box = {"showfliers": False, "linecolor": INK, "gap": 0.12 if hue else 0, "showmeans": True, "meanprops": MEAN}
    with drawing(down, 2, height=height * down, squeeze=False) as (figure, panels):
        for axes, column in zip(panels.flat, columns, strict=False):
            if table[column].isin((0, 1)).all():
                sns.barplot(table, y=column, errorbar=None, edgecolor=INK, ax=axes, **look)
            else:
                sns.boxplot(table, y=column, ax=axes, **look, **box)
            words = [f"{value}\n{(notes or {}).get((column, value), '')}".rstrip() for value in order]
            axes.set(title=column, xlabel="", ylabel="", xticks=range(len(order)), xticklabels=words)
            axes.grid(axis="y")
        for axes in panels.flat[len(columns) :]:
            axes.set_axis_off()
        if hue:
            handles = [Patch(color=colour, label=name) for name, colour in colours.items()]
            figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
        headline(figure, title)
    return figure


# ---------------------------------------------------------------- interactive


MOST = 5_000  # points that a browser moves without delay
WRAP = 70  # letters of a line of hover text
SAMPLE = ("label", "premise", "hypothesis")


def interactive_map(
    table: pd.DataFrame, x: str, y: str, *, color: str, hover: Sequence[str], title: str = "", **options: object
) -> PlotlyFigure:
    """One point for each row of ``table`` at (``x``, ``y``), coloured by ``color``; pointing at it shows ``hover``.

    Words as colours are those of `palette`, numbers are shaded as in the still data map. Of more than `MOST` rows
    a random part is drawn, and the title says so.

    Parameters
    ----------
    hover
        columns to show, each with its name; what is missing (NaN, None) is left out of a point's text
    options
        go to `plotly.express.scatter`: log_x, range_y, labels, ...
    """
    drawn = table.sample(min(MOST, len(table)), random_state=0).sort_index()
    if len(drawn) < len(table):
        title = f"{title} ({len(drawn):,} of {len(table):,} points)".strip()
    lines = [_line(drawn[column], HOVER_WORDS.get(column, column)) for column in hover if column in drawn]
    text = sum(lines[1:], lines[0]).str.removeprefix("<br>") if lines else ""
    shown = express.scatter(
        drawn.assign(hover=text), x=x, y=y, color=color, custom_data=["hover"], render_mode="webgl", title=title,
        color_continuous_scale="cividis", color_discrete_map=palette(drawn[color].unique()), template="plotly_white",
        height=520, **options,
    )  # fmt: skip
    shown.update_traces(marker={"size": 6, "opacity": 0.7}, hovertemplate="%{customdata[0]}<extra></extra>")
    return shown.update_layout(
        hoverlabel={"align": "left", "bgcolor": "white", "font": {"color": INK}},
        coloraxis_colorbar={"orientation": "h", "y": 1, "yanchor": "bottom", "thickness": 10, "title": {"side": "top"}},
        legend={"orientation": "h", "y": -0.2, "title": ""},
        margin={"l": 50, "r": 10, "t": 80 if title else 60, "b": 40},
    )


def _line(column: pd.Series, name: str) -> pd.Series:
    """ "<br>name: value" for each row, "" where there is none; texts wrapped and escaped."""
    if pd.api.types.is_float_dtype(column):
        text = column.map("{:.3g}".format)
    else:
        text = column.astype("string").str.wrap(WRAP).fillna("").map(escape).str.replace("\n", "<br>")
    return (f"<br><b>{escape(name)}</b>: " + text.astype("string")).where(column.notna(), "")
