"""Small corpora for the tests of an audit: rows as given, and one with a planted word."""

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.labels import LABELS


def corpus(rows, classes=LABELS, skipped=None):
    table = pd.DataFrame(rows, columns=["premise", "hypothesis", "label"])
    table["label"] = table["label"].map(classes.index)
    table = table.assign(uid=[f"u{at}" for at in range(len(table))], corpus="mine", split="train")
    return Corpus(table, "mine", "train", classes, skipped or {})


def planted(n=240, classes=LABELS):
    """Every third pair has *zebra* in the hypothesis, always with the first label; the other words are drawn."""
    random, rows = np.random.default_rng(0), []
    words = [f"w{at}" for at in range(12)]
    for at in range(n):
        label = classes[at % len(classes)]
        text = " ".join([*random.choice(words, 5), "zebra" if label == classes[0] else random.choice(words)])
        rows.append((f"premise {at // 3} " + " ".join(random.choice(words, 4)), text, label))
    return corpus(rows, classes)
