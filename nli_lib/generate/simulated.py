"""Simulated annotators: they stand where no person has looked, in tests and at scale smoke. No finding rests on them.

They read the planted truth instead of the pair. What they do is drawn with stated rates, so that whatever is computed
from their annotations can be compared with what was put in.
"""

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import Corpus
from nli_lib.generate.annotations import NEEDED, SIDES

SLIPS, DISCARDS, REVISES = 0.15, 0.05, 0.1
# what a simulated revision does to a text: punctuation alone, one word more, or a frame of four words with a pronoun
FRAMES = {"punctuation": "{}!", "a word": "{} indeed", "a frame": "They say of it that {}"}


def simulated_annotations(corpus: Corpus, annotators: int = 2, *, seed: int = 0) -> pd.DataFrame:
    """The annotations of every pair of the planted corpus by so many simulated annotators, independent of each other.

    An annotator gives the planted true label, but with probability `SLIPS` one of the other two; discards a pair with
    probability `DISCARDS`; and revises one of its texts with probability `REVISES`, in one of the three ways of
    `FRAMES`. Columns as in `nli_lib.generate.annotations`; annotators are called "simulated 1", "simulated 2", ...
    """
    generator, truth = np.random.default_rng(seed), corpus.table["true_label"].to_numpy(dtype=int)
    table = corpus.table[["uid", *SIDES]].rename(columns={"uid": "item"})
    n, classes, parts = len(table), len(corpus.classes), []
    for number in range(1, annotators + 1):
        slip = (generator.random(n) < SLIPS) * generator.integers(1, classes, size=n)
        discarded = generator.random(n) < DISCARDS
        side = np.where((generator.random(n) < REVISES) & ~discarded, generator.integers(1, 3, size=n), 0)
        frame = np.array(list(FRAMES.values()))[generator.integers(len(FRAMES), size=n)]
        labels = pd.Series(np.array(corpus.classes, dtype=object)[(truth + slip) % classes]).where(~discarded)
        left = {}
        for at, name in enumerate(SIDES, start=1):
            framed = pd.Series([made.format(text) for made, text in zip(frame, table[name], strict=True)])
            left[f"revised_{name}"] = table[name].where(side != at, framed)
        part = table.assign(annotator=f"simulated {number}", **left, label=labels, discarded=discarded)
        parts.append(part[list(NEEDED)])
    return pd.concat(parts, ignore_index=True)
