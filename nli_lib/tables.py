"""Tables on disk: every csv, and the tidy tables between a notebook's measuring and showing half.

A csv contains only text and numbers for a spreadsheet, and `read_csv` restores the original. Each text is quoted,
because Python's writer leaves a bare carriage return unquoted, which starts a new record. A text that a spreadsheet
would run as a formula gets an apostrophe in front, also where a spreadsheet with another separator would see the
beginning of a field. Numbers are written unchanged.

A recorded table (`write_table`) is small enough for git (1 MB) and written completely or not at all: csv up to 20,000
rows, so that changes can be read in a diff, and parquet beyond.
"""

import csv
import io
import re
import sys
from numbers import Number
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from nli_lib.store import StoreError, atomic

_PARTS = r",;\t\r\n"  # characters that may end a field or a record
# characters that a spreadsheet may skip before a formula: quotes, blanks, invisible ones
_UNSEEN = r'["\x00-\x08\x0b\x0c\x0e-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f'
_UNSEEN += r"\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]"
_SIGNS = r"[-=+@\u2212\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]"  # including their small and full-width forms
_NUMBER = r"\A[-+](?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z"
_RUN = f"'*{_UNSEEN}*{_SIGNS}"
_GUARD = re.compile(rf"(?:\A|(?<=[{_PARTS}]))(?!{_NUMBER})(?={_RUN})|\A(?='*[\t\r\n])")
_GUARDED = re.compile(rf"(?:\A|(?<=[{_PARTS}]))'(?={_RUN})|\A'(?='*[\t\r\n])")


def as_csv(table: pd.DataFrame) -> str:
    """Convert a table to the text of a csv without its index, separated by commas; missing values are empty fields."""
    fields = []
    for name, column in table.items():
        texts = column.astype(str) if is_numeric_dtype(column) else column.astype(object).map(_field)
        fields.append([_field(name), *texts.where(column.notna(), "")])
    rows = (",".join(row) for row in zip(*fields, strict=True))
    return "".join(f"{row}\n" if row else '""\n' for row in rows)  # an empty line would not be a record


def _field(value: object) -> str:
    if isinstance(value, Number):
        return str(value)
    return '"' + _GUARD.sub("'", str(value)).replace('"', '""') + '"'


def write_csv(path: Path, table: pd.DataFrame) -> Path:
    """Write a table as a csv (`as_csv`), completely or not at all; return the path."""
    with atomic(path) as draft:
        draft.write_text(as_csv(table), encoding="utf-8", newline="")
    return path


def read_csv(path: Path) -> pd.DataFrame:
    """Read a csv from `write_csv` or a spreadsheet; every field is a text, "" if it is empty.

    Fields may be separated by commas, semicolons or tabs, whichever occurs most in the first line. Raises `StoreError`.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            delimiter = max(",;\t", key=lines.readline().count)
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig", sep=delimiter)
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read as a csv: {' '.join(str(error).split())}.") from None
    return unguarded(table)


def unguarded(table: pd.DataFrame) -> pd.DataFrame:
    """Undo `as_csv`'s changes to texts and names of columns."""
    texts = table.apply(lambda column: column if is_numeric_dtype(column) else column.map(_plain, na_action="ignore"))
    return texts.rename(columns=_plain)


def _plain(value: object) -> object:
    return _GUARDED.sub("", value) if isinstance(value, str) else value


# ---------------------------------------------------------------- tables


MOST_BYTES = 2**20
SUFFIXES = (".csv", ".parquet")


def write_table(table: pd.DataFrame, stem: Path) -> Path:
    """Write `stem`.csv, or `stem`.parquet if the table is long or too large as text; return the path.

    A meaningful index (any except 0, 1, 2, ...) becomes columns. An existing csv with the same fields in other quotes
    is kept, so that records with its digest remain valid. Raises `StoreError` if even parquet is over 1 MB.
    """
    if not isinstance(table.index, pd.RangeIndex):
        table = table.reset_index()
    paths = [stem.with_name(stem.name + suffix) for suffix in SUFFIXES]
    data = as_csv(table).encode() if len(table) <= 20_000 else None
    if data is None or len(data) > MOST_BYTES:
        paths.reverse()
        data = table.to_parquet(index=False, compression="zstd")
    path, other = paths
    if len(data) > MOST_BYTES:
        size = f"{len(table):,} rows, {table.shape[1]} columns"
        fault = f"is over {MOST_BYTES:,} bytes even as parquet: keep fewer rows, fewer columns, or float32"
        raise StoreError(f"table {stem.name} ({size}) {fault}")

    def cells(data: bytes) -> list[list[str]]:
        return list(csv.reader(io.StringIO(data.decode(errors="replace"), newline="")))

    csv.field_size_limit(sys.maxsize)
    if not (path.suffix == ".csv" and path.is_file() and cells(path.read_bytes()) == cells(data)):
        with atomic(path) as draft:
            draft.write_bytes(data)
    other.unlink(missing_ok=True)
    return path


def find_table(stem: Path) -> Path | None:
    """The file of a recorded table, csv or parquet, or None."""
    paths = (stem.with_name(stem.name + suffix) for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def read_table(path: Path) -> pd.DataFrame:
    """Read a recorded table. Only an empty field is missing: "NA", "null" and "None" are ordinary words."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return unguarded(pd.read_csv(path, keep_default_na=False, na_values=[""]))
