"""Figures that answer the pointer: a point says which example or feature it is. Tables in, plotly figures out.

Show them with `nli_lib.study.show_interactive`. Texts come from a corpus, so they are escaped: plotly reads tags.
"""

from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd
from plotly import express
from plotly.graph_objects import Figure

from nli_lib.report.plot import significance
from nli_lib.report.style import INK, palette
from nli_lib.stats import with_wilson

MOST = 5_000  # points that a browser moves without delay
WRAP = 70  # letters of a line of hover text
WORDS = {"position": "pair", "predicted": "the model says", "votes": "seeds that prune it", "wrong": "wrong by people"}
SAMPLE = ("label", "premise", "hypothesis")


def interactive_map(
    table: pd.DataFrame, x: str, y: str, *, color: str, hover: Sequence[str], title: str = "", **options: object
) -> Figure:
    """One point for each row of ``table`` at (``x``, ``y``), coloured by ``color``; pointing at it shows ``hover``.

    hover    columns to show, each with its name; what is missing (NaN, None) is left out of a point's text
    options  go to `plotly.express.scatter`: log_x, range_y, labels, ...

    Words as colours are those of `style.palette`, numbers are shaded as in the still data map. Of more than `MOST` rows
    a random part is drawn, and the title says so.
    """
    drawn = table.sample(min(MOST, len(table)), random_state=0).sort_index()
    if len(drawn) < len(table):
        title = f"{title} ({len(drawn):,} of {len(table):,} points)".strip()
    lines = [_line(drawn[column], WORDS.get(column, column)) for column in hover if column in drawn]
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


def competency(table: pd.DataFrame, *, tests: int, p0: float, title: str = "") -> Figure:
    """The competency plot: how often a feature occurs across, the share of a label among these pairs up.

    table: feature, label (a name), n, p and perhaps "such as", a text. ``tests`` and ``p0`` as `plot.competency`. Of
    more than `MOST` features those of highest z are drawn. The lines are those of `plot.significance`.
    """
    points = table.assign(z=(table["p"] - p0) / np.sqrt(p0 * (1 - p0) / table["n"]), correct=table["p"] * table["n"])
    points = with_wilson(points.nlargest(MOST, "z").reset_index(drop=True), value="share")
    points["share"] = [f"{p:.0%} [{a:.0%}, {b:.0%}]" for p, a, b in points[["p", "low", "high"]].to_numpy()]
    hover = ("feature", "label", "share", "n", "z", "such as")
    names = {"n": "n(feature): pairs that contain it", "p": "p(label | feature)"}
    look = {"log_x": True, "range_y": (-0.03, 1.05), "labels": names}
    figure = interactive_map(points, "n", "p", color="label", hover=hover, title=title, **look)
    lines = significance(np.geomspace(max(1, points["n"].min()), points["n"].max(), 200), p0, tests)
    for (name, line), dash in zip(lines.items(), ("dash", "solid"), strict=True):
        look = {"color": INK, "dash": dash, "width": 1.2}
        figure.add_scatter(x=line.index, y=line, name=name, mode="lines", line=look, hoverinfo="skip")
    return figure


def _line(column: pd.Series, name: str) -> pd.Series:
    """ "<br>name: value" for each row, "" where there is none; texts wrapped and escaped."""
    if pd.api.types.is_float_dtype(column):
        text = column.map("{:.3g}".format)
    else:
        text = column.astype("string").str.wrap(WRAP).fillna("").map(escape).str.replace("\n", "<br>")
    return (f"<br><b>{escape(name)}</b>: " + text.astype("string")).where(column.notna(), "")
