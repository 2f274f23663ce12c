"""Precision and recall of a score for wrong labels. Alone: pytest tests/test_retrieval.py"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from nli_lib.agreement import average_precision, precision_at, weighted_precision

SCORES = np.array([4.0, 3.0, 2.0, 1.0])
WRONG = np.array([True, False, True, False])


def test_by_hand():
    assert average_precision(SCORES, WRONG) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert [precision_at(SCORES, WRONG, k) for k in (1, 2, 3, 4)] == [1, 1 / 2, 2 / 3, 1 / 2]
    assert average_precision(np.zeros(4), WRONG) == 0.5  # knows nothing: the share of wrong ones
    assert precision_at(np.zeros(4), WRONG, 1) == 0.5


def test_all_weightings_at_once_are_scikit_learns_one_by_one():
    random = np.random.default_rng(1)
    wrong, weights = random.random(120) < 0.2, random.integers(1, 4, size=(20, 120))
    scores = (random.normal(size=120) + 1.5 * wrong).round(1)  # with ties
    plain = [average_precision_score(wrong, scores, sample_weight=row) for row in weights]
    assert weighted_precision(scores, wrong, weights) == pytest.approx(plain)
    some = np.where(np.arange(120) < 10, np.nan, scores)  # what is not scored is left out
    plain = weighted_precision(scores[10:], wrong[10:], weights[:, 10:])
    assert weighted_precision(some, wrong, weights) == pytest.approx(plain)


examples = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=40).filter(
    lambda rows: any(wrong for _, wrong in rows)
)


@given(examples, st.randoms(use_true_random=False))
def test_equal_to_the_slow_twin_in_any_order(rows, random):
    scores, wrong = np.array([row[0] for row in rows], float), np.array([row[1] for row in rows])
    area, before = average_precision(scores, wrong), 0.0
    slow = 0.0
    for level in sorted(set(scores), reverse=True):
        named = [bad for score, bad in zip(scores, wrong, strict=True) if score >= level]
        recall = sum(named) / sum(wrong)
        slow, before = slow + (recall - before) * sum(named) / len(named), recall
    assert area == pytest.approx(slow)
    assert 0 < area <= 1
    order = list(range(len(rows)))
    random.shuffle(order)
    assert average_precision(scores[order], wrong[order]) == pytest.approx(area)


@pytest.mark.parametrize(
    ("scores", "wrong", "said"),
    [
        (SCORES, np.zeros(4, bool), "nothing can be found"),
        ([1.0, np.nan], np.array([True, False]), "NaN"),
        (SCORES, WRONG[:2], "inconsistent numbers of samples"),
    ],
)
def test_bad_input_is_one_error(scores, wrong, said):
    with pytest.raises(ValueError, match=said):
        average_precision(scores, wrong)


def test_k_must_fit():
    with pytest.raises(ValueError, match="k=5 of 4"):
        precision_at(SCORES, WRONG, 5)
