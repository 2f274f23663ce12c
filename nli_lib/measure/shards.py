"""The features of the z-filter paper for a corpus of millions, shard after shard: memory grows with the ones alone."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from nli_lib.measure.artifacts import Features, features
from nli_lib.measure.check import check_pairs

SIZE = 250_000  # pairs of a shard: about 1 GB while it is worked on


def features_in_shards(premises: Sequence[str], hypotheses: Sequence[str], *, size: int = SIZE) -> Features:
    """What `artifacts.features` gives, columns in the order in which the shards bring them."""
    pairs = check_pairs(premises, hypotheses)
    vocabulary, parts = pa.array([], pa.large_string()), []
    for start in range(0, max(pairs, 1), size):
        shard = features(premises[start : start + size], hypotheses[start : start + size])
        names = pa.array(shard.names, pa.large_string())
        new = names.filter(pc.invert(pc.is_in(names, vocabulary)))
        vocabulary = pa.concat_arrays([vocabulary, new])
        column = np.asarray(pc.index_in(names, vocabulary))
        parts.append((shard.matrix.data, column[shard.matrix.indices], shard.matrix.indptr))
    width = len(vocabulary)
    matrix = sparse.vstack([sparse.csr_array(part, shape=(len(part[-1]) - 1, width)) for part in parts], format="csr")
    matrix.sort_indices()
    return Features(matrix, vocabulary.to_numpy(zero_copy_only=False))
