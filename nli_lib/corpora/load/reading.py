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
import sys
import zlib
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from nli_lib.corpora.corpus import CorpusError
from nli_lib.corpora.labels import canonical
from nli_lib.corpora.load.rows import Rows

if TYPE_CHECKING:
    from datasets import Dataset

SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet")
BAD_JSON, BAD_FIELDS = "bad JSON line", "wrong number of fields"
UNCLOSED = "line swallowed by a quote that is closed too late"
_DELIMITERS = {".csv": ",;\t", ".tsv": "\t", ".txt": "\t,;"}  # the first that parts the header into three is taken
_JSON = json.JSONDecoder(strict=False)  # which keeps control characters
_END = "\x1eend of the table\x1e"
# A gzip file that unpacks to more than 16 MiB and 100 times its size is no text: language packs 3 to 20 times.
_UNPACKED, _RATIO = 2**24, 100
_PIECE = 2**20


def kind(path: Path) -> str:
    """The format a file's name announces: one of `SUFFIXES`, with or without ".gz" after it; "" for any other name."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    return suffix if suffix in SUFFIXES else ""


def read(path: Path, *, quoted: bool | None = None) -> Rows:
    """The rows of a file whose name ends in one of `SUFFIXES`, gzipped or not.

    quoted  of fields parted by tabs. False: a double quote is a letter like any other (GLUE, SICK, HANS, MED). True:
            they wrap fields and are doubled inside them (Human-CAD, spreadsheets). None: True if the whole file is
            well-formed so. Fields parted by commas or semicolons are always so quoted.

    Raises `CorpusError` for a file that is missing, empty, header only, cut short, UTF-16, or without any good row.
    """
    ending = kind(path)
    if not ending:
        raise CorpusError(f"{path}: the name must end in {', '.join(SUFFIXES)}, or one of these and .gz")
    data = _bytes(path)
    if ending == ".parquet":
        rows = _parquet(data, path.name)
    elif ending in _DELIMITERS:
        rows = _delimited(_text(data, path), _DELIMITERS[ending], quoted, path.name)
    else:
        rows = _json(_text(data, path), path)
    if not len(rows.table):
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in rows.skipped.items())
        why = f"no row can be read as {ending} ({reasons})" if reasons else "a header and no rows"
        raise CorpusError(f"{path}: {why}.")
    return rows


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


def _text(data: bytes, path: Path) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CorpusError(f"{path}: the file is UTF-16; save it as UTF-8.")
    # Bytes that are not UTF-8 become lone surrogates, by which the row is recognised and counted later.
    text = data.decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")
    if text.count("\0") > len(text) // 4:
        raise CorpusError(f"{path}: every other byte is NUL, as in UTF-16; save the file as UTF-8.")
    return text


def _lines(text: str) -> list[str]:
    """Lines ended by \\n or \\r\\n only: the other Unicode line ends occur inside sentences."""
    return [line.removesuffix("\r") for line in text.split("\n")]


# ---------------------------------------------------------------- json


def _json(text: str, path: Path) -> Rows:
    """The rows of a list of objects, or of one object a line."""
    if text.lstrip().startswith("["):
        try:
            values = _JSON.decode(text)
        except (ValueError, RecursionError) as error:
            cure = "write a list of objects, or one object a line"
            raise CorpusError(f"{path}: not a JSON list ({error}); {cure}.") from None
    else:
        values = [_value(line) for line in _lines(text) if line.strip()]
    row = np.array([at for at, value in enumerate(values) if isinstance(value, dict)], dtype=np.int64)
    good = [values[at] for at in row]
    names = dict.fromkeys(key for record in good for key in record)
    columns = {name: [record.get(name) for record in good] for name in names}
    return Rows.of(columns, row, path.name, {BAD_JSON: len(values) - len(good)})


def _value(line: str) -> object:
    """What a line of JSON says, None where it is not JSON."""
    try:
        return _JSON.decode(line)
    except (ValueError, RecursionError):
        return None


# ---------------------------------------------------------------- delimited text


def _delimited(text: str, delimiters: str, quoted: bool | None, where: str) -> Rows:
    header = text.split("\n", 1)[0]
    delimiter = next((each for each in delimiters if header.count(each) >= 2), delimiters[0])
    if delimiter != "\t" or quoted or (quoted is None and '"' in text and _well_quoted(text)):
        header, *body = _split_quoted(text, delimiter, where)
    else:
        header, *body = [line.split("\t") for line in _lines(text) if line]
    names = [name.strip() for name in header]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CorpusError(f"{where}: the header names {', '.join(map(repr, twice))} twice; rename one of them.")
    swallowed = np.array([_swallowed(row, len(names), delimiter) for row in body], dtype=np.int64)
    fits = np.array([len(row) == len(names) for row in body], dtype=bool)
    row = np.flatnonzero(fits & (swallowed == 0))
    columns = {name: [body[at][column] for at in row] for column, name in enumerate(names)}
    skipped = {BAD_FIELDS: int((~fits & (swallowed == 0)).sum()), UNCLOSED: int(swallowed.sum())}
    return Rows.of(columns, row, where, skipped)


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
    csv.field_size_limit(sys.maxsize)  # the module's own limit would end the reading at the first long field
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
    columns = {}
    for name in arrow.column_names:
        try:
            columns[name] = arrow.column(name).to_pylist()
        except UnicodeDecodeError:
            raise CorpusError(f"{where}: column {name!r} holds text that is not UTF-8; write the file again.") from None
        if name in classes:
            known = dict(enumerate(classes[name]))  # -1, the hub's "no gold label", becomes None
            columns[name] = [known.get(value) for value in columns[name]]
    return Rows.of(columns, np.arange(arrow.num_rows), where)
