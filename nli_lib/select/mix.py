"""Two corpora in one training set, filtered as the z-filter paper does: Z-Aug, Par-Z, Seq-Z."""

from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse

from nli_lib.corpora.corpus import Corpus
from nli_lib.measure.artifacts import features, highest_z, z_statistics
from nli_lib.measure.check import class_count
from nli_lib.select.selection import KEPT, Selection
from nli_lib.select.zfilter import z_filter

Way = Literal["z-aug", "par-z", "seq-z"]
WAYS = get_args(Way)


def z_mix(way: Way, features: sparse.sparray, labels: ArrayLike, base: ArrayLike, **options: object) -> Selection:
    """What is kept of a corpus D0 and of generated pairs G, which stand in one table.

    "z-aug"  D0 whole, and Z(G | D0): G filtered on counts that start with D0
    "par-z"  Z(D0) and Z(G), each filtered on its own
    "seq-z"  Z(D0), and Z(G | Z(D0))

    features (N, V) and labels (N,) of all pairs, base (N,) bool: True for those of D0; `options` go to `z_filter`.
    The number of classes is that of all labels together, unless `options` say it.
    Source: the z-filter paper, section 3.3. *Departures*: its sizes include duplicates or not, which it does not say;
    here every row counts. The public README swaps the sizes of Par-Z and Seq-Z; the paper's table is followed.
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


def compare_ways(corpus: Corpus, generated: Corpus, **options: object) -> pd.DataFrame:
    """The three ways of `z_mix` on two corpora, by the features of their texts: one row a way; `options` go to it.

    Columns: way, of D0 and of G (shares kept of `corpus` and of `generated`), kept (pairs), highest z among the kept
    pairs, of features that 20 pairs or more have.
    """
    pairs = pd.concat([corpus.table, generated.table])
    labels, base = pairs["label"].to_numpy(), np.arange(len(pairs)) < len(corpus)
    table, rows = features(pairs["premise"], pairs["hypothesis"]), []
    for way in WAYS:
        mixed = z_mix(way, table.matrix, labels, base, names=table.names, **options)
        stats = z_statistics(table.matrix[mixed.positions], labels[mixed.keep], len(corpus.classes))
        shares = {"of D0": mixed.keep[base].mean(), "of G": mixed.keep[~base].mean()}
        rows.append({"way": way, **shares, "kept": mixed.size, "highest z": highest_z(stats, min_count=20)})
    return pd.DataFrame(rows)
