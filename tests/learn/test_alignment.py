"""Word pieces of flagged words. Alone: pytest tests/learn/test_alignment.py"""

import string

import numpy as np
import pytest
from tiny_generator import make_tokenizer

from nli_lib.learn import encode
from nli_lib.learn.encode import SequenceError, flagged_pieces, pieces
from nli_lib.measure.features import tokenize


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


def flagged_text(texts, words, tokenizer, **more):
    """The flagged pieces as text, one string a text."""
    ids, lengths = pieces(texts, tokenizer)
    flags = flagged_pieces(texts, words, tokenizer, **more)
    assert len(flags) == len(ids)
    ends = np.cumsum(lengths)
    return [tokenizer.decode(ids[end - n : end][flags[end - n : end]]) for n, end in zip(lengths, ends, strict=True)]


def test_by_hand(tokenizer):
    texts = ["The dog, outside.", "there's  a -- cat"]
    # words: the dog outside | theres a cat ("--" is none)
    flags = [False, True, True, True, False, True]
    assert flagged_text(texts, flags, tokenizer) == [
        " dog outside",
        "theres cat",
    ]  # a piece that is punctuation alone is not flagged


def test_a_piece_of_several_words_counts_for_each(tokenizer):
    """Pieces of single letters show that the whole word is flagged, whatever the vocabulary makes of it."""
    found = flagged_text(["zyxwv quickly"], [True, False], tokenizer)
    assert found == ["zyxwv"]


def test_slow_twin(tokenizer):
    """Piece by piece: does it hold a sign of a flagged word that is no punctuation?"""
    random = np.random.default_rng(3)
    signs = [*"abcé .,'-\t", "dog", "outside"]
    texts = ["".join(random.choice(signs, 12)) for _ in range(40)] + ["", "...", "é"]
    flags = random.random(len(tokenize(texts).ids)) < 0.4
    ours, wanted, word = flagged_pieces(texts, flags, tokenizer), [], 0
    for text in texts:
        text, flagged = " ".join(text.split()), set()
        at = 0
        for chunk in text.split(" ") if text else ():
            if chunk.strip(string.punctuation):
                if flags[word]:
                    flagged |= {at + k for k, sign in enumerate(chunk) if sign not in string.punctuation}
                word += 1
            at += len(chunk) + 1
        spans = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        wanted += [any(k in flagged for k in range(*span)) for span in spans]
    assert ours.tolist() == wanted and any(wanted) and not all(wanted)


def test_texts_beyond_the_first_chunk_have_their_own_flags(tokenizer, monkeypatch):
    texts, flags = ["a dog.", "a cat eats", "outside", "a dog", "eats."], [0, 1, 0, 0, 1, 1, 0, 1, 1]
    whole = flagged_pieces(texts, flags, tokenizer, whole=[0, 0, 0, 1, 0])
    monkeypatch.setattr(encode, "CHUNK", 2)
    assert flagged_pieces(texts, flags, tokenizer, whole=[0, 0, 0, 1, 0]).tolist() == whole.tolist()


def test_whole_texts_take_their_punctuation_too(tokenizer):
    assert flagged_text(["a dog.", "a cat."], np.zeros(4, bool), tokenizer, whole=[True, False]) == ["a dog.", ""]


def test_flags_of_other_texts_are_refused(tokenizer):
    with pytest.raises(SequenceError, match="2 flags for 3 words"):
        flagged_pieces(["a red dog"], [True, False], tokenizer)
