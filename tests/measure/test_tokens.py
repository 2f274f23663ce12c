"""Tokens: the column-wise tokenizer against the three string methods that define it."""

import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nli_lib.measure.features import joined, spaced, tokenize, unspaced


def plainly(text):
    return text.lower().translate(str.maketrans("", "", string.punctuation)).split()


def words(tokens):
    vocabulary = tokens.vocabulary.to_pylist()
    return [[vocabulary[i] for i in tokens.ids[a:b]] for a, b in zip(tokens.offsets, tokens.offsets[1:], strict=False)]


def test_examples_of_the_paper():
    texts = ["There's a man!", "The New-York  Yankees\twin.", "", " ... ", "a"]
    assert words(tokenize(texts)) == [["theres", "a", "man"], ["the", "newyork", "yankees", "win"], [], [], ["a"]]


@settings(max_examples=100)
@given(
    st.lists(
        st.text(st.sampled_from("aAbZéÉßø09 .,'!-_`~[]{}\\^\t\n\r\x0b\x0c\x1c\x85\u00a0\u2003\u3000"), max_size=12),
        max_size=8,
    )
)
def test_slow_twin(texts):
    assert words(tokenize(texts)) == [plainly(text) for text in texts]


def test_wide_white_space_at_the_end_of_the_last_text_is_white_space():
    assert words(tokenize(["a É\u00a0", "a É\u00a0"])) == [["a", "é"]] * 2
    assert words(tokenize(["\u3000"])) == [[]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("雨，停了。", "雨 停 了"),
        ("他有3.5只 iPhone", "他 有 3 5 只 iphone"),
        ("コーヒーを飲む", "コ ー ヒ ー を 飲 む"),
        ("น้ำดื่ม", "น้ ำ ดื่ ม"),  # a character keeps its marks
        ("ខ្ញុំ\u200bទៅ", "ខ្ ញុំ ទៅ"),
        ("ကျွန်တော်", "ကျွ န် တော်"),
        ("ຂ້ອຍໄປ", "ຂ້ ອ ຍ ໄ ປ"),
    ],
)
def test_texts_without_blanks_are_split_into_characters(text, expected):
    assert words(tokenize([text, "a"])) == [expected.split(), ["a"]]
    assert unspaced([text, "", "a"]).tolist() == [True, False, False]


@pytest.mark.parametrize(
    "text",
    [
        "韓美 회담",
        "비가 그쳤다. 韓美",
        "Não há pão — só água.",
        "The name 北京大学 is known.",
        "“” —",
        "دفتر",
        "дождь идёт",
    ],
)
def test_texts_with_blanks_are_as_they_were(text):
    assert words(tokenize([text, "雨停了"])) == [plainly(text), ["雨", "停", "了"]]
    assert spaced([text])[0].as_py() == text


def test_punctuation_may_stay_and_blanks_are_taken_out_again():
    assert spaced(["雨，停了。"], marks=r" \0 ").to_pylist() == ["雨 ， 停 了 。"]
    assert joined(["雨 停 了@hypothesis", "a b", "有 iPhone 了"]) == ["雨停了@hypothesis", "a b", "有 iPhone 了"]


def test_vocabulary_is_sorted_and_shared_by_both_halves():
    tokens = tokenize(["b a", "c", "a"])
    assert tokens.vocabulary.to_pylist() == ["a", "b", "c"]
    first, rest = tokens.split(1)
    assert words(first) == [["b", "a"]]
    assert words(rest) == [["c"], ["a"]]


def test_counts():
    assert tokenize(["a b a", "", "b"]).counts().toarray().tolist() == [[2, 1], [0, 0], [0, 1]]


@pytest.mark.parametrize("bad", [None, float("nan"), 3])
def test_what_is_not_a_string_is_named(bad):
    with pytest.raises(ValueError, match="position 1"):
        tokenize(np.array(["fine", bad], dtype=object))


def test_counting_leaves_the_tokens_as_they_are():
    tokens = tokenize(["a a b", "c c", ""])
    first, second = tokens.counts(), tokens.counts()
    assert tokens.lengths.tolist() == [3, 2, 0]
    assert (first != second).nnz == 0
    assert first.toarray().tolist() == [[2, 1, 0], [0, 0, 2], [0, 0, 0]]


def test_the_vocabulary_is_in_alphabetical_order():
    assert tokenize(["ba Ab, b", "a"]).vocabulary.to_pylist() == ["a", "ab", "b", "ba"]
