"""Of many tests of one claim, "nowhere a difference": the one that speaks most against it, with an interval that holds
although it was picked."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.labels import LABELS
from nli_lib.errors import UserError
from nli_lib.measure.difficulty import LEVELS
from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import CELLS, LEVEL, t_interval

COLUMNS = ("measure", "pair", "n_a", "n_b", "p", "p_bonferroni", "effect", "low", "high", "tests", "trainings")


def strongest(tests: pd.DataFrame, table: pd.DataFrame, *, resamples: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """The test that speaks most against it in each corpus and level: its corpus, level and `COLUMNS`.

    tests  as `contrasts.level_tests` gives them, for S trainings; table: the examples, with corpus, training, level,
           gold and the measures

    It is the one of smallest p, in the median over the trainings; of equal p the one of largest effect. effect is the
    mean over the trainings; n_a, n_b, p and p_bonferroni are medians. low and high: two half-widths in quadrature, of
    Student's t interval over the trainings, and of the interval over the pairs (`effect_interval`, in the mean over the
    trainings), which is simultaneous over all tests of that corpus and level, so that it holds for the one that was
    picked as well. tests: how many they are.

    Raises `UserError` for a corpus with a level in which no training has pairs of two labels: the levels are then the
    labels that a model predicts, which has learnt nothing else.
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
    return pd.DataFrame(rows, columns=[*keys, *COLUMNS])


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
