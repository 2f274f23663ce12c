"""Agreement of scores with each other, with a truth and with people, and the quality of suspicions about labels.

Scores of the same pairs: `rank_correlations` of each two, and predictions by regressions on them, `out_of_fold`. Two
annotators: `kappa`. Labels that models contradict: the share that people call wrong (`error_shares`), how well a score
finds these (`average_precision`, `precision_at`), also without the help of labels that are wrong more often than others
(`precision_within`), and the same with intervals over trainings and premises::

    found = Mismatches.of(logits, labels, wrong=labels != majority, premises=corpus.premise)
    share_of(found.wrong, found.chosen & (found.gap > 2), found.premises)  # Estimate, or None
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from nli_lib.generate.review import untouched
from nli_lib.measure.consensus import AGREE, KINDS, PRUNED, logit_gap, mismatch, threshold_rule
from nli_lib.stats import Estimate, gaps_between, means_of, over_trainings, percentile_interval, spearman, with_wilson

FEW = 20  # smallest number of pairs that two scores must share

Floats = NDArray[np.float64]


def rank_correlations(values: ArrayLike) -> Floats:
    """Spearman correlation of every two of K scores, (K, N) -> (K, K), over the pairs that both know (not NaN).

    NaN if fewer than `FEW` pairs are shared or one of the two is constant on them.
    """
    values = np.asarray(values, dtype=float)
    known = pd.DataFrame(np.where(np.isfinite(values), values, np.nan).T)
    return known.corr("spearman", min_periods=FEW).to_numpy()


# ---------------------------------------------------------------- of a truth


FOLDS = 5
KNOTS = 5
PENALTY = 0.01  # scikit-learn's alpha, and one over its C: enough to control knots without labels


def out_of_fold(inputs: ArrayLike, truth: ArrayLike, groups: ArrayLike, *, seed: int = 0) -> Floats:
    """Predictions (M,) of a truth (M,) from inputs (M, D), each by a regression fitted without its group.

    groups (M,), such as premises, are split into `FOLDS` folds. The regression is ridge (graded truth) or logistic (0
    and 1), on cubic splines of the ranks with `KNOTS` knots, so it can follow any smooth curve.
    """
    truth = np.asarray(truth, dtype=float)
    ranks = rankdata(inputs, axis=0) / len(truth)
    yes_or_no = np.isin(truth, (0, 1)).all()
    regression = LogisticRegression(C=1 / PENALTY, max_iter=500) if yes_or_no else Ridge(PENALTY)
    model = make_pipeline(SplineTransformer(n_knots=KNOTS, include_bias=False), regression)
    how = {"cv": GroupKFold(FOLDS, shuffle=True, random_state=seed), "groups": groups}
    if yes_or_no:
        return cross_val_predict(model, ranks, truth, method="predict_proba", **how)[:, 1]
    return cross_val_predict(model, ranks, truth, **how)


# ---------------------------------------------------------------- of two annotators


RESAMPLES = 2000


def kappa(annotations: pd.DataFrame) -> Estimate:
    """Kappa over the items that neither annotator revised or discarded, with 2,000 resamples of the items.

    -1 to 1: 1 if they always agree, 0 if they agree only as often as labels drawn at random from their shares, below 0
    if less often: (a - e) / (1 - e), with a the share of items with equal labels and e the sum of the squared shares of
    the labels. NaN without items, or if there is only one label.

    Notes
    -----
    *Departures*: the paper gives no code and uses one order. The order of the annotators is arbitrary, so both are
    counted, which makes the value Scott's pi.

    References
    ----------
    WANLI, section 2.4 (W13), which reports .60.
    """
    codes, labels = pd.factorize(untouched(annotations).ravel())
    codes = codes.reshape(-1, 2)  # (n, 2)
    if not (n := len(codes)):
        return Estimate(float("nan"), float("nan"), float("nan"), 0)
    counts = np.eye(len(labels))[codes].mean(axis=1)  # (n, C) share of each label among an item's two
    equal = codes[:, 0] == codes[:, 1]
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n  # (R, n)
    weights = np.vstack([np.full(n, 1 / n), drawn])
    observed, expected = weights @ equal, ((weights @ counts) ** 2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        value, *draws = (observed - expected) / (1 - expected)
    draws = np.array(draws)[np.isfinite(draws)]
    return percentile_interval(value, draws if len(draws) else [np.nan], n=n)


# ---------------------------------------------------------------- label quality


EDGES = (0, 1, 2, 3, 4, 5)  # intervals of the gap in the consensus cleaning paper's Figure 2
ENTAILMENT_TWIN = "random twin: any entailment"
NONE = 6.0  # means "no threshold" where a number is needed


def error_shares(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Share of wrong labels in each group, with Wilson intervals: the columns of `by`, n, wrong, share, low, high.

    Groups are in the order of their first rows; seeds are counted within each value of the first column of `by`.

    Parameters
    ----------
    table
        one row for each example: the columns of `by`, wrong (bool) and, if several trainings judged the same examples,
        seed; n and wrong are then rounded means per training, because pooling would count an example several times

    Examples
    --------
    >>> import pandas as pd
    >>> from nli_lib.agreement import error_shares
    >>> judged = pd.DataFrame({"kind": ["P1G0"] * 4 + ["P2G0"] * 2, "wrong": [True, True, True, False, False, False]})
    >>> error_shares(judged, ["kind"])[["kind", "n", "wrong", "share"]]
       kind  n  wrong  share
    0  P1G0  4      3   0.75
    1  P2G0  2      0   0.00
    """
    by = list(by)
    seeds = table.groupby(by[0])["seed"].transform("nunique") if "seed" in table else 1
    groups = table.assign(seeds=seeds).groupby(by, sort=False, observed=True)
    counted = groups.agg(n=("wrong", "size"), wrong=("wrong", "sum"), seeds=("seeds", "first")).reset_index()
    counted[["n", "wrong"]] = counted[["n", "wrong"]].div(counted.pop("seeds"), axis=0).round().astype(int)
    return with_wilson(counted[counted["n"] > 0], "wrong", value="share")


def shares_by_kind(judged: pd.DataFrame, labels: pd.DataFrame, *, above: Sequence[float] = (2,)) -> pd.DataFrame:
    """`error_shares` of each kind of mismatch, at any gap and above given gaps, and of its random twin, any pair with
    that label.

    Columns: truth, condition, kind, n, wrong, share, low, high.

    Parameters
    ----------
    judged
        truth, kind, gap, wrong and perhaps seed, one row for each mismatch; labels: truth, label, n, wrong, the counts
        of all judged labels
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

    scores (N,), wrong (N,) bool, at least one True. A score without information gets about the share of wrong ones.
    Equal scores are one step of the curve, so their order does not matter.

    Examples
    --------
    >>> from nli_lib.agreement import average_precision
    >>> round(average_precision([3, 2, 1, 0], wrong=[True, False, True, False]), 2)
    0.83
    """
    if not np.any(wrong):
        raise ValueError("no example is wrong, so nothing can be found")
    return float(average_precision_score(wrong, scores))


def weighted_precision(scores: ArrayLike, wrong: ArrayLike, weights: ArrayLike) -> NDArray[np.float64]:
    """Average precision of one order under R weightings of its items, (R,).

    scores (K,), high = suspect, NaN: left out; wrong (K,) bool; weights (R, K). Equal scores are one step of the curve.
    Equals scikit-learn's `average_precision_score` with each row as sample weights.
    """
    scores, wrong, weights = np.asarray(scores, dtype=float), np.asarray(wrong, dtype=bool), np.asarray(weights)
    order = np.argsort(-scores, kind="stable")[: np.count_nonzero(~np.isnan(scores))]
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # the last of each run of equal scores
    seen = weights[:, order].cumsum(axis=1, dtype=float)[:, last]
    found = (weights * wrong)[:, order].cumsum(axis=1, dtype=float)[:, last]
    precision = np.divide(found, seen, out=np.zeros_like(found), where=seen > 0)
    return (np.diff(found, axis=1, prepend=0) * precision).sum(axis=1) / found[:, -1]


def precision_within(
    scores: ArrayLike, wrong: ArrayLike, label: ArrayLike, weights: ArrayLike | None = None
) -> tuple[float, NDArray[np.float64]]:
    """Average precision within a label, and the same under R weightings (R,): the mean over the labels, each alone, of
    which one is wrong.

    Labels differ in their share of wrong ones, so an order that knows only the label is already better than a random
    one over all labels; within a label it is not.

    scores (N,), high = suspect; wrong (N,) bool, at least one True; label (N,); weights (R, N), by default one row of
    ones.

    Examples
    --------
    >>> from nli_lib.agreement import precision_within
    >>> precision_within([1, 2, 4, 3], [True, False, True, False], [0, 0, 1, 1])
    (0.75, array([0.75]))
    """
    scores, wrong, label = np.asarray(scores, dtype=float), np.asarray(wrong, dtype=bool), np.asarray(label)
    weights = np.ones((1, len(label))) if weights is None else weights
    parts = [part for each in np.unique(label) if wrong[part := label == each].any()]
    with np.errstate(invalid="ignore"):  # a weighting without an error of a label
        draws = [weighted_precision(scores[part], wrong[part], weights[:, part]) for part in parts]
    value = np.mean([average_precision(scores[part], wrong[part]) for part in parts])
    return float(value), np.nanmean(draws, axis=0)


def precision_at(scores: ArrayLike, wrong: ArrayLike, k: int) -> float:
    """Share of wrong examples among the k with the highest scores, 0 to 1; of equal scores the expected share counts.

    scores (N,), wrong (N,) bool, 1 <= k <= N.

    Examples
    --------
    >>> from nli_lib.agreement import precision_at
    >>> precision_at([3, 2, 1, 0], wrong=[True, False, True, False], k=2)
    0.5
    """
    scores, wrong = np.asarray(scores, dtype=float), np.asarray(wrong, dtype=bool)
    if not 1 <= k <= len(scores):
        raise ValueError(f"k={k} of {len(scores)} examples")
    border = np.partition(scores, -k)[-k]
    above, level = scores > border, scores == border
    return float((wrong[above].sum() + (k - above.sum()) * wrong[level].mean()) / k)


# ---------------------------------------------------------------- mismatches


class Mismatches(NamedTuple):
    """One kind of mismatch on the same N pairs in S trainings.

    chosen (S, N) bool, True where the training has the mismatch; gap (S, N); wrong (N,) bool, by people; premises (N,).
    """

    chosen: NDArray[np.bool_]
    gap: NDArray[np.float64]
    wrong: NDArray[np.bool_]
    premises: NDArray

    @classmethod
    def of(
        cls, logits: Mapping, labels: ArrayLike, *, wrong: ArrayLike, premises: ArrayLike, kind: str = PRUNED
    ) -> "Mismatches":
        """Make it from the logits (N, C) of each seed and the judged labels (N,)."""
        chosen = np.array([mismatch(each, labels) == kind for each in logits.values()])
        gap = np.array([logit_gap(each, labels) for each in logits.values()])
        return cls(chosen, gap, np.asarray(wrong, dtype=bool), np.asarray(premises))


def share_of(flags: ArrayLike, chosen: ArrayLike, premises: ArrayLike) -> Estimate | None:
    """Share of True among the chosen pairs, averaged over the trainings; None if a training has chosen none.

    flags (N,) or (S, N) bool; chosen (S, N) bool; premises (N,). n counts the premises with a chosen pair.
    """
    chosen = np.asarray(chosen)
    values = np.where(chosen, np.broadcast_to(np.asarray(flags, dtype=float), chosen.shape), np.nan)
    return _over_chosen(means_of(values), chosen, premises)


def difference_of_shares(flags: ArrayLike, one: ArrayLike, other: ArrayLike, premises: ArrayLike) -> Estimate | None:
    """Share of True among the pairs in ``one`` minus that in ``other``, both (S, N) bool, averaged over trainings."""
    one, other = np.asarray(one), np.asarray(other)
    if not (one.any(axis=1).all() and other.any(axis=1).all()):
        return None
    values = np.broadcast_to(np.asarray(flags, dtype=float), one.shape)
    return _over_chosen(gaps_between(values, one, other), one | other, premises)


def errors_rise(found: Mismatches) -> Estimate | None:
    """Spearman correlation of the gap with wrong labels, among the mismatches; None if there can be none."""
    mixed = [found.wrong[own].any() and not found.wrong[own].all() for own in found.chosen]
    return _each_training(found, spearman) if all(mixed) else None


def threshold(found: Mismatches) -> Estimate | None:
    """The threshold by the paper's rule (`threshold_rule`); `NONE` means no threshold."""

    def rule(gap: NDArray, wrong: NDArray) -> float:
        edge = threshold_rule(gap, wrong, EDGES)
        return NONE if edge is None else edge

    return _each_training(found, rule)


def _each_training(found: Mismatches, statistic: Callable[[NDArray, NDArray], float]) -> Estimate | None:
    """Mean over trainings of a statistic of the gaps and flags of each training's mismatches."""

    def by_training(rows: NDArray) -> NDArray:
        parts = zip(found.gap[:, rows], found.chosen[:, rows], strict=True)
        wrong = found.wrong[rows].astype(float)
        return np.array([statistic(gap[own], wrong[own]) for gap, own in parts])

    return _over_chosen(by_training, found.chosen, found.premises)


def _over_chosen(statistic: Callable[[NDArray], NDArray], chosen: ArrayLike, premises: ArrayLike) -> Estimate | None:
    """`over_trainings` on the pairs that any training has chosen; None if a training has chosen none."""
    chosen = np.asarray(chosen)
    if not chosen.any(axis=1).all():
        return None
    rows = np.flatnonzero(chosen.any(axis=0))
    return over_trainings(lambda at: statistic(rows[at]), len(rows), groups=np.asarray(premises)[rows])
