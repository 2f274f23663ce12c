"""Numbers with their intervals, over pairs, premises and groups. Fast, any machine: pytest tests/test_stats.py"""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from cells import functions
from hypothesis import given, strategies as st
from sklearn.metrics import roc_auc_score

from nli_lib import stats
from nli_lib.stats import clustered_share, mann_whitney, wilson

OF_10, OF_52 = functions("10_data_map"), functions("52_spurious_measures")
samples = st.lists(st.integers(0, 6), min_size=1, max_size=25).map(lambda v: np.array(v, dtype=float))


@given(samples, samples)
def test_mann_whitney_agrees_with_counting_pairs(a, b):
    greater = sum(float(x > y) + 0.5 * (x == y) for x in a for y in b)
    result, turned = mann_whitney(a, b), mann_whitney(b, a)
    assert result.u == pytest.approx(greater) and result.effect == pytest.approx(2 * greater / (len(a) * len(b)) - 1)
    assert -1 <= result.effect <= 1 and 0 <= result.p <= result.p_bonferroni <= 1
    assert (turned.effect, turned.p) == pytest.approx((-result.effect, result.p))


def test_mann_whitney_direction_family_and_ties():
    assert mann_whitney([5, 6, 7], [1, 2, 3]).effect == 1 and mann_whitney([1, 1], [1, 1, 1])[:4] == (3, 1.0, 1.0, 0.0)
    shifted = mann_whitney(np.arange(40), np.arange(40) + 12, family=9)
    assert shifted.effect < 0 and shifted.p_bonferroni == pytest.approx(min(1, 9 * shifted.p))


def test_mann_whitney_corrects_for_ties_and_continuity_as_by_hand():
    a, b = np.array([0, 0, 1, 1, 1, 1.0]), np.array([0, 0, 0, 0, 1.0])
    pooled, n = np.concatenate([a, b]), 11
    ties = sum(count**3 - count for count in np.unique(pooled, return_counts=True)[1])
    z = (mann_whitney(a, b).u - 15 - 0.5) / np.sqrt(6 * 5 / 12 * ((n + 1) - ties / (n * (n - 1))))
    assert mann_whitney(a, b).p == pytest.approx(2 * scipy.stats.norm.sf(z))


def test_stars_as_in_the_difficulty_paper():
    marks = {0.2: "ns", 0.05: "*", 0.02: "*", 0.01: "**", 0.001: "***", 1e-9: "***"}
    assert {p: stats.stars(p) for p in marks} == marks


def test_an_effect_by_hand():
    """{1, 3} over {2}: one of two is larger, effect 0; a resample has both 1, both 3 or one of each."""
    assert OF_52.effect_interval([1, 3], [2]) == (0.0, -1.0, 1.0, 3, 1, "pairs")
    assert OF_52.effect_interval([2, 2], [2, 2])[:3] == (0, 0, 0)
    assert OF_52.effect_interval([5, 6], [1, 2])[:3] == (1, 1, 1)


def test_the_interval_of_an_effect_is_that_of_resampled_pairs():
    random = np.random.default_rng(0)
    a, b = random.integers(0, 4, 60).astype(float), random.integers(0, 5, 80).astype(float)
    found, wide = OF_52.effect_interval(a, b), OF_52.effect_interval(a, b, family=15)
    slow = [mann_whitney(random.choice(a, 60), random.choice(b, 80)).effect for _ in range(2000)]
    assert found.value == pytest.approx(mann_whitney(a, b).effect)
    np.testing.assert_allclose([found.low, found.high], np.quantile(slow, [0.025, 0.975]), atol=0.025)
    np.testing.assert_allclose([wide.low, wide.high], np.quantile(slow, [1 / 600, 1 - 1 / 600]), atol=0.06)
    assert wide.low < found.low and wide.high > found.high


def test_resample_counts_draw_whole_groups():
    groups = np.array(["a", "a", "b", "c", "c", "c"])
    counts = np.array(list(stats.resample_counts(6, groups=groups, resamples=50, seed=1)))
    assert counts.shape == (50, 6) and (counts[:, 0] == counts[:, 1]).all() and (counts[:, 3] == counts[:, 5]).all()
    assert (counts[:, [0, 2, 3]].sum(axis=1) == 3).all()
    assert [each.sum() for each in stats.resample_counts(9, resamples=5)] == [9] * 5


def test_wilson_against_the_formula():
    p, n, z = 0.8, 50, 1.959963984540054
    centre, half = (p + z * z / 2 / n), z * np.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    ends = ((centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n))
    assert wilson(40, 50) == (0.8, pytest.approx(ends[0]), pytest.approx(ends[1]), 50, 1, "pairs")
    assert stats.share([True] * 4 + [False]) == wilson(4, 5)
    assert wilson(0, 10).low == pytest.approx(0, abs=1e-12) and wilson(10, 10).high == pytest.approx(1)


def test_with_wilson_adds_the_share_and_its_interval_to_every_row():
    table = pd.DataFrame({"wrong": [4, 0, 2.4], "n": [5, 0, 10]})
    rows = stats.with_wilson(table, correct="wrong", value="share")[["share", "low", "high"]].to_numpy()
    assert rows[0] == pytest.approx(wilson(4, 5)[:3]) and np.isnan(rows[1]).all()
    assert rows[2] == pytest.approx([0.24, *wilson(2, 10)[1:3]])


def test_t_interval_by_hand_and_of_one_seed():
    half = 4.302653 * 0.1 / 3**0.5
    assert stats.t_interval([0.7, 0.8, 0.9], n=500)[:3] == pytest.approx((0.8, 0.8 - half, 0.8 + half), rel=1e-6)
    assert stats.t_interval([0.7, 0.8, 0.9], n=500)[3:] == (500, 3, "trainings")
    assert stats.t_interval([0.7])[:3] == pytest.approx((0.7, np.nan, np.nan), nan_ok=True)


def test_the_middle_of_draws_and_the_range_of_a_few_values():
    found = stats.percentile_interval(2.0, np.arange(101), n=7, over="premises")
    assert found == (2.0, pytest.approx(2.5), pytest.approx(97.5), 7, 1, "premises")
    found = stats.mean_and_range(np.array([0.2, 0.3, 0.7]), n=50, over="orders")
    assert found[:4] == pytest.approx((0.4, 0.2, 0.7, 50)) and found.over == "orders"


def test_correlations_are_scipys_and_a_constant_has_none():
    x, y = np.random.default_rng(4).normal(size=(2, 4, 30))
    wanted = [scipy.stats.pearsonr(*each).statistic for each in zip(x, y, strict=True)]
    assert stats.pearson(x, y) == pytest.approx(wanted) == stats.pearson(x.T, y.T, axis=0)
    assert np.isnan(stats.pearson(np.ones((1, 3)), x[:1, :3])).all()


# ---------------------------------------------------------------- premises


def test_premises_by_hand():
    """Two premises, one always right and one always wrong: a resample is right in all, half or none of its pairs."""
    assert stats.mean_over_premises([1, 1, 0, 0], ["a", "a", "b", "b"]) == (0.5, 0.0, 1.0, 2, 1, "premises")
    gap = stats.mean_over_premises([1, 1, 0, 0], ["a", "a", "b", "b"], other=([1, 1, 1], ["c", "d", "c"]))
    assert (gap.value, gap.low, gap.high, gap.n) == (-0.5, -1.0, 0.0, 2)


def test_equal_to_drawing_premises_one_by_one():
    random = np.random.default_rng(0)
    premises = random.integers(0, 40, 200)
    values = (random.random(200) < 0.2 + 0.6 * (premises % 2)).astype(float)
    found, names, slow = stats.mean_over_premises(values, premises), np.unique(premises), []
    for _ in range(2000):
        rows = np.concatenate([np.flatnonzero(premises == name) for name in random.choice(names, len(names))])
        slow.append(values[rows].mean())
    assert found.value == values.mean() and found.n == len(names)
    np.testing.assert_allclose([found.low, found.high], np.quantile(slow, [0.025, 0.975]), atol=0.02)


def test_premises_of_one_pair_are_pairs_and_repeated_ones_widen_the_interval():
    values = np.random.default_rng(1).integers(0, 2, 300).astype(float)
    alone, half = stats.mean_over_premises(values, np.arange(300)), 1.96 * values.std() / np.sqrt(300)
    np.testing.assert_allclose(alone[:3], values.mean() + half * np.array([0, -1, 1]), atol=0.01)
    tripled = stats.mean_over_premises(np.repeat(values, 3), np.repeat(np.arange(300), 3))
    np.testing.assert_allclose(tripled[:3], alone[:3], atol=1e-12)  # the same answers three times say no more
    assert tripled.n == 300


def test_rows_and_halves_come_with_their_whole_premise():
    premises = np.array(["a", "b", "a", "c"])
    for rows in stats.drawn_rows(premises, resamples=20):
        times = np.bincount(rows, minlength=4)
        assert times[0] == times[2] and times[0] + times[1] + times[3] == 3
    premises = np.array(["a", "b", "a", "c", "d", "d", "d", "e"])
    halves = list(stats.half_samples(premises, resamples=40))
    for rows in halves:
        assert len(set(premises[rows])) == 2 and np.array_equal(rows, np.flatnonzero(np.isin(premises, premises[rows])))
    assert {name for rows in halves for name in premises[rows]} == set(premises)


def test_a_mean_varies_over_halves_as_over_samples_of_all():
    """Delete-half: the variance of the mean of half of the values is that of the mean of all of them in new samples."""
    values = np.random.default_rng(2).gamma(1, size=400)
    means = [values[rows].mean() for rows in stats.half_samples(np.arange(400), resamples=4000)]
    np.testing.assert_allclose(np.std(means), values.std(ddof=1) / 20, rtol=0.05)
    np.testing.assert_allclose(np.mean(means), values.mean(), atol=0.005)


def test_a_count_above_a_line_rises_in_resamples_and_the_centred_interval_covers_it():
    """The reason for `centred_interval`: of z by chance one per cent lies above the line, in resamples five."""
    found = stats.centred_interval(5, np.linspace(10, 20, 1001), n=7)  # moved onto the value
    assert found == (5, pytest.approx(5 - 4.75), pytest.approx(5 + 4.75), 7, 1, "premises")
    random, line, held = np.random.default_rng(0), 2.326, []
    for _ in range(60):
        z = random.normal(size=1000)
        draws = ((z + random.normal(size=(200, 1000))) > line).sum(axis=1)
        assert draws.mean() > 2 * (z > line).sum()
        found = stats.centred_interval((z > line).sum(), draws, n=1)
        held.append(found.low <= 10 <= found.high)
    assert np.mean(held) >= 0.95


# ---------------------------------------------------------------- groups, without resamples

ALONE, FOURS, TWOS = np.arange(400), np.repeat(np.arange(100), 4), np.repeat(np.arange(100), 2)


@pytest.mark.parametrize(("flags", "groups", "wanted", "close"), [
    (ALONE % 5 == 0, ALONE, wilson(80, 400), 2e-4),  # G / (G - 1), of the variance between groups, differs
    (FOURS % 4 == 0, FOURS, wilson(25, 100), 2e-3),  # a group of equal pairs is one pair
    (np.tile([True, False], 100), TWOS, wilson(100, 200), 1e-6),  # balanced: never worth more than their pairs
    (np.ones(96, bool), np.zeros(96), wilson(1, 1), 1e-6)  # one premise says hardly anything
    ])  # fmt: skip
def test_groups_are_worth_as_many_pairs(flags, groups, wanted, close):
    ours = clustered_share(flags, groups)
    assert ours[:3] == pytest.approx(wanted[:3], abs=close) and (ours.n, ours.over) == (len(flags), "premises")


def test_a_bootstrap_of_groups_agrees():
    random = np.random.default_rng(0)
    groups = np.sort(random.integers(0, 300, size=1500))
    flags = random.random(1500) < random.beta(2, 4, size=300)[groups]
    drawn = stats.mean_over_premises(flags, groups, resamples=2000)
    for ours in (clustered_share(flags, groups), stats.clustered_mean(flags, groups)):
        assert ours.value == drawn.value and (ours.low, ours.high) == pytest.approx((drawn.low, drawn.high), abs=0.006)


def test_the_area_is_that_of_each_label_and_fold():
    """Groups of three pairs each, whose labels and scores are alike."""
    random = np.random.default_rng(0)
    labels = np.repeat(random.choice(3, 40, p=[0.2, 0.3, 0.5]), 3)
    scores = np.repeat(random.normal(size=(40, 3)), 3, axis=0) + 0.5 * random.normal(size=(120, 3)) + np.eye(3)[labels]
    groups = np.repeat(np.arange(40), 3)
    folds, areas = groups % 4, []
    for label in range(3):
        own = [(labels[folds == fold] == label, scores[folds == fold, label]) for fold in range(4)]
        areas.append(np.average([roc_auc_score(*each) for each in own], weights=[each.sum() for each, _ in own]))
    found = stats.clustered_area(scores, labels, folds, groups)
    assert found.value == pytest.approx(np.mean(areas)) and found.n == 120
    assert stats.clustered_area(np.eye(3)[labels], labels, folds, groups)[:3] == (1, 1, 1)
    silent = stats.clustered_area(np.ones((120, 3)), labels, folds, groups)
    alone = stats.clustered_area(scores, labels, folds, np.zeros(120))
    assert silent[:3] == pytest.approx((0.5, np.nan, np.nan), nan_ok=True)
    assert alone[:3] == pytest.approx((found.value, np.nan, np.nan), nan_ok=True)


def test_one_group_has_no_spread_and_nothing_no_mean():
    assert np.isnan(stats.clustered_mean([1, 0, 1], ["a", "a", "a"]).low)
    assert clustered_share(np.ones(96, bool), np.zeros(96)).high == 1.0  # where all are equal an end is exact
    assert clustered_share(np.zeros(30, bool), np.arange(30)).low == 0.0


REFUSED = [
    (mann_whitney, [([np.nan], [2])], "not finite"),
    (OF_52.effect_interval, [([], [1]), ([1], []), ([np.nan], [1])], "on both sides"),
    (stats.t_interval, [([],)], "N > 0"),
    (lambda n, groups: next(stats.resample_counts(n, groups=groups)), [(3, np.array([1, 2]))], "2 entries for 3"),
    (wilson, [(3, 0), (3, 2), (-1, 2)], "0 <= correct <= n"),
    (stats.with_wilson, [(pd.DataFrame({"wrong": [4, 0, 2.4], "n": 1}), "wrong")], "0 <= wrong <= n"),
    (stats.mean_over_premises, [([], []), ([1, 0], ["a"]), ([np.nan], ["a"])], "a finite one for each pair"),
    (clustered_share, [([], []), ([1, 0], ["a"])], "give one for each pair"),
    (stats.clustered_mean, [([], []), ([1, 0], ["a"])], "give one for each pair")]  # fmt: skip


@pytest.mark.parametrize(("function", "cases", "said"), REFUSED)
def test_what_has_no_estimate_is_refused(function, cases, said):
    for case in cases:
        with pytest.raises(ValueError, match=said):
            function(*case)


# ---------------------------------------------------------------- trainings and pairs


def test_where_the_pairs_do_not_differ_it_is_the_t_interval():
    values = np.array([0.5, 0.6, 0.9])
    ours = stats.over_trainings(stats.means_of(np.tile(values[:, None], 40)), 40)
    assert ours[:3] == pytest.approx(stats.t_interval(values)[:3]) and ours[3:] == (40, 3, "pairs and trainings")


def test_where_the_trainings_do_not_differ_it_is_the_normal_interval():
    right = np.tile((np.arange(400) < 100).astype(float), (3, 1))
    ours = stats.over_trainings(stats.means_of(right), 400, resamples=4_000)
    half = 1.96 * np.sqrt(0.25 * 0.75 / 400)
    assert ours[:3] == pytest.approx((0.25, 0.25 - half, 0.25 + half), abs=0.002)


def test_both_parts_by_hand():
    """Two trainings, two groups: the mean over the groups that are drawn is 0, .5 or 1 with weights 1, 2, 1."""
    right = np.array([[1, 1, 0, 0], [1, 1, 0.2, 0.2]])
    ours = stats.over_trainings(stats.means_of(right), 4, groups=np.array(["a", "a", "b", "b"]), resamples=20_000)
    trainings = scipy.stats.t.ppf(0.975, 1) * np.array([0.5, 0.6]).std(ddof=1) / np.sqrt(2)
    pairs = 1.96 * np.sqrt(((1 - 0.1) / 2) ** 2 / 2)  # of the mean of two draws from 1 and .1
    half = np.sqrt(trainings**2 + pairs**2)
    assert ours.value == pytest.approx(0.55) and ours.high - ours.value == pytest.approx(half, rel=0.02)
    assert (ours.n, ours.over) == (2, "premises and trainings")


def test_it_covers_where_an_interval_over_pairs_alone_does_not():
    """200 studies of three trainings each: the true value is 0, trainings and pairs both add noise."""
    generator, inside, alone = np.random.default_rng(0), 0, 0
    for _ in range(200):
        values = generator.normal(size=(3, 1)) * 0.2 + generator.normal(size=(1, 60)) + np.zeros((3, 60))
        ours = stats.over_trainings(stats.means_of(values), 60, resamples=60)
        inside += ours.low <= 0 <= ours.high
        mean = values.mean(axis=0)
        alone += abs(mean.mean()) <= 1.96 * mean.std(ddof=1) / np.sqrt(60)
    assert inside / 200 >= 0.93 and alone / 200 <= 0.85


def test_correlations_are_those_of_scipy_and_do_not_depend_on_the_order():
    generator = np.random.default_rng(1)
    scores, target = generator.integers(0, 9, size=(3, 50)), generator.integers(0, 4, size=50)
    rows = generator.integers(50, size=50)
    for chosen in (np.arange(50), rows, np.sort(rows)):
        slow = [scipy.stats.spearmanr(each[chosen], target[chosen])[0] for each in scores]
        assert stats.correlations_with(scores, target)(chosen) == pytest.approx(slow)
    assert np.isnan(stats.correlations_with(scores, target)(np.zeros(5, int))).all()


def test_gaps_of_thirds_by_hand():
    scores, wrong = np.array([[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]]), np.array([1, 1, 0, 0, 0, 1])
    assert OF_10.gaps_of_thirds(scores, wrong)(np.arange(6)).tolist() == [0.5, -0.5]
    assert OF_10.gaps_of_thirds(scores, wrong)(np.array([0, 0, 5])).tolist() == [0, 0]


def test_one_training_has_an_interval_over_the_pairs_alone():
    right = np.tile((np.arange(400) < 100).astype(float), (3, 1))
    alone, three = (stats.over_trainings(stats.means_of(each), 400) for each in (right[:1], right))
    assert alone[:3] == pytest.approx(three[:3]) and alone[3:] == (400, 1, "pairs")
    assert stats.over_trainings(stats.means_of(right[:1]), 400, groups=np.arange(400) // 4)[3:] == (100, 1, "premises")


def test_a_statistic_without_a_value_is_refused():
    for statistic in (stats.correlations_with(np.zeros((3, 5)), np.arange(5)), lambda rows: np.float64(1)):
        with pytest.raises(ValueError, match="finite values, one a training"):
            stats.over_trainings(statistic, 5)


def test_gaps_between_two_parts_of_the_pairs():
    values, one, other = np.arange(6.0).reshape(2, 3), np.array([[1, 1, 0]] * 2, bool), np.array([[0, 0, 1]] * 2, bool)
    assert stats.gaps_between(values, one, other)(np.arange(3)).tolist() == [-1.5, -1.5]
    assert np.isnan(stats.gaps_between(values, one, other)(np.array([0, 1]))).all()  # the second part was not drawn
