"""Intervals over trainings and pairs. Alone: pytest tests/test_trainings.py"""

import numpy as np
import pytest
from scipy import stats

from nli_lib.stats import correlations_with, gaps_between, gaps_of_thirds, means_of, over_trainings, t_interval


def test_where_the_pairs_do_not_differ_it_is_the_t_interval():
    values = np.array([0.5, 0.6, 0.9])
    ours = over_trainings(means_of(np.tile(values[:, None], 40)), 40)
    assert ours[:3] == pytest.approx(t_interval(values)[:3]) and ours[3:] == (40, 3, "pairs and trainings")


def test_where_the_trainings_do_not_differ_it_is_the_normal_interval():
    ours = over_trainings(means_of(np.tile((np.arange(400) < 100).astype(float), (3, 1))), 400, resamples=4_000)
    half = 1.96 * np.sqrt(0.25 * 0.75 / 400)
    assert ours[:3] == pytest.approx((0.25, 0.25 - half, 0.25 + half), abs=0.002)


def test_both_parts_by_hand():
    """Two trainings, two groups: the mean over the groups that are drawn is 0, .5 or 1 with weights 1, 2, 1."""
    right = np.array([[1, 1, 0, 0], [1, 1, 0.2, 0.2]])
    ours = over_trainings(means_of(right), 4, groups=np.array(["a", "a", "b", "b"]), resamples=20_000)
    trainings = stats.t.ppf(0.975, 1) * np.array([0.5, 0.6]).std(ddof=1) / np.sqrt(2)
    pairs = 1.96 * np.sqrt(((1 - 0.1) / 2) ** 2 / 2)  # of the mean of two draws from 1 and .1
    half = np.sqrt(trainings**2 + pairs**2)
    assert ours.value == pytest.approx(0.55) and ours.high - ours.value == pytest.approx(half, rel=0.02)
    assert (ours.n, ours.over) == (2, "premises and trainings")


def test_it_covers_where_an_interval_over_pairs_alone_does_not():
    """200 studies of three trainings each: the true value is 0, trainings and pairs both add noise."""
    generator, inside, alone = np.random.default_rng(0), 0, 0
    for _ in range(200):
        values = generator.normal(size=(3, 1)) * 0.2 + generator.normal(size=(1, 60)) + np.zeros((3, 60))
        ours = over_trainings(means_of(values), 60, resamples=60)
        inside += ours.low <= 0 <= ours.high
        mean = values.mean(axis=0)
        alone += abs(mean.mean()) <= 1.96 * mean.std(ddof=1) / np.sqrt(60)
    assert inside / 200 >= 0.93 and alone / 200 <= 0.85


def test_correlations_are_those_of_scipy_and_do_not_depend_on_the_order():
    generator = np.random.default_rng(1)
    scores, target = generator.integers(0, 9, size=(3, 50)), generator.integers(0, 4, size=50)
    rows = generator.integers(50, size=50)
    for chosen in (np.arange(50), rows, np.sort(rows)):
        slow = [stats.spearmanr(each[chosen], target[chosen])[0] for each in scores]
        assert correlations_with(scores, target)(chosen) == pytest.approx(slow)
    assert np.isnan(correlations_with(scores, target)(np.zeros(5, int))).all()


def test_gaps_of_thirds_by_hand():
    scores, wrong = np.array([[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]]), [1, 1, 0, 0, 0, 1]
    assert gaps_of_thirds(scores, wrong)(np.arange(6)).tolist() == [0.5, -0.5]
    assert gaps_of_thirds(scores, wrong)(np.array([0, 0, 5])).tolist() == [0, 0]


def test_one_training_has_an_interval_over_the_pairs_alone():
    right = np.tile((np.arange(400) < 100).astype(float), (3, 1))
    alone, three = (over_trainings(means_of(each), 400) for each in (right[:1], right))
    assert alone[:3] == pytest.approx(three[:3]) and alone[3:] == (400, 1, "pairs")
    assert over_trainings(means_of(right[:1]), 400, groups=np.arange(400) // 4)[3:] == (100, 1, "premises")


def test_a_statistic_without_a_value_is_refused():
    for statistic in (correlations_with(np.zeros((3, 5)), np.arange(5)), lambda rows: np.float64(1)):
        with pytest.raises(ValueError, match="finite values, one a training"):
            over_trainings(statistic, 5)


def test_gaps_between_two_parts_of_the_pairs():
    values, one, other = np.arange(6.0).reshape(2, 3), np.array([[1, 1, 0]] * 2, bool), np.array([[0, 0, 1]] * 2, bool)
    assert gaps_between(values, one, other)(np.arange(3)).tolist() == [-1.5, -1.5]
    assert np.isnan(gaps_between(values, one, other)(np.array([0, 1]))).all()  # the second part was not drawn
