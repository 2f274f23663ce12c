"""Numbers with intervals, which say what was redrawn, and tests with effect sizes.

Each number is returned as an `Estimate`. The hypotheses of one premise are not independent, so whole premises are
drawn::

    mean_over_premises(right, corpus.premise)          a mean of pairs, such as an accuracy
    for rows in drawn_rows(corpus.premise): ...        any other statistic, computed on redrawn corpus rows
    for rows in half_samples(corpus.premise): ...      a statistic that repeated pairs would distort
    clustered_share(right, corpus.premise)             a share, from one sum over the groups instead of resamples

Numbers vary between models trained with different seeds, and between samples of pairs. The interval of `over_trainings`
includes both.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from statsmodels.stats.proportion import proportion_confint


class Estimate(NamedTuple):
    """An estimated number, which every statistic of the report returns and every claim is judged by.

    Attributes
    ----------
    value
        the estimate; low, high: the ends of its interval (95% unless stated otherwise), NaN if there is none
    n
        number of examples; seeds: number of trainings
    over
        what was redrawn for the interval: "pairs", "premises", "trainings", "premises and trainings"

    Examples
    --------
    >>> from nli_lib.stats import share
    >>> found = share([True, True, False, True])
    >>> f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}] of {found.n}"
    '0.75 [0.30, 0.95] of 4'
    """

    value: float
    low: float
    high: float
    n: int
    seeds: int = 1
    over: str = "pairs"


# ---------------------------------------------------------------- verdicts

YES, PARTLY, BARELY, NO, OPEN = VERDICTS = ("Yes", "Partly", "Barely", "No", "Open")


def verdict(found: Estimate, *, margin: float = 0.0) -> str:
    """The answer of an interval to "is it above 0?", one of `VERDICTS`.

    Yes if the whole interval is above 0 and the value is at least ``margin``; Barely if it is above 0 and the value is
    smaller, too small to matter; No if the whole interval is below ``margin``, or below 0 without a margin; Open if it
    contains both 0 and more than the margin, or has no ends. For "is it below?" pass the negative.

    Parameters
    ----------
    found
        an `Estimate`, or a row with value, low and high
    margin
        the smallest value that matters to a reader, in the unit of the estimate

    Examples
    --------
    >>> from nli_lib.stats import Estimate, verdict
    >>> verdict(Estimate(0.05, 0.02, 0.08, n=100), margin=0.01)
    'Yes'
    >>> verdict(Estimate(0.05, -0.02, 0.12, n=100), margin=0.01)
    'Open'
    """
    if found.low > 0:
        return YES if found.value >= margin else BARELY
    return NO if found.high < margin else OPEN


def together(verdicts: Iterable[str]) -> str:
    """Combine the verdicts of several parts: their common verdict, Partly if some say Yes or Barely and others do not,
    else Open.

    Examples
    --------
    >>> from nli_lib.stats import together
    >>> together(["Yes", "No"])
    'Partly'
    """
    said = set(verdicts)
    if len(said) == 1:
        return said.pop()
    return PARTLY if said & {YES, PARTLY, BARELY} else OPEN


# ---------------------------------------------------------------- inference


LEVEL = 0.95  # level of every interval
POWER = 0.8  # probability of finding a smallest detectable difference
CELLS = 4_000_000  # resampled values in memory at a time
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


class MannWhitney(NamedTuple):
    """Result of `mann_whitney`: u of the first sample; p two-sided; p_bonferroni = min(1, p * family); effect in [-1,
    1]."""

    u: float
    p: float
    p_bonferroni: float
    effect: float
    n_a: int
    n_b: int


def wilson(correct: int, n: int, *, seeds: int = 1) -> Estimate:
    """The share ``correct / n`` with its Wilson score interval. Source: Wilson (1927), through statsmodels.

    Examples
    --------
    >>> from nli_lib.stats import wilson
    >>> found = wilson(9, 10)
    >>> round(found.low, 2), round(found.high, 2)
    (0.6, 0.98)
    """
    if not 0 <= correct <= n or n == 0:
        raise ValueError(f"correct={correct}, n={n}: a share needs 0 <= correct <= n and n > 0")
    low, high = proportion_confint(int(correct), int(n), alpha=1 - LEVEL, method="wilson")
    return Estimate(correct / n, float(low), float(high), int(n), seeds)


def share(flags: np.ndarray) -> Estimate:
    """The share of True among ``flags`` (N,) with its Wilson interval.

    Examples
    --------
    >>> from nli_lib.stats import share
    >>> share([True, False, True, True]).value
    0.75
    """
    flags = np.asarray(flags, dtype=bool)
    return wilson(int(flags.sum()), len(flags))


def with_wilson(table: pd.DataFrame, correct: str = "correct", n: str = "n", value: str = "accuracy") -> pd.DataFrame:
    """Add three columns to a table: ``value``, the share of the counts ``correct`` in ``n``, and its Wilson interval,
    ``low`` and ``high``. A mean of counts over seeds is rounded for the interval; rows with n = 0 get NaN."""
    counts, sizes = table[correct].round(), table[n].where(table[n] > 0)
    if not counts[sizes.notna()].between(0, sizes[sizes.notna()]).all():
        raise ValueError(f"a share needs 0 <= {correct} <= {n}, and a row of the table has not")
    low, high = proportion_confint(counts, sizes, alpha=1 - LEVEL, method="wilson")
    return table.assign(**{value: table[correct] / sizes, "low": low, "high": high})


def t_interval(values: np.ndarray, *, n: int | None = None) -> Estimate:
    """Mean of a few independent values (one per seed) with Student's t interval: mean +- t sd / sqrt(S), ddof = 1.

    values (S,); ``n`` the number of examples behind each value (by default the number of values). With one value there
    is no spread, so both ends are NaN.

    Examples
    --------
    >>> from nli_lib.stats import t_interval
    >>> found = t_interval([0.80, 0.82, 0.84])  # one accuracy per training
    >>> round(found.low, 2), round(found.high, 2), found.seeds
    (0.77, 0.87, 3)
    """
    values = _sample(values, "values")
    mean, half = float(values.mean()), float("nan")
    if len(values) > 1:
        half = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return Estimate(mean, mean - half, mean + half, len(values) if n is None else int(n), len(values), "trainings")


def mean_and_range(values: np.ndarray, *, n: int, over: str) -> Estimate:
    """Mean of a few values, with the smallest and the largest as low and high, for example over orders of a filter.

    values (S,); ``n`` the number of examples behind each value. A range, not a confidence interval.
    """
    values = _sample(values, "values")
    return Estimate(float(values.mean()), float(values.min()), float(values.max()), int(n), over=over)


def percentile_interval(value: float, draws: np.ndarray, *, n: int, over: str = "pairs") -> Estimate:
    """``value`` with the middle 95% of the resampled values ``draws`` (R,) as its interval."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(value), float(low), float(high), int(n), over=over)


def resample_counts(
    n: int, *, groups: np.ndarray | None = None, resamples: int = 200, seed: int = 0
) -> Iterator[np.ndarray]:
    """Yield bootstrap resamples: the number of times that each of ``n`` examples is drawn, (n,).

    With ``groups`` (n,), for example premises, whole groups are drawn: the hypotheses of one premise are not
    independent.
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
    ``family`` is the number of tests in the Bonferroni correction.

    Notes
    -----
    *Departures*: the difficulty paper does not state its family (probably 9 per panel) and gives no effect size.

    Examples
    --------
    >>> from nli_lib.stats import mann_whitney
    >>> round(mann_whitney([3, 4, 5], [1, 2, 3.5]).effect, 2)
    0.78
    """
    a, b = _sample(a, "a"), _sample(b, "b")
    if min(a.min(), b.min()) == max(a.max(), b.max()):  # all tied: scipy would divide by zero
        u, p = len(a) * len(b) / 2, 1.0
    else:
        u, p = stats.mannwhitneyu(a, b, alternative="two-sided", method="asymptotic", use_continuity=True)
    effect = 2 * u / (len(a) * len(b)) - 1
    return MannWhitney(float(u), float(p), min(1.0, float(p) * family), float(effect), len(a), len(b))


def stars(p: float) -> str:
    """Stars of significance, ``ns``, ``*``, ``**``, ``***`` at .05, .01, .001, as in the difficulty paper; a p equal to
    a threshold gets more.

    Examples
    --------
    >>> from nli_lib.stats import stars
    >>> stars(0.03), stars(0.2)
    ('*', 'ns')
    """
    return next((mark for threshold, mark in STARS if p <= threshold), "ns")


def pearson(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    """Pearson correlations of x (..., N) with y (..., N) along ``axis``; NaN for a constant."""
    x, y = (np.asarray(each, dtype=float) for each in (x, y))
    x, y = (each - each.mean(axis=axis, keepdims=True) for each in (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (x * y).sum(axis=axis) / np.sqrt((x**2).sum(axis=axis) * (y**2).sum(axis=axis))


def spearman(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    """Spearman correlations of x (..., N) with y (..., N) along ``axis``, without scipy's loop; NaN for a constant."""
    return pearson(*(stats.rankdata(each, axis=axis) for each in (x, y)), axis=axis)


def _sample(values: np.ndarray, name: str) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"{name} must have shape (N,) with N > 0, not {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds {int((~np.isfinite(values)).sum())} values that are not finite")
    return values


# ---------------------------------------------------------------- premises


OVER = "premises"


def mean_over_premises(
    values: ArrayLike, premises: ArrayLike, *, other: tuple | None = None, resamples: int = 2000
) -> Estimate:
    """Mean of ``values`` with a percentile interval over premises, or its difference from the mean of ``other``.

    values (N,), premises (N,), any codes that are equal for equal premises; other: values and premises of another
    corpus, drawn independently. n counts the premises of the corpus with fewer. If each premise has one pair, this is
    the bootstrap over pairs.

    Examples
    --------
    >>> from nli_lib.stats import mean_over_premises
    >>> right, premises = [1, 1, 1, 0, 0, 0], ["A dog."] * 3 + ["A cat."] * 3
    >>> found = mean_over_premises(right, premises)
    >>> found.value, found.n, found.over
    (0.5, 2, 'premises')
    """
    samples = [(values, premises)] + ([] if other is None else [other])
    means, draws, sizes = [], [], []
    for place, (flags, groups) in enumerate(samples):
        flags, codes = np.asarray(flags, dtype=float), pd.factorize(np.asarray(groups))[0]
        if not len(flags) or len(flags) != len(codes) or not np.isfinite(flags).all():
            raise ValueError(f"{len(flags)} values of {len(codes)} pairs: give a finite one for each pair")
        counts = resample_counts(len(flags), groups=codes, resamples=resamples, seed=place)
        means.append(flags.mean())
        draws.append(np.array([each @ flags / each.sum() for each in counts]))
        sizes.append(int(codes.max()) + 1)
    value, drawn = (each[0] - (each[1] if len(each) > 1 else 0) for each in (means, draws))
    return percentile_interval(value, drawn, n=min(sizes), over=OVER)


def drawn_rows(premises: ArrayLike, *, resamples: int = 500, seed: int = 0) -> Iterator[NDArray[np.int64]]:
    """Yield resamples of whole premises (N,), as rows (M,); a row is repeated as often as it is drawn.

    Examples
    --------
    >>> from nli_lib.stats import drawn_rows
    >>> for rows in drawn_rows(["A dog.", "A dog.", "A cat."], resamples=2, seed=1):
    ...     print(rows)
    [0 1 2]
    [0 0 1 1]
    """
    codes = pd.factorize(np.asarray(premises))[0]
    for counts in resample_counts(len(codes), groups=codes, resamples=resamples, seed=seed):
        yield np.repeat(np.arange(len(codes)), counts)


def half_samples(premises: ArrayLike, *, resamples: int = 200, seed: int = 0) -> Iterator[NDArray[np.int64]]:
    """Yield random halves of the premises (N,), as rows (M,) without repeats.

    For a statistic that repeated pairs would distort, such as the size of a filter's output. The variance of a mean
    over such halves equals the variance over samples of all premises: Shao and Wu (1989), delete-d jackknife with half
    of the premises deleted. The level is that of a smaller corpus: see `centred_interval`.
    """
    codes, unique = pd.factorize(np.asarray(premises))
    generator = np.random.default_rng(seed)
    for _ in range(resamples):
        drawn = np.zeros(len(unique), dtype=bool)
        drawn[generator.permutation(len(unique))[: len(unique) // 2]] = True
        yield np.flatnonzero(drawn[codes])


def centred_interval(value: float, draws: ArrayLike, *, n: int) -> Estimate:
    """``value`` with the middle 95% of ``draws`` (R,), shifted so that their mean is ``value``.

    For a count or share of features above a line. It is too high in every resample, because chance variation enters a
    second time, in addition to that of the corpus. The spread of the draws shows how much the count varies between
    samples; their level does not.
    """
    draws = np.asarray(draws, dtype=float)
    return percentile_interval(value, draws + (value - draws.mean()), n=n, over=OVER)


# ---------------------------------------------------------------- clustered


def clustered_share(flags: ArrayLike, groups: ArrayLike) -> Estimate:
    """The share of True among ``flags`` (N,), with an interval over the groups (N,), for example premises.

    Notes
    -----
    Formula: the variance of a ratio of totals of G groups, v = G / (G - 1) sum_g (sum_i (y_i - p))^2 / N^2, gives the
    design effect d = v / (p (1 - p) / N), at least 1; the interval is Wilson's for N / d pairs. If all flags are equal,
    d cannot be estimated, and each group counts as one pair. n counts the pairs.

    References
    ----------
    Korn and Graubard (1998), with Wilson's interval instead of Clopper and Pearson's.

    Examples
    --------
    >>> from nli_lib.stats import clustered_share, share
    >>> right, premises = [True] * 30 + [False] * 10, [f"premise {row // 2}" for row in range(40)]
    >>> wide, narrow = clustered_share(right, premises), share(right)
    >>> wide.low < narrow.low
    True
    """
    y, codes = np.asarray(flags, dtype=float), pd.factorize(np.asarray(groups))[0]
    if not len(y) or len(y) != len(codes):
        raise ValueError(f"{len(y)} flags of {len(codes)} pairs: give one for each pair")
    n, count, p = len(y), int(codes.max()) + 1, float(y.mean())
    mixed = 0 < p < 1 and count > 1
    worth = n / max(1.0, _variance(y, p, codes) / (p * (1 - p) / n)) if mixed else count
    low, high = proportion_confint(p * worth, worth, alpha=1 - LEVEL, method="wilson")
    # rounding must not push the ends beyond 0 and 1
    return Estimate(p, 0.0 if p == 0 else float(low), 1.0 if p == 1 else float(high), n, over=OVER)


def clustered_mean(values: ArrayLike, groups: ArrayLike) -> Estimate:
    """The mean of ``values`` (N,) with a normal interval over the groups (N,), from the variance of `clustered_share`.

    For a difference of two shares of the same pairs. With one group there is no spread, so both ends are NaN.
    """
    y, codes = np.asarray(values, dtype=float), pd.factorize(np.asarray(groups))[0]
    if not len(y) or len(y) != len(codes):
        raise ValueError(f"{len(y)} values of {len(codes)} pairs: give one for each pair")
    mean, half = float(y.mean()), float("nan")
    if codes.max() > 0:
        half = float(stats.norm.isf((1 - LEVEL) / 2) * np.sqrt(_variance(y, mean, codes)))
    return Estimate(mean, mean - half, mean + half, len(y), over=OVER)


def clustered_area(scores: ArrayLike, labels: ArrayLike, folds: ArrayLike, groups: ArrayLike) -> Estimate:
    """The cross-fitted area under the ROC curve of one label against the rest, averaged over the labels that occur.

    0 to 1; .5 is chance, for any label shares. It is the probability that a pair with the label scores higher than a
    pair without it. The interval is over the groups (N,).

    scores (N, C), labels (N,) from 0 to C - 1, folds (N,): the models behind the scores. Only pairs of the same fold
    are compared, because models of different folds have learnt different label shares; a fold without the label, or
    with nothing else, is left out.

    Notes
    -----
    Formula: for a label, each of its pairs gets the share of the others that it beats (ties count half), each other
    pair the share that beats it; deviations from their means add up to the variance, group by group (DeLong et al.
    1988, for groups Obuchowski 1997). The interval is sqrt(1 + F / (F - 1)) times as wide as for F models without a
    pair in common (Nadeau and Bengio 2003); otherwise pairs from which nothing can be learnt would have an interval
    above .5 four times too often. If all scores are equal, both ends are NaN. n counts the pairs.
    """
    scores, labels, folds = np.asarray(scores), np.asarray(labels), np.asarray(folds)
    parts = []  # a label's area, and each pair's part of N times its deviation
    for label in np.unique(labels):
        wins, apart = np.full(len(labels), np.nan), np.zeros(len(labels))
        for fold in np.unique(folds):
            own, rest = (np.flatnonzero((folds == fold) & each) for each in (labels == label, labels != label))
            if len(own) and len(rest):
                ranks = stats.rankdata(scores[np.concatenate([own, rest]), label])
                wins[own] = (ranks[: len(own)] - stats.rankdata(scores[own, label])) / len(rest)
                lost = 1 - (ranks[len(own) :] - stats.rankdata(scores[rest, label])) / len(own)
                apart[rest] = (lost - lost.mean()) * len(own) / len(rest)
        used = ~np.isnan(wins)
        area = wins[used].mean() if used.any() else np.nan
        apart[used] = wins[used] - area
        parts.append((area, apart * len(labels) / max(used.sum(), 1)))
    area, apart = (np.mean(each, axis=0) for each in zip(*parts, strict=True))
    found, count = clustered_mean(area + apart, groups), len(np.unique(folds))
    half = (found.high - found.low) / 2 * np.sqrt(1 + count / max(count - 1, 1))
    if half == 0 and np.isclose(area, 0.5):
        half = np.nan
    low, high = np.clip([area - half, area + half], 0, 1)
    return found._replace(value=float(area), low=float(low), high=float(high))


def _variance(y: np.ndarray, mean: float, codes: np.ndarray) -> float:
    totals = np.bincount(codes, y - mean)
    return float((totals**2).sum() / len(y) ** 2 * len(totals) / (len(totals) - 1))


# ---------------------------------------------------------------- trainings


Statistic = Callable[[np.ndarray], np.ndarray]


def over_trainings(
    statistic: Statistic, n: int, *, groups: np.ndarray | None = None, resamples: int = 500, seed: int = 0
) -> Estimate:
    """Mean of one value for each of S trainings, with an interval over trainings and pairs: `with_trainings`.

    A resample without a value (NaN) is left out.

    Parameters
    ----------
    statistic
        takes positions of pairs, (M,) with repetitions, and returns one value for each training, (S,)
    n
        number of pairs
    groups
        (n,) groups that are drawn whole, such as premises; the estimate's n then counts them

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.stats import means_of, over_trainings
    >>> right = np.array([[1, 1, 0, 1], [1, 0, 0, 1], [1, 1, 0, 0]])  # three trainings, four pairs
    >>> found = over_trainings(means_of(right), n=4, resamples=100)
    >>> round(found.value, 2), found.seeds, found.over
    (0.58, 3, 'pairs and trainings')
    """
    by_training = np.asarray(statistic(np.arange(n)), dtype=float)
    if by_training.ndim != 1 or not np.isfinite(by_training).all():
        raise ValueError(f"the statistic must be finite values, one a training, not {by_training}")
    drawn = drawn_rows(np.arange(n) if groups is None else groups, resamples=resamples, seed=seed)
    draws = [np.mean(statistic(rows)) for rows in drawn]
    units = {"n": n} if groups is None else {"n": len(np.unique(groups)), "units": "premises"}
    return with_trainings(by_training.mean(), draws, by_training, **units)


def with_trainings(value: float, draws: ArrayLike, *trainings: ArrayLike, n: int, units: str = "pairs") -> Estimate:
    """``value`` with an interval over n pairs and the trainings; its half-width is two parts added in quadrature.

    If the pairs do not vary, one part remains, and if the trainings do not vary, the other. With three trainings it
    covers 95% or slightly more; one standard error with Satterthwaite's degrees of freedom covers 91%.

    Parameters
    ----------
    draws
        (R,) the mean over the trainings in R resamples of the pairs; their part is 1.96 standard deviations
    trainings
        (S,) the value of each training; their part is the half-width of Student's t interval. Pass several arrays to
        compare trainings of different kinds; a single training adds nothing, and the interval says so
    """
    intervals = [t_interval(each) for each in trainings if len(each) > 1]
    of_pairs = stats.norm.ppf((1 + LEVEL) / 2) * np.nanstd(draws, ddof=1)
    half = float(np.linalg.norm([of_pairs, *(each.high - each.value for each in intervals)]))
    seeds = len(trainings[0])
    over = f"{units} and trainings" if seeds > 1 else units
    return Estimate(float(value), float(value) - half, float(value) + half, int(n), seeds, over)


def correlations_with(scores: np.ndarray, target: np.ndarray) -> Statistic:
    """For `over_trainings`: Spearman correlation of each training's scores, (S, N), with a target, (S, N) or (N,)."""
    scores, target = np.asarray(scores, dtype=float), np.asarray(target, dtype=float)
    return lambda rows: spearman(scores[:, rows], target[..., rows])


def means_of(values: np.ndarray) -> Statistic:
    """For `over_trainings`: the mean of each training's values, (S, N), such as right or wrong; NaN is ignored."""
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)

    def statistic(rows: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # no values in these rows: NaN
            return filled[:, rows].sum(axis=1) / known[:, rows].sum(axis=1)

    return statistic


def gaps_between(values: np.ndarray, one: np.ndarray, other: np.ndarray) -> Statistic:
    """For `over_trainings`: the mean of each training's values, (S, N), where ``one`` (S, N) is True, minus the mean
    where ``other`` is True."""
    first, second = (means_of(np.where(chosen, values, np.nan)) for chosen in (one, other))
    return lambda rows: first(rows) - second(rows)
