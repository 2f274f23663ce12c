"""DISCO's teacher filter: which counterfactuals move a model's probability of the label that was asked for."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from nli_lib.select.selection import Selection

THRESHOLD = 0.3  # of the code that the paper used; the cut is its half, as the smallest released score, .15003, proves
SMALL = "the probability of the label moves too little"


def probability_shift(before: ArrayLike, after: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """How much more probable the new label is after the perturbation, -1 to 1; high = the perturbation worked.

    before, after  logits (N, C) of the original and of the new pair; labels (N,) the new label -> (N,)
    Formula: p(l' | P', H) - p(l' | P, H). Source: DISCO, equation 1 (D7).
    """
    before, after, labels = np.asarray(before), np.asarray(after), np.asarray(labels, dtype=np.int64)
    if before.shape != after.shape or before.ndim != 2 or labels.shape != before.shape[:1]:
        raise ValueError(f"logits {before.shape} and {after.shape} with labels {labels.shape}: give (N, C) twice, (N,)")
    moved = softmax(after.astype(np.float64), axis=1) - softmax(before.astype(np.float64), axis=1)
    return moved[np.arange(len(labels)), labels]


def vote(shifts: ArrayLike) -> NDArray[np.float64]:
    """One shift from those of T teachers, (T, N) -> (N,): their mean, weighted by their own softmax.

    The teacher who sees the largest shift counts most, so it lies between the mean and the maximum; one teacher's is
    his own. Source: DISCO's code (`ensemble`), which the paper does not describe (D7).
    """
    shifts = np.atleast_2d(np.asarray(shifts, dtype=np.float64))
    return (softmax(shifts, axis=0) * shifts).sum(axis=0)


def teacher_filter(shifts: ArrayLike, *, threshold: float = THRESHOLD) -> Selection:
    """Keep where the shift (N,) is above half the threshold.

    threshold  `THRESHOLD`, .3, cuts at .15; that of the code of 2023, .5, at .25

    Nothing asks that the teacher predict the new label, nor that the old one become less probable.
    Source: DISCO, section 3.2, which gives no number, and `run.py` (D7).
    """
    shifts = np.asarray(shifts, dtype=np.float64)
    if np.isnan(shifts).any():
        raise ValueError(f"the shift at position {int(np.isnan(shifts).argmax())} is NaN: it cannot be compared")
    return Selection.where(shifts > threshold / 2, dropped=SMALL)
