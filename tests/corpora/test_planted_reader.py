"""What the grammar of chapter 64 reads is right, and it reads all it makes.

Alone: pytest tests/corpora/test_planted_reader.py"""

import numpy as np
import pandas as pd
import pytest
from cells import functions

from nli_lib.corpora.corpus import C, E, N
from nli_lib.corpora.planted import PATTERNS, SPLITS, _fill, _sentence, counterfactuals, draw, make, make_split

CHAPTER = functions("64_planted_interventions", np=np, pd=pd)
OUTCOMES = CHAPTER.READ, CHAPTER.AMBIGUOUS_PAIR, CHAPTER.NO_PATTERN, CHAPTER.OUTSIDE
READ, AMBIGUOUS_PAIR, NO_PATTERN, OUTSIDE = OUTCOMES
NO_LABEL, read, read_pairs = CHAPTER.NO_LABEL, CHAPTER.read_pair, CHAPTER.read_pairs
CARRIED = "The nurse carried a musical instrument."


@pytest.mark.parametrize("split", SPLITS)
def test_every_pair_that_the_grammar_makes_is_read_with_its_true_label(split):
    corpus = make_split(split, 500, seed=3)
    found, two = read_pairs(corpus.premise, corpus.hypothesis), corpus.table["ambiguous"].to_numpy(bool)
    assert (found["outcome"][two] == AMBIGUOUS_PAIR).all() and (found["label"][two] == NO_LABEL).all()
    assert (found["outcome"][~two] == READ).all()
    assert (found["label"][~two].to_numpy() == corpus.table["true_label"][~two].to_numpy()).all()
    same = found["family"].to_numpy() == corpus.table["family"].to_numpy()
    assert same.mean() > 0.9  # two families share some forms


def test_strong_artifacts_hide_nothing():
    corpus = make(200, 1, artifact=1.0, length=1.0, giveaway=1.0, overlap=1.0, flips=0.3, ambiguous=0.0)
    found = read_pairs(corpus.premise, corpus.hypothesis)
    assert (found["label"].to_numpy() == corpus.table["true_label"].to_numpy()).all()
    given = (found["label"].to_numpy() == corpus.labels).mean()
    assert given == pytest.approx(1 - corpus.table["flipped"].mean())


def test_every_form_of_every_pattern_has_one_label():
    slots = draw(1, np.random.default_rng(0))
    said = np.zeros(1, dtype=int)
    for pattern in PATTERNS:
        hypothesis = _sentence(_fill(np.array([pattern.hypothesis], object), slots, said))[0]
        for label, forms in enumerate(pattern.premises[:3]):
            for text in forms:
                premise = _sentence(_fill(np.array([text], object), slots, said))[0]
                assert read(premise, hypothesis)[:2] == (label, READ), (premise, hypothesis)


def test_revisions_have_the_label_that_the_edit_gave_them():
    originals, revised = counterfactuals(60, seed=2, broken=0.5)
    for corpus in (originals, revised):
        found = read_pairs(corpus.premise, corpus.hypothesis)
        assert (found["label"].to_numpy() == corpus.table["true_label"].to_numpy()).all()


@pytest.mark.parametrize(("premise", "hypothesis", "label", "outcome"), [
    ("The nurse carried a violin.", CARRIED, E, READ),
    ("the NURSE hauled a fiddle", CARRIED, E, READ),  # a synonym; capitals and the full stop do not count
    ("The nurse carried something.", CARRIED, N, READ),
    ("The nurse carried nothing at all.", CARRIED, C, READ),
    ("The pilot sang at noon. The nurse carried a violin.", CARRIED, NO_LABEL, OUTSIDE),  # no pilot in the lexicon
    ("The mayor sang at noon. The nurse carried a violin.", CARRIED, E, READ),
    ("The nurse carried a violin. The mayor sang at noon.", CARRIED, E, READ),
    ("The nurse carried a hammer.", CARRIED, NO_LABEL, NO_PATTERN),  # true or not, no form joins them
    ("The doctor carried a violin.", CARRIED, NO_LABEL, NO_PATTERN),  # of one kind with the nurse: never drawn so
    ("The nurse dropped a violin.", CARRIED, NO_LABEL, NO_PATTERN),
    ("", "", NO_LABEL, OUTSIDE),
    ("Ths nrse.", "What? No.", NO_LABEL, OUTSIDE),
    ("A. B. C.", CARRIED, NO_LABEL, OUTSIDE)])  # fmt: skip
def test_by_hand(premise, hypothesis, label, outcome):
    assert read(premise, hypothesis)[:2] == (label, outcome)


def test_numbers_stand_as_they_are_drawn():
    hypothesis = "The clerk weighed exactly seven letters."
    assert read("The clerk weighed seven letters, no more and no fewer.", hypothesis)[0] == E
    assert read("The clerk weighed exactly three letters.", hypothesis)[0] == C
    made = "The clerk weighed {} round letters and {} square letters, and no others."
    assert read(made.format("three", "four"), hypothesis)[:2] == (E, READ)  # 3 + 4
    assert read(made.format("three", "five"), hypothesis)[1] != READ  # 8 letters are not 7, and no form says so
    assert read("The clerk weighed exactly nine letters.", hypothesis)[1] != READ  # {few} is less than {both}


def test_artifacts_come_off():
    long = "It so happens that the nurse sang as far as this account goes, frankly."
    for text in ("Indeed, the nurse sang.", "The nurse sang, indeed.", long):
        assert CHAPTER.bare(text) == "the nurse sang"


def test_giveaways_are_those_of_the_label():
    texts = ["Indeed, she sang.", "She sang, INDEED.", "She sang.", "It so happens that she sang.", "Indeedy, no."]
    gives_away = CHAPTER.gives_away
    assert gives_away(texts, [E] * 5).tolist() == [True, True, False, False, False]
    assert gives_away(texts, [C, N, E, N, E]).tolist() == [False, False, False, True, False]
    corpus = make(300, 0, artifact=1.0)
    assert gives_away(corpus.hypothesis, corpus.labels).all()


def test_the_table_is_whole_and_keeps_its_order():
    corpus = make(30, 5)
    premise = np.append(corpus.premise, "Nonsense.")
    hypothesis = np.append(corpus.hypothesis, "More of it.")
    found, order = read_pairs(premise, hypothesis), np.random.default_rng(0).permutation(31)
    assert set(found["outcome"]) <= set(OUTCOMES) and found["outcome"].iloc[-1] == OUTSIDE
    again = read_pairs(premise[order], hypothesis[order])
    assert again.equals(found.iloc[order].reset_index(drop=True)) and read_pairs([], []).empty
    with pytest.raises(ValueError, match="shorter"):
        read_pairs(["one"], [])
