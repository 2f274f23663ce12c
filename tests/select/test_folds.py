"""Folds: every example once, no group split, nothing that cannot be scored. Alone: pytest tests/select/test_folds.py"""

import numpy as np
import pytest

from nli_lib.select.selection import folds, linked, sample_of_groups, sibling_labels

LABELS = np.arange(103) % 3


def test_every_example_has_one_fold_and_folds_are_even():
    fold = folds(LABELS)
    assert fold.shape == LABELS.shape
    assert sorted(np.bincount(fold, minlength=10).tolist()) == [10] * 7 + [11] * 3


def test_the_seed_decides():
    assert np.array_equal(folds(LABELS, seed=1), folds(LABELS, seed=1))
    assert not np.array_equal(folds(LABELS, seed=1), folds(LABELS, seed=2))


def test_no_group_is_split():
    premises = np.array([f"premise {i // 3}" for i in range(len(LABELS))])
    fold = folds(LABELS, groups=premises)
    assert all(len(set(fold[premises == premise])) == 1 for premise in set(premises))
    plain = folds(LABELS)
    assert any(len(set(plain[premises == premise])) > 1 for premise in set(premises))


@pytest.mark.parametrize(
    ("labels", "more", "said"),
    [
        (LABELS[:9], {}, "10 folds cannot be made of 9 examples"),
        (LABELS[:20], {"groups": ["one"] * 20}, "10 folds cannot be made of 1 groups"),
        (np.array([0] * 19 + [1]), {}, "label 1 occurs in fold"),
        (np.zeros(20, int), {}, "all 20 examples have the label 0"),
        (LABELS, {"count": 1}, "1 folds cannot be made of"),
        (LABELS, {"groups": range(11)}, "inconsistent numbers of samples"),
    ],
)
def test_what_cannot_be_folded_is_one_error(labels, more, said):
    with pytest.raises(ValueError, match=said):
        folds(labels, **more)


def test_as_many_folds_as_examples_leaves_one_out():
    assert sorted(folds(np.array([0, 0, 1, 1]), count=4).tolist()) == [0, 1, 2, 3]


def test_linked_by_hand():
    """One premise twice, its second hypothesis again beside another premise; what is missing links nothing."""
    assert linked(["a", "a", "b", "c", "d"], ["x", "y", "y", "z", "w"]).tolist() == [0, 0, 0, 1, 2]
    assert linked([None, None, np.nan], [1.0, np.nan, np.nan]).tolist() == [0, 1, 2]
    assert linked([], []).tolist() == []


def test_sibling_labels_by_hand():
    """One premise with labels 0, 1, 2 in folds 0, 0, 1; another alone."""
    beside = sibling_labels([0, 1, 2, 1], ["a", "a", "a", "b"], [0, 0, 1, 1])
    assert beside.tolist() == [[False, False, True], [False, False, True], [True, True, False], [False] * 3]


def test_sibling_labels_as_defined():
    random = np.random.default_rng(0)
    labels, groups, fold = random.integers(0, 3, 200), random.integers(0, 60, 200), random.integers(0, 5, 200)
    others = [(groups == groups[at]) & (fold != fold[at]) for at in range(200)]
    expected = [[any(other & (labels == label)) for label in range(3)] for other in others]
    assert np.array_equal(sibling_labels(labels, groups, fold), expected)
    order = random.permutation(200)
    assert np.array_equal(sibling_labels(labels[order], groups[order], fold[order]), np.array(expected)[order])


def test_nothing_is_beside_where_no_group_is_split():
    premises = [f"premise {i // 3}" for i in range(len(LABELS))]
    assert not sibling_labels(LABELS, premises, folds(LABELS, groups=premises)).any()
    assert sibling_labels(LABELS, premises, folds(LABELS)).any()


def test_a_sample_of_whole_premises():
    labels, premises = np.arange(60) % 3, np.arange(60) // 3
    sample = sample_of_groups(labels, premises, 20)
    assert sample.sum() == pytest.approx(20, abs=3)
    assert not set(premises[sample]) & set(premises[~sample])
    assert sample_of_groups(labels, premises, 100).all() and sample_of_groups(labels, premises, 0).all()
