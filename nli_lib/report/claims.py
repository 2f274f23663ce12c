"""The claims of the papers, declared before any run, and the verdicts that our runs compute.

book/claims.yaml says for every claim which statistic decides it and which values would confirm it. A notebook records
the statistic with its interval; the verdict follows from the two alone:

    held                        the whole interval lies in the confirming region
    not held                    the whole interval lies outside
    inconclusive                the interval reaches over the border
    not testable at this scale  nothing recorded, planted text, a user's own file, another corpus, too little of it
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nli_lib.errors import UserError
from nli_lib.paths import BOOK
from nli_lib.report.papers import paper_value

CLAIMS = BOOK / "claims.yaml"
VERDICTS = ("held", "not held", "inconclusive", "not testable at this scale")
RECORD = ("id", "value", "low", "high", "n", "seeds", "corpora")
PLANTED, OWN = "planted", "own file"  # corpora that are no evidence for a paper's claim
Paper = Literal["wanli", "zfilter", "consensus", "disco", "difficulty"]


class ClaimError(UserError, ValueError):
    """A claim is malformed, unknown, or recorded with impossible numbers."""


class Region(BaseModel):
    """The values that confirm a claim: above a number, below one, or between two (ends included)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    above: float | None = None
    below: float | None = None
    between: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Region:
        if sum(v is not None for v in (self.above, self.below, self.between)) != 1:
            raise ValueError("give exactly one of above, below, between")
        if self.between is not None and self.between[0] >= self.between[1]:
            raise ValueError("between needs two rising numbers")
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """(low, high) of the region, infinite where it is open."""
        if self.between is not None:
            return self.between
        return (self.above, math.inf) if self.above is not None else (-math.inf, self.below)

    def __str__(self) -> str:
        if self.between is not None:
            return f"between {self.between[0]:g} and {self.between[1]:g}"
        return f"above {self.above:g}" if self.above is not None else f"below {self.below:g}"

    def place(self, low: float, high: float) -> Literal["inside", "outside", "across"]:
        """Where the interval [low, high] lies. The border of an open region is outside of it."""
        start, stop = self.ends
        if self.between is not None:
            inside, outside = start <= low and high <= stop, high < start or low > stop
        else:
            inside, outside = start < low and high < stop, high <= start or low >= stop
        return "inside" if inside else "outside" if outside else "across"


class Claim(BaseModel):
    """One claim of one paper, and what would confirm it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    min_n: int = Field(1, ge=1)
    min_seeds: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _belongs_to_its_paper(self) -> Claim:
        if not self.id.startswith(f"{self.paper}-"):
            raise ValueError(f"id {self.id!r} does not start with its paper {self.paper!r}")
        for key in self.paper_keys:
            paper_value(key)  # raises PaperError, a ValueError, when the key does not exist
        return self


class Evidence(NamedTuple):
    """What a recorded statistic rests on."""

    corpora: tuple[str, ...]
    n: int
    seeds: int
    scale: str

    def lacks(self, claim: Claim) -> str:
        """What is missing to test the claim, in words; "" when nothing is."""
        if PLANTED in self.corpora:
            return "planted text proves the machinery, not the claim"
        if OWN in self.corpora:
            return "your own corpus is no evidence for the paper's claim"
        missing = [name for name in claim.evidence if name not in self.corpora]
        if missing:
            return f"needs {', '.join(missing)}"
        if self.scale == "smoke":
            return "smoke numbers prove the machinery, not the claim"
        if self.n < claim.min_n:
            return f"{self.n:,} examples, needs {claim.min_n:,}"
        if self.seeds < claim.min_seeds:
            return f"{self.seeds} seed{'s' * (self.seeds != 1)}, needs {claim.min_seeds}"
        return ""


def read_claims(path: Path = CLAIMS) -> tuple[Claim, ...]:
    """All declared claims, in the file's order. A malformed one is a single error that names claim and field."""
    try:
        entries = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ClaimError(f"{path} is not valid YAML: {error}") from None
    if not isinstance(entries, list) or not entries:
        raise ClaimError(f"{path} must be a list of claims")
    claims = []
    for position, entry in enumerate(entries):
        name = entry.get("id", f"number {position + 1}") if isinstance(entry, dict) else f"number {position + 1}"
        try:
            claims.append(Claim.model_validate(entry))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"])) or "whole"
            raise ClaimError(f"{path}: claim {name}: field {field}: {first['msg']}") from None
        if any(claims[-1].id == other.id for other in claims[:-1]):
            raise ClaimError(f"{path}: claim {name}: field id: appears twice")
    return tuple(claims)


def find_claim(claims: Sequence[Claim], claim_id: str) -> Claim:
    """The claim with this id, or an error that lists those of the same paper."""
    for claim in claims:
        if claim.id == claim_id:
            return claim
    near = [c.id for c in claims if c.paper == claim_id.split("-")[0]] or [c.id for c in claims]
    raise ClaimError(f"no claim {claim_id!r} in book/claims.yaml; declared: {', '.join(near)}")


def verdict(claim: Claim, low: float, high: float, evidence: Evidence) -> tuple[str, str]:
    """One of VERDICTS and its reason, from the interval [low, high] of the claim's statistic and what it rests on."""
    reason = evidence.lacks(claim)
    if reason:
        return VERDICTS[3], reason
    if math.isnan(low) or math.isnan(high):
        return VERDICTS[3], "no interval was recorded"
    if low > high:
        raise ClaimError(f"claim {claim.id}: the interval's low end {low:g} lies above its high end {high:g}")
    place = claim.confirm.place(low, high)
    words = {"inside": VERDICTS[0], "outside": VERDICTS[1], "across": VERDICTS[2]}
    reach = {"inside": "inside", "outside": "outside", "across": "across the border of"}
    return words[place], f"the interval lies {reach[place]} the values {claim.confirm}"


def ledger(claims: Sequence[Claim], records: pd.DataFrame, scale: str) -> pd.DataFrame:
    """Every claim with the paper's value, ours and the verdict, one row a claim in the order of ``claims``.

    ``records`` has the columns of RECORD, one row a recorded claim; ``corpora`` names what the statistic was computed
    from, joined by ";". Columns of the ledger: id, paper, where, claim, notebook, statistic, unit, reference, confirm,
    region_low, region_high, paper_value, value, low, high, n, seeds, corpora, verdict, reason.
    """
    missing = [column for column in RECORD if column not in records.columns]
    if missing:
        raise ClaimError(f"the records have no column {', '.join(missing)}")
    for claim_id in records["id"]:
        find_claim(claims, claim_id)
    repeated = records.loc[records["id"].duplicated(), "id"]
    if len(repeated):
        raise ClaimError(f"claim {repeated.iloc[0]!r} was recorded twice")
    numbers = records[["value", "low", "high"]].apply(pd.to_numeric)  # an end that was not recorded becomes NaN
    recorded = records.assign(**numbers).set_index("id").to_dict("index")
    return pd.DataFrame([_entry(claim, recorded.get(claim.id), scale) for claim in claims])


def _entry(claim: Claim, record: dict | None, scale: str) -> dict:
    start, stop = claim.confirm.ends
    copied = ("id", "paper", "where", "claim", "notebook", "statistic", "unit", "reference")
    entry = {name: getattr(claim, name) for name in copied}
    entry |= {"confirm": str(claim.confirm), "region_low": start, "region_high": stop}
    entry |= {"paper_value": claim.paper_value}
    if record is None:
        empty = dict.fromkeys(("value", "low", "high"), math.nan) | {"n": 0, "seeds": 0, "corpora": ""}
        return entry | empty | {"verdict": VERDICTS[3], "reason": "not recorded"}
    corpora = tuple(name for name in str(record["corpora"]).split(";") if name)
    evidence = Evidence(corpora, int(record["n"]), int(record["seeds"]), scale)
    judged, reason = verdict(claim, record["low"], record["high"], evidence)
    return entry | {name: record[name] for name in RECORD[1:]} | {"verdict": judged, "reason": reason}
