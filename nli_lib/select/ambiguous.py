"""WANLI's two selections by ambiguity: the pairs whose pattern is continued, and the generated pairs that are kept."""

import numpy as np
from numpy.typing import ArrayLike

from nli_lib.select.selection import Selection

EXCLUDED, BELOW, LESS = (
    "excluded genre",
    "not in the top quarter of its label",
    "less ambiguous than others of its label",
)


def most_variable(
    variability: ArrayLike, labels: ArrayLike, *, excluded: ArrayLike | None = None, quantile: float = 0.75
) -> Selection:
    """The exemplars: of each label the pairs whose variability lies above its quantile, .75 for the top quarter.

    variability (N,), of the gold label's probability; labels (N,); excluded (N,) bool, pairs that are left out first,
    such as those of a genre

    Source: WANLI, section 2.1, and its `pipeline.py` (W3): telephone is removed first, the quantile is numpy's (linear
    interpolation), and a pair must lie strictly above it. *Departures*: none; the paper's count of 98,176 is that of
    all genres.
    Raises `ValueError` for NaN among the pairs that are not excluded: no quantile is known then.
    """
    variability, labels = np.asarray(variability, dtype=float), np.asarray(labels)
    out = np.zeros(len(labels), dtype=bool) if excluded is None else np.asarray(excluded, dtype=bool)
    if variability.shape != labels.shape or np.isnan(variability[~out]).any():
        raise ValueError(f"variability of shape {variability.shape} for {len(labels)} labels: give each pair one")
    keep = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels[~out]):
        members = (labels == label) & ~out
        keep |= members & (variability > np.quantile(variability[members], quantile))
    return Selection(keep, np.where(keep, "kept", np.where(out, EXCLUDED, BELOW)).astype(object))


def most_ambiguous(scores: ArrayLike, labels: ArrayLike, *, fraction: float = 0.5, classes: int = 3) -> Selection:
    """Of each label equally many, those of highest score: int(fraction N) // classes each.

    scores (N,), WANLI's the estimated max variability (`measure.dynamics.max_variability`); labels (N,) the label that
    was asked for. Of equal scores the earlier pair is kept. A label with fewer pairs gives all it has.

    Source: WANLI, section 2.3, and its `keep_ambiguous.py` (W10). *Departures*: the code joins scores by position, so
    that a pair without one moves all others; here each pair has its own, and NaN is an error.
    """
    scores, labels = np.asarray(scores, dtype=float), np.asarray(labels)
    if scores.shape != labels.shape or np.isnan(scores).any():
        raise ValueError(f"scores of shape {scores.shape} for {len(labels)} labels: give each pair one")
    each, keep = int(fraction * len(labels)) // classes, np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        keep[members[np.argsort(-scores[members], kind="stable")[:each]]] = True
    return Selection.where(keep, dropped=LESS)
