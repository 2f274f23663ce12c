"""The ledger of claims as sentences and a table, for readers who do not know the claims' ids, and its advice.

Rows come from `nli_lib.claims.ledger`; everything from a table is escaped::

    ledger_table(table)                    # with filters, for a notebook and the book
    sections(read_lessons(), table)["do"]  # advice with claims that all held, as Markdown

A lesson (book/lessons.yaml) names the claims that decide it and has one sentence for each outcome. The verdicts choose
the sentence and its place::

    do     every claim held, also after the correction for the number of claims
    doubt  at least one claim did not hold, before and after the correction
    open   all others: inconclusive, not judged, inconclusive after the correction, not recorded at this scale

A lesson that names a chapter instead of claims is decided for every claim of that chapter separately.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import HTML
from jinja2 import Environment, FileSystemLoader
from pydantic import Field, model_validator

from nli_lib.claims import VERDICTS, Entry, read_entries
from nli_lib.names import unsigned_zero
from nli_lib.paths import BOOK
from nli_lib.plots import COLOURS

PAPERS = {
    "wanli": "WANLI",
    "zfilter": "Debiased generation",
    "consensus": "Consensus cleaning",
    "disco": "DISCO",
    "difficulty": "Test-set difficulty",
}
MARKS = dict(zip(VERDICTS, "✓✗?–", strict=True))
COUNTED = {"not held": "did not hold", VERDICTS[3]: "could not be judged"}  # other verdicts are used as they are
SHARES = ("share", "accuracy")
POINTS = ("difference of accuracy", "difference of share", "difference of drops", "difference of flip rates")
NUMBER_AND_WORDS = re.compile(r"(-?[0-9.]+)( \(.*\))")  # a paper's number with a remark


def kind(unit: str) -> str:
    """The form in which a number of this unit is shown: "points", "share" (per cent) or "" (unchanged)."""
    if unit.startswith(POINTS) or unit in ("accuracy a fold", "accuracy above chance"):
        return "points"
    return "share" if unit.startswith(SHARES) else ""


def quantity(value: float | str, unit: str, *, bare: bool = False) -> str:
    """Format a claim's number: shares in per cent, their differences in points, others with 3 digits.

    Text (a paper's value in words, a remark after a number) is not changed. `bare` leaves "points" out, for intervals.
    """
    if found := NUMBER_AND_WORDS.fullmatch(str(value)):
        return quantity(found[1], unit, bare=bare) + found[2]
    try:
        value = float(value)
    except ValueError:
        return str(value)
    if math.isnan(value):
        return "–"
    if kind(unit) == "points":
        return unsigned_zero(f"{100 * value:+.1f}") + ("" if bare else " points")
    return f"{value:.1%}" if kind(unit) == "share" else f"{value:.3g}"


def interval(row: pd.Series) -> tuple[str, str]:
    """(our number, its interval in brackets); the interval is "" if none was recorded.

    The interval of a share is cut at 0 and 100%, which a t interval may exceed.
    """
    ends = np.array([row["low"], row["high"]], float)
    ends = ends.clip(0, 1) if kind(row["unit"]) == "share" else ends
    low, high = (quantity(end, row["unit"], bare=True) for end in ends)
    return quantity(row["value"], row["unit"]), "" if "–" in (low, high) else f"[{low}, {high}]"


def region(row: pd.Series) -> str:
    """The values that would confirm a claim, in the unit of its numbers."""
    factor, sign = {"points": (100, " points"), "share": (100, "%"), "": (1, "")}[kind(row["unit"])]
    ends = (f"{factor * row[end]:g}{sign}" for end in ("region_low", "region_high"))
    low, high = (re.sub(r"^(-?1 point)s$", r"\1", end) for end in ends)
    if math.isinf(row["region_low"]):
        return f"below {high}"
    return f"above {low}" if math.isinf(row["region_high"]) else f"between {low} and {high}"


def verdict_sentence(row: pd.Series) -> str:
    """One claim as Markdown, verdict first, so that a refuted claim never appears without it."""
    if row["verdict"] == VERDICTS[3]:
        return f"{MARKS[VERDICTS[3]]} **Not judged** ({row['reason']}): {row['claim']}"
    paper = quantity(row["paper_value"], row["unit"])
    numbers = f"{row['unit']}: {' '.join(interval(row))}; would confirm: {region(row)}; the paper: {paper}"
    said = "; ".join([numbers, *notes(row)])
    return f"{MARKS[row['verdict']]} **{row['verdict'].capitalize()}:** {row['claim']} ({said})"


def fragile(row: pd.Series) -> str:
    """A remark that a verdict does not survive the correction for the number of claims; "" if it does."""
    return "inconclusive after Benjamini-Hochberg" if row["verdict"] != row.get("corrected", row["verdict"]) else ""


def notes(row: pd.Series) -> list[str]:
    """Remarks on a verdict: why the claim is counted separately, whether it survives the correction, what could have
    been detected, and whether its record is stale (column `stale`, if the table has it)."""
    apart = {"a question of ours": row["ours"], "declared after its first result": row["declared"] == "after"}
    stale = "from a stale record" if row.get("stale", False) and row["verdict"] != VERDICTS[3] else ""
    apart = ", ".join(why for why, true in apart.items() if true)
    size = quantity(row.get("detectable", math.nan), row["unit"]).lstrip("+")
    found = f"found with a probability of 80% from {size} beyond the border" if row["verdict"] == VERDICTS[2] else ""
    return [note for note in (apart, fragile(row), found, stale) if note]


def own_claims(table: pd.DataFrame) -> pd.Series:
    """Mark the rows with claims of the papers that were declared before their first result; those from a stale record
    (column `stale`) and those that no run at this scale can judge (`beyond`) are not counted, if the table says so."""
    stale, beyond = (table.get(name, pd.Series(False, table.index)).astype(bool) for name in ("stale", "beyond"))
    left_out = table["ours"].astype(bool) | beyond | (stale & (table["verdict"] != VERDICTS[3]))
    return ~left_out & (table["declared"] == "before")


def verdict_counts(table: pd.DataFrame) -> str:
    """Number of claims with each verdict after the correction, as text: "7 held, 2 did not hold, 3 inconclusive"."""
    counts = table.get("corrected", table["verdict"]).value_counts()  # older tables do not have this column
    return ", ".join(f"{counts[each]} {COUNTED.get(each, each)}" for each in VERDICTS if each in counts) or "none"


def places(table: pd.DataFrame) -> pd.DataFrame:
    """Positions of each claim's numbers on a separate line from 0 to 100, because claims differ in unit.

    Columns value, low, high, paper (NaN if the paper has words), region_low and region_high; an open end of the
    confirming values is the end of the line.
    """
    paper = pd.to_numeric(table["paper_value"], errors="coerce")
    numbers = table[["value", "low", "high", "region_low", "region_high"]].assign(paper=paper).astype(float)
    finite = numbers.where(np.isfinite(numbers))
    first, width = finite.min(axis=1), (finite.max(axis=1) - finite.min(axis=1)).replace(0, 1)
    at = 10 + 80 * numbers.sub(first, axis=0).div(width, axis=0)
    return at.assign(**at[["region_low", "region_high"]].clip(0, 100)).round(1)


def ledger_table(table: pd.DataFrame) -> HTML:
    """The ledger as a table grouped by paper (ledger.html), with filters for paper and verdict and columns that sort.

    The columns `declared_in`, `declared_on`, `recorded_in` (`nli_lib.study.budgets`), if the table has them, show when
    a claim was declared. A judged claim's interval is drawn below its number: the confirming values are shaded, and a
    diamond is the paper's number. In the book each row links to its chapter's page. On a phone a row becomes a card
    with the verdict on top.
    """
    files = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    at = places(table).astype(object)
    table = table.assign(at=at.where(at.notna(), None).to_dict("records"))
    groups = []
    for key, rows in table.fillna({"reference": "", "over": ""}).groupby("paper", sort=False):
        counts = verdict_counts(rows[own_claims(rows)])
        groups.append({"key": key, "paper": PAPERS[key], "counts": counts, "rows": rows.to_dict("records")})
    found = [verdict for verdict in VERDICTS if verdict in set(table["verdict"])]
    choices = {"paper": [group["paper"] for group in groups], "verdict": found}
    known = {"marks": MARKS, "colours": COLOURS, "interval": interval, "quantity": quantity, "region": region}
    return HTML(files.get_template("ledger.html").render(groups=groups, choices=choices, notes=notes, **known))


# ---------------------------------------------------------------- lessons


LESSONS = BOOK / "lessons.yaml"
PLACES = ("do", "doubt", "open")
HELD, NOT_HELD, INCONCLUSIVE, _ = VERDICTS
FILES = Environment(loader=FileSystemLoader(Path(__file__).parent), trim_blocks=True)


class Lesson(Entry):
    """A piece of advice, the claims that decide it, and a sentence for each outcome."""

    title: str = Field(min_length=5, description="what it is about, without an outcome")
    claims: tuple[str, ...] = Field((), description="ids in book/claims.yaml that decide it together")
    chapter: str = Field("", description="a notebook, each of whose claims is decided by itself")
    do: str = Field(min_length=20, description="said where every claim held")
    doubt: str = Field(min_length=20, description="said where a claim did not hold")
    open: str = Field(min_length=20, description="said where the verdicts decide neither")

    @model_validator(mode="after")
    def _claims_or_chapter(self) -> "Lesson":
        if bool(self.claims) == bool(self.chapter):
            raise ValueError(f"{self.title!r}: give claims or a chapter, and not both")
        return self


def read_lessons(path: Path = LESSONS) -> list[Lesson]:
    """All lessons in the file's order. A malformed one raises a single error that names lesson and field."""
    return read_entries(path, Lesson)


def place(rows: pd.DataFrame, claims: int) -> str:
    """The place of a lesson, one of `PLACES`, from the number of its ``claims`` and their rows in the ledger."""
    verdicts = [INCONCLUSIVE if fragile(row) else row["verdict"] for _, row in rows.iterrows()]
    if NOT_HELD in verdicts:
        return "doubt"
    return "do" if verdicts and len(verdicts) == claims and set(verdicts) == {HELD} else "open"


def placed(lessons: Sequence[Lesson], ledger: pd.DataFrame) -> list[tuple[str, Lesson, pd.DataFrame]]:
    """(place, lesson, the deciding rows) in the order of ``lessons``.

    ledger: from `claims.ledger`; a claim without a row was not recorded and decides nothing. A lesson of a chapter
    appears in every place to which a claim of the chapter belongs.
    """
    found = []
    for lesson in lessons:
        if lesson.claims:
            rows = ledger[ledger["id"].isin(lesson.claims)]
            found.append((place(rows, len(lesson.claims)), lesson, rows))
            continue
        rows = ledger[ledger["notebook"] == lesson.chapter]
        own = pd.Series([place(rows.loc[[at]], 1) for at in rows.index], index=rows.index, dtype=object)
        found += [(each, lesson, rows[own == each]) for each in PLACES if (own == each).any()]
        found += [] if len(rows) else [("open", lesson, rows)]
    return found


def sections(lessons: Sequence[Lesson], ledger: pd.DataFrame) -> dict[str, str]:
    """Markdown for each of `PLACES`, and under "count" a text with the number of answers in each."""
    found, template = placed(lessons, ledger), FILES.get_template("lessons.md")
    made = template.make_module({"marks": MARKS, "interval": interval, "notes": notes})
    parts = {each: [(lesson, rows.to_dict("records")) for at, lesson, rows in found if at == each] for each in PLACES}
    texts = {each: made.section(each, part).strip() for each, part in parts.items()}
    return texts | {"count": made.count(len(lessons), **{each: len(part) for each, part in parts.items()}).strip()}
