"""Fast, any machine: pytest tests/test_inference.py"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nli_lib import stats
from nli_lib.stats import (
    bootstrap_interval,
    correlation,
    mann_whitney,
    percentile_interval,
    resample_counts,
    share,
    stars,
    t_interval,
    wilson,
    with_wilson,
)

samples = st.lists(st.integers(0, 6), min_size=1, max_size=25).map(lambda v: np.array(v, dtype=float))


@given(samples, samples)
def test_mann_whitney_agrees_with_counting_pairs(a, b):
    greater = sum(float(x > y) + 0.5 * (x == y) for x in a for y in b)
    result = mann_whitney(a, b)
    assert result.u == pytest.approx(greater)
    assert result.effect == pytest.approx(2 * greater / (len(a) * len(b)) - 1)
    assert -1 <= result.effect <= 1
    assert 0 <= result.p <= result.p_bonferroni <= 1
    assert mann_whitney(b, a).effect == pytest.approx(-result.effect)
    assert mann_whitney(b, a).p == pytest.approx(result.p)


def test_mann_whitney_direction_family_and_ties():
    assert mann_whitney([5, 6, 7], [1, 2, 3]).effect == 1
    assert mann_whitney([1, 1], [1, 1, 1])[:4] == (3, 1.0, 1.0, 0.0)
    shifted = mann_whitney(np.arange(40), np.arange(40) + 12, family=9)
    assert shifted.effect < 0
    assert shifted.p_bonferroni == pytest.approx(min(1, 9 * shifted.p))
    with pytest.raises(ValueError, match="not finite"):
        mann_whitney([np.nan], [2])


def test_mann_whitney_corrects_for_ties_and_continuity_as_by_hand():
    a, b = np.array([0, 0, 1, 1, 1, 1.0]), np.array([0, 0, 0, 0, 1.0])
    pooled, n = np.concatenate([a, b]), 11
    ties = sum(count**3 - count for count in np.unique(pooled, return_counts=True)[1])
    sd = np.sqrt(6 * 5 / 12 * ((n + 1) - ties / (n * (n - 1))))
    z = (mann_whitney(a, b).u - 15 - 0.5) / sd
    assert mann_whitney(a, b).p == pytest.approx(2 * stats.stats.norm.sf(z))


@pytest.mark.parametrize(
    ("p", "expected"), [(0.2, "ns"), (0.05, "*"), (0.02, "*"), (0.01, "**"), (0.001, "***"), (1e-9, "***")]
)
def test_stars_as_in_the_difficulty_paper(p, expected):
    assert stars(p) == expected


def test_bootstrap_agrees_with_a_loop():
    values = np.random.default_rng(1).normal(size=60)
    slow = np.random.default_rng(0)
    draws = [values[slow.integers(60, size=60)].mean() for _ in range(500)]
    found = bootstrap_interval(values, resamples=500, seed=0)
    assert found[:3] == pytest.approx((values.mean(), *np.quantile(draws, [0.025, 0.975])))
    assert found[3:] == (60, 1, "pairs")


def test_bootstrap_does_not_depend_on_the_block_size(monkeypatch):
    values = np.random.default_rng(1).normal(size=41)
    whole = bootstrap_interval(values, resamples=301)
    monkeypatch.setattr(stats, "CELLS", 41 * 7)
    assert bootstrap_interval(values, resamples=301) == whole


def test_bootstrap_of_a_difference():
    generator = np.random.default_rng(2)
    base = generator.normal(size=400)
    shifted = base + 0.2 + generator.normal(scale=0.05, size=400)
    apart = bootstrap_interval(shifted, other=base[:300])
    assert apart.value == pytest.approx(shifted.mean() - base[:300].mean())
    assert apart.low < apart.value < apart.high
    assert apart.n == 700
    assert bootstrap_interval(shifted - base).high - 0.2 < 0.2 * (apart.high - apart.low)


def test_bootstrap_edges():
    assert bootstrap_interval([3.0]) == (3.0, 3.0, 3.0, 1, 1, "pairs")
    with pytest.raises(ValueError, match="N > 0"):
        bootstrap_interval([])


def test_bootstrap_covers_about_as_often_as_it_says():
    generator = np.random.default_rng(3)
    inside = 0
    for trial in range(200):
        _, low, high, *_ = bootstrap_interval(generator.normal(size=80), resamples=300, seed=trial)
        inside += low < 0 < high
    assert 0.88 < inside / 200 <= 0.99


def test_resample_counts_draw_whole_groups():
    groups = np.array(["a", "a", "b", "c", "c", "c"])
    counts = np.array(list(resample_counts(6, groups=groups, resamples=50, seed=1)))
    assert counts.shape == (50, 6)
    assert (counts[:, 0] == counts[:, 1]).all()
    assert (counts[:, 3] == counts[:, 5]).all()
    assert (counts[:, [0, 2, 3]].sum(axis=1) == 3).all()
    assert [each.sum() for each in resample_counts(9, resamples=5)] == [9] * 5
    with pytest.raises(ValueError, match="2 entries for 3"):
        next(resample_counts(3, groups=np.array([1, 2])))


def test_wilson_against_the_formula():
    p, n, z = 0.8, 50, 1.959963984540054
    centre, half = (p + z * z / 2 / n), z * np.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    ends = ((centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n))
    assert wilson(40, 50) == (0.8, pytest.approx(ends[0]), pytest.approx(ends[1]), 50, 1, "pairs")
    assert share([True] * 4 + [False]) == wilson(4, 5)
    assert wilson(0, 10).low == pytest.approx(0, abs=1e-12)
    assert wilson(10, 10).high == pytest.approx(1)
    for impossible in ((3, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="0 <= correct <= n"):
            wilson(*impossible)


def test_with_wilson_adds_the_share_and_its_interval_to_every_row():
    table = pd.DataFrame({"wrong": [4, 0, 2.4], "n": [5, 0, 10]})
    found = with_wilson(table, correct="wrong", value="share")
    assert found.loc[0, ["share", "low", "high"]].tolist() == pytest.approx(wilson(4, 5)[:3])
    assert found.loc[1, ["share", "low", "high"]].isna().all()
    assert found.loc[2, ["share", "low", "high"]].tolist() == pytest.approx([0.24, *wilson(2, 10)[1:3]])
    with pytest.raises(ValueError, match="0 <= wrong <= n"):
        with_wilson(table.assign(n=1), correct="wrong")


def test_t_interval_by_hand_and_of_one_seed():
    interval = t_interval([0.7, 0.8, 0.9], n=500)
    half = 4.302653 * 0.1 / 3**0.5
    assert interval[:3] == pytest.approx((0.8, 0.8 - half, 0.8 + half), rel=1e-6)
    assert interval[3:] == (500, 3, "trainings")
    value, low, high, *_ = t_interval([0.7])
    assert value == 0.7
    assert np.isnan(low)
    assert np.isnan(high)


def test_percentile_interval_takes_the_middle():
    found = percentile_interval(2.0, np.arange(101), n=7, over="premises")
    assert found == (2.0, pytest.approx(2.5), pytest.approx(97.5), 7, 1, "premises")


def test_correlation_agrees_with_scipy_and_ignores_order():
    generator = np.random.default_rng(4)
    x = generator.integers(0, 8, 120).astype(float)
    y = x + generator.normal(scale=3, size=120)
    spearman = correlation(x, y, resamples=300)
    assert spearman.value == pytest.approx(stats.stats.spearmanr(x, y).statistic)
    assert -1 <= spearman.low < spearman.value < spearman.high <= 1
    order = generator.permutation(120)
    assert correlation(x[order], y[order], resamples=10).value == pytest.approx(spearman.value)
    with pytest.raises(ValueError, match="constant"):
        correlation(np.ones(5), np.arange(5))


def test_pearson_is_scipys_and_a_constant_has_none():
    x, y = np.random.default_rng(0).normal(size=(2, 4, 30))
    wanted = [stats.stats.pearsonr(*each).statistic for each in zip(x, y, strict=True)]
    assert stats.pearson(x, y) == pytest.approx(wanted) == stats.pearson(x.T, y.T, axis=0)
    assert np.isnan(stats.pearson(np.ones((1, 3)), x[:1, :3])).all()


def test_mean_and_range():
    found = stats.mean_and_range(np.array([0.2, 0.3, 0.7]), n=50, over="orders")
    assert found[:4] == pytest.approx((0.4, 0.2, 0.7, 50)) and found.over == "orders"
