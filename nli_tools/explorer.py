"""Widgets for JupyterLab: a data map to explore a corpus, and the list of suspect labels to review.

On the map, point at a pair to read it, and draw around pairs to list and tag them::

    explorer = explore(run, corpus)
    explorer                                                # the map, the pair at the pointer, the pairs in the lasso
    explorer.selection("wrong label")                       # a Selection to train without the pairs with this tag
    explorer.save("tags.csv")

jupyter-scatter draws the points, and a panel shows texts, table and tags. The list is the page of `nli-study suspects`
with its queue, keys and csv, in the folder that the command prints::

    suspects_widget("data/exports/small-mine-1a2b/fast")

Every decision is written to decisions.csv in that folder, for the page and for `nli-study suspects --decided`; a
restarted kernel continues from it. The scripts of both create only text nodes, so nothing in a pair is executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import anywidget
import jscatter
import numpy as np
import pandas as pd
import traitlets
from IPython.display import display
from ipywidgets import VBox
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.measure import dynamics
from nli_lib.select.selection import Selection
from nli_lib.tables import read_csv, write_csv
from nli_tools.exchange import Dynamics, dynamics_of
from nli_tools.own_corpus import ToolError
from nli_tools.suspects import GIVEN, LIST_SHOWN, read_decisions, read_page

HERE = Path(__file__).parent
SHOWN = 100  # pairs of the lasso listed on the page; `frame()` has all of them


class Panel(anywidget.AnyWidget):
    """The panel below the map. `state` is shown by the page, which answers with messages."""

    _esm = HERE / "explorer.js"
    _css = HERE / "explorer.css"
    state = traitlets.Dict(help="point, rows, selected, tags, columns, fault").tag(sync=True)

    def __init__(self, explorer: Explorer, **options: Any):
        super().__init__(**options)
        self.explorer, self._point = explorer, None
        explorer._listeners.append(self.show)
        self.on_msg(lambda _widget, content, _buffers: self.take(content))
        self.show()

    def take(self, content: dict[str, object]) -> None:
        """Handle one message of the page: act ("tag", "point") and its data."""
        try:
            match content:
                case {"act": "tag", "name": str(name)}:
                    self.explorer.tag(name)
                case {"act": "point", "position": int(position)}:
                    self.look(position)
                case _:
                    self.show("The page sent an unknown message. Run the cell again.")
        except UserError as error:
            self.show(str(error))

    def look(self, position: int | None) -> None:
        """Show the pair at a position; the last one stays when the pointer leaves."""
        if position is not None and 0 <= position < len(self.explorer.table):
            self._point = int(position)
            self.show()

    def show(self, fault: str = "") -> None:
        explorer = self.explorer
        columns = ["tag", "label", "premise", "hypothesis", explorer.x, explorer.y, explorer.color]
        rows = [explorer.point(at) for at in explorer.selected[:SHOWN].tolist()]
        point = None if self._point is None else explorer.point(self._point)
        counts = {"selected": len(explorer.selected), "pairs": len(explorer.table), "tags": explorer.counts}
        self.state = {"point": point, "rows": rows, "columns": list(dict.fromkeys(columns)), **counts, "fault": fault}


def page(explorer: Explorer) -> VBox:
    """The map above the panel, which are its `.children`."""
    by = explorer.color
    drawn = explorer.table[list(dict.fromkeys((explorer.x, explorer.y, by)))].reset_index(drop=True)
    numeric = pd.api.types.is_numeric_dtype(drawn[by])
    if not numeric:
        drawn[by] = drawn[by].astype("category")
    elif drawn[by].nunique() <= 12:  # shares of a few epochs: one colour for each
        drawn[by] = drawn[by].round(3)
    scatter = jscatter.Scatter(data=drawn, x=explorer.x, y=explorer.y, color_by=by, height=480)
    if numeric:
        scatter.color(by=by, map=["#7b3294", "#c2a5cf", "#d9d9d9", "#a6dba0", "#008837"])  # hard to easy
    scatter.axes(labels=[explorer.x, explorer.y])
    scatter.legend(True)
    scatter.tooltip(False)  # its preview would insert texts as markup
    plot, panel = scatter.widget, Panel(explorer)
    plot.mouse_mode = "lasso"
    plot.observe(lambda change: explorer.select([] if change["new"] is None else change["new"]), "selection")
    plot.observe(lambda change: panel.look(change["new"]), "hovering")
    return VBox([plot, panel])


# ---------------------------------------------------------------- explorer


def explore(
    run_or_arrays: object,
    corpus: Corpus,
    *,
    scores: Mapping[str, ArrayLike] | None = None,
    x: str = "variability",
    y: str = "confidence",
    color: str = "correctness",
) -> Explorer:
    """Make a data map of a corpus for pointing, tagging and selecting.

    Parameters
    ----------
    run_or_arrays
        a run of this library, `RecordLogits`, `Dynamics` (rows are found by uid), or logits (E, N, C) in the order of
        the corpus; None if `scores` has everything
    scores
        more columns, each (N,), to show or to draw as x, y or color
    x, y, color
        columns: the six of `measure.dynamics.scores`, those of `scores`, or "label"

    Raises
    ------
    ToolError
        If arrays do not fit the corpus, naming the column or the row.
    """
    columns: dict[str, np.ndarray] = {}
    names = np.array(corpus.classes, dtype=object)
    if run_or_arrays is not None:
        given = _beside(run_or_arrays, corpus)
        columns |= dynamics.scores(given.logits, given.labels)
        columns["predicted"] = names[given.logits[-1].argmax(axis=1)]
    columns |= {name: np.asarray(values) for name, values in (scores or {}).items()}
    for name, values in columns.items():
        if values.shape != (len(corpus),):
            raise ToolError(f"{name} has shape {values.shape} for {len(corpus):,} rows: give one value for each row")
    table = corpus.table[["uid", "premise", "hypothesis"]].assign(label=names[corpus.labels])
    if taken := sorted(columns.keys() & set(table)):
        raise ToolError(f"a score cannot be called {taken[0]}: the table already has a column of that name")
    table = table.assign(**columns)
    for name in (x, y, color):
        if name not in table:
            raise ToolError(f"there is no {name} to draw: {', '.join(columns) or 'no scores were given'}")
    return Explorer(table, x, y, color)


class Explorer:
    """The state of an exploration: the table, the lasso, the tags. Both the page and a script can change it.

    Attributes
    ----------
    table
        N rows: uid, premise, hypothesis, label (a name), then the scores
    selected
        (K,) positions inside the lasso, ascending
    tags
        (N,) the tag of each pair, "" for none
    """

    def __init__(self, table: pd.DataFrame, x: str, y: str, color: str):
        self.table, self.x, self.y, self.color = table, x, y, color
        self.selected = np.empty(0, np.int64)
        self.tags = np.full(len(table), "", dtype=object)
        self._listeners: list[Any] = []

    def select(self, positions: ArrayLike) -> None:
        """Put pairs into the lasso, by positions or by a boolean mask (N,)."""
        given = np.asarray(positions)
        given = np.flatnonzero(given) if given.dtype == bool else np.unique(given.astype(np.int64))
        if (wrong := given[(given < 0) | (given >= len(self.table))]).size:
            raise ToolError(f"position {wrong[0]} is outside 0..{len(self.table) - 1}")
        self.selected = given
        self._tell()

    def tag(self, name: str) -> int:
        """Tag every pair of the lasso, replacing its tag; return their number. "" removes tags."""
        name = " ".join(str(name).split())
        if len(name) > 60:
            raise ToolError(f"the tag has {len(name)} characters: use at most 60")
        self.tags[self.selected] = name
        self._tell()
        return len(self.selected)

    @property
    def counts(self) -> dict[str, int]:
        """Number of pairs with each tag, by name."""
        return pd.Series(self.tags[self.tags != ""]).value_counts().sort_index().to_dict()

    def frame(self, tag: str | None = None) -> pd.DataFrame:
        """The pairs of the lasso, or those with a tag, with position and tag."""
        at = self._chosen(tag)
        return self.table.iloc[at].assign(position=at, tag=self.tags[at])

    def selection(self, tag: str | None = None, *, keep: bool = False) -> Selection:
        """A `Selection` that drops the pairs with a tag, or those of the lasso; with `keep` it keeps only them."""
        inside = np.isin(np.arange(len(self.table)), self._chosen(tag))
        what = "selected by hand" if tag is None else f"tagged {tag}"
        return Selection.where(inside, f"not {what}", what) if keep else Selection.where(~inside, what)

    def save(self, path: str | Path) -> Path:
        """Write uid, tag, label and the texts of every tagged pair to a csv, safe to open in a spreadsheet."""
        at = np.flatnonzero(self.tags != "")
        table = self.table.iloc[at][["uid", "label", "premise", "hypothesis"]]
        table.insert(1, "tag", self.tags[at])
        return write_csv(Path(path), table)

    def load(self, path: str | Path) -> None:
        """Load the tags from a file of `save`; other pairs keep their tags."""
        known = read_csv(Path(path))
        if not {"uid", "tag"} <= set(known):
            raise ToolError(f"{path} has no columns uid and tag: give a file that `save` wrote")
        place = pd.Series(np.arange(len(self.table)), index=self.table["uid"].astype(str))
        if not (there := known["uid"].isin(place.index)).all():
            other = known.loc[~there, "uid"].iloc[0]
            raise ToolError(f"{path}: uid {other!r} is not in the corpus: give a file of this corpus")
        self.tags[place[known["uid"]]] = known["tag"]
        self._tell()

    def point(self, position: int) -> dict[str, object]:
        """The data of a pair: its uid, tag, texts and scores, numbers with three digits."""
        row = self.table.iloc[position]
        said = {name: f"{value:.3g}" if isinstance(value, float) else str(value) for name, value in row.items()}
        return {"position": int(position), "tag": self.tags[position], **said}

    @cached_property
    def widget(self) -> Any:
        """The map and the panel: see `page`."""
        return page(self)

    def _ipython_display_(self) -> None:
        display(self.widget)

    def _chosen(self, tag: str | None) -> np.ndarray:
        if tag is None:
            return self.selected
        if tag not in self.counts:
            raise ToolError(f"no pair is tagged {tag!r}; tags are {', '.join(self.counts) or 'not given yet'}")
        return np.flatnonzero(self.tags == tag)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()


def _beside(given: object, corpus: Corpus) -> Dynamics:
    """The recorded dynamics in the order of the corpus: by uid if the rows have names, by position otherwise."""
    if getattr(given, "uid", None) is not None:
        return dynamics_of(given).of(corpus)
    logits = np.asarray(getattr(given, "logits", given))
    if logits.ndim != 3 or logits.shape[1:] != (len(corpus), len(corpus.classes)):
        wanted = f"(epochs, {len(corpus)}, {len(corpus.classes)})"
        raise ToolError(f"logits have shape {logits.shape}: {wanted} is needed for {corpus.name}")
    labels = np.asarray(getattr(given, "labels", corpus.labels))
    if not np.array_equal(labels, corpus.labels):
        raise ToolError(f"the run was trained on other labels than those of {corpus.name}: give its corpus")
    return Dynamics(logits, corpus.labels, np.arange(len(corpus)), "")


# ---------------------------------------------------------------- worklist widget


class SuspectsWidget(anywidget.AnyWidget):
    """A list to review. `made` has the decisions, [[uid, {decision, ...}], ...]; `file` is their file."""

    _esm = HERE / "worklist.js"
    _css = HERE / "worklist.css"
    list = traitlets.Dict(help="see `suspects.worklist`").tag(sync=True)
    made = traitlets.List(help="the decisions, in the order in which they were made").tag(sync=True)
    fault = traitlets.Unicode(help="why the last decision is not on disk, in words").tag(sync=True)

    def __init__(self, shown: dict, made: list, file: Path):
        super().__init__(list=shown, made=made)
        self.file = file
        self.observe(lambda _change: self._write(), "made")

    def _write(self) -> None:
        rows = pd.DataFrame(self.list["rows"], columns=list(LIST_SHOWN)).set_index("uid")
        given = [{"uid": uid, **each} for uid, each in self.made if each.get("decision") or each.get("note")]
        table = pd.DataFrame(given, columns=["uid", *GIVEN]).join(rows, on="uid")
        columns = ["uid", *GIVEN, "gold", "predicted", "premise", "hypothesis"]  # as in the export of worklist.js
        try:
            write_csv(self.file, table[columns])
            self.fault = ""
        except (UserError, OSError) as error:
            self.fault = f"Not saved: {error}"


def suspects_widget(folder: str | Path) -> SuspectsWidget:
    """The widget of the list in a folder; it begins with the decisions in decisions.csv, or with those of the page."""
    page, file = Path(folder) / "suspects.html", Path(folder) / "decisions.csv"
    if not page.is_file():
        told = "give the folder that `nli-study suspects` wrote to"
        raise ToolError(f"{Path(folder)} has no suspects.html: {told}.")
    shown = read_page(page)
    if not file.is_file():
        return SuspectsWidget(shown, shown["made"], file)
    known = read_decisions(file)[list(GIVEN)]
    known = known[known.index.isin([row["uid"] for row in shown["rows"]])]
    return SuspectsWidget(shown, [list(each) for each in zip(known.index, known.to_dict("records"), strict=True)], file)
