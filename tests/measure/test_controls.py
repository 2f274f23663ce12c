"""The controls of the z-statistics: resampled counts, shuffled labels, and words of either text."""

import numpy as np
import pytest

from nli_lib.measure.artifacts import features, pair_words, shuffled_labels, weighted_counts, z_statistics
from nli_lib.measure.dynamics import confidence, forgetting, max_variability, scores

PREMISES = ["a dog runs", "a dog runs", "two cats sit", "nobody sleeps"]
HYPOTHESES = ["a dog moves", "nobody runs", "cats", "nobody is awake"]
LABELS = np.array([0, 2, 1, 2])


def test_weights_count_a_pair_as_often_as_they_say():
    table = features(PREMISES, HYPOTHESES)
    weights = np.array([2, 0, 1, 3])
    drawn = np.repeat(np.arange(4), weights)
    slow = z_statistics(table.matrix[drawn], LABELS[drawn]).counts
    assert (weighted_counts(table.matrix, LABELS, weights) == slow).all()
    ones = weighted_counts(table.matrix, LABELS, np.ones(4, int))
    assert (ones == z_statistics(table.matrix, LABELS).counts).all()


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_shuffled_inside_a_premise_and_among_the_lone_ones(seed):
    groups = np.array(["a", "a", "a", "b", "b", "x", "y", "z"])
    labels = np.array([0, 1, 2, 0, 0, 1, 2, 2])
    shuffled = shuffled_labels(labels, groups, seed=seed)
    assert sorted(shuffled[:3]) == [0, 1, 2]
    assert shuffled[3:5].tolist() == [0, 0]
    assert sorted(shuffled[5:]) == [1, 2, 2]


def test_shuffling_moves_every_label_about_equally():
    labels = np.array([0, 1, 2] * 2000)
    groups = np.repeat(np.arange(2000), 3)
    shuffled = shuffled_labels(labels, groups, seed=1)
    for label in range(3):
        shares = np.bincount(shuffled[labels == label], minlength=3) / 2000
        assert shares == pytest.approx([1 / 3] * 3, abs=0.05)
    assert (shuffled_labels(labels, groups, seed=1) == shuffled).all()


def test_words_of_either_text_count_once_a_pair():
    words = pair_words(PREMISES, HYPOTHESES)
    column = {name: words.matrix[:, [i]].toarray().ravel().tolist() for i, name in enumerate(words.names)}
    assert column["nobody"] == [0, 1, 0, 1]
    assert column["runs"] == [1, 1, 0, 0]
    assert column["cats"] == [0, 0, 1, 0]
    assert not any("@" in name for name in words.names)


def test_scores_are_the_six_by_name():
    logits = np.random.default_rng(0).normal(size=(4, 7, 3))
    labels = np.arange(7) % 3
    given = scores(logits, labels)
    assert set(given) == {"confidence", "variability", "correctness", "margin", "forgetting", "max_variability"}
    assert (given["confidence"] == confidence(logits, labels)).all()
    assert (given["forgetting"] == forgetting(logits, labels)).all()
    assert (given["max_variability"] == max_variability(logits)).all()
