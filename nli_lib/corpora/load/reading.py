"""Reading: csv, tsv, txt, json, jsonl and parquet files, gzipped too, into rows of plain Python values.

A row that cannot be split into fields is left out and counted by reason; a file that cannot be read at all is one
`CorpusError`. What a row *says* (labels, texts) is judged later, in `nli_lib.corpora.load.rows`. Nothing is converted
on the way: every csv and tsv field stays a string, so a hypothesis "None" or "n/a" (SNLI has both) is a text.

Delimited text and JSON go through the standard library: pandas fills a short row up without a word, and the readers of
pandas and pyarrow stop at the first line that is not JSON or not UTF-8, where here one bad row is one counted row.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from nli_lib.corpora.corpus import CorpusError
from nli_lib.corpora.labels import canonical, is_no_gold
from nli_lib.corpora.load.rows import Rows, shown

if TYPE_CHECKING:
    from datasets import Dataset

SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet")
BAD_JSON, BAD_FIELDS = "bad JSON line", "wrong number of fields"
UNCLOSED = "line swallowed by a quote that is closed too late"
_DELIMITERS = {".csv": ",;\t", ".tsv": "\t", ".txt": "\t,;"}  # the first that parts the header into three is taken
_JSON = json.JSONDecoder(strict=False)  # which keeps control characters
_END = "\x1eend of the table\x1e"
_SEPARATOR = re.compile(r'"?sep=(.)"?\r?(?:\n|\Z)')  # the line that a spreadsheet may write before the header
_TITLES = 5  # lines that may stand above a header
# A gzip file that unpacks to more than 16 MiB and 100 times its size is no text: language packs 3 to 20 times.
_UNPACKED, _RATIO = 2**24, 100
_PIECE = 2**20


def kind(path: Path) -> str:
    """The format a file's name announces: one of `SUFFIXES`, with or without ".gz" after it; "" for any other name."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    return suffix if suffix in SUFFIXES else ""


def read(
    path: Path,
    *,
    quoted: bool | None = None,
    encoding: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> Rows:
    """The rows of a file whose name ends in one of `SUFFIXES`, gzipped or not.

    quoted    of fields parted by tabs. False: a double quote is a letter like any other (GLUE, SICK, HANS, MED). True:
              they wrap fields and are doubled inside them (Human-CAD, spreadsheets). None: True if the whole file is
              well-formed so. Fields parted by commas or semicolons are always so quoted.
    encoding  of a file that is not UTF-8, nor UTF-16 with a byte-order mark
    columns   of a user's own file, {} where none was named: it may have a title above its header. Where all that it
              names are numbers, and no names of the header, the file has no header, and its columns are "1", "2", ...

    Raises `CorpusError` for a file that is missing, empty, header only, cut short, or without any good row.
    """
    ending = kind(path)
    if not ending:
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
            # in pieces: asked for all at once, Python sets as much memory aside as the file might unpack to
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
    """The text of a file; a byte that is not UTF-8 becomes a lone surrogate, by which its row is known later."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        text = data.decode(encoding or "utf-8", "replace" if encoding else "surrogateescape").removeprefix("\ufeff")
        if encoding and (lost := text.count("\ufffd")):
            print(f"{path.name}: {lost:,} characters cannot be read as {encoding} and stand as \ufffd.")
    else:
        if encoding and text.isascii():  # the letters of some encodings are several ASCII characters each
            text = data.decode(encoding, "replace")
        elif encoding and codecs.lookup(encoding).name != "utf-8":  # which no text in another encoding is by chance
            print(f"{path.name} is UTF-8 and not {encoding}, and is read so.")
    if text.count("\0") > len(text) // 4:
        raise CorpusError(
            f"{path}: every other byte is NUL, as in UTF-16; save the file as UTF-8, or say --encoding utf-16-le."
        )
    return text


def _lines(text: str) -> list[str]:
    """Lines ended by \\n or \\r\\n only: the other Unicode line ends occur inside sentences."""
    return [line.removesuffix("\r") for line in text.split("\n")]


# ---------------------------------------------------------------- json


def _json(text: str, path: Path) -> Rows:
    """The rows of a list of objects, of an object that holds one such list, or of one object a line."""
    text, values, first = text.strip(), None, None
    if text.startswith(("[", "{")):
        try:
            values = _JSON.decode(text)
        except (ValueError, RecursionError) as error:
            if text.startswith("["):
                cure = "write a list of objects, or one object a line"
                raise CorpusError(f"{path}: not a JSON list ({error}); {cure}.") from None
    if isinstance(values, dict):
        lists = [
            value for value in values.values() if isinstance(value, list) and isinstance(next(iter(value), 0), dict)
        ]
        values = lists[0] if len(lists) == 1 else [values]
    if values is None:
        lines = _lines(text)
        values = [_value(line) for line in lines if line.strip()]
        first = 1 if len(values) == len(lines) else None
    row = np.array([at for at, value in enumerate(values) if isinstance(value, dict)], dtype=np.int64)
    good = [values[at] for at in row]
    names = dict.fromkeys(key for record in good for key in record)
    columns = {name: [record.get(name) for record in good] for name in names}
    return Rows.of(columns, row, path.name, {BAD_JSON: len(values) - len(good)}, first)


def _value(line: str) -> object:
    """What a line of JSON says, None where it is not JSON."""
    try:
        return _JSON.decode(line)
    except (ValueError, RecursionError):
        return None


# ---------------------------------------------------------------- delimited text


def _delimited(text: str, delimiters: str, quoted: bool | None, columns: Mapping[str, str] | None, where: str) -> Rows:
    csv.field_size_limit(sys.maxsize)  # the module's own limit would end the reading at the first long field
    if said := _SEPARATOR.match(text):
        text, delimiters = text[said.end() :], said[1]
    above = 0 if columns is None else _titles(text, delimiters)
    if above:
        *titles, text = text.split("\n", above)
        print(f"{where}: {' '.join(titles).strip()!r} above the header is taken for a title.")
    header = text.split("\n", 1)[0]
    delimiter = next((each for each in delimiters if header.count(each) >= 2), delimiters[0])
    if delimiter != "\t" or quoted or (quoted is None and '"' in text and _well_quoted(text)):
        every = _split_quoted(text, delimiter, where)
    else:
        every = [line.split("\t") for line in _lines(text) if line]
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
        labelled = _labelled([row for row in body if len(row) == full], len(names))
        body = [row if len(row) <= full else _cut(row, len(names), labelled) for row in body]
    swallowed = np.array([_swallowed(row, len(names), delimiter) for row in body], dtype=np.int64)
    fits = np.array([len(names) <= len(row) <= full for row in body], dtype=bool)
    row = np.flatnonzero(fits & (swallowed == 0))
    held = {name: [body[at][column] for at in row] for column, name in enumerate(names)}
    odd = np.flatnonzero(~fits & (swallowed == 0))
    rows = Rows.of(
        held, row, where, {BAD_FIELDS: len(odd), UNCLOSED: int(swallowed.sum())}, first if one_line_each else None
    )
    if columns is not None and len(odd) and len(row):
        found = len(body[odd[0]])
        print(
            f"{where}: {rows.place(odd[0])} is the first of {len(odd):,} whose fields are not those of the header "
            f"({found:,}, not {full:,})."
        )
    return rows


def _titles(text: str, delimiters: str) -> int:
    """How many lines stand above the header: lines of one cell before the first that has three."""
    lines = [line.replace("\r", " ") for line in text.split("\n", _TITLES + 1)[: _TITLES + 1]]
    for at, delimiter in product(range(len(lines)), delimiters):
        cells = [sum(map(bool, map(str.strip, row))) for row in csv.reader(lines[: at + 1], delimiter=delimiter)]
        if len(cells) == at + 1 and cells[at] >= 3:
            return at if max(cells[:at], default=0) <= 1 else 0
    return 0


def _labelled(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Columns in which every row has a label."""
    return [at for at in range(width) if rows and all(map(_is_label, {row[at] for row in rows}))]


def _is_label(text: str) -> bool:
    return canonical(text) is not None or is_no_gold(text)


def _cut(fields: list[str], width: int, labelled: Sequence[int]) -> list[str]:
    """A row with more fields than its header without those that have no name, as it is where it is not plain which.

    The labels say whether the others are in their places, if a label stands last. SNLI's files in GLUE's format have
    each annotator's label in the rows that were validated, the gold label last, and name the first one and the last.
    """
    more = fields[width:]
    if any(map(str.strip, more)):
        if width - 1 not in labelled or not all(_is_label(fields[at]) for at in labelled):
            return fields
        if width - 2 in labelled and all(map(_is_label, more)):
            return [*fields[: width - 1], fields[-1]]
        if {canonical(field) for field in more} - {None, canonical(fields[width - 1])}:
            return fields
    return fields[:width]


def _well_quoted(text: str) -> bool:
    """Whether every quote in a tsv file opens, closes or doubles as in a csv, and every row then has as many fields."""
    try:
        return len({len(row) for row in _csv_rows(text, "\t", strict=True) if row}) == 1
    except csv.Error:
        return False


def _split_quoted(text: str, delimiter: str, where: str) -> list[list[str]]:
    rows = _csv_rows(f"{text}\n{_END}", delimiter, strict=False)
    # The last row is swallowed when a quote is still open at the end of the file.
    if rows.pop() != [_END]:
        raise CorpusError(f'{where}: the double quote opened in row {len(rows)} is never closed; write "" for a quote.')
    return [row for row in rows if row]


def _csv_rows(text: str, delimiter: str, *, strict: bool) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict))


def _swallowed(fields: list[str], width: int, delimiter: str) -> int:
    """Lines of the file in a row that an unclosed quote ran together with others, 0 for any other row.

    A text may have line ends of its own. What gives the swallowed rows away: a line inside a field has as many fields
    as a row has from there on, and one of them is the name of a label.
    """
    for at, field in enumerate(fields):
        if "\n" not in field:
            continue
        lines = field.split("\n")[:-1]  # the last one ends outside the field
        for before, line in enumerate(lines):
            parts = line.split(delimiter)
            whole = len(parts) == width - (0 if before else at) and len(parts) > 1  # one word may be a text's own line
            if whole and any(map(canonical, parts)):
                return field.count("\n") + 1
    return 0


# ---------------------------------------------------------------- arrow, pandas


def _parquet(data: bytes, where: str) -> Rows:
    try:
        arrow = pq.read_table(io.BytesIO(data))
        said = json.loads((arrow.schema.metadata or {}).get(b"huggingface", b"{}"))  # where `datasets` wrote the file
        features = said.get("info", {}).get("features", {})
        named = {name: each for name, each in features.items() if isinstance(each, dict)}  # a list holds a list's kind
        classes = {name: each["names"] for name, each in named.items() if each.get("_type") == "ClassLabel"}
    except (pa.ArrowException, OSError, ValueError, AttributeError, KeyError) as error:
        raise CorpusError(f"{where}: not a readable parquet file ({str(error).splitlines()[0]}).") from None
    return _arrow(arrow, classes, where)


def from_dataset(dataset: Dataset | pd.DataFrame, where: str) -> Rows:
    """The rows of a Hugging Face dataset, class numbers as class names, or of a DataFrame."""
    if isinstance(dataset, pd.DataFrame):
        return Rows.of(dataset, np.arange(len(dataset)), where)
    classes = {name: each.names for name, each in dataset.features.items() if hasattr(each, "names")}
    return _arrow(dataset.with_format("arrow")[:], classes, where)


def _arrow(arrow: pa.Table, classes: Mapping[str, Sequence[str]], where: str) -> Rows:
    """The rows of an Arrow table; the numbers of a column of ``classes`` become the names of the classes."""
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
    except OverflowError:  # dates and times go further in Arrow than in Python
        return column.cast(pa.string()).to_pylist()
