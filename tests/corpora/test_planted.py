"""The planted corpus and its counterfactuals hold what they say. Alone: pytest tests/corpora/test_planted.py"""

import re

import numpy as np
import pandas as pd
import pytest
from cells import functions

from nli_lib.corpora import planted
from nli_lib.corpora.corpus import C, CorpusError, E, N, duplicates, overlap
from nli_lib.corpora.planted import PATTERNS, counterfactuals, draw, edit, edits

NOTHING = dict.fromkeys(("flips", "ambiguous", "artifact", "overlap", "length", "giveaway"), 0.0)


@pytest.fixture(scope="module")
def corpus():
    return planted.make(6000, 5)


def test_same_seed_same_corpus(corpus):
    assert planted.make(6000, 5).digest == corpus.digest and planted.make(6000, 6).digest != corpus.digest


@pytest.mark.parametrize(("make", "arguments", "strengths", "digest"), [
    (planted.make_split, ("train", 300, 0), {}, "3ef363b0be365f6e"),
    (planted.make_split, ("validation", 300, 7), {}, "9b2e9c247e02fe54"),
    (planted.make_split, ("test", 1200, 1), {}, "19cbc647faab255c"),
    (planted.make_split, ("challenge", 6000, 123), {}, "bb6418ef35ad7e47"),
    (planted.make, (2500, 5), NOTHING, "abc25444f87b656d"),
    (planted.make, (2500, 0), {"flips": 0.3, "ambiguous": 0.4}, "79a17ae1e54da417"),
    (planted.make, (2500, 5), {"against": True, "overlap": 0.9, "length": 0.8}, "c50fb4b4e4aa7266")])  # fmt: skip
def test_the_corpus_of_a_seed_never_changes(make, arguments, strengths, digest):
    """Recorded tables and trained runs are of these corpora: words.yaml and patterns.yaml keep their order."""
    assert make(*arguments, **strengths).digest[:16] == digest


def test_labels_are_balanced_and_pairs_are_distinct(corpus):
    assert np.bincount(corpus.labels).tolist() == [2000, 2000, 2000] and duplicates(corpus)["pairs"].sum() == 0
    assert corpus.table["uid"].is_unique


def test_columns_say_what_the_row_is(corpus):
    t = corpus.table
    assert (t.flipped == (t.label != t.true_label)).all() and not (t.flipped & t.ambiguous).any()
    assert t.flipped.mean() == pytest.approx(0.06, abs=0.012) and t.ambiguous.mean() == pytest.approx(0.08, abs=0.015)
    specific = (t.label[t.flipped] == E) & (t.true_label[t.flipped] == N)
    assert specific.mean() == pytest.approx(0.75, abs=0.08)
    families = {pattern.family for pattern in PATTERNS}
    assert set(t.family) == families and len(families) >= 12
    worded = t[t.artifact_word != ""]
    assert all(word in text.lower() for word, text in zip(worded.artifact_word, worded.hypothesis, strict=True))
    assert (t[t.planted.str.contains("word")].artifact_word != "").all()
    for label, phrase in planted.GIVEAWAYS.items():
        has = t.hypothesis.str.lower().str.contains(phrase, regex=False)
        assert (has == (t.planted.str.contains("giveaway") & (t.label == label))).all()


def test_ambiguous_labels_are_drawn_between_two(corpus):
    """Neutral is the other label of both kinds: half of the ambiguous pairs are neutral, a quarter each of the rest."""
    counts = np.bincount(corpus.labels[corpus.table.ambiguous], minlength=3) / corpus.table.ambiguous.sum()
    assert counts == pytest.approx([0.25, 0.5, 0.25], abs=0.08)


def test_artifacts_go_with_the_given_label(corpus):
    t = corpus.table
    for label, words in planted.ARTIFACT_WORDS.items():
        assert (t.label[t.artifact_word.isin(words)] == label).mean() > 0.7
    lengths = t.hypothesis.str.split().str.len()
    assert lengths[t.label == N].mean() > lengths[t.label == E].mean() + 1


def test_challenge_points_the_other_way():
    t = planted.make_split("challenge", 3000).table
    for label, words in planted.ARTIFACT_WORDS.items():
        assert (t.label[t.artifact_word.isin(words)] == label).mean() < 0.2
    assert not (t.flipped | t.ambiguous).any()


def test_splits_share_nothing_and_test_is_clean():
    splits = {name: planted.make_split(name, 1500) for name in planted.SPLITS}
    assert not splits["test"].table[["flipped", "ambiguous"]].any(axis=None)
    assert splits["validation"].table.flipped.any()
    for name in ("validation", "test", "challenge"):
        assert overlap(splits[name], splits["train"])["pairs"].sum() == 0
    uids = np.concatenate([c.uid for c in splits.values()])
    assert len(set(uids)) == len(uids)


def test_strength_zero_plants_nothing():
    t = planted.make(1000, 0, **NOTHING).table
    assert (t.planted == "").all() and (t.label == t.true_label).all()


def test_every_pattern_can_take_every_label_and_every_slot_exists():
    slots = set(draw(3, np.random.default_rng(0)))
    for pattern in PATTERNS:
        assert all(len(side) >= 1 for side in pattern.premises[:3])
        sides = [premise for side in pattern.premises[:3] for premise in side]
        assert len(set(sides)) == len(sides), f"one premise of {pattern.hypothesis} stands under two labels"
        assert set(re.findall(r"\{(.*?)\}", " ".join([pattern.hypothesis, *sides]))) <= slots


def test_slots_of_a_pair_exclude_each_other():
    said = {name: said for name, (said, _) in draw(2000, np.random.default_rng(1)).items()}
    for one, two in (("a", "b"), ("a.kind", "b.kind"), ("x.kind", "y.kind"), ("v", "u"), ("i", "j"), ("l", "m")):
        assert (said[one] != said[two]).all()
    assert (said["month.season"] != said["later.season"]).all()
    assert set(zip(said["l.side"], said["m.side"], strict=True)) == {("indoors", "outdoors"), ("outdoors", "indoors")}


@pytest.mark.parametrize(("make", "arguments", "message"), [
    (planted.make, {"n": 0}, "n=0"),
    (planted.make, {"n": 5, "flips": 0.9}, "flips=0.9"),
    (planted.make, {"n": 5, "artifact": -0.1}, "artifact=-0.1"),
    (planted.make_split, {"split": "dev"}, "no split 'dev'"),
    (counterfactuals, {"n": 10, "broken": 1.5}, "broken"),
    (counterfactuals, {"n": 10, "flips": 0.1}, "flips"),
    (counterfactuals, {"n": 10, "split": "dev"}, "dev"),
    (counterfactuals, {"n": 10, "word": 0.1}, "word")])  # fmt: skip
def test_what_there_is_not_is_refused(make, arguments, message):
    with pytest.raises(CorpusError, match=message):
        make(**arguments)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_small_corpora(n):
    assert len(planted.make(n)) == n and [len(each) for each in counterfactuals(n, 0)] == [n, 2 * n]


def test_the_label_order_is_the_librarys():
    """Three pairs known by their words."""
    t = planted.make(4000, 2, **NOTHING).table
    both = t[t.family == "negation"]
    refused = both[both.premise.str.contains("refused to") & ~both.hypothesis.str.contains("did not")]
    assert set(refused.label) == {N, C}  # N: somebody else refused
    said_so = both[both.premise.str.contains("managed to") & ~both.hypothesis.str.contains("did not")]
    assert set(said_so.label) == {E, N}
    hoped = both[both.premise.str.contains("hoped to")]
    assert (hoped.label == N).all()


def test_what_was_planted_can_be_asked_for_by_name():
    chapter, corpus = functions("62_planted_truth", np=np, pd=pd), planted.make_split("train", 300, seed=2)
    truths = chapter.planted_truths(corpus)
    assert {len(mask) for mask in truths.values()} == {300}
    assert truths["flipped label"].sum() == corpus.table["flipped"].sum() > 0
    assert {"indeed@hypothesis", "it is@hypothesis"} <= chapter.planted_ngrams(0)
    words = chapter.planted_words(["x@premise", "indeed@hypothesis", "however@hypothesis"])
    assert words.to_numpy().tolist() == [[0, 1], [2, 2]]


# ---------------------------------------------------------------- edits


@pytest.mark.parametrize(("before", "after", "found"), [
    ("The nurse failed to sing.", "The nurse managed to sing.", ("failed", "managed")),
    ("The nurse sang.", "The nurse sang loudly.", ("sang", "sang loudly")),
    ("The nurse sang loudly.", "The nurse sang.", ("sang loudly", "sang")),
    ("The nurse sang, but not here.", "The nurse sang there, not here.", ("sang, but", "sang there,")),
    ("Nobody sang.", "Everybody sang.", ("Nobody", "Everybody")),
    ("a a", "a", ("a a", "a")),
    ("The nurse sang." + " " * 100_000, "The nurse slept." + " " * 100_000, ("sang", "slept"))])  # fmt: skip
def test_the_edit_between_two_texts(before, after, found):
    assert edit(before, after) == found


@pytest.mark.parametrize(("before", "after"), [("A nurse sang.", "A nurse sang."), ("Yes", "No")])
def test_texts_that_no_edit_leads_between(before, after):
    with pytest.raises(ValueError, match="no single edit"):
        edit(before, after)


# ---------------------------------------------------------------- counterfactuals


@pytest.fixture(scope="module")
def made():
    return counterfactuals(1200, 3, broken=0.3)


def test_equal_arguments_give_equal_corpora_and_others_do_not(made):
    again = counterfactuals(1200, 3, broken=0.3)
    assert [each.digest for each in again] == [each.digest for each in made]
    assert counterfactuals(1200, 4, broken=0.3)[1].digest != made[1].digest


def test_every_original_has_a_revision_towards_each_other_label(made):
    originals, revised = made
    assert np.bincount(originals.labels).tolist() == [400, 400, 400]
    assert (originals.table["true_label"] == originals.labels).all()
    assert (revised.table["origin_uid"].to_numpy() == np.repeat(originals.uid, 2)).all()
    labels = np.column_stack([originals.labels, revised.labels.reshape(-1, 2)])
    assert (np.sort(labels, axis=1) == [E, N, C]).all() and duplicates(originals)["pairs"].sum() == 0


def test_broken_says_that_the_label_was_missed_and_half_of_them_keep_the_old_one(made):
    originals, revised = made
    table, old = revised.table, np.repeat(originals.labels, 2)
    assert (table["broken"] == (table["true_label"] != table["label"])).all()
    assert table["broken"].mean() == pytest.approx(0.3, abs=0.03)
    assert (table["true_label"] == old)[table["broken"]].mean() == pytest.approx(0.43, abs=0.1)
    assert not counterfactuals(200, 0)[1].table["broken"].any()
    assert counterfactuals(200, 0, broken=1.0)[1].table["broken"].all()


def test_one_edit_leads_from_a_premise_to_its_revision(made):
    originals, revised = made
    edited = revised.table[["premise", "span", "replacement"]].itertuples(index=False)
    for before, (after, span, new) in zip(np.repeat(originals.premise, 2), edited, strict=True):
        assert span and new
        places = [at for at in range(len(before)) if before.startswith(span, at)]
        assert any(before[:at] + new + before[at + len(span) :] == after for at in places)
    assert (np.repeat(originals.hypothesis, 2) == revised.hypothesis).all()
    assert (np.repeat(originals.premise, 2) != revised.premise).all()


def test_the_grammar_gives_both_premises_the_labels_that_are_said():
    """A slow twin: every form of an edit stands under its label in the grammar, in one pattern."""
    places = {(p.hypothesis, form, label) for p in PATTERNS for label in (E, N, C) for form in p.premises[label]}
    known = edits()
    assert set(known["label"]) == {E, N, C}
    for _, hypothesis, premise, label, becomes in known.itertuples(index=False):
        assert (hypothesis, premise, label) in places
        assert all((hypothesis, other, to) in places for to in (E, N, C) for other in becomes[to])
