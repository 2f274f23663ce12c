"""Fast, any machine: pytest tests/test_claims.py"""

import math

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from nli_lib.claims import (
    RECORD,
    VERDICTS,
    ClaimError,
    PaperError,
    Region,
    judge,
    ledger,
    paper_value,
    read_claims,
    verdict,
    widened,
)
from nli_lib.paths import NOTEBOOKS
from nli_lib.stats import t_interval

HELD, NOT_HELD, INCONCLUSIVE, NOT_JUDGED = VERDICTS
DECLARED = read_claims()
SOUND = {
    "id": "wanli-toy",
    "paper": "wanli",
    "where": "Table 3",
    "claim": "Cats sit on mats.",
    "notebook": "10_data_map",
    "statistic": "Share of cats on mats; Wilson interval.",
    "unit": "share",
    "confirm": {"above": 0.5},
    "paper_value": 0.7,
    "evidence": ["snli"],
    "min_n": 100,
}
ENOUGH = {"value": 0.65, "low": 0.6, "high": 0.7, "n": 100, "seeds": 3, "over": "trainings", "corpora": "snli"}
BY_ID = {claim.id: claim for claim in DECLARED}


def written(folder, *claims):
    path = folder / "claims.yaml"
    path.write_text(yaml.safe_dump(list(claims)))
    return path


@pytest.fixture
def toy(tmp_path):
    return read_claims(written(tmp_path, SOUND))[0]


@pytest.mark.parametrize(
    ("confirm", "low", "high", "place"),
    [
        ({"above": 1}, 1.1, 2, "inside"),
        ({"above": 1}, 1, 2, "across the border of"),
        ({"above": 1}, 0, 1, "outside"),
        ({"below": 1}, 0, 0.9, "inside"),
        ({"below": 1}, 0, 1, "across the border of"),
        ({"below": 1}, 1, 3, "outside"),
        ({"between": [0, 1]}, 0, 1, "inside"),
        ({"between": [0, 1]}, -0.1, 0.5, "across the border of"),
        ({"between": [0, 1]}, -1, 2, "across the border of"),
        ({"between": [0, 1]}, 1.1, 2, "outside"),
        ({"between": [0, 1]}, -2, -0.1, "outside"),
    ],
)
def test_where_an_interval_lies(confirm, low, high, place):
    assert Region.model_validate(confirm).place(low, high) == place


def test_verdicts(toy):
    def judged(low, high):
        return verdict(toy, ENOUGH | {"low": low, "high": high}, "small")[0]

    assert judged(0.6, 0.7) == HELD
    assert judged(0.3, 0.4) == NOT_HELD
    assert judged(0.4, 0.6) == INCONCLUSIVE
    assert judged(math.nan, math.nan) == NOT_JUDGED


@pytest.mark.parametrize(
    ("change", "scale", "reason"),
    [
        ({"corpora": "planted"}, "small", "planted text"),
        ({"corpora": "own file;snli"}, "small", "your own corpus is no evidence"),
        ({"corpora": "mnli"}, "small", "needs snli"),
        ({"corpora": ""}, "small", "not recorded"),
        ({"n": 99}, "small", "99 units, needs 100"),
        ({"over": "labels"}, "small", "over labels, which another study would not draw anew"),
        ({"over": math.nan}, "small", "would not draw anew"),
        ({}, "smoke", "smoke numbers"),
    ],
)
def test_evidence_that_does_not_suffice(toy, change, scale, reason):
    judged, said = verdict(toy, ENOUGH | change, scale)
    assert judged == NOT_JUDGED and reason in said


def test_a_trained_statistic_needs_three_trainings_and_an_interval_over_them(toy):
    trained = toy.model_copy(update={"trained": True})
    assert verdict(trained, ENOUGH, "small")[0] == HELD
    assert verdict(trained, ENOUGH | {"over": "premises and trainings"}, "small")[0] == HELD
    for change, reason in (
        ({"seeds": 1}, "1 training, needs 3"),
        ({"seeds": 2}, "2 trainings, needs 3"),
        ({"over": "pairs"}, "its interval leaves out that trainings differ"),
    ):
        assert verdict(trained, ENOUGH | change, "small") == (NOT_JUDGED, reason)
        assert verdict(toy, ENOUGH | change, "small")[0] == HELD


def test_an_absolute_amount_is_judged_at_scale_full_wherever_it_lies(toy):
    absolute = toy.model_copy(update={"absolute": True})
    for low, high in ((0.6, 0.7), (0.1, 0.2)):
        judged, reason = verdict(absolute, ENOUGH | {"low": low, "high": high}, "small")
        assert judged == NOT_JUDGED and "judged at scale full" in reason
    assert verdict(absolute, ENOUGH, "full")[0] == HELD


def test_an_interval_is_widened_by_t_over_trainings_and_by_the_normal_otherwise():
    t = stats.t(2)  # three trainings
    ratio = t.ppf(0.995) / t.ppf(0.975)
    over_trainings = widened(ENOUGH)
    assert over_trainings["low"] == pytest.approx(0.65 - ratio * 0.05)
    assert over_trainings["high"] == pytest.approx(0.65 + ratio * 0.05)
    values = np.array([0.62, 0.65, 0.68])  # of which a t interval at 99% is the widened one at 95%
    at_95 = t_interval(values)
    by_hand = t.ppf(0.995) * values.std(ddof=1) / np.sqrt(3)
    assert widened(at_95._asdict())["low"] == pytest.approx(values.mean() - by_hand)
    over_pairs = widened(ENOUGH | {"over": "pairs", "seeds": 1})
    assert over_pairs["high"] == pytest.approx(0.65 + 2.5758 / 1.95996 * 0.05, abs=1e-5)
    assert math.isnan(widened(ENOUGH | {"seeds": 1})["low"])
    beside = widened(ENOUGH | {"value": 0.75, "over": "pairs"})
    assert beside["low"] < 0.6 and beside["high"] == 0.7, "never narrower"
    beside = widened(ENOUGH | {"value": 0.55, "over": "pairs"})
    assert beside["low"] == 0.6 and beside["high"] > 0.7, "at neither end"


def test_a_verdict_that_changes_at_99_percent_is_there_beside_the_other(tmp_path):
    claims = read_claims(written(tmp_path, SOUND, SOUND | {"id": "wanli-near"}))
    rows = [("wanli-toy", 0.9, 0.85, 0.95, 500, 3, "trainings", "snli")]
    rows.append(("wanli-near", 0.56, 0.51, 0.61, 500, 3, "trainings", "snli"))
    table = ledger(claims, pd.DataFrame(rows, columns=RECORD), "small")
    assert table["verdict"].tolist() == [HELD, HELD]
    assert table["verdict_99"].tolist() == [HELD, INCONCLUSIVE]


def test_ledger_has_every_claim_once_and_in_order(tmp_path):
    claims = read_claims(written(tmp_path, SOUND, SOUND | {"id": "wanli-other"}))
    records = pd.DataFrame([("wanli-toy", 0.65, 0.6, 0.7, 500, 3, "pairs", "snli;hans")], columns=RECORD)
    table = ledger(claims, records, "small").set_index("id")
    assert table.index.tolist() == ["wanli-toy", "wanli-other"]
    assert table.loc["wanli-toy", ["value", "verdict", "confirm", "region_low"]].tolist() == [
        0.65,
        HELD,
        "above 0.5",
        0.5,
    ]
    assert table.loc["wanli-other", ["verdict", "reason"]].tolist() == [NOT_JUDGED, "not recorded"]
    assert ledger(claims, records, "smoke")["verdict"].eq(NOT_JUDGED).all()
    assert ledger(claims, records.iloc[:0], "small")["verdict"].eq(NOT_JUDGED).all()
    open_ended = ledger(claims, records.astype({"low": object}).assign(low=None), "small")
    assert open_ended.loc[0, ["verdict", "reason"]].tolist() == [NOT_JUDGED, "no interval was recorded"]


def test_ledger_refuses_what_it_cannot_read(toy):
    records = pd.DataFrame([("wanli-toy", 0.65, 0.6, 0.7, 500, 3, "pairs", "snli")], columns=RECORD)
    with pytest.raises(ClaimError, match="recorded twice"):
        ledger([toy], pd.concat([records, records]), "small")
    with pytest.raises(ClaimError, match=r"no claim 'wanli-toi'.*wanli-toy"):
        ledger([toy], records.assign(id="wanli-toi"), "small")


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"confirm": {"above": 1, "below": 2}}, "confirm", "exactly one"),
        ({"confirm": {"over": 1}}, "confirm.over", "Extra inputs"),
        ({"confirm": {"between": [2, 1]}}, "confirm", "left side of interval must be"),
        ({"evidence": []}, "evidence", "at least 1"),
        ({"paper": "zfilter"}, "whole", "does not start with its paper"),
        ({"paper_keys": ["wanli-table3-multinli-hanz"]}, "whole", "no number 'wanli-table3-multinli-hanz'"),
        ({"min_n": 0}, "min_n", "greater than or equal to 1"),
        ({"colour": "blue"}, "colour", "Extra inputs"),
    ],
)
def test_a_malformed_claim_is_one_error_that_names_claim_and_field(tmp_path, change, field, message):
    with pytest.raises(ClaimError) as error:
        read_claims(written(tmp_path, SOUND | change))
    assert f"claim wanli-toy: field {field}:" in str(error.value)
    assert message in str(error.value)


def test_other_broken_files(tmp_path):
    path = tmp_path / "claims.yaml"
    for text, message in (("- id: [", "not valid YAML"), ("id: one", "must be a list"), ("- word", "claim 1")):
        path.write_text(text)
        with pytest.raises(ClaimError, match=message):
            read_claims(path)
    with pytest.raises(ClaimError, match="appears twice"):
        read_claims(written(tmp_path, SOUND, SOUND))
    missing = {key: value for key, value in SOUND.items() if key != "unit"}
    with pytest.raises(ClaimError, match="claim wanli-toy: field unit: Field required"):
        read_claims(written(tmp_path, missing))


def test_the_declared_claims():
    papers = pd.Series([claim.paper for claim in DECLARED]).value_counts()
    assert papers["wanli"] >= 7
    assert papers["zfilter"] >= 5
    assert papers["difficulty"] >= 10
    assert len({claim.claim for claim in DECLARED}) == len(DECLARED), "a reader could not tell two claims apart"
    chapters = {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
    assert {claim.notebook for claim in DECLARED} - chapters <= {"53_across_encoders"}  # declared before it is written
    assert BY_ID["wanli-fig9-wanli-spread"].confirm.above == 0


@pytest.mark.parametrize("claim", DECLARED, ids=lambda claim: claim.id)
def test_each_declared_claim_would_be_confirmed_by_the_papers_own_value(claim):
    for key in claim.paper_keys:
        assert math.isfinite(paper_value(key))
    if isinstance(claim.paper_value, float):
        assert claim.confirm.place(claim.paper_value, claim.paper_value) == "inside"


@pytest.mark.parametrize(
    ("claim_id", "first", "second", "unit"),
    [
        (
            "wanli-sec4.1-hypothesis-only-lower",
            "wanli-sec4.1-hypothesis-only-wanli",
            "wanli-sec4.1-hypothesis-only-multinli",
            100,
        ),
        ("zfilter-table2-hard-below-test", "zfilter-table2-baseline-snli-hard", "zfilter-table2-baseline-snli", 100),
        ("difficulty-table1-premise-adds", "difficulty-table1-snli-pair", "difficulty-table1-snli-hypothesis", 1),
        (
            "difficulty-table1-snli-gives-away-more",
            "difficulty-table1-snli-hypothesis",
            "difficulty-table1-multinli-hypothesis",
            1,
        ),
    ],
)
def test_differences_stated_as_the_papers_value_follow_from_its_numbers(claim_id, first, second, unit):
    difference = (paper_value(first) - paper_value(second)) / unit
    assert BY_ID[claim_id].paper_value == pytest.approx(difference, abs=1e-9)


def test_paper_error_is_told_apart():
    with pytest.raises(PaperError):
        paper_value("009-nothing")


def part_of(name, low, high, **more):
    return {**ENOUGH, "id": "wanli-toy", "part": name, "value": (low + high) / 2, "low": low, "high": high, **more}


@pytest.mark.parametrize(
    ("parts", "word", "decides", "said"),
    [
        ([("a", 0.6, 0.7), ("b", 0.55, 0.9)], HELD, "b", "2 of 2 parts hold"),
        ([("a", 0.6, 0.7), ("b", 0.45, 0.9)], INCONCLUSIVE, "b", "1 of 2 parts hold"),
        ([("a", 0.3, 0.4), ("b", 0.45, 0.9), ("c", 0.6, 0.7)], NOT_HELD, "a", "1 of 3 parts hold"),
    ],
)
def test_a_claim_in_parts_holds_when_all_parts_hold(toy, parts, word, decides, said):
    records = [part_of(*each) for each in parts]
    verdict_, reason, part = judge(toy, records, "small")
    assert (verdict_, part["part"]) == (word, decides) and reason.startswith(f"{decides}: ") and reason.endswith(said)
    row = ledger([toy], pd.DataFrame(records), "small").iloc[0]
    assert (row["verdict"], row["low"]) == (word, part["low"])


def test_a_part_that_cannot_be_judged_leaves_the_claim_open(toy):
    records = [part_of("a", 0.6, 0.7), part_of("b", 0.1, 0.2, n=5)]
    assert judge(toy, records, "small")[0] == NOT_JUDGED
    with pytest.raises(ClaimError, match="was recorded twice"):
        ledger([toy], pd.DataFrame([part_of("a", 0.6, 0.7)] * 2), "small")
