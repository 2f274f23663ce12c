"""Words of many texts at once, as integers: the tokenizer behind every lexical measure.

A token is what is left of a text after lower-casing it, deleting ASCII punctuation (inside words too: "there's" becomes
"theres") and splitting on white space. The z-filter paper names no tokenizer; this rule reproduces every feature that
it shows. The work is done on columns by Arrow, so there is no Python loop over texts or tokens.

Chinese, Japanese, Thai and some others put no blanks between words: there a token is a character (`spaced`), so that
bigrams are pairs of characters and lengths are counted in characters.
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
# of East Asia, and those that Unicode breaks into lines by dictionary alone; Korean has blanks, and is not among them
SCRIPTS = ("Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")
SCRIPTS += ("Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet")
# a character with its marks; the long vowel of Japanese belongs to no script
CHARACTER = "[" + "".join(rf"\p{{{script}}}" for script in SCRIPTS) + r"\x{30FC}]\p{M}*"
UNSPACED = 0.01  # share of texts without blanks from where on a corpus is said to have them
IN_WORD = r"[^\s\p{Z}]"


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
    parts = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(spaced(texts)))
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


def unspaced(texts: Sequence[str] | pa.Array) -> NDArray[np.bool_]:
    """Which texts are written without blanks between words, (N,): half or more of what blanks part in them holds a
    character of `SCRIPTS`, and nothing is Korean. An English text that quotes a Chinese name is not one of them."""
    column = _strings(texts)
    # hardly an English text holds more than ASCII, so that looking costs nothing there
    found, rows = np.zeros(len(column), bool), np.flatnonzero(~np.asarray(pc.string_is_ascii(column)))
    for pattern, wanted in ((CHARACTER, True), (r"\p{Hangul}", False)):
        rows = rows[np.asarray(pc.match_substring_regex(column.take(rows), pattern)) == wanted]
    part = column.take(rows)
    words, theirs = (pc.count_substring_regex(part, f"{IN_WORD}{each}") for each in ("+", f"*{CHARACTER}{IN_WORD}*"))
    found[rows] = 2 * np.asarray(theirs) >= np.asarray(words)
    return found


def spaced(texts: Sequence[str] | pa.Array, *, marks: str = " ") -> pa.Array:
    """The texts with blanks between all that counts as a word, as a column: those that are `unspaced` get them between
    their characters, the others are as they are.

    marks  what takes the place of punctuation in the former; r" \\0 " keeps it, as words of their own
    """
    column = _strings(texts)
    rows = unspaced(column)
    if not rows.any():
        return column
    part = column.filter(pa.array(rows))
    # the third and fourth are a blank and a mark of no width, which Khmer has between words
    for pattern, other in ((r"[\p{P}\x{200B}\x{FEFF}]", marks), (CHARACTER, r" \0 "), (r"[\s\p{Z}]+", " ")):
        part = pc.replace_substring_regex(part, pattern, other)
    return pc.replace_with_mask(column, pa.array(rows), pc.utf8_trim_whitespace(part))


def joined(texts: Sequence[str]) -> list[str]:
    """Texts without the blanks that `spaced` put between two characters, for reading."""
    column = pa.array(texts, pa.large_string())
    for _ in range(2):  # since the second character may be the first of the next two
        column = pc.replace_substring_regex(column, f"({CHARACTER}) ({CHARACTER})", r"\1\2")
    return column.to_pylist()


def _strings(texts: Sequence[str] | pa.Array) -> pa.Array:
    """An Arrow column of the texts, or an error that names the first value that is not a string."""
    if isinstance(texts, pa.Array):
        return texts
    values = np.asarray(texts, dtype=object)
    if pd.api.types.infer_dtype(values, skipna=False) not in ("string", "empty"):
        row, bad = next((i, text) for i, text in enumerate(values) if not isinstance(text, str))
        raise ValueError(f"text at position {row} is {bad!r}, not a string: drop or repair it first")
    return pa.array(values, type=pa.large_string())
