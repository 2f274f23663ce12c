"""z-filter: drop the pairs whose surface features give their label away (Algorithm 1 of the z-filter paper).

`z_filter` takes one corpus, `z_mix` a corpus and generated pairs: Z-Aug, Par-Z, Seq-Z. The paper on debiased generation
makes its training sets with them, all of them parts of one pool: a corpus D0, the pairs G that a plain generator wrote,
the pairs G* of the debiased one, and a teacher who is `confident` of some of the generated pairs; the paper marks those
with a hat. Chapter 24 makes and exports the sets, and `to_train_on` reads those that a model can learn from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nli_lib.measure import check_labels, class_count
from nli_lib.measure.features import Ranking, ZStatistics, binary, z_from_counts, z_statistics
from nli_lib.select.selection import KEPT, Selection

# Pairs between two looks at Z, at least and at most. A single pair locks the filter up in half of all orders: the null
# feature, which every pair has, is then among the top features of each label, and no other pair comes in.
BATCHES = (3, 1000)
WAYS = ("z-aug", "par-z", "seq-z")  # of mixing


@dataclass(frozen=True, eq=False)
class Filtered(Selection):
    """What the z-filter keeps, and why it rejects.

    `hits` (N, V) bool, sparse: the features for which a pair was rejected; `statistics` of Z when the pass has ended.
    """

    hits: sparse.csr_array
    statistics: ZStatistics

    def by_feature(self, names: ArrayLike, *, most: int = 20) -> pd.DataFrame:
        """The features that rejected most pairs, those of most first: at most `most` rows.

        Columns: feature (from ``names`` (V,)), pairs (how many it helped to reject), alone (those that no other feature
        rejected), first (position of the first such pair, an example).
        """
        row, column = self.hits.nonzero()
        each = pd.DataFrame({"feature": column, "first": row, "alone": ~pd.Series(row).duplicated(keep=False)})
        found = each.groupby("feature").agg(pairs=("first", "size"), alone=("alone", "sum"), first=("first", "min"))
        best = found.sort_values("pairs", ascending=False, kind="stable").head(most).reset_index()
        return best.assign(feature=np.asarray(names, dtype=object)[best["feature"]])


def z_filter(
    features: sparse.sparray,
    labels: ArrayLike,
    *,
    names: ArrayLike | None = None,
    given: tuple[sparse.sparray, ArrayLike] | None = None,
    k: int = 20,
    batch_size: int | None = None,
    shuffle: bool = True,
    seed: int = 0,
    min_count: int = 1,
    n_classes: int | None = None,
) -> Filtered:
    """One pass over the pairs that accepts a pair unless it holds one of the k features most tied to its own label.

    Z starts empty, or as the seed set. For each batch z is taken on Z as it is (`artifacts.z_from_counts`), the k
    features of highest z are found for each label, without any threshold of significance, and a pair is accepted if it
    holds none of its own label's. Accepted pairs join Z; rejected ones are never looked at again.
    So without a seed set the first batch is accepted whole, and one batch as large as the corpus filters nothing.

    Parameters
    ----------
    features
        (N, V) sparse, any nonzero entry fires (`measure.features.features`)
    labels
        (N,) in 0..n_classes-1
    names
        (V,) strings: they break ties and name the reasons; without them columns do both
    given
        (features, labels) of a seed set that Z starts from and that is not filtered itself: conditional
    batch_size
        pairs between two looks at Z; by default `default_batch_size`, a hundredth of the pairs
    n_classes
        by default the number of labels that occur; z compares a label's share with 1 / n_classes

    Notes
    -----
    *Departures*: batch size, order and ties are not in the paper. Here the order is a seeded permutation, a batch has a
    hundredth of the pairs, at least 3 and at most 1,000, ties are exact (`measure.features.z_order`) and go to the more
    frequent feature, then to the first in the alphabet. `min_count` leaves rarer features out of the ranking; the paper
    has none (1). See chapter 21 for what these choices are worth.

    References
    ----------
    The z-filter paper, section 3.2, Algorithm 1, Table 8 (k = 20). No code was released.
    """
    matrix = binary(features)
    rows, columns = matrix.shape
    labels = check_labels(labels, rows, n_classes)
    seed_set, seed_labels = given or (sparse.csr_array((0, columns)), np.empty(0, np.int64))
    n_classes = class_count(labels, check_labels(seed_labels, seed_set.shape[0], n_classes), n_classes=n_classes)
    batch_size = default_batch_size(rows) if batch_size is None else batch_size
    if k < 1 or batch_size < 1:
        raise ValueError(f"k={k} and batch_size={batch_size} must be at least 1")
    if names is not None and len(names) != columns:
        raise ValueError(f"{len(names)} names for {columns} features: give one a column")
    if seed_set.shape[1] != columns:
        raise ValueError(f"the seed set has {seed_set.shape[1]} features, the pairs {columns}: make them in one call")
    keep, hits = np.zeros(rows, bool), []
    ranking = Ranking(z_statistics(seed_set, seed_labels, n_classes).counts, names, k=k, min_count=min_count)
    order = np.random.default_rng(seed).permutation(rows) if shuffle else np.arange(rows)
    for start in range(0, rows, batch_size):
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
    where = np.concatenate([np.empty((2, 0), np.int64), *hits], axis=1)
    rejecting = sparse.csr_array((np.ones(where.shape[1], bool), tuple(where)), shape=matrix.shape)
    rejecting.sort_indices()
    return Filtered(keep, _reasons(keep, rejecting, names), rejecting, z_from_counts(ranking.counts))


def z_mix(way: str, features: sparse.sparray, labels: ArrayLike, base: ArrayLike, **options: object) -> Selection:
    """What is kept of a corpus D0 and of generated pairs G, which stand in one table.

    "z-aug"
        D0 whole, and Z(G | D0): G filtered on counts that start with D0
    "par-z"
        Z(D0) and Z(G), each filtered on its own
    "seq-z"
        Z(D0), and Z(G | Z(D0))

    features (N, V) and labels (N,) of all pairs, base (N,) bool: True for those of D0; `options` go to `z_filter`.
    The number of classes is that of all labels together, unless `options` say it.

    Notes
    -----
    *Departures*: its sizes include duplicates or not, which it does not say; here every row counts. The public README
    swaps the sizes of Par-Z and Seq-Z; the paper's table is followed.

    References
    ----------
    The z-filter paper, section 4.2.
    """
    if way not in WAYS:
        raise ValueError(f"way is {way!r}: choose one of {', '.join(WAYS)}")
    base, labels, matrix = np.asarray(base, dtype=bool), np.asarray(labels), sparse.csr_array(features)
    options["n_classes"] = class_count(labels, n_classes=options.get("n_classes"))
    origin, made = np.flatnonzero(base), np.flatnonzero(~base)

    def filtered(rows: np.ndarray, given: np.ndarray | None = None) -> Selection:
        seed_set = None if given is None else (matrix[given], labels[given])
        return z_filter(matrix[rows], labels[rows], given=seed_set, **options)

    first = Selection.all(len(origin)) if way == "z-aug" else filtered(origin)
    second = filtered(made, None if way == "par-z" else origin[first.keep])
    keep, reason = np.zeros(len(base), dtype=bool), np.full(len(base), KEPT, dtype=object)
    for rows, part in ((origin, first), (made, second)):
        keep[rows], reason[rows] = part.keep, part.reason
    return Selection(keep, reason)


def default_batch_size(pairs: int) -> int:
    """A hundredth of the pairs, within `BATCHES`: a small corpus is filtered in many batches too."""
    return int(np.clip(pairs // 100, *BATCHES))


def _reasons(keep: NDArray, hits: sparse.csr_array, names: ArrayLike | None) -> NDArray[np.object_]:
    """ "kept", or the names of the features that a pair was rejected for, as text."""
    used, place = np.unique(hits.indices, return_inverse=True)
    words = used.astype(str) if names is None else np.asarray(names, dtype=object)[used].astype(str)
    lists = pa.LargeListArray.from_arrays(hits.indptr.astype(np.int64), pa.array(words[place], pa.large_string()))
    reason = pc.binary_join(lists, pa.scalar("; ", pa.large_string())).to_numpy(zero_copy_only=False)
    reason[keep] = KEPT
    return reason


# ---------------------------------------------------------------- debiased


D0, PLAIN, DEBIASED = "D0", "G", "G*"  # sources: the corpus, the plain generator, the debiased one
# Each set and the row of the paper's Table 13 that it belongs to; then those cut to the size of another.
ROWS = {
    "D0": "d0",
    "Z(D0)": "z-d0",
    "G*": "g-star-unfiltered",
    "G* confident": "",
    "Z(G*)": "z-g-star",
    "D0 + G*": "d0-and-g-star",
    "D0 + G": "d0-and-g",
    "Z-Aug": "z-aug",
    "Par-Z": "",
    "Seq-Z": "seq-z",
    "Seq-Z of G": "",
}
CUT = ", cut to "
CUTS = {
    f"Seq-Z{CUT}D0": "seq-z-matched",
    f"Seq-Z of G{CUT}D0": "seq-z-plain-matched",
    f"D0 + G*{CUT}Z-Aug": "d0-and-g-star-as-z-aug",
    f"D0 + G{CUT}Z-Aug": "d0-and-g-as-z-aug",
    f"Z(G*){CUT}D0": "z-g-star-matched",
    f"G* confident{CUT}D0": "g-star-filtered-matched",
    f"G*{CUT}D0": "g-star-unfiltered-matched",
}


def confident(probabilities: ArrayLike, labels: ArrayLike, *, tau: float) -> Selection:
    """Keep a pair whose label the teacher gives more than ``tau``.

    probabilities (N, C) of the teacher, labels (N,) the intended ones. Exactly ``tau`` is not enough. A teacher that is
    never so sure keeps nothing, and each pair says so in its reason.

    References
    ----------
    The paper on debiased generation, section 2.2.2 and Table 8, tau = .95 (Z10).
    """
    probabilities = np.asarray(probabilities, dtype=float)
    gold = check_labels(labels, len(probabilities), probabilities.shape[1])
    own = probabilities[np.arange(len(gold)), gold]
    if not np.isfinite(own).all():
        raise ValueError(f"{int((~np.isfinite(own)).sum())} probabilities are not finite: the teacher gives no answer")
    other = (probabilities.argmax(axis=1) != gold) & (own <= tau)
    reason = np.where(other, "the teacher gives another label", f"the teacher gives its label {tau:g} or less")
    return Selection(own > tau, np.where(own > tau, "kept", reason).astype(object))


def to_train_on(
    pool: pd.DataFrame, titles: Sequence[str], *, seed: int = 0
) -> tuple[dict[str, NDArray[np.bool_]], dict[str, int]]:
    """The sets of a pool that a model can learn from, each with its controls, and those it cannot, title -> pairs.

    First the sets, then the twins of those from which a filter took something, then the sets of `CUTS`: those that are
    larger than the other, cut to its size at random; the twins are not cut. A set that is empty, or lacks a label that
    D0 has, is left out: a model cannot predict a label that it never saw.

    Parameters
    ----------
    pool
        one row a pair: label, source, and for each title two bool columns, its pairs and "<title>, twin"
    titles
        of the sets that are wanted
    """
    sets = {title: pool[title].to_numpy(dtype=bool) for title in titles}
    for title in titles:
        twin = pool[f"{title}, twin"].to_numpy(dtype=bool)
        if (twin != sets[title]).any():
            sets[f"{title}, twin"] = twin
    for name in CUTS:
        whole, size = (sets.get(title, np.zeros(0)) for title in name.split(CUT))
        if whole.sum() > size.sum() > 0:
            keep = np.random.default_rng(seed).permutation(np.flatnonzero(whole))[: size.sum()]
            sets[name] = np.isin(np.arange(len(pool)), keep)
    label, base = pool["label"].to_numpy(), (pool["source"] == D0).to_numpy()
    wanted = set(label[base].tolist())
    lacking = {title: int(keep.sum()) for title, keep in sets.items() if wanted - set(label[keep].tolist())}
    return {title: keep for title, keep in sets.items() if title not in lacking}, lacking
