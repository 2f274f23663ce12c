"""Fast, any machine: pytest tests/report/test_inference.py"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nli_lib.report import inference
from nli_lib.report.inference import (
    bootstrap_interval,
    correlation,
    mann_whitney,
    paired_test,
    resample_counts,
    stars,
    t_interval,
    wilson,
)

samples = st.lists(st.integers(0, 6), min_size=1, max_size=25).map(lambda v: np.array(v, dtype=float))


@settings(deadline=None)
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
    with pytest.raises(ValueError, match="family"):
        mann_whitney([1], [2], family=0)
    with pytest.raises(ValueError, match="not finite"):
        mann_whitney([np.nan], [2])


def test_mann_whitney_corrects_for_ties_and_continuity_as_by_hand():
    a, b = np.array([0, 0, 1, 1, 1, 1.0]), np.array([0, 0, 0, 0, 1.0])
    pooled, n = np.concatenate([a, b]), 11
    ties = sum(count**3 - count for count in np.unique(pooled, return_counts=True)[1])
    sd = np.sqrt(6 * 5 / 12 * ((n + 1) - ties / (n * (n - 1))))
    z = (mann_whitney(a, b).u - 15 - 0.5) / sd
    assert mann_whitney(a, b).p == pytest.approx(2 * inference.stats.norm.sf(z))


@pytest.mark.parametrize(
    ("p", "expected"), [(0.2, "ns"), (0.05, "*"), (0.02, "*"), (0.01, "**"), (0.001, "***"), (1e-9, "***")]
)
def test_stars_as_in_paper_004(p, expected):
    assert stars(p) == expected


def test_bootstrap_agrees_with_a_loop():
    values = np.random.default_rng(1).normal(size=60)
    slow = np.random.default_rng(0)
    draws = [values[slow.integers(60, size=60)].mean() for _ in range(500)]
    assert bootstrap_interval(values, resamples=500, seed=0) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))


def test_bootstrap_does_not_depend_on_the_block_size(monkeypatch):
    values = np.random.default_rng(1).normal(size=41)
    whole = bootstrap_interval(values, np.median, resamples=301)
    monkeypatch.setattr(inference, "CELLS", 41 * 7)
    assert bootstrap_interval(values, np.median, resamples=301) == whole


def test_bootstrap_of_a_difference():
    generator = np.random.default_rng(2)
    base = generator.normal(size=400)
    shifted = base + 0.2 + generator.normal(scale=0.05, size=400)
    paired = bootstrap_interval(shifted, other=base, paired=True)
    apart = bootstrap_interval(shifted, other=base)
    assert paired[0] < 0.2 < paired[1]
    assert paired[1] - paired[0] < 0.2 * (apart[1] - apart[0])
    assert bootstrap_interval(shifted, other=base[:100])[0] < 0.3
    with pytest.raises(ValueError, match="equal lengths"):
        bootstrap_interval(shifted, other=base[:3], paired=True)


def test_bootstrap_edges():
    assert bootstrap_interval([3.0]) == (3.0, 3.0)
    with pytest.raises(ValueError, match="N > 0"):
        bootstrap_interval([])
    with pytest.raises(ValueError, match="level"):
        bootstrap_interval([1.0, 2.0], level=95)


def test_bootstrap_covers_about_as_often_as_it_says():
    generator = np.random.default_rng(3)
    inside = 0
    for trial in range(200):
        low, high = bootstrap_interval(generator.normal(size=80), resamples=300, seed=trial)
        inside += low < 0 < high
    assert 0.88 < inside / 200 <= 0.99


def test_resample_counts_draw_whole_groups():
    groups = np.array(["a", "a", "b", "c", "c", "c"])
    counts = resample_counts(6, groups=groups, resamples=50, seed=1)
    assert counts.shape == (50, 6)
    assert (counts[:, 0] == counts[:, 1]).all()
    assert (counts[:, 3] == counts[:, 5]).all()
    assert (counts[:, [0, 2, 3]].sum(axis=1) == 3).all()
    assert (resample_counts(9, resamples=5).sum(axis=1) == 9).all()
    with pytest.raises(ValueError, match="2 entries for 3"):
        resample_counts(3, groups=np.array([1, 2]))


def test_wilson_against_the_formula():
    p, n, z = 0.8, 50, 1.959963984540054
    centre, half = (p + z * z / 2 / n), z * np.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    assert wilson(40, 50) == pytest.approx(((centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)))
    assert wilson(0, 10)[0] == pytest.approx(0, abs=1e-12)
    assert wilson(10, 10)[1] == pytest.approx(1)
    with pytest.raises(ValueError, match="no share"):
        wilson(3, 0)


def test_t_interval_by_hand_and_of_one_seed():
    interval = t_interval([0.7, 0.8, 0.9])
    assert interval == pytest.approx((0.8, 0.8 - 4.302653 * 0.1 / 3**0.5, 0.8 + 4.302653 * 0.1 / 3**0.5), rel=1e-6)
    value, low, high = t_interval([0.7])
    assert value == 0.7
    assert np.isnan(low)
    assert np.isnan(high)


def test_paired_test_by_hand():
    a = np.array([1] * 8 + [1] * 6 + [0] * 1 + [0] * 5, dtype=bool)
    b = np.array([1] * 8 + [0] * 6 + [1] * 1 + [0] * 5, dtype=bool)
    result = paired_test(a, b)
    assert (result.only_a, result.only_b, result.n) == (6, 1, 20)
    assert result.difference == pytest.approx(0.25)
    assert result.p_exact == pytest.approx(2 * (1 + 7) / 2**7)
    assert result.p_mid == pytest.approx(2 * (1 + 7) / 2**7 - 7 / 2**7)
    assert result.low < 0.25 < result.high
    assert paired_test(a, a)[:7] == (0, 0, 0, 0, 0, 1.0, 1.0)
    assert paired_test(b, a).difference == -result.difference
    assert paired_test([True, False], [False, True]).p_exact == 1
    with pytest.raises(ValueError, match="equal length"):
        paired_test(a, b[:3])


def test_correlation_agrees_with_scipy_and_ignores_order():
    generator = np.random.default_rng(4)
    x = generator.integers(0, 8, 120).astype(float)
    y = x + generator.normal(scale=3, size=120)
    spearman, pearson = correlation(x, y, resamples=300), correlation(x, y, kind="pearson", resamples=300)
    assert spearman.value == pytest.approx(inference.stats.spearmanr(x, y).statistic)
    assert pearson.value == pytest.approx(inference.stats.pearsonr(x, y).statistic)
    assert -1 <= spearman.low < spearman.value < spearman.high <= 1
    order = generator.permutation(120)
    assert correlation(x[order], y[order], resamples=10).value == pytest.approx(spearman.value)
    with pytest.raises(ValueError, match="constant"):
        correlation(np.ones(5), np.arange(5))
    with pytest.raises(ValueError, match="kendall"):
        correlation(x, y, kind="kendall")
