"""A model's prediction as features beside those of the z-filter paper.

own = prediction(probabilities.argmax(axis=1), n_classes=3)
table = join(features(corpus.premise, corpus.hypothesis), own)
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from nli_lib.measure.artifacts import Features


def prediction(predicted: ArrayLike, *, n_classes: int) -> Features:
    """The class that a model predicts, as one feature for each: "hypo-only-pred=0", "=1", "=2".

    predicted (N,) in 0..n_classes-1, such as the argmax of a model that reads the hypothesis alone.
    Source: the z-filter paper, section 3.1 and Table 12, where BERT was trained on the very pairs that it predicts.
    With `measure.partial_input.cross_fitted` the prediction is one that the pair's own label had no part in.
    """
    names = [f"hypo-only-pred={label}" for label in range(n_classes)]
    fires = np.asarray(predicted)[:, None] == np.arange(n_classes)  # (N, C)
    return Features(sparse.csr_array(fires.astype(np.uint8)), np.array(names, dtype=object))


def join(*parts: Features) -> Features:
    """The features of several tables about the same pairs, side by side."""
    matrix = sparse.hstack([part.matrix for part in parts], format="csr", dtype=np.uint8)
    return Features(matrix, np.concatenate([part.names for part in parts]))
