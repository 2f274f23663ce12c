"""Tidy tables on disk: what a notebook's measuring half leaves behind and its showing half draws from.

Small enough for git (1 MB), written whole or not at all: csv up to 20,000 rows, so that a change can be read in a
diff, and parquet beyond.
"""

import csv
import io
import sys
from pathlib import Path

import pandas as pd

from nli_lib.csv_files import as_csv, unguarded
from nli_lib.errors import UserError
from nli_lib.store import atomic

MOST_BYTES = 2**20
CSV_ROWS = 20_000
SUFFIXES = (".csv", ".parquet")


class TableError(UserError, ValueError):
    """A table cannot be kept; the message says why and what to do."""


def _encode(table: pd.DataFrame, suffix: str) -> bytes:
    if suffix == ".csv":
        return as_csv(table).encode()
    return table.to_parquet(index=False, compression="zstd")


def _cells(data: bytes) -> list[list[str]]:
    csv.field_size_limit(sys.maxsize)
    return list(csv.reader(io.StringIO(data.decode(errors="replace"), newline="")))


def write_table(table: pd.DataFrame, stem: Path) -> Path:
    """Write `stem`.csv, or `stem`.parquet when the table is long or too large as text; the path that was written.

    A meaningful index (any but 0, 1, 2, ...) becomes columns. A csv of the same fields that are quoted otherwise stays
    as it is, and so do the records that name its digest. Raises `TableError` when even parquet is over 1 MB.
    """
    if not isinstance(table.index, pd.RangeIndex):
        table = table.reset_index()
    wanted = SUFFIXES if len(table) <= CSV_ROWS else SUFFIXES[1:]
    encoded = {suffix: data for suffix in wanted if len(data := _encode(table, suffix)) <= MOST_BYTES}
    if not encoded:
        raise TableError(
            f"table {stem.name} ({len(table):,} rows, {table.shape[1]} columns) is over {MOST_BYTES:,} bytes even as "
            "parquet: keep fewer rows, fewer columns, or float32"
        )
    suffix, data = next(iter(encoded.items()))
    path = stem.with_name(stem.name + suffix)
    if not (suffix == ".csv" and path.is_file() and _cells(path.read_bytes()) == _cells(data)):
        with atomic(path) as draft:
            draft.write_bytes(data)
    for other in set(SUFFIXES) - {suffix}:
        stem.with_name(stem.name + other).unlink(missing_ok=True)
    return path


def find_table(stem: Path) -> Path | None:
    """The file of a recorded table, csv or parquet, or None."""
    paths = (stem.with_name(stem.name + suffix) for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def read_table(path: Path) -> pd.DataFrame:
    """A recorded table. Only an empty field is missing: "NA", "null" and "None" are words that may stand in it."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return unguarded(pd.read_csv(path, keep_default_na=False, na_values=[""]))
