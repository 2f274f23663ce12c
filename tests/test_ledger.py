"""The ledger in words and as a table, and what lessons make of it. Run alone: pytest tests/test_ledger.py"""

import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from cells import functions

from nli_lib import ledger as words
from nli_lib.claims import LEDGER, RECORD, VERDICTS, ledger, read_claims
from nli_lib.errors import StudyError
from nli_lib.ledger import Lesson, ledger_table, verdict_sentence

HELD, NOT_HELD, INCONCLUSIVE, NOT_JUDGED = VERDICTS


def claims(**changes):
    """A ledger of two claims: one held, one not judged."""
    held = {
        "id": "wanli-one", "paper": "wanli", "where": "Table 1", "claim": "Half is more.", "notebook": "10_data_map",
        "statistic": "A share of pairs.", "unit": "share", "reference": "SNLI's five annotators", "region_low": 0.5,
        "region_high": math.inf, "paper_value": "0.58", "value": 0.62, "low": 0.55, "high": 0.7, "n": 1514, "seeds": 3,
        "verdict": HELD, "reason": "the interval lies inside", "corrected": HELD, "over": "pairs",
        "declared": "before", "ours": False, "trained": True, "detectable": 0.1}  # fmt: skip
    empty = {"value": math.nan, "low": math.nan, "high": math.nan, "n": 0, "seeds": 0}
    other = {**held, **empty, "id": "zfilter-two", "paper": "zfilter", "verdict": NOT_JUDGED, "reason": "not recorded"}
    other["corrected"] = NOT_JUDGED
    return pd.DataFrame([held | changes, other])


def test_numbers_are_said_in_their_unit():
    numbers = [
        (0.2878, "share", "28.8%"), (0.5436, "accuracy", "54.4%"), (0.19458, "Spearman correlation", "0.195"),
        (-0.0667, "difference of accuracy", "-6.7 points"), (0.0192, "accuracy a fold", "+1.9 points"),
        (-0.0988, "difference of flip rates", "-9.9 points"), (math.nan, "share", "–"),
        ("0.1316 (rows 11 and 13)", "difference of accuracy", "+13.2 points (rows 11 and 13)"),
        ("0 (of the fifteen printed)", "rank", "0 (of the fifteen printed)"),
        ("several (picture)", "share", "several (picture)")]  # fmt: skip
    assert [words.quantity(value, unit) for value, unit, _ in numbers] == [said for *_, said in numbers]


@pytest.mark.parametrize(("value", "low", "high", "unit", "said"), [
    (0.01, -0.02, 0.04, "share", ("1.0%", "[0.0%, 4.0%]")),  # a share ends at nothing and at all
    (0.99, 0.96, 1.02, "share", ("99.0%", "[96.0%, 100.0%]")),
    (0.01, -0.02, 0.04, "difference of shares", ("+1.0 points", "[-2.0, +4.0]")),
    (math.nan, math.nan, math.nan, "share", ("–", ""))])  # fmt: skip
def test_the_interval_is_said_in_the_unit_of_its_number(value, low, high, unit, said):
    assert words.interval(claims(value=value, low=low, high=high, unit=unit).iloc[0]) == said


@pytest.mark.parametrize(("low", "high", "unit", "said"), [
    (0.5, math.inf, "share", "above 50%"), (-0.1, 0.1, "difference of accuracy", "between -10 points and 10 points"),
    (0.01, math.inf, "difference of accuracy", "above 1 point"), (-math.inf, 2, "ratio", "below 2")])  # fmt: skip
def test_a_region_is_said_in_the_unit_of_its_numbers(low, high, unit, said):
    assert words.region(pd.Series({"region_low": low, "region_high": high, "unit": unit})) == said


def test_a_claim_never_stands_without_its_verdict():
    held, untested = (verdict_sentence(row) for _, row in claims().iterrows())
    numbers = "share: 62.0% [55.0%, 70.0%]; would confirm: above 50%; the paper: 58.0%"
    assert held == f"✓ **Held:** Half is more. ({numbers})"
    assert untested == "– **Not judged** (not recorded): Half is more."
    assert words.verdict_counts(claims()) == "1 held, 1 could not be judged"


def test_ours_and_after_are_counted_apart():
    table = pd.concat([claims(), claims(ours=True).iloc[:1], claims(declared="after").iloc[:1]])
    assert words.own_claims(table).tolist() == [True, True, False, False]
    assert words.verdict_counts(table) == "3 held, 1 could not be judged" and words.verdict_counts(table[:0]) == "none"
    assert words.verdict_counts(table[words.own_claims(table)]) == "1 held, 1 could not be judged"
    said = [verdict_sentence(row) for _, row in table[2:].iterrows()]
    assert ["a question of ours" in each for each in said] == [True, False]
    assert ["declared after" in each for each in said] == [False, True]
    html = ledger_table(table).data
    assert "<small>1 held</small>" in html, "the heading counts the paper's own"
    assert html.count("a question of ours") == html.count("declared after its first result") == 1


def test_a_verdict_that_does_not_survive_the_correction_says_so_and_an_open_one_what_could_have_been_found():
    row, said = claims(corrected=INCONCLUSIVE).iloc[0], "inconclusive after Benjamini-Hochberg"
    assert words.fragile(row) == said and said in verdict_sentence(row)
    assert said in ledger_table(claims(corrected=INCONCLUSIVE)).data
    open_claim = claims(verdict=INCONCLUSIVE, corrected=INCONCLUSIVE, unit="difference of accuracy").iloc[0]
    assert words.notes(open_claim) == ["found with a probability of 80% from 10.0 points beyond the border"]
    assert words.fragile(claims().iloc[0]) == words.fragile(claims().iloc[1]) == ""


def test_a_verdict_from_a_stale_record_says_so():
    table = claims(ours=True).assign(stale=True)
    held, untested = (row for _, row in table.iterrows())
    assert words.own_claims(claims().assign(stale=True)).tolist() == [False, True], "no count has it"
    assert not words.own_claims(claims().assign(beyond=True)).any()
    assert words.notes(held) == ["a question of ours", "from a stale record"]
    assert words.notes(untested) == [], "what is not judged has no verdict to doubt"
    assert "from a stale record" in verdict_sentence(held)
    assert ledger_table(table).data.count("from a stale record") == 1
    assert "stale" not in ledger_table(table.assign(stale=False)).data + ledger_table(claims()).data


def test_the_commits_of_a_declaration_are_shown_where_they_are_known():
    html = ledger_table(claims(declared_in="abc1234", declared_on="2026-01-02", recorded_in=math.nan)).data
    assert "Declared on 2026-01-02 (<code>abc1234</code>)" in html and "first recorded" not in html
    assert "Declared on" not in ledger_table(claims()).data


def test_the_table_groups_by_paper_and_says_who_judged():
    html = ledger_table(claims()).data
    assert re.findall(r'<tbody data-paper="([^"]+)">', html) == ["WANLI", "Debiased generation"]
    assert html.count("<tr data-verdict=") == 2
    assert "SNLI&#39;s five annotators" in html and 'href="10_data_map.html"' in html
    assert "Interval over pairs: n = 1,514, 3 trainings." in html
    assert "http" not in html, "no network"


def test_a_judged_claim_is_drawn_on_a_line_of_its_own():
    held = words.places(claims()).iloc[0].to_dict()
    # 0.5 to 0.7 on 10 to 90: 400 a unit
    assert held == {"value": 58, "low": 30, "high": 90, "region_low": 10, "region_high": 100, "paper": 42}
    html = ledger_table(claims()).data
    assert html.count("<svg") == 1, "a claim that was not judged has no drawing"
    assert 'd="M30.0 7H90.0"' in html and 'd="M42.0 3' in html and 'width="90.0"' in html
    assert 'class="paper" d=' not in ledger_table(claims(paper_value="several (picture)")).data
    below = words.places(claims(region_low=-math.inf, region_high=0.5, low=0.6, value=0.62, high=0.6)).iloc[0]
    assert (below["region_low"], below["region_high"]) == (0, 10), "an interval need not hold its value"
    assert "nan" not in ledger_table(claims(low=math.nan, high=math.nan)).data


def test_text_of_a_claim_is_text():
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    texts = dict.fromkeys(("claim", "where", "statistic", "reference", "paper_value", "notebook", "id"), hostile)
    html = ledger_table(claims(**texts)).data
    assert "<img" not in html and html.count("<script>") == 1 and "alert(1)" in html


# ---------------------------------------------------------------- chapter 63's cells

CELLS = functions("63_claims", study=SimpleNamespace())


def test_verdicts_that_changed_say_why():
    then = {"id": ["wanli-one", "zfilter-two"], "verdict": ["not held", "not judged"], "mended": ["", ""]}
    changed = CELLS.changed_verdicts(claims(), pd.DataFrame(then))
    assert changed.values.tolist() == [["WANLI", "Half is more.", "not held", "held", "the interval lies inside"]]
    changed = CELLS.changed_verdicts(claims(), pd.DataFrame(then | {"mended": ["The test was another.", ""]}))
    assert changed["why"].tolist() == ["The test was another."]


def test_verdict_bars_count_the_claims_of_each_paper():
    table = ledger(read_claims(), pd.DataFrame(columns=RECORD), "small")
    table = table[words.own_claims(table)].reset_index(drop=True)
    table.loc[:1, "corrected"] = "held"
    axes = CELLS.verdict_bars(table, "Claims").axes[0]
    held, *_, untested = ([bar.get_width() for bar in bars] for bars in axes.containers)
    assert sum(held) == 2 and sum(untested) == len(table) - 2
    names = {label.get_text() for label in axes.get_yticklabels()}
    assert "WANLI" in names and "zfilter" not in names


# ---------------------------------------------------------------- lessons

WAYS = {"do": "Do this and that, always.", "doubt": "Do not trust this at all.", "open": "Nobody knows about this."}


def rows(*verdicts, notebook="21_z_filter", after=None):
    """Rows of a ledger with these verdicts, claims a, b, c ..."""
    made = pd.DataFrame(np.nan, index=range(len(verdicts)), columns=LEDGER, dtype=object)
    ids = list("abcdefgh"[: len(verdicts)])
    made = made.assign(id=ids, claim="Something is so.", notebook=notebook, unit="accuracy", reason="not recorded")
    made = made.assign(ours=False, declared="before", value=0.5, low=0.4, high=0.6)
    return made.assign(verdict=list(verdicts), corrected=list(after or verdicts))


@pytest.mark.parametrize("verdicts", list(itertools.product(VERDICTS, repeat=2)), ids=" and ".join)
def test_by_the_definition(verdicts):
    expected = "doubt" if NOT_HELD in verdicts else "do" if verdicts == (HELD, HELD) else "open"
    assert words.place(rows(*verdicts), 2) == expected


def test_what_is_missing_or_changes_at_99_decides_nothing():
    assert words.place(rows(HELD), 2) == words.place(rows(), 2) == "open"  # the ledger lacks the second claim, or both
    assert words.place(rows(NOT_HELD), 2) == "doubt"
    assert words.place(rows(HELD, HELD, after=[HELD, INCONCLUSIVE]), 2) == "open"
    assert words.place(rows(NOT_HELD, HELD, after=[INCONCLUSIVE, HELD]), 2) == "open"


def test_a_chapter_is_asked_for_each_claim_by_itself():
    lesson = Lesson(title="One chapter", chapter="61_equal", **WAYS)
    table = pd.concat([rows(HELD, NOT_HELD, HELD, NOT_JUDGED, notebook="61_equal"), rows(NOT_HELD)])
    found = {where: list(part["id"]) for where, _, part in words.placed([lesson], table.reset_index(drop=True))}
    assert found == {"do": ["a", "c"], "doubt": ["b"], "open": ["d"]}
    [(where, _, part)] = words.placed([lesson], table[:0])
    assert where == "open" and words.sections([lesson], part)["open"].endswith("61: *not recorded at this scale*")


def test_the_text_has_one_sentence_and_every_claim():
    lesson = Lesson(title="A title", claims=("a", "b", "z"), **WAYS)
    text = words.sections([lesson], rows(HELD, NOT_HELD))["doubt"]
    assert text.startswith(f"**A title.** {WAYS['doubt']}") and WAYS["do"] not in text
    assert text.count("63_claims.html#") == 2 and "- `z`: *not recorded at this scale*" in text
    for part in ("✓ held", "✗ not held", "50.0% [40.0%, 60.0%]", "chapter 21 </chapters/21_z_filter>"):
        assert part in text
    nothing = words.sections([lesson], rows()[:0])
    assert all(nothing[each].startswith("Nothing yet: ") for each in ("do", "doubt"))
    assert WAYS["open"] in nothing["open"]
    assert "0 of the answers are advice" in nothing["count"] and "1 stay open" in nothing["count"]
    lesson = Lesson(title="A title", claims=("a", "b"), **WAYS)
    text = words.sections([lesson], rows(HELD, HELD).assign(stale=[True, False]))["do"]
    assert ["from a stale record" in line for line in text.splitlines()[-2:]] == [True, False]


def test_a_malformed_lesson_is_named(tmp_path):
    path, both = tmp_path / "lessons.yaml", {"title": "Both at once", "claims": ["a"], "chapter": "61_x", **WAYS}
    for text, message in {
        "- {title: A lesson, claims: [a], do: long enough a sentence, doubt: x, open: y}": "lesson 1: field doubt",
        yaml.safe_dump([both]): "give claims or a chapter",
    }.items():
        path.write_text(text)
        with pytest.raises(StudyError, match=rf"lessons\.yaml: .*{message}"):
            words.read_lessons(path)


def test_lessons_name_declared_claims_once_and_type_no_number():
    lessons, declared = words.read_lessons(), {claim.id for claim in read_claims()}
    named = [id for lesson in lessons for id in lesson.claims]
    assert set(named) <= declared and len(named) == len(set(named))
    for lesson in lessons:
        assert not re.search(r"\d", " ".join([lesson.title, lesson.do, lesson.doubt, lesson.open])), lesson.title
        assert len({lesson.do, lesson.doubt, lesson.open}) == 3
        # what is open must not be answered
        assert re.search(r"undecided|cannot be (said|decided)|not (shown|decided)", lesson.open), lesson.open


def recorded(declared, seed):
    """A ledger of random records of four claims in five, judged by the ledger's own rules."""
    random = np.random.default_rng(seed)
    middle, width = random.normal(0, 2, len(declared)), random.exponential(0.3, len(declared))
    some = [
        (claim.id, m, m - w, m + w, 10**6, 5, "pairs and trainings", ";".join(claim.evidence))
        for claim, m, w in zip(declared, middle, width, strict=True) if random.random() < 0.8]  # fmt: skip
    return ledger(declared, pd.DataFrame(some, columns=RECORD), "full")


def test_each_lesson_stands_where_any_verdicts_put_it():
    lessons, declared, seen = words.read_lessons(), read_claims(), set()
    whole = [lesson for lesson in lessons if lesson.claims]
    for table in (recorded(declared, seed) for seed in range(6)):
        found = words.placed(whole, table)
        assert [lesson.title for _, lesson, _ in found] == [lesson.title for lesson in whole]
        for where, lesson, part in found:
            held, refuted = ((part["verdict"] == each) & (part["corrected"] == each) for each in (HELD, NOT_HELD))
            assert (where == "doubt") == refuted.any()
            assert where != "do" or (held.all() and len(part) == len(lesson.claims))
            seen.add(where)
        # the count says where an answer stands more than once
        places, text = [where for where, _, _ in words.placed(lessons, table)], words.sections(lessons, table)["count"]
        assert text.startswith(f"{len(lessons)} questions")
        assert f"{places.count('do')} of the answers are advice" in text
        assert ("more than one of these places" in text) == (len(places) > len(lessons))
    assert seen == set(words.PLACES)
