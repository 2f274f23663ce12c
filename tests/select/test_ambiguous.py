"""WANLI's selections by ambiguity. Run alone: pytest tests/select/test_ambiguous.py"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nli_lib.select.selection import BELOW, EXCLUDED, most_ambiguous, most_variable


def test_the_top_quarter_of_each_label_strictly_above_its_quantile():
    variability = [0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 0.9, 0.9, 0.9]
    labels = [0, 0, 0, 0, 0, 1, 1, 1, 1]
    # of label 0 the quantile is .4, and .4 does not lie above it; label 1 is all alike, so nothing lies above
    assert np.flatnonzero(most_variable(variability, labels).keep).tolist() == [4]


def test_a_genre_is_left_out_before_the_quantile_is_taken():
    variability, labels = np.array([0.1, 0.2, 0.3, 0.4, 5.0, 6.0, 7.0]), np.zeros(7, int)
    chosen = most_variable(variability, labels, excluded=[0, 0, 0, 0, 1, 1, 1])
    assert np.flatnonzero(chosen.keep).tolist() == [3]  # quantile .325 of the first four
    assert chosen.reason.tolist() == [BELOW] * 3 + ["kept"] + [EXCLUDED] * 3


def test_equally_many_of_each_label_the_highest_first_and_ties_by_place():
    scores = np.array([0.5, 0.4, 0.4, 0.4, 0.9, 0.1, 0.2, 0.3, 0.3, 0.8, 0.7, 0.6, 0.6])
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2])
    # int(.5 * 13) // 3 = 2 of each
    assert np.flatnonzero(most_ambiguous(scores, labels).keep).tolist() == [0, 1, 4, 7, 9, 10]


def test_the_papers_count_follows():
    labels = np.arange(287_241) % 3
    chosen = most_ambiguous(np.random.default_rng(0).random(287_241), labels)
    assert chosen.size == 143_619
    assert np.bincount(labels[chosen.keep]).tolist() == [47_873] * 3


def test_a_rare_label_gives_all_it_has():
    labels = np.array([0] * 20 + [1] * 2 + [2] * 20)
    assert np.bincount(labels[most_ambiguous(np.arange(42.0), labels).keep]).tolist() == [7, 2, 7]


def test_of_two_classes_each_gives_a_quarter():
    labels = np.arange(40) % 2
    assert np.bincount(labels[most_ambiguous(np.arange(40.0), labels, classes=2).keep]).tolist() == [10, 10]


@given(st.lists(st.tuples(st.floats(0, 0.5), st.integers(0, 2)), min_size=1, max_size=40), st.randoms())
def test_nothing_that_is_dropped_is_more_ambiguous_whatever_the_order(pairs, random):
    scores, labels = (np.array(column) for column in zip(*pairs, strict=True))
    kept = most_ambiguous(scores, labels)
    for label in range(3):
        inside, outside = (scores[(labels == label) & (kept.keep == side)] for side in (True, False))
        assert not len(inside) or not len(outside) or inside.min() >= outside.max()
    order = random.sample(range(len(pairs)), len(pairs))
    again = most_ambiguous(scores[order], labels[order])
    assert sorted(scores[order][again.keep]) == sorted(scores[kept.keep])


def test_a_pair_without_a_score_is_an_error():
    with pytest.raises(ValueError, match="give each pair one"):
        most_ambiguous([0.1, np.nan], [0, 1])
    with pytest.raises(ValueError, match="give each pair one"):
        most_ambiguous([0.1], [0, 1])


def test_a_pair_without_variability_does_not_cost_its_label():
    variability, labels = np.array([0.1, np.nan, 0.3, 0.4]), np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match="give each pair one"):
        most_variable(variability, labels)
    kept = most_variable(variability, labels, excluded=np.isnan(variability), quantile=0.5).keep
    assert kept.tolist() == [False, False, False, True]
