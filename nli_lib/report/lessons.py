"""What the ledger's verdicts mean for somebody with a corpus: each lesson's sentence is chosen by its claims' verdicts.

A lesson (book/lessons.yaml) names the claims that decide it and has one sentence for each way they can end. Nobody
chooses where it stands:

    do     every claim held, at 95% and at 99%
    doubt  at least one claim did not hold, at both
    open   all else: inconclusive, not judged, another verdict at 99%, not recorded at this scale

A lesson that names a chapter in place of claims is asked for every claim of that chapter by itself.
"""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from nli_lib.claims import VERDICTS, read_entries
from nli_lib.errors import UserError
from nli_lib.paths import BOOK
from nli_lib.report.ledger import MARKS, fragile, interval, notes

LESSONS = BOOK / "lessons.yaml"
PLACES = ("do", "doubt", "open")
HELD, NOT_HELD, INCONCLUSIVE, NOT_JUDGED = VERDICTS
ABSENT = "*not recorded at this scale*"
NOTHING = {
    "do": "Nothing yet: there is no advice whose claims all held here.",
    "doubt": "Nothing yet: no claim that decides a piece of advice was refuted here.",
    "open": "Nothing: every piece of advice was decided here.",
}


class LessonError(UserError, ValueError):
    """A lesson is malformed."""


class Lesson(BaseModel):
    """A piece of advice, the claims that decide it, and a sentence for each way they can end."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    return read_entries(Path(path), Lesson, LessonError)


def settled(row: pd.Series) -> str:
    """A claim's verdict where it is the same at 99%, and "inconclusive" where it is not."""
    return INCONCLUSIVE if fragile(row) else row["verdict"]


def place(rows: pd.DataFrame, claims: int) -> str:
    """Where a lesson belongs that so many ``claims`` decide, one of `PLACES`; rows: those that the ledger has."""
    verdicts = [settled(row) for _, row in rows.iterrows()]
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
    count = (
        f"{len(lessons)} questions are asked below. By the verdicts, {n['do']} of the answers are advice for today, "
        f"{n['doubt']} are warnings, and {n['open']} stay open."
    )
    if len(found) > len(lessons):
        count += " A question whose claims are decided one by one can have an answer in more than one of these places."
    return {each: "\n\n".join(parts) or NOTHING[each] for each, parts in texts.items()} | {"count": count}
