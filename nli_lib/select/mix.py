"""Training sets made of two corpora: B added to A ("A + B"), or swapped in for as many pairs of A ("A ◇ B").

swap_in(mnli, wanli, seed=0)                    # as large as mnli, and all of wanli in it
mixtures(mnli, {"WANLI": wanli}, part=1000)     # both ways of mixing, for a comparison
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.corpora.corpus import Corpus, CorpusError, concat
from nli_lib.select.folds import linked, sample_of_groups
from nli_lib.select.selection import Selection

TWIN = "random twin"  # other pairs of the corpus itself
MADE_FROM = ("origin_uid", "pairID")  # columns that name the example a pair was made from; the second is WANLI's


def swap_in(corpus: Corpus, other: Corpus, *, seed: int = 0) -> Corpus:
    """``corpus`` with as many random pairs as ``other`` has replaced by those of ``other``: the size stays.

    The pairs that stay come first, in their order. Equal seeds drop the same pairs of a corpus for every `other` of one
    size. Raises `CorpusError` where ``other`` is the larger, or has other classes.
    Source: WANLI, section 3.2, random replacement, the diamond of its Table 3 (W15). *Departures*: none; the paper says
    nothing of a seed.
    """
    stays = len(corpus) - len(other)
    if stays < 0:
        raise CorpusError(
            f"{len(other):,} pairs of {other.name} cannot replace pairs of {corpus.name}, which has {len(corpus):,}: "
            "take a part of them."
        )
    return concat([sample(corpus, stays, seed=seed), other], name=f"{corpus.name} ◇ {other.name}")


def add(corpus: Corpus, other: Corpus) -> Corpus:
    """``corpus``, then ``other``. Source: WANLI, section 3.2, augmentation, the plus sign of its Table 3 (W15)."""
    return concat([corpus, other], name=f"{corpus.name} + {other.name}")


def training_sets(
    base: tuple[str, Corpus],
    other: tuple[str, Corpus],
    generated: Mapping[str, Corpus],
    *,
    pairs: int | None,
    share: float,
    seed: int = 0,
) -> dict[str, Corpus]:
    """The training sets of a comparison of A, ``base``, and B, ``other``, both with a title; all are random parts.

    "A", "B"       so many ``pairs`` of each, or all where there are fewer; None: all of A, and as many of B
    "B, part"      the part of B that is mixed in, alone: round(share pairs), or all of B where there are fewer
    "A ◇ B"        that part in the place of as many pairs of A; "A + B": that part added to A
    "A ◇ <name>"   of each of ``generated`` that has as many, as many pairs in the place of as many of A

    and the same two mixtures with `TWIN`, as many pairs of A that are not among the first. It says for "A + B" what
    more pairs do, and for "A ◇ B" what an exchange of pairs does that brings nothing new. Where A has no more pairs,
    there is no twin. All of one seed have the same pairs of A, of which the mixtures "◇" drop the same. Raises
    `CorpusError` where no pair of B would be mixed in.
    """
    (title, corpus), (new, source) = base, other
    first = drawn(corpus, min(pairs or len(corpus), len(corpus)), seed=seed)
    start, rest = corpus[first], corpus[~first]
    part = min(round(share * len(start)), len(source))
    if not part:
        raise CorpusError(
            f"a share of {share:g} of {len(start):,} pairs of {title}, where {new} has {len(source):,}, is no pair: "
            "with nothing to mix in all sets would be one. Ask for a larger share, or give more pairs."
        )
    alone = {
        title: start,
        new: sample(source, min(len(start), len(source)), seed=seed),
        f"{new}, part": sample(source, part, seed=seed),
    }
    pools = {name: pool for name, pool in {new: source, TWIN: rest, **generated}.items() if len(pool) >= part}
    pieces = {name: sample(pool, part, seed=seed) for name, pool in pools.items()}
    swapped = {f"{title} ◇ {name}": swap_in(start, piece, seed=seed) for name, piece in pieces.items()}
    return alone | swapped | {f"{title} + {name}": add(start, pieces[name]) for name in (new, TWIN) if name in pieces}


def sample(corpus: Corpus, size: int, *, seed: int = 0) -> Corpus:
    """``size`` random pairs without replacement, in the corpus's order. With equal seeds a smaller sample is part of a
    larger one. Raises `CorpusError` where the corpus has fewer."""
    return corpus[drawn(corpus, size, seed=seed)]


def drawn(corpus: Corpus, size: int, *, seed: int = 0) -> NDArray[np.bool_]:
    """Which pairs `sample` takes, (N,) bool."""
    if not 0 <= size <= len(corpus):
        raise CorpusError(f"{size:,} pairs of {corpus.name}/{corpus.split} are asked for, and it has {len(corpus):,}.")
    keep = np.zeros(len(corpus), dtype=bool)
    keep[np.random.default_rng(seed).permutation(len(corpus))[:size]] = True
    return keep


def keep_out(corpus: Corpus, size: int) -> Selection:
    """A random part of about ``size`` pairs to test on: no pair outside of it is of the same `families`.

    Source: WANLI, section 2.4 (W14), which draws its test set pair by pair. *Departures*: there the continuations of
    one seed can stand on both sides; here they cannot, as far as the corpus names the seeds. Families are counted, not
    pairs (`folds.sample_of_groups`): where they are of very different sizes, "about" can be far off.
    Raises `CorpusError` where no pair would be kept out, or none left to train on.
    """
    keep = sample_of_groups(corpus.labels, families(corpus), size)
    if size < 1 or keep.all() or not keep.any():
        raise CorpusError(
            f"{size:,} of the {len(corpus):,} pairs of {corpus.name}/{corpus.split} cannot be kept out to test on, "
            "with others left to train on: keep at least one out, and at most half, or add pairs."
        )
    return Selection.where(keep, dropped="trained on", kept="kept out")


def families(corpus: Corpus) -> NDArray[np.int64]:
    """(N,) a number for each pair, equal where two pairs were made from the same example (`MADE_FROM`), have the same
    premise but for case and blanks, or are linked through others. Where no example is named, the premise decides."""
    keys = [pd.Series(corpus.premise).str.lower().str.split().str.join(" ")]
    keys += [corpus.table[name].replace("", None) for name in MADE_FROM if name in corpus.table]
    return linked(*keys)
