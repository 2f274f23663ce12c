"""Words of many texts at once, as integers: the tokenizer behind every lexical measure.

A token is what is left of a text after lower-casing it, deleting ASCII punctuation (inside words too: "there's" becomes
"theres") and splitting on white space. The z-filter paper names no tokenizer; this rule reproduces every feature that
it shows. The work is done on columns by Arrow, so there is no Python loop over texts or tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

ASCII_PUNCTUATION = r"[!-/:-@\[-`{-~]"  # the 32 characters of string.punctuation, as four ranges


@dataclass(frozen=True)
class Words:
    """Words of N texts: text i holds `ids[offsets[i]:offsets[i + 1]]`, indices into the sorted `vocabulary`."""

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
        # Copies, since summing duplicates rewrites both index arrays in place.
        parts = np.ones(len(self.ids), np.int64), self.ids.copy(), self.offsets.copy()
        table = sparse.csr_array(parts, shape=shape)
        table.sum_duplicates()
        return table

    def split(self, texts: int) -> tuple["Words", "Words"]:
        """The first `texts` texts and the rest, with one vocabulary."""
        cut = self.offsets[texts]
        return (
            Words(self.ids[:cut], self.offsets[: texts + 1], self.vocabulary),
            Words(self.ids[cut:], self.offsets[texts:] - cut, self.vocabulary),
        )


def tokenize(texts: Sequence[str]) -> "Words":
    """Words of every text. The vocabulary is sorted, so it does not depend on the order of the texts.

    Texts are split first and each distinct raw word is cleaned once; neither step makes or takes white space.
    """
    # Trimmed first: Arrow misses white space of several bytes at the very end of a column.
    parts = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(_strings(texts)))
    raw = pc.list_flatten(parts).dictionary_encode()
    cleaned = pc.replace_substring_regex(pc.utf8_lower(raw.dictionary), ASCII_PUNCTUATION, "")
    vocabulary = pc.unique(cleaned)
    vocabulary = vocabulary.filter(pc.not_equal(vocabulary, ""))
    vocabulary = vocabulary.take(pc.array_sort_indices(vocabulary))
    word_of = np.asarray(pc.fill_null(pc.index_in(cleaned, vocabulary), -1)).astype(np.int64)  # -1: nothing was left
    ids = word_of[np.asarray(raw.indices)]
    ends = np.concatenate([[0], np.cumsum(ids >= 0)])  # tokens kept among the first t raw words
    raw_offsets = np.concatenate([[0], np.cumsum(np.asarray(pc.list_value_length(parts)))]).astype(np.int64)
    return Words(ids[ids >= 0], ends[raw_offsets], vocabulary)


def _strings(texts: Sequence[str]) -> pa.Array:
    """An Arrow column of the texts, or an error that names the first value that is not a string."""
    values = np.asarray(texts, dtype=object)
    if pd.api.types.infer_dtype(values, skipna=False) not in ("string", "empty"):
        row, bad = next((i, text) for i, text in enumerate(values) if not isinstance(text, str))
        raise ValueError(f"text at position {row} is {bad!r}, not a string: drop or repair it first")
    return pa.array(values, type=pa.large_string())
