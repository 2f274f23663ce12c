"""How hard an example is for a model that reads both texts, or the hypothesis alone (the difficulty paper)."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from nli_lib.measure import dynamics

LEVELS = ("easy", "ambiguous", "hard")
MEASURES = (dynamics.confidence, dynamics.variability, dynamics.margin, dynamics.correctness)
FEATURES = tuple(f"{view} {measure.__name__}" for view in ("pair", "hypothesis") for measure in MEASURES)


def dynamics_features(pair: ArrayLike, hypothesis: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """The eight features of an example, (N, 8), in the order of `FEATURES`; each is described in `dynamics`.

    Shapes: pair (E, N, C) and hypothesis (E', N, C) are the logits of a model trained on both texts and of one trained
    on the hypothesis alone, labels (N,).
    Source: the difficulty paper section 3 (H3); its recorder evaluates after each epoch (`capture="eval"`).
    """
    return np.stack([measure(logits, labels) for logits in (pair, hypothesis) for measure in MEASURES], axis=1)


def feature_table(pair: ArrayLike, hypothesis: ArrayLike, labels: ArrayLike) -> pd.DataFrame:
    """`dynamics_features` as a tidy table: a column for each of `FEATURES`, five decimals, and the column ``gold``."""
    values = dynamics_features(pair, hypothesis, labels).round(5).astype(np.float32)
    return pd.DataFrame(values, columns=FEATURES).assign(gold=np.asarray(labels))


def levels(features: ArrayLike, *, seed: int = 0, starts: int = 10) -> NDArray[np.int64]:
    """Level of each example, (N,): 0 easy, 1 ambiguous, 2 hard, as indices of `LEVELS`.

    Shapes: features (N, D); the first column must be the pair's confidence, by which the groups are named.
    Formula: standardise every column (a constant one becomes 0), fit a mixture of three Gaussians with full covariance
    (the best of `starts` k-means starts, 1e-6 added to each variance), put each example into the most probable one;
    the group of highest mean confidence is easy, that of lowest is hard.
    Source: the difficulty paper section 3 and its code (H4, H5). "Ambiguous" is what is left, not what varies most.
    *Departures*: the code fits twice without a seed, prints the accuracy by level of the first fit and saves the groups
    of the second. Here `seed` fixes one fit. How much the groups depend on it is a finding: ask several seeds.
    """
    values = np.asarray(features, dtype=np.float64)
    mixture = GaussianMixture(len(LEVELS), n_init=starts, random_state=seed)
    group = mixture.fit_predict(StandardScaler().fit_transform(values))
    found, member = np.unique(group, return_inverse=True)
    if len(found) < len(LEVELS):
        raise ValueError(f"the examples fall into {len(found)} of {len(LEVELS)} groups: too few differ from each other")
    mean = np.bincount(member, weights=values[:, 0]) / np.bincount(member)
    return np.argsort(np.argsort(-mean, kind="stable"))[member]


def same_sizes(level: ArrayLike, score: ArrayLike) -> NDArray[np.int64]:
    """Groups exactly as large as the levels, cut by one score alone, (N,): 0 has the highest scores, 2 the lowest.

    level (N,) as `levels` gives it; score (N,), high = easy, of equal scores the earlier example counts as the higher.
    The control for a mixture of eight features: does it say more about an example than this one number does?
    """
    rank = np.argsort(np.argsort(-np.asarray(score), kind="stable"))
    return np.searchsorted(np.cumsum(np.bincount(level, minlength=len(LEVELS))), rank, side="right")


def level_agreement(first: ArrayLike, second: ArrayLike) -> dict[str, float]:
    """How far two sets of levels of the same examples agree, all 1 when they are the same.

    adjusted Rand        1 is the same groups, 0 what chance would give (the names of the groups play no part)
    same level           share of the examples that both put into the same level, 0 to 1
    hard in both         share of the first's hard examples that are hard in the second
    hard by chance       the same share were the two independent: how much of everything the second calls hard
    """
    first, second = np.asarray(first), np.asarray(second)
    hard = LEVELS.index("hard")
    return {
        "adjusted Rand": float(adjusted_rand_score(first, second)),
        "same level": float((first == second).mean()),
        "hard in both": float((second[first == hard] == hard).mean()),
        "hard by chance": float((second == hard).mean()),
    }
