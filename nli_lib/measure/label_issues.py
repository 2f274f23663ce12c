"""What cleanlab, the field's own tool for wrong labels, says of the same out-of-sample probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from nli_lib.errors import UserError

INSTALL = "pip install -c constraints.txt cleanlab"


class LabelIssuesError(UserError, RuntimeError):
    """cleanlab is not installed, or the labels and probabilities are none it can work on; the message says which."""


def label_issues(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.bool_]:
    """Which examples cleanlab calls wrongly labelled, (N,) bool.

    Shapes: logits (N, C) of models that did not train on the examples they score, labels (N,).
    Method: `cleanlab.filter.find_label_issues` as it stands by default: a joint distribution of given and true labels
    is estimated from the examples each class is sure of, and as many of each class are called wrong as it says
    (confident learning: Northcutt et al., 2021).
    Raises `LabelIssuesError` where cleanlab is missing, and where a class of the logits labels no example.
    """
    try:
        from cleanlab.filter import find_label_issues
    except ModuleNotFoundError:
        raise LabelIssuesError(f"cleanlab is not installed: {INSTALL}") from None
    logits, labels = np.asarray(logits, dtype=np.float64), np.asarray(labels)
    if absent := sorted(set(range(logits.shape[1])) - set(labels.tolist())):
        raise LabelIssuesError(f"class {absent[0]} labels no example; cleanlab asks that each class labels some")
    return find_label_issues(labels, softmax(logits, axis=1), n_jobs=1)


def named_by_cleanlab(logits: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.bool_], list[str]]:
    """`label_issues`, and why there are none: without cleanlab, or where it cannot work, nothing is named."""
    try:
        return label_issues(logits, labels), []
    except LabelIssuesError as error:
        return np.zeros(len(np.asarray(labels)), dtype=bool), [str(error)]


def self_confidence(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """Probability of the label, (N,), 0 to 1; a low one speaks against the label. cleanlab ranks by it by default.

    Shapes and logits as `label_issues`; the same number as `cleanlab.rank.get_label_quality_scores`.
    """
    probabilities = softmax(np.asarray(logits, dtype=np.float64), axis=1)
    return probabilities[np.arange(len(probabilities)), np.asarray(labels)]
