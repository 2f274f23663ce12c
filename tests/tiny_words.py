"""Invented words and a corpus made of them."""

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import Corpus

WORDS = "a the dog cat bird man child sleeps runs eats sings outside inside not quickly red old two".split()  # noqa: SIM905


def make_corpus(n, seed=0):
    """Pairs of one to nine words; the label is given by the hypothesis's first word."""
    random = np.random.default_rng(seed)

    def sentences():
        return [" ".join(random.choice(WORDS, random.integers(1, 10))) for _ in range(n)]

    premise, hypothesis = sentences(), sentences()
    label = [WORDS.index(text.split()[0]) % 3 for text in hypothesis]
    columns = {"uid": [f"x{i}" for i in range(n)], "premise": premise, "hypothesis": hypothesis, "label": label}
    return Corpus(pd.DataFrame({**columns, "corpus": "tiny", "split": "train"}), "tiny", "train")
