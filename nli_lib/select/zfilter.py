"""z-filter: drop the pairs whose surface features predict their label (Algorithm 1 of the z-filter paper).

`z_filter` takes one corpus, `z_mix` a corpus and generated pairs: Z-Aug, Par-Z, Seq-Z. The paper on debiased generation
makes its training sets with them, all as parts of one pool: a corpus D0, the pairs G of a plain generator, the pairs G*
of the debiased one, and a teacher that is `confident` of some generated pairs, which the paper marks with a hat.
Chapter 24 makes and exports the sets, and `to_train_on` reads the ones that a model can learn from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import yaml
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nli_lib.measure import check_labels, class_count
from nli_lib.measure.features import Ranking, ZStatistics, binary, z_from_counts, z_statistics
from nli_lib.select.selection import KEPT, Selection

# Pairs between two updates of the ranking, minimum and maximum. A batch of one pair locks the filter in half of all
# orders: the null feature, which every pair has, is then among the top features of each label, and no other pair is
# accepted.
BATCHES = (3, 1000)
WAYS = ("z-aug", "par-z", "seq-z")  # ways of mixing


@dataclass(frozen=True, eq=False)
class Filtered(Selection):
    """The pairs that the z-filter keeps, and the features for which it rejects others.

    `hits` (N, V) bool, sparse: the features for which a pair was rejected; `statistics`: those of Z at the end of the
    pass.
    """

    hits: sparse.csr_array
    statistics: ZStatistics

    def by_feature(self, names: ArrayLike, *, most: int = 20) -> pd.DataFrame:
        """The features that rejected the most pairs, in descending order, at most `most` rows.

        Columns: feature (from ``names`` (V,)), pairs (number that it helped to reject), alone (number that no other
        feature rejected), first (position of the first such pair, an example).
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
    """Pass over the pairs once, and accept a pair unless it has one of the k features most correlated with its label.

    Z starts empty or with the seed set. For each batch, z is computed on the current Z
    (`measure.features.z_from_counts`), the k features with the highest z are found for each label, without a threshold
    of significance, and a pair is accepted if it has none of the features of its label. Accepted pairs join Z; rejected
    ones are never reconsidered.

    So without a seed set the whole first batch is accepted, and a single batch as large as the corpus filters nothing.

    Parameters
    ----------
    features
        (N, V) sparse, any nonzero entry fires (`measure.features.features`)
    labels
        (N,) in 0..n_classes-1
    names
        (V,) strings: they break ties and name the reasons; without them, column numbers do both
    given
        (features, labels) of a seed set that Z starts with and that is not filtered: conditional filtering
    batch_size
        pairs between two updates of the ranking; by default `default_batch_size`, a hundredth of the pairs
    n_classes
        by default the number of labels that occur; z compares a label's share with 1 / n_classes

    Notes
    -----
    *Departures*: batch size, order and ties are not in the paper. Here the order is a seeded permutation, a batch has a
    hundredth of the pairs, at least 3 and at most 1,000, ties are exact (`measure.features.z_order`) and go to the more
    frequent feature, then to the first in the alphabet. `min_count` leaves rarer features out of the ranking; the paper
    has none (1). Chapter 21 measures the effect of these choices.

    References
    ----------
    The z-filter paper, section 3.2, Algorithm 1, Table 8 (k = 20). No code was released.

    Examples
    --------
    >>> from nli_lib.corpora.planted import make_split
    >>> from nli_lib.measure.features import features
    >>> from nli_lib.select.zfilter import z_filter
    >>> corpus = make_split("train", 300)
    >>> table = features(corpus.premise, corpus.hypothesis)
    >>> filtered = z_filter(table.matrix, corpus.labels, names=table.names)
    >>> twin = filtered.random_twin(corpus.labels, seed=0)
    >>> filtered.size == twin.size < len(corpus)
    True
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
        owner = np.repeat(np.arange(len(batch)), np.diff(part.indptr))  # (T,) each entry's pair of the batch
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
    """Select from a corpus D0 and generated pairs G, given in one table.

    "z-aug"
        all of D0, and Z(G | D0): G filtered with counts that start from D0
    "par-z"
        Z(D0) and Z(G), filtered separately
    "seq-z"
        Z(D0), and Z(G | Z(D0))

    features (N, V) and labels (N,) of all pairs, base (N,) bool: True for pairs of D0; `options` go to `z_filter`. The
    number of classes is by default the number of labels in the table.

    Notes
    -----
    *Departures*: the paper does not say whether its sizes include duplicates; here every row counts. The public README
    swaps the sizes of Par-Z and Seq-Z; we follow the paper's table.

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
    """A hundredth of the pairs, within `BATCHES`, so that a small corpus is filtered in many batches too."""
    return int(np.clip(pairs // 100, *BATCHES))


def _reasons(keep: NDArray, hits: sparse.csr_array, names: ArrayLike | None) -> NDArray[np.object_]:
    """The reason of each pair: "kept", or the names of the features for which it was rejected, as text."""
    used, place = np.unique(hits.indices, return_inverse=True)
    words = used.astype(str) if names is None else np.asarray(names, dtype=object)[used].astype(str)
    lists = pa.LargeListArray.from_arrays(hits.indptr.astype(np.int64), pa.array(words[place], pa.large_string()))
    reason = pc.binary_join(lists, pa.scalar("; ", pa.large_string())).to_numpy(zero_copy_only=False)
    reason[keep] = KEPT
    return reason


# ---------------------------------------------------------------- debiased


D0, PLAIN, DEBIASED = "D0", "G", "G*"  # sources: the corpus, the plain generator, the debiased one
# Each set and its row in the paper's Table 13; then the sets that are cut to the size of another.
ROWS, CUTS = yaml.safe_load(Path(__file__).with_name("sets.yaml").read_text(encoding="utf-8")).values()
CUT = ", cut to "


def confident(probabilities: ArrayLike, labels: ArrayLike, *, tau: float) -> Selection:
    """Keep the pairs for which the teacher's probability of the label is above ``tau``.

    probabilities (N, C) of the teacher, labels (N,) the intended ones. Exactly ``tau`` is not enough. If the teacher is
    never so sure, nothing is kept, and each reason says so.

    References
    ----------
    The paper on debiased generation, section 2.2.2 and Table 8, tau = .95 (Z10).

    Examples
    --------
    >>> from nli_lib.select.zfilter import confident
    >>> confident([[0.97, 0.02, 0.01], [0.6, 0.3, 0.1]], labels=[0, 0], tau=0.95).keep
    array([ True, False])
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
    """The sets of a pool that a model can learn from, with their controls, and the others, title -> number of pairs.

    The sets come first, then the twins of those from which a filter removed pairs, then the sets of `CUTS`: sets larger
    than another, cut to its size at random; the twins are not cut. A set is left out if it is empty or has no pair of a
    label that D0 has, because a model cannot predict a label that it never saw.

    Parameters
    ----------
    pool
        one row for each pair: label, source, and for each title two bool columns, its pairs and "<title>, twin"
    titles
        titles of the wanted sets
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
