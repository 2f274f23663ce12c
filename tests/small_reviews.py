"""A few pairs to review, and texts that a careless program would run or change."""

import numpy as np
import pandas as pd
from tiny_words import corpus_from

NASTY = [
    "<script>alert(1)</script>", "=HYPERLINK(1)", "two\nlines\r\nand \x1b[31mmore\u2028", "x" * 15_000,
    "\U0001f600 漢 ${premise}"]  # fmt: skip


def corpus(texts=("A dog runs.", "A cat sits.", "It rains."), **columns):
    return corpus_from([(text, "It moves.", 1) for text in texts], uid="p", **columns)


def both(ones, others, names="ab", **columns):
    """Two annotators' labels of pairs called 000, 001, ..., which nobody revised, as annotations."""
    texts = {"premise": "a", "hypothesis": "b", "revised_premise": "a", "revised_hypothesis": "b", "discarded": False}
    labels, n = np.array([list(ones), list(others)]).T.ravel(), len(ones)
    table = pd.DataFrame({"item": np.repeat([f"{at:03}" for at in range(n)], 2), "annotator": [*names] * n})
    return table.assign(label=labels, **texts).assign(**columns)
