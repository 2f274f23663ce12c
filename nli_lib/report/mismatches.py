"""What people say of the labels that several trainings contradict, with intervals over trainings and premises.

found = Mismatches.of(logits, labels, wrong=labels != majority, premises=corpus.premise)
share_of(found.wrong, found.chosen & (found.gap > 2), found.premises)      # Estimate, or None
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nli_lib.measure.consensus import PRUNED, logit_gap, mismatch, threshold_rule
from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import spearman
from nli_lib.report.label_errors import EDGES, NONE
from nli_lib.report.trainings import gaps_between, means_of, over_trainings


class Mismatches(NamedTuple):
    """One kind of mismatch on the same N pairs under S trainings.

    chosen (S, N) bool, whether the training makes it; gap (S, N); wrong (N,) bool, by people; premises (N,).
    """

    chosen: NDArray[np.bool_]
    gap: NDArray[np.float64]
    wrong: NDArray[np.bool_]
    premises: NDArray

    @classmethod
    def of(
        cls,
        logits: Mapping[int, ArrayLike],
        labels: ArrayLike,
        *,
        wrong: ArrayLike,
        premises: ArrayLike,
        kind: str = PRUNED,
    ) -> "Mismatches":
        """From the logits (N, C) of each seed and the labels (N,) on trial."""
        chosen = np.array([mismatch(each, labels) == kind for each in logits.values()])
        gap = np.array([logit_gap(each, labels) for each in logits.values()])
        return cls(chosen, gap, np.asarray(wrong, dtype=bool), np.asarray(premises))


def share_of(flags: ArrayLike, chosen: ArrayLike, premises: ArrayLike) -> Estimate | None:
    """Share of True among the chosen pairs, the mean over the trainings; None where a training has chosen none.

    flags (N,) or (S, N) bool; chosen (S, N) bool; premises (N,). n counts the premises with a chosen pair.
    """
    chosen = np.asarray(chosen)
    values = np.where(chosen, np.broadcast_to(np.asarray(flags, dtype=float), chosen.shape), np.nan)
    return _over_chosen(lambda rows: means_of(values[:, rows]), chosen, premises)


def difference_of_shares(flags: ArrayLike, one: ArrayLike, other: ArrayLike, premises: ArrayLike) -> Estimate | None:
    """Share of True among the pairs in ``one`` minus that in ``other``, both (S, N) bool, the mean over trainings."""
    one, other = np.asarray(one), np.asarray(other)
    if not (one.any(axis=1).all() and other.any(axis=1).all()):
        return None
    values = np.broadcast_to(np.asarray(flags, dtype=float), one.shape)
    return _over_chosen(lambda rows: gaps_between(values[:, rows], one[:, rows], other[:, rows]), one | other, premises)


def errors_rise(found: Mismatches) -> Estimate | None:
    """Spearman correlation of the gap with whether the label is wrong, among the mismatches; None if none can rise."""
    mixed = [found.wrong[own].any() and not found.wrong[own].all() for own in found.chosen]
    return _each_training(found, spearman) if all(mixed) else None


def threshold(found: Mismatches) -> Estimate | None:
    """The paper's rule for its threshold (`threshold_rule`); `NONE` stands for no threshold."""

    def rule(gap: NDArray, wrong: NDArray) -> float:
        edge = threshold_rule(gap, wrong, EDGES)
        return NONE if edge is None else edge

    return _each_training(found, rule)


def _each_training(found: Mismatches, statistic: Callable[[NDArray, NDArray], float]) -> Estimate | None:
    """The mean over trainings of a statistic of the gaps and the flags of the training's own mismatches."""

    def of_rows(rows: NDArray) -> Callable[[NDArray], NDArray]:
        chosen, gap, wrong = found.chosen[:, rows], found.gap[:, rows], found.wrong[rows].astype(float)
        return lambda at: np.array(
            [statistic(each[at][own[at]], wrong[at][own[at]]) for each, own in zip(gap, chosen, strict=True)]
        )

    return _over_chosen(of_rows, found.chosen, found.premises)


def _over_chosen(
    statistic_of: Callable[[NDArray], Callable], chosen: ArrayLike, premises: ArrayLike
) -> Estimate | None:
    """`over_trainings` on the pairs that some training has chosen; None where a training has chosen none."""
    chosen = np.asarray(chosen)
    if not chosen.any(axis=1).all():
        return None
    rows = np.flatnonzero(chosen.any(axis=0))
    return over_trainings(statistic_of(rows), len(rows), groups=np.asarray(premises)[rows])
