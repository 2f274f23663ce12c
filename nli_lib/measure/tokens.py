"""Words of many texts at once, as integers: the tokenizer behind every lexical measure.

A token is what is left of a text after lower-casing it, deleting ASCII punctuation (inside words too: "there's" becomes
"theres") and splitting on white space. Paper 001 names no tokenizer; this rule reproduces every feature it shows.
The work is done on columns by Arrow, so there is no Python loop over texts or tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

ASCII_PUNCTUATION = r"[!-/:-@\[-`{-~]"  # the 32 characters of string.punctuation, as four ranges
WHITE_SPACE = r"[\s\x0b\x1c-\x1f\x85\p{Z}]+"  # what str.split() splits on


@dataclass(frozen=True)
class Tokens:
    """Tokens of N texts: text i holds `ids[offsets[i]:offsets[i + 1]]`, indices into the sorted `vocabulary`."""

    ids: NDArray[np.int64]  # (T,)
    offsets: NDArray[np.int64]  # (N + 1,)
    vocabulary: pa.Array  # (W,) strings

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each text, (N,)."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The text that each token belongs to, (T,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)

    def counts(self) -> sparse.csr_array:
        """How often each word occurs in each text, sparse (N, W) int64 with sorted columns."""
        shape = (len(self.offsets) - 1, len(self.vocabulary))
        table = sparse.csr_array((np.ones(len(self.ids), np.int64), self.ids.copy(), self.offsets), shape=shape)
        table.sum_duplicates()
        return table

    def split(self, texts: int) -> tuple[Tokens, Tokens]:
        """The first `texts` texts and the rest, with one vocabulary."""
        cut = self.offsets[texts]
        return (
            Tokens(self.ids[:cut], self.offsets[: texts + 1], self.vocabulary),
            Tokens(self.ids[cut:], self.offsets[texts:] - cut, self.vocabulary),
        )


def tokenize(texts: Sequence[str]) -> Tokens:
    """Tokens of every text. The vocabulary is sorted, so it does not depend on the order of the texts."""
    words = pc.utf8_lower(_strings(texts))
    words = pc.replace_substring_regex(words, ASCII_PUNCTUATION, "")
    words = pc.utf8_trim(pc.replace_substring_regex(words, WHITE_SPACE, " "), " ")
    parts = pc.split_pattern(words, " ")
    empty = np.asarray(pc.equal(words, ""))  # splitting "" gives one empty token
    counts = np.where(empty, 0, np.asarray(pc.list_value_length(parts)))
    flat = pc.list_flatten(parts)
    coded = flat.filter(pc.not_equal(flat, "")).dictionary_encode()
    order = np.asarray(pc.array_sort_indices(coded.dictionary))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Tokens(rank[np.asarray(coded.indices)], offsets, coded.dictionary.take(pa.array(order)))


def _strings(texts: Sequence[str]) -> pa.Array:
    """An Arrow column of the texts, or an error that names the first value that is not a string."""
    values = np.asarray(texts, dtype=object)
    try:
        column = pa.array(values, type=pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        column = None
    if column is None or column.null_count:
        row, bad = next((i, text) for i, text in enumerate(values) if not isinstance(text, str))
        raise ValueError(f"text at position {row} is {bad!r}, not a string: drop or repair it first")
    return column
