"""The features of the z-filter paper for a corpus of millions: shard after shard, in memory that grows with the ones alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse
from tqdm.auto import tqdm

from nli_lib.measure.artifacts import Features, features
from nli_lib.store import atomic

SIZE = 250_000  # pairs of a shard: about 1 GB while it is worked on


def features_in_shards(
    premises: Sequence[str],
    hypotheses: Sequence[str],
    *,
    size: int = SIZE,
    folder: Path | None = None,
    progress: bool = False,
    **options: object,
) -> Features:
    """What `artifacts.features` gives, with its `options`, but columns stand in the order in which shards bring them.

    With a `folder` every finished shard is kept there; called again for the same texts, only the missing are made.
    Delete the folder when the features are no longer wanted.
    """
    if len(premises) != len(hypotheses):
        raise ValueError(f"{len(premises)} premises and {len(hypotheses)} hypotheses: give as many of each")
    vocabulary, parts = pa.array([], pa.large_string()), []
    starts = range(0, max(len(premises), 1), size)
    for number, start in enumerate(tqdm(starts, desc="features", unit="shard", disable=not progress)):
        texts = premises[start : start + size], hypotheses[start : start + size]
        matrix, names = _shard(*texts, folder and Path(folder) / f"shard-{number:05d}.npz", options)
        new = names.filter(pc.invert(pc.is_in(names, vocabulary)))
        vocabulary = pa.concat_arrays([vocabulary, new])
        column = np.asarray(pc.index_in(names, vocabulary))
        parts.append((matrix.indptr, column[matrix.indices].astype(np.int32)))
    return Features(_stacked(parts, len(vocabulary)), vocabulary.to_numpy(zero_copy_only=False))


def _shard(
    premises: Sequence, hypotheses: Sequence, path: Path | None, options: dict
) -> tuple[sparse.csr_array, pa.Array]:
    """Matrix and names of one shard, read from `path` where it holds those of the same texts."""
    if path is None:
        return _made(premises, hypotheses, options)
    key = _key(premises, hypotheses, options)
    if path.exists():
        with np.load(path, allow_pickle=False) as saved:
            if str(saved["key"]) == key:
                names = pa.LargeStringArray.from_buffers(
                    len(saved["offsets"]) - 1, pa.py_buffer(saved["offsets"]), pa.py_buffer(saved["letters"])
                )
                parts = np.ones(len(saved["indices"]), np.uint8), saved["indices"], saved["indptr"]
                return sparse.csr_array(parts, shape=(len(premises), len(names))), names
    matrix, names = _made(premises, hypotheses, options)
    _, offsets, letters = names.buffers()
    with atomic(path) as draft, draft.open("wb") as file:
        arrays = {"indptr": matrix.indptr, "indices": matrix.indices}
        arrays |= {
            "offsets": np.frombuffer(offsets, np.int64)[: len(names) + 1],
            "letters": np.frombuffer(letters or b"", np.uint8),
        }
        np.savez(file, key=key, **arrays)
    return matrix, names


def _made(premises: Sequence, hypotheses: Sequence, options: dict) -> tuple[sparse.csr_array, pa.Array]:
    found = features(premises, hypotheses, **options)
    return found.matrix, pa.array(found.names, pa.large_string())


def _key(premises: Sequence, hypotheses: Sequence, options: dict) -> str:
    digest = hashlib.sha256(repr(sorted(options.items())).encode())
    for texts in (premises, hypotheses):
        for part in pa.array(np.asarray(texts, dtype=object), pa.large_string()).buffers():
            digest.update(part or b"")
    return digest.hexdigest()


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
