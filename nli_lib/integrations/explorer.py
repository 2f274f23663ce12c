"""explore: a data map to work in, in JupyterLab. Point at a pair to read it, draw around pairs to list and tag them.

explorer = explore(run, corpus)
explorer                                   # the map, the pair under the pointer, the pairs inside the lasso
explorer.selection("wrong label")          # the pairs that were tagged so, as a Selection to train without
explorer.save("tags.csv")
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.csv_files import read_csv, write_csv
from nli_lib.integrations.dynamics import Dynamics, IntegrationError, dynamics_of
from nli_lib.measure import dynamics
from nli_lib.select.selection import Selection

SHOWN = 100  # pairs of the lasso that the page lists; all of them are in `frame()`
NO_TAG = ""


def explore(
    run_or_arrays: object,
    corpus: Corpus,
    *,
    scores: Mapping[str, ArrayLike] | None = None,
    x: str = "variability",
    y: str = "confidence",
    color: str = "correctness",
) -> "Explorer":
    """A data map of a corpus to point at, tag and select from.

    run_or_arrays  a run of this library, `RecordLogits`, `Dynamics` (rows are found by uid), or logits (E, N, C) in the
                   order of the corpus; None where `scores` has all that is drawn
    scores         more columns, each (N,): to show, or to draw as x, y or color
    x, y, color    columns: the six of `measure.dynamics.scores`, those of `scores`, or "label"

    Raises `IntegrationError` naming the column or the row for arrays that do not fit the corpus.
    """
    columns: dict[str, np.ndarray] = {}
    if run_or_arrays is not None:
        given = _beside(run_or_arrays, corpus)
        columns |= dynamics.scores(given.logits, given.labels)
        columns["predicted"] = np.array(corpus.classes, dtype=object)[given.logits[-1].argmax(axis=1)]
    columns |= {name: np.asarray(values) for name, values in (scores or {}).items()}
    for name, values in columns.items():
        if values.shape != (len(corpus),):
            raise IntegrationError(f"{name} has shape {values.shape} for {len(corpus):,} rows: give one value each")
    table = corpus.table[["uid", "premise", "hypothesis"]].assign(
        label=np.array(corpus.classes, dtype=object)[corpus.labels]
    )
    if taken := sorted(columns.keys() & set(table)):
        raise IntegrationError(f"a score may not be called {taken[0]}: the table has a column of that name")
    table = table.assign(**columns)
    for name in (x, y, color):
        if name not in table:
            raise IntegrationError(f"there is no {name} to draw: {', '.join(columns) or 'no scores were given'}")
    return Explorer(table, x, y, color)


class Explorer:
    """The state of an exploration: the table, what the lasso holds, the tags. The page and a script change it alike.

    table     N rows: uid, premise, hypothesis, label (a name), then the scores
    selected  (K,) positions inside the lasso, ascending
    tags      (N,) the tag of each pair, "" for none
    """

    def __init__(self, table: pd.DataFrame, x: str, y: str, color: str):
        self.table, self.x, self.y, self.color = table, x, y, color
        self.selected = np.empty(0, np.int64)
        self.tags = np.full(len(table), NO_TAG, dtype=object)
        self._listeners: list[Any] = []

    def select(self, positions: ArrayLike) -> None:
        """Put the pairs at these positions into the lasso; a boolean mask (N,) is one of positions too."""
        given = np.asarray(positions)
        given = np.flatnonzero(given) if given.dtype == bool else np.unique(given.astype(np.int64))
        if given.size and (given[0] < 0 or given[-1] >= len(self.table)):
            wrong = given[(given < 0) | (given >= len(self.table))][0]
            raise IntegrationError(f"position {wrong} is outside 0..{len(self.table) - 1}")
        self.selected = given
        self._tell()

    def tag(self, name: str) -> int:
        """Tag every pair of the lasso, in place of the tag it had; how many there are. "" takes tags away."""
        name = " ".join(str(name).split())
        if len(name) > 60:
            raise IntegrationError(f"a tag of {len(name)} letters: use up to 60")
        self.tags[self.selected] = name
        self._tell()
        return len(self.selected)

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs have each tag, by name."""
        names, counts = np.unique(self.tags[self.tags != NO_TAG].astype(str), return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def frame(self, tag: str | None = None) -> pd.DataFrame:
        """The pairs of the lasso, or those with a tag, with position and tag."""
        at = self.selected if tag is None else self._tagged(tag)
        return self.table.iloc[at].assign(position=at, tag=self.tags[at])

    def selection(self, tag: str | None = None, *, keep: bool = False) -> Selection:
        """A `Selection` that drops the pairs with a tag, or those of the lasso; with `keep` it keeps them alone."""
        inside = np.zeros(len(self.table), bool)
        inside[self.selected if tag is None else self._tagged(tag)] = True
        what = "selected by hand" if tag is None else f"tagged {tag}"
        return Selection.where(inside, f"not {what}", what) if keep else Selection.where(~inside, what)

    def save(self, path: str | Path) -> Path:
        """Write uid, tag, label and the texts of every tagged pair to a csv, safe to open in a spreadsheet."""
        at = np.flatnonzero(self.tags != NO_TAG)
        table = self.table.iloc[at][["uid", "label", "premise", "hypothesis"]]
        table.insert(1, "tag", self.tags[at])
        return write_csv(Path(path), table)

    def load(self, path: str | Path) -> None:
        """Take the tags of a file that `save` wrote; what was tagged before stays, where the file says nothing."""
        known = read_csv(Path(path))
        if not {"uid", "tag"} <= set(known):
            raise IntegrationError(f"{path} has no columns uid and tag: give a file that `save` wrote")
        place = pd.Series(np.arange(len(self.table)), index=self.table["uid"].astype(str))
        if not (there := known["uid"].isin(place.index)).all():
            other = known.loc[~there, "uid"].iloc[0]
            raise IntegrationError(f"{path}: uid {other!r} is not in the corpus: give its own file")
        self.tags[place[known["uid"]]] = known["tag"]
        self._tell()

    def point(self, position: int) -> dict[str, object]:
        """What a pair answers: its uid, tag, texts and scores, numbers with three digits."""
        row = self.table.iloc[position]
        said = {name: f"{value:.3g}" if isinstance(value, float) else str(value) for name, value in row.items()}
        return {"position": int(position), "tag": self.tags[position], **said}

    @cached_property
    def widget(self) -> Any:
        """The page's part: see `nli_lib.integrations.explorer_widget`."""
        from nli_lib.integrations.explorer_widget import page

        return page(self)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self.widget)

    def _tagged(self, tag: str) -> np.ndarray:
        if tag not in self.counts:
            raise IntegrationError(f"no pair is tagged {tag!r}; tags are {', '.join(self.counts) or 'not given yet'}")
        return np.flatnonzero(self.tags == tag)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()


def _beside(given: object, corpus: Corpus) -> Dynamics:
    """What was recorded, in the order of the corpus: found by uid where the rows have names, by position otherwise."""
    if getattr(given, "uid", None) is not None:
        return dynamics_of(given).of(corpus)
    logits = np.asarray(getattr(given, "logits", given))
    if logits.ndim != 3 or logits.shape[1:] != (len(corpus), len(corpus.classes)):
        wanted = f"(epochs, {len(corpus)}, {len(corpus.classes)})"
        raise IntegrationError(f"logits have shape {logits.shape}: {wanted} is needed for {corpus.name}")
    labels = np.asarray(getattr(given, "labels", corpus.labels))
    if not np.array_equal(labels, corpus.labels):
        raise IntegrationError(f"the run was trained on other labels than those of {corpus.name}: give its corpus")
    return Dynamics(logits, corpus.labels, np.arange(len(corpus)), "")
