"""Figures that answer the pointer, for JupyterLab: what the book shows still, with what lies behind every point.

Needs plotly (the extra `interactive`, which `make lab` installs).
"""

from __future__ import annotations

from html import escape
from textwrap import shorten
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse
from statsmodels.stats.proportion import proportion_confint

from nli_lib.measure.artifacts import share_at_z, z_threshold
from nli_lib.report.style import COLOURS, INK

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from nli_lib.corpora.corpus import Corpus

INSTALL = "pip install -c constraints.txt plotly"
MOST = 5_000  # points that a browser moves without delay, with three pairs behind each


class ExploreError(RuntimeError):
    """plotly is not installed; the message says how to."""


def examples(matrix: sparse.sparray, labels: ArrayLike, n_classes: int = 3, *, count: int = 3) -> np.ndarray:
    """The first pairs in which each feature fires, by label: positions (V, C, count), -1 where there are fewer.

    Shapes: matrix (N, V) of features as `measure.artifacts.features` makes it, labels (N,) in 0..n_classes-1.
    """
    labels = np.asarray(labels)
    found = np.full((matrix.shape[1], n_classes, count), -1, dtype=np.int64)
    for label in range(n_classes):
        rows = np.flatnonzero(labels == label)
        columns = sparse.csc_array(matrix[rows])
        columns.sort_indices()
        place = columns.indptr[:-1, None] + np.arange(count)
        there = place < columns.indptr[1:, None]
        found[:, label][there] = rows[columns.indices[place[there]]]
    return found


def competency(
    table: pd.DataFrame, corpus: Corpus, shown: ArrayLike, *, alpha: float = 0.01, tests: int = 1, most: int = MOST
) -> Figure:
    """`report.plot.competency` with a tooltip at each point: the feature, its share with Wilson's interval, its count,
    its z, and pairs that hold it.

    table   feature, label (a name), n, p, as the still figure takes it, one row for each point
    shown   (rows of the table, count) positions in the corpus of the pairs to quote, -1 for none: a row of `examples`
    alpha   one-sided level of the dashed line; the solid one is at alpha divided by `tests`

    Of more than `most` points those of highest z are drawn, and the title says so.
    Raises `ExploreError` with the command that installs plotly where it is missing.
    """
    try:
        from plotly import graph_objects
    except ModuleNotFoundError:
        raise ExploreError(f"plotly is not installed: {INSTALL}") from None
    p0 = 1 / len(corpus.classes)
    points = table.assign(z=(table["p"] - p0) / np.sqrt(p0 * (1 - p0) / table["n"]), place=np.arange(len(table)))
    points = points.nlargest(most, "z")
    low, high = proportion_confint((points["p"] * points["n"]).round(), points["n"], method="wilson")
    points = points.assign(low=low, high=high)
    figure = graph_objects.Figure()
    for label in corpus.classes:
        part = points[points["label"] == label]
        figure.add_scattergl(
            x=part["n"],
            y=part["p"],
            name=label,
            mode="markers",
            marker={"size": 6, "opacity": 0.65, "color": COLOURS[label]},
            text=[_told(row, corpus, np.asarray(shown)[row.place]) for row in part.itertuples()],
            hovertemplate="%{text}<extra></extra>",
        )
    across = np.geomspace(max(1, points["n"].min()), points["n"].max(), 200) if len(points) else np.array([])
    lines = ((1, "dash", f"α = {alpha:g}"), (tests, "solid", f"α = {alpha:g}, Bonferroni"))
    for number, dash, name in lines:
        p = share_at_z(across, z_threshold(alpha, number), len(corpus.classes))
        line = {"color": INK, "dash": dash, "width": 1.2}
        figure.add_scatter(x=across[p <= 1], y=p[p <= 1], name=name, mode="lines", line=line, hoverinfo="skip")
    drawn = "" if len(points) == len(table) else f" ({len(points):,} of {len(table):,} points, those of highest z)"
    tooltip = {"align": "left", "bgcolor": "white", "font": {"color": INK}}
    figure.update_layout(template="plotly_white", height=560, hoverlabel=tooltip, title=f"Point at a feature{drawn}")
    figure.update_xaxes(type="log", dtick=1, title="n(feature): pairs that contain it")
    figure.update_yaxes(title="p(label | feature)", range=[-0.03, 1.05])
    return figure


def _told(row: tuple, corpus: Corpus, places: np.ndarray) -> str:
    """What stands at a point. Plotly reads tags in it, so whatever comes from the corpus is escaped."""
    share = f"{row.p:.0%} [{row.low:.0%}, {row.high:.0%}]"
    head = f"<b>{escape(row.feature)}</b><br>{row.label} in {share} of {row.n:,} pairs, z = {row.z:.1f}"
    quoted = [
        f"{escape(shorten(corpus.premise[at], 90))}<br>&nbsp;&nbsp;→ {escape(shorten(corpus.hypothesis[at], 90))}"
        for at in places[places >= 0]
    ]
    return "<br><br>".join([head, *quoted])
