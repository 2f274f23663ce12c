"""The list of suspect labels as a widget of JupyterLab: the page of `worklist`, its decisions kept in a file.

    suspects_widget("data/exports/small-mine-1a2b/fast")        # the folder that `nli-study suspects` names

The queue, the keys and the csv are those of the page. Every decision is written to decisions.csv in that folder, which
the page reads, and `nli-study suspects --decided` too; a kernel that is started again goes on from it.
"""

from pathlib import Path

import anywidget
import pandas as pd
import traitlets

from nli_lib.csv_files import read_csv, write_csv
from nli_lib.errors import UserError
from nli_lib.report.worklist import GIVEN, SHOWN, read_page

HERE = Path(__file__).parent
FILE = "decisions.csv"
COLUMNS = ("uid", *GIVEN, "gold", "predicted", "premise", "hypothesis")  # as worklist.js exports them


class WorklistError(UserError, ValueError):
    """A list cannot be shown; the message names the file and what to do."""


class SuspectsWidget(anywidget.AnyWidget):
    """A list to work through. `made` holds the decisions, [[uid, {decision, ...}], ...]; `file` is where they lie."""

    _esm = HERE / "worklist.js"
    _css = HERE / "worklist.css"
    list = traitlets.Dict(help="see `worklist.worklist`").tag(sync=True)
    made = traitlets.List(help="the decisions, in the order in which they were made").tag(sync=True)
    fault = traitlets.Unicode(help="why the last decision is not on disk, in words").tag(sync=True)

    def __init__(self, shown: dict, file: Path, **options: object):
        self.file = Path(file)
        made = _read(self.file, shown) if self.file.is_file() else shown["made"]
        super().__init__(list=shown, made=made, **options)
        self.observe(lambda _change: self._write(), "made")

    def _write(self) -> None:
        rows = pd.DataFrame(self.list["rows"], columns=list(SHOWN)).set_index("uid")
        given = [{"uid": uid, **each} for uid, each in self.made if each.get("decision") or each.get("note")]
        table = pd.DataFrame(given, columns=["uid", *GIVEN])
        try:
            write_csv(self.file, table.join(rows, on="uid").reindex(columns=list(COLUMNS)))
        except (UserError, OSError) as error:
            self.fault = f"Not written: {error}"
        else:
            self.fault = ""


def suspects_widget(folder: str | Path) -> SuspectsWidget:
    """The widget of the list in a folder; it begins with the decisions in decisions.csv, or with those of the page."""
    folder = Path(folder)
    page = folder / "suspects.html"
    if not page.is_file():
        raise WorklistError(f"{folder} holds no suspects.html: give the folder that `nli-study suspects` wrote to.")
    return SuspectsWidget(read_page(page), folder / FILE)


def _read(file: Path, shown: dict) -> list:
    """The decisions of a file on the suspects of a list; the words were checked by who wrote them."""
    table = read_csv(file)
    if absent := [name for name in ("uid", "decision") if name not in table]:
        raise WorklistError(f"{file} has no column {absent[0]!r}: move it away, or put an exported csv in its place.")
    table = table.reindex(columns=["uid", *GIVEN], fill_value="")
    known = table[table["uid"].isin([row["uid"] for row in shown["rows"]])].drop_duplicates("uid", keep="last")
    return [[row.pop("uid"), row] for row in known.to_dict("records")]
