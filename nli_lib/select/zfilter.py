"""z-filter: drop the pairs whose surface features give their label away (the z-filter paper, Algorithm 1)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from tqdm.auto import tqdm

from nli_lib.measure.artifacts import ZStatistics, binary, check_labels, z_from_counts, z_statistics
from nli_lib.measure.ranking import Ranking
from nli_lib.select.selection import KEPT, Selection
from nli_lib.store import StoreError, atomic

CHECKPOINT_EVERY = 200  # batches between two checkpoints


@dataclass(frozen=True, eq=False)
class Filtered(Selection):
    """What the z-filter keeps, and why it rejects.

    `hits` (N, V) bool, sparse: the features for which a pair was rejected; `statistics` of Z when the pass has ended.
    """

    hits: sparse.csr_array
    statistics: ZStatistics


def z_filter(
    features: sparse.sparray,
    labels: ArrayLike,
    *,
    names: ArrayLike | None = None,
    given: tuple[sparse.sparray, ArrayLike] | None = None,
    k: int = 20,
    batch_size: int = 1000,
    shuffle: bool = True,
    seed: int = 0,
    min_count: int = 1,
    n_classes: int = 3,
    checkpoint: Path | None = None,
    progress: bool = False,
) -> Filtered:
    """One pass over the pairs that accepts a pair unless it holds one of the k features most tied to its own label.

    features  (N, V) sparse, any nonzero entry fires (`measure.artifacts.features`); labels (N,) in 0..n_classes-1
    names     (V,) strings: they break ties and name the reasons; without them columns do both
    given     (features, labels) of a seed set that Z starts from and that is not filtered itself: the conditional form

    Z starts empty, or as the seed set. For each batch z is taken on Z as it is (`artifacts.z_from_counts`), the k
    features of highest z are found for each label, without any threshold of significance, and a pair is accepted if it
    holds none of its own label's. Accepted pairs join Z; rejected ones are never looked at again.
    So without a seed set the first batch is accepted whole, and one batch as large as the corpus filters nothing.

    With a `checkpoint` file the state is written every few batches, and a call with the same arguments goes on there.

    Source: the z-filter paper, section 3.2, Algorithm 1, Table 8 (k = 20). No code was released.
    *Departures*: batch size, order and ties are not in the paper. Here the order is a seeded permutation, a batch has
    1,000 pairs, ties go to the more frequent feature, then to the first in the alphabet. `min_count` leaves rarer
    features out of the ranking; the paper has none (1). See chapter 21 for what these choices are worth.
    """
    matrix = binary(features)
    labels = check_labels(labels, matrix.shape[0], n_classes)
    if k < 1 or batch_size < 1:
        raise ValueError(f"k={k} and batch_size={batch_size} must be at least 1")
    rows, columns = matrix.shape
    if names is not None and len(names) != columns:
        raise ValueError(f"{len(names)} names for {columns} features: give one a column")
    settings = (k, batch_size, shuffle, seed, min_count, n_classes)
    key = _key(matrix, labels, given, names, settings) if checkpoint else ""
    if checkpoint and checkpoint.exists():
        done, keep, hits, counts = _load(checkpoint, key)
    else:
        done, keep, hits, counts = 0, np.zeros(rows, bool), [], _seed_counts(given, columns, n_classes)
    ranking = Ranking(counts, names, k=k, min_count=min_count)
    order = np.random.default_rng(seed).permutation(rows) if shuffle else np.arange(rows)
    starts = range(done, rows, batch_size)
    for number, start in enumerate(tqdm(starts, desc="z-filter", unit="batch", mininterval=1, disable=not progress)):
        if checkpoint and number and number % CHECKPOINT_EVERY == 0:
            _save(checkpoint, key, start, keep, hits, ranking.counts)
        batch = order[start : start + batch_size]
        part, gold = matrix[batch], labels[batch]
        owner = np.repeat(np.arange(len(batch)), np.diff(part.indptr))  # (T,) which pair of the batch an entry is of
        biased = np.concatenate([worst * n_classes + label for label, worst in enumerate(ranking.best())])
        hit = np.isin(part.indices.astype(np.int64) * n_classes + gold[owner], biased)
        accepted = np.ones(len(batch), dtype=bool)
        accepted[owner[hit]] = False
        ranking.add(part.indices[accepted[owner]], gold[owner[accepted[owner]]])
        keep[batch] = accepted
        hits.append(np.stack([batch[owner[hit]], part.indices[hit]]))
    if checkpoint:
        checkpoint.unlink(missing_ok=True)
    where = np.concatenate([np.empty((2, 0), np.int64), *hits], axis=1)
    rejecting = sparse.csr_array((np.ones(where.shape[1], bool), tuple(where)), shape=matrix.shape)
    rejecting.sort_indices()
    return Filtered(keep, _reasons(keep, rejecting, names), rejecting, z_from_counts(ranking.counts))


def _seed_counts(given: tuple | None, columns: int, n_classes: int) -> NDArray[np.int64]:
    """Counts by label (V, C) of the seed set, zeros where there is none."""
    if given is None:
        return np.zeros((columns, n_classes), np.int64)
    if given[0].shape[1] != columns:
        raise ValueError(f"the seed set has {given[0].shape[1]} features, the pairs {columns}: make them in one call")
    return z_statistics(given[0], given[1], n_classes).counts


def _reasons(keep: NDArray, hits: sparse.csr_array, names: ArrayLike | None) -> NDArray[np.object_]:
    """ "kept", or the names of the features that a pair was rejected for, as text."""
    used, place = np.unique(hits.indices, return_inverse=True)
    words = used.astype(str) if names is None else np.asarray(names, dtype=object)[used].astype(str)
    lists = pa.LargeListArray.from_arrays(hits.indptr.astype(np.int64), pa.array(words[place], pa.large_string()))
    reason = pc.binary_join(lists, pa.scalar("; ", pa.large_string())).to_numpy(zero_copy_only=False)
    reason[keep] = KEPT
    return reason


# ---------------------------------------------------------------- going on after a kill


def _key(
    matrix: sparse.csr_array, labels: NDArray, given: tuple | None, names: ArrayLike | None, settings: tuple
) -> str:
    """Digest of everything that decides what the filter does."""
    digest = hashlib.sha256(repr((matrix.shape, settings)).encode())
    digest.update("\n".join(map(str, () if names is None else names)).encode())
    parts = [matrix.indptr, matrix.indices, labels]
    if given is not None:
        seed = binary(given[0])
        parts += [seed.indptr, seed.indices, np.asarray(given[1])]
    for part in parts:
        digest.update(np.ascontiguousarray(part))
    return digest.hexdigest()


def _save(path: Path, key: str, done: int, keep: NDArray, hits: list[NDArray], counts: NDArray) -> None:
    joined = np.concatenate([np.empty((2, 0), np.int64), *hits], axis=1)
    with atomic(path) as draft, draft.open("wb") as file:
        np.savez(file, key=key, done=done, keep=keep, hits=joined, counts=counts)


def _load(path: Path, key: str) -> tuple[int, NDArray, list[NDArray], NDArray]:
    with np.load(path, allow_pickle=False) as saved:
        if str(saved["key"]) != key:
            raise StoreError(f"{path} belongs to other pairs or settings: delete it, or name another checkpoint")
        return int(saved["done"]), saved["keep"], [saved["hits"]], saved["counts"]
