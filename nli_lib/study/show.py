"""Shows tables, whose cells, headers and index are text whatever stands in the corpus, and plotly figures.

Tables are recorded with short names and shown with those of the prose: `above_half` as "above half", the corpus `mnli`
as MultiNLI, and true and false as yes and no.
"""

import hashlib
import json
from collections.abc import Mapping

import pandas as pd
from IPython.display import HTML, display
from pandas.io.formats.style import Styler

from nli_lib.corpora.load.catalogue import SOURCES

TITLES = {name: source.title for name, source in SOURCES.items()}
PLOTLY = "application/vnd.plotly.v1+json"
CONFIG = {"responsive": True, "displaylogo": False}


def show(
    table: pd.DataFrame, formats: Mapping[str, str] | None = None, *, digits: int = 3, index: bool = False
) -> None:
    """Show a table; one without rows shows "(no rows)".

    formats  column -> how its values are written, e.g. "{:.1%}". Without one, floats have `digits` decimals, whole
             numbers separate thousands, and a missing value is empty
    index    whether the index is shown, as first columns
    """
    if unknown := set(formats or ()) - set(table.columns) - set(table.index.names):
        raise KeyError(f"show: the table has no column {sorted(unknown)}; it has {list(table.columns)}")
    if not len(table):
        display(HTML("<p>(no rows)</p>"))
        return
    if index:
        table = table.rename_axis([name or "" for name in table.index.names]).reset_index()
    else:
        table = table.reset_index(drop=True)
    table.columns = table.columns.set_names([None] * table.columns.nlevels)
    table = table.map(_shown)
    if "corpus" in table:
        table["corpus"] = table["corpus"].replace(TITLES)
    text = [
        {"selector": f".col{place}", "props": "text-align: left"}
        for place, column in enumerate(table)
        if not pd.api.types.is_numeric_dtype(table[column])
    ]
    # a name from the content: the same table makes the same page, and rules meet their own table only
    name = hashlib.sha256(table.to_csv().encode()).hexdigest()[:8]
    style = Styler(table, uuid=name, cell_ids=False).hide(axis="index").set_table_styles(text)
    style.format(formats, na_rep="", precision=digits, thousands=",", escape="html")
    style.format_index(_header, escape="html", axis=1)
    display(HTML(style.to_html()))


def _shown(value: object) -> object:
    """A cell: the Styler escapes strings alone, so that whatever is no number becomes one."""
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    return value if pd.api.types.is_scalar(value) else str(value)


def _header(name: object) -> object:
    if isinstance(name, str):
        return TITLES.get(name, name.replace("_", " "))
    return f"{name:g}" if isinstance(name, float) else name


def show_interactive(figure: object) -> None:
    """Display a plotly figure, which answers the pointer.

    Only its data go into the notebook: JupyterLab draws them with plotly's extension, which comes with plotly, and the
    book with the one copy of plotly's script that all its pages share. `figure.show()` would store 4 MB of script.
    """
    display({PLOTLY: json.loads(figure.to_json()) | {"config": CONFIG}, "text/plain": "interactive figure"}, raw=True)
