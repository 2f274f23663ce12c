"""How well estimated max variability stands in for variability: WANLI's Appendix A and its two differences apart."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.measure.dynamics import max_variability, variability
from nli_lib.stats import Estimate, Statistic, over_trainings, spearman

TRUTH = "variability, trained on the pair"
PAPER = "max variability, pair held out (the paper's)"
STATISTIC = "max variability, trained on the pair"
MODEL = "variability, pair held out"
SEED = "variability, trained on the pair, another seed"
RANDOM = "max variability, another pair held out"


def substitutes(
    whole: Sequence[ArrayLike], without: Sequence[ArrayLike], labels: ArrayLike, *, seed: int = 0
) -> dict[str, NDArray[np.float64]]:
    """The variability of H pairs in T trainings, and what could stand in for it, each (T, H), by name.

    whole, without  logits (E, H, C) of the pairs, one a training: of models that learnt them, and of models of the same
                    seeds that did not

    `PAPER` differs from `TRUTH` by the statistic and by the model; `STATISTIC` and `MODEL` by one of the two. `SEED` is
    the truth of the next training, which says how much there is to find: absent with one training. `RANDOM` is the
    control: the paper's estimate, dealt out to the pairs at random.
    """
    estimate = np.array([max_variability(each) for each in without])
    found = {
        TRUTH: np.array([variability(each, labels) for each in whole]),
        PAPER: estimate,
        STATISTIC: np.array([max_variability(each) for each in whole]),
        MODEL: np.array([variability(each, labels) for each in without]),
        RANDOM: np.random.default_rng(seed).permuted(estimate, axis=1),
    }
    return found | ({SEED: np.roll(found[TRUTH], -1, axis=0)} if len(whole) > 1 else {})


def pearson(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """Pearson correlation of each row of x (T, H) with that of y (T, H), (T,); a constant's is NaN."""
    x, y = (np.asarray(each, dtype=float) for each in (x, y))
    x, y = (each - each.mean(axis=1, keepdims=True) for each in (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))


CORRELATIONS = {"Pearson": pearson, "Spearman": spearman}


def correlation(found: Mapping[str, NDArray], name: str, groups: np.ndarray, kind: str = "Pearson") -> Estimate:
    """Correlation of `TRUTH` with a substitute, mean over the trainings; the interval draws them and groups (H,)."""
    return over_trainings(_statistic(found, name, kind), len(groups), groups=groups)


def _statistic(found: Mapping[str, NDArray], name: str, kind: str) -> Statistic:
    return lambda rows: CORRELATIONS[kind](found[TRUTH][:, rows], found[name][:, rows])


def correlation_table(found: Mapping[str, NDArray], groups: np.ndarray) -> pd.DataFrame:
    """`correlation` of every substitute, of both kinds: columns title, kind, and those of Estimate."""
    names = [name for name in (PAPER, STATISTIC, MODEL, SEED, RANDOM) if name in found]
    rows = [
        {"title": name, "kind": kind, **correlation(found, name, groups, kind)._asdict()}
        for kind in CORRELATIONS
        for name in names
    ]
    return pd.DataFrame(rows)
