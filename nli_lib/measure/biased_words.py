"""Which words of a pair make the features that it holds: from n-gram features back to the words of the two texts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from nli_lib.measure.artifacts import SIDES, side_of
from nli_lib.measure.check import check_pairs
from nli_lib.measure.tokens import Words, tokenize


class Flagged(NamedTuple):
    """Words that contribute to features: `premise` and `hypothesis` hold a boolean for each word of all those texts end
    to end, as `measure.tokens.tokenize` has them; `whole` (N,), pairs with a feature that is no n-gram, and so concerns
    every token of the hypothesis."""

    premise: NDArray[np.bool_]
    hypothesis: NDArray[np.bool_]
    whole: NDArray[np.bool_]


def flagged_words(
    premises: Sequence[str], hypotheses: Sequence[str], fires: sparse.sparray, names: ArrayLike
) -> Flagged:
    """The words of N pairs that contribute to the features that `fires` (N, V) says, with their names (V,).

    An n-gram flags each of its occurrences on its side, and every other feature (length, overlap, a prediction) the
    whole hypothesis: see `Flagged`. Features that a pair does not hold flag nothing in it.
    Source: the paper on debiased generation, section 4.1, where flagged tokens have the mask m = 0.
    """
    count = check_pairs(premises, hypotheses)
    names, (row, column) = np.asarray(names, dtype=object), sparse.csr_array(fires).nonzero()
    if fires.shape != (count, len(names)):
        raise ValueError(f"fires has shape {fires.shape} for {count} pairs and {len(names)} features")
    side = side_of(names)
    words = tokenize(np.concatenate([np.asarray(premises, object), np.asarray(hypotheses, object)]))
    grams = _grams(names, words)
    found = {}
    for name, text in zip(SIDES, words.split(count), strict=True):
        here = side[column] == name
        found[name] = _occurrences(text, row[here], grams[column[here]])
    whole = np.zeros(count, bool)
    whole[row[side[column] == ""]] = True
    return Flagged(found["premise"], found["hypothesis"], whole)


def _grams(names: NDArray, words: Words) -> NDArray[np.int64]:
    """(V, 2) the vocabulary's numbers of an n-gram's words; the second is -1 for a single word, both for no n-gram."""
    bare = pd.Series(names, dtype=object).str.replace(r"@(premise|hypothesis)$", "", regex=True)
    parts = bare.str.split(" ", n=1, expand=True).reindex(columns=[0, 1])
    ids = [pc.index_in(pa.array(parts[at], pa.large_string(), from_pandas=True), words.vocabulary) for at in (0, 1)]
    return np.column_stack([np.asarray(pc.fill_null(each, -1)) for each in ids]).astype(np.int64)


def _occurrences(text: Words, row: NDArray, grams: NDArray) -> NDArray[np.bool_]:
    """Where in the texts (T,) the n-grams `grams` (F, 2) occur that text `row` (F,) is asked for."""
    width = len(text.vocabulary) + 1

    def key(at: NDArray, first: NDArray, second: NDArray) -> NDArray[np.int64]:
        return (at * width + first) * width + second + 1

    asked = key(row, *grams.T)
    flagged = np.isin(key(text.rows, text.ids, np.int64(-1)), asked)
    pair = np.isin(key(text.rows[:-1], text.ids[:-1], text.ids[1:]), asked) & (text.rows[1:] == text.rows[:-1])
    flagged[:-1] |= pair
    flagged[1:] |= pair
    return flagged
