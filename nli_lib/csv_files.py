"""Every csv that is written: read by spreadsheets as nothing but text and numbers, and by `read_csv` as it was.

Each text is quoted, because Python's own writer leaves a bare carriage return unquoted, which starts a new record. A
text that a spreadsheet would run as a formula gets an apostrophe in front, also where a spreadsheet that parts fields
at another sign would see the beginning of a field. Numbers stand as they are.
"""

import re
from numbers import Number
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from nli_lib.errors import UserError
from nli_lib.store import atomic

_PARTS = r",;\t\r\n"  # what may end a field or a record
# what a spreadsheet may pass over in front of a formula: quotes, blanks, signs that nobody sees
_UNSEEN = r'["\x00-\x08\x0b\x0c\x0e-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f'
_UNSEEN += r"\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]"
_SIGNS = r"[-=+@\u2212\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]"  # with their small and full-width forms
_NUMBER = r"\A[-+](?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z"
_RUN = f"'*{_UNSEEN}*{_SIGNS}"
_GUARD = re.compile(rf"(?:\A|(?<=[{_PARTS}]))(?!{_NUMBER})(?={_RUN})|\A(?='*[\t\r\n])")
_GUARDED = re.compile(rf"(?:\A|(?<=[{_PARTS}]))'(?={_RUN})|\A'(?='*[\t\r\n])")


class CsvError(UserError, ValueError):
    """A csv cannot be read; the message names it and the reason."""


def as_csv(table: pd.DataFrame) -> str:
    """A table as the text of a csv without its index, fields parted by commas; what is missing is an empty field."""
    fields = [[_field(name), *_fields(column)] for name, column in table.items()]
    rows = (",".join(row) for row in zip(*fields, strict=True))
    return "".join(f"{row}\n" if row else '""\n' for row in rows)  # an empty line would be no record


def _fields(column: pd.Series) -> pd.Series:
    texts = column.astype(str) if is_numeric_dtype(column) else column.astype(object).map(_field)
    return texts.where(column.notna(), "")


def _field(value: object) -> str:
    if isinstance(value, Number):
        return str(value)
    return '"' + _GUARD.sub("'", str(value)).replace('"', '""') + '"'


def write_csv(path: Path, table: pd.DataFrame) -> Path:
    """Write a table as a csv (`as_csv`), whole or not at all; the path."""
    with atomic(path) as draft:
        draft.write_text(as_csv(table), encoding="utf-8", newline="")
    return path


def read_csv(path: Path) -> pd.DataFrame:
    """A csv as `write_csv` and spreadsheets leave it, every field a text and "" where it is empty.

    Fields may be parted by commas, semicolons or tabs, whichever its first line has most of. Raises `CsvError`.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            delimiter = max(",;\t", key=lines.readline().count)
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig", sep=delimiter)
    except (OSError, ValueError) as error:
        raise CsvError(f"{path} cannot be read as a csv: {' '.join(str(error).split())}.") from None
    return unguarded(table)


def unguarded(table: pd.DataFrame) -> pd.DataFrame:
    """A table as it was before its texts and names of columns were written by `as_csv`."""
    texts = table.apply(lambda column: column if is_numeric_dtype(column) else column.map(_plain, na_action="ignore"))
    return texts.rename(columns=_plain)


def _plain(value: object) -> object:
    return _GUARDED.sub("", value) if isinstance(value, str) else value
