"""Nearest neighbours of the same label, exactly: cosines by a matrix product, block by block.

The product is taken in single precision and leaves a few candidates; their cosines are computed again in double
precision and decide, so that ties are found and broken alike on every machine.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

PLACES = 9  # decimals of a cosine; what agrees in them is equally near, which takes double precision
BLOCK = 2**25  # cosines held in memory at once
SINGLE = 2.0**-24  # of a number in single precision: half the distance to the next


def neighbours(
    vectors: ArrayLike, labels: ArrayLike, seeds: ArrayLike, *, k: int = 4, cap: int | None = None
) -> NDArray[np.int64]:
    """Positions of the k nearest neighbours of each seed among the examples of its label, (S, k), the nearest first.

    vectors  (N, D), of any length, none of them zero; labels (N,); seeds: positions (S,)
    cap      how many of the nearest examples of *all* labels are looked at, the seed among them; None looks at all

    A seed is not its own neighbour; an exact duplicate of it is, at a cosine of 1. Of neighbours that are equally near,
    to `PLACES` decimals, the earlier comes first. Where there are fewer than k, the rest is -1.

    Source: WANLI, section 2.2: k = 4, of the same label, by the cosine of the task model's first token (W4).
    *Departures*: the paper's code looks at the 15 nearest of all labels, drops those of another label and with them the
    seeds that are left with fewer than four, which the paper does not say: ``cap=15``.
    """
    vectors, labels = np.asarray(vectors), np.asarray(labels)
    seeds = np.asarray(seeds, dtype=np.int64)
    length = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64)) if vectors.ndim == 2 else np.zeros(1)
    if len(labels) != len(vectors) or not (np.isfinite(length).all() and length.all()):
        raise ValueError(f"vectors of shape {vectors.shape} for {len(labels)} labels: give each a finite, non-zero one")
    unit = np.multiply(vectors, 1 / length[:, None], dtype=np.float32, casting="same_kind")
    found = np.full((len(seeds), k), -1, dtype=np.int64)

    def exact(one: NDArray, other: NDArray) -> NDArray:
        product = np.einsum("cd,cd->c", *(vectors[each].astype(np.float64) for each in (one, other)))
        return (product / (length[one] * length[other])).round(PLACES)

    for label in np.unique(labels[seeds]):
        asked = np.flatnonzero(labels[seeds] == label)
        members = np.flatnonzero(labels == label) if cap is None else np.arange(len(labels))
        taken, rows = min((k + 1) if cap is None else cap, len(members)), max(1, BLOCK // len(members))
        others = unit[members]
        for start in range(0, len(asked), rows):
            part = asked[start : start + rows]
            own = seeds[part]
            row, column = _candidates(unit[own] @ others.T, taken, error=2 * (vectors.shape[1] + 4) * SINGLE)
            member = members[column]
            order = np.lexsort((column, -exact(own[row], member), row))
            row, member = row[order], member[order]
            member = member[np.arange(len(row)) - np.searchsorted(row, row) < taken].reshape(len(part), taken)
            keep = (member != own[:, None]) & (labels[member] == label)
            order = np.argsort(~keep, axis=1, kind="stable")  # what is kept first, in its order
            kept = np.where(np.take_along_axis(keep, order, 1), np.take_along_axis(member, order, 1), -1)[:, :k]
            found[part, : kept.shape[1]] = kept
    return found


def random_companions(labels: ArrayLike, seeds: ArrayLike, *, k: int = 4, seed: int = 0) -> NDArray[np.int64]:
    """The control of `neighbours`: k random examples of each seed's label, (S, k), drawn with replacement.

    labels (N,); seeds: positions (S,). A seed is not its own companion; where no other has its label, the row is -1.
    """
    labels, seeds = np.asarray(labels), np.asarray(seeds, dtype=np.int64)
    random, found = np.random.default_rng(seed), np.full((len(seeds), k), -1, dtype=np.int64)
    for label in np.unique(labels[seeds]):
        asked, members = np.flatnonzero(labels[seeds] == label), np.flatnonzero(labels == label)
        if len(members) > 1:
            place = random.integers(len(members) - 1, size=(len(asked), k))
            place += place >= np.searchsorted(members, seeds[asked])[:, None]  # the seed's own place is skipped
            found[asked] = members[place]
    return found


def _candidates(cosines: NDArray, taken: int, error: float) -> tuple[NDArray, NDArray]:
    """Rows and columns of a matrix in single precision that can be among the `taken` largest of their row.

    Each of the `taken` blocks of columns with the largest values holds one value at least that is no smaller than the
    last of them, so nothing below that can be looked for, but for the `error` of rounding. That costs a fraction of a
    partial sort of the row.
    """
    width = cosines.shape[1]
    largest = np.maximum.reduceat(cosines, np.arange(0, width, max(1, width // (20 * taken))), axis=1)
    border = np.partition(largest, -taken, axis=1)[:, -taken, None]
    return np.nonzero(cosines >= border - np.float32(error))
