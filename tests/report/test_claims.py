"""Fast, any machine: pytest tests/report/test_claims.py"""

import math

import pandas as pd
import pytest
import yaml

from nli_lib.paths import NOTEBOOKS
from nli_lib.report.claims import (
    RECORD,
    VERDICTS,
    ClaimError,
    Region,
    ledger,
    read_claims,
    verdict,
)
from nli_lib.report.papers import PaperError, paper_value

HELD, NOT_HELD, INCONCLUSIVE, UNTESTABLE = VERDICTS
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
    "min_seeds": 2,
}
ENOUGH = {"value": 0.65, "low": 0.6, "high": 0.7, "n": 100, "seeds": 2, "corpora": "snli"}
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
    assert judged(math.nan, math.nan) == UNTESTABLE


@pytest.mark.parametrize(
    ("change", "scale", "reason"),
    [
        ({"corpora": "planted"}, "small", "planted text"),
        ({"corpora": "own file;snli"}, "small", "your own corpus is no evidence"),
        ({"corpora": "mnli"}, "small", "needs snli"),
        ({"corpora": ""}, "small", "not recorded"),
        ({"n": 99}, "small", "99 examples, needs 100"),
        ({"seeds": 1}, "small", "1 seed, needs 2"),
        ({}, "smoke", "smoke numbers"),
    ],
)
def test_evidence_that_does_not_suffice(toy, change, scale, reason):
    judged, said = verdict(toy, ENOUGH | change, scale)
    assert judged == UNTESTABLE and reason in said


def test_ledger_has_every_claim_once_and_in_order(tmp_path):
    claims = read_claims(written(tmp_path, SOUND, SOUND | {"id": "wanli-other"}))
    records = pd.DataFrame([("wanli-toy", 0.65, 0.6, 0.7, 500, 3, "snli;hans")], columns=RECORD)
    table = ledger(claims, records, "small").set_index("id")
    assert table.index.tolist() == ["wanli-toy", "wanli-other"]
    assert table.loc["wanli-toy", ["value", "verdict", "confirm", "region_low"]].tolist() == [
        0.65,
        HELD,
        "above 0.5",
        0.5,
    ]
    assert table.loc["wanli-other", ["verdict", "reason"]].tolist() == [UNTESTABLE, "not recorded"]
    assert ledger(claims, records, "smoke")["verdict"].eq(UNTESTABLE).all()
    assert ledger(claims, records.iloc[:0], "small")["verdict"].eq(UNTESTABLE).all()
    open_ended = ledger(claims, records.astype({"low": object}).assign(low=None), "small")
    assert open_ended.loc[0, ["verdict", "reason"]].tolist() == [UNTESTABLE, "no interval was recorded"]


def test_ledger_refuses_what_it_cannot_read(toy):
    records = pd.DataFrame([("wanli-toy", 0.65, 0.6, 0.7, 500, 3, "snli")], columns=RECORD)
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
