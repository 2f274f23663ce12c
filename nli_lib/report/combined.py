"""A debiased loss on debiased data: the training sets of chapter 24's pool, without pairs that models are tested on."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import COLUMNS, Corpus, overlap
from nli_lib.select.zfilter import CUT, to_train_on

NO_SETS = pd.DataFrame(columns=["set", "seed", "pairs", "taken out", "left out"])


def training_sets(
    pool: pd.DataFrame, titles: Sequence[str], tests: Mapping[str, Corpus], classes: tuple[str, ...], *, seed: int = 0
) -> tuple[dict[str, Corpus], pd.DataFrame]:
    """The sets of a pool that a model can be trained on, by title, with their random twins, and what became of each.

    pool    as chapter 24 exports it: uid, premise, hypothesis, label, source, seed, and two bool columns a title. It
            holds a pool for each training of the generators; that of ``seed`` is taken, modulo their number
    tests   corpora whose pairs must not be trained on: a pair that one of them has is taken out

    The table has a row a set: set, seed, pairs, taken out, and left out (the set is empty, or lacks a label of D0).
    """
    seeds = sorted(pool["seed"].unique())
    part = pool[pool["seed"] == seeds[seed % len(seeds)]].assign(corpus="pool", split="train").reset_index(drop=True)
    whole = Corpus(part[list(COLUMNS)], "pool", "train", classes)
    seen = np.zeros(len(part), dtype=bool)
    for test in tests.values():
        seen |= overlap(whole, test)["pairs"].to_numpy()
    twins = [f"{title}, twin" for title in titles]
    clean = part.assign(**{title: part[title].astype(bool) & ~seen for title in (*titles, *twins)})
    masks, lacking = to_train_on(clean, titles, seed=seed)
    masks = {title: keep for title, keep in masks.items() if CUT not in title}
    rows = [(title, seed, int(keep.sum()), int((part[title] & seen).sum()), False) for title, keep in masks.items()]
    rows += [(title, seed, n, 0, True) for title, n in lacking.items() if CUT not in title]
    table = pd.DataFrame(rows, columns=list(NO_SETS))
    return {title: whole[keep] for title, keep in masks.items()}, table
