"""`partial_input.cross_fitted` without the hashed columns that no text uses.

The numbers are the same, bit for bit, and a small corpus takes a tenth of the time, because the solver goes over every
column in every pass.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, StratifiedKFold

from nli_lib.measure.check import check_labels
from nli_lib.measure.partial_input import NGRAMS, _fit_predict


def cross_fitted(
    texts: Sequence[str],
    labels: ArrayLike,
    *,
    n_classes: int,
    folds: int = 5,
    groups: ArrayLike | None = None,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Probability of each label for each text, from a model fitted without that text's fold, (N, C): see
    `partial_input.cross_fitted`."""
    gold = check_labels(labels, len(texts), n_classes)
    matrix = NGRAMS.transform(texts)
    matrix = matrix[:, np.unique(matrix.indices)]
    splitter, probabilities = StratifiedKFold if groups is None else GroupKFold, np.zeros((len(gold), n_classes))
    for train, held_out in splitter(folds, shuffle=True, random_state=seed).split(matrix, gold, groups):
        probabilities[held_out] = _fit_predict(matrix[train], gold[train], matrix[held_out], n_classes, seed)
    return probabilities
