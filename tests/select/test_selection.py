"""Fast, any machine: pytest tests/select"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nli_lib.select.selection import Selection, bottom, top


def test_top_takes_the_highest_and_gives_ties_to_the_earlier():
    kept = top(np.array([0.1, 0.9, 0.5, 0.9, 0.5]), fraction=0.6)
    assert kept.keep.tolist() == [False, True, True, True, False]
    assert kept.reason.tolist() == ["not in the top", "top", "top", "top", "not in the top"]
    assert np.flatnonzero(kept.keep).tolist() == [1, 2, 3]
    assert kept.size == 3
    assert len(kept) == 5


def test_bottom_takes_the_lowest_and_gives_ties_to_the_earlier():
    assert bottom(np.array([2, 1, 1, 0]), fraction=0.5).keep.tolist() == [False, True, False, True]


def test_fraction_takes_the_whole_number_below_and_not_one_more():
    assert top(np.arange(10), fraction=0.33).size == 3
    assert top(np.arange(10), fraction=0).size == 0
    assert top(np.arange(10), fraction=1).size == 10


def test_wrong_requests_are_named():
    with pytest.raises(ValueError, match="between 0 and 1"):
        top(np.arange(3), fraction=1.2)
    with pytest.raises(ValueError, match="the first at position 1"):
        top(np.array([1.0, np.nan]), fraction=0.5)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.floats(0, 1))
def test_top_agrees_with_sorting_in_a_loop(scores, fraction):
    slow = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[: int(fraction * len(scores))]
    assert np.flatnonzero(top(np.array(scores), fraction=fraction).keep).tolist() == sorted(slow)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=60), st.integers(0, 3))
def test_a_random_twin_has_the_same_size_and_label_balance(rows, seed):
    keep, labels = np.array([k for k, _ in rows]), np.array([label for _, label in rows])
    selection = Selection.where(keep, dropped="rule")
    twin = selection.random_twin(labels, seed)
    assert np.array_equal(np.bincount(labels[twin.keep], minlength=3), np.bincount(labels[keep], minlength=3))
    assert np.array_equal(twin.keep, selection.random_twin(labels, seed).keep)


def test_a_random_twin_is_random_and_uniform():
    labels = np.repeat([0, 1], 50)
    selection = Selection.where(np.arange(100) % 50 < 10, dropped="late")
    drawn = np.mean([selection.random_twin(labels, seed).keep for seed in range(400)], axis=0)
    assert np.abs(drawn - 0.2).max() < 0.1
    assert set(selection.random_twin(labels).reason) == {"drawn", "not drawn"}


def test_shapes_and_types_are_checked():
    with pytest.raises(ValueError, match="boolean array"):
        Selection(np.array([0, 1]), np.array(["a", "b"]))
    with pytest.raises(ValueError, match="one reason an example"):
        Selection(np.array([True]), np.array(["a", "b"]))
    with pytest.raises(ValueError, match="labels have shape"):
        Selection.all(3).random_twin(np.zeros(2))
    assert Selection.all(0).size == 0


def test_overlap_is_the_share_of_what_both_keep():
    first, second = (Selection.where(np.array(keep, bool), dropped="no") for keep in ([1, 1, 1, 0], [0, 1, 1, 1]))
    assert first.overlap(second) == second.overlap(first) == 0.5
    assert first.overlap(first) == 1
