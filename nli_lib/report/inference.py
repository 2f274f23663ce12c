"""Spread and tests: what a difference is worth.

Every number comes back as an `Estimate` with its interval, every test with an effect size whose direction is stated.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from nli_lib.report.estimate import Estimate

LEVEL = 0.95  # of every interval
CELLS = 4_000_000  # resampled values held in memory at once
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


class MannWhitney(NamedTuple):
    """u of the first sample; p two-sided; p_bonferroni = min(1, p * family); effect in [-1, 1], see `mann_whitney`."""

    u: float
    p: float
    p_bonferroni: float
    effect: float
    n_a: int
    n_b: int


def wilson(correct: int, n: int, *, seeds: int = 1) -> Estimate:
    """The share ``correct / n`` with its Wilson score interval. Source: Wilson (1927), through statsmodels."""
    if not 0 <= correct <= n or n == 0:
        raise ValueError(f"correct={correct}, n={n}: a share needs 0 <= correct <= n and n > 0")
    low, high = proportion_confint(int(correct), int(n), alpha=1 - LEVEL, method="wilson")
    return Estimate(correct / n, float(low), float(high), int(n), seeds)


def share(flags: np.ndarray, *, seeds: int = 1) -> Estimate:
    """The share of True among ``flags`` (N,) with its Wilson interval."""
    flags = np.asarray(flags, dtype=bool)
    return wilson(int(flags.sum()), len(flags), seeds=seeds)


def with_wilson(table: pd.DataFrame, correct: str = "correct", n: str = "n", value: str = "accuracy") -> pd.DataFrame:
    """The table with three more columns: ``value``, the share of the counts ``correct`` in ``n``, and its Wilson
    interval, ``low`` and ``high``. A mean of counts over seeds is rounded for the interval; rows of n = 0 get NaN."""
    counts, sizes = table[correct].round(), table[n].where(table[n] > 0)
    if not counts[sizes.notna()].between(0, sizes[sizes.notna()]).all():
        raise ValueError(f"a share needs 0 <= {correct} <= {n}, and a row of the table has not")
    low, high = proportion_confint(counts, sizes, alpha=1 - LEVEL, method="wilson")
    return table.assign(**{value: table[correct] / sizes, "low": low, "high": high})


def t_interval(values: np.ndarray, *, n: int | None = None, over: str = "trainings") -> Estimate:
    """Mean of a few independent values (one a seed), with Student's t interval: mean +- t sd / sqrt(S), ddof = 1.

    values (S,); ``n`` the examples that each of them rests on (the number of values by default). With one value there
    is no spread to estimate, so both ends are NaN.
    """
    values = _sample(values, "values")
    mean, half = float(values.mean()), float("nan")
    if len(values) > 1:
        half = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return Estimate(mean, mean - half, mean + half, len(values) if n is None else int(n), len(values), over)


def mean_and_range(values: np.ndarray, *, n: int, over: str) -> Estimate:
    """Mean of a few values with the smallest and the largest as low and high: of orders of a filter, or of labels.

    values (S,); ``n`` the examples that each rests on. A range, not a confidence interval.
    """
    values = _sample(values, "values")
    return Estimate(float(values.mean()), float(values.min()), float(values.max()), int(n), over=over)


def bootstrap_interval(
    values: np.ndarray, *, other: np.ndarray | None = None, resamples: int = 2000, seed: int = 0
) -> Estimate:
    """The mean of ``values`` with its percentile bootstrap interval, or how far it lies above the mean of ``other``.

    values (N,), other (M,), resampled on their own; n is N + M. For a paired difference give the differences as
    ``values``.
    """
    generator = np.random.default_rng(seed)
    samples = [_sample(values, "values")] + ([] if other is None else [_sample(other, "other")])
    first, *second = [(each.mean(), _resampled(generator, np.mean, resamples, each)) for each in samples]
    value, draws = (one - other for one, other in zip(first, second[0], strict=True)) if second else first
    return percentile_interval(value, draws, n=sum(map(len, samples)))


def percentile_interval(value: float, draws: np.ndarray, *, n: int, seeds: int = 1, over: str = "pairs") -> Estimate:
    """``value`` with the middle 95% of the resampled values ``draws`` (R,) as its interval."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(value), float(low), float(high), int(n), seeds, over)


def resample_counts(
    n: int, *, groups: np.ndarray | None = None, resamples: int = 200, seed: int = 0
) -> Iterator[np.ndarray]:
    """How often each of ``n`` examples is drawn, (n,), in one bootstrap resample after the other.

    With ``groups`` (n,) whole groups are drawn, for example premises: the hypotheses of one premise are not independent
    draws.
    """
    codes = np.arange(n) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    if len(codes) != n or n == 0:
        raise ValueError(f"groups has {len(codes)} entries for {n} examples")
    count, generator = int(codes.max()) + 1, np.random.default_rng(seed)
    for _ in range(resamples):
        yield generator.multinomial(count, np.full(count, 1 / count))[codes]


def mann_whitney(a: np.ndarray, b: np.ndarray, *, family: int = 1) -> MannWhitney:
    """Two-sided Mann-Whitney U test, with ties and continuity corrected, and the rank-biserial effect size.

    a (n_a,), b (n_b,). effect = 2 U_a / (n_a n_b) - 1: the probability that a random value of ``a`` exceeds one of
    ``b`` minus the reverse; +1 when every a is larger, 0 when neither tends to be, -1 when every b is larger.
    ``family`` is the number of tests that share the Bonferroni correction.

    *Departures*: the difficulty paper does not state its family (9 a panel is the likely one) and gives no effect size.
    """
    a, b = _sample(a, "a"), _sample(b, "b")
    if min(a.min(), b.min()) == max(a.max(), b.max()):  # all tied: nothing to rank, scipy would divide by zero
        u, p = len(a) * len(b) / 2, 1.0
    else:
        u, p = stats.mannwhitneyu(a, b, alternative="two-sided", method="asymptotic", use_continuity=True)
    effect = 2 * u / (len(a) * len(b)) - 1
    return MannWhitney(float(u), float(p), min(1.0, float(p) * family), float(effect), len(a), len(b))


def stars(p: float) -> str:
    """ns, *, **, *** at .05, .01 and .001, as the difficulty paper draws them; at a threshold the more stars."""
    return next((mark for threshold, mark in STARS if p <= threshold), "ns")


def correlation(x: np.ndarray, y: np.ndarray, *, resamples: int = 2000, seed: int = 0) -> Estimate:
    """Spearman correlation in [-1, 1] with its percentile bootstrap interval over the pairs (x_i, y_i).

    x, y (N,). It is the correlation of the average ranks, which are taken anew in every resample. A constant x or y has
    no correlation: an error.
    """
    x, y = _sample(x, "x"), _sample(y, "y")
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} values, y {len(y)}")
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        raise ValueError("a constant has no correlation with anything")

    draws = _resampled(np.random.default_rng(seed), spearman, resamples, x, y)
    return percentile_interval(spearman(x, y), draws[np.isfinite(draws)], n=len(x))


def spearman(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    """Spearman correlations of x (..., N) with y (..., N) along ``axis``, for which scipy has a loop; a constant's is
    NaN."""
    x, y = (stats.rankdata(each, axis=axis) for each in (x, y))
    x, y = (ranks - ranks.mean(axis=axis, keepdims=True) for ranks in (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (x * y).sum(axis=axis) / np.sqrt((x**2).sum(axis=axis) * (y**2).sum(axis=axis))


def _sample(values: np.ndarray, name: str) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"{name} must have shape (N,) with N > 0, not {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds {int((~np.isfinite(values)).sum())} values that are not finite")
    return values


def _resampled(generator: np.random.Generator, statistic: Callable, resamples: int, *samples: np.ndarray) -> np.ndarray:
    """``statistic`` of ``resamples`` draws with replacement, the samples (N,) drawn together by position: (resamples,).

    In blocks that fit in memory, which do not change the draws. scipy.stats.bootstrap draws the same, but refuses a
    sample of one and warns of every resample without a correlation.
    """
    n = len(samples[0])
    block = max(1, CELLS // n)
    sizes = [min(block, resamples - start) for start in range(0, resamples, block)]
    drawn = (generator.integers(n, size=(size, n)) for size in sizes)
    return np.concatenate([statistic(*(sample[rows] for sample in samples), axis=1) for rows in drawn])
