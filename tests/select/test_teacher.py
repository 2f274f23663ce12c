"""The teacher filter. Run alone: pytest tests/select/test_teacher.py"""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from nli_lib.corpora import load
from nli_lib.select.selection import KEPT, SMALL, THRESHOLD, probability_shift, teacher_filter, vote


def test_the_shift_by_hand():
    before, after = np.log([[0.7, 0.2, 0.1]]), np.log([[0.1, 0.3, 0.6]])
    assert probability_shift(before, after, [2])[0] == pytest.approx(0.5)
    assert probability_shift(before, after, [0])[0] == pytest.approx(-0.6)


def test_a_teacher_that_shifts_nothing_keeps_nothing():
    logits = np.random.default_rng(0).normal(size=(9, 3))
    shifts = probability_shift(logits, logits, np.arange(9) % 3)
    assert (shifts == 0).all()
    found = teacher_filter(shifts)
    assert not found.size and set(found.reason) == {SMALL}


def test_the_cut_is_half_of_the_threshold_and_must_be_exceeded():
    found = teacher_filter([0.15, 0.15003, 0.2, 0.26, -0.9])
    assert found.keep.tolist() == [False, True, True, True, False]
    assert found.reason.tolist() == [SMALL, KEPT, KEPT, KEPT, SMALL]
    assert teacher_filter([0.2, 0.25, 0.26], threshold=0.5).keep.tolist() == [False, False, True]


def test_kept_is_not_predicted():
    """From .02 to .2 is enough, although the teacher predicts another label before and after."""
    before, after = np.log([[0.9, 0.08, 0.02]]), np.log([[0.7, 0.1, 0.2]])
    assert teacher_filter(probability_shift(before, after, [2])).keep.all() and after.argmax() == 0


def test_one_teacher_votes_as_he_sees_it_and_two_lie_between():
    assert vote([[0.3, -0.2]]).tolist() == [0.3, -0.2]
    assert vote([0.3, -0.2]).tolist() == [0.3, -0.2]
    weights = softmax([0.1, 0.5])
    assert vote([[0.1], [0.5]])[0] == pytest.approx(weights @ [0.1, 0.5])


@given(st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=1, max_size=4))
def test_the_vote_lies_between_the_mean_and_the_maximum_whatever_the_order(shifts):
    found, shifts = vote(shifts), np.array(shifts)
    assert (found >= shifts.mean(axis=0) - 1e-12).all() and (found <= shifts.max(axis=0) + 1e-12).all()
    assert np.allclose(found, vote(shifts[::-1]))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="logits"):
        probability_shift(np.zeros((2, 3)), np.zeros((3, 3)), [0, 0])
    with pytest.raises(ValueError, match="position 1 is NaN"):
        teacher_filter([0.1, np.nan])
    assert len(teacher_filter([])) == 0
    assert probability_shift(np.empty((0, 3)), np.empty((0, 3)), np.empty(0, dtype=int)).shape == (0,)


@pytest.mark.realdata
@pytest.mark.skipif(not os.environ.get("NLI_DATA"), reason="NLI_DATA is not set: the real corpora are not read")
@pytest.mark.parametrize(("split", "lowest"), [("e2n", 0.15003), ("n2c", 0.15004)])
def test_the_released_scores_prove_the_cut(split, lowest):
    scores = load("disco", split).table["score"].astype(float).to_numpy()
    assert scores.min() == pytest.approx(lowest, abs=5e-6)
    assert teacher_filter(scores, threshold=THRESHOLD).keep.all()
    assert not teacher_filter(scores, threshold=0.5).keep.all()
    # no pair lies in the first thousandth below the cut, and some lie in the first hundredth above it
    assert ((scores > 0.15) & (scores < 0.16)).any()
