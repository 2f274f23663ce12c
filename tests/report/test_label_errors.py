"""What the suspicion of a label is worth. Alone: pytest tests/report/test_label_errors.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.label_quality import (
    NONE,
    TWIN,
    climb,
    climb_over_trainings,
    error_shares,
    list_quality,
    overlaps,
    shares_by_gap,
    shares_by_kind,
    suspect_points,
    threshold_estimate,
)


def test_shares_by_group_in_the_order_of_the_rows():
    table = pd.DataFrame({"truth": "five", "kind": ["b", "a", "b", "b"], "wrong": [True, False, False, True]})
    shares = error_shares(table, ["truth", "kind"])
    assert shares[["kind", "n", "wrong"]].to_numpy().tolist() == [["b", 3, 2], ["a", 1, 0]]
    assert shares["share"].tolist() == [2 / 3, 0]
    assert (shares["low"] <= shares["share"]).all() and (shares["share"] <= shares["high"]).all()


def test_several_seeds_have_the_size_of_one():
    table = pd.DataFrame({"truth": "five", "seed": [0] * 10 + [1] * 10, "wrong": [True, False] * 10})
    shares = error_shares(table, ["truth"])
    assert shares[["n", "wrong"]].to_numpy().tolist() == [[10, 5]]
    assert error_shares(table.assign(truth=["five"] * 19 + ["hundred"]), ["truth"])["n"].tolist() == [10, 1]


def test_threshold_and_how_often_there_is_none():
    gap = np.repeat([0.5, 1.5, 2.5, 3.5, 4.5, 5.5], 40)
    estimate, none = threshold_estimate(gap, gap > 2, resamples=50)
    assert (estimate.value, estimate.low, estimate.high, none) == (2.0, 2.0, 2.0, 0.0)
    estimate, none = threshold_estimate(gap, np.zeros(len(gap), bool), resamples=50)
    assert (estimate.value, none, estimate.n) == (NONE, 1.0, 240)


def test_a_sawtooth_climbs_and_a_level_does_not():
    fold = np.arange(10)
    level = pd.DataFrame({"fold": fold, "n": 1000, "correct": 880})
    saw = level.assign(correct=880 + 20 * (fold % 5))
    assert climb(saw, resamples=200).value == pytest.approx(0.02)
    assert climb(saw, resamples=200).low > 0.01
    flat = climb(level, resamples=200)
    assert flat.value == pytest.approx(0) and flat.low < 0 < flat.high and flat.n == 10_000
    two = pd.DataFrame({"fold": [0, 1], "n": 100, "correct": [60, 70]})
    assert climb(two, resamples=50).value == pytest.approx(0.1)


def test_the_climb_of_several_trainings_is_the_mean_of_theirs():
    random = np.random.default_rng(0)
    fold = np.array([random.permutation(np.repeat(np.arange(10), 60)) for _ in range(3)])
    correct = random.random((3, 600)) < 0.6 + 0.05 * (fold % 5)
    each = [
        climb(pd.DataFrame({"fold": at, "correct": right, "n": 1}).groupby("fold", as_index=False).sum(), resamples=2)
        for at, right in zip(fold, correct.astype(int), strict=True)
    ]
    found = climb_over_trainings(correct, fold, np.arange(600) // 3)
    assert found.value == pytest.approx(np.mean([one.value for one in each]))
    assert 0 < found.low < 0.05 < found.high and found[3:] == (200, 3, "premises and trainings")
    order = random.permutation(600)
    again = climb_over_trainings(correct[:, order], fold[:, order], (np.arange(600) // 3)[order])
    assert again.value == pytest.approx(found.value)


def test_overlap_of_two_lists():
    lists = pd.DataFrame({"seed": [0, 0, 0, 1, 1], "position": [1, 2, 3, 2, 3]})
    table = overlaps(lists, [0, 1, 2], pool=12)
    assert table[["first", "second"]].to_numpy().tolist() == [[0, 1], [0, 2], [1, 2]]
    assert table["overlap"].tolist() == [2 / 3, 0, 0]  # the third seed lists nothing
    assert table["chance"].tolist() == pytest.approx([0.5 / 4.5, 0, 0])


def test_lists_of_two_seeds_judged():
    logits = np.array([[0, 3.0, 0], [0, 4.0, 0], [0, 1.0, 0], [5.0, 0, 0]])
    people = pd.DataFrame({"position": [0, 1, 2, 3], "label": 0, "truth": "five", "wrong": [False, True, True, True]})
    quality = list_quality(people.assign(votes=[1, 2, 2, 0]), {0: logits, 1: logits / 10}, threshold=2.0)
    assert quality[["seed", "truth", "n", "wrong"]].to_numpy().tolist() == [[0, "five", 2, 1], [1, "five", 0, 0]]
    assert quality.loc[0, ["by gap", "by votes"]].tolist() == [1.0, 1.0]
    assert quality.loc[1, ["by gap", "by votes"]].isna().all()


JUDGED = pd.DataFrame(
    {"truth": "five", "kind": ["P1G0", "P1G0", "P1G0", "P0G1"], "gap": [2.0, 2.5, 0.5, 9.0], "wrong": [0, 1, 0, 1]}
).astype({"wrong": bool})
LABELS = pd.DataFrame({"truth": "five", "label": [0, 1], "n": [10, 20], "wrong": [1, 10]})


def test_by_gap_beside_any_pair_with_the_label():
    table = shares_by_gap(JUDGED, LABELS).set_index("title")["share"]
    assert table.to_dict() == {"gap 0 to 1": 0, "gap 2 to 3": 0.5, "gap above 2": 1, TWIN: 0.1}


def test_by_kind_beside_any_pair_with_the_label():
    table = shares_by_kind(JUDGED, LABELS).set_index(["kind", "condition"])["share"]
    assert table["P1G0", "any gap"] == pytest.approx(1 / 3) and table["P1G0", "gap above 2"] == 1
    twin = table.xs("random twin: any pair with that label", level="condition")
    assert twin.to_dict() == {"P1G0": 0.1, "P2G0": 0.1, "P0G1": 0.5, "P2G1": 0.5}


def test_points_have_the_texts_that_are_recorded_and_no_others():
    scored = pd.DataFrame(
        {"fold": [0, 1, 0], "label": [0, 1, 2], "kind": ["P1G0", "agree", "P0G2"], "gap": [1.5, 0.0, 2.5]}
    ).assign(**{"p(gold)": [0.1, 0.8, 0.05], "confidence": [0.2, 0.9, 0.3]})
    review = pd.DataFrame(
        {"premise": ["A"], "hypothesis": ["B"], "gold": ["entailment"], "predicted": ["neutral"], "kind": ["P1G0"]}
    ).assign(gap=1.5, p_gold=0.1, fold=0)
    points = suspect_points(scored, review, pd.DataFrame({"position": [0, 0], "wrong": [True, True]}))
    assert points["position"].tolist() == [2, 0]  # the largest gap first
    assert points["premise"].isna().tolist() == [True, False]
    assert points["predicted"].tolist() == ["entailment", "neutral"]
    assert points["wrong"].isna().tolist() == [True, False]
    assert len(suspect_points(scored, review[:0], pd.DataFrame(columns=["position", "wrong"]), most=1)) == 1
