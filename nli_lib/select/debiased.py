"""The training sets of the paper on debiased generation, all of them parts of one pool of pairs.

The pool holds a corpus D0, the pairs G that a plain generator wrote and the pairs G* of the debiased one. A teacher is
confident of some of the generated pairs; the paper marks those with a hat.

sets = debiased_sets(features, labels, source, confident, names=names, seed=0)
sets["Seq-Z"].keep                               # (N,) bool, its pairs
random_twin(sets["Seq-Z"], labels, source)       # as many of each label and source, without the z-filter
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nli_lib.measure.check import check_labels, class_count
from nli_lib.select.selection import Selection
from nli_lib.select.zfilter import z_filter, z_mix

D0, PLAIN, DEBIASED = "D0", "G", "G*"  # sources: the corpus, the plain generator, the debiased one
TAU = 0.95
# Each set and the row of the paper's Table 13 that it belongs to; those cut to a size are named in `cuts`.
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
CUT, TWIN = ", cut to ", ", twin"
CUTS = {
    "Seq-Z": {"D0": "seq-z-matched"},
    "Seq-Z of G": {"D0": "seq-z-plain-matched"},
    "D0 + G*": {"Z-Aug": "d0-and-g-star-as-z-aug"},
    "D0 + G": {"Z-Aug": "d0-and-g-as-z-aug"},
    "Z(G*)": {"D0": "z-g-star-matched"},
    "G* confident": {"D0": "g-star-filtered-matched"},
    "G*": {"D0": "g-star-unfiltered-matched"},
}


class Part(NamedTuple):
    """One training set: keep (N,) bool, its pairs; pool (N,) bool, the pairs that its filter chose from."""

    keep: NDArray[np.bool_]
    pool: NDArray[np.bool_]

    @property
    def size(self) -> int:
        return int(self.keep.sum())


def confident(probabilities: ArrayLike, labels: ArrayLike, *, tau: float = TAU) -> Selection:
    """Keep a pair whose label the teacher gives more than ``tau``.

    probabilities (N, C) of the teacher, labels (N,) the intended ones. Exactly ``tau`` is not enough. A teacher that is
    never so sure keeps nothing, and each pair says so in its reason.
    Source: the paper on debiased generation, section 2.2.2 and Table 8, tau = .95 (Z10).
    """
    probabilities = np.asarray(probabilities, dtype=float)
    gold = check_labels(labels, len(probabilities), probabilities.shape[1])
    own = probabilities[np.arange(len(gold)), gold]
    if not np.isfinite(own).all():
        raise ValueError(f"{int((~np.isfinite(own)).sum())} probabilities are not finite: the teacher gives no answer")
    other = (probabilities.argmax(axis=1) != gold) & (own <= tau)
    reason = np.where(other, "the teacher gives another label", f"the teacher gives its label {tau:g} or less")
    return Selection(own > tau, np.where(own > tau, "kept", reason).astype(object))


def debiased_sets(
    features: sparse.sparray,
    labels: ArrayLike,
    source: ArrayLike,
    confident: ArrayLike,
    *,
    seed: int = 0,
    **options: object,
) -> dict[str, Part]:
    """The paper's training sets by title, in the order of `ROWS`.

    features (N, V) and labels (N,) of the pool; source (N,) of `D0`, `PLAIN`, `DEBIASED`; confident (N,) bool, which is
    not asked for pairs of D0. ``options`` go to `z_filter`, which draws its order with ``seed``.

    "Z(D0)", "Z(G*)"           filtered by themselves; "G*" is unfiltered, all others hold confident pairs of G and G*
    "D0 + G*", "D0 + G"        both whole, no z-filter
    "Z-Aug", "Par-Z", "Seq-Z"  as `z_mix` makes them of D0 and G*; "Seq-Z of G": of the plain generator's pairs

    A set can be empty: where the teacher accepts nothing, or the filter keeps nothing. A label that was never generated
    is a label like any other, of which no pair is there.
    Source: the paper on debiased generation, section 4.2 and Table 13.
    """
    matrix, source = sparse.csr_array(features), np.asarray(source, dtype=object)
    options = {
        **options,
        "seed": seed,
        "n_classes": class_count(np.asarray(labels), n_classes=options.get("n_classes")),
    }
    labels = check_labels(labels, matrix.shape[0], options["n_classes"])
    if unknown := sorted(set(source.tolist()) - {D0, PLAIN, DEBIASED}):
        raise ValueError(f"source holds {unknown[0]!r}: it must be one of {D0}, {PLAIN}, {DEBIASED}")
    base, sure = source == D0, np.asarray(confident, dtype=bool)
    plain, star = (source == PLAIN) & sure, (source == DEBIASED) & sure

    def filtered(pool: NDArray) -> Part:
        at = np.flatnonzero(pool)
        return Part(_within(at, z_filter(matrix[at], labels[at], **options).keep, pool), pool)

    def mixed(way: str, made: NDArray) -> Part:
        at = np.flatnonzero(base | made)
        return Part(_within(at, z_mix(way, matrix[at], labels[at], base[at], **options).keep, base), base | made)

    unfiltered = source == DEBIASED
    sets = {
        "D0": Part(base, base),
        "Z(D0)": filtered(base),
        "G*": Part(unfiltered, unfiltered),
        "G* confident": Part(star, unfiltered),
        "Z(G*)": filtered(star),
        "D0 + G*": Part(base | star, base | star),
        "D0 + G": Part(base | plain, base | plain),
        "Z-Aug": mixed("z-aug", star),
        "Par-Z": mixed("par-z", star),
        "Seq-Z": mixed("seq-z", star),
        "Seq-Z of G": mixed("seq-z", plain),
    }
    return {title: sets[title] for title in ROWS}


def random_twin(part: Part, labels: ArrayLike, source: ArrayLike, *, seed: int = 0) -> NDArray[np.bool_]:
    """(N,) bool: the control of a set, as many pairs of each label and source as it has, drawn from what its filter
    chose from. It is the set itself where nothing was filtered."""
    strata = np.unique(
        np.stack([np.asarray(labels).astype(str), np.asarray(source).astype(str)]), axis=1, return_inverse=True
    )
    at = np.flatnonzero(part.pool)
    codes = strata[1].reshape(-1)[at]
    chosen = Selection.where(part.keep[at], dropped="filtered").random_twin(codes, seed)
    return _within(at, chosen.keep, part.pool)


def cuts(sets: Mapping[str, Part], *, seed: int = 0) -> dict[str, Part]:
    """The sets of `CUTS`, cut at random to the size of another where they are larger: "Seq-Z, cut to D0", ..."""
    found = {}
    for title, others in CUTS.items():
        for other in others:
            if title in sets and other in sets and sets[title].size > sets[other].size > 0:
                at, keep = np.flatnonzero(sets[title].keep), np.zeros(len(sets[title].keep), dtype=bool)
                keep[np.random.default_rng(seed).permutation(at)[: sets[other].size]] = True
                found[f"{title}{CUT}{other}"] = Part(keep, sets[title].keep)
    return found


def to_train_on(
    pool: pd.DataFrame, titles: Sequence[str], *, seed: int = 0
) -> tuple[dict[str, NDArray[np.bool_]], dict[str, int]]:
    """The sets of a pool that a model can learn from, each with its controls, and those it cannot, title -> pairs.

    pool    one row a pair: label, source, and for each title two bool columns, its pairs and "<title>, twin"
    titles  of the sets that are wanted

    First the sets, then the twins of those from which a filter took something, then the `cuts` of the sets;
    the twins are not cut. A set that is
    empty, or lacks a label that D0 has, is left out: a model cannot predict a label that it never saw.
    """
    sets = {title: pool[title].to_numpy(dtype=bool) for title in titles}
    twins = {f"{title}{TWIN}": pool[f"{title}{TWIN}"].to_numpy(dtype=bool) for title in titles}
    sets |= {title: keep for title, keep in twins.items() if (keep != sets[title.removesuffix(TWIN)]).any()}
    sets |= {
        title: each.keep for title, each in cuts({name: Part(k, k) for name, k in sets.items()}, seed=seed).items()
    }
    label, base = pool["label"].to_numpy(), (pool["source"] == D0).to_numpy()
    wanted = set(label[base].tolist())
    lacking = {title: int(keep.sum()) for title, keep in sets.items() if wanted - set(label[keep].tolist())}
    return {title: keep for title, keep in sets.items() if title not in lacking}, lacking


def _within(at: NDArray, keep: NDArray, like: NDArray) -> NDArray[np.bool_]:
    """A mask over the pool from one over its positions ``at``."""
    mask = np.zeros(len(like), dtype=bool)
    mask[at[keep]] = True
    return mask
