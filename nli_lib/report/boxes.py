"""Box plots by level of difficulty, as the difficulty paper draws them: quartiles and whiskers, no single points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from nli_lib.report.style import COLOURS, INK, SERIES, WIDTH, headline, styled

MEAN = {"marker": "D", "markerfacecolor": "white", "markeredgecolor": INK, "markersize": 4}


@styled()
def boxes(
    table: pd.DataFrame,
    columns: Sequence[str],
    *,
    group: str,
    hue: str | None = None,
    order: Sequence[str],
    notes: Mapping[tuple[str, str], str] | None = None,
    across: int = 2,
    height: float = 2.5,
    title: str = "",
) -> Figure:
    """One panel for each of ``columns``: its boxes over the values of ``group`` in ``order``, split by ``hue``.

    The box spans the quartiles, the whiskers reach the last value within 1.5 of its length; points beyond are not
    drawn, the mean is a diamond. A column of zeros and ones is drawn as bars of its share instead. ``notes`` maps
    (column, value of group) to lines written below that group, such as stars of significance. A ``hue`` of label names
    takes the labels' colours.
    """
    down = -(-len(columns) // across)
    figure, panels = plt.subplots(down, across, figsize=(WIDTH, height * down), squeeze=False)
    values = list(table[hue].unique()) if hue else []
    palette = {value: COLOURS.get(value, SERIES[i % len(SERIES)]) for i, value in enumerate(values)}
    for axes, column in zip(panels.flat, columns, strict=False):
        look = {"hue": hue, "order": order, "palette": palette or None, "color": None if hue else SERIES[4]}
        look |= {"saturation": 1, "legend": "auto" if hue and axes is panels.flat[0] else False, "ax": axes}
        if table[column].isin((0, 1)).all():
            sns.barplot(table, x=group, y=column, errorbar=None, linewidth=0.9, edgecolor=INK, **look)
        else:
            sns.boxplot(
                table, x=group, y=column, showfliers=False, linewidth=0.9, linecolor=INK, gap=0.12 if hue else 0,
                showmeans=True, meanprops=MEAN, **look,
            )  # fmt: skip
        words = [f"{value}\n{(notes or {}).get((column, value), '')}".rstrip() for value in order]
        axes.set(xlabel="", ylabel="", xticks=range(len(order)), xticklabels=words)
        axes.set_title(column)
        axes.grid(axis="y")
    for axes in panels.flat[len(columns) :]:
        axes.set_axis_off()
    if hue:
        handles, names = panels.flat[0].get_legend_handles_labels()
        panels.flat[0].get_legend().remove()
        figure.legend(handles, names, loc="outside lower center", ncols=max(1, len(names)))
    headline(figure, title)
    return figure
