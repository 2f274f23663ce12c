"""Shares over groups against a bootstrap and by hand. Run alone: pytest tests/report/test_clustered.py"""

import numpy as np
import pytest

from nli_lib.report.clustered import clustered_mean, clustered_share
from nli_lib.report.inference import wilson
from nli_lib.report.premises import mean_over_premises


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


def test_one_group_has_no_spread_and_nothing_no_mean():
    assert np.isnan(clustered_mean([1, 0, 1], ["a", "a", "a"]).low)
    for function in (clustered_share, clustered_mean):
        with pytest.raises(ValueError, match="give one for each pair"):
            function([], [])
        with pytest.raises(ValueError, match="give one for each pair"):
            function([1, 0], ["a"])
