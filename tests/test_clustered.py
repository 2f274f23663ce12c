"""Shares over groups against a bootstrap and by hand. Run alone: pytest tests/test_clustered.py"""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from nli_lib.stats import clustered_area, clustered_mean, clustered_share, mean_over_premises, wilson


def test_pairs_that_are_alone_have_wilsons_interval():
    flags = np.arange(400) % 5 == 0
    ours, plain = clustered_share(flags, np.arange(400)), wilson(80, 400)
    # G / (G - 1), of the variance between groups, is all that differs
    assert ours[:3] == pytest.approx(plain[:3], abs=2e-4)
    assert (ours.n, ours.over) == (400, "premises")


def test_a_group_of_equal_pairs_is_one_pair():
    groups = np.repeat(np.arange(100), 4)
    flags = groups % 4 == 0
    alone = wilson(25, 100)
    assert clustered_share(flags, groups)[:3] == pytest.approx(alone[:3], abs=2e-3)


def test_balanced_groups_are_never_worth_more_than_their_pairs():
    groups, flags = np.repeat(np.arange(100), 2), np.tile([True, False], 100)
    assert clustered_share(flags, groups)[:3] == pytest.approx(wilson(100, 200)[:3])


def test_where_all_are_equal_each_group_counts_once():
    ours = clustered_share(np.ones(96, bool), np.zeros(96))
    assert ours[:3] == pytest.approx(wilson(1, 1)[:3]) and ours.high == 1.0  # one premise says hardly anything
    assert clustered_share(np.zeros(30, bool), np.arange(30)).low == 0.0


def test_a_bootstrap_of_groups_agrees():
    random = np.random.default_rng(0)
    groups = np.sort(random.integers(0, 300, size=1500))
    flags = random.random(1500) < random.beta(2, 4, size=300)[groups]
    drawn = mean_over_premises(flags, groups, resamples=2000)
    for ours in (clustered_share(flags, groups), clustered_mean(flags, groups)):
        assert ours.value == drawn.value
        assert (ours.low, ours.high) == pytest.approx((drawn.low, drawn.high), abs=0.006)


def scored(groups, seed, told=0.0, classes=3):
    """Scores, labels, folds and groups of three pairs each, whose labels and scores are alike."""
    random = np.random.default_rng(seed)
    labels = np.repeat(random.choice(classes, groups, p=[0.2, 0.3, 0.5]), 3)
    scores = np.repeat(random.normal(size=(groups, 3)), 3, axis=0) + 0.5 * random.normal(size=(3 * groups, 3))
    return (
        scores + told * np.eye(3)[labels],
        labels,
        np.repeat(np.arange(groups) % 4, 3),
        np.repeat(np.arange(groups), 3),
    )


def test_the_area_is_that_of_each_label_and_fold():
    scores, labels, folds, groups = scored(40, 0, told=1.0)
    areas = [
        np.average(
            [roc_auc_score(labels[folds == fold] == label, scores[folds == fold, label]) for fold in range(4)],
            weights=[(labels[folds == fold] == label).sum() for fold in range(4)],
        )
        for label in range(3)
    ]
    found = clustered_area(scores, labels, folds, groups)
    assert found.value == pytest.approx(np.mean(areas)) and found.n == 120
    assert clustered_area(np.eye(3)[labels], labels, folds, groups)[:3] == (1, 1, 1)
    silent = clustered_area(np.ones((120, 3)), labels, folds, groups)
    assert silent.value == pytest.approx(0.5) and np.isnan(silent.low) and np.isnan(silent.high)
    alone = clustered_area(scores, labels, folds, np.zeros(120))
    assert alone.value == found.value and np.isnan(alone.low) and np.isnan(alone.high)


def test_one_group_has_no_spread_and_nothing_no_mean():
    assert np.isnan(clustered_mean([1, 0, 1], ["a", "a", "a"]).low)
    for function in (clustered_share, clustered_mean):
        with pytest.raises(ValueError, match="give one for each pair"):
            function([], [])
        with pytest.raises(ValueError, match="give one for each pair"):
            function([1, 0], ["a"])
