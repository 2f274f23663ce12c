"""Reading files: their rows as written, and the Corpus made from them.

`read` takes csv, tsv, txt, json, jsonl and parquet files, gzipped too, into rows of plain Python values. Nothing is
converted: every csv and tsv field stays a string, so a hypothesis "None" or "n/a" (SNLI has both) is a text. `own` maps
the columns of a user's file to the library's names, and `build` checks every row::

    rows = own(read(Path("mine.csv")))
    corpus = build(rows, name="mine", split="train", source="mine.csv", own=True)

A bad row, which cannot be split into fields or has no text or label, is left out and counted by reason. A fault of the
whole file (a missing column, labels that are plain numbers, no usable row) raises one `CorpusError` that names the
file, the field, a row, and what to do.

Delimited text and JSON are read by the standard library: pandas pads short rows silently, and the readers of pandas and
pyarrow stop at the first line that is not JSON or not UTF-8; here a bad row is left out and counted.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import json
import re
import shlex
import sys
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from nli_lib.corpora import corpus
from nli_lib.corpora.corpus import LABELS, SIDES, Corpus, CorpusError, are_several, canonical, is_numbered, spelling

LONGEST = 200_000  # characters, a document of a hundred pages; a premise of this length costs the audit 0.1 s and 4 MB
# Limit for published corpora: one premise of MultiNLI is longer, and no recorded number depends on it.
OFFICIAL = 20_000

NO_LABEL, UNKNOWN_LABEL, SEVERAL = "no gold label", "unknown label", "several labels in one cell"
NOT_TEXT, EMPTY, NUL, NOT_UTF8 = "text is not a string", "empty text", "NUL character", "not UTF-8"
TOO_LONG, REPEATED = "longer than {:,} characters", "duplicate row"

_NAMED = 20  # names in a message


def shown(names: Iterable[object]) -> str:
    """Names for a message; only the first ones if there are many."""
    names = list(names)
    return ", ".join(map(repr, names[:_NAMED])) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")


@dataclass(frozen=True)
class Rows:
    """The rows of one source before they are checked, first with the source's column names, then with the library's.

    Attributes
    ----------
    table
        (N, columns) of object dtype: strings, and from jsonl and parquet also numbers, lists, dictionaries, None
    row
        (N,) int64, the row's position among the file's data rows, from 0
    where
        the file's name, for messages
    skipped
        rows that are not in the table, counted by reason
    classes
        the classes of this source
    names
        extra label spellings for this source only, see `nli_lib.corpora.corpus.to_index`
    note
        a remark for the corpus's `source`, for instance a swapped orientation
    first
        the line of the file with row 0, if every row is one line; None: not known
    encoding
        the file's encoding as declared by the user; None: not declared
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
    def of(cls, columns: Mapping[str, Iterable], row: np.ndarray, where: str, **more: object) -> Rows:
        """Make rows from columns without converting values: no inference of dates, numbers, strings or missing
        values."""
        names = {name: str(name).encode("utf-8", "replace").decode() for name in columns}
        held = {names[name]: pd.Series(list(values), dtype=object) for name, values in columns.items()}
        return cls(pd.DataFrame(held, dtype=object, index=range(len(row))), row, where, **more)

    def place(self, row: int) -> str:
        """The place of a row in the source, for a message."""
        return f"row {row + 1}" + (f" (line {row + self.first})" if self.first else "")

    def pick(self, fields: Mapping[str, object], extras: Sequence[str] | None = (), advice: str = "") -> Rows:
        """Rename the columns of a source to the library's names.

        Parameters
        ----------
        fields
            the library's name -> the source's, or several: the first that exists is used, in any letter case; all
            except "uid" must exist
        extras
            columns to keep if they exist, with ``source_`` before a name that is taken; None keeps all other columns
        advice
            advice about a missing column, for the message
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

    def assign(self, **columns: object) -> Rows:
        """Add columns."""
        return replace(self, table=self.table.assign(**columns))


def build(rows: Rows, *, name: str, split: str, source: str, own: bool = False) -> Corpus:
    """Make the Corpus of a source's rows: check each row, map labels by name, make uids unique.

    Parameters
    ----------
    own
        True for a user's file: rows that repeat an earlier one in uid, texts and label are left out and counted; two
        rows with one uid and different content are an error, and so is a fault that would leave out many rows of one
        kind: an unknown label, another encoding. An official corpus keeps all its rows, so that its size is the
        published one: a second and third row with one uid become ``uid#2``, ``uid#3``, in file order (FEVER-NLI pairs
        one claim with several contexts).
    """
    table, row = rows.table, rows.row
    label = corpus.to_index(table["label"], rows.classes, rows.names)
    _refuse_unnamed(table["label"].to_numpy(), label, rows)
    reason = _reasons(table, label, LONGEST if own else OFFICIAL)
    if own:
        _refuse_lost(rows, reason, {rows.classes[at] for at in label[label >= 0]})
    good = reason == ""
    skipped = {**rows.skipped, **pd.Series(reason[~good]).value_counts().to_dict()}
    if not good.any():
        counted = ", ".join(f"{why}: {count:,}" for why, count in skipped.items()) or f"none for split {split}"
        raise CorpusError(f"{rows.where}: no usable row ({counted}). Check the columns, the labels and the encoding.")
    uid = pd.Series([f"{name}-{split}-{at}" for at in row], dtype=object)
    if "uid" in table:
        given = pd.Series([str(value).strip() for value in table["uid"]], dtype=object)
        uid = given.where(table["uid"].notna() & (given != "") & given.map(_is_utf8), uid)
    table, row, uid = table[good], row[good], uid.to_numpy(dtype=object)[good]
    core = table[SIDES].astype("str").assign(uid=uid, label=label[good]).reset_index(drop=True)
    if not own:
        core["uid"] = corpus.unique_uids(core["uid"])
    keep = ~core.duplicated().to_numpy() if own else np.full(len(core), True)
    if not keep.all():
        skipped[REPEATED] = int((~keep).sum())
    if (again := core["uid"][keep].duplicated(keep=False)).any():
        twice = core["uid"][keep][again].iloc[0]
        rows_of = ", ".join(str(at + 1) for at in row[((core["uid"] == twice) & keep).to_numpy()][:5])
        fault = f"{twice!r} names different examples; make it unique."
        raise CorpusError(f"{rows.where}: rows {rows_of}, field 'uid': {fault}")
    extras = table.columns.difference(["uid", *SIDES, "label"], sort=False)
    kept = {f"source_{extra}" if extra in corpus.COLUMNS else extra: _plain(table[extra]) for extra in extras}
    core = pd.concat([core.assign(corpus=name, split=split), pd.DataFrame(kept, index=core.index)], axis=1)
    source = f"{source} ({rows.note})" if rows.note else source
    return Corpus(core[keep], name, split, rows.classes, skipped, source)


def _refuse_unnamed(given: np.ndarray, label: np.ndarray, rows: Rows) -> None:
    """Raise one error if no label is a known name."""
    unknown = np.flatnonzero(label == corpus.UNKNOWN)
    if (label >= 0).any() or not len(unknown):
        return
    found = sorted({str(value) for value in given[unknown]})
    named = ", ".join(map(repr, found[:5])) + (" ..." if len(found) > 5 else "")
    guess = "numbers without names; their order differs between sources, so it is not guessed"
    why = guess if any(map(is_numbered, found)) else "none of which is known"
    numbers = ",".join(f"{name}=..." for name in found[:5] if name != "-1")
    fault = f"{rows.where}: {rows.place(rows.row[unknown[0]])}, field 'label': the labels are {named}: {why}."
    cure = f"or say which is which: --labels {numbers} on the command line, labels={{...}} in Python."
    raise CorpusError(f"{fault} Write the names, {', '.join(rows.classes)}, {cure}")


def _refuse_lost(rows: Rows, reason: np.ndarray, known: Collection[str]) -> None:
    """Raise one error if many of a user's rows would be left out for one reason that the user can fix: an undeclared
    encoding or an unknown label name. Rarer unknown names are printed."""
    odd, unknown = np.flatnonzero(reason == NOT_UTF8), np.flatnonzero(reason == UNKNOWN_LABEL)
    if not rows.encoding and len(odd) > corpus.MANY * len(reason):
        words = [word for side in SIDES for word in str(rows.table[side].iloc[odd[0]]).split() if not _is_utf8(word)]
        like = ""
        with contextlib.suppress(UnicodeError):  # half of a surrogate pair does not come from a byte of the file
            looks = words[0].encode("utf-8", "surrogateescape").decode("cp1252")
            like = f" It looks like Windows-1252 ({looks!r})." if any(map(str.isalpha, looks)) else ""
        fault = f"{len(odd):,} of {len(reason):,} rows have letters that are not UTF-8, the first of them"
        cure = "Save the file as UTF-8, or name its encoding, as in --encoding cp1252."
        raise CorpusError(f"{rows.where}: {fault} {rows.place(rows.row[odd[0]])}.{like} {cure}")
    if not len(unknown):
        return
    names = [str(label) for label in rows.table["label"].iloc[unknown]]
    counts, first = Counter(names).most_common(), dict(zip(reversed(names), rows.row[unknown][::-1], strict=True))
    of = f"of {len(reason):,} rows"
    said = [f"{name[:60]!r} in {count:,} {of}, from {rows.place(first[name])} on" for name, count in counts[:3]]
    said += [f"and {len(counts) - 3:,} other names"] if len(counts) > 3 else []
    words = f"{rows.where}, field 'label': unknown labels: {'; '.join(said)}."
    (name, count), absent = counts[0], [each for each in LABELS if each not in known]
    if name.isprintable() and len(name) < 60 and not {",", "="} & {*name}:
        ours = "..." if is_numbered(name) else absent[0] if len(absent) == 1 else "neutral"
        meant, nothing = (shlex.quote(f"{name}={each}") for each in (ours, "-"))
        words += f" Say what it means, as in --labels {meant}, or leave its rows out with --labels {nothing}."
    if count > corpus.MANY * len(reason):
        raise CorpusError(words)
    print(words)


def _reasons(table: pd.DataFrame, label: np.ndarray, longest: int) -> np.ndarray:
    """(N,) the reason why a row cannot be used, or "": a missing or unknown label, else its texts' first fault."""
    reason = np.full(len(table), "", dtype=object)
    for side in SIDES:
        given = table[side]
        is_text, missing = given.map(lambda value: isinstance(value, str)), given.isna()
        text = given.where(is_text, "x").astype(object)
        faults = {EMPTY: missing | (text.str.strip() == ""), NOT_TEXT: ~is_text & ~missing}
        faults[TOO_LONG.format(longest)] = text.str.len() > longest
        faults |= {NUL: text.str.contains("\0", regex=False), NOT_UTF8: ~text.map(_is_utf8)}
        for why, mask in faults.items():
            reason[mask.to_numpy(dtype=bool) & (reason == "")] = why
    unknown = np.flatnonzero(label == corpus.UNKNOWN)
    reason[unknown] = [SEVERAL if are_several(value) else UNKNOWN_LABEL for value in table["label"].iloc[unknown]]
    reason[label == corpus.NO_GOLD] = NO_LABEL
    return reason


def _is_utf8(text: str) -> bool:
    """False if a text contains bytes that were not UTF-8, or half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode() == text


def _plain(values: pd.Series) -> pd.Series:
    """Convert an extra column to strings or numbers; lists and dictionaries become JSON text."""
    column = pd.Series([_plain_value(value) for value in values], dtype=object)
    if len(types := set(column.dropna().map(type))) > 1:
        column = column.map(str, na_action="ignore")
    # whole numbers with gaps would otherwise become decimals: an id 12 must not become 12.0
    return column.convert_dtypes() if types == {int} and column.hasnans else column.infer_objects()


def _plain_value(value: object) -> object:
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


# ---------------------------------------------------------------- a user's own file


_OWN_FILES = yaml.safe_load(Path(__file__).with_name("own.yaml").read_text(encoding="utf-8"))
OWN, OWN_IDS = _OWN_FILES["fields"], _OWN_FILES["ids"]


def own(raw: Rows, columns: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None) -> Rows:
    """Map a user's rows to premise, hypothesis and label (names); every other column keeps its name.

    The uid is the column of that name, or one of `OWN_IDS` if its values are unique, or is made from the row number.
    The classes are the labels that occur, in the library's order.

    Parameters
    ----------
    columns
        the library's name -> the file's, for instance ``{"premise": "q", "label": "verdict"}``. Without it the names of
        `OWN` are recognised, in upper and lower case; a column with content is preferred to an empty one, and label
        names to numbers. Numbers are positions in a file without a header: ``{"premise": "2"}``.
    labels
        the file's name of a label -> the library's, "-" for rows to leave out: ``{"0": "entailment", ...}``
    """
    columns = dict(columns or {})
    if unknown := sorted(set(columns) - set(OWN)):
        raise CorpusError(f"columns={columns}: {', '.join(unknown)} is not one of {', '.join(OWN)}.")
    if absent := [theirs for theirs in columns.values() if theirs not in raw.table]:
        where = f"{raw.where}: columns= names {shown(absent)}"
        raise CorpusError(f"{where}, which is not in the file; found {shown(raw.table)}.")
    meant = corpus.declared(labels or {})
    rows = raw.pick({**OWN, **_fullest(raw.table, meant), **columns}, extras=None, advice=f" {_OWN_FILES['advice']}")
    if columns and all(map(str.isdecimal, columns.values())) and not rows.row[0]:
        # columns named by position: a first row is a header if its label is none, and occurs in no other row
        label, *others = map(str, rows.table["label"])
        if not (canonical(label) or is_numbered(label) or spelling(label) in meant or label in others):
            print(f"{rows.where}: row 1 is taken for a header ({shown(rows.table.iloc[0])}).")
            rows = replace(rows, table=rows.table[1:].reset_index(drop=True), row=rows.row[1:])
    table = rows.table
    if meant:
        table = table.assign(label=[meant.get(spelling(label), label) for label in table["label"]])
    for name in OWN_IDS if "uid" not in table else ():
        ids = next((table[column] for column in table if column.lower() == name.lower()), None)
        if ids is not None and ids.notna().all() and ids.map(str).is_unique:
            table = table.assign(uid=ids)
            break
    classes = _classes_of(table["label"], raw.where)
    note = "" if classes == LABELS else f"two classes: {', '.join(classes)}"
    return replace(rows, table=table, classes=classes, note=note)


def _fullest(table: pd.DataFrame, meant: Mapping[str, str]) -> dict[str, str]:
    """Choose among several columns for one of the library's names: the first with content, a text or a label's name."""
    there, chosen = {name.lower(): name for name in reversed(table.columns)}, {}
    for ours, names in OWN.items():
        theirs = [there[name] for name in names if name in there]
        for name in theirs if len(theirs) > 1 else ():
            said = set(map(str, table[name].dropna()))
            labels = [value for value in said if spelling(value) in meant or canonical(value)]
            if labels if ours == "label" else any(map(str.strip, said)):
                chosen[ours] = name
                break
    return chosen


def _classes_of(labels: pd.Series, where: str) -> tuple[str, ...]:
    """The classes named in a column of labels; if it names only one, the known set of classes that has it."""
    named = {canonical(label) for label in set(map(str, labels))} - {None}
    for known in (LABELS, corpus.TWO_WAY, corpus.CONTRADICTION_OR_NOT):
        if named <= set(known):
            return tuple(name for name in known if name in named) if len(named) > 1 else known
    three, two = ", ".join(LABELS), ", ".join(corpus.TWO_WAY)
    fault = f"{', '.join(sorted(named))} do not belong together. A corpus has three classes ({three}) or two ({two})"
    cure = "write not_entailment for neutral and contradiction, or leave out the rows that say not_entailment."
    raise CorpusError(f"{where}: field 'label': {fault}: {cure}")


def build_own(rows: Rows, name: str, split: str, source: str) -> Corpus:
    """Make the Corpus of a user's rows, and print a count of the rows that cannot be used."""
    made = build(rows, name=name, split=split, source=source, own=True)
    if made.skipped:
        many = sum(made.skipped.values()) > corpus.MANY * made.rows_read
        print(f"WARNING: a good part of {source} cannot be used." if many else f"{source}:", made.left_out)
    return made


# ---------------------------------------------------------------- reading


SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet")
BAD_JSON, BAD_FIELDS = "bad JSON line", "wrong number of fields"
UNCLOSED = "line swallowed by a quote that is closed too late"
_DELIMITERS = {".csv": ",;\t", ".tsv": "\t", ".txt": "\t,;"}  # the first that splits the header into three is used
_JSON = json.JSONDecoder(strict=False)  # keeps control characters
_END = "\x1eend of the table\x1e"
_SEPARATOR = re.compile(r'"?sep=(.)"?\r?(?:\n|\Z)')  # a line that a spreadsheet may write before the header
_TITLES = 5  # lines allowed above a header
# A gzip file that unpacks to more than 16 MiB and 100 times its size is not text, which compresses 3 to 20 times.
_UNPACKED, _RATIO, _PIECE = 2**24, 100, 2**20


def kind(path: Path) -> str:
    """The format by a file's name: one of `SUFFIXES`, with or without ".gz" after it; "" for any other name."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    return suffix if suffix in SUFFIXES else ""


def read(path: Path, *, quoted: bool | None = None, encoding: str | None = None, columns: dict | None = None) -> Rows:
    """Read the rows of a file with a name that ends in one of `SUFFIXES`, gzipped or not.

    Parameters
    ----------
    quoted
        treatment of double quotes in fields separated by tabs. False: they are ordinary characters (GLUE, SICK, HANS,
        MED). True: they wrap fields and are doubled inside them (Human-CAD, spreadsheets). None: True if that makes the
        whole file well-formed. Fields separated by commas or semicolons are always treated as with True.
    encoding
        encoding of a file that is neither UTF-8 nor UTF-16 with a byte-order mark
    columns
        column names declared for a user's file, {} for none; such a file may have a title above its header. If all are
        numbers and none is a name in the header, the file has no header, and its columns are "1", "2", ...

    Raises
    ------
    CorpusError
        If the file is missing, empty, header only, cut short, or without any good row.
    """
    if not (ending := kind(path)):
        raise CorpusError(f"{path}: the name must end in {', '.join(SUFFIXES)}, or one of these and .gz")
    data = _bytes(path)
    if ending == ".parquet":
        rows = _parquet(data, path.name)
    elif ending in _DELIMITERS:
        rows = _delimited(_text(data, path, encoding), _DELIMITERS[ending], quoted, columns, path.name)
    else:
        rows = _json(_text(data, path, encoding), path)
    if not len(rows.table):
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in rows.skipped.items())
        why = f"no row can be read as {ending} ({reasons})" if reasons else "a header and no rows"
        raise CorpusError(f"{path}: {why}.")
    return replace(rows, encoding=encoding)


def _bytes(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise CorpusError(f"{path}: cannot be read (not a regular file).")
    try:
        most = max(_UNPACKED, _RATIO * path.stat().st_size)
        with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as file:
            # in pieces: otherwise Python reserves memory for everything that the file might unpack to
            pieces = iter(lambda: file.read(_PIECE), b"")
            data = b"".join(islice(pieces, most // _PIECE + 1))
    except FileNotFoundError:
        raise CorpusError(f"{path}: no such file.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorpusError(f"{path}: not a whole gzip file ({error}); download or copy it again.") from None
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror or error}).") from None
    if len(data) > most:
        raise CorpusError(f"{path}: unpacks to more than {_RATIO} times its size, which no text does.")
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        raise CorpusError(f"{path}: the file is empty.")
    return data


def _text(data: bytes, path: Path, encoding: str | None) -> str:
    """The text of a file; a byte that is not UTF-8 becomes a lone surrogate, which later identifies its row."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        text = data.decode(encoding or "utf-8", "replace" if encoding else "surrogateescape").removeprefix("\ufeff")
        if encoding and (lost := text.count("\ufffd")):
            print(f"{path.name}: {lost:,} characters cannot be read as {encoding} and stand as \ufffd.")
    else:
        if encoding and text.isascii():  # some encodings write a letter as several ASCII characters
            text = data.decode(encoding, "replace")
        elif encoding and codecs.lookup(encoding).name != "utf-8":  # nothing else is valid UTF-8 by chance
            print(f"{path.name} is UTF-8 and not {encoding}, and is read so.")
    if text.count("\0") > len(text) // 4:
        cure = "save the file as UTF-8, or say --encoding utf-16-le"
        raise CorpusError(f"{path}: every other byte is NUL, as in UTF-16; {cure}.")
    return text


def _lines(text: str) -> list[str]:
    """Split into lines at \\n or \\r\\n only: the other Unicode line ends occur inside sentences."""
    return [line.removesuffix("\r") for line in text.split("\n")]


# ---------------------------------------------------------------- json


def _json(text: str, path: Path) -> Rows:
    """The rows of a list of objects, of an object that contains one such list, or of one object per line."""
    text, values, first = text.strip(), None, None
    try:
        values = _JSON.decode(text) if text.startswith(("[", "{")) else None
    except (ValueError, RecursionError) as error:
        if text.startswith("["):
            cure = "write a list of objects, or one object a line"
            raise CorpusError(f"{path}: not a JSON list ({error}); {cure}.") from None
    if isinstance(values, dict):
        held = [each for each in values.values() if isinstance(each, list) and isinstance(next(iter(each), 0), dict)]
        values = held[0] if len(held) == 1 else [values]
    if values is None:
        lines, values = _lines(text), []
        for line in filter(str.strip, lines):
            values.append(None)
            with contextlib.suppress(ValueError, RecursionError):
                values[-1] = _JSON.decode(line)
        first = 1 if len(values) == len(lines) else None
    row = np.array([at for at, value in enumerate(values) if isinstance(value, dict)], dtype=np.int64)
    good = [values[at] for at in row]
    names = dict.fromkeys(key for record in good for key in record)
    columns = {name: [record.get(name) for record in good] for name in names}
    return Rows.of(columns, row, path.name, skipped=+Counter({BAD_JSON: len(values) - len(good)}), first=first)


# ---------------------------------------------------------------- delimited text


def _delimited(text: str, delimiters: str, quoted: bool | None, columns: Mapping[str, str] | None, where: str) -> Rows:
    csv.field_size_limit(sys.maxsize)  # the module's limit would stop at the first long field
    if said := _SEPARATOR.match(text):
        text, delimiters = text[said.end() :], said[1]
    above = 0 if columns is None else _titles(text, delimiters)
    if above:
        *titles, text = text.split("\n", above)
        print(f"{where}: {' '.join(titles).strip()!r} above the header is taken for a title.")
    delimiter = next((each for each in delimiters if text.split("\n", 1)[0].count(each) >= 2), delimiters[0])
    every = _split(text, delimiter, quoted, where)
    one_line_each = text.rstrip("\r\n").count("\n") == len(every) - 1
    header, *body = every or [[]]
    names = [name.strip() for name in header]
    full, first = len(names), bool(said) + above + 2
    if columns and all(map(str.isdecimal, columns.values())) and not {*columns.values()} & {*names}:
        names, body, first = [str(at + 1) for at in range(full)], every, first - 1
    while names and not names[-1]:
        names.pop()
    names = [name or f"column {at}" for at, name in enumerate(names, start=1)]
    if twice := sorted(name for name, times in Counter(names).items() if times > 1):
        raise CorpusError(f"{where}: the header names {shown(twice)} twice; rename one of them.")
    if columns is not None and any(len(row) > full for row in body):
        body = _cut(body, len(names), full)
    swallowed = np.array([_swallowed(row, len(names), delimiter) for row in body], dtype=np.int64)
    fits = np.array([len(names) <= len(row) <= full for row in body], dtype=bool)
    row = np.flatnonzero(fits & (swallowed == 0))
    held = {name: [body[at][column] for at in row] for column, name in enumerate(names)}
    odd = np.flatnonzero(~fits & (swallowed == 0))
    skipped = +Counter({BAD_FIELDS: len(odd), UNCLOSED: int(swallowed.sum())})  # + drops counts of 0
    rows = Rows.of(held, row, where, skipped=skipped, first=first if one_line_each else None)
    if columns is not None and len(odd) and len(row):
        fault = f"whose fields are not those of the header ({len(body[odd[0]]):,}, not {full:,})"
        print(f"{where}: {rows.place(odd[0])} is the first of {len(odd):,} {fault}.")
    return rows


def _titles(text: str, delimiters: str) -> int:
    """Number of lines above the header: lines of one cell before the first line with three."""
    lines = [line.replace("\r", " ") for line in text.split("\n", _TITLES + 1)[: _TITLES + 1]]
    for at, delimiter in product(range(len(lines)), delimiters):
        cells = [sum(map(bool, map(str.strip, row))) for row in csv.reader(lines[: at + 1], delimiter=delimiter)]
        if len(cells) == at + 1 and cells[at] >= 3:
            return at if max(cells[:at], default=0) <= 1 else 0
    return 0


def _is_label(text: str) -> bool:
    return canonical(text) is not None or corpus.is_no_gold(text)


def _cut(body: Sequence[list[str]], width: int, full: int) -> list[list[str]]:
    """Cut rows with more fields than the header to the named ones; leave them alone if it is unclear which those are.

    If a label comes last, the labels show whether the other fields are in place. SNLI's files in GLUE's format have
    each annotator's label in the validated rows, the gold label last, and name only the first and the last.
    """
    right = [row for row in body if len(row) == full]
    labelled = [at for at in range(width) if right and all(map(_is_label, {row[at] for row in right}))]

    def cut(fields: list[str]) -> list[str]:
        more = fields[width:]
        if len(fields) <= full or not any(map(str.strip, more)):
            return fields if len(fields) <= full else fields[:width]
        if width - 1 not in labelled or not all(_is_label(fields[at]) for at in labelled):
            return fields
        if width - 2 in labelled and all(map(_is_label, more)):
            return [*fields[: width - 1], fields[-1]]
        others = {canonical(field) for field in more} - {None, canonical(fields[width - 1])}
        return fields if others else fields[:width]

    return [cut(row) for row in body]


def _split(text: str, delimiter: str, quoted: bool | None, where: str) -> list[list[str]]:
    """The fields of each row that is not empty. ``quoted``: see `read`."""

    def rows(text: str, strict: bool) -> list[list[str]]:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict))

    if delimiter == "\t" and quoted is None:
        # check that every quote opens, closes or doubles as in a csv, and that all rows then have equally many fields
        with contextlib.suppress(csv.Error):
            quoted = '"' in text and len({len(row) for row in rows(text, strict=True) if row}) == 1
    if delimiter == "\t" and not quoted:
        return [line.split("\t") for line in _lines(text) if line]
    every = rows(f"{text}\n{_END}", strict=False)
    # The last row is swallowed if a quote is still open at the end of the file.
    if every.pop() != [_END]:
        opened = f"the double quote opened in row {len(every)}"
        raise CorpusError(f'{where}: {opened} is never closed; write "" for a quote.')
    return [row for row in every if row]


def _swallowed(fields: list[str], width: int, delimiter: str) -> int:
    """Number of the file's lines that an unclosed quote merged into a row, 0 for any other row.

    A text may contain line ends. Swallowed rows are recognised by a line inside a field that has the number of fields
    that a row has from there on, one of them the name of a label.
    """
    for at, text in enumerate(fields):
        for before, line in enumerate(text.split("\n")[:-1]):  # the last line ends outside the field
            parts = line.split(delimiter)
            whole = len(parts) == width - (0 if before else at) and len(parts) > 1  # a word alone may be text
            if whole and any(map(canonical, parts)):
                return text.count("\n") + 1
    return 0


# ---------------------------------------------------------------- arrow, pandas


def _parquet(data: bytes, where: str) -> Rows:
    try:
        arrow = pq.read_table(io.BytesIO(data))
        said = json.loads((arrow.schema.metadata or {}).get(b"huggingface", b"{}"))  # if `datasets` wrote the file
        features = said.get("info", {}).get("features", {})
        named = {name: each for name, each in features.items() if isinstance(each, dict)}  # a list: a list column
        classes = {name: each["names"] for name, each in named.items() if each.get("_type") == "ClassLabel"}
    except (pa.ArrowException, OSError, ValueError, AttributeError, KeyError) as error:
        raise CorpusError(f"{where}: not a readable parquet file ({str(error).splitlines()[0]}).") from None
    return _arrow(arrow, classes, where)


def from_dataset(dataset: object, where: str) -> Rows:
    """The rows of a Hugging Face dataset, with class numbers as names, or of a DataFrame."""
    if isinstance(dataset, pd.DataFrame):
        return Rows.of(dataset, np.arange(len(dataset)), where)
    classes = {name: each.names for name, each in dataset.features.items() if hasattr(each, "names")}
    return _arrow(dataset.with_format("arrow")[:], classes, where)


def _arrow(arrow: pa.Table, classes: Mapping[str, Sequence[str]], where: str) -> Rows:
    """The rows of an Arrow table; numbers in a column of ``classes`` become the names of the classes."""
    columns, left_out = {}, []
    for name, column in zip(arrow.column_names, arrow.columns, strict=True):
        try:
            columns[name] = _values(column)
        except UnicodeDecodeError:
            raise CorpusError(f"{where}: column {name!r} holds text that is not UTF-8; write the file again.") from None
        except (pa.ArrowException, ValueError, OverflowError):
            left_out.append(f"{name} ({column.type})")
            continue
        if name in classes:
            known = dict(enumerate(classes[name]))  # -1, the hub's "no gold label", becomes None
            columns[name] = [known.get(value) for value in columns[name]]
    if left_out:
        print(f"{where}: what cannot be read is left out: columns {shown(left_out)}.")
    return Rows.of(columns, np.arange(arrow.num_rows), where)


def _values(column: pa.ChunkedArray) -> list:
    try:
        return column.to_pylist()
    except OverflowError:  # Arrow's dates and times have a wider range than Python's
        return column.cast(pa.string()).to_pylist()
