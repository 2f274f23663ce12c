"""Suspect labels: where a model that was not trained on an example contradicts its label, how strongly, and which
labels to review first.

`mismatch` and `logit_gap` are the measures of consensus cleaning, and `suspects` is its rule. For comparison,
`named_by_cleanlab` gives the verdict of cleanlab, the field's standard tool, on the same logits. In every review order
a high number is suspect.

A model's strongest contradictions can be systematic errors of one kind: its neutral predictions may mostly point at
wrong labels, its contradictions hardly ever. No score of the model shows this, but a reviewer's first decisions do, so
`next_suspects` learns the order from them; chapter 35 measures the gain::

    rest = next_suspects(gap, kind, decided)       # the undecided ones, the most suspect first
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
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
    alike, labelled = (
        pd.Series(each).groupby(each).transform("size").to_numpy(float) for each in (kind, np.asarray(labels))
    )
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
