"""The features of `pair_ngrams` as their definition says, pair by pair: the slow twin that tests share."""

from itertools import pairwise

import numpy as np

from nli_lib.measure.features import tokenize
from nli_lib.measure.giveaways import LONGEST, RARE, SHARES


def plainly(premises, hypotheses):
    """The definition, with a set of names for each pair; a dense table of sorted columns."""
    rows = []
    for premise, hypothesis in zip(premises, hypotheses, strict=True):
        p, h = ([words.vocabulary[i].as_py() for i in words.ids]
            for words in (tokenize([premise]), tokenize([hypothesis])))  # fmt: skip
        names = {("says", w) for w in h} | {("then", a, b) for a, b in pairwise(h)}
        names |= {("lacks", w) for w in set(h) - set(p)} | {("only", w) for w in set(p) - set(h)}
        share = len(set(h) & set(p)) / max(len(set(h)), 1)
        names |= {("share", sum(share >= limit for limit in SHARES)), ("long", min(len(h), LONGEST))}
        rows.append(names)
    every = sorted({name for names in rows for name in names}, key=str)
    table = np.array([[name in names for name in every] for names in rows], dtype=float)
    return table[:, table.sum(axis=0) >= RARE]
