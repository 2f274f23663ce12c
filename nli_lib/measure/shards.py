"""The features of the z-filter paper for a corpus of millions, shard after shard: memory grows with the ones alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse
from tqdm.auto import tqdm

from nli_lib.measure.artifacts import Features, features
from nli_lib.measure.check import check_pairs

SIZE = 250_000  # pairs of a shard: about 1 GB while it is worked on


def features_in_shards(
    premises: Sequence[str],
    hypotheses: Sequence[str],
    *,
    size: int = SIZE,
    progress: bool = False,
    **options: object,
) -> Features:
    """What `artifacts.features` gives with its `options`, columns in the order in which the shards bring them."""
    pairs = check_pairs(premises, hypotheses)
    vocabulary, parts = pa.array([], pa.large_string()), []
    for start in tqdm(range(0, max(pairs, 1), size), desc="features", unit="shard", disable=not progress):
        shard = features(premises[start : start + size], hypotheses[start : start + size], **options)
        names = pa.array(shard.names, pa.large_string())
        new = names.filter(pc.invert(pc.is_in(names, vocabulary)))
        vocabulary = pa.concat_arrays([vocabulary, new])
        column = np.asarray(pc.index_in(names, vocabulary))
        parts.append((shard.matrix.indptr, column[shard.matrix.indices].astype(np.int32)))
    return Features(_stacked(parts, len(vocabulary)), vocabulary.to_numpy(zero_copy_only=False))


def _stacked(parts: list, width: int) -> sparse.csr_array:
    """One matrix of the shards' rows; each shard's index array is let go as soon as it is copied."""
    rows, entries = (sum(len(part[at]) - (at == 0) for part in parts) for at in (0, 1))
    kind = np.int32 if entries < np.iinfo(np.int32).max else np.int64
    indptr, indices = np.zeros(rows + 1, kind), np.empty(entries, kind)
    row = entry = 0
    while parts:
        pointers, columns = parts.pop(0)
        indptr[row + 1 : row + len(pointers)] = pointers[1:].astype(np.int64) + entry
        indices[entry : entry + len(columns)] = columns
        row, entry = row + len(pointers) - 1, entry + len(columns)
    matrix = sparse.csr_array((np.ones(entries, np.uint8), indices, indptr), shape=(rows, width))
    matrix.sort_indices()
    return matrix
