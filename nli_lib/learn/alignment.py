"""From words to word pieces: which word pieces of a text are part of words that somebody flagged.

Words are those of `measure.features`: what stands between blanks and is more than ASCII punctuation. A word piece is
flagged when it holds a letter, a digit or any other sign of a flagged word that is not ASCII punctuation: of "there's."
the pieces "there" and "'s" are, and a full stop of its own is not.
"""

import string
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray
from transformers import PreTrainedTokenizerBase

from nli_lib.learn.encode import CHUNK
from nli_lib.learn.pair_text import one_line
from nli_lib.learn.serialise import SequenceError

PUNCTUATION = np.array([ord(sign) for sign in string.punctuation])


def flagged_pieces(
    texts: Sequence[str], words: ArrayLike, tokenizer: PreTrainedTokenizerBase, *, whole: ArrayLike | None = None
) -> NDArray[np.bool_]:
    """Which word pieces of the texts belong to flagged words, in the order of `serialise.pieces`, (T,) bool.

    words  (W,) bool, the words of all texts end to end, as `measure.features.tokenize(texts)` has them
    whole  (N,) bool, texts all of whose pieces are flagged, punctuation too

    Source: the paper on debiased generation, section 4.1: the tokens of an n-gram for an n-gram, all tokens of the
    hypothesis for any other feature. *Departures*: it does not say what becomes of punctuation, which its n-grams leave
    out; a piece that is punctuation alone is not flagged with its word. A piece over two words (in some vocabularies)
    is flagged with either.
    """
    if not tokenizer.is_fast:
        raise SequenceError(f"{tokenizer.name_or_path}: a mask needs a tokenizer that tells where its pieces stand")
    texts = one_line(texts)
    whole = np.zeros(len(texts), bool) if whole is None else np.asarray(whole, bool)
    signs = np.frombuffer("\n".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)  # one text a line
    flagged = _flagged_signs(signs, np.asarray(words, bool))
    sums = np.concatenate([[0], np.cumsum(flagged)])
    first = np.cumsum([0, *(len(text) + 1 for text in texts)])
    found = [np.empty(0, bool)]
    for start in range(0, len(texts), CHUNK):
        part = tokenizer(
            texts[start : start + CHUNK],
            add_special_tokens=False,
            return_attention_mask=False,
            return_offsets_mapping=True,
        )["offset_mapping"]
        text = np.repeat(np.arange(start, start + len(part)), list(map(len, part)))
        span = np.array(list(chain.from_iterable(part)), np.int64).reshape(-1, 2) + first[text, None]
        found.append((sums[span[:, 1]] > sums[span[:, 0]]) | whole[text])
    return np.concatenate(found)


def _flagged_signs(signs: NDArray[np.uint32], words: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the signs of all texts, blanks and line breaks between words, belong to flagged words."""
    gap = (signs == ord(" ")) | (signs == ord("\n"))
    counts = ~gap & ~np.isin(signs, PUNCTUATION)
    chunk = np.cumsum(gap)  # what stands between two gaps is one chunk
    kept = np.bincount(chunk[counts], minlength=int(chunk[-1]) + 1 if len(chunk) else 0) > 0
    if kept.sum() != len(words):
        raise SequenceError(f"{len(words):,} flags for {kept.sum():,} words: flag the words of these very texts")
    of_chunk = np.zeros(len(kept), bool)
    of_chunk[kept] = words
    return counts & of_chunk[chunk] if len(chunk) else counts
