"""The papers' numbers, read from book/papers.yaml. Nothing else in the project types one of them.

`paper_value("wanli-table3-multinli-hans")` is 78.08; `paper_table("zfilter", "Table 2")` is that table.
"""

import re
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator

from nli_lib.errors import UserError
from nli_lib.paths import BOOK

PAPERS = BOOK / "papers.yaml"


class PaperError(UserError, ValueError):
    """The file of the papers' numbers is malformed, or does not hold what was asked for."""


class Table(BaseModel):
    """One table of one paper, or one passage of its text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    paper: str
    where: str
    unit: str
    note: str = ""
    columns: tuple[str, ...]
    rows: dict[str, tuple[float | None, ...]]

    @model_validator(mode="after")
    def _rows_are_whole(self) -> "Table":
        for row, values in self.rows.items():
            if len(values) != len(self.columns):
                raise ValueError(f"row {row!r} has {len(values)} values for {len(self.columns)} columns")
        return self


def read_yaml(text: str) -> object:
    """What a YAML text holds, plain values only; with libyaml, where PyYAML has it, in a tenth of the time."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def read_entries(path: Path, model: type[BaseModel], error: type[UserError]) -> list[BaseModel]:
    """A YAML file's list of entries as records of ``model``; a malformed file is one ``error`` that names the entry,
    by its id where it has one, and the field."""
    try:
        entries = read_yaml(path.read_text(encoding="utf-8"))
        return TypeAdapter(list[model]).validate_python(entries)
    except yaml.YAMLError as fault:
        raise error(f"{path} is not valid YAML: {fault}") from None
    except ValidationError as fault:
        first = fault.errors()[0]
    if not first["loc"]:
        raise error(f"{path} must be a list")
    number, *field = first["loc"]
    name = entries[number].get("id", number + 1) if isinstance(entries[number], dict) else number + 1
    field = ".".join(map(str, field)) or "whole"
    raise error(f"{path}: {model.__name__.lower()} {name}: field {field}: {first['msg']}")


@lru_cache(maxsize=8)
def paper_values(path: Path = PAPERS) -> pd.DataFrame:
    """All numbers, one a row: key, paper, where, row, column, value, unit, note. Empty cells are left out."""
    rows = [
        {"key": _key(table, row, column), "paper": table.paper, "where": table.where, "row": row}
        | {"column": column, "value": value, "unit": table.unit, "note": table.note}
        for table in read_entries(path, Table, PaperError)
        for row, values in table.rows.items()
        for column, value in zip(table.columns, values, strict=True)
        if value is not None
    ]
    values = pd.DataFrame(rows)
    repeated = values.loc[values["key"].duplicated(), "key"]
    if len(repeated):
        raise PaperError(f"{path}: the key {repeated.iloc[0]!r} appears twice")
    return values


def paper_value(key: str) -> float:
    """The number with this key, as printed (percent stays percent: the unit stands in `paper_values`)."""
    values = paper_values().set_index("key")["value"]
    if key not in values.index:
        near = get_close_matches(key, values.index, n=8)
        raise PaperError(f"{PAPERS} has no number {key!r}; near it: {', '.join(near) or 'nothing'}")
    return float(values[key])


def paper_table(paper: str, where: str) -> pd.DataFrame:
    """One table as the paper prints it: rows by columns, in the paper's order."""
    values = paper_values()
    part = values[(values["paper"] == paper) & (values["where"] == where)]
    if part.empty:
        known = ", ".join(sorted(values.loc[values["paper"] == paper, "where"].unique()))
        raise PaperError(f"{PAPERS} has no {where!r} of paper {paper!r}; it has {known or 'nothing of that paper'}")
    wide = part.pivot(index="row", columns="column", values="value")
    return wide.loc[part["row"].unique(), part["column"].unique()]


def _key(table: Table, row: str, column: str) -> str:
    """wanli-table3-multinli-hans; the column "value" of a passage is left out."""
    place = re.sub(r"[^a-z0-9.]", "", table.where.lower()).replace("section", "sec").replace("appendix", "app")
    return "-".join([table.paper, place, row] + ([] if column == "value" else [column]))
