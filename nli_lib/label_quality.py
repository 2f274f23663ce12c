"""What the suspicion of a label is worth: shares of wrong labels, how well a score finds them, how far lists agree.

What people say of the labels that several trainings contradict, with intervals over trainings and premises.

found = Mismatches.of(logits, labels, wrong=labels != majority, premises=corpus.premise)

share_of(found.wrong, found.chosen & (found.gap > 2), found.premises)
    # Estimate, or None
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score

from nli_lib.measure.consensus import AGREE, KINDS, PRUNED, logit_gap, mismatch, threshold_rule
from nli_lib.stats import Estimate, gaps_between, means_of, over_trainings, spearman, with_wilson

EDGES = (0, 1, 2, 3, 4, 5)  # intervals of the gap in the consensus cleaning paper's Figure 2
TWIN = "random twin: any entailment"
NONE = 6.0  # stands for "no threshold" where a number is needed


def error_shares(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Share of wrong labels in each group, with its Wilson interval: the columns of `by`, n, wrong, share, low, high.

    Groups come in the order of their first rows; the seeds are counted in each value of the first column of `by`.

    Parameters
    ----------
    table
        one row an example: the columns of `by`, wrong (bool) and, where several trainings judged the same examples,
        seed; then n and wrong are the mean of one training, rounded: pooled, an example would count several times
    """
    by = list(by)
    seeds = table.groupby(by[0])["seed"].transform("nunique") if "seed" in table else 1
    groups = table.assign(seeds=seeds).groupby(by, sort=False, observed=True)
    counted = groups.agg(n=("wrong", "size"), wrong=("wrong", "sum"), seeds=("seeds", "first")).reset_index()
    counted[["n", "wrong"]] = counted[["n", "wrong"]].div(counted.pop("seeds"), axis=0).round().astype(int)
    return with_wilson(counted[counted["n"] > 0], "wrong", value="share")


def shares_by_kind(judged: pd.DataFrame, labels: pd.DataFrame, *, above: Sequence[float] = (2,)) -> pd.DataFrame:
    """`error_shares` of each kind of mismatch, at any gap and above some, and of its random twin: any pair so labelled.

    Columns: truth, condition, kind, n, wrong, share, low, high.

    Parameters
    ----------
    judged
        truth, kind, gap, wrong and perhaps seed, one row a mismatch; labels: truth, label, n, wrong, the counts of all
        labels on trial
    """
    judged = judged[judged["kind"] != AGREE].sort_values(["truth", "kind"])
    parts = [judged.assign(condition="any gap")]
    parts += [judged[judged["gap"] > edge].assign(condition=f"gap above {edge}") for edge in above]
    kinds = pd.DataFrame({"kind": KINDS, "label": [int(kind[-1]) for kind in KINDS]})
    twin = with_wilson(labels, "wrong", value="share").merge(kinds, on="label").drop(columns="label")
    twin = twin.assign(condition="random twin: any pair with that label")
    return pd.concat([error_shares(pd.concat(parts), ["truth", "condition", "kind"]), twin], ignore_index=True)


def average_precision(scores: ArrayLike, wrong: ArrayLike) -> float:
    """Area under the curve of precision against recall when examples are reviewed from the highest score down, 0 to 1.

    scores (N,), wrong (N,) bool, at least one True. A score that knows nothing gets about the share of wrong ones.
    Equal scores are one step of the curve, so their order does not matter.
    """
    if not np.any(wrong):
        raise ValueError("no example is wrong, so nothing can be found")
    return float(average_precision_score(wrong, scores))


def weighted_precision(scores: ArrayLike, wrong: ArrayLike, weights: ArrayLike) -> NDArray[np.float64]:
    """Average precision of one order under R weightings of its items, (R,).

    scores (K,), the more suspect the higher, NaN: left out; wrong (K,) bool; weights (R, K). Equal scores are one step
    of the curve. Equal to scikit-learn's `average_precision_score` with each row as sample weights.
    """
    scores, wrong, weights = np.asarray(scores, dtype=float), np.asarray(wrong, dtype=bool), np.asarray(weights)
    order = np.argsort(-scores, kind="stable")[: np.count_nonzero(~np.isnan(scores))]
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # of each run of equal scores
    seen = weights[:, order].cumsum(axis=1, dtype=float)[:, last]
    found = (weights * wrong)[:, order].cumsum(axis=1, dtype=float)[:, last]
    precision = np.divide(found, seen, out=np.zeros_like(found), where=seen > 0)
    return (np.diff(found, axis=1, prepend=0) * precision).sum(axis=1) / found[:, -1]


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


def overlaps(lists: pd.DataFrame, seeds: Sequence[int], pool: int) -> pd.DataFrame:
    """How far the lists of each two seeds agree: first, second (seeds), overlap, and chance.

    lists
        seed, position: the examples that each of `seeds` lists
    overlap
        examples that both list, as a share of those that either does, 0 to 1
    chance
        the same for two random lists as long, drawn from `pool` examples
    """
    listed = {seed: set(lists.loc[lists["seed"] == seed, "position"]) for seed in seeds}
    rows = []
    for (first, one), (second, other) in combinations(listed.items(), 2):
        expected = len(one) * len(other) / max(1, pool)
        chance = expected / max(1, len(one) + len(other) - expected)
        rows.append((first, second, len(one & other) / max(1, len(one | other)), chance))
    return pd.DataFrame(rows, columns=["first", "second", "overlap", "chance"])


# ---------------------------------------------------------------- mismatches


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
