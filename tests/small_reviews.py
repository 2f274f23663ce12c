"""A few pairs to review, and texts that a careless program would run or change."""

from tiny_words import corpus_from

NASTY = [
    "<script>alert(1)</script>", "=HYPERLINK(1)", "two\nlines\r\nand \x1b[31mmore\u2028", "x" * 15_000,
    "\U0001f600 漢 ${premise}"]  # fmt: skip


def corpus(texts=("A dog runs.", "A cat sits.", "It rains."), **columns):
    return corpus_from([(text, "It moves.", 1) for text in texts], uid="p", **columns)
