"""The ledger of claims in words and as a table, for readers who have never seen a claim's id; what it means for theirs.

Rows are those of `nli_lib.claims.ledger`; whatever comes from a table is escaped::

    ledger_table(table)                    # with filters, for a notebook and the book
    sections(read_lessons(), table)["do"]  # the advice whose claims all held, as Markdown

A lesson (book/lessons.yaml) names the claims that decide it and has one sentence for each way they can end. The
verdicts choose the sentence, and nobody chooses where it stands::

    do     every claim held, also after the correction for so many claims
    doubt  at least one claim did not hold, at both
    open   all else: inconclusive, not judged, inconclusive after the correction, not recorded at this scale

A lesson that names a chapter in place of claims is asked for every claim of that chapter by itself.
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
COUNTED = {"not held": "did not hold", VERDICTS[3]: "could not be judged"}  # the others as they are
SHARES = ("share", "accuracy")
POINTS = ("difference of accuracy", "difference of share", "difference of drops", "difference of flip rates")
NUMBER_AND_WORDS = re.compile(r"(-?[0-9.]+)( \(.*\))")  # a paper's number with a remark


def kind(unit: str) -> str:
    """How a reader says a number of this unit: "points", "share" (per cent) or "" (as it is)."""
    if unit.startswith(POINTS) or unit in ("accuracy a fold", "accuracy above chance"):
        return "points"
    return "share" if unit.startswith(SHARES) else ""


def quantity(value: float | str, unit: str, *, bare: bool = False) -> str:
    """A claim's number: shares in per cent, their differences in points, the rest in 3 digits.

    What is not a number (a paper's value in words) is returned as it is, a remark behind a number, too. `bare` leaves
    "points" out, for intervals.
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
    """(our number, its interval in brackets); the interval is "" where none was recorded.

    That of a share ends at 0 and at 100%, though a t interval need not.
    """
    ends = np.array([row["low"], row["high"]], float)
    ends = ends.clip(0, 1) if kind(row["unit"]) == "share" else ends
    low, high = (quantity(end, row["unit"], bare=True) for end in ends)
    return quantity(row["value"], row["unit"]), "" if "–" in (low, high) else f"[{low}, {high}]"


def region(row: pd.Series) -> str:
    """The values that would confirm a claim, in the unit of its numbers."""
    factor, sign = {"points": (100, " points"), "share": (100, "%"), "": (1, "")}[kind(row["unit"])]
    low, high = (f"{factor * row[end]:g}{sign}" for end in ("region_low", "region_high"))
    low, high = (re.sub(r"^(-?1 point)s$", r"\1", end) for end in (low, high))
    if math.isinf(row["region_low"]):
        return f"below {high}"
    return f"above {low}" if math.isinf(row["region_high"]) else f"between {low} and {high}"


def verdict_sentence(row: pd.Series) -> str:
    """One claim as Markdown, its verdict first: a refuted claim never stands alone."""
    if row["verdict"] == VERDICTS[3]:
        return f"{MARKS[VERDICTS[3]]} **Not judged** ({row['reason']}): {row['claim']}"
    paper = quantity(row["paper_value"], row["unit"])
    numbers = f"{row['unit']}: {' '.join(interval(row))}; would confirm: {region(row)}; the paper: {paper}"
    said = "; ".join([numbers, *notes(row)])
    return f"{MARKS[row['verdict']]} **{row['verdict'].capitalize()}:** {row['claim']} ({said})"


def fragile(row: pd.Series) -> str:
    """That a verdict does not survive the correction for so many claims, in words; "" where it does."""
    return "inconclusive after Benjamini-Hochberg" if row["verdict"] != row.get("corrected", row["verdict"]) else ""


def findable(row: pd.Series) -> str:
    """How far beyond the border the truth of an inconclusive claim would have been found, in words; "" of others."""
    size = quantity(row.get("detectable", math.nan), row["unit"]).lstrip("+")
    return f"found with a probability of 80% from {size} beyond the border" if row["verdict"] == VERDICTS[2] else ""


def notes(row: pd.Series) -> list[str]:
    """What a reader must know beside a verdict: why the claim is counted apart, whether it survives the correction,
    what could have been found, and whether its record is stale (column `stale`, where the table has it)."""
    apart = {"a question of ours": row["ours"], "declared after its first result": row["declared"] == "after"}
    stale = "from a stale record" if row.get("stale", False) and row["verdict"] != VERDICTS[3] else ""
    apart = ", ".join(why for why, true in apart.items() if true)
    return [note for note in (apart, fragile(row), findable(row), stale) if note]


def own_claims(table: pd.DataFrame) -> pd.Series:
    """Which rows are claims of the papers that were declared before their first result, as booleans; those from a stale
    record (column `stale`, where the table has it) are not counted."""
    stale = table.get("stale", pd.Series(False, table.index)).astype(bool) & (table["verdict"] != VERDICTS[3])
    return ~table["ours"].astype(bool) & (table["declared"] == "before") & ~stale


def verdict_counts(table: pd.DataFrame) -> str:
    """How many claims have each verdict after the correction, in words: "7 held, 2 did not hold, 3 inconclusive"."""
    counts = table.get("corrected", table["verdict"]).value_counts()  # older tables have no such column
    return ", ".join(f"{counts[each]} {COUNTED.get(each, each)}" for each in VERDICTS if each in counts) or "none"


def places(table: pd.DataFrame) -> pd.DataFrame:
    """Where the numbers of each claim lie on a line of its own from 0 to 100, for claims differ in unit.

    Columns value, low, high, paper (NaN where the paper has words), region_low and region_high; an open end of the
    confirming values lies at the end of the line.
    """
    paper = pd.to_numeric(table["paper_value"], errors="coerce")
    numbers = table[["value", "low", "high", "region_low", "region_high"]].assign(paper=paper).astype(float)
    finite = numbers.where(np.isfinite(numbers))
    first, width = finite.min(axis=1), (finite.max(axis=1) - finite.min(axis=1)).replace(0, 1)
    at = 10 + 80 * numbers.sub(first, axis=0).div(width, axis=0)
    return at.assign(**at[["region_low", "region_high"]].clip(0, 100)).round(1)


def ledger_table(table: pd.DataFrame) -> HTML:
    """The ledger as a table grouped by paper (ledger.html), with filters for paper and verdict and columns that sort.

    Columns `declared_in`, `declared_on`, `recorded_in` (`nli_lib.study.budgets`), where the table has them, say
    when a claim was declared. A judged claim's interval is drawn below its number: the confirming values are shaded,
    a diamond is the paper's number. In the book each row links to its chapter's page. On a phone a row becomes a card
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
    page = files.get_template("ledger.html").render(
        groups=groups,
        choices={"paper": [group["paper"] for group in groups], "verdict": found},
        titles=("Verdict", "Claim", "The paper", "Ours", "Chapter"),
        style=files.loader.get_source(files, "ledger.css")[0],
        script=files.loader.get_source(files, "ledger.js")[0],
        **{"marks": MARKS, "colours": COLOURS, "interval": interval, "quantity": quantity, "region": region},
        notes=notes,
    )
    return HTML(page)


# ---------------------------------------------------------------- lessons


LESSONS = BOOK / "lessons.yaml"
PLACES = ("do", "doubt", "open")
HELD, NOT_HELD, INCONCLUSIVE, NOT_JUDGED = VERDICTS
ABSENT = "*not recorded at this scale*"
NOTHING = "Nothing: no piece of advice belongs here at this scale."


class Lesson(Entry):
    """A piece of advice, the claims that decide it, and a sentence for each way they can end."""

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
    """All lessons in the file's order. A malformed one is a single error that names lesson and field."""
    return read_entries(path, Lesson)


def place(rows: pd.DataFrame, claims: int) -> str:
    """Where a lesson belongs that so many ``claims`` decide, one of `PLACES`; rows: those that the ledger has."""
    verdicts = [INCONCLUSIVE if fragile(row) else row["verdict"] for _, row in rows.iterrows()]
    if NOT_HELD in verdicts:
        return "doubt"
    return "do" if verdicts and len(verdicts) == claims and set(verdicts) == {HELD} else "open"


def placed(lessons: Sequence[Lesson], ledger: pd.DataFrame) -> list[tuple[str, Lesson, pd.DataFrame]]:
    """(place, lesson, the rows that put it there) in the order of ``lessons``.

    ledger: of `claims.ledger`; a claim that it lacks was not recorded, and decides nothing. A lesson of a chapter
    stands in every place to which a claim of the chapter belongs.
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


def ground(row: pd.Series) -> str:
    """One claim as an item of Markdown: the verdict, linked to its row of the ledger, the claim, our number."""
    verdict = f'<a href="../chapters/63_claims.html#{row["id"]}">{MARKS[row["verdict"]]} {row["verdict"]}</a>'
    number = f"{row['unit']}: {' '.join(interval(row)).strip()}"
    if row["verdict"] == NOT_JUDGED:
        number = ABSENT if row["reason"] == "not recorded" else row["reason"]
    where = f"{{doc}}`chapter {row['notebook'][:2]} </chapters/{row['notebook']}>`"
    return f"- {verdict}: {row['claim']} ({'; '.join([number, *notes(row)])}; {where})"


def lesson_text(lesson: Lesson, where: str, rows: pd.DataFrame) -> str:
    """A lesson as Markdown: the sentence for its place, then what it rests on."""
    grounds = [ground(row) for _, row in rows.iterrows()]
    grounds += [f"- `{id}`: {ABSENT}" for id in lesson.claims if id not in set(rows["id"])]
    grounds = grounds or [f"- Chapter {lesson.chapter[:2]}: {ABSENT}"]
    return "\n".join([f"**{lesson.title}.** {getattr(lesson, where)}", "", *grounds])


def sections(lessons: Sequence[Lesson], ledger: pd.DataFrame) -> dict[str, str]:
    """Markdown for each of `PLACES`, and under "count" how many answers stand in each, in words."""
    found = placed(lessons, ledger)
    texts = {each: [lesson_text(lesson, each, rows) for at, lesson, rows in found if at == each] for each in PLACES}
    n = {each: len(parts) for each, parts in texts.items()}
    count = f"{len(lessons)} questions are asked below. By the verdicts, {n['do']} of the answers are advice for "
    count += f"today, {n['doubt']} are warnings, and {n['open']} stay open."
    if len(found) > len(lessons):
        count += " A question whose claims are decided one by one can have an answer in more than one of these places."
    return {each: "\n\n".join(parts) or NOTHING for each, parts in texts.items()} | {"count": count}
