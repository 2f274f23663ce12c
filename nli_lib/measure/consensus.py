"""Where a model that did not train on an example contradicts its label, and by how much (consensus cleaning), beside
what cleanlab, the field's own tool for wrong labels, says of the same logits."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from nli_lib.corpora.labels import LABELS
from nli_lib.measure.check import check_scored
from nli_lib.measure.dynamics import confidence, margin

AGREE = "agree"
KINDS = tuple(f"P{p}G{g}" for p in range(len(LABELS)) for g in range(len(LABELS)) if p != g)
PRUNED = "P1G0"  # the model says neutral, the label entailment
THRESHOLD = 2.0
INSTALL = "pip install -c constraints.txt cleanlab"


def mismatch(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.str_]:
    """How prediction and label disagree, (N,): "P1G0" is predicted 1, gold 0, one of `KINDS`; `AGREE` where they agree.

    Shapes: logits (N, C), labels (N,), from a model that did not train on these examples. A tie counts for the lowest
    class.
    Source: the consensus cleaning paper section 1 (E2); class numbers as `LABELS`.
    """
    scores, gold = check_scored(logits, labels, epochs=False)
    predicted = scores.argmax(axis=1)
    classes = range(scores.shape[1])
    names = np.array([[f"P{p}G{g}" if p != g else AGREE for g in classes] for p in classes])
    return names[predicted, gold]


def logit_gap(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """How strongly the model contradicts the label: logit of the prediction minus that of the label, 0 and up.

    Shapes: logits (N, C), labels (N,) -> (N,); 0 where prediction and label agree.
    Formula: max over c of logits[i, c] - logits[i, labels[i]], the log-odds of the two labels: 2 is a ratio of
    probabilities of 7.4, 4 one of 54.6. Adding a number to all logits of an example changes nothing.
    Source: the consensus cleaning paper, "model confidence" (E3). *Departures*: the paper's name for it is kept
    out of the code, because elsewhere confidence is a probability.
    """
    scores, gold = check_scored(logits, labels, epochs=False)
    return scores.max(axis=1) - scores[np.arange(len(gold)), gold]


def prunable(classes: Sequence[str]) -> bool:
    """Whether classes 0 and 1 are the rule's entailment and neutral. `PRUNED` goes by class numbers, so with other
    classes it would be another rule."""
    return tuple(classes[:2]) == LABELS[:2]


def suspects(
    logits: ArrayLike, labels: ArrayLike, *, kinds: Sequence[str] = (PRUNED,), threshold: float = THRESHOLD
) -> NDArray[np.bool_]:
    """Examples whose label is probably wrong, (N,): a mismatch of one of `kinds`, its gap strictly above `threshold`.

    Source: the consensus cleaning paper section 2 (E5): P1G0 above 2.0 is pruned. For a corpus that is `prunable`.
    """
    if unknown := sorted(set(kinds) - set(KINDS)):
        raise ValueError(f"kinds {unknown} are not among {', '.join(KINDS)}")
    return np.isin(mismatch(logits, labels), list(kinds)) & (logit_gap(logits, labels) > threshold)


def pruned_gap(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """The gap of the P1G0 mismatches and 0 for every other example, (N,): the paper's rule as a ranking."""
    return np.where(mismatch(logits, labels) == PRUNED, logit_gap(logits, labels), 0.0)


def judge(logits: ArrayLike, reference: pd.DataFrame) -> pd.DataFrame:
    """`reference` with what a model says of each of its labels: the columns kind (`mismatch`) and gap (`logit_gap`).

    logits (N, C) of the whole corpus; reference: position in it and label, as `corpora.people.references` has them.
    """
    scores, labels = np.asarray(logits)[reference["position"]], reference["label"]
    return reference.assign(kind=mismatch(scores, labels), gap=logit_gap(scores, labels))


def named_by_cleanlab(logits: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.bool_], list[str]]:
    """Which examples cleanlab calls wrongly labelled, (N,) bool, and why it names none where it cannot work.

    Shapes: logits (N, C) of models that did not train on the examples they score, labels (N,).
    Method: `cleanlab.filter.find_label_issues` as it stands by default: a joint distribution of given and true labels
    is estimated from the examples each class is sure of, and as many of each class are called wrong as it says
    (confident learning: Northcutt et al., 2021).
    The reason is that cleanlab is missing, or that a class of the logits labels no example.
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
    """Probability of the label, (N,), 0 to 1; a low one speaks against the label. cleanlab ranks by it by default.

    Shapes and logits as `named_by_cleanlab`; the same number as `cleanlab.rank.get_label_quality_scores`.
    """
    probabilities = softmax(np.asarray(logits, dtype=np.float64), axis=1)
    return probabilities[np.arange(len(probabilities)), np.asarray(labels)]


def label_scores(
    logits: ArrayLike, labels: ArrayLike, *, training: ArrayLike, fold: ArrayLike, threshold: float = THRESHOLD
) -> pd.DataFrame:
    """Every label as the models of one seed see it: by those that did not train on it, and by one that did.

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
    """The orders in which a reviewer could go through some labels, name -> (N,), the most suspect highest.

    scores as `label_scores` makes them, whole or some of its rows. The last order is random, drawn with `seed`.
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
    """The smallest edge from which on every interval has more wrong labels than right ones; None if the last has not.

    gap (N,) of one kind of mismatch; wrong (N,) bool, whether the label is an error; edges (K,) e0 < e1 < ...: the
    intervals [e0, e1), [e1, e2), ..., the last one open above. An interval without an example decides nothing.
    Source: the consensus cleaning paper section 2 (E4), which reads 2.0 off its first Figure 2.
    """
    inside, chosen = np.searchsorted(edges, gap, side="right"), None  # 0 is below the first edge
    for at in range(len(edges), 0, -1):
        errors = np.asarray(wrong, dtype=bool)[inside == at]
        if len(errors) and 2 * errors.sum() <= len(errors):
            break
        chosen = float(edges[at - 1]) if len(errors) else chosen
    return chosen


def compare_mismatches(before: ArrayLike, after: ArrayLike, labels: ArrayLike, wrong: ArrayLike) -> pd.DataFrame:
    """The P1G0 mismatches that either of two models makes on the same examples, one row each.

    Shapes: before, after (N, C) logits; labels (N,); wrong (N,) bool, whether the label is an error.
    Columns: type (which model makes it: 1 the first alone, 2 the second alone, 3 both), gap0 and gap1 (the gap under
    the first and the second model), wrong.
    Source: the consensus cleaning paper section 3 (E6), whose Model 0 and Model 1 they are.
    """
    kinds = (mismatch(before, labels) == PRUNED) + 2 * (mismatch(after, labels) == PRUNED)
    columns = {"type": kinds, "gap0": logit_gap(before, labels), "gap1": logit_gap(after, labels), "wrong": wrong}
    return pd.DataFrame(columns)[kinds > 0]
