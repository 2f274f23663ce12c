"""Features of one's own beside those of the z-filter paper: any named yes-or-no column about a pair.

own = indicators({"has a number": [any(map(str.isdigit, text)) for text in corpus.hypothesis]})
table = join(features(corpus.premise, corpus.hypothesis), own)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse

from nli_lib.measure.artifacts import Features


def indicators(columns: Mapping[str, ArrayLike]) -> Features:
    """Features that fire where their column is true: name -> (N,) bool, at least one."""
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    if not arrays:
        raise ValueError("give at least one column")
    lengths = {name: column.shape for name, column in arrays.items()}
    if any(column.dtype != bool or column.ndim != 1 for column in arrays.values()) or len(set(lengths.values())) > 1:
        kinds = {name: (str(column.dtype), column.shape) for name, column in arrays.items()}
        raise ValueError(f"columns must be boolean and (N,) with one N, these are {kinds}")
    matrix = np.column_stack(list(arrays.values())).astype(np.uint8)
    return Features(sparse.csr_array(matrix), np.array(list(arrays), dtype=object))


def prediction(predicted: ArrayLike, *, n_classes: int, name: str = "hypo-only-pred") -> Features:
    """The class that a model predicts, as one feature for each: "hypo-only-pred=0", "=1", "=2".

    predicted (N,) in 0..n_classes-1, such as the argmax of a model that reads the hypothesis alone.
    Source: the z-filter paper, section 3.1 and Table 12, where BERT was trained on the very pairs that it predicts.
    With `measure.partial_input.cross_fitted` the prediction is one that the pair's own label had no part in.
    """
    predicted = np.asarray(predicted)
    return indicators({f"{name}={label}": predicted == label for label in range(n_classes)})


def join(*parts: Features) -> Features:
    """The features of several tables about the same pairs, side by side; a name must not come twice."""
    rows = {part.matrix.shape[0] for part in parts}
    if len(rows) != 1:
        raise ValueError(f"the tables have {sorted(rows)} rows: make them of the same pairs")
    names = np.concatenate([part.names for part in parts])
    if (repeated := pd.Index(names).duplicated()).any():
        raise ValueError(f"feature {names[repeated][0]!r} comes twice: give it another name")
    return Features(sparse.hstack([part.matrix for part in parts], format="csr", dtype=np.uint8), names)
