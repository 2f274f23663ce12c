"""The features most tied to each label, kept up to date while counts grow batch by batch."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.measure.artifacts import best_columns, z_order

SPARE = 8  # the pool of a label is made SPARE x k features large and shrunk when it has grown SPARE times larger


class Ranking:
    """The k features with the highest z for each label, exact, on counts to which `add` adds.

    Features are compared by `artifacts.z_order`, so ties of z are exact. Adding touches few features, so only these
    are ordered anew. For each label a *pool* holds every feature that reaches its floor; the k best are sought there. A
    pool that falls below k is made anew from all features.

    counts    (V, C) by label to start from; the array is taken over
    names     (V,) strings that break ties, or None
    """

    def __init__(self, counts: ArrayLike, names: ArrayLike | None = None, *, k: int = 20, min_count: int = 1):
        self.counts = np.asarray(counts, dtype=np.int64)
        self.names = None if names is None else np.asarray(names, dtype=object)
        self.k, self.min_count = k, max(min_count, 1)
        self.classes = self.counts.shape[1]
        self.n = self.counts.sum(axis=1)
        self.order = self._order(slice(None)).T.copy()  # (C, V), -inf where a feature is not ranked
        self.member = np.zeros(self.order.shape, dtype=bool)
        self.floor = np.full(self.classes, -np.inf)
        self.pools = [np.empty(0, np.int64)] * self.classes
        for label in range(self.classes):
            self._fill(label, np.arange(self.order.shape[1]))

    def add(self, columns: NDArray, labels: NDArray) -> None:
        """Count feature `columns[i]` once more for `labels[i]`; both (T,)."""
        columns = columns.astype(np.int64, copy=False)
        np.add.at(self.counts.reshape(-1), columns * self.classes + labels, 1)
        touched = pd.unique(columns)
        self.n[touched] = self.counts[touched].sum(axis=1)
        self.order[:, touched] = self._order(touched).T
        for label in range(self.classes):
            self._refresh(label, touched)

    def best(self) -> list[NDArray[np.int64]]:
        """For each label the columns of its k best features, best first; fewer where fewer have been seen."""
        pools = zip(self.order, self.pools, strict=True)
        return [best_columns(order, self.n, self.names, pool, self.k) for order, pool in pools]

    def _order(self, columns: NDArray | slice) -> NDArray[np.float64]:
        order = z_order(self.counts[columns])
        order[self.n[columns] < self.min_count] = -np.inf
        return order

    def _refresh(self, label: int, touched: NDArray) -> None:
        order, member = self.order[label], self.member[label]
        new = touched[(order[touched] >= self.floor[label]) & ~member[touched]]
        pool = np.concatenate([self.pools[label], new])
        member[new] = True
        inside = order[pool] >= self.floor[label]
        member[pool[~inside]] = False
        self.pools[label] = pool = pool[inside]
        if len(pool) < self.k and self.floor[label] > -np.inf:
            self._fill(label, np.arange(len(order)))
        elif len(pool) > SPARE * SPARE * self.k:
            self._fill(label, pool)

    def _fill(self, label: int, candidates: NDArray) -> None:
        """Make the pool of what ranks no lower than the (SPARE k)-th of the candidates; ties with it come in too."""
        order, size = self.order[label], SPARE * self.k
        self.member[label, self.pools[label]] = False
        ranked = candidates[order[candidates] > -np.inf]
        self.floor[label] = np.partition(order[ranked], -size)[-size] if len(ranked) > size else -np.inf
        self.pools[label] = ranked[order[ranked] >= self.floor[label]]
        self.member[label, self.pools[label]] = True
