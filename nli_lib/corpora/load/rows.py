"""Rows: what a source wrote, and the Corpus made of it, with every row that cannot be used counted by reason.

One bad row is left out and counted. What concerns the whole file (a column that is not there, labels that are bare
numbers, no usable row at all) is one `CorpusError` that names the file, the field, a row, and what to do.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import COLUMNS, Corpus, CorpusError, unique_uids
from nli_lib.corpora.labels import LABELS, NO_GOLD, UNKNOWN, is_numbered, to_index

LONGEST = 20_000  # characters; the longest real premise of the corpora here is under 4,000

NO_LABEL, UNKNOWN_LABEL = "no gold label", "unknown label"
NOT_TEXT, EMPTY, NUL, NOT_UTF8 = "text is not a string", "empty text", "NUL character", "not UTF-8"
TOO_LONG, REPEATED = f"longer than {LONGEST:,} characters", "duplicate row"


@dataclass(frozen=True)
class Rows:
    """The rows of one source before any of them is judged, first under its own column names, then the library's.

    table    (N, columns) of object dtype: strings, and from jsonl and parquet also numbers, lists, dictionaries, None
    row      (N,) int64, the row's position among the file's data rows, from 0
    where    the file's name, for messages
    skipped  rows that are not in the table, counted by reason
    classes  the classes of this source
    names    further label spellings of this source alone, see `nli_lib.corpora.labels.to_index`
    note     what a reader of the corpus's `source` should know, for instance a swapped orientation
    """

    table: pd.DataFrame
    row: np.ndarray
    where: str
    skipped: Mapping[str, int] = field(default_factory=dict)
    classes: tuple[str, ...] = LABELS
    names: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @classmethod
    def of(
        cls, columns: Mapping[str, Iterable], row: np.ndarray, where: str, skipped: Mapping[str, int] | None = None
    ) -> "Rows":
        """Columns whose values stay as they are: no inference of dates, numbers, strings or missing values."""
        held = {
            str(name).encode("utf-8", "replace").decode(): pd.Series(list(values), dtype=object)
            for name, values in columns.items()
        }
        counted = {reason: count for reason, count in (skipped or {}).items() if count}
        return cls(pd.DataFrame(held, dtype=object, index=range(len(row))), row, where, counted)

    def pick(
        self, fields: Mapping[str, str | Sequence[str]], extras: Sequence[str] | None = (), advice: str = ""
    ) -> "Rows":
        """The rows with the columns of a source under the library's names.

        fields  the library's name -> the source's, or several: the first that is there is taken, in capitals or not;
                all but "uid" must be there
        extras  columns kept under their own names where they exist, with "source_" before a name that is taken; None
                keeps all that are not picked
        advice  what to do about a missing column, for the message
        """
        there = {name.lower(): name for name in reversed(self.table.columns)} | {name: name for name in self.table}
        picked = {}
        for ours, theirs in fields.items():
            theirs = [theirs] if isinstance(theirs, str) else theirs
            found = next((there[name] for wanted in theirs for name in (wanted, wanted.lower()) if name in there), None)
            if found is not None:
                picked[ours] = found
            elif ours != "uid":
                wanted, present = " or ".join(map(repr, theirs)), ", ".join(map(repr, self.table))
                raise CorpusError(f"{self.where}: column {wanted} is missing; found {present}.{advice}")
        if extras is None:
            extras = [name for name in self.table if name not in picked.values()]
        others = [name for name in extras if name in self.table and picked.get(name) != name]
        picked |= {f"source_{name}" if name in picked else name: name for name in others}
        return replace(self, table=pd.DataFrame({ours: self.table[theirs] for ours, theirs in picked.items()}))

    def assign(self, **columns: object) -> "Rows":
        """The rows with further columns."""
        return replace(self, table=self.table.assign(**columns))


def build(rows: Rows, *, name: str, split: str, source: str, own: bool = False) -> Corpus:
    """The Corpus of a source's rows: each judged, labels mapped by name, uids made unique.

    own   a user's own file: rows that repeat an earlier one in uid, texts and label are left out and counted, two rows
          with one uid and different content are an error. An official corpus keeps all its rows, so that its size is
          the published one: a second and third row of one uid become ``uid#2``, ``uid#3``, in file order (FEVER-NLI
          pairs one claim with several contexts).
    """
    table, row = rows.table, rows.row
    label = to_index(table["label"], rows.classes, rows.names)
    _refuse_unnamed(table["label"].to_numpy(), label, rows)
    reason = _reasons(table, label)
    good = reason == ""
    skipped = {**rows.skipped, **{str(k): int(v) for k, v in pd.Series(reason[~good]).value_counts().items()}}
    if not good.any():
        counted = ", ".join(f"{why}: {count:,}" for why, count in skipped.items()) or f"none for split {split}"
        raise CorpusError(f"{rows.where}: no usable row ({counted}). Check the columns, the labels and the encoding.")
    table, row, uid = table[good], row[good], _uids(table, row, f"{name}-{split}")[good]
    core = table[["premise", "hypothesis"]].astype("str").assign(uid=uid, label=label[good]).reset_index(drop=True)
    keep, core["uid"] = _unique(core, row, rows.where, own)
    if not keep.all():
        skipped[REPEATED] = int((~keep).sum())
    core = core.assign(corpus=name, split=split)
    for extra in table.columns.difference(["uid", "premise", "hypothesis", "label"], sort=False):
        core[f"source_{extra}" if extra in COLUMNS else extra] = _plain(table[extra])
    source = f"{source} ({rows.note})" if rows.note else source
    return Corpus(core[keep], name, split, rows.classes, skipped, source)


def _refuse_unnamed(given: np.ndarray, label: np.ndarray, rows: Rows) -> None:
    """One error when not a single label is a name that is known."""
    unknown = np.flatnonzero(label == UNKNOWN)
    if (label >= 0).any() or not len(unknown):
        return
    found = sorted({str(value) for value in given[unknown]})
    shown = ", ".join(map(repr, found[:5])) + (" ..." if len(found) > 5 else "")
    guess = "numbers without names; their order differs between sources, so it is not guessed"
    why = guess if any(map(is_numbered, found)) else "none of which is known"
    first = int(rows.row[unknown[0]]) + 1
    raise CorpusError(
        f"{rows.where}: row {first}, field 'label': the labels are {shown}: {why}. "
        f"Write the names: {', '.join(rows.classes)}."
    )


def _reasons(table: pd.DataFrame, label: np.ndarray) -> np.ndarray:
    """(N,) why a row cannot be used, "" where it can: a missing or unknown label, else its texts' first fault."""
    reason = np.full(len(table), "", dtype=object)
    for side in ("premise", "hypothesis"):
        given = table[side]
        is_text, missing = given.map(lambda value: isinstance(value, str)), given.isna()
        text = given.where(is_text, "x").astype(object)
        faults = {
            EMPTY: missing | (text.str.strip() == ""),
            NOT_TEXT: ~is_text & ~missing,
            TOO_LONG: text.str.len() > LONGEST,
            NUL: text.str.contains("\0", regex=False),
            NOT_UTF8: ~text.map(_is_utf8),
        }
        for why, mask in faults.items():
            reason[mask.to_numpy(dtype=bool) & (reason == "")] = why
    reason[label == UNKNOWN] = UNKNOWN_LABEL
    reason[label == NO_GOLD] = NO_LABEL
    return reason


def _is_utf8(text: str) -> bool:
    """False where bytes that were not UTF-8, or half of a surrogate pair, stand in a text."""
    return text.encode("utf-8", "replace").decode() == text


def _uids(table: pd.DataFrame, row: np.ndarray, prefix: str) -> np.ndarray:
    """(N,) the source's own id as a string; prefix and row number (from 0) where it has none."""
    made = prefix + "-" + pd.Series(row, dtype=object).astype(str)
    if "uid" not in table:
        return made.to_numpy(dtype=object)
    given = table["uid"].reset_index(drop=True)
    text = pd.Series([str(value).strip() for value in given], dtype=object)
    return text.where(given.notna() & (text != "") & text.map(_is_utf8), made).to_numpy(dtype=object)


def _unique(core: pd.DataFrame, row: np.ndarray, where: str, own: bool) -> tuple[np.ndarray, pd.Series]:
    """Which rows to keep, and uids that are unique among them."""
    uid = core["uid"]
    if not own:
        return np.ones(len(core), dtype=bool), unique_uids(uid)
    keep = ~core.duplicated().to_numpy()
    again = uid[keep].duplicated(keep=False)
    if again.any():
        name = uid[keep][again].iloc[0]
        rows = ", ".join(str(int(r) + 1) for r in row[((uid == name) & keep).to_numpy()][:5])
        raise CorpusError(f"{where}: rows {rows}, field 'uid': {name!r} names different examples; make it unique.")
    return keep, uid


def _plain(values: pd.Series) -> pd.Series:
    """An extra column as strings or numbers; lists and dictionaries become JSON text."""
    column = pd.Series([_plain_value(value) for value in values], dtype=object)
    types = set(column.dropna().map(type))
    if len(types) > 1:
        column = column.map(str, na_action="ignore")
    # whole numbers with gaps would otherwise become decimals: 12 is no 12.0 where it names a person or a document
    return column.convert_dtypes() if types == {int} and column.hasnans else column.infer_objects()


def _plain_value(value: object) -> object:
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
