"""Numbers by level of difficulty, over trainings and pairs: each training draws levels of its own.

Every table here has one row a training and pair: training, position (of the pair in its corpus), level (0 easy,
1 ambiguous, 2 hard), premise (any code that is equal where the premise is), and the columns that are named. All
trainings have the same positions. What is drawn anew in the intervals are trainings and premises, or pairs where the
table has no column premise (`stats.over_trainings`).

Tests between the labels within each level of difficulty, beside their control.

A level that holds a tenth of the examples finds fewer differences for that reason alone, so each count of significant
tests has the same count in random parts of equally many examples.

Of many tests of one claim, "nowhere a difference": the one that speaks most against it, with an interval that holds
although it was picked.
"""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.corpus import LABELS
from nli_lib.errors import UserError
from nli_lib.measure.dynamics import LEVELS
from nli_lib.plots import TWIN
from nli_lib.select.selection import Selection
from nli_lib.stats import (
    CELLS,
    LEVEL,
    Estimate,
    Statistic,
    correlations_with,
    gaps_between,
    mann_whitney,
    means_of,
    over_trainings,
    stars,
    t_interval,
)

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

    Columns: ``by``, level (its name), score, condition ("level" or "random twin"), value, low, high, n (premises). A
    level that is empty in some training has no row.

    Parameters
    ----------
    table
        as above, with ``by``, gold (the label) and ``scores``
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


def correlation_table(table: pd.DataFrame, scores: Sequence[str], target: str | pd.DataFrame) -> pd.DataFrame:
    """Spearman correlation of each score with ``target`` within each training.

    Columns: score, value, low, high, n (premises). A score that is constant in some training has no row.

    Parameters
    ----------
    target
        a column, or the table of other trainings of the same names, whose column of the score's name it then is
    """
    rows = []
    for name in scores:
        values = by_training(table, name)
        wanted = by_training(table, target) if isinstance(target, str) else by_training(target, name)
        if np.ptp(values, axis=1).all() and np.ptp(wanted, axis=1).all():
            rows.append((name, *estimate(table, correlations_with(values, wanted), resamples=FIGURE)[:4]))
    return pd.DataFrame(rows, columns=["score", "value", "low", "high", "n"])


# ---------------------------------------------------------------- contrasts


FAMILY = 9  # three levels times three pairs of labels: one panel of the paper's Figure 3
COLUMNS = ("measure", "level", "pair", "n_a", "n_b", "u", "p", "p_bonferroni", "effect", "stars")


def label_tests(table: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Mann-Whitney tests between the labels, one row for each measure, level and pair of labels: `COLUMNS`.

    table
        one row a pair: gold (an index of LABELS), level (an index of LEVELS) and ``measures``
    effect
        rank-biserial, > 0 when the first label of the pair tends to have more; see `inference.mann_whitney`

    A level without an example of a label has no test for it: that row is left out.

    Notes
    -----
    *Departures*: the paper gives stars alone; its family is not stated, nine a panel is the likely one.

    References
    ----------
    The difficulty paper, section 4 (H7).
    """
    cells, rows = dict(iter(table.groupby(["level", "gold"]))), []
    for measure, (level, name), (a, b) in product(measures, enumerate(LEVELS), combinations(range(len(LABELS)), 2)):
        if (level, a) in cells and (level, b) in cells:
            test = mann_whitney(cells[level, a][measure], cells[level, b][measure], family=FAMILY)
            place = {"measure": measure, "level": name, "pair": f"{LABELS[a]} - {LABELS[b]}"}
            rows.append({**place, **test._asdict(), "stars": stars(test.p_bonferroni)})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def matched_tests(
    table: pd.DataFrame, measures: Sequence[str], pool: pd.Series, *, parts: int = 200, seed: int = 0
) -> pd.DataFrame:
    """What the tests of the hard level would say in random parts with as many examples of each label.

    Columns: those of `label_tests` and part. ``seed`` decides the parts.

    Parameters
    ----------
    table, measures
        as `label_tests`
    pool
        (N,) bool: where the parts are drawn from, without replacement (a label with fewer examples in the pool gives
        all it has)
    """
    random, found = np.random.default_rng(seed), []
    hard = table.loc[table["level"] == LEVELS.index("hard"), "gold"]
    pools = [np.flatnonzero(pool & (table["gold"] == label)) for label in range(len(LABELS))]
    sizes = [min(len(members), (hard == label).sum()) for label, members in enumerate(pools)]
    for part in range(parts):
        drawn = np.concatenate([random.choice(p, n, replace=False) for p, n in zip(pools, sizes, strict=True)])
        found.append(label_tests(table.iloc[drawn].assign(level=0), measures).assign(part=part))
    return pd.concat(found, ignore_index=True)


# ---------------------------------------------------------------- strongest


OF_STRONGEST = ("measure", "pair", "n_a", "n_b", "p", "p_bonferroni", "effect", "low", "high", "tests", "trainings")


def strongest(tests: pd.DataFrame, table: pd.DataFrame, *, resamples: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """The test that speaks most against it in each corpus and level: its corpus, level and `OF_STRONGEST`.

    It is the one of smallest p, in the median over the trainings; of equal p the one of largest effect. effect is the
    mean over the trainings; n_a, n_b, p and p_bonferroni are medians. low and high: two half-widths in quadrature, of
    Student's t interval over the trainings, and of the interval over the pairs (`effect_interval`, in the mean over the
    trainings), which is simultaneous over all tests of that corpus and level, so that it holds for the one that was
    picked as well. tests: how many they are.

    Parameters
    ----------
    tests
        `label_tests` of each corpus and of S trainings, with the columns corpus and training; table: the examples, with
        corpus, training, level, gold and the measures

    Raises
    ------
    UserError
        For a corpus with a level in which no training has pairs of two labels: the levels are then the labels that a
        model predicts, which has learnt nothing else.
    """
    for corpus in table["corpus"].unique():
        tested = set(tests.loc[tests["corpus"] == corpus, "level"])
        if lacking := [level for level in LEVELS if level not in tested]:
            raise UserError(
                f"{corpus}: no pairs of two labels in the {' and '.join(lacking)} level, so nothing can be compared "
                "there. The models that draw the levels have learnt too little: give them more pairs or epochs."
            )
    rows, keys = [], ["corpus", "level"]
    for (corpus, level), part in tests.assign(size=tests["effect"].abs()).groupby(keys, sort=False):
        medians = part.groupby(["measure", "pair"], sort=False)[["p", "size"]].median()
        measure, pair = medians.sort_values(["p", "size"], ascending=[True, False], kind="stable").index[0]
        picked = part[(part["measure"] == measure) & (part["pair"] == pair)]
        labels = [LABELS.index(name) for name in pair.split(" - ")]
        there = table[(table["corpus"] == corpus) & (table["level"] == LEVELS.index(level))]
        halves = []
        for _, pairs in there.groupby("training"):
            a, b = (pairs.loc[pairs["gold"] == label, measure] for label in labels)
            ends = effect_interval(a, b, family=len(medians), resamples=resamples, seed=seed)
            halves.append((ends.high - ends.low) / 2)
        effect = t_interval(picked["effect"])
        half = np.hypot(np.mean(halves), np.nan_to_num(effect.high - effect.value))
        middle = picked[["n_a", "n_b", "p", "p_bonferroni"]].median()
        ends = effect.value, effect.value - half, effect.value + half
        rows.append([corpus, level, measure, pair, *middle, *ends, len(medians), len(picked)])
    return pd.DataFrame(rows, columns=[*keys, *OF_STRONGEST])


def effect_interval(a: ArrayLike, b: ArrayLike, *, family: int = 1, resamples: int = 10_000, seed: int = 0) -> Estimate:
    """Rank-biserial effect of a (n_a,) over b (n_b,), as in `inference.mann_whitney`, with a bootstrap interval.

    Both are resampled on their own; n is n_a + n_b. The level is Bonferroni's: 1 - .05 / family, for a family of
    intervals that are to hold all together. Resampling is done on the counts of the distinct values, which is the same.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if not len(a) or not len(b) or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("an effect needs values on both sides, all of them finite")
    values, random = np.unique(np.concatenate([a, b])), np.random.default_rng(seed)
    counts = [np.bincount(np.searchsorted(values, each), minlength=len(values)) for each in (a, b)]
    value, effects, block = _effects(*counts)[0], [], max(1, CELLS // len(values))
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        effects.append(_effects(*(random.multinomial(each.sum(), each / each.sum(), size=size) for each in counts)))
    tail = (1 - LEVEL) / family / 2
    low, high = np.quantile(np.concatenate(effects), [tail, 1 - tail])
    return Estimate(float(value), float(low), float(high), len(a) + len(b))


def _effects(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    """Rank-biserial effects (R,) of samples that are counts of the same ascending values, (R, V) each or (V,)."""
    a, b = np.atleast_2d(a), np.atleast_2d(b)
    n_a, n_b = a.sum(axis=1), b.sum(axis=1)
    below = np.cumsum(b, axis=1) - b
    return (a * (2 * below + b - n_b[:, None])).sum(axis=1) / (n_a * n_b)
