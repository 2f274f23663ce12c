"""The stress test made by rule. Alone: pytest tests/corpora/test_stress.py"""

import gzip
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_words import corpus_from

from nli_lib.corpora import sources
from nli_lib.corpora.corpus import LABELS, Corpus, CorpusError
from nli_lib.corpora.suites import KEYBOARD, KINDS, NUMBER, TAUTOLOGIES, stress

PAIRS = [("Two dogs win a game.", "The dogs are playing", 0), ("Two dogs win a game.", "A cat sleeps!", 2)]
PAIRS += [('He said "no".', "He is 40 years old.", 1), ("It is a.", "I am", 1)]


class Opposites:
    """A WordNet of two words."""

    def antonyms_in(self, word, context):
        assert word in context
        return {"win": {"lose", "fall_back"}, "no": {"yes"}}.get(word, set())


@pytest.fixture
def corpus():
    return corpus_from(PAIRS, name="own", split="test")


def made(kind, corpus, **more):
    return stress(kind, corpus, wordnet=Opposites(), **more)


@pytest.mark.parametrize(("kind", "premise", "hypothesis"), [
    ("word overlap", "Two dogs win a game.", "The dogs are playing and true is true"),
    ("negation", "Two dogs win a game.", "The dogs are playing and false is not true"),
    ("length mismatch", "Two dogs win a game" + " and true is true" * 5 + ".", "The dogs are playing")])  # fmt: skip
def test_tautologies_by_hand(corpus, kind, premise, hypothesis):
    changed = made(kind, corpus)
    assert (changed.premise[0], changed.hypothesis[0]) == (premise, hypothesis)
    assert np.array_equal(changed.labels, corpus.labels) and changed.table["origin_uid"].tolist() == corpus.uid.tolist()
    assert changed.table[["origin_corpus", "maker"]].drop_duplicates().to_numpy().tolist() == [["own", "rule"]]
    assert changed.table["intended_label"].tolist() == [LABELS[label] for label in corpus.labels]


def test_a_tautology_stands_before_the_final_punctuation_and_cuts_nothing(corpus):
    assert made("word overlap", corpus).hypothesis[1] == "A cat sleeps and true is true!"
    assert made("length mismatch", corpus).premise[2] == 'He said "no"' + " and true is true" * 5 + "."


def test_a_tautology_is_added_to_blanks_and_marks_without_end(corpus):
    for fill in (" " * 20_000, "." * 20_000):  # the search of an end that tries every one as a beginning takes minutes
        corpus.table["premise"] = f"He said{fill}no ?! "
        assert made("length mismatch", corpus).premise[2] == f"He said{fill}no" + " and true is true" * 5 + "?!"


@pytest.mark.parametrize("kind", ["spelling: swap", "spelling: keyboard"])
@pytest.mark.parametrize("seed", range(5))
def test_exactly_one_word_is_misspelt(corpus, kind, seed):
    changed = made(kind, corpus, seed=seed)
    assert changed.skipped == {f"nothing to change ({kind})": 1}  # "I am" has no word of three letters
    for origin, hypothesis in zip(changed.table["origin_uid"], changed.hypothesis, strict=True):
        before = corpus.hypothesis[int(origin[1:])]
        assert len(hypothesis) == len(before)
        differing = [i for i in range(len(before)) if before[i] != hypothesis[i]]
        if kind == "spelling: swap":
            assert sorted(before) == sorted(hypothesis) and differing == [differing[0], differing[0] + 1]
        else:
            (at,) = differing
            row = next(row for row in KEYBOARD if before[at].lower() in row)
            assert abs(row.index(before[at].lower()) - row.index(hypothesis[at].lower())) == 1
            assert before[at].isupper() == hypothesis[at].isupper()


@pytest.mark.parametrize("hypothesis", ["aaa bb", "Aaa bB"])
def test_a_word_of_equal_letters_cannot_be_swapped(corpus, hypothesis):
    same = Corpus(corpus.table.assign(hypothesis=hypothesis), "own", "test")
    assert len(made("spelling: swap", same)) == 0


def test_a_letter_becomes_either_neighbour_and_one_at_the_end_of_a_row_its_only_one(corpus):
    for word, neighbours in (("sss", "ad"), ("aaa", "s"), ("kkk", "jl"), ("ppp", "o")):
        same = Corpus(corpus.table.assign(hypothesis=word), "own", "test")
        found = {letter for seed in range(10) for text in made("spelling: keyboard", same, seed=seed).hypothesis
                 for letter in text}  # fmt: skip
        assert found == {word[0], *neighbours}


def test_antonyms_contradict_and_each_premise_is_used_once(corpus):
    changed = made("antonym", corpus)
    assert changed.hypothesis.tolist() == ["Two dogs lose a game."]  # "no" is too short, "fall_back" is no single word
    assert changed.labels.tolist() == [2] and changed.table["rule"].tolist() == ["win -> lose"]
    assert changed.table["origin_uid"].tolist() == ["u0"]  # the second pair has the same premise


def number_in(text):
    words = {"two": 2}
    found = re.search(r"(more than|less than)? ?(\d+|two)", text.lower())
    return found[1], words.get(found[2]) or int(found[2])


@pytest.mark.parametrize("seed", range(20))
def test_numbers_follow_from_each_other_as_the_labels_say(corpus, seed):
    changed = made("numerical", corpus, seed=seed)
    assert changed.labels.tolist() == [0, 1, 2]
    (_, n), (kind, bound) = number_in(changed.premise[0]), number_in(changed.hypothesis[0])
    assert n > bound if kind == "more than" else n < bound
    assert (changed.premise[1], changed.hypothesis[1]) == (changed.hypothesis[0], changed.premise[0])
    kind, bound = number_in(changed.hypothesis[2])
    assert {"more than": n <= bound, "less than": n >= bound, None: n != bound}[kind]


@pytest.mark.parametrize("text", ["2.5 km", "10:30", "3/4", "1,500 men", "2-year-old", "one man", "1 man", "route66"])
def test_what_is_no_plain_number_is_left_alone(text):
    assert NUMBER.search(text) is None


@pytest.mark.parametrize("kind", KINDS)
def test_rows_depend_on_seed_and_uid_alone(corpus, kind):
    there, back = made(kind, corpus), made(kind, corpus[::-1])
    if kind in ("antonym", "numerical"):
        assert len(there) == len(back)  # of equal premises the first one's uid is taken
    else:
        columns = ["premise", "hypothesis", "label", "rule"]
        both = [each.table.set_index("uid").sort_index()[columns] for each in (there, back)]
        pd.testing.assert_frame_equal(*both)
    assert made(kind, corpus).digest == there.digest


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_corpus_gives_an_empty_set(corpus, kind):
    assert len(made(kind, corpus[:0])) == 0


def test_what_cannot_be_made_is_an_error(corpus):
    with pytest.raises(CorpusError, match="not one of word overlap"):
        stress("overlap", corpus)
    with pytest.raises(CorpusError, match="need wordnet"):
        stress("antonym", corpus)
    two_way = Corpus(corpus.table.assign(label=0), "own", "test", ("entailment", "non_entailment"))
    with pytest.raises(CorpusError, match="three-way"):
        stress(next(iter(TAUTOLOGIES)), two_way)


@pytest.mark.realdata
@pytest.mark.parametrize("kind", ["word overlap", "negation", "length mismatch"])
def test_tautologies_are_those_made_elsewhere_from_multinli(kind):
    """Another hand made these sets from MultiNLI dev matched by the same rule."""
    path = Path(os.environ["NLI_DATA"], "stress", f"regenerated_multinli_{kind.replace(' ', '_')}_matched.jsonl.gz")
    if not path.is_file():
        pytest.skip(f"{path.name} is not at hand")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        theirs = [json.loads(line) for line in file]
    ours = stress(kind, sources.load("mnli", "validation_matched"))
    side = "premise" if kind == "length mismatch" else "hypothesis"
    texts = [row["sentence1" if side == "premise" else "sentence2"] for row in theirs]
    same = np.array([a.split() == b.split() for a, b in zip(getattr(ours, side), texts, strict=True)])
    assert same.mean() > 0.99 and [LABELS[label] for label in ours.labels] == [row["gold_label"] for row in theirs]
