"""The half of the generated pairs that each training keeps, and what a training that did not choose it says of it."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from scipy.stats import entropy

from nli_lib.measure.dynamics import max_variability
from nli_lib.select.selection import most_ambiguous
from nli_lib.stats import Estimate, gaps_between, means_of, over_trainings, spearman

KEPT, TWIN, DROPPED = "kept half", "random twin", "dropped half"
ENTROPY, OTHER, INTENDED = "entropy (bits)", "estimated max variability", "predicts the intended label"


class Halves(NamedTuple):
    """Of T trainings and N pairs: scores (T, N), the estimated max variability; keep and twin (T, N) bool."""

    scores: NDArray[np.float64]
    keep: NDArray[np.bool_]
    twin: NDArray[np.bool_]


def select_halves(logits: Sequence[ArrayLike], labels: ArrayLike) -> Halves:
    """The half that each training keeps, with its random twin.

    logits  one (E, N, C) for each training, see `learn.predict.predict_epochs`; labels (N,): the intended ones
    """
    labels = np.asarray(labels)
    shape = len(logits), len(labels)
    scores = np.array([max_variability(each) for each in logits]).reshape(shape)
    classes = [np.shape(each)[-1] for each in logits]
    chosen = [most_ambiguous(each, labels, classes=count) for each, count in zip(scores, classes, strict=True)]
    twins = [each.random_twin(labels, seed) for seed, each in enumerate(chosen)]
    return Halves(scores, *(np.array([each.keep for each in part], bool).reshape(shape) for part in (chosen, twins)))


def judgements(logits: Sequence[ArrayLike], labels: ArrayLike) -> dict[str, NDArray[np.float64]]:
    """What the *next* training says of each pair, (T, N) for each of three questions; the last is judged by the first.

    `ENTROPY` of its prediction after the last epoch, 0 to log2 C; `OTHER`, its own score; `INTENDED`, whether it
    predicts the intended label. Where there is one training alone, it judges itself.
    """
    others = [*logits[1:], *logits[:1]]
    last = np.array([each[-1] for each in others])  # (T, N, C)
    return {
        ENTROPY: entropy(softmax(last, axis=-1), axis=-1, base=2),
        OTHER: np.array([max_variability(each) for each in others]),
        INTENDED: (last.argmax(axis=-1) == np.asarray(labels)).astype(float),
    }


def half_table(halves: Halves, judged: Mapping[str, NDArray], contexts: ArrayLike) -> pd.DataFrame:
    """Mean judgement of kept half, random twin and dropped half, with intervals over trainings and contexts.

    contexts (N,) of each pair. Columns title (the question), part, and those of Estimate; no rows where a training
    keeps nothing.
    """
    parts = {KEPT: halves.keep, TWIN: halves.twin, DROPPED: ~halves.keep}
    rows = [
        {"title": title, "part": part}
        | over_trainings(means_of(np.where(chosen, values, np.nan)), len(contexts), groups=contexts)._asdict()
        for title, values in judged.items()
        for part, chosen in parts.items()
        if keeps_any(halves)
    ]
    return pd.DataFrame(rows, columns=["title", "part", "value", "low", "high", "n", "seeds", "over"])


def keeps_any(halves: Halves) -> bool:
    """Whether there is a training and every one keeps a pair."""
    return bool(len(halves.keep) and halves.keep.any(axis=1).all())


def gap_to_twin(halves: Halves, values: NDArray, contexts: ArrayLike) -> Estimate:
    """The mean judgement (T, N) of the kept half minus that of its random twin, over trainings and contexts."""
    return over_trainings(gaps_between(values, halves.keep, halves.twin), len(contexts), groups=contexts)


def agreement(halves: Halves) -> pd.DataFrame:
    """How far two trainings agree, one row for every two: columns one, other, spearman (of the scores), overlap
    (Jaccard index of the kept halves) and twins (the same of their random twins)."""
    rows = []
    for one, other in combinations(range(len(halves.scores)) if keeps_any(halves) else (), 2):
        overlaps = (
            (chosen[one] & chosen[other]).sum() / (chosen[one] | chosen[other]).sum()
            for chosen in (halves.keep, halves.twin)
        )
        rows.append((one, other, float(spearman(halves.scores[one], halves.scores[other])), *overlaps))
    return pd.DataFrame(rows, columns=["one", "other", "spearman", "overlap", "twins"])
