"""Box plots by level of difficulty, as the difficulty paper draws them: quartiles and whiskers, no single points."""

from collections.abc import Mapping, Sequence

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from nli_lib.report.style import INK, SERIES, drawing, headline, palette

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
