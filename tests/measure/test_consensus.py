"""Mismatches and logit gaps of the consensus cleaning paper. Alone: pytest tests/measure/test_consensus.py"""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nli_lib.measure.consensus import (
    KINDS,
    judge,
    label_scores,
    logit_gap,
    mismatch,
    pruned_gap,
    review_orders,
    suspects,
    threshold_rule,
)

LOGITS = np.array([[1.0, 4.5, 0.0], [3.0, 1.0, 0.0], [0.0, 2.0, -1.0], [5.0, 0.0, 7.5]])
GOLD = np.array([0, 0, 0, 2])


def test_by_hand():
    assert mismatch(LOGITS, GOLD).tolist() == ["P1G0", "agree", "P1G0", "agree"]
    assert logit_gap(LOGITS, GOLD).tolist() == [3.5, 0, 2.0, 0]
    assert mismatch(LOGITS, [2, 1, 0, 0]).tolist() == ["P1G2", "P0G1", "P1G0", "P2G0"]


def test_strictly_above_the_threshold_and_of_the_kinds_asked_for():
    assert suspects(LOGITS, GOLD).tolist() == [True, False, False, False]  # the third stands at 2.0 exactly
    assert suspects(LOGITS, GOLD, threshold=1.9).tolist() == [True, False, True, False]
    assert suspects(LOGITS, [2, 1, 0, 0], kinds=("P1G2", "P2G0")).tolist() == [True, False, False, True]
    with pytest.raises(ValueError, match="P1G1"):
        suspects(LOGITS, GOLD, kinds=("P1G1",))


def test_the_gap_is_the_log_odds_of_the_two_labels():
    p = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    assert logit_gap(LOGITS, GOLD)[0] == pytest.approx(math.log(p[0, 1] / p[0, 0]))
    assert math.exp(2) == pytest.approx(7.39, abs=0.01)
    assert logit_gap(LOGITS + 100, GOLD) == pytest.approx(logit_gap(LOGITS, GOLD))


rows = st.lists(st.tuples(*[st.floats(-20, 20) for _ in range(3)], st.integers(0, 2)), min_size=1, max_size=30)


@given(rows)
def test_equal_to_the_slow_twin_in_any_order(cases):
    logits, gold = np.array([case[:3] for case in cases]), np.array([case[3] for case in cases])
    kinds, gaps = mismatch(logits, gold), logit_gap(logits, gold)
    for i, (*scores, label) in enumerate(cases):
        predicted = scores.index(max(scores))
        assert kinds[i] == ("agree" if predicted == label else f"P{predicted}G{label}")
        assert gaps[i] == pytest.approx(scores[predicted] - scores[label])
        assert gaps[i] >= 0
    order = np.random.default_rng(0).permutation(len(cases))
    assert (mismatch(logits[order], gold[order]) == kinds[order]).all()


def test_six_kinds():
    assert len(KINDS) == len(set(KINDS)) == 6


def test_the_threshold_is_where_errors_become_the_majority():
    gap = np.array([0.5, 0.6, 1.5, 1.6, 2.5, 2.6, 2.7, 4.5])
    wrong = np.array([0, 0, 1, 0, 1, 1, 0, 1], dtype=bool)
    assert threshold_rule(gap, wrong, [0, 1, 2, 3, 4]) == 2.0  # half is not more than half; 3 to 4 is empty
    assert threshold_rule(gap, np.zeros(8, bool), [0, 1, 2]) is None
    assert threshold_rule(gap, np.ones(8, bool), [0, 1, 2]) == 0.0
    assert threshold_rule([], [], [0, 1]) is None
    assert threshold_rule([-0.1, 1.0], [True, False], [0, 1]) is None  # below the edges, and at one
    assert threshold_rule([0.9, 1.0], [False, True], [0, 1]) == 1.0


@pytest.mark.parametrize(
    ("logits", "gold", "said"),
    [
        (np.zeros((2, 3, 3)), [0, 0], "shape"),
        (np.zeros((2, 3)), [0], "shape"),
        (np.array([[0, np.nan, 0]]), [0], "first at example 0"),
        (np.zeros((1, 3)), [3], "not one of 0..2"),
        (np.zeros((1, 3)), [-1], "label -1 at position 0"),
    ],
)
def test_bad_input_is_one_error(logits, gold, said):
    for measure in (mismatch, logit_gap):
        with pytest.raises(ValueError, match=said):
            measure(logits, gold)


def test_no_example_gives_no_number():
    assert mismatch(np.zeros((0, 3)), np.zeros(0, int)).shape == (0,)
    assert logit_gap(np.zeros((0, 3)), np.zeros(0, int)).shape == (0,)


def test_a_reference_is_judged_at_its_positions():
    reference = pd.DataFrame({"position": [3, 0], "label": [2, 0], "wrong": [False, True]})
    judged = judge(LOGITS, reference)
    assert judged["kind"].tolist() == ["agree", "P1G0"]
    assert judged["gap"].tolist() == [0.0, 3.5]
    assert judged["wrong"].tolist() == [False, True]


def test_every_score_of_a_label_and_the_orders_they_give():
    training = np.stack([LOGITS, LOGITS])
    table = label_scores(LOGITS, GOLD, training=training, fold=[0, 1, 0, 1])
    assert table["pruned"].tolist() == suspects(LOGITS, GOLD).tolist()
    assert table["margin"].tolist() == [-3.5, 2.0, -2.0, 2.5]
    assert table["p(gold)"].to_numpy() == pytest.approx(table["confidence"])
    orders = review_orders(table, seed=1)
    assert orders["gap of P1G0 alone"].tolist() == pruned_gap(LOGITS, GOLD).tolist() == [3.5, 0, 2.0, 0]
    assert (orders["random twin"] == review_orders(table, seed=1)["random twin"]).all()


def test_every_order_but_the_random_one_begins_with_the_most_suspect():
    numbers = {"gap": [0.5, 3.0], "p(gold)": [0.9, 0.1], "confidence": [0.8, 0.2], "margin": [2.0, -1.0]}
    orders = review_orders(pd.DataFrame({"kind": ["P2G1", "P1G0"], **numbers}))
    assert [name for name, score in orders.items() if score[1] <= score[0]] in ([], ["random twin"])
