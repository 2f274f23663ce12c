"""The ledger in words and as a table. Run alone: pytest tests/test_ledger.py"""

import math
import re

import pandas as pd
import pytest

from nli_lib.claims import VERDICTS
from nli_lib.ledger import (
    changed_verdicts,
    fragile,
    interval,
    ledger_table,
    notes,
    own_claims,
    places,
    quantity,
    region,
    verdict_counts,
    verdict_sentence,
)


def claims(**changes):
    """A ledger of two claims: one held, one not judged."""
    held = {
        "id": "wanli-one", "paper": "wanli", "where": "Table 1", "claim": "Half is more.", "notebook": "10_data_map",
        "statistic": "A share of pairs.", "unit": "share", "reference": "SNLI's five annotators", "region_low": 0.5,
        "region_high": math.inf, "paper_value": "0.58", "value": 0.62, "low": 0.55, "high": 0.7, "n": 1514, "seeds": 3,
        "verdict": VERDICTS[0], "reason": "the interval lies inside", "verdict_99": VERDICTS[0], "over": "pairs",
        "declared": "before", "ours": False, "trained": True,
    }  # fmt: skip
    empty = {"value": math.nan, "low": math.nan, "high": math.nan, "n": 0, "seeds": 0}
    other = {**held, **empty, "id": "zfilter-two", "paper": "zfilter", "verdict": VERDICTS[3], "reason": "not recorded"}
    return pd.DataFrame([held | changes, other])


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.2878, "share", "28.8%"),
        (0.5436, "accuracy", "54.4%"),
        (-0.0667, "difference of accuracy", "-6.7 points"),
        (0.0192, "accuracy a fold", "+1.9 points"),
        (0.19458, "Spearman correlation", "0.195"),
        (-0.0988, "difference of flip rates", "-9.9 points"),
        ("0.1316 (rows 11 and 13)", "difference of accuracy", "+13.2 points (rows 11 and 13)"),
        ("0 (of the fifteen printed)", "rank", "0 (of the fifteen printed)"),
        ("several (picture)", "share", "several (picture)"),
        (math.nan, "share", "–"),
    ],
)
def test_numbers_are_said_in_their_unit(value, unit, said):
    assert quantity(value, unit) == said


def test_the_interval_of_a_share_ends_at_nothing_and_at_all():
    few = claims(value=0.01, low=-0.02, high=0.04).iloc[0]
    assert interval(few) == ("1.0%", "[0.0%, 4.0%]")
    nearly_all = claims(value=0.99, low=0.96, high=1.02).iloc[0]
    assert interval(nearly_all) == ("99.0%", "[96.0%, 100.0%]")
    gain = claims(unit="difference of shares", value=0.01, low=-0.02, high=0.04).iloc[0]
    assert interval(gain) == ("+1.0 points", "[-2.0, +4.0]")
    assert interval(claims().iloc[1]) == ("–", "")


def test_a_region_is_said_in_the_unit_of_its_numbers():
    assert region(claims().iloc[0]) == "above 50%"
    both = pd.Series({"region_low": -0.1, "region_high": 0.1, "unit": "difference of accuracy"})
    assert region(both) == "between -10 points and 10 points"
    one = pd.Series({"unit": "difference of accuracy", "region_low": 0.01, "region_high": math.inf})
    assert region(one) == "above 1 point"
    below = pd.Series({"region_low": -math.inf, "region_high": 2, "unit": "ratio"})
    assert region(below) == "below 2"


def test_a_claim_never_stands_without_its_verdict():
    held, untested = (verdict_sentence(row) for _, row in claims().iterrows())
    assert held == (
        "✓ **Held:** Half is more. (share: 62.0% [55.0%, 70.0%]; would confirm: above 50%; the paper: 58.0%)"
    )
    assert untested == "– **Not judged** (not recorded): Half is more."
    assert verdict_counts(claims()) == "1 held, 1 could not be judged"


def test_ours_and_after_are_counted_apart():
    table = pd.concat([claims(), claims(ours=True).iloc[:1], claims(declared="after").iloc[:1]])
    assert own_claims(table).tolist() == [True, True, False, False]
    assert verdict_counts(table) == "3 held, 1 could not be judged"
    assert verdict_counts(table[own_claims(table)]) == "1 held, 1 could not be judged"
    assert verdict_counts(table[:0]) == "none"
    assert "<small>1 held</small>" in ledger_table(table).data, "the heading counts the paper's own"
    said = [verdict_sentence(row) for _, row in table.iterrows()]
    assert [("a question of ours" in each, "declared after" in each) for each in said[2:]] == [
        (True, False),
        (False, True),
    ]
    html = ledger_table(table).data
    assert html.count("a question of ours") == html.count("declared after its first result") == 1


def test_a_verdict_that_changes_at_99_percent_says_so():
    row = claims(verdict_99="inconclusive").iloc[0]
    assert fragile(row) == "inconclusive at 99%"
    assert "inconclusive at 99%" in verdict_sentence(row)
    assert "inconclusive at 99%" in ledger_table(claims(verdict_99="inconclusive")).data
    assert fragile(claims().iloc[0]) == fragile(claims().iloc[1]) == ""


def test_a_verdict_from_a_stale_record_says_so():
    table = claims(ours=True).assign(stale=True)
    held, untested = (row for _, row in table.iterrows())
    assert notes(held) == ["a question of ours", "from a stale record"]
    assert notes(untested) == [], "what is not judged has no verdict to doubt"
    assert "from a stale record" in verdict_sentence(held)
    assert ledger_table(table).data.count("from a stale record") == 1
    assert "stale" not in ledger_table(table.assign(stale=False)).data + ledger_table(claims()).data


def test_the_commits_of_a_declaration_are_shown_where_they_are_known():
    history = {"declared_in": "abc1234", "declared_on": "2026-01-02", "recorded_in": math.nan}
    assert "Declared on 2026-01-02 (<code>abc1234</code>)" in ledger_table(claims(**history)).data
    assert "first recorded" not in ledger_table(claims(**history)).data
    assert "Declared on" not in ledger_table(claims()).data


def test_verdicts_that_changed_say_why():
    then = {"id": ["wanli-one", "zfilter-two"], "verdict": ["not held", "not judged"], "mended": ["", ""]}
    changed = changed_verdicts(claims(), pd.DataFrame(then))
    assert changed.values.tolist() == [["WANLI", "Half is more.", "not held", "held", "the interval lies inside"]]
    changed = changed_verdicts(claims(), pd.DataFrame(then | {"mended": ["The test was another.", ""]}))
    assert changed["why"].tolist() == ["The test was another."]


def test_the_table_groups_by_paper_and_says_who_judged():
    html = ledger_table(claims()).data
    assert re.findall(r'<tbody data-paper="([^"]+)">', html) == ["WANLI", "Debiased generation"]
    assert html.count("<tr data-verdict=") == 2
    assert "SNLI&#39;s five annotators" in html
    assert 'href="10_data_map.html"' in html
    assert "Interval over pairs: n = 1,514, 3 trainings." in html
    assert "http" not in html, "no network"


def test_a_judged_claim_is_drawn_on_a_line_of_its_own():
    table = claims()
    held = places(table).iloc[0].to_dict()
    # 0.5 to 0.7 on 10 to 90: 400 a unit
    assert held == {"value": 58, "low": 30, "high": 90, "region_low": 10, "region_high": 100, "paper": 42}
    html = ledger_table(table).data
    assert html.count("<svg") == 1, "a claim that was not judged has no drawing"
    assert 'd="M30.0 7H90.0"' in html and 'd="M42.0 3' in html and 'width="90.0"' in html
    words = ledger_table(claims(paper_value="several (picture)")).data
    assert 'class="paper" d=' not in words
    below = places(claims(region_low=-math.inf, region_high=0.5, low=0.6, value=0.62, high=0.6)).iloc[0]
    assert (below["region_low"], below["region_high"]) == (0, 10), "an interval need not hold its value"
    assert "nan" not in ledger_table(claims(low=math.nan, high=math.nan)).data


def test_text_of_a_claim_is_text():
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    texts = dict.fromkeys(("claim", "where", "statistic", "reference", "paper_value", "notebook", "id"), hostile)
    html = ledger_table(claims(**texts)).data
    assert "<img" not in html
    assert html.count("<script>") == 1
    assert "alert(1)" in html
