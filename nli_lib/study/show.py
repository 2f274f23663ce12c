"""Shows tables, whose cells, headers and index are text whatever stands in the corpus, and plotly figures.

Tables are recorded with short names and shown with those of the prose: `above_half` as "above half", the corpus `mnli`
as MultiNLI, and true and false as yes and no. A number that is rounded to zero has no sign.
"""

import hashlib
import json
from collections.abc import Callable, Mapping

import pandas as pd
from IPython.display import HTML, display
from pandas.io.formats.style import Styler

from nli_lib.report.names import CORPORA, name_of, unsigned_zero

NAMED = {"corpus", "condition", "encoder", "given", "pool", "score", "set", "slice", "source", "subset", "title"}
HEADERS = CORPORA | {"title": "set", "std": "standard deviation"}  # of an evaluation, "title" is that of its test set
TEXTS = ("premise", "hypothesis")  # wide columns
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
    for column in NAMED.intersection(table):
        table[column] = table[column].map(name_of)
    text = [
        {"selector": f".col{place}", "props": f"text-align: left; min-width: {'11rem' if column in TEXTS else 'auto'}"}
        for place, (column, kind) in enumerate(zip(table, table.dtypes, strict=True))
        if not pd.api.types.is_numeric_dtype(kind)
    ]
    # a name from the content: the same table makes the same page, and rules meet their own table only
    name = hashlib.sha256(table.to_csv().encode()).hexdigest()[:8]
    style = Styler(table, uuid=name, cell_ids=False).hide(axis="index").set_table_styles(text)
    floats = dict.fromkeys(table.select_dtypes("float"), f"{{:,.{digits}f}}")
    formats = floats | dict(formats or {})
    written = {column: _written(how) for column, how in formats.items()}
    style.format(written, na_rep="", precision=digits, thousands=",", escape="html")
    style.format_index(_header, escape="html", axis=1)
    display(HTML(style.to_html()))


def _shown(value: object) -> object:
    """A cell: the Styler escapes strings alone, so that whatever is no number becomes one."""
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    return value if pd.api.types.is_scalar(value) else str(value)


def _written(how: str) -> Callable[[object], str]:
    return lambda value: unsigned_zero(how.format(value))


def _header(name: object) -> object:
    if isinstance(name, str):
        return HEADERS.get(name, name.replace("_", " "))
    return f"{name:g}" if isinstance(name, float) else name


def show_interactive(figure: object) -> None:
    """Display a plotly figure, which answers the pointer.

    Only its data go into the notebook: JupyterLab draws them with plotly's extension, which comes with plotly, and the
    book with the one copy of plotly's script that all its pages share. `figure.show()` would store 4 MB of script.
    """
    display({PLOTLY: json.loads(figure.to_json()) | {"config": CONFIG}, "text/plain": "interactive figure"}, raw=True)
