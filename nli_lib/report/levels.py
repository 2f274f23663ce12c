"""Numbers by level of difficulty, over trainings and pairs: each training draws levels of its own.

Every table here has one row a training and pair: training, position (of the pair in its corpus), level (0 easy,
1 ambiguous, 2 hard), premise (any code that is equal where the premise is), and the columns that are named. All
trainings have the same positions. What is drawn anew in the intervals are trainings and premises, or pairs where the
table has no column premise (`trainings.over_trainings`).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.measure.difficulty import LEVELS
from nli_lib.report.estimate import Estimate
from nli_lib.report.style import TWIN
from nli_lib.report.trainings import Statistic, correlations_with, gaps_between, means_of, over_trainings
from nli_lib.select.selection import Selection

FIGURE = 200  # resamples of an interval that is drawn; those of a claim have more


def by_training(table: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """A column as an array (S, N): a row a training, in it the pairs in the order of their positions."""
    return table.pivot(index="training", columns="position", values=column).to_numpy(dtype=float)


def estimate(table: pd.DataFrame, statistic: Statistic, **options: object) -> Estimate:
    """`over_trainings` of a statistic of the table's pairs."""
    premises = by_training(table, "premise")[0] if "premise" in table else None
    return over_trainings(statistic, table["position"].nunique(), groups=premises, **options)


def level_means(table: pd.DataFrame, scores: Sequence[str], *, by: str = "corpus") -> pd.DataFrame:
    """Mean of each score in each level and in the level's random twin: as many pairs with the same labels.

    table  as above, with ``by``, gold (the label) and ``scores``

    Columns: ``by``, level (its name), score, condition ("level" or "random twin"), value, low, high, n (premises). A
    level that is empty in some training has no row.
    """
    rows = []
    for group, part in table.groupby(by, sort=False):
        levels, gold = by_training(part, "level"), by_training(part, "gold")[0]
        for place, name in enumerate(LEVELS):
            chosen = [Selection.where(each == place, dropped="another level") for each in levels]
            twins = [each.random_twin(gold, seed) for seed, each in enumerate(chosen)]
            for (condition, parts), score in ((c, s) for c in (("level", chosen), (TWIN, twins)) for s in scores):
                keep = np.array([each.keep for each in parts])
                if keep.any(axis=1).all():
                    values = np.where(keep, by_training(part, score), np.nan)
                    found = estimate(part, means_of(values), resamples=FIGURE)
                    rows.append((group, name, score, condition, *found[:4]))
    return pd.DataFrame(rows, columns=[by, "level", "score", "condition", "value", "low", "high", "n"])


def level_gap(table: pd.DataFrame, score: str, one: str, other: str) -> Estimate:
    """Mean of a score in one level minus its mean in another."""
    levels, values = by_training(table, "level"), by_training(table, score)
    return estimate(table, gaps_between(values, *(levels == LEVELS.index(name) for name in (one, other))))


def level_mean(table: pd.DataFrame, score: str, level: str) -> Estimate:
    """Mean of a score in a level."""
    inside = by_training(table, "level") == LEVELS.index(level)
    return estimate(table, means_of(np.where(inside, by_training(table, score), np.nan)))


def label_gap(table: pd.DataFrame, measure: str, label: int, level: str) -> Estimate:
    """Mean of a measure over the pairs of one label in a level minus its mean over the other pairs of that level."""
    inside, gold = by_training(table, "level") == LEVELS.index(level), by_training(table, "gold")
    return estimate(
        table, gaps_between(by_training(table, measure), inside & (gold == label), inside & (gold != label))
    )


def correlation_table(table: pd.DataFrame, scores: Sequence[str], target: str | pd.DataFrame) -> pd.DataFrame:
    """Spearman correlation of each score with ``target`` within each training.

    target  a column, or the table of other trainings of the same names, whose column of the score's name it then is

    Columns: score, value, low, high, n (premises). A score that is constant in some training has no row.
    """
    rows = []
    for name in scores:
        values = by_training(table, name)
        wanted = by_training(table, target) if isinstance(target, str) else by_training(target, name)
        if np.ptp(values, axis=1).all() and np.ptp(wanted, axis=1).all():
            rows.append((name, *estimate(table, correlations_with(values, wanted), resamples=FIGURE)[:4]))
    return pd.DataFrame(rows, columns=["score", "value", "low", "high", "n"])


def correlation_gain(table: pd.DataFrame, one: str, other: str, target: str) -> Estimate:
    """Spearman correlation of one score with ``target`` minus that of another."""
    wanted = by_training(table, target)
    first, second = (correlations_with(by_training(table, score), wanted) for score in (one, other))
    return estimate(table, lambda rows: first(rows) - second(rows))


def cell_agreement(table: pd.DataFrame, flag: str, first: str, second: str) -> Estimate:
    """Is a yes or no spread over level and label in the same way when another encoder draws the levels?

    table: gold, ``flag`` (0 or 1, such as a negation), ``first`` and ``second`` (the level by each encoder). Pearson
    correlation of the nine cells' shares of 1 between the two, and so is its interval kept within -1 and 1. Cells that
    one of the two lacks are left out.
    """
    flags, gold = by_training(table, flag)[0], by_training(table, "gold")[0].astype(int)
    cells = [by_training(table, each).astype(int) * len(LEVELS) + gold for each in (first, second)]

    def shares(cell: NDArray, rows: NDArray) -> NDArray:
        sizes, found = (np.bincount(cell[rows], weights, len(LEVELS) ** 2) for weights in (None, flags[rows]))
        return np.divide(found, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)

    def agreement(one: NDArray, other: NDArray) -> float:
        both = np.isfinite(one) & np.isfinite(other)
        return np.corrcoef(one[both], other[both])[0, 1]

    def statistic(rows: NDArray) -> NDArray:
        return np.array([agreement(shares(a, rows), shares(b, rows)) for a, b in zip(*cells, strict=True)])

    found = estimate(table, statistic)
    return found._replace(low=max(found.low, -1.0), high=min(found.high, 1.0))
