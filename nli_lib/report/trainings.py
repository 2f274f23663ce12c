"""Statistics of several trainings on the same pairs, with an interval that holds both: other trainings, other pairs.

Models trained from other seeds give other numbers on the same pairs, and the same models give other numbers on other
pairs. An interval over one of the two leaves the other out.
"""

from collections.abc import Callable

import numpy as np
from scipy import stats

from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import LEVEL, t_interval
from nli_lib.report.premises import drawn_rows

Statistic = Callable[[np.ndarray], np.ndarray]


def over_trainings(
    statistic: Statistic, n: int, *, groups: np.ndarray | None = None, resamples: int = 500, seed: int = 0
) -> Estimate:
    """Mean over S trainings of one value a training, with an interval over trainings and pairs.

    statistic  takes positions of pairs, (M,) with repetitions, and returns one value for each training, (S,), S > 1
    n          how many pairs there are
    groups     (n,) draws whole groups, such as premises, which n then counts

    Two half-widths are added in quadrature: of Student's t interval over the S values, and 1.96 standard deviations of
    their mean over ``resamples`` bootstrap resamples of the pairs with the trainings kept. It is the one where the
    pairs do not differ and the other where the trainings do not, and with three trainings it covers 95 % or a little
    more, where one standard error with Satterthwaite's degrees of freedom covers 91 %. A resample without a value (NaN)
    is left out.
    """
    by_training = np.asarray(statistic(np.arange(n)), dtype=float)
    if by_training.ndim != 1 or len(by_training) < 2 or not np.isfinite(by_training).all():
        raise ValueError(f"the statistic must be two or more finite values, one a training, not {by_training}")
    drawn = drawn_rows(np.arange(n) if groups is None else groups, resamples=resamples, seed=seed)
    draws = np.array([np.mean(statistic(rows)) for rows in drawn])
    trainings = t_interval(by_training)
    half = np.hypot(trainings.high - trainings.value, stats.norm.ppf((1 + LEVEL) / 2) * np.nanstd(draws, ddof=1))
    units, over = (n, "pairs and trainings") if groups is None else (len(np.unique(groups)), "premises and trainings")
    value = trainings.value
    return Estimate(value, float(value - half), float(value + half), units, len(by_training), over)


def correlations_with(scores: np.ndarray, target: np.ndarray) -> Statistic:
    """For `over_trainings`: the Spearman correlation of each training's scores, (S, N), with one target, (N,)."""
    scores, target = np.asarray(scores, dtype=float), np.asarray(target, dtype=float)

    def statistic(rows: np.ndarray) -> np.ndarray:
        ranks = stats.rankdata(scores[:, rows], axis=1)
        other = stats.rankdata(target[rows])
        ranks, other = ranks - ranks.mean(axis=1, keepdims=True), other - other.mean()
        with np.errstate(invalid="ignore", divide="ignore"):  # a constant has no correlation: NaN
            return ranks @ other / np.sqrt((ranks**2).sum(axis=1) * (other**2).sum())

    return statistic


def gaps_of_thirds(scores: np.ndarray, flags: np.ndarray) -> Statistic:
    """For `over_trainings`: the share of True among ``flags``, (N,), in the third of lowest score of each training,
    ``scores`` (S, N), minus that in the third of highest score. Ties go by position."""
    scores, flags = np.asarray(scores, dtype=float), np.asarray(flags, dtype=float)

    def statistic(rows: np.ndarray) -> np.ndarray:
        order, third = np.argsort(scores[:, rows], axis=1, kind="stable"), round(len(rows) / 3)
        sorted_flags = flags[rows][order]
        return sorted_flags[:, :third].mean(axis=1) - sorted_flags[:, len(rows) - third :].mean(axis=1)

    return statistic


def means_of(values: np.ndarray) -> Statistic:
    """For `over_trainings`: the mean of each training's values, (S, N), such as right or wrong; NaN is left out."""
    values = np.asarray(values, dtype=float)
    return lambda rows: np.nanmean(values[:, rows], axis=1)
