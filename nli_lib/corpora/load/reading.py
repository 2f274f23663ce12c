"""Reading: csv, tsv, jsonl and parquet files, gzipped too, into a table of plain Python values.

A row that cannot be split into fields is left out and counted by reason; a file that cannot be read at all is one
`CorpusError`. What a row *says* (labels, texts) is judged later, in `nli_lib.corpora.load.rows`. Nothing is converted
on the way: every csv and tsv field stays a string, so a hypothesis "None" or "n/a" (SNLI has both) is a text.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from nli_lib.corpora.corpus import CorpusError

SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".parquet")
BAD_JSON, BAD_FIELDS = "bad JSON line", "wrong number of fields"
_END = "\x1eend of the table\x1e"


@dataclass(frozen=True)
class Raw:
    """The rows of one file as they stand there.

    table    (N, columns) of object dtype: strings, and in jsonl and parquet also numbers, lists, dictionaries and None
    row      (N,) int64, the row's position among the file's data rows, from 0
    skipped  rows that are not in the table, counted by reason
    where    the file's name, for messages
    """

    table: pd.DataFrame
    row: np.ndarray
    skipped: dict[str, int] = field(default_factory=dict)
    where: str = ""


def kind(path: Path) -> str:
    """The format a file's name announces: one of `SUFFIXES`, with or without ".gz" after it; "" for any other name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in SUFFIXES else ""


def read(path: Path, *, quoted: bool | None = None) -> Raw:
    """The rows of a csv, tsv (also .txt), jsonl or parquet file, gzipped or not.

    quoted  tsv only. False: a double quote is a letter like any other (GLUE, SICK, HANS, MED). True: they wrap fields
            and are doubled inside them (Human-CAD, spreadsheets). None: True if the whole file is well-formed so.

    Raises `CorpusError` for a file that is missing, empty, header only, cut short, UTF-16, or without any good row.
    """
    ending = kind(path)
    if not ending:
        raise CorpusError(f"{path}: the name must end in {', '.join(SUFFIXES)}, or one of these and .gz")
    data = _bytes(path)
    if ending == ".parquet":
        raw = _parquet(data, path.name)
    elif ending == ".jsonl":
        raw = _jsonl(_text(data, path), path.name)
    elif ending == ".csv":
        raw = _table(_split_quoted(_text(data, path), ",", path.name), path.name)
    else:
        raw = _table(_split_tabs(_text(data, path), path.name, quoted), path.name)
    if not len(raw.table):
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in raw.skipped.items())
        why = f"no row can be read as {ending} ({reasons})" if reasons else "a header and no rows"
        raise CorpusError(f"{path}: {why}.")
    return raw


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        if path.suffix.lower() == ".gz":
            data = gzip.decompress(data)
    except FileNotFoundError:
        raise CorpusError(f"{path}: no such file.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorpusError(f"{path}: not a whole gzip file ({error}); download or copy it again.") from None
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror or error}).") from None
    if not data.strip():
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


def _jsonl(text: str, where: str) -> Raw:
    lines = [line for line in _lines(text) if line.strip()]
    try:
        # One call for the whole file is several times faster than one a line; strict=False keeps control characters.
        records = json.loads("[" + ",".join(lines) + "]", strict=False)
        whole = len(records) == len(lines) and all(map(_is_record, records))
    except (ValueError, RecursionError):
        whole = False
    if not whole:
        records = [_one_record(line) for line in lines]
    row = np.array([i for i, record in enumerate(records) if record is not None], dtype=np.int64)
    good = records if whole else [records[i] for i in row]
    columns = dict.fromkeys(key for record in good for key in record)
    table = _frame({key: [record.get(key) for record in good] for key in columns})
    bad = len(lines) - len(good)
    return Raw(table, row, {BAD_JSON: bad} if bad else {}, where)


def _is_record(value: object) -> bool:
    return isinstance(value, dict)


def _one_record(line: str) -> dict | None:
    try:
        value = json.loads(line, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _split_tabs(text: str, where: str, quoted: bool | None) -> list[list[str]]:
    if quoted is None:
        quoted = '"' in text and _well_quoted(text)
    if quoted:
        return _split_quoted(text, "\t", where)
    return [line.split("\t") for line in _lines(text) if line]


def _well_quoted(text: str) -> bool:
    """Whether every quote in a tsv file opens, closes or doubles as in a csv, and every row then has as many fields."""
    try:
        rows = _csv_rows(text, "\t", strict=True)
    except csv.Error:
        return False
    return len({len(row) for row in rows if row}) == 1


def _split_quoted(text: str, delimiter: str, where: str) -> list[list[str]]:
    rows = _csv_rows(f"{text}\n{_END}", delimiter, strict=False)
    # The last row is swallowed when a quote is still open at the end of the file.
    if rows.pop() != [_END]:
        raise CorpusError(f'{where}: the double quote opened in row {len(rows)} is never closed; write "" for a quote.')
    return [row for row in rows if row]


def _csv_rows(text: str, delimiter: str, *, strict: bool) -> list[list[str]]:
    limit = csv.field_size_limit(sys.maxsize)  # the module's own limit would end the reading at the first long field
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict))
    finally:
        csv.field_size_limit(limit)


def _table(rows: list[list[str]], where: str) -> Raw:
    header, *body = rows
    names = [name.strip() for name in header]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CorpusError(f"{where}: the header names {', '.join(map(repr, twice))} twice; rename one of them.")
    lengths = np.fromiter(map(len, body), dtype=np.int64, count=len(body))
    row = np.flatnonzero(lengths == len(names))
    good = body if len(row) == len(body) else [body[i] for i in row]
    columns = zip(*good, strict=True) if good else [()] * len(names)
    table = _frame({name: list(column) for name, column in zip(names, columns, strict=True)})
    bad = len(body) - len(good)
    return Raw(table, row, {BAD_FIELDS: bad} if bad else {}, where)


def _parquet(data: bytes, where: str) -> Raw:
    try:
        arrow = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{where}: not a readable parquet file ({str(error).splitlines()[0]}).") from None
    return from_arrow(arrow, {}, where)


def from_frame(frame: pd.DataFrame, where: str) -> Raw:
    """The rows of a DataFrame."""
    return Raw(_frame({str(name): frame[name].tolist() for name in frame}), np.arange(len(frame)), {}, where)


def from_arrow(arrow: pa.Table, names: dict[str, list[str]], where: str) -> Raw:
    """The rows of an Arrow table; class numbers become names where it, or `names` (column -> names), states them."""
    stated = {**_stated_names(arrow), **names}
    columns = {}
    for name in arrow.column_names:
        try:
            values = arrow.column(name).to_pylist()
        except UnicodeDecodeError:
            raise CorpusError(f"{where}: column {name!r} holds text that is not UTF-8; write the file again.") from None
        columns[name] = [_class_name(value, stated[name]) for value in values] if name in stated else values
    return Raw(_frame(columns), np.arange(arrow.num_rows), {}, where)


def _stated_names(arrow: pa.Table) -> dict[str, list[str]]:
    """Class names that the `datasets` library wrote into a parquet file's own description."""
    description = (arrow.schema.metadata or {}).get(b"huggingface")
    if description is None:
        return {}
    try:
        features = json.loads(description)["info"]["features"].items()
        return {name: list(made["names"]) for name, made in features if made.get("_type") == "ClassLabel"}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}  # not the description that `datasets` writes; a column of bare numbers is then refused later


def _class_name(value: object, names: list[str]) -> object:
    if not isinstance(value, int):
        return value
    # -1 is how the hub's sets store "no gold label"
    return names[value] if 0 <= value < len(names) else None


def _frame(columns: dict[str, list]) -> pd.DataFrame:
    """A table that keeps its values as they are: no inference of dates, numbers, strings or missing values."""
    held = {}
    for name, values in columns.items():
        column = np.empty(len(values), dtype=object)
        column[:] = values
        held[name.encode("utf-8", "replace").decode()] = column
    return pd.DataFrame(held, dtype=object)
