"""Features of N pairs: columns at once, against scikit-learn's CountVectorizer and plain dictionaries.

    python benchmarks/features.py [pairs] [repeats]

All three make the uni- and bigrams of both sides by one tokenizer rule, timed in alternation; the run checks that they
made as much of the same, and prints the best time of each. CountVectorizer is a Python loop per text underneath.
"""

import string
import sys
import time
from itertools import pairwise

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from nli_lib.corpora import planted
from nli_lib.measure.features import features

NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def plain(text):
    return text.lower().translate(NO_PUNCTUATION)


def by_columns(premises, hypotheses):
    return features(premises, hypotheses, shape=False).matrix


def by_count_vectorizer(premises, hypotheses):
    def side(texts):
        counter = CountVectorizer(
            preprocessor=plain, tokenizer=str.split, token_pattern=None, ngram_range=(1, 2), binary=True, dtype=np.uint8
        )
        return counter.fit_transform(texts)

    return sparse.hstack([side(premises), side(hypotheses)], format="csr")


def by_dictionaries(premises, hypotheses):
    """One set of names per pair, a dictionary from name to column, and a sparse matrix of them."""
    columns, indices, starts = {}, [], [0]
    for premise, hypothesis in zip(premises, hypotheses, strict=True):
        found = set()
        for name, text in (("premise", premise), ("hypothesis", hypothesis)):
            words = plain(text).split()
            found.update(f"{word}@{name}" for word in words)
            found.update(f"{a} {b}@{name}" for a, b in pairwise(words))
        indices.extend(columns.setdefault(name, len(columns)) for name in found)
        starts.append(len(indices))
    return sparse.csr_array((np.ones(len(indices), np.uint8), indices, starts), shape=(len(premises), len(columns)))


def main(pairs=20_000, repeats=3):
    corpus = planted.make(pairs, 0)
    ways = {"columns (ours)": by_columns, "CountVectorizer": by_count_vectorizer, "dictionaries": by_dictionaries}
    best, made = dict.fromkeys(ways, np.inf), {}
    for _ in range(repeats):
        for name, way in ways.items():
            start = time.perf_counter()
            made[name] = way(corpus.premise, corpus.hypothesis)
            best[name] = min(best[name], time.perf_counter() - start)
    sizes = {name: (matrix.shape, matrix.nnz) for name, matrix in made.items()}
    if len(set(sizes.values())) != 1:
        raise SystemExit(f"the three ways disagree: {sizes}")
    (rows, columns), nonzeros = sizes["columns (ours)"]
    print(f"{rows:,} pairs, {columns:,} features, {nonzeros:,} ones; best of {repeats}")
    print(f"{'way':<18}{'seconds':>9}{'pairs/s':>12}{'times ours':>12}")
    for name, seconds in best.items():
        print(f"{name:<18}{seconds:>9.3f}{rows / seconds:>12,.0f}{seconds / best['columns (ours)']:>12.1f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
