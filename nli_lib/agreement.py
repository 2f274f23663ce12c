"""How far scores of the same pairs agree, which of them are one thing under two names, and in which order to draw them.

table = agreement(scores, premises)
    # scores: name -> (S, N), a row a training names, groups = drawing_order(table), same_things(table)

What scores say of an outside truth: each by itself, and on top of a data map's confidence.

alone = follows(scores, truth, premises)
    # rank correlation, or how often a yes has the higher score than a no
more = adds(scores, truth, premises)
    # variance explained out of sample, with confidence and without the score

How well two annotators agree: `kappa`, with an interval over the items.

What the suspicion of a label is worth: shares of wrong labels, how well a score finds them, how far lists agree.

What people say of the labels that several trainings contradict, with intervals over trainings and premises.

found = Mismatches.of(logits, labels, wrong=labels != majority, premises=corpus.premise)

share_of(found.wrong, found.chosen & (found.gap > 2), found.premises)
    # Estimate, or None
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from nli_lib.generate.review import untouched
from nli_lib.measure.consensus import (
    AGREE,
    CONFIDENCE,
    KINDS,
    PRUNED,
    VOTES,
    logit_gap,
    mismatch,
    threshold_rule,
)
from nli_lib.plots import TWIN
from nli_lib.stats import (
    Estimate,
    Statistic,
    drawn_rows,
    gaps_between,
    means_of,
    over_trainings,
    percentile_interval,
    spearman,
    with_trainings,
    with_wilson,
)

SAME = 0.95  # two scores are one thing under two names where the whole interval of |rho| lies above; fixed beforehand
FEW = 20  # pairs that two scores must share

Floats = NDArray[np.float64]


def agreement(scores: Mapping[str, ArrayLike], premises: ArrayLike, *, resamples: int = 200) -> pd.DataFrame:
    """Spearman correlation of every two scores within one training, with an interval over trainings and premises.

    Columns: one, other, value, and the rest of `Estimate`; n counts the premises of the pairs that both know. The value
    is the mean over the trainings that both know; where none of the two changes with the training, the interval is over
    premises alone. Its ends are kept within -1 and 1. A row whose two names are equal says how far the score agrees
    with itself in another training: the mean over every two trainings, low and high the smallest and the largest of
    them, 1 for a score that no training changes; with one training there is no such row. Scores that share fewer than
    `FEW` pairs, or are constant on them, have no row. The votes of all trainings (`VOTES`) are one number: their rows
    say nothing of other voters.

    Parameters
    ----------
    scores
        name -> (S, N), a row a training, NaN where a pair, or in a whole row a training, is not known
    premises
        (N,), anything that is equal where the premise is
    """
    names, values = list(scores), np.stack([np.asarray(each, dtype=float) for each in scores.values()])  # (K, S, N)
    premises = pd.factorize(np.asarray(premises))[0]
    by_training = np.stack([rank_correlations(each) for each in values.swapaxes(0, 1)])  # (S, K, K)
    draws = np.stack([_mean_over_trainings(values[..., rows]) for rows in drawn_rows(premises, resamples=resamples)])
    known = np.isfinite(values).any(axis=1)
    fixed = (np.isnan(values) | (values == values[:, :1])).all(axis=(1, 2))
    rows = [_itself(name, of) for name, of in zip(names, values, strict=True) if name != VOTES]
    for i, j in zip(*np.triu_indices(len(names), 1), strict=True):
        found = by_training[:, i, j][np.isfinite(by_training[:, i, j])]
        if len(found):
            found = found[:1] if fixed[i] and fixed[j] else found
            n = len(np.unique(premises[known[i] & known[j]]))
            drawn = draws[:, i, j]
            found = with_trainings(found.mean(), drawn[np.isfinite(drawn)], found, n=n, units="premises")
            found = found._replace(low=max(found.low, -1.0), high=min(found.high, 1.0))
            rows.append((names[i], names[j], *found))
    return pd.DataFrame([row for row in rows if row], columns=["one", "other", *Estimate._fields])


def rank_correlations(values: ArrayLike) -> Floats:
    """Spearman correlation of every two of K scores, (K, N) -> (K, K), over the pairs that both know (not NaN).

    NaN where fewer than `FEW` pairs are shared or one of the two is constant on them.
    """
    values = np.asarray(values, dtype=float)
    rho = np.full((len(values), len(values)), np.nan)
    patterns, of = np.unique(np.isfinite(values), axis=0, return_inverse=True)
    of = of.ravel()
    for p, q in zip(*np.triu_indices(len(patterns)), strict=True):
        shared, members = patterns[p] & patterns[q], np.flatnonzero((of == p) | (of == q))
        if shared.sum() >= FEW:
            ranks = rankdata(values[np.ix_(members, shared)], axis=1)
            ranks -= ranks.mean(axis=1, keepdims=True)
            size = np.sqrt((ranks**2).sum(axis=1))
            with np.errstate(invalid="ignore", divide="ignore"):
                found = ranks @ ranks.T / np.outer(size, size)
            pairs = (of[members][:, None] == p) & (of[members] == q) | (of[members][:, None] == q) & (of[members] == p)
            rho[np.ix_(members, members)] = np.where(pairs, found, rho[np.ix_(members, members)])
    return rho


def estimate_of(table: pd.DataFrame, one: str, other: str) -> Estimate | None:
    """The row of two scores, whichever comes first; None where there is none."""
    found = table[table[["one", "other"]].isin([one, other]).all(axis=1) & (table["one"] != table["other"])]
    return Estimate(*found[list(Estimate._fields)].iloc[0]) if len(found) else None


def square(table: pd.DataFrame, column: str = "value", names: Sequence[str] | None = None) -> pd.DataFrame:
    """A column of `agreement` as a symmetric square, a row and a column for each of ``names`` (all); NaN: no row."""
    both = pd.concat([table, table.rename(columns={"one": "other", "other": "one"})]).drop_duplicates(["one", "other"])
    names = list(names) if names is not None else list(pd.unique(table[["one", "other"]].to_numpy().ravel()))
    return both.pivot(index="one", columns="other", values=column).reindex(index=names, columns=names)


def drawing_order(table: pd.DataFrame) -> list[str]:
    """The scores so that those which agree stand beside each other: average linkage on ``1 - |rho|``, its leaves
    ordered so that neighbours are as near as they can be. What has no correlation counts as none. The same for any
    order of rows.
    """
    names = sorted(set(table["one"]) | set(table["other"]))
    if len(names) < 3:
        return names
    tree = linkage(_distances(square(table, names=names)), method="average", optimal_ordering=True)
    return [names[at] for at in leaves_list(tree)]


def same_things(table: pd.DataFrame, line: float = SAME) -> list[list[str]]:
    """The scores in groups of which every two are one thing under two names, a score of its own being a group of one.

    Two are one thing where the whole interval of their ``|rho|`` lies at or above ``line``: complete linkage on the
    end of the interval that lies nearer to 0. Groups in the order of their first names, names in alphabetical order.
    """
    names = sorted(set(table["one"]) | set(table["other"]))
    if len(names) < 2:
        return [[name] for name in names]
    low, high = (square(table, end, names) for end in ("low", "high"))
    nearer = np.maximum(low, -high).clip(lower=0)
    of = fcluster(linkage(_distances(nearer), method="complete"), t=1 - line + 1e-12, criterion="distance")
    return sorted([name for name, group in zip(names, of, strict=True) if group == each] for each in set(of))


def _distances(rho: pd.DataFrame) -> Floats:
    distance = 1 - np.abs(rho.fillna(0).to_numpy())
    np.fill_diagonal(distance, 0)
    return squareform(distance.clip(0), checks=False)


def _mean_over_trainings(values: Floats) -> Floats:
    found = np.stack([rank_correlations(each) for each in values.swapaxes(0, 1)])
    count = np.isfinite(found).sum(axis=0)
    return np.where(count > 0, np.nansum(found, axis=0) / np.maximum(count, 1), np.nan)


def _itself(name: str, values: Floats) -> tuple | None:
    """The row of one score (S, N) with itself."""
    trained = values[np.isfinite(values).any(axis=1)]
    if len(trained) < 2:
        return None
    same = (np.isnan(trained) | (trained == trained[:1])).all()
    rho = np.array([1.0]) if same else rank_correlations(trained)[np.triu_indices(len(trained), 1)]
    rho = rho[np.isfinite(rho)]
    ends = (rho.mean(), rho.min(), rho.max()) if len(rho) else ()
    n = int(np.isfinite(trained).any(axis=0).sum())
    return (name, name, *ends, n, len(trained), "every two trainings") if ends else None


# ---------------------------------------------------------------- added value


ANOTHER, LABEL = "another training's confidence", "the label alone"
CONTROLS = (ANOTHER, LABEL, TWIN)
FOLDS = 5
LEAST = 100  # judgments that a regression is fitted to
EACH = 10  # of them yes, and so many no, where the truth is yes or no
KNOTS = 5
PENALTY = 0.01  # scikit-learn's alpha, and one over its C: enough to keep knots without labels quiet

CORRELATION, AREA = "rank correlation", "area under the ROC curve"


def follows(
    scores: Mapping[str, ArrayLike], truth: ArrayLike, premises: ArrayLike, *, resamples: int = 200
) -> pd.DataFrame:
    """How each score orders M judged labels, with an interval over trainings and premises.

    Columns: score, measure (`CORRELATION` or `AREA`), and `Estimate`.

    scores (S, M) as chapter 60 has them; truth (M,). A graded truth: Spearman's correlation, -1 to 1. One of
    0 and 1: the probability that a 1 has the higher score than a 0, ties counting half, 0 to 1 (area under the ROC
    curve), .5 where the score says nothing. Over the labels and trainings whose score is known; a score that is
    constant there, or known of fewer than `LEAST`, has no row. One more row is a random twin.
    """
    truth, premises = np.asarray(truth, dtype=float), np.asarray(premises)
    rows, measure = [], AREA if np.isin(truth, (0, 1)).all() else CORRELATION
    for name, values, known in _usable(_with_controls(scores), truth):
        same = (values == values[:1]).all()  # no training changes it: the interval is over premises alone
        statistic = ordering(values[:1] if same else values, truth[known])
        found = over_trainings(statistic, known.sum(), groups=premises[known], resamples=resamples)
        rows.append((name, measure, *found))
    return pd.DataFrame(rows, columns=["score", "measure", *Estimate._fields])


def adds(
    scores: Mapping[str, ArrayLike],
    truth: ArrayLike,
    premises: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    base: str = CONFIDENCE,
    resamples: int = 200,
    seed: int = 0,
) -> tuple[pd.DataFrame, dict[str, Floats]]:
    """What each score adds to ``base`` out of sample: a table, and the gains that it is the mean of.

    Columns: score; alone and base, the shares of the truth's variance that the score and the base explain by themselves
    on the labels that have both; then `Estimate` of the gain, the share that both explain minus base. Negative where
    the score is not worth the regression that it costs. The gains (S, M), name -> one a training and label, NaN where
    not known: their mean is the value, and two scores are compared by the difference of theirs.

    Notes
    -----
    Method: within each training, the truth is predicted in `FOLDS` folds that split no premise, by a ridge regression
    (graded truth) or a logistic one (of 0 and 1), on cubic splines of the ranks with `KNOTS` knots, so that a score
    does not gain by bending confidence. Explained is 1 - sum (y - p)^2 / sum (y - mean)^2. Gains are those of squared
    errors; the interval covers trainings and premises, not other folds. The controls stand among the scores
    (`CONTROLS`): a random twin; the base of another training, which is what less noise alone can lend; and, where
    labels (M,) are given, the label on trial itself, for a score that differs between the labels says which it is.
    """
    truth, premises = np.asarray(truth, dtype=float), pd.factorize(np.asarray(premises))[0]
    rows, gains, bases = [], {}, {}
    for name, values, known in _usable(_with_controls(scores, base, labels), truth, base):
        y, of = truth[known], premises[known]
        both = zip(values, np.asarray(scores[base], dtype=float)[: len(values), known], strict=True)
        errors = []
        for training, (score, first) in enumerate(both):
            key = training, known.tobytes()
            if key not in bases:
                bases[key] = (y - out_of_fold(first[:, None], y, of, seed=seed)) ** 2
            inputs = [score[:, None], np.stack([first, score], axis=1)]
            errors.append([bases[key], *((y - out_of_fold(each, y, of, seed=seed)) ** 2 for each in inputs)])
        first, alone, together = np.swapaxes(np.array(errors), 0, 1) / np.var(y)  # (S, M) each
        estimate = over_trainings(means_of(first - together), len(y), groups=of, resamples=resamples)
        rows.append((name, 1 - alone.mean(), 1 - first.mean(), *estimate))
        gains[name] = np.full((len(values), len(truth)), np.nan)
        gains[name][:, known] = first - together
    return pd.DataFrame(rows, columns=["score", "alone", "base", *Estimate._fields]), gains


def gain_of(tables: Mapping[object, pd.DataFrame], key: object, score: str) -> Estimate | None:
    """The gain of a score in one of several tables of `adds`; None where there is no such table, or no such row."""
    found = tables[key] if key in tables else pd.DataFrame(columns=["score", *Estimate._fields])
    found = found.loc[found["score"] == score, list(Estimate._fields)]
    return Estimate(*found.iloc[0]) if len(found) else None


def out_of_fold(inputs: ArrayLike, truth: ArrayLike, groups: ArrayLike, *, seed: int = 0) -> Floats:
    """Predictions (M,) of a truth (M,) from inputs (M, D), each label's by a regression that saw none of its group.

    groups (M,), such as premises. See `adds` for the regression.
    """
    truth = np.asarray(truth, dtype=float)
    ranks = rankdata(inputs, axis=0) / len(truth)
    yes_or_no = np.isin(truth, (0, 1)).all()
    found = np.empty(len(truth))
    for train, held_out in GroupKFold(FOLDS, shuffle=True, random_state=seed).split(ranks, truth, groups):
        splines = SplineTransformer(n_knots=KNOTS, include_bias=False)
        regression = LogisticRegression(C=1 / PENALTY, max_iter=500) if yes_or_no else Ridge(PENALTY)
        model = make_pipeline(splines, regression).fit(ranks[train], truth[train])
        found[held_out] = model.predict_proba(ranks[held_out])[:, 1] if yes_or_no else model.predict(ranks[held_out])
    return found


def ordering(scores: ArrayLike, truth: ArrayLike) -> Statistic:
    """For `over_trainings`: how scores (S, M) order a truth (M,), as `follows` says; NaN without two kinds of truth."""
    scores, truth = np.asarray(scores, dtype=float), np.asarray(truth, dtype=float)
    if not np.isin(truth, (0, 1)).all():
        return lambda rows: spearman(scores[:, rows], truth[rows])

    def area(rows: NDArray) -> Floats:
        yes, ranks = truth[rows] == 1, rankdata(scores[:, rows], axis=1)
        if yes.all() or not yes.any():
            return np.full(len(scores), np.nan)
        return (ranks[:, yes].mean(axis=1) - (yes.sum() + 1) / 2) / (~yes).sum()

    return area


def _with_controls(
    scores: Mapping[str, ArrayLike], base: str | None = None, labels: ArrayLike | None = None
) -> dict[str, Floats]:
    """The scores (S, M), a random twin, the base of the training after each, where there are several, and the label."""
    found = {name: np.asarray(each, dtype=float) for name, each in scores.items()}
    shape = next(iter(found.values())).shape
    found[TWIN] = np.random.default_rng(60).random(shape)
    if base and shape[0] > 1:
        trained = np.isfinite(found[base]).any(axis=1)
        found[ANOTHER] = np.full(shape, np.nan)
        found[ANOTHER][trained] = np.roll(found[base][trained], 1, axis=0)
    if labels is not None:
        found[LABEL] = np.tile(np.asarray(labels, dtype=float), (shape[0], 1))
    return found


def _usable(
    scores: Mapping[str, Floats], truth: Floats, base: str | None = None
) -> Iterator[tuple[str, Floats, NDArray[np.bool_]]]:
    """(name, values of the trainings that know it, which labels are known) of the scores that can be judged."""
    yes_or_no = np.isin(truth, (0, 1)).all()
    for name, values in scores.items():
        trained = values[np.isfinite(values).any(axis=1)]
        known = np.isfinite(trained).all(axis=0)
        if base:
            known &= np.isfinite(scores[base][: len(trained)]).all(axis=0)
        y = truth[known]
        enough = len(y) >= LEAST and (not yes_or_no or min((y == 1).sum(), (y == 0).sum()) >= EACH)
        told = len(trained) and name != base and enough and np.ptp(y) > 0 and np.ptp(trained[:, known], axis=1).all()
        if told:
            yield name, trained[:, known], known


# ---------------------------------------------------------------- of two annotators


RESAMPLES = 2000


def kappa(annotations: pd.DataFrame, *, seed: int = 0) -> Estimate:
    """Kappa over the items that both annotators neither revised nor discarded, 2,000 resamples of the items.

    -1 to 1: 1 where they always agree, 0 where they agree as often as labels drawn at random from their own shares
    would, and below 0 where less often: (a - e) / (1 - e), with a the share of items with equal labels and e the sum of
    the squared shares of the labels. NaN without items, and where all labels are one.

    Notes
    -----
    *Departures*: the paper gives no code and one order. Which annotator is called the first is arbitrary, so both
    orders are counted; the value is then that of Scott's pi.

    References
    ----------
    WANLI, section 2.4 (W13), which reports .60.
    """
    codes, labels = pd.factorize(untouched(annotations).ravel())
    codes = codes.reshape(-1, 2)  # (n, 2)
    n = len(codes)
    if not n:
        return Estimate(float("nan"), float("nan"), float("nan"), 0)
    counts = np.eye(len(labels))[codes].mean(axis=1)  # (n, C) share of each label among an item's two
    equal = codes[:, 0] == codes[:, 1]
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n  # (R, n)
    weights = np.vstack([np.full(n, 1 / n), drawn])
    observed, expected = weights @ equal, ((weights @ counts) ** 2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        value, *draws = (observed - expected) / (1 - expected)
    draws = np.array(draws)[np.isfinite(draws)]
    return percentile_interval(value, draws if len(draws) else [np.nan], n=n)


# ---------------------------------------------------------------- label quality


EDGES = (0, 1, 2, 3, 4, 5)  # intervals of the gap in the consensus cleaning paper's Figure 2
ENTAILMENT_TWIN = "random twin: any entailment"
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
