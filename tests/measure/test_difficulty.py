"""Features of two views and the three levels of the difficulty paper. Alone: pytest tests/measure/test_difficulty.py"""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import adjusted_rand_score

from nli_lib.measure.dynamics import (
    FEATURES,
    LEVELS,
    dynamics_features,
    feature_table,
    level_agreement,
    levels,
)


def three_groups(sizes=(60, 30, 20), seed=0):
    """Features of examples that are plainly easy, ambiguous or hard, and which they are."""
    random = np.random.default_rng(seed)
    centres = np.array([[0.9, 0.05], [0.5, 0.3], [0.15, 0.1]])
    truth = np.repeat(np.arange(3), sizes)
    return centres[truth] + random.normal(0, 0.02, (len(truth), 2)), truth


def test_the_features_by_hand():
    # two epochs, one example, gold label 0; the hypothesis model sees three equal logits
    pair = np.log([[[0.5, 0.25, 0.25]], [[0.3, 0.6, 0.1]]])
    flat = np.zeros((2, 1, 3))
    row = dict(zip(FEATURES, dynamics_features(pair, flat, [0])[0], strict=True))
    assert row["pair confidence"] == pytest.approx(0.4)
    assert row["pair variability"] == pytest.approx(0.1)  # the square that equation 2 forgets is there
    assert row["pair margin"] == pytest.approx((np.log(2) + np.log(0.5)) / 2)
    assert row["pair correctness"] == 0.5
    assert row["hypothesis confidence"] == pytest.approx(1 / 3)
    assert row["hypothesis variability"] == 0
    assert row["hypothesis margin"] == 0
    assert row["hypothesis correctness"] == 1  # a tie counts for the lowest class


def test_features_are_those_of_a_slow_twin():
    random = np.random.default_rng(1)
    pair, alone, gold = random.normal(size=(5, 7, 3)), random.normal(size=(5, 7, 3)), random.integers(0, 3, 7)
    got = dynamics_features(pair, alone, gold)
    for i in range(7):
        expected = []
        for logits in (pair, alone):
            p = [softmax(logits[e, i])[gold[i]] for e in range(5)]
            mean = sum(p) / 5
            others = [max(x for c, x in enumerate(logits[e, i]) if c != gold[i]) for e in range(5)]
            expected += [mean, (sum((x - mean) ** 2 for x in p) / 5) ** 0.5]
            expected += [sum(logits[e, i, gold[i]] - others[e] for e in range(5)) / 5]
            expected += [sum(logits[e, i].argmax() == gold[i] for e in range(5)) / 5]
        assert got[i] == pytest.approx(expected)


def test_planted_levels_are_found_and_named_by_confidence():
    features, truth = three_groups()
    assert np.array_equal(levels(features), truth)
    assert LEVELS == ("easy", "ambiguous", "hard")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_plain_groups_do_not_depend_on_the_seed(seed):
    features, truth = three_groups()
    assert np.array_equal(levels(features, seed=seed), truth)


def test_one_seed_gives_one_answer():
    features = np.random.default_rng(3).normal(size=(60, 8))  # no groups at all: the seed decides
    assert np.array_equal(levels(features), levels(features))


def test_order_of_the_examples_does_not_matter():
    features, truth = three_groups()
    order = np.random.default_rng(5).permutation(len(features))
    assert np.array_equal(levels(features[order]), truth[order])


def test_units_of_a_feature_do_not_matter_and_a_constant_one_adds_nothing():
    features, truth = three_groups()
    scaled = np.column_stack([features[:, 0], 1000 * features[:, 1], np.full(len(features), 7.0)])
    assert adjusted_rand_score(levels(scaled), truth) == 1


def test_features_that_vary_little_are_standardised_first():
    """Of their variances, 1e-8 and less, the 1e-6 that is added to each would leave nothing."""
    features, truth = three_groups()
    assert np.array_equal(levels(3 + features / 1e4), truth)


def test_ambiguous_is_what_is_left_not_what_varies_most():
    features, truth = three_groups()
    features[truth == 2, 1] += 0.5  # now the hard ones vary most
    assert np.array_equal(levels(features), truth)


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (np.zeros((2, 8)), "n_samples = 2"),
        (np.zeros(8), "Expected 2D array"),
        (np.array([[0.0], [np.nan], [1.0]]), "contains NaN"),
        (np.zeros((9, 8)), "fall into 1 of 3 groups"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_cannot_be_grouped_is_an_error(features, said):
    with pytest.raises(ValueError, match=said):
        levels(features)


def test_views_of_other_examples_are_refused():
    with pytest.raises(ValueError, match="4,. for 3 examples"):
        dynamics_features(np.zeros((5, 4, 3)), np.zeros((5, 3, 3)), np.zeros(4, int))


def test_the_table_holds_the_features_and_the_label():
    pair, flat = np.log([[[0.5, 0.25, 0.25]], [[0.3, 0.6, 0.1]]]), np.zeros((2, 1, 3))
    table = feature_table(pair, flat, [0])
    assert list(table.columns) == [*FEATURES, "gold"]
    assert table["pair confidence"].iloc[0] == np.float32(0.4)


def test_agreement_of_levels_by_hand():
    first, second = np.array([0, 0, 1, 2, 2]), np.array([0, 0, 2, 2, 1])
    found = level_agreement(first, second)
    assert (found["same level"], found["hard in both"], found["hard by chance"]) == (0.6, 0.5, 0.4)
    assert found["adjusted Rand"] == pytest.approx(adjusted_rand_score(first, second))
    assert set(level_agreement(first, first).values()) == {1.0, 0.4}


def test_hard_in_both_is_a_share_of_what_is_hard_in_the_first():
    found = level_agreement([2, 2, 0, 1, 0], [2, 0, 0, 1, 1])
    assert (found["hard in both"], found["hard by chance"]) == (0.5, 0.2)
