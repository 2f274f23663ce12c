"""Five measures of spurious correlation. Alone: pytest tests/measure/test_spurious.py"""

import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nli_lib.corpora import suites
from nli_lib.errors import PackageError
from nli_lib.measure import dynamics

OPPOSITES = {"win": {"lose"}, "big": {"small", "little"}, "up": {"down"}, "down": {"up"}}
KNOWN = {"a", "dog", "the", "runs", "don't", "no", "win", "big", "up", "down", "small", "3"}


def opposites(word):
    return OPPOSITES.get(word, set())


def unknown(words):
    return {word for word in words if word not in KNOWN}


SPURIOUS = {
    "word overlap": dynamics.word_overlap,
    "length mismatch": dynamics.length_mismatch,
    "negation": dynamics.negation,
    "corrected negation": lambda p, h: dynamics.negation(p, h, corrected=True),
    "misspelled": lambda p, h: dynamics.misspelled(p, h, unknown),
    "corrected misspelled": lambda p, h: dynamics.misspelled(p, h, unknown, corrected=True),
    "antonyms": lambda p, h: dynamics.antonyms(p, h, opposites),
}


def one(measure, premise, hypothesis):
    return float(SPURIOUS[measure]([premise], [hypothesis])[0])


# ---------------------------------------------------------------- by hand


@pytest.mark.parametrize(
    ("measure", "premise", "hypothesis", "expected"),
    [
        ("word overlap", "The dog runs.", "the dog, THE cat", 2 / 4),  # types above, tokens below
        ("word overlap", "a b", "c", 0),
        ("length mismatch", "a b c d", "a b", 1),
        ("length mismatch", "a", "a b c d", -0.75),  # signed
        ("negation", "He is not here.", "He is.", 1),
        ("negation", "Nobody is here.", "He isn't.", 0),  # blind, as the paper's is
        ("corrected negation", "He is.", "He isn't.", 1),
        ("corrected negation", "He is.", "He isn\u2019t.", 1),
        ("corrected negation", "Nobody!", "He is.", 1),
        ("corrected negation", "An ant.", "Went.", 0),
        ("misspelled", "the dgo runs", "the dgo", 1 / 5),  # distinct above, all tokens of both below
        ("misspelled", "I don't", "3", 2 / 3),  # "i" is not in this list, and "dont" looks misspelled
        ("corrected misspelled", "don't", "the dog's", 0),
        ("antonyms", "They win big", "They lose a small, small game", 3 / 6),  # repeats of the hypothesis count
        ("antonyms", "up", "up down", 1 / 2),
        ("antonyms", "They lose", "They win", 0),  # looked up from the premise only
    ],
)
def test_by_hand(measure, premise, hypothesis, expected):
    assert one(measure, premise, hypothesis) == pytest.approx(expected)


@pytest.mark.parametrize("measure", SPURIOUS)
@pytest.mark.parametrize(
    ("premise", "hypothesis"), [("", ""), ("", "a dog"), ("a dog", ""), ("?!...", "--"), ("a", "' ''")]
)
def test_texts_without_a_token_are_defined(measure, premise, hypothesis):
    assert np.isfinite(one(measure, premise, hypothesis))
    if not hypothesis.strip(string.punctuation + " ") and "misspelled" not in measure:
        assert one(measure, premise, hypothesis) == 0


def test_no_pairs_give_no_numbers():
    for measure in SPURIOUS.values():
        assert measure([], []).shape == (0,)


def test_sides_of_unequal_number_are_refused():
    with pytest.raises(ValueError, match="2 premises and 1 hypotheses"):
        dynamics.word_overlap(["a", "b"], ["a"])


def test_base_forms_find_inflected_antonyms():
    base = {"lost": "lose", "won": "win"}
    assert dynamics.antonyms(["they win"], ["they lost"], opposites)[0] == 0
    corrected = dynamics.antonyms(["they win"], ["they lost"], opposites, base_form=lambda word: base.get(word, word))
    assert corrected[0] == 0.5


# ---------------------------------------------------------------- the paper's code as it reads, pair by pair


def words(text):
    return text.lower().translate(str.maketrans("", "", string.punctuation)).split()


def slow(measure, premise, hypothesis):
    t1, t2 = words(premise), words(hypothesis)
    if measure == "misspelled":
        return len(unknown({*t1, *t2})) / len(t1 + t2) if t1 + t2 else 0
    if measure == "negation":
        return float(any(word in t1 + t2 for word in ("no", "not", "never", "none")))
    if not t2:
        return 0
    if measure == "word overlap":
        return len(set(t1) & set(t2)) / len(t2)
    if measure == "length mismatch":
        return (len(t1) - len(t2)) / len(t2)
    called_for = set().union(*(opposites(word) for word in t1)) if t1 else set()
    return sum(word in called_for for word in t2) / len(t2)


WORDS = st.sampled_from(["the", "Dog,", "win", "lose", "big", "small", "not", "don't", "UP", "down", "?!", "xq"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)


@pytest.mark.parametrize("measure", ["word overlap", "length mismatch", "negation", "misspelled", "antonyms"])
@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8))
def test_equal_to_the_slow_twin_in_any_order(measure, pairs):
    premises, hypotheses = zip(*pairs, strict=True)
    got = SPURIOUS[measure](premises, hypotheses)
    np.testing.assert_allclose(got, [slow(measure, *pair) for pair in pairs])
    np.testing.assert_allclose(SPURIOUS[measure](premises[::-1], hypotheses[::-1]), got[::-1])


def test_a_dictionary_is_asked_once_for_each_word():
    asked = []

    def counting(wanted):
        asked.extend(wanted)
        return set()

    dynamics.misspelled(["the dog the dog"] * 50, ["a dog"] * 50, counting)
    assert sorted(asked) == ["a", "dog", "the"]


# ---------------------------------------------------------------- real dictionaries, where they are installed


def test_the_word_list_knows_words_and_numbers():
    pytest.importorskip("spellchecker", reason="pyspellchecker is not installed")
    assert suites.spelling()(["dog", "dgoxq", "theres", "42", "don't"]) == {"dgoxq", "theres"}


def test_wordnets_first_antonyms_and_base_forms():
    try:
        wordnet = suites.Wordnet()
    except PackageError as error:
        pytest.skip(str(error))
    assert "cold" in wordnet.antonyms_of("hot")
    assert wordnet.antonyms_of("qxqx") == set()
    assert "lose" in wordnet.antonyms_of("win")
    assert wordnet.base_form("dogs") == "dog"
    assert wordnet.base_form("qxqx") == "qxqx"


def test_what_is_missing_says_what_to_install(monkeypatch, tmp_path):
    suites._open_wordnet.cache_clear()
    monkeypatch.setattr(suites, "DEBIAN", tmp_path)
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    try:
        with pytest.raises(PackageError, match="wordnet-base|pip install nltk"):
            suites.Wordnet()
    finally:
        suites._open_wordnet.cache_clear()


def test_every_measure_by_name_and_those_without_a_dictionary_left_out():
    texts = (["A dog isn't here.", ""], ["No dog.", "?!"])
    bare = dynamics.every_measure(*texts)
    assert list(bare) == ["word overlap", "length mismatch", "negation", "negation, corrected"]
    assert bare["negation"].tolist() == [1, 0]
    assert all(values.shape == (2,) for values in bare.values())
    full = dynamics.every_measure(*texts, unknown=lambda words: {w for w in words if w in ("isnt", "isn't")})
    assert full["misspelled"].tolist() == [1 / 6, 0]
    assert "antonyms" not in full
