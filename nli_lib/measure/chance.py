"""What the z-statistics of a corpus would be by chance, and how far they move in another sample of its premises.

shuffled = (z_statistics(matrix, shuffled_labels(labels, premises, seed=seed)) for seed in range(200))
resampled = (z_statistics(matrix, labels, weights=each) for each in resample_counts(len(labels), groups=premises))

Copies come one at a time, so the memory is that of the features and of one table of counts.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.measure.artifacts import PREDICTION, ZStatistics, best_columns, side_of, z_order

OVERLAP = ("lex-overlap>", "full-lex-overlap")
OFTEN = 20  # pairs that have a feature


def shuffled_labels(labels: ArrayLike, groups: ArrayLike, *, seed: int = 0) -> NDArray[np.int64]:
    """The labels (N,) shuffled among the pairs of one group, and among all pairs that are alone in theirs.

    With premises as `groups` (N,) this cuts every tie between a text and its label and keeps the design of the corpus,
    in which one premise has a hypothesis of each label.
    """
    labels = np.asarray(labels)
    group = pd.factorize(np.asarray(groups))[0]
    alone = np.bincount(group)[group] == 1
    group[alone] = -1
    before = np.argsort(group, kind="stable")
    after = np.lexsort((np.random.default_rng(seed).random(len(labels)), group))
    shuffled = np.empty_like(labels)
    shuffled[before] = labels[after]
    return shuffled


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
    copies: Iterable[ZStatistics], names: Sequence[str], named: Mapping[int, Sequence[str]], *, line: float
) -> NDArray[np.float64]:
    """Four numbers about the features at the top, of each copy: (R, 4), as the z-filter paper's Table 12 shows them.

    0  rank of lexical overlap for entailment (label 0), its nested features counted once: `family_rank`
    1  share of the words `named` (label -> words of the hypothesis) above `line` for their label
    2  share of features of the premise among the 20 highest of each label, those seen `OFTEN` times at least
    3  the lowest of the labels' highest z, of features seen so often, in units of `line`
    """
    names = np.asarray(names, dtype=object)
    words = [(f"{word}@hypothesis", label) for label, group in named.items() for word in group]
    place = pd.Index(names).get_indexer([word for word, _ in words])
    own, known = np.array([label for _, label in words]), place >= 0
    overlap = pd.Series(names).str.startswith(OVERLAP).to_numpy(dtype=bool)
    rows = []
    for z, n, counts in copies:
        order, often = z_order(counts), np.flatnonzero(n >= OFTEN)
        twenty = np.concatenate([best_columns(column, n, names, often, 20) for column in order.T])
        rows.append((
            family_rank(order[:, 0], n, names, overlap),
            (known & (z[place, own] > line)).mean(),
            (side_of(names[twenty]) == "premise").mean(),
            z[often].max(axis=0).min() / line,
        ))  # fmt: skip
    return np.array(rows, dtype=float)


def prediction_lead(copies: Iterable[ZStatistics], names: Sequence[str]) -> NDArray[np.float64]:
    """How far a prediction from the hypothesis stands above every other feature, (R, C): 1 where it equals the next.

    Of each copy and label, z of the prediction (`artifacts.prediction`) of that label over the highest z of another
    feature for it, of features seen `OFTEN` times at least; nan for a label that is never predicted.
    """
    names = np.asarray(names, dtype=object)
    predicted = pd.Series(names).str.startswith(PREDICTION).to_numpy(dtype=bool)
    leads = []
    for z, n, _ in copies:
        own = np.array([z[names == f"{PREDICTION}{label}", label].max(initial=-np.inf) for label in range(z.shape[1])])
        leads.append(own / z[~predicted & (n >= OFTEN)].max(axis=0))
    return np.array(leads)


def family_rank(order: NDArray, n: NDArray, names: NDArray, family: NDArray) -> int:
    """The place of the best feature of a family among the features that are not of it, 1 is first.

    order (V,): `z_order` of one label; n (V,), names (V,); family (V,) bool, such as the six nested features of lexical
    overlap, which in a list of the highest z would take six places. Of equal z the more frequent feature comes first,
    then the name. Where no pair has a feature of the family, the place after the last.
    """
    others, own = (np.flatnonzero(side & (n > 0)) for side in (~family, family))
    best = best_columns(order, n, names, own, 1)
    if not len(best):
        return len(others) + 1
    (best,) = best
    level = others[order[others] == order[best]]
    ties = (n[level] > n[best]) | ((n[level] == n[best]) & (names[level].astype(str) < names[best]))
    return 1 + int((order[others] > order[best]).sum() + ties.sum())
