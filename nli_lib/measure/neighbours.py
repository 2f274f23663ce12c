"""Nearest neighbours of the same label, exactly: cosines by a matrix product, block by block."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

PLACES = 9  # decimals of a cosine; what agrees in them is equally near, which takes double precision
BLOCK = 2**26  # cosines held in memory at once


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
    vectors, labels, seeds = (
        np.asarray(vectors, dtype=np.float64),
        np.asarray(labels),
        np.asarray(seeds, dtype=np.int64),
    )
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    if vectors.ndim != 2 or len(labels) != len(vectors) or not (np.isfinite(length).all() and length.all()):
        raise ValueError(f"vectors of shape {vectors.shape} for {len(labels)} labels: give each a finite, non-zero one")
    unit, found = vectors / length, np.full((len(seeds), k), -1, dtype=np.int64)
    for label in np.unique(labels[seeds]):
        asked = np.flatnonzero(labels[seeds] == label)
        members = np.flatnonzero(labels == label) if cap is None else np.arange(len(labels))
        rows = max(1, BLOCK // len(members))
        for start in range(0, len(asked), rows):
            part = asked[start : start + rows]
            own = seeds[part]
            near = _nearest(unit[own] @ unit[members].T, (k + 1) if cap is None else cap)
            near = np.where(near >= 0, members[near], -1)
            keep = (near >= 0) & (near != own[:, None]) & (labels[near] == label)
            order = np.argsort(~keep, axis=1, kind="stable")  # what is kept first, in its order
            kept = np.where(np.take_along_axis(keep, order, 1), np.take_along_axis(near, order, 1), -1)[:, :k]
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


def _nearest(cosines: NDArray, count: int) -> NDArray[np.int64]:
    """Columns of the `count` largest values of each row, the largest first, of equal ones the earlier; -1 beyond."""
    width = cosines.shape[1]
    taken = min(count, width)
    border = np.partition(cosines, width - taken, axis=1)[:, width - taken, None]
    # a little below the border as well: what is rounded to its value; only these few are rounded and sorted
    row, column = np.nonzero(cosines >= border - 2 * 10.0**-PLACES)
    order = np.lexsort((column, -cosines[row, column].round(PLACES), row))
    row, column = row[order], column[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    near = np.full((len(cosines), count), -1, dtype=np.int64)
    near[row[rank < taken], rank[rank < taken]] = column[rank < taken]
    return near
