"""How well a score finds wrong labels: precision among the first k, and the area under precision against recall."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.metrics import average_precision_score

from nli_lib.report.inference import percentile_interval


def average_precision(scores: ArrayLike, wrong: ArrayLike) -> float:
    """Area under the curve of precision against recall when examples are reviewed from the highest score down, 0 to 1.

    scores (N,), wrong (N,) bool, at least one True. A score that knows nothing gets about the share of wrong ones.
    Equal scores are one step of the curve, so their order does not matter.
    """
    if not np.any(wrong):
        raise ValueError("no example is wrong, so nothing can be found")
    return float(average_precision_score(wrong, scores))


def precision_at(scores: ArrayLike, wrong: ArrayLike, k: int) -> float:
    """Share of wrong examples among the k with the highest scores, 0 to 1; of equal scores the expected share counts.

    scores (N,), wrong (N,) bool, 1 <= k <= N.
    """
    scores, wrong = np.asarray(scores, dtype=float), np.asarray(wrong, dtype=bool)
    if not 1 <= k <= len(scores):
        raise ValueError(f"k={k} of {len(scores)} examples")
    border = np.partition(scores, -k)[-k]
    above, level = scores > border, scores == border
    return float((wrong[above].sum() + (k - above.sum()) * wrong[level].mean()) / k)


def retrieval_table(
    scores: Mapping[str, ArrayLike], wrong: ArrayLike, *, ks: Sequence[int] = (), resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """One row a score: average precision with its 95 % bootstrap interval over the examples, precision at each k.

    scores  name -> (N,), the more suspect the higher; columns score, area, low, high, n, wrong, "at k" for each of
            `ks`; no rows where no example is wrong, since nothing could be found
    """
    wrong = np.asarray(wrong, dtype=bool)
    if not wrong.any():
        return pd.DataFrame(columns=["score", "area", "low", "high", "n", "wrong"])
    generator = np.random.default_rng(seed)
    draws = generator.multinomial(len(wrong), np.full(len(wrong), 1 / len(wrong)), size=resamples)
    rows = []
    draws = draws[draws[:, wrong].any(axis=1)]
    for name, values in scores.items():
        area = average_precision(values, wrong)
        resampled = np.array([average_precision_score(wrong, values, sample_weight=row) for row in draws])
        value, low, high, n, *_ = percentile_interval(area, resampled, n=len(wrong))
        rows.append({"score": name, "area": value, "low": low, "high": high, "n": n, "wrong": int(wrong.sum())})
        rows[-1] |= {f"at {k}": precision_at(values, wrong, k) for k in ks if k <= len(wrong)}
    return pd.DataFrame(rows)
