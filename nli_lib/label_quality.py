"""What the suspicion of a label is worth: shares of wrong labels, the threshold, how well a score finds them, lists.

What people say of the labels that several trainings contradict, with intervals over trainings and premises.

found = Mismatches.of(logits, labels, wrong=labels != majority, premises=corpus.premise)
share_of(found.wrong, found.chosen & (found.gap > 2), found.premises)      # Estimate, or None
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from nli_lib.corpora.corpus import LABELS
from nli_lib.measure.consensus import AGREE, KINDS, PRUNED, judge, logit_gap, mismatch, suspects, threshold_rule
from nli_lib.stats import Estimate, gaps_between, means_of, over_trainings, percentile_interval, spearman, with_wilson

EDGES = (0, 1, 2, 3, 4, 5)  # intervals of the gap in the consensus cleaning paper's Figure 2
TWIN = "random twin: any entailment"
NONE = 6.0  # stands for "no threshold" where a number is needed


def error_shares(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Share of wrong labels in each group, with its Wilson interval: the columns of `by`, n, wrong, share, low, high.

    table  one row an example: the columns of `by`, wrong (bool) and, where several trainings judged the same examples,
           seed; then n and wrong are the mean of one training, rounded: pooled, an example would count several times

    Groups come in the order of their first rows; the seeds are counted in each value of the first column of `by`.
    """
    by = list(by)
    seeds = table.groupby(by[0])["seed"].transform("nunique") if "seed" in table else 1
    groups = table.assign(seeds=seeds).groupby(by, sort=False, observed=True)
    counted = groups.agg(n=("wrong", "size"), wrong=("wrong", "sum"), seeds=("seeds", "first")).reset_index()
    counted[["n", "wrong"]] = counted[["n", "wrong"]].div(counted.pop("seeds"), axis=0).round().astype(int)
    return with_wilson(counted[counted["n"] > 0], "wrong", value="share")


def shares_by_gap(judged: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """`error_shares` of the P1G0 mismatches by intervals of the gap, above some gaps, and of their random twin.

    judged  truth, kind, gap, wrong and perhaps seed, one row a mismatch; labels: truth, label, n, wrong, the counts of
            all labels on trial. The twin's title is `TWIN`: any pair labelled entailment.
    Columns: truth, title, n, wrong, share, low, high.
    """
    focus = judged[judged["kind"] == PRUNED].sort_values(["truth", "gap"])
    names = [f"gap {low} to {high}" for low, high in pairwise(EDGES)] + [f"gap {EDGES[-1]} or more"]
    bands = pd.cut(focus["gap"], [*EDGES, np.inf], right=False, labels=names).astype(str)
    parts = [focus.assign(title=bands)]
    parts += [focus[focus["gap"] > edge].assign(title=f"gap above {edge}") for edge in (2, 4)]
    twin = with_wilson(labels[labels["label"] == 0].assign(title=TWIN), "wrong", value="share")
    shares = error_shares(pd.concat(parts), ["truth", "title"])
    return pd.concat([shares, twin.drop(columns="label")], ignore_index=True)


def shares_by_kind(judged: pd.DataFrame, labels: pd.DataFrame, *, above: Sequence[float] = (2,)) -> pd.DataFrame:
    """`error_shares` of each kind of mismatch, at any gap and above some, and of its random twin: any pair so labelled.

    Arguments as `shares_by_gap`. Columns: truth, condition, kind, n, wrong, share, low, high.
    """
    judged = judged[judged["kind"] != AGREE].sort_values(["truth", "kind"])
    parts = [judged.assign(condition="any gap")]
    parts += [judged[judged["gap"] > edge].assign(condition=f"gap above {edge}") for edge in above]
    kinds = pd.DataFrame({"kind": KINDS, "label": [int(kind[-1]) for kind in KINDS]})
    twin = with_wilson(labels, "wrong", value="share").merge(kinds, on="label").drop(columns="label")
    twin = twin.assign(condition="random twin: any pair with that label")
    return pd.concat([error_shares(pd.concat(parts), ["truth", "condition", "kind"]), twin], ignore_index=True)


def threshold_estimate(
    gap: ArrayLike, wrong: ArrayLike, *, resamples: int = 1000, seed: int = 0
) -> tuple[Estimate, float]:
    """`threshold_rule` with a percentile interval over the mismatches, and the share of resamples without a threshold.

    gap (N,), wrong (N,) bool. `NONE` stands for no threshold, in the estimate as in the resamples.
    """
    gap, wrong = np.asarray(gap, dtype=float), np.asarray(wrong, dtype=bool)
    rows = np.random.default_rng(seed).integers(len(gap), size=(resamples, len(gap)))
    found = [threshold_rule(gap[at], wrong[at], EDGES) for at in (slice(None), *rows)]
    value, *draws = [NONE if edge is None else edge for edge in found]
    return percentile_interval(value, np.array(draws), n=len(gap)), float(np.mean(np.array(draws) == NONE))


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


def retrieval_table(
    scores: Mapping[str, ArrayLike], wrong: ArrayLike, *, ks: Sequence[int] = (), resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """One row a score: average precision with its 95% bootstrap interval over the examples, precision at each k.

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


def climb(by_fold: pd.DataFrame, *, resamples: int = 2000, seed: int = 0) -> Estimate:
    """By how much accuracy rises from a fold to the next: the slope in each half of the folds, averaged over both.

    by_fold: fold (0 and up), n, correct. The interval redraws the pairs of each fold. Fresh models have no reason to
    climb; one that is trained on from fold to fold has seen what it scores, and does (`learn.predict.cross_score`).
    """
    fold, n, correct = (by_fold[column].to_numpy() for column in ("fold", "n", "correct"))
    draws = np.random.default_rng(seed).binomial(n, correct / n, size=(resamples, len(n)))
    value, *slopes = (_slope(fold, row / n) for row in (correct, *draws))
    return percentile_interval(value, np.array(slopes), n=int(n.sum()))


def _slope(fold: np.ndarray, accuracy: np.ndarray) -> float:
    """The slope of accuracy over the number of the fold within each half of the folds, averaged over both.

    Two folds have no halves: theirs is the slope from the first to the second.
    """
    second = fold >= (fold.max() + 2) // 2
    parts = [part for part in (np.flatnonzero(~second), np.flatnonzero(second)) if len(part) > 1]
    return float(np.mean([np.polyfit(fold[part], accuracy[part], 1)[0] for part in parts or [slice(None)]]))


def climb_over_trainings(correct: ArrayLike, fold: ArrayLike, premises: ArrayLike) -> Estimate:
    """`climb` of several cross-scorings of the same pairs, with an interval over trainings and premises.

    correct (S, N) bool; fold (S, N) whole numbers from 0, the folds that each training drew; premises (N,).
    """
    correct, fold = np.asarray(correct, dtype=float), np.asarray(fold)
    numbers = np.arange(fold.max() + 1)

    def slope(at: np.ndarray, right: np.ndarray) -> float:
        sizes, found = (np.bincount(at, weights, len(numbers)) for weights in (None, right))
        return _slope(numbers, found / sizes) if sizes.all() else np.nan

    def statistic(rows: np.ndarray) -> np.ndarray:
        return np.array([slope(at[rows], right[rows]) for at, right in zip(fold, correct, strict=True)])

    return over_trainings(statistic, correct.shape[1], groups=np.asarray(premises))


def overlaps(lists: pd.DataFrame, seeds: Sequence[int], pool: int) -> pd.DataFrame:
    """How far the lists of each two seeds agree: first, second (seeds), overlap, and chance.

    lists    seed, position: the examples that each of `seeds` lists
    overlap  examples that both list, as a share of those that either does, 0 to 1
    chance   the same for two random lists as long, drawn from `pool` examples
    """
    listed = {seed: set(lists.loc[lists["seed"] == seed, "position"]) for seed in seeds}
    rows = []
    for (first, one), (second, other) in combinations(listed.items(), 2):
        expected = len(one) * len(other) / max(1, pool)
        chance = expected / max(1, len(one) + len(other) - expected)
        rows.append((first, second, len(one & other) / max(1, len(one | other)), chance))
    return pd.DataFrame(rows, columns=["first", "second", "overlap", "chance"])


def list_quality(people: pd.DataFrame, logits: Mapping[int, ArrayLike], *, threshold: float) -> pd.DataFrame:
    """The pruned pairs of each seed, judged by people: seed, truth, n, wrong, "by gap", "by votes".

    people: `corpora.people.references` with a column votes, how many seeds prune the pair; logits: seed -> (N, C).
    "by gap" and "by votes" are areas under the ROC curve: the probability that a wrong label of the list has the larger
    gap (is pruned by more seeds) than a right one; ties count half, 0.5 is chance, NaN where all labels are alike.
    """
    rows = []
    for truth, part in people.groupby("truth"):
        for seed, scores in logits.items():
            pruned = suspects(np.asarray(scores)[part["position"]], part["label"], threshold=threshold)
            named = judge(scores, part)[pruned]
            areas = [np.nan, np.nan]
            if named["wrong"].nunique() == 2:
                areas = [roc_auc_score(named["wrong"], named[score]) for score in ("gap", "votes")]
            rows.append((seed, truth, len(named), named["wrong"].sum(), *areas))
    return pd.DataFrame(rows, columns=["seed", "truth", "n", "wrong", "by gap", "by votes"])


def suspect_points(
    scored: pd.DataFrame, review: pd.DataFrame, people: pd.DataFrame, *, most: int = 2_000
) -> pd.DataFrame:
    """The labels that models contradict as points of a figure, the largest gap first, at most `most`.

    scored  `measure.consensus.label_scores`, rounded to four digits; its index is the position in the corpus
    review  recorded rows of `evaluate.review_list`: the texts that may be shown
    people  position and wrong, where somebody has judged the label
    Columns: position, kind, gap, confidence, label and predicted (in words, where known), premise, hypothesis, wrong.
    """
    points = scored.rename_axis("position").reset_index().query("kind != @AGREE").nlargest(most, "gap")
    key = ["kind", "gap", "p(gold)", "fold"]  # equal scores are those of equal texts
    texts = review.rename(columns={"p_gold": "p(gold)", "gold": "gold_name"})
    texts = texts.drop_duplicates(key)[[*key, "gold_name", "predicted", "premise", "hypothesis"]]
    points = points.merge(texts, on=key, how="left")
    names = dict(enumerate(LABELS)) if scored["label"].nunique() == len(LABELS) else {}
    points["label"] = points["gold_name"].fillna(points["label"].map(names))
    points["predicted"] = points["predicted"].fillna(points["kind"].str[1].astype(int).map(names))
    wrong = people.drop_duplicates("position")[["position", "wrong"]]
    columns = ["position", "kind", "gap", "confidence", "label", "predicted", "premise", "hypothesis", "wrong"]
    return points.merge(wrong, on="position", how="left")[columns]


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
