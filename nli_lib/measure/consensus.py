"""Suspect labels: where a model that was not trained on an example contradicts its label, how strongly, and which
labels to review first.

`mismatch` and `logit_gap` are the measures of consensus cleaning, and `suspects` is its rule. For comparison,
`named_by_cleanlab` gives the verdict of cleanlab, the field's standard tool, on the same logits. In every review order
a high number is suspect.

A model's strongest contradictions can be systematic errors of one kind: its neutral predictions may mostly point at
wrong labels, its contradictions hardly ever. No score of the model shows this, but a reviewer's first decisions do, so
`next_suspects` learns the order from them; chapter 35 measures the gain::

    rest = next_suspects(gap, kind, decided)       # the undecided ones, the most suspect first

The same decisions say how many of the labels that come next are wrong, with an interval: `wrong_among`.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from nli_lib.corpora.corpus import LABELS
from nli_lib.measure import check_scored
from nli_lib.measure.dynamics import confidence, margin

AGREE = "agree"
KINDS = tuple(f"P{p}G{g}" for p in range(len(LABELS)) for g in range(len(LABELS)) if p != g)
PRUNED = "P1G0"  # the model says neutral, the label entailment
THRESHOLD = 2.0
INSTALL = "pip install -c constraints.txt cleanlab"
CONFIDENCE, VOTES = "low confidence", "votes"  # names of scores of pairs, a high number doubtful


def mismatch(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.str_]:
    """The kind of mismatch between prediction and label, (N,): "P1G0" is predicted 1, gold 0, one of `KINDS`; `AGREE`
    where they agree.

    Notes
    -----
    Shapes: logits (N, C), labels (N,), from a model that was not trained on these examples. In a tie the lowest class
    is the prediction.

    References
    ----------
    The consensus cleaning paper section 1 (E2); class numbers as in `LABELS`.

    Examples
    --------
    >>> from nli_lib.measure.consensus import mismatch
    >>> mismatch([[0, 3, 1], [2, 0, 0]], labels=[0, 0]).tolist()
    ['P1G0', 'agree']
    """
    scores, gold = check_scored(logits, labels, epochs=False)
    predicted = scores.argmax(axis=1)
    classes = range(scores.shape[1])
    names = np.array([[f"P{p}G{g}" if p != g else AGREE for g in classes] for p in classes])
    return names[predicted, gold]


def logit_gap(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """The strength of the model's contradiction: logit of the prediction minus logit of the label, 0 and up.

    Notes
    -----
    Shapes: logits (N, C), labels (N,) -> (N,); 0 where prediction and label agree.
    Formula: max over c of logits[i, c] - logits[i, labels[i]], the log-odds of the two labels: a gap of 2 is a ratio of
    probabilities of 7.4, a gap of 4 one of 54.6. A constant added to all logits of an example changes nothing.
    *Departures*: the paper calls it model confidence; the code does not, because confidence is a probability elsewhere.

    References
    ----------
    The consensus cleaning paper, "model confidence" (E3).

    Examples
    --------
    >>> from nli_lib.measure.consensus import logit_gap
    >>> logit_gap([[0, 3, 1], [2, 0, 0]], labels=[0, 0])
    array([3., 0.])
    """
    scores, gold = check_scored(logits, labels, epochs=False)
    return scores.max(axis=1) - scores[np.arange(len(gold)), gold]


def by_direction(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """A score of suspicion from the gap and the direction of the mismatch, (N,) in logits; high = suspect, -inf where
    both agree.

    Notes
    -----
    Shapes: logits (N, C), labels (N,), from a model that was not trained on these examples.
    Formula: gap + ln(n[y, p] / n[y]), where n[y] examples have the label y and the model predicts p for n[y, p] of
    them. A direction that the model itself takes rarely comes later, even if its gaps are wide.

    References
    ----------
    Ours, see chapter 35.

    Examples
    --------
    >>> from nli_lib.measure.consensus import by_direction
    >>> logits = [[0, 3, 0], [0, 3, 0], [0, 0, 3], [3, 0, 0]]  # neutral is predicted twice, contradiction once
    >>> by_direction(logits, labels=[0, 0, 0, 0]).round(2)
    array([2.31, 2.31, 1.61, -inf])
    """
    gap, kind = logit_gap(logits, labels), mismatch(logits, labels)
    alike, labelled = (pd.Series(each).groupby(each).transform("size") for each in (kind, np.asarray(labels)))
    return np.where(kind == AGREE, -np.inf, gap + np.log(alike / labelled))


def prunable(classes: Sequence[str]) -> bool:
    """True if classes 0 and 1 are entailment and neutral, as the rule requires. `PRUNED` is made of class numbers, so
    it would mean something else with other classes."""
    return tuple(classes[:2]) == LABELS[:2]


def suspects(
    logits: ArrayLike, labels: ArrayLike, *, kinds: Sequence[str] = (PRUNED,), threshold: float = THRESHOLD
) -> NDArray[np.bool_]:
    """Examples whose label is probably wrong, (N,): a mismatch of one of `kinds`, its gap strictly above `threshold`.

    References
    ----------
    The consensus cleaning paper section 2 (E5): P1G0 above 2.0 is pruned. Only for a corpus that is `prunable`.

    Examples
    --------
    >>> from nli_lib.measure.consensus import suspects
    >>> logits = [[0, 3, 1], [0, 1, 0], [0, 0, 3]]  # P1G0 with a gap of 3, P1G0 with 1, P2G0
    >>> suspects(logits, labels=[0, 0, 0])
    array([ True, False, False])
    """
    if unknown := sorted(set(kinds) - set(KINDS)):
        raise ValueError(f"kinds {unknown} are not among {', '.join(KINDS)}")
    return np.isin(mismatch(logits, labels), list(kinds)) & (logit_gap(logits, labels) > threshold)


def pruned_gap(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """The gap of P1G0 mismatches, 0 for every other example, (N,): the paper's rule as a ranking.

    Examples
    --------
    >>> from nli_lib.measure.consensus import pruned_gap
    >>> pruned_gap([[0, 3, 1], [0, 0, 3]], labels=[0, 0])
    array([3., 0.])
    """
    return np.where(mismatch(logits, labels) == PRUNED, logit_gap(logits, labels), 0.0)


def judge(logits: ArrayLike, reference: pd.DataFrame) -> pd.DataFrame:
    """Add a model's verdict on each label to `reference`: the columns kind (`mismatch`) and gap (`logit_gap`).

    logits (N, C) of the whole corpus; reference: position in it and label, as returned by `corpora.people.references`.
    """
    scores, labels = np.asarray(logits)[reference["position"]], reference["label"]
    return reference.assign(kind=mismatch(scores, labels), gap=logit_gap(scores, labels))


def named_by_cleanlab(logits: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.bool_], list[str]]:
    """The examples that cleanlab calls wrongly labelled, (N,) bool, and the reasons why it could not be used, if any.

    Notes
    -----
    Shapes: logits (N, C) of models that were not trained on the examples they score, labels (N,).
    Method: `cleanlab.filter.find_label_issues` with its defaults. It estimates the joint distribution of given and true
    labels from the examples that each class is sure of, and calls the number of labels wrong that this distribution
    implies, class by class (confident learning: Northcutt et al., 2021). It cannot be used if it is not installed or if
    a class of the logits labels no example.
    """
    logits, labels = np.asarray(logits, dtype=np.float64), np.asarray(labels)
    nothing = np.zeros(len(labels), dtype=bool)
    try:
        from cleanlab.filter import find_label_issues
    except ModuleNotFoundError:
        return nothing, [f"cleanlab is not installed: {INSTALL}"]
    if absent := sorted(set(range(logits.shape[1])) - set(labels.tolist())):
        return nothing, [f"class {absent[0]} labels no example; cleanlab asks that each class labels some"]
    return find_label_issues(labels, softmax(logits, axis=1), n_jobs=1), []


def self_confidence(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """Probability of the label, (N,), 0 to 1; low = suspect. cleanlab ranks by it by default.

    Shapes and logits as in `named_by_cleanlab`; equals `cleanlab.rank.get_label_quality_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.measure.consensus import self_confidence
    >>> self_confidence(np.log([[0.1, 0.7, 0.2]]), labels=[0]).round(2)
    array([0.1])
    """
    probabilities = softmax(np.asarray(logits, dtype=np.float64), axis=1)
    return probabilities[np.arange(len(probabilities)), np.asarray(labels)]


def label_scores(
    logits: ArrayLike, labels: ArrayLike, *, training: ArrayLike, fold: ArrayLike, threshold: float = THRESHOLD
) -> pd.DataFrame:
    """Scores of every label by the models of one seed, both those that were not trained on it and one that was.

    Notes
    -----
    Shapes: logits (N, C), cross-scored in the folds `fold` (N,); labels (N,); training (E, N, C), recorded in E epochs.
    Columns: fold, label, kind, gap, pruned (by the rule, with this threshold) and p(gold), from `logits`; confidence
    and margin (AUM) from `training`.
    """
    return pd.DataFrame(
        {
            "fold": np.asarray(fold),
            "label": np.asarray(labels),
            "kind": mismatch(logits, labels),
            "gap": logit_gap(logits, labels),
            "pruned": suspects(logits, labels, threshold=threshold),
            "p(gold)": self_confidence(logits, labels),
            "confidence": confidence(training, labels),
            "margin": margin(training, labels),
        }
    )


def review_orders(scores: pd.DataFrame, *, seed: int = 0) -> dict[str, NDArray[np.float64]]:
    """Orders in which the labels could be reviewed, name -> (N,), the most suspect highest.

    scores: as returned by `label_scores`, all rows or some. The last order is random, drawn with `seed`.
    """
    gap, kind = scores["gap"].to_numpy(), scores["kind"].to_numpy()
    return {
        "gap, any kind": gap,
        "gap of P1G0 alone": np.where(kind == PRUNED, gap, 0.0),
        "low p(gold) (cleanlab's order)": -scores["p(gold)"].to_numpy(),
        "low confidence (data map)": -scores["confidence"].to_numpy(),
        "low margin (AUM)": -scores["margin"].to_numpy(),
        "random twin": np.random.default_rng(seed).random(len(scores)),
    }


def threshold_rule(gap: ArrayLike, wrong: ArrayLike, edges: Sequence[float]) -> float | None:
    """The smallest edge above which every interval has more wrong labels than right ones; None if the last interval has
    not.

    gap (N,) of one kind of mismatch; wrong (N,) bool, True for a wrong label; edges (K,) e0 < e1 < ...: the intervals
    [e0, e1), [e1, e2), ..., the last one without an upper end. An interval without examples is ignored.

    References
    ----------
    The consensus cleaning paper section 2 (E4), which reads 2.0 off its first Figure 2.

    Examples
    --------
    >>> from nli_lib.measure.consensus import threshold_rule
    >>> gap, wrong = [0.5, 1.5, 2.5, 2.6, 3.5], [False, False, True, True, True]
    >>> threshold_rule(gap, wrong, edges=[0, 1, 2, 3])
    2.0
    """
    inside, chosen = np.searchsorted(edges, gap, side="right"), None  # 0 is below the first edge
    for at in range(len(edges), 0, -1):
        errors = np.asarray(wrong, dtype=bool)[inside == at]
        if len(errors) and 2 * errors.sum() <= len(errors):
            break
        chosen = float(edges[at - 1]) if len(errors) else chosen
    return chosen


# ---------------------------------------------------------------- review order


EVERY = 20  # decisions after which the order is learnt again


def next_suspects(gap: ArrayLike, kind: ArrayLike, decided: ArrayLike) -> NDArray[np.int64]:
    """Positions of the undecided labels, (M,), the most suspect first.

    Until both answers have been given, nothing can be learnt and the order is by gap. After that it is by the
    probability of a wrong label, from a logistic regression on the decisions so far. Its features are an indicator of
    each kind and the gap, standardised; it has no intercept, and the L2 penalty has weight 1. A kind without decisions
    therefore counts as even, and comes before one that was mostly right. The weight of the gap is at least 0: a
    reviewer who starts at the top has seen only wide gaps, and a falling slope there, extrapolated to the narrow ones,
    would turn the list upside down.

    Parameters
    ----------
    gap
        (N,) in logits, see `consensus.logit_gap`: the order before any decision, and the tie breaker
    kind
        (N,), see `consensus.mismatch`, or any other names of groups
    decided
        (N,) 1 where the label was found wrong, 0 where it was found right, NaN where it is undecided

    References
    ----------
    Ours.

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.measure.consensus import next_suspects
    >>> gap, kind = [4, 3, 2, 1], ["P1G0", "P2G0", "P2G0", "P1G0"]
    >>> decided = [1, 0, np.nan, np.nan]  # the first was wrong, the second right: P1G0 comes first
    >>> next_suspects(gap, kind, decided)
    array([2, 3])
    """
    gap, kind, decided = np.asarray(gap, dtype=float), np.asarray(kind), np.asarray(decided, dtype=float)
    if not len(gap) == len(kind) == len(decided):
        raise ValueError(f"{len(gap)} gaps, {len(kind)} kinds, {len(decided)} decisions")
    known = np.isfinite(decided)
    if not np.isin(decided[known], (0, 1)).all():
        raise ValueError("a decision is 1 (wrong), 0 (right) or NaN (none yet)")
    learnt = np.zeros(len(gap))
    if len(np.unique(decided[known])) == 2:
        names, at = np.unique(kind, return_inverse=True)
        scaled = StandardScaler().fit(gap[known, None]).transform(gap[:, None])
        features = np.column_stack([np.eye(len(names))[at], scaled])
        model = LogisticRegression(fit_intercept=False, solver="newton-cholesky")
        model.fit(features[known], decided[known])
        if model.coef_[0, -1] < 0:  # 0 is then the best of the weights that are allowed
            features = features[:, :-1]
            model.fit(features[known], decided[known])
        learnt = model.predict_proba(features)[:, 1]
    order = np.lexsort((-gap, -learnt))
    return order[~known[order]]


# ---------------------------------------------------------------- how many are wrong

RATE, SPREAD = 0.3, 1.5  # the prior: wrong labels among suspects of mean gap; its standard deviation in logits
KIND = 1.0  # standard deviation of a kind's deviation from that, in logits
RISE, STEEP = 0.5, 0.5  # mean and standard deviation of the slope, in logits for one standard deviation of the gap
NODES = np.linspace(-4, 4, 61)  # of the standard normal distribution


def wrong_among(
    gap: ArrayLike, kind: ArrayLike, decided: ArrayLike, groups: Sequence[ArrayLike]
) -> tuple[NDArray[np.float64], list[tuple[float, int, int]]]:
    """Each label's probability to be wrong, (N,), and the expected number of wrong labels in each group of suspects,
    with the ends of its equal-tailed 95% interval.

    Parameters
    ----------
    gap, kind, decided
        (N,) each, all suspects of a list, as in `next_suspects`
    groups
        positions of suspects, such as the first hundred in the order of review; decided ones count as known

    Notes
    -----
    Model: a Bayesian logistic regression of wrong labels on the kind and the gap, standardised over the list. Prior: at
    the mean gap 30% of the suspects are wrong, with a standard deviation of 1.5 in logits (a 95% interval of 2% to
    89%); a kind deviates from that by 1 logit; the slope of the gap is 0.5 +- 0.5, because wider gaps are expected to
    be wrong more often. It holds before any decision, and where the review has not been yet.
    Interval: the posterior is approximated at its mode (Laplace). It is integrated along the direction in which the
    number of wrong labels changes most; across it, a normal coefficient's logit m with variance v gives the probability
    expit(m / sqrt(1 + pi v / 8)) (MacKay, 1992). Given the coefficients, the number is taken as normal with its mean
    and variance. Nothing is drawn at random, so that a page can compute the same numbers.

    References
    ----------
    Ours.
    """
    gap, kind, decided = np.asarray(gap, dtype=float), np.asarray(kind), np.asarray(decided, dtype=float)
    if not len(gap):
        return gap, [(0.0, 0, 0) for _ in groups]
    names, at = np.unique(kind, return_inverse=True)
    scaled = StandardScaler().fit_transform(gap[:, None])
    # a weight is standard normal by the prior
    rows = np.hstack([np.full_like(scaled, SPREAD), KIND * np.eye(len(names))[at], STEEP * scaled])
    offset, known = logit(RATE) + RISE * scaled[:, 0], np.isfinite(decided)
    told = rows[known], offset[known], decided[known]
    start, options = np.zeros(rows.shape[1]), {"gtol": 1e-9}
    mode = minimize(_surprise, start, told, "trust-exact", jac=_slope, hess=_curvature, options=options).x
    covariance = np.linalg.inv(_curvature(mode, *told))
    middle, variance = offset + rows @ mode, np.einsum("nf,fg,ng->n", rows, covariance, rows)
    wrong = np.where(known, decided, expit(middle / np.sqrt(1 + np.pi * variance / 8)))
    weights, found = np.exp(-(NODES[:, None] ** 2 + NODES**2) / 2).ravel(), []
    for group in (np.asarray(each, dtype=int) for each in groups):
        ahead, sure = group[~known[group]], int(decided[group[known[group]]].sum())
        gradient = (expit(middle[ahead]) * expit(-middle[ahead])) @ rows[ahead]
        way = covariance @ gradient
        along = rows[ahead] @ way / np.sqrt(max(gradient @ way, np.finfo(float).tiny))
        across = np.sqrt(1 + np.pi * np.maximum(variance[ahead] - along**2, 0) / 8)
        each = expit((middle[ahead] + NODES[:, None] * along) / across)  # (nodes, labels)
        counts = (each.sum(1)[:, None] + np.sqrt((each * (1 - each)).sum(1))[:, None] * NODES).ravel()
        order = np.argsort(counts, kind="stable")
        reached = np.searchsorted(weights[order].cumsum(), np.array([0.025, 0.975]) * weights.sum())
        low, high = np.clip(np.floor(counts[order][reached] + 0.5), 0, len(ahead)).astype(int) + sure
        found.append((float(wrong[group].sum()), int(low), int(high)))
    return wrong, found


def _surprise(weights: NDArray, rows: NDArray, offset: NDArray, decided: NDArray) -> float:
    """Minus the log posterior."""
    scores = offset + rows @ weights
    return np.logaddexp(0, scores).sum() - decided @ scores + weights @ weights / 2


def _slope(weights: NDArray, rows: NDArray, offset: NDArray, decided: NDArray) -> NDArray:
    return rows.T @ (expit(offset + rows @ weights) - decided) + weights


def _curvature(weights: NDArray, rows: NDArray, offset: NDArray, decided: NDArray) -> NDArray:
    p = expit(offset + rows @ weights)
    return (rows.T * (p * (1 - p))) @ rows + np.eye(len(weights))
