"""Of many tests of one claim, "nowhere a difference": the one that speaks most against it, with an interval that holds
although it was picked."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.labels import LABELS
from nli_lib.measure.difficulty import LEVELS
from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import CELLS, LEVEL

COLUMNS = ("measure", "pair", "n_a", "n_b", "p", "p_bonferroni", "effect", "low", "high", "tests")


def strongest(tests: pd.DataFrame, table: pd.DataFrame, *, resamples: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """The test of smallest p in each corpus and level: its corpus, level and `COLUMNS`.

    tests  as `contrasts.level_tests` gives them; table: the examples, with corpus, level, gold and the measures
    low and high are the ends of the effect's interval (`effect_interval`) simultaneous over all tests of that corpus
    and level, so it holds for the one that was picked as well; tests: how many they are. Of equal p the largest effect.
    """
    rows = []
    for (corpus, level), part in tests.assign(size=tests["effect"].abs()).groupby(["corpus", "level"], sort=False):
        first = part.sort_values(["p", "size"], ascending=[True, False], kind="stable").iloc[0]
        there = table[(table["corpus"] == corpus) & (table["level"] == LEVELS.index(level))]
        labels = [LABELS.index(name) for name in first["pair"].split(" - ")]
        a, b = (there.loc[there["gold"] == label, first["measure"]] for label in labels)
        effect = effect_interval(a, b, family=len(part), resamples=resamples, seed=seed)
        found = first.to_dict() | effect._asdict() | {"tests": len(part)}
        rows.append([corpus, level, *(found[column] for column in COLUMNS)])
    return pd.DataFrame(rows, columns=["corpus", "level", *COLUMNS])


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
