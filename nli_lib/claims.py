"""The papers' numbers and claims, and the verdicts computed from our runs.

book/papers.yaml has the numbers, and they are typed nowhere else: `paper_value("wanli-table3-multinli-hans")` is 78.08,
`paper_table("zfilter", "Table 2")` is that table.

book/claims.yaml declares for every claim the statistic that decides it and the values that would confirm it, before the
run that tests it. A notebook records the statistic with its interval; the verdict depends only on these::

    held          the whole interval lies in the confirming region
    not held      the whole interval lies outside
    inconclusive  the interval crosses the border
    not judged    a rule is not met, and the reason says which

A claim about several things (each of four test sets) is recorded in parts, one interval each: it is held if all parts
are, not held if one is not, and not judged if one cannot be judged. A minimum over the parts, taken in each training,
would lie below all of them by noise alone.

Because dozens of claims are judged together, every verdict has a p-value, and a second verdict after the correction of
Benjamini and Hochberg.
"""

import math
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import yaml
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator
from scipy import stats

from nli_lib.errors import StudyError
from nli_lib.paths import BOOK
from nli_lib.stats import POWER

PAPERS = BOOK / "papers.yaml"


class Entry(BaseModel, frozen=True, extra="forbid"):
    """One entry of a file of book/; undeclared fields are an error."""


class Table(Entry):
    """A table of a paper, or a passage of its text."""

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
    """Parse a YAML text, plain values only; with libyaml, if PyYAML has it, in a tenth of the time."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def read_entries(path: Path, model: type[Entry]) -> list[Entry]:
    """Read a YAML file's list of entries as records of ``model``; a malformed file raises one `StudyError` that names
    the entry, by its id if it has one, and the field."""
    try:
        entries = read_yaml(path.read_text(encoding="utf-8"))
        return TypeAdapter(list[model]).validate_python(entries)
    except yaml.YAMLError as fault:
        raise StudyError(f"{path} is not valid YAML: {fault}") from None
    except ValidationError as fault:
        first = fault.errors()[0]
    if not first["loc"]:
        raise StudyError(f"{path} must be a list")
    number, *field = first["loc"]
    name = entries[number].get("id", number + 1) if isinstance(entries[number], dict) else number + 1
    field = ".".join(map(str, field)) or "whole"
    raise StudyError(f"{path}: {model.__name__.lower()} {name}: field {field}: {first['msg']}")


@lru_cache(maxsize=8)
def paper_values(path: Path = PAPERS) -> pd.DataFrame:
    """All numbers, one per row: key, paper, where, row, column, value, unit, note. Empty cells are left out."""
    rows = [
        (_key(table, row, column), table.paper, table.where, row, column, value, table.unit, table.note)
        for table in read_entries(path, Table)
        for row, values in table.rows.items()
        for column, value in zip(table.columns, values, strict=True)
        if value is not None
    ]
    values = pd.DataFrame(rows, columns=["key", "paper", "where", "row", "column", "value", "unit", "note"])
    for repeated in values.loc[values["key"].duplicated(), "key"]:
        raise StudyError(f"{path}: the key {repeated!r} appears twice")
    return values


def paper_value(key: str) -> float:
    """The number with this key, as printed (percent stays percent: `paper_values` has the unit)."""
    values = paper_values().set_index("key")["value"]
    if key not in values.index:
        near = get_close_matches(key, values.index, n=8)
        raise StudyError(f"{PAPERS} has no number {key!r}; near it: {', '.join(near) or 'nothing'}")
    return float(values[key])


def paper_table(paper: str, where: str) -> pd.DataFrame:
    """A table as printed in the paper: rows by columns, in the paper's order."""
    values = paper_values()
    part = values[(values["paper"] == paper) & (values["where"] == where)]
    if part.empty:
        known = ", ".join(sorted(values.loc[values["paper"] == paper, "where"].unique()))
        raise StudyError(f"{PAPERS} has no {where!r} of paper {paper!r}; it has {known or 'nothing of that paper'}")
    wide = part.pivot(index="row", columns="column", values="value")
    return wide.loc[part["row"].unique(), part["column"].unique()]


def _key(table: Table, row: str, column: str) -> str:
    """The key of a number, such as wanli-table3-multinli-hans; the column "value" of a passage is left out."""
    place = re.sub(r"[^a-z0-9.]", "", table.where.lower()).replace("section", "sec").replace("appendix", "app")
    return "-".join([table.paper, place, row] + ([] if column == "value" else [column]))


# ---------------------------------------------------------------- claims


CLAIMS = BOOK / "claims.yaml"
VERDICTS = ("held", "not held", "inconclusive", "not judged")
DRAWN = {"pairs", "premises", "words", "reviews", "trainings"}  # what another study would draw again
TRAININGS = 3  # smallest number of trainings behind a statistic of trained models
RECORD = ("id", "value", "low", "high", "n", "seeds", "over", "corpora")
DECISIVE = ("not judged", "not held", "inconclusive", "held")  # the first among its parts is the claim's
PLACES = {"inside": "held", "outside": "not held", "across the border of": "inconclusive"}  # places of an interval
LEDGER = [
    *("id", "paper", "where", "claim", "notebook", "statistic", "unit", "reference", "declared", "ours", "trained"),
    *("confirm", "region_low", "region_high", "paper_value", *RECORD[1:], "verdict", "reason"),
    *("p", "q", "corrected", "detectable", "freedom", "parts", "beyond"),
]
PLANTED, OWN = "planted", "own file"  # corpora that are not evidence for a paper's claim
Paper = Literal["wanli", "zfilter", "consensus", "disco", "difficulty"]


class Region(Entry):
    """The values that confirm a claim: above a number, below one, or between two (ends included)."""

    above: float | None = None
    below: float | None = None
    between: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "Region":
        if sum(v is not None for v in (self.above, self.below, self.between)) != 1:
            raise ValueError("give exactly one of above, below, between")
        _ = self.values  # raises if between does not rise
        return self

    @property
    def values(self) -> pd.Interval:
        """The region as an interval, infinite on an open side; the border of an open region is outside it."""
        low, high = (-math.inf if self.above is None else self.above), (math.inf if self.below is None else self.below)
        return pd.Interval(*(self.between or (low, high)), closed="both" if self.between else "neither")

    def __str__(self) -> str:
        if self.between is not None:
            return f"between {self.between[0]:g} and {self.between[1]:g}"
        return f"above {self.above:g}" if self.above is not None else f"below {self.below:g}"

    def place(self, low: float, high: float) -> str:
        """The place of the interval [low, high], one of `PLACES`."""
        ours = pd.Interval(low, high, closed="both")
        if ours in self.values:
            return "inside"
        return "across the border of" if ours.overlaps(self.values) else "outside"


class Claim(Entry):
    """A claim of a paper, and the values that would confirm it."""

    id: str = Field(pattern=r"^[a-z]+-[a-z0-9.-]+$", description="starts with the paper's key")
    paper: Paper
    where: str = Field(min_length=3, description="table, figure or section of the paper")
    claim: str = Field(min_length=10, description="in our words")
    notebook: str = Field(pattern=r"^\d{2}_\w+$", description="the notebook that records the statistic")
    statistic: str = Field(min_length=20, description="how value, low and high are computed")
    unit: str
    confirm: Region
    paper_value: float | str = Field(description="a number, or words where the paper shows only a picture")
    paper_keys: tuple[str, ...] = Field((), description="keys in book/papers.yaml that the paper's value comes from")
    evidence: tuple[str, ...] = Field(min_length=1, description="corpora that the statistic must come from")
    reference: str = Field("", description="who judged whether a label is right, where people's labels decide")
    declared: Literal["before", "after"] = Field("before", description="before or after its first result was known")
    ours: bool = Field(False, description="whether it is a question of ours that the paper does not answer")
    trained: bool = Field(False, description="whether another training would give another value")
    absolute: bool = Field(False, description="whether the amount itself depends on the size of the training set")
    annotators: bool = Field(False, description="whether `min_n` units take annotators who work for the study")
    withdrawn: str = Field("", description="why it is judged no more")
    min_n: int = Field(1, ge=1, description="units that the interval is over")

    @model_validator(mode="after")
    def _belongs_to_its_paper(self) -> "Claim":
        if not self.id.startswith(f"{self.paper}-"):
            raise ValueError(f"id {self.id!r} does not start with its paper {self.paper!r}")
        for key in self.paper_keys:
            paper_value(key)  # raises StudyError, a ValueError, if the key does not exist
        return self


def read_claims(path: Path = CLAIMS) -> list[Claim]:
    """All declared claims, in the file's order. A malformed one raises a single error that names claim and field."""
    claims = read_entries(path, Claim)
    ids = pd.Series([claim.id for claim in claims])
    for repeated in ids[ids.duplicated()]:
        raise StudyError(f"{path}: claim {repeated}: field id: appears twice")
    return claims


def lacks(claim: Claim, record: Mapping[str, object], scale: str) -> str:
    """A text that says what a record is missing to judge the claim; "" if nothing.

    A statistic of trained models needs `TRAININGS` of them and an interval over trainings. An absolute amount, such as
    a threshold in logits or the share that a filter keeps, is judged only at scale full; a comparison at any real
    scale. A comparison of accuracies needs one side that has learnt something: it is certainly above the most frequent
    label.
    """
    corpora = [name for name in str(record["corpora"]).split(";") if name]
    missing = [name for name in claim.evidence if name not in corpora]
    drawn = set(str(record["over"]).split(" and ")) <= DRAWN
    n, seeds, interval = record["n"], record["seeds"], [record["low"], record["high"]]
    reasons = {
        "not recorded": not corpora,
        "planted text proves the machinery, not the claim": PLANTED in corpora,
        "your own corpus is no evidence for the paper's claim": OWN in corpora,
        f"needs {', '.join(missing)}": missing,
        "smoke numbers prove the machinery, not the claim": scale == "smoke",
        "the amount depends on the size of the training set: judged at scale full": claim.absolute and scale != "full",
        f"{n:,.0f} units, needs {claim.min_n:,}": n < claim.min_n,
        f"{seeds:.0f} training{'s' * (seeds != 1)}, needs {TRAININGS}": claim.trained and seeds < TRAININGS,
        "its interval leaves out that trainings differ": claim.trained and "trainings" not in str(record["over"]),
        f"its interval is over {record['over']}, which another study would not draw anew": not drawn,
        "no interval was recorded": pd.isna(interval).any(),
        "neither side is surely above the most frequent label": record.get("learnt", True) is False,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def beyond(claim: Claim, record: Mapping[str, object], scale: str) -> bool:
    """True if no run at this scale can judge a claim: an absolute amount below scale full, or too few units of a claim
    that needs annotators. Such a claim is in no count."""
    return (claim.absolute and scale != "full") or (claim.annotators and record["n"] < claim.min_n)


def verdict(claim: Claim, record: Mapping[str, object], scale: str) -> tuple[str, str]:
    """One of VERDICTS with its reason, from a record (see `ledger`) of the claim's statistic."""
    if reason := lacks(claim, record, scale):
        return VERDICTS[3], reason
    place = claim.confirm.place(record["low"], record["high"])
    return PLACES[place], f"the interval lies {place} the values {claim.confirm}"


def judge(claim: Claim, parts: Sequence[Mapping[str, object]], scale: str) -> tuple[str, str, Mapping[str, object]]:
    """The verdict on a claim, its reason, and the deciding part; of equal parts, the one nearest to the border."""
    border = claim.confirm.values
    found = [(*verdict(claim, part, scale), part) for part in parts]
    inside = [min(part["low"] - border.left, border.right - part["high"]) for part in parts]
    word, reason, part = found[min(range(len(found)), key=lambda at: (DECISIVE.index(found[at][0]), inside[at]))]
    if len(found) > 1:
        held = sum(each == "held" for each, *_ in found)
        reason = f"{part['part']}: {reason}; {held} of {len(found)} parts hold"
    return word, reason, part


def p_value(claim: Claim, record: Mapping[str, object]) -> float:
    """The p-value of a verdict, two-sided: the level at which the recorded interval ends at the nearest border of the
    confirming values, so that it is below .05 if the 95% interval decides. 1 if the spread is not known.

    By Student's t with seeds - 1 degrees of freedom if the interval is over trainings, exact for a t interval;
    otherwise by the normal distribution, which is approximate for a bootstrap or Wilson interval.
    """
    value, known = record["value"], t_of(record)
    borders = np.array([each for each in (claim.confirm.values.left, claim.confirm.values.right) if abs(each) < np.inf])
    half = np.where(borders < value, value - record["low"], record["high"] - value)
    with np.errstate(divide="ignore", invalid="ignore"):  # an interval without width ends at its value
        times = np.abs(value - borders) / half.clip(min=0)
    p = 2 * known.sf(np.nan_to_num(times, nan=0.0, posinf=np.inf).min() * known.ppf(0.975))
    return float(np.nan_to_num(p, nan=1.0))


def t_of(record: Mapping[str, object]) -> object:
    """The distribution behind the interval of a record: Student's t over trainings, else the normal one.

    Its degrees of freedom are the record's (``freedom``), else trainings - 1."""
    freedom = record["seeds"] - 1 if pd.isna(record.get("freedom", np.nan)) else record["freedom"]
    return stats.t(freedom) if "trainings" in str(record["over"]) else stats.norm


def detectable(record: Mapping[str, object]) -> float:
    """The distance from the border at which a study like this one detects a truth with the probability `POWER`: the
    half-width of the recorded interval, plus the number of standard errors that the power requires."""
    return float((record["high"] - record["low"]) / 2 * (1 + stats.norm.ppf(POWER) / t_of(record).ppf(0.975)))


def ledger(claims: Sequence[Claim], records: pd.DataFrame, scale: str) -> pd.DataFrame:
    """Every claim with the paper's value, ours and the verdict, one row each in the order of ``claims``: `LEDGER`.

    ``records`` has the columns of RECORD, one row for each recorded claim or, with a column ``part``, for each part of
    one; ``corpora`` names the corpora behind the statistic, joined by ";". The numbers are those of the deciding part.
    ``q`` is their `p_value` after Benjamini and Hochberg (1995) over all judged claims: of the verdicts with q up to
    .05, a twentieth is expected to be wrong. ``corrected`` is the verdict after this correction.
    """
    declared = [claim.id for claim in claims]
    for unknown in records.loc[~records["id"].isin(declared), "id"]:
        near = get_close_matches(unknown, declared) or declared
        raise StudyError(f"no claim {unknown!r} in book/claims.yaml; declared: {', '.join(near)}")
    records = records.assign(part=records["part"].fillna("") if "part" in records else "")
    for repeated in records.loc[records.duplicated(["id", "part"]), "id"]:
        raise StudyError(f"claim {repeated!r} was recorded twice")
    numbers = records[["value", "low", "high"]].apply(pd.to_numeric)  # an unrecorded end becomes NaN
    recorded = {id: rows.to_dict("records") for id, rows in records.assign(**numbers).groupby("id")}
    nothing = {"value": math.nan, "low": math.nan, "high": math.nan, "n": 0, "seeds": 0, "over": "", "corpora": ""}
    rows = []
    for claim in claims:
        parts = recorded.get(claim.id, [nothing])
        word, reason, record = judge(claim, parts, scale)
        # an interval that crosses the border decides nothing, whatever an approximate p-value says
        p = max(p_value(claim, record), 0.05 * (word == VERDICTS[2]))
        judged = {"verdict": word, "reason": reason, "p": p, "detectable": detectable(record), "parts": len(parts)}
        judged["beyond"] = beyond(claim, record, scale)
        region = {"region_low": claim.confirm.values.left, "region_high": claim.confirm.values.right}
        rows.append(claim.model_dump() | {"confirm": str(claim.confirm)} | region | record | judged)
    table = pd.DataFrame(rows, columns=LEDGER)
    known = table["verdict"] != VERDICTS[3]
    table.loc[~known, ["p", "detectable"]] = np.nan
    table.loc[known, "q"] = stats.false_discovery_control(table.loc[known, "p"]) if known.any() else []
    return table.assign(corrected=table["verdict"].mask(known & ~(table["q"] <= 0.05), VERDICTS[2]))
