"""Invented words, a corpus made of them, corpora of a test's own rows, and tables of cases by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from nli_lib.corpora.corpus import LABELS, Corpus

WORDS = "a the dog cat bird man child sleeps runs eats sings outside inside not quickly red old two".split()  # noqa: SIM905
ENTRIES = [*WORDS, *(f"unused{i}" for i in range(20))]  # of a vocabulary


def corpus_from(rows, *, uid="u", name="mine", split="train", classes=LABELS, skipped=None, **columns):
    """Rows of premise, hypothesis and the label's number are pairs "u0", "u1", ...; `columns` are added."""
    table = pd.DataFrame(rows, columns=["premise", "hypothesis", "label"])
    table = table.assign(uid=[f"{uid}{at}" for at in range(len(table))], corpus=name, split=split, **columns)
    return Corpus(table, name, split, classes, skipped or {})


def make_corpus(n, seed=0):
    """Pairs of one to nine words; the label is given by the hypothesis's first word."""
    random = np.random.default_rng(seed)

    def sentences():
        return [" ".join(random.choice(WORDS, random.integers(1, 10))) for _ in range(n)]

    premise, hypothesis = sentences(), sentences()
    label = [WORDS.index(text.split()[0]) % 3 for text in hypothesis]
    return corpus_from(zip(premise, hypothesis, label, strict=True), uid="x", name="tiny")


def cases(name):
    """The table of this name in tests/cases, one case by hand a line."""
    return yaml.safe_load((Path(__file__).parent / "cases" / f"{name}.yaml").read_text(encoding="utf-8"))
