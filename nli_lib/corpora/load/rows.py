"""Rows: what a source wrote, and the Corpus made of it, with every row that cannot be used counted by reason.

One bad row is left out and counted. What concerns the whole file (a column that is not there, labels that are bare
numbers, no usable row at all) is one `CorpusError` that names the file, the field, a row, and what to do.
"""

import contextlib
import json
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import COLUMNS, MANY, SIDES, Corpus, CorpusError, unique_uids
from nli_lib.corpora.labels import LABELS, NO_GOLD, UNKNOWN, are_several, is_numbered, to_index

LONGEST = 200_000  # characters, a document of a hundred pages; a premise this long costs the audit 0.1 s and 4 MB
OFFICIAL = (
    20_000  # characters, in a published corpus: one premise of MultiNLI is longer, and no recorded number rests on it
)

NO_LABEL, UNKNOWN_LABEL, SEVERAL = "no gold label", "unknown label", "several labels in one cell"
NOT_TEXT, EMPTY, NUL, NOT_UTF8 = "text is not a string", "empty text", "NUL character", "not UTF-8"
TOO_LONG, REPEATED = "longer than {:,} characters", "duplicate row"

_NAMED = 20  # names in a message


def shown(names: Iterable[object]) -> str:
    """Names for a message, the first of them where they are many."""
    names = list(names)
    return ", ".join(map(repr, names[:_NAMED])) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")


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
    first    the line of the file in which row 0 stands, where every row has one line; None: not known
    encoding what a user said the file's encoding is; None: nothing
    """

    table: pd.DataFrame
    row: np.ndarray
    where: str
    skipped: Mapping[str, int] = field(default_factory=dict)
    classes: tuple[str, ...] = LABELS
    names: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    first: int | None = None
    encoding: str | None = None

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Iterable],
        row: np.ndarray,
        where: str,
        skipped: Mapping[str, int] | None = None,
        first: int | None = None,
    ) -> "Rows":
        """Columns whose values stay as they are: no inference of dates, numbers, strings or missing values."""
        held = {
            str(name).encode("utf-8", "replace").decode(): pd.Series(list(values), dtype=object)
            for name, values in columns.items()
        }
        counted = {reason: count for reason, count in (skipped or {}).items() if count}
        return cls(pd.DataFrame(held, dtype=object, index=range(len(row))), row, where, counted, first=first)

    def place(self, row: int) -> str:
        """Where a row of the source stands, for a person."""
        return f"row {row + 1}" + (f" (line {row + self.first})" if self.first else "")

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
                wanted = " or ".join(map(repr, theirs))
                raise CorpusError(f"{self.where}: column {wanted} is missing; found {shown(self.table)}.{advice}")
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
          with one uid and different content are an error, and so is what would leave out many rows of one kind: a label
          that is not known, another encoding. An official corpus keeps all its rows, so that its size is
          the published one: a second and third row of one uid become ``uid#2``, ``uid#3``, in file order (FEVER-NLI
          pairs one claim with several contexts).
    """
    table, row = rows.table, rows.row
    label = to_index(table["label"], rows.classes, rows.names)
    _refuse_unnamed(table["label"].to_numpy(), label, rows)
    reason = _reasons(table, label, LONGEST if own else OFFICIAL)
    if own:
        _refuse_another_encoding(rows, reason)
        _name_unknown(rows, reason, {rows.classes[at] for at in label[label >= 0]})
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
    extras = table.columns.difference(["uid", "premise", "hypothesis", "label"], sort=False)
    kept = {f"source_{extra}" if extra in COLUMNS else extra: _plain(table[extra]) for extra in extras}
    core = pd.concat([core.assign(corpus=name, split=split), pd.DataFrame(kept, index=core.index)], axis=1)
    source = f"{source} ({rows.note})" if rows.note else source
    return Corpus(core[keep], name, split, rows.classes, skipped, source)


def _refuse_unnamed(given: np.ndarray, label: np.ndarray, rows: Rows) -> None:
    """One error when not a single label is a name that is known."""
    unknown = np.flatnonzero(label == UNKNOWN)
    if (label >= 0).any() or not len(unknown):
        return
    found = sorted({str(value) for value in given[unknown]})
    named = ", ".join(map(repr, found[:5])) + (" ..." if len(found) > 5 else "")
    guess = "numbers without names; their order differs between sources, so it is not guessed"
    why = guess if any(map(is_numbered, found)) else "none of which is known"
    numbers = ",".join(f"{name}=..." for name in found[:5] if name != "-1")
    raise CorpusError(
        f"{rows.where}: {rows.place(rows.row[unknown[0]])}, field 'label': the labels are {named}: {why}. Write the "
        f"names, {', '.join(rows.classes)}, or say which is which: --labels {numbers} on the command line, "
        "labels={...} in Python."
    )


def _refuse_another_encoding(rows: Rows, reason: np.ndarray) -> None:
    """One error where a good part of the texts is in another encoding, of which the user has said nothing."""
    odd = np.flatnonzero(reason == NOT_UTF8)
    if rows.encoding or len(odd) <= MANY * len(reason):
        return
    words = [word for side in SIDES for word in str(rows.table[side].iloc[odd[0]]).split() if not _is_utf8(word)]
    like = ""
    with contextlib.suppress(UnicodeError):  # half of a surrogate pair was no byte of the file
        looks = words[0].encode("utf-8", "surrogateescape").decode("cp1252")
        like = f" It looks like Windows-1252 ({looks!r})." if any(map(str.isalpha, looks)) else ""
    raise CorpusError(
        f"{rows.where}: {len(odd):,} of {len(reason):,} rows have letters that are not UTF-8, the first of them "
        f"{rows.place(rows.row[odd[0]])}.{like} Save the file as UTF-8, or name its encoding, as in --encoding cp1252."
    )


def _name_unknown(rows: Rows, reason: np.ndarray, known: Collection[str]) -> None:
    """Print which label names are not known; an error where one of them holds many rows, for then a class is lost."""
    unknown = np.flatnonzero(reason == UNKNOWN_LABEL)
    if not len(unknown):
        return
    names = [str(label) for label in rows.table["label"].iloc[unknown]]
    counts, first = Counter(names).most_common(), dict(zip(reversed(names), rows.row[unknown][::-1], strict=True))
    said = "; ".join(
        f"{name[:60]!r} in {count:,} of {len(reason):,} rows, from {rows.place(first[name])} on"
        for name, count in counts[:3]
    )
    more = f"; and {len(counts) - 3:,} other names" if len(counts) > 3 else ""
    words = f"{rows.where}, field 'label': unknown labels: {said}{more}."
    (name, count), absent = counts[0], [each for each in LABELS if each not in known]
    if name.isprintable() and len(name) < 60 and not {",", "="} & {*name}:
        ours = "..." if is_numbered(name) else absent[0] if len(absent) == 1 else "neutral"
        meant, nothing = (shlex.quote(f"{name}={each}") for each in (ours, "-"))
        words += f" Say what it means, as in --labels {meant}, or leave its rows out with --labels {nothing}."
    if count > MANY * len(reason):
        raise CorpusError(words)
    print(words)


def _reasons(table: pd.DataFrame, label: np.ndarray, longest: int) -> np.ndarray:
    """(N,) why a row cannot be used, "" where it can: a missing or unknown label, else its texts' first fault."""
    reason = np.full(len(table), "", dtype=object)
    for side in ("premise", "hypothesis"):
        given = table[side]
        is_text, missing = given.map(lambda value: isinstance(value, str)), given.isna()
        text = given.where(is_text, "x").astype(object)
        faults = {
            EMPTY: missing | (text.str.strip() == ""),
            NOT_TEXT: ~is_text & ~missing,
            TOO_LONG.format(longest): text.str.len() > longest,
            NUL: text.str.contains("\0", regex=False),
            NOT_UTF8: ~text.map(_is_utf8),
        }
        for why, mask in faults.items():
            reason[mask.to_numpy(dtype=bool) & (reason == "")] = why
    unknown = np.flatnonzero(label == UNKNOWN)
    reason[unknown] = [SEVERAL if are_several(value) else UNKNOWN_LABEL for value in table["label"].iloc[unknown]]
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
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
