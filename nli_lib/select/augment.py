"""Training sets with counterfactuals: a base, the base and revisions with their originals, and as many other pairs.

sets = students_of(snli, {"DISCO": disco, "Human-CAD": cad}, pairs=6000, added=6000, seed=0)
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nli_lib.corpora.corpus import SIDES, Corpus, CorpusError, concat
from nli_lib.corpora.counterfactuals import Counterfactuals
from nli_lib.select.mix import TWIN, drawn


def students_of(
    pool: Corpus, sets: Mapping[str, Counterfactuals], *, pairs: int, added: int, title: str = "base", seed: int = 0
) -> dict[str, Corpus]:
    """The training sets of a comparison; all are random, and of one seed all have the same base.

    "<title>"           so many ``pairs`` of the pool
    "<title> + <name>"  and so many pairs ``added`` of each set, originals and revisions (`augmentation`)
    "<title> + random twin"  and as many others of the pool as the first set added, of the same labels; what more pairs
                        do. As many as there are where a label has too few
    "<name> alone"      what the first set adds, alone

    ``added`` is lowered to what every set has, so that all add the same number; exact copies of an earlier pair are
    taken out afterwards. Raises `CorpusError` where the pool has fewer than ``pairs``.
    Source: DISCO, section 5.1 (D11): D_train = D^b + D^s + D^c minus duplicates, D^b a random part of the corpus.
    *Departures*: there every set is added whole, so that they differ in size, and no random pairs are added.
    """
    first = drawn(pool, pairs, seed=seed)
    base, rest = pool[first], pool[~first]
    size = min(added, *(len(np.unique(each.origin)) + len(each) for each in sets.values()))
    pieces = {name: augmentation(each, size, seed=seed) for name, each in sets.items()}
    twin = of_labels(rest, np.bincount(next(iter(pieces.values())).labels, minlength=len(pool.classes)), seed=seed)
    every = {f"{title} + {name}": [base, piece] for name, piece in {**pieces, TWIN: twin}.items()}
    alone = {f"{name} alone": [piece] for name, piece in list(pieces.items())[:1]}
    return {name: without_copies(concat(parts, name=parts[-1].name)) for name, parts in
            {title: [base], **every, **alone}.items()}  # fmt: skip


def augmentation(pairs: Counterfactuals, size: int, *, seed: int = 0) -> Corpus:
    """``size`` rows of random originals, each followed by its revisions; of the last one perhaps not all."""
    used = np.unique(pairs.origin)
    turn = np.random.default_rng(seed).permutation(len(used))
    family = np.empty(len(pairs.original), np.int64)
    family[used[turn]] = np.arange(len(used))
    # an original is the first of its family, its revisions follow in their order
    owner = np.concatenate([family[used], family[pairs.origin]])
    order = np.argsort(owner, kind="stable")[:size]
    if len(order) < size:
        raise CorpusError(f"{pairs.revised.name}: {len(owner):,} originals and revisions, {size:,} are asked for")
    return concat([pairs.original[used], pairs.revised], name=pairs.revised.name)[order]


def of_labels(corpus: Corpus, counts: NDArray[np.int64], *, seed: int = 0) -> Corpus:
    """So many random pairs of each label (C,), or all that there are, in the corpus's order."""
    order, keep = np.random.default_rng(seed).permutation(len(corpus)), np.zeros(len(corpus), dtype=bool)
    for label, count in enumerate(counts):
        keep[order[corpus.labels[order] == label][:count]] = True
    return corpus[keep]


def without_copies(corpus: Corpus) -> Corpus:
    """The corpus without pairs that repeat an earlier one, premise, hypothesis and label."""
    return corpus[~corpus.table.duplicated([*SIDES, "label"]).to_numpy()]
