"""What the z-statistics of a corpus would be by chance, and how far they move in another sample of its premises.

Copies are made one at a time, so the memory is that of the features and of one table of counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nli_lib.measure.artifacts import (
    ZStatistics,
    best_columns,
    binary,
    side_of,
    z_from_counts,
    z_order,
)
from nli_lib.measure.check import check_labels, class_count

OVERLAP = ("lex-overlap>", "full-lex-overlap")


def shuffled_labels(labels: ArrayLike, groups: ArrayLike, *, seed: int = 0) -> NDArray[np.int64]:
    """The labels (N,) shuffled among the pairs of one group, and among all pairs that are alone in theirs.

    With premises as `groups` (N,) this cuts every tie between a text and its label and keeps the design of the corpus,
    in which one premise has a hypothesis of each label.
    """
    labels = np.asarray(labels)
    group = pd.factorize(_codes(groups))[0]
    alone = np.bincount(group)[group] == 1
    group[alone] = -1
    before = np.argsort(group, kind="stable")
    after = np.lexsort((np.random.default_rng(seed).random(len(labels)), group))
    shuffled = np.empty_like(labels)
    shuffled[before] = labels[after]
    return shuffled


def shuffled_statistics(
    matrix: sparse.sparray, labels: ArrayLike, groups: ArrayLike, *, copies: int = 200, n_classes: int | None = None
) -> Iterator[ZStatistics]:
    """The z-statistics with `shuffled_labels`, one copy after the other, seeds 0 to copies - 1.

    Shapes: matrix (N, V) of ones, labels (N,), groups (N,) such as premises. No count of a feature changes, so columns
    that are too rare to be of interest are best left out of the matrix.
    """
    count, gold, group = _Counter(matrix, labels, n_classes), np.asarray(labels), _codes(groups)
    for seed in range(copies):
        yield z_from_counts(count(shuffled_labels(gold, group, seed=seed)))


def resampled_statistics(
    matrix: sparse.sparray, labels: ArrayLike, weights: Iterable[NDArray], *, n_classes: int | None = None
) -> Iterator[ZStatistics]:
    """The z-statistics when pair i stands weights[r][i] times in the corpus, one resample r after the other.

    Shapes: matrix (N, V) of ones, labels (N,), each of `weights` (N,) whole numbers
    (`report.inference.resample_counts` draws premises).
    """
    count = _Counter(matrix, labels, n_classes)
    for each in weights:
        yield z_from_counts(count(labels, each))


def above_line(
    copies: Iterable[ZStatistics], columns: ArrayLike, line: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each copy the highest z of each label, (R, C), and the share of z above `line` among `columns`, (R,).

    columns (V,) bool: the features whose (feature, label) cells are counted; the highest z is sought among all.
    """
    columns, highest, above = np.asarray(columns, dtype=bool), [], []
    for each in copies:
        highest.append(np.nanmax(each.z, axis=0))
        above.append((each.z[columns] > line).mean())
    return np.array(highest), np.array(above)


def table_12(
    copies: Iterable[ZStatistics],
    names: Sequence[str],
    named: Mapping[int, Sequence[str]],
    *,
    line: float,
    min_count: int = 20,
) -> NDArray[np.float64]:
    """Four numbers about the features at the top, of each copy: (R, 4), as the z-filter paper's Table 12 shows them.

    0  features of lexical overlap among the five highest of entailment (label 0)
    1  share of the words `named` (label -> words of the hypothesis) above `line` for their label
    2  share of features of the premise among the 20 highest of each label, those seen `min_count` times at least
    3  the lowest of the labels' highest z, of features seen so often, in units of `line`
    """
    names = np.asarray(names, dtype=object)
    words = [(f"{word}@hypothesis", label) for label, group in named.items() for word in group]
    place = pd.Index(names).get_indexer([word for word, _ in words])
    own, known = np.array([label for _, label in words]), place >= 0
    rows = []
    for z, n, counts in copies:
        order, often = z_order(counts), np.flatnonzero(n >= min_count)
        five = best_columns(order[:, 0], n, names, np.flatnonzero(n), 5)
        twenty = np.concatenate([best_columns(column, n, names, often, 20) for column in order.T])
        rows.append((
            sum(name.startswith(OVERLAP) for name in names[five]),
            (known & (z[place, own] > line)).mean(),
            (side_of(names[twenty]) == "premise").mean(),
            z[often].max(axis=0).min() / line,
        ))  # fmt: skip
    return np.array(rows, dtype=float)


class _Counter:
    """Counts by label (V, C) of one matrix, again and again: what does not depend on the labels is made once."""

    def __init__(self, matrix: sparse.sparray, labels: ArrayLike, n_classes: int | None):
        present = binary(matrix)
        gold = check_labels(labels, present.shape[0], n_classes)
        self.shape = present.shape[1], class_count(gold, n_classes=n_classes)
        self.row = np.repeat(np.arange(present.shape[0], dtype=np.int32), np.diff(present.indptr))
        self.cells = present.indices.astype(np.int64) * self.shape[1]  # one cell a (feature, label)

    def __call__(self, labels: ArrayLike, weights: NDArray | None = None) -> NDArray[np.int64]:
        cells = self.cells + np.asarray(labels)[self.row]
        weights = None if weights is None else weights[self.row]
        counts = np.bincount(cells, weights, minlength=self.shape[0] * self.shape[1])  # whole numbers, so exact
        return counts.astype(np.int64).reshape(self.shape)


def _codes(groups: ArrayLike) -> NDArray:
    """Groups as whole numbers in the order of their first appearance; numbers stay what they are."""
    groups = np.asarray(groups)
    return groups if groups.dtype.kind in "iu" else pd.factorize(groups.astype(object))[0]
