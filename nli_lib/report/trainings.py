"""Statistics of several trainings on the same pairs, with an interval that holds both: other trainings, other pairs.

Models trained from other seeds give other numbers on the same pairs, and the same models give other numbers on other
pairs. An interval over one of the two leaves the other out.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import LEVEL, spearman, t_interval
from nli_lib.report.premises import drawn_rows

Statistic = Callable[[np.ndarray], np.ndarray]


def over_trainings(
    statistic: Statistic, n: int, *, groups: np.ndarray | None = None, resamples: int = 500, seed: int = 0
) -> Estimate:
    """Mean over S trainings of one value a training, with an interval over trainings and pairs: `with_trainings`.

    statistic  takes positions of pairs, (M,) with repetitions, and returns one value for each training, (S,)
    n          how many pairs there are
    groups     (n,) draws whole groups, such as premises, which n then counts

    A resample without a value (NaN) is left out.
    """
    by_training = np.asarray(statistic(np.arange(n)), dtype=float)
    if by_training.ndim != 1 or not np.isfinite(by_training).all():
        raise ValueError(f"the statistic must be finite values, one a training, not {by_training}")
    drawn = drawn_rows(np.arange(n) if groups is None else groups, resamples=resamples, seed=seed)
    draws = [np.mean(statistic(rows)) for rows in drawn]
    units = {"n": n} if groups is None else {"n": len(np.unique(groups)), "units": "premises"}
    return with_trainings(by_training.mean(), draws, by_training, **units)


def with_trainings(value: float, draws: ArrayLike, *trainings: ArrayLike, n: int, units: str = "pairs") -> Estimate:
    """``value`` with an interval over n pairs and the trainings, whose half-width is two parts added in quadrature.

    draws      (R,) the mean over the trainings in R resamples of the pairs: 1.96 standard deviations
    trainings  (S,) the value of each training: the half-width of Student's t interval. Several where trainings of one
               kind are compared with trainings of another; one training alone adds nothing, and the interval says so

    It is the one part where the pairs do not differ and the other where the trainings do not, and with three trainings
    it covers 95% or a little more, where one standard error with Satterthwaite's degrees of freedom covers 91%.
    """
    intervals = [t_interval(each) for each in trainings if len(each) > 1]
    halves = [
        stats.norm.ppf((1 + LEVEL) / 2) * np.nanstd(draws, ddof=1),
        *(each.high - each.value for each in intervals),
    ]
    half, seeds = float(np.linalg.norm(halves)), len(trainings[0])
    over = f"{units} and trainings" if seeds > 1 else units
    return Estimate(float(value), float(value) - half, float(value) + half, int(n), seeds, over)


def correlations_with(scores: np.ndarray, target: np.ndarray) -> Statistic:
    """For `over_trainings`: Spearman correlation of each training's scores, (S, N), with a target, (S, N) or (N,)."""
    scores, target = np.asarray(scores, dtype=float), np.asarray(target, dtype=float)
    return lambda rows: spearman(scores[:, rows], target[..., rows])


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
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)

    def statistic(rows: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # nothing is known of these rows: NaN
            return filled[:, rows].sum(axis=1) / known[:, rows].sum(axis=1)

    return statistic


def gaps_between(values: np.ndarray, one: np.ndarray, other: np.ndarray) -> Statistic:
    """For `over_trainings`: the mean of each training's values, (S, N), where ``one`` (S, N) is True, minus their mean
    where ``other`` is."""
    first, second = (means_of(np.where(chosen, values, np.nan)) for chosen in (one, other))
    return lambda rows: first(rows) - second(rows)


def agreement_of_trainings(table: pd.DataFrame, scores: Sequence[str]) -> pd.DataFrame:
    """How far two trainings agree: Spearman correlation of each score between every two trainings of a corpus.

    table: corpus, training, position, ``scores``. Columns: corpus, score, mean, min, max, trainings; a corpus with one
    training has no rows.
    """
    rows = []
    for corpus, part in table.groupby("corpus", sort=False):
        for name in scores:
            wide = part.pivot(index="position", columns="training", values=name)
            rho = wide.corr(method="spearman").to_numpy()[np.triu_indices(wide.shape[1], 1)]
            if len(rho):
                rows.append((corpus, name, rho.mean(), rho.min(), rho.max(), wide.shape[1]))
    return pd.DataFrame(rows, columns=["corpus", "score", "mean", "min", "max", "trainings"])
