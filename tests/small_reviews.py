"""A few pairs to review, and texts that a careless program would run or change."""

import pandas as pd

from nli_lib.corpora.corpus import Corpus

NASTY = [
    "<script>alert(1)</script>", "=HYPERLINK(1)", "two\nlines\r\nand \x1b[31mmore\u2028", "x" * 15_000,
    "\U0001f600 漢 ${premise}"]  # fmt: skip


def corpus(texts=("A dog runs.", "A cat sits.", "It rains."), **columns):
    n = len(texts)
    table = pd.DataFrame({"uid": [f"p{at}" for at in range(n)], "premise": list(texts), "hypothesis": "It moves."})
    return Corpus(table.assign(label=1, corpus="mine", split="train", **columns), "mine", "train")
