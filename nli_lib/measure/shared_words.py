"""How far two texts use the same words."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nli_lib.measure.tokens import tokenize


def shared_words(texts: Sequence[str], one: ArrayLike, other: ArrayLike) -> NDArray[np.float64]:
    """Jaccard index of the word sets of two texts, 0 (no word in common) to 1 (the same words); 0 where both are empty.

    texts (N,); one, other: positions of the two texts, of any shape that fits, which is the shape of the answer.
    Formula: |A and B| / |A or B|. Words are those of `measure.tokens`, a word once a text.
    """
    one, other = np.broadcast_arrays(one, other)
    table = (tokenize(texts).counts() > 0).astype(np.int64)
    common = np.asarray(table[one.ravel()].multiply(table[other.ravel()]).sum(axis=1)).ravel()
    sizes = np.asarray(table.sum(axis=1)).ravel()
    either = sizes[one.ravel()] + sizes[other.ravel()] - common
    return (common / np.maximum(either, 1)).reshape(one.shape)
