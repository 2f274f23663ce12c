"""The planted corpus: a grammar with the truth in columns, the specimen that every method is tried on."""

from nli_lib.corpora.planted.corpus import (
    ARTIFACT_WORDS,
    GIVEAWAYS,
    SPLITS,
    make,
    make_split,
    planted_ngrams,
    planted_truths,
    planted_words,
)

__all__ = [
    "ARTIFACT_WORDS",
    "GIVEAWAYS",
    "SPLITS",
    "make",
    "make_split",
    "planted_ngrams",
    "planted_truths",
    "planted_words",
]
