"""A lesson says what its claims' verdicts say, whatever they are. Alone: pytest tests/test_lessons.py"""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
import yaml

from nli_lib.claims import LEDGER, RECORD, VERDICTS, ledger, read_claims
from nli_lib.ledger import (
    ABSENT,
    NOTHING,
    PLACES,
    Lesson,
    LessonError,
    lesson_text,
    place,
    placed,
    read_lessons,
    sections,
)

HELD, NOT_HELD, INCONCLUSIVE, NOT_JUDGED = VERDICTS
WAYS = {"do": "Do this and that, always.", "doubt": "Do not trust this at all.", "open": "Nobody knows about this."}


def rows(*verdicts, notebook="21_z_filter", at_99=None):
    """Rows of a ledger with these verdicts, claims a, b, c ..."""
    made = pd.DataFrame(np.nan, index=range(len(verdicts)), columns=LEDGER, dtype=object)
    ids = list("abcdefgh"[: len(verdicts)])
    made = made.assign(id=ids, claim="Something is so.", notebook=notebook, unit="accuracy", reason="not recorded")
    made = made.assign(ours=False, declared="before", value=0.5, low=0.4, high=0.6)
    return made.assign(verdict=list(verdicts), verdict_99=list(at_99 or verdicts))


@pytest.mark.parametrize("verdicts", list(itertools.product(VERDICTS, repeat=2)), ids=" and ".join)
def test_by_the_definition(verdicts):
    expected = "doubt" if NOT_HELD in verdicts else "do" if verdicts == (HELD, HELD) else "open"
    assert place(rows(*verdicts), 2) == expected


def test_what_is_missing_or_changes_at_99_decides_nothing():
    assert place(rows(HELD), 2) == "open"  # the ledger lacks the second claim
    assert place(rows(NOT_HELD), 2) == "doubt"
    assert place(rows(), 2) == "open"
    assert place(rows(HELD, HELD, at_99=[HELD, INCONCLUSIVE]), 2) == "open"
    assert place(rows(NOT_HELD, HELD, at_99=[INCONCLUSIVE, HELD]), 2) == "open"


def test_a_chapter_is_asked_for_each_claim_by_itself():
    lesson = Lesson(title="One chapter", chapter="61_equal", **WAYS)
    table = pd.concat([rows(HELD, NOT_HELD, HELD, NOT_JUDGED, notebook="61_equal"), rows(NOT_HELD)])
    found = {where: list(part["id"]) for where, _, part in placed([lesson], table.reset_index(drop=True))}
    assert found == {"do": ["a", "c"], "doubt": ["b"], "open": ["d"]}
    [(where, _, part)] = placed([lesson], table[:0])
    assert where == "open" and lesson_text(lesson, where, part).endswith(f"- Chapter 61: {ABSENT}")


def test_the_text_has_one_sentence_and_every_claim():
    lesson = Lesson(title="A title", claims=("a", "b", "z"), **WAYS)
    text = sections([lesson], rows(HELD, NOT_HELD))["doubt"]
    assert text.startswith(f"**A title.** {WAYS['doubt']}") and WAYS["do"] not in text
    assert text.count("63_claims.html#") == 2 and f"- `z`: {ABSENT}" in text
    assert "✓ held" in text and "✗ not held" in text and "50.0% [40.0%, 60.0%]" in text
    assert "chapter 21 </chapters/21_z_filter>" in text
    nothing = sections([lesson], rows()[:0])
    assert (nothing["do"], nothing["doubt"]) == (NOTHING["do"], NOTHING["doubt"]) and WAYS["open"] in nothing["open"]
    assert "0 of the answers are advice" in nothing["count"] and "1 stay open" in nothing["count"]


def test_a_claim_from_a_stale_record_says_so_and_keeps_its_place():
    lesson = Lesson(title="A title", claims=("a", "b"), **WAYS)
    text = sections([lesson], rows(HELD, HELD).assign(stale=[True, False]))["do"]
    assert [("from a stale record" in line) for line in text.splitlines()[-2:]] == [True, False]


def test_a_malformed_lesson_is_named(tmp_path):
    path = tmp_path / "lessons.yaml"
    path.write_text("- {title: A lesson, claims: [a], do: long enough a sentence, doubt: x, open: y}")
    with pytest.raises(LessonError, match=r"lessons.yaml: lesson 1: field doubt"):
        read_lessons(path)
    path.write_text(yaml.safe_dump([{"title": "Both at once", "claims": ["a"], "chapter": "61_x", **WAYS}]))
    with pytest.raises(LessonError, match="give claims or a chapter"):
        read_lessons(path)


# ---------------------------------------------------------------- the project's own


def test_lessons_name_declared_claims_once_and_type_no_number():
    lessons, declared = read_lessons(), {claim.id for claim in read_claims()}
    named = [id for lesson in lessons for id in lesson.claims]
    assert set(named) <= declared and len(named) == len(set(named))
    for lesson in lessons:
        for text in (lesson.title, lesson.do, lesson.doubt, lesson.open):
            assert not re.search(r"\d", text), text
        assert len({lesson.do, lesson.doubt, lesson.open}) == 3
    for lesson in lessons:  # what is open must not be answered
        assert re.search(r"undecided|cannot be (said|decided)|not (shown|decided)", lesson.open), lesson.open


def recorded(seed):
    """Random records of four claims in five, judged by the ledger's own rules."""
    random, claims = np.random.default_rng(seed), read_claims()
    middle, width = random.normal(0, 2, len(claims)), random.exponential(0.3, len(claims))
    some = [
        (claim.id, m, m - w, m + w, 10**6, 5, "pairs and trainings", ";".join(claim.evidence))
        for claim, m, w in zip(claims, middle, width, strict=True)
        if random.random() < 0.8
    ]
    return ledger(claims, pd.DataFrame(some, columns=RECORD), "full")


def test_the_count_says_where_an_answer_stands_more_than_once():
    lessons = read_lessons()
    for table in map(recorded, range(3)):
        places = [where for where, _, _ in placed(lessons, table)]
        text = sections(lessons, table)["count"]
        assert text.startswith(f"{len(lessons)} questions")
        assert f"{places.count('do')} of the answers are advice" in text
        assert ("more than one of these places" in text) == (len(places) > len(lessons))


def test_each_lesson_stands_once_under_any_verdicts():
    whole, seen = [lesson for lesson in read_lessons() if lesson.claims], set()
    for table in map(recorded, range(6)):
        found = placed(whole, table)
        assert [lesson.title for _, lesson, _ in found] == [lesson.title for lesson in whole]
        for where, lesson, part in found:
            held, refuted = ((part["verdict"] == each) & (part["verdict_99"] == each) for each in (HELD, NOT_HELD))
            assert (where == "doubt") == refuted.any()
            assert where != "do" or (held.all() and len(part) == len(lesson.claims))
            seen.add(where)
    assert seen == set(PLACES)
