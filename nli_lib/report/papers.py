"""The papers' numbers, read from book/papers.yaml. Nothing else in the project types one of them.

`paper_value("wanli-table3-multinli-hans")` is 78.08; `paper_table("zfilter", "Table 2")` is that table.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from nli_lib.errors import UserError
from nli_lib.paths import BOOK

PAPERS = BOOK / "papers.yaml"


class PaperError(UserError, ValueError):
    """The file of the papers' numbers is malformed, or does not hold what was asked for."""


class PaperTable(BaseModel):
    """One table of one paper, or one passage of its text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    paper: str
    where: str
    unit: str
    note: str = ""
    columns: tuple[str, ...]
    rows: dict[str, tuple[float | None, ...]]


def paper_values(path: Path = PAPERS) -> pd.DataFrame:
    """All numbers, one a row: key, paper, where, row, column, value, unit, note. Empty cells are left out."""
    return _read(Path(path)).copy()


def paper_value(key: str, path: Path = PAPERS) -> float:
    """The number with this key, as printed (percent stays percent: the unit stands in `paper_values`)."""
    values = _read(Path(path)).set_index("key")["value"]
    if key not in values.index:
        near = [k for k in values.index if k.rsplit("-", 1)[0] == key.rsplit("-", 1)[0]] or [
            k for k in values.index if k.split("-")[0] == key.split("-")[0]
        ]
        raise PaperError(f"{path} has no number {key!r}; near it: {', '.join(near[:8]) or 'nothing'}")
    return float(values[key])


def paper_table(paper: str, where: str, path: Path = PAPERS) -> pd.DataFrame:
    """One table as the paper prints it: rows by columns, in the paper's order."""
    values = _read(Path(path))
    part = values[(values["paper"] == paper) & (values["where"] == where)]
    if part.empty:
        known = ", ".join(sorted(values.loc[values["paper"] == paper, "where"].unique()))
        raise PaperError(f"{path} has no {where!r} of paper {paper!r}; it has {known or 'nothing of that paper'}")
    wide = part.pivot(index="row", columns="column", values="value")
    return wide.loc[part["row"].unique(), part["column"].unique()]


@lru_cache(maxsize=8)
def _read(path: Path) -> pd.DataFrame:
    tables = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(tables, list):
        raise PaperError(f"{path} must be a list of tables")
    rows = []
    for position, entry in enumerate(tables):
        place = f"{path}, table {position + 1}"
        try:
            table = PaperTable.model_validate(entry)
        except ValidationError as error:
            first = error.errors()[0]
            raise PaperError(f"{place}: field {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        for row, values in table.rows.items():
            if len(values) != len(table.columns):
                raise PaperError(f"{place}: row {row!r} has {len(values)} values for {len(table.columns)} columns")
            rows += [
                {"key": _key(table, row, column), "paper": table.paper, "where": table.where, "row": row}
                | {"column": column, "value": value, "unit": table.unit, "note": table.note}
                for column, value in zip(table.columns, values, strict=True)
                if value is not None
            ]
    values = pd.DataFrame(rows)
    repeated = values.loc[values["key"].duplicated(), "key"]
    if len(repeated):
        raise PaperError(f"{path}: the key {repeated.iloc[0]!r} appears twice")
    return values


def _key(table: PaperTable, row: str, column: str) -> str:
    """wanli-table3-multinli-hans; the column "value" of a passage is left out."""
    place = re.sub(r"[^a-z0-9.]", "", table.where.lower()).replace("section", "sec").replace("appendix", "app")
    return "-".join([table.paper, place, row] + ([] if column == "value" else [column]))
