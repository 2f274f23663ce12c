"""Spread and tests: what a difference is worth.

Every estimate of the report carries an interval, every test an effect size with its direction stated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

CELLS = 4_000_000  # resampled values held in memory at once
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


class Interval(NamedTuple):
    """An estimate with the ends of its interval."""

    value: float
    low: float
    high: float


class MannWhitney(NamedTuple):
    """u of the first sample; p two-sided; p_bonferroni = min(1, p * family); effect in [-1, 1], see `mann_whitney`."""

    u: float
    p: float
    p_bonferroni: float
    effect: float
    n_a: int
    n_b: int

    @property
    def stars(self) -> str:
        """Stars of the corrected p-value."""
        return stars(self.p_bonferroni)


class PairedTest(NamedTuple):
    """difference = accuracy of a minus accuracy of b, with its bootstrap interval; only_a, only_b = the discordant
    pairs (right in one only); p_exact and p_mid of McNemar's test."""

    difference: float
    low: float
    high: float
    only_a: int
    only_b: int
    p_exact: float
    p_mid: float
    n: int


def bootstrap_interval(
    values: np.ndarray,
    statistic: Callable = np.mean,
    *,
    other: np.ndarray | None = None,
    paired: bool = False,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile bootstrap interval (low, high) of ``statistic(values)``, or of a difference of two.

    values (N,). ``statistic`` takes an array and ``axis`` and reduces that axis, as the numpy reductions do. With
    ``other`` (M,) the interval is that of ``statistic(values) - statistic(other)``: the two are resampled on their
    own, or together by position with ``paired=True``, which needs N = M.
    """
    values = _sample(values, "values")
    generator = np.random.default_rng(seed)
    if other is None:
        draws = [statistic(values[rows], axis=1) for rows in _draws(generator, len(values), resamples)]
    elif paired:
        other = _sample(other, "other")
        if len(other) != len(values):
            raise ValueError(f"a paired bootstrap needs equal lengths, not {len(values)} and {len(other)}")
        draws = [
            statistic(values[rows], axis=1) - statistic(other[rows], axis=1)
            for rows in _draws(generator, len(values), resamples)
        ]
    else:
        other = _sample(other, "other")
        first = np.concatenate([statistic(values[rows], axis=1) for rows in _draws(generator, len(values), resamples)])
        second = np.concatenate([statistic(other[rows], axis=1) for rows in _draws(generator, len(other), resamples)])
        draws = [first - second]
    return percentile_interval(np.concatenate(draws), level=level)


def percentile_interval(draws: np.ndarray, *, level: float = 0.95) -> tuple[float, float]:
    """The middle ``level`` of resampled statistics ``draws`` (R,)."""
    if not 0 < level < 1:
        raise ValueError(f"level is {level}, it must lie between 0 and 1")
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def resample_counts(n: int, *, groups: np.ndarray | None = None, resamples: int = 200, seed: int = 0) -> np.ndarray:
    """How often each of ``n`` examples is drawn in each bootstrap resample, (R, n) int32.

    A statistic made of counts is resampled by one product with these. With ``groups`` (n,) whole groups are drawn, for
    example premises: the hypotheses of one premise are not independent draws.
    """
    generator = np.random.default_rng(seed)
    codes = np.arange(n) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    if len(codes) != n or n == 0:
        raise ValueError(f"groups has {len(codes)} entries for {n} examples")
    n_groups = int(codes.max()) + 1
    drawn = generator.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=resamples).astype(np.int32)
    return drawn[:, codes]


def wilson(correct: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval (low, high) of the share ``correct / n``. Source: Wilson (1927), through statsmodels."""
    if not 0 <= correct <= n or n == 0:
        raise ValueError(f"{correct} correct of {n} is no share")
    low, high = proportion_confint(int(correct), int(n), alpha=1 - level, method="wilson")
    return float(low), float(high)


def t_interval(values: np.ndarray, *, level: float = 0.95) -> Interval:
    """Mean of a few independent values (one a seed), with Student's t interval: mean +- t sd / sqrt(S), ddof = 1.

    values (S,). With one value there is no spread to estimate, so both ends are NaN.
    """
    values = _sample(values, "values")
    mean = float(values.mean())
    if len(values) == 1:
        return Interval(mean, float("nan"), float("nan"))
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return Interval(mean, mean - float(half), mean + float(half))


def mann_whitney(a: np.ndarray, b: np.ndarray, *, family: int = 1) -> MannWhitney:
    """Two-sided Mann-Whitney U test, with ties and continuity corrected, and the rank-biserial effect size.

    a (n_a,), b (n_b,). effect = 2 U_a / (n_a n_b) - 1: the probability that a random value of ``a`` exceeds one of
    ``b`` minus the reverse; +1 when every a is larger, 0 when neither tends to be, -1 when every b is larger.
    ``family`` is the number of tests that share the Bonferroni correction.

    *Departures*: the difficulty paper does not state its family (9 a panel is the likely one) and gives no effect size.
    """
    a, b = _sample(a, "a"), _sample(b, "b")
    if family < 1:
        raise ValueError(f"family is {family}, it must be 1 or more")
    if min(a.min(), b.min()) == max(a.max(), b.max()):  # all tied: nothing to rank, scipy would divide by zero
        u, p = len(a) * len(b) / 2, 1.0
    else:
        u, p = stats.mannwhitneyu(a, b, alternative="two-sided", method="asymptotic", use_continuity=True)
    effect = 2 * u / (len(a) * len(b)) - 1
    return MannWhitney(float(u), float(p), min(1.0, float(p) * family), float(effect), len(a), len(b))


def stars(p: float) -> str:
    """ns, *, **, *** at .05, .01 and .001, as the difficulty paper draws them (p at a threshold gets the more stars)."""
    return next((mark for threshold, mark in STARS if p <= threshold), "ns")


def paired_test(
    correct_a: np.ndarray, correct_b: np.ndarray, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> PairedTest:
    """Do two models differ on the same examples? McNemar's test and the paired bootstrap of the difference.

    correct_a, correct_b (N,) bool. difference > 0 means that a is right more often. The exact test is binomial on the
    discordant examples; mid-p counts half of the observed table's probability and is less conservative.
    """
    a, b = np.asarray(correct_a, dtype=bool), np.asarray(correct_b, dtype=bool)
    if a.shape != b.shape or a.ndim != 1 or len(a) == 0:
        raise ValueError(f"a paired test needs two arrays (N,) of equal length, not {a.shape} and {b.shape}")
    only_a, only_b = int((a & ~b).sum()), int((~a & b).sum())
    table = [[int((a & b).sum()), only_a], [only_b, int((~a & ~b).sum())]]
    p_exact = float(min(1.0, mcnemar(table, exact=True).pvalue)) if only_a + only_b else 1.0
    p_mid = p_exact
    if only_a != only_b:
        p_mid = p_exact - float(stats.binom.pmf(min(only_a, only_b), only_a + only_b, 0.5))
    gain = a.astype(float) - b.astype(float)
    low, high = bootstrap_interval(gain, level=level, resamples=resamples, seed=seed)
    return PairedTest(float(gain.mean()), low, high, only_a, only_b, p_exact, p_mid, len(a))


def correlation(
    x: np.ndarray,
    y: np.ndarray,
    *,
    kind: str = "spearman",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Pearson or Spearman correlation in [-1, 1] with its percentile bootstrap interval over the pairs (x_i, y_i).

    x, y (N,). Spearman is Pearson of the average ranks, which are taken anew in every resample. A constant x or y has
    no correlation: an error.
    """
    if kind not in ("pearson", "spearman"):
        raise ValueError(f"kind is {kind!r}: use 'pearson' or 'spearman'")
    x, y = _sample(x, "x"), _sample(y, "y")
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} values, y {len(y)}")
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        raise ValueError("a constant has no correlation with anything")
    generator = np.random.default_rng(seed)
    draws = np.concatenate([_pearson(x[rows], y[rows], kind) for rows in _draws(generator, len(x), resamples)])
    low, high = percentile_interval(draws[np.isfinite(draws)], level=level)
    return Interval(float(_pearson(x[None], y[None], kind)[0]), low, high)


def _pearson(x: np.ndarray, y: np.ndarray, kind: str) -> np.ndarray:
    """Row-wise correlation of x and y (R, N) -> (R,); NaN where a resample came out constant."""
    if kind == "spearman":
        x, y = stats.rankdata(x, axis=1), stats.rankdata(y, axis=1)
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))


def _sample(values: np.ndarray, name: str) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"{name} must have shape (N,) with N > 0, not {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds {int((~np.isfinite(values)).sum())} values that are not finite")
    return values


def _draws(generator: np.random.Generator, n: int, resamples: int) -> Iterator[np.ndarray]:
    """Positions drawn with replacement, (r, n) in blocks that fit in memory; the blocks do not change the draws."""
    block = max(1, CELLS // n)
    for start in range(0, resamples, block):
        yield generator.integers(n, size=(min(block, resamples - start), n))
