"""How well a score finds wrong labels: precision among the first k, and the area under precision against recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nli_lib.report.inference import percentile_interval


def average_precision(scores: ArrayLike, wrong: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray:
    """Area under the curve of precision against recall when examples are reviewed from the highest score down, 0 to 1.

    scores (N,), wrong (N,) bool, at least one True. A score that knows nothing gets the share of wrong ones. Equal
    scores are one step of the curve, so their order does not matter. With `weights` (R, N), how often each example
    counts in each of R resamples, the answer is (R,), otherwise ().
    Formula: sum over the steps of precision times the gain in recall, as `sklearn.metrics.average_precision_score`.
    """
    scores, wrong = np.asarray(scores, dtype=float), np.asarray(wrong)
    if scores.shape != wrong.shape or scores.ndim != 1 or wrong.dtype != bool:
        raise ValueError(f"scores have shape {scores.shape}, wrong {wrong.shape} of {wrong.dtype}: give (N,) and bool")
    if np.isnan(scores).any() or not wrong.any():
        raise ValueError("no example is wrong, so nothing can be found" if not wrong.any() else "a score is NaN")
    order = np.argsort(-scores, kind="stable")
    weights = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=float)
    reviewed, found = (np.cumsum(part[..., order], axis=-1) for part in (weights, weights * wrong))
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # the end of each run of equal scores
    reviewed, found = reviewed[..., last], found[..., last]
    precision = np.divide(found, reviewed, out=np.zeros_like(found), where=reviewed > 0)
    gain = np.diff(found, axis=-1, prepend=0)
    with np.errstate(invalid="ignore"):
        return (precision * gain).sum(axis=-1) / found[..., -1]


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

    scores  name -> (N,), the more suspect the higher; columns score, area, low, high, n, wrong, "at k" for each of `ks`
    """
    wrong = np.asarray(wrong, dtype=bool)
    generator = np.random.default_rng(seed)
    draws = generator.multinomial(len(wrong), np.full(len(wrong), 1 / len(wrong)), size=resamples)
    rows = []
    for name, values in scores.items():
        areas = average_precision(values, wrong, draws)
        low, high = percentile_interval(areas[np.isfinite(areas)])
        row = {"score": name, "area": float(average_precision(values, wrong)), "low": low, "high": high}
        rows.append({**row, "n": len(wrong), "wrong": int(wrong.sum())})
        rows[-1] |= {f"at {k}": precision_at(values, wrong, k) for k in ks if k <= len(wrong)}
    return pd.DataFrame(rows)
