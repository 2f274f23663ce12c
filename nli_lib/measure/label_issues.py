"""What cleanlab, the field's own tool for wrong labels, says of the same out-of-sample probabilities."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

INSTALL = "pip install -c constraints.txt cleanlab"


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
