"""The planted corpus holds what it says it holds."""

import numpy as np
import pytest

from nli_lib.corpora import planted
from nli_lib.corpora.corpus import C, CorpusError, E, N, duplicates, overlap
from nli_lib.corpora.planted import PATTERNS, draw

NOTHING = dict.fromkeys(("flips", "ambiguous", "artifact", "overlap", "length", "giveaway"), 0.0)


@pytest.fixture(scope="module")
def corpus():
    return planted.make(6000, 5)


def test_same_seed_same_corpus(corpus):
    assert planted.make(6000, 5).digest == corpus.digest
    assert planted.make(6000, 6).digest != corpus.digest


@pytest.mark.parametrize(
    ("made", "digest"),
    [
        (("train", 300, 0), "3ef363b0be365f6e"),
        (("validation", 300, 7), "9b2e9c247e02fe54"),
        (("test", 1200, 1), "19cbc647faab255c"),
        (("challenge", 6000, 123), "bb6418ef35ad7e47"),
    ],
)
def test_the_corpus_of_a_seed_never_changes(made, digest):
    """Recorded tables and trained runs are of these corpora: words.yaml and patterns.yaml keep their order."""
    assert planted.make_split(*made).digest[:16] == digest


@pytest.mark.parametrize(
    ("seed", "strengths", "digest"),
    [
        (5, NOTHING, "abc25444f87b656d"),
        (0, {"flips": 0.3, "ambiguous": 0.4}, "79a17ae1e54da417"),
        (5, {"against": True, "overlap": 0.9, "length": 0.8}, "c50fb4b4e4aa7266"),
    ],
)
def test_the_corpus_of_other_strengths_never_changes(seed, strengths, digest):
    assert planted.make(2500, seed, **strengths).digest[:16] == digest


def test_labels_are_balanced_and_pairs_are_distinct(corpus):
    assert np.bincount(corpus.labels).tolist() == [2000, 2000, 2000]
    assert duplicates(corpus)["pairs"].sum() == 0
    assert corpus.table["uid"].is_unique


def test_columns_say_what_the_row_is(corpus):
    t = corpus.table
    assert (t.flipped == (t.label != t.true_label)).all()
    assert not (t.flipped & t.ambiguous).any()
    assert t.flipped.mean() == pytest.approx(0.06, abs=0.012)
    assert t.ambiguous.mean() == pytest.approx(0.08, abs=0.015)
    specific = (t.label[t.flipped] == E) & (t.true_label[t.flipped] == N)
    assert specific.mean() == pytest.approx(0.75, abs=0.08)
    families = {pattern.family for pattern in PATTERNS}
    assert set(t.family) == families
    assert len(families) >= 12
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
    assert (t.planted == "").all()
    assert (t.label == t.true_label).all()


def test_every_pattern_can_take_every_label_and_every_slot_exists():
    slots = {name: said for name, (said, _) in draw(3, np.random.default_rng(0)).items()}
    for pattern in PATTERNS:
        assert all(len(side) >= 1 for side in pattern.premises[:3])
        sides = [premise for side in pattern.premises[:3] for premise in side]
        assert len(set(sides)) == len(sides), f"one premise of {pattern.hypothesis} stands under two labels"
        for text in [pattern.hypothesis, *sides]:
            text.format_map(_Formatter(slots))


class _Formatter(dict):
    """Gives str.format the slots by their whole name, so that {a.kind} is looked up, not taken as an attribute."""

    def __init__(self, slots):
        super().__init__()
        self.slots = slots

    def __getitem__(self, name):
        return _Word(name, self.slots)


class _Word:
    def __init__(self, name, slots):
        self.name, self.slots = name, slots

    def __getattr__(self, form):
        return _Word(f"{self.name}.{form}", self.slots)

    def __format__(self, _):
        return self.slots[self.name][0]


def test_slots_of_a_pair_exclude_each_other():
    said = {name: said for name, (said, _) in draw(2000, np.random.default_rng(1)).items()}
    for one, two in (("a", "b"), ("a.kind", "b.kind"), ("x.kind", "y.kind"), ("v", "u"), ("i", "j"), ("l", "m")):
        assert (said[one] != said[two]).all()
    assert (said["month.season"] != said["later.season"]).all()
    assert set(zip(said["l.side"], said["m.side"], strict=True)) == {("indoors", "outdoors"), ("outdoors", "indoors")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"n": 0}, "n=0"), ({"n": 5, "flips": 0.9}, "flips=0.9"), ({"n": 5, "artifact": -0.1}, "artifact=-0.1")],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(CorpusError, match=message):
        planted.make(**arguments)
    with pytest.raises(CorpusError, match="no split 'dev'"):
        planted.make_split("dev", 5)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_small_corpora(n):
    assert len(planted.make(n)) == n


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
    corpus = planted.make_split("train", 300, seed=2)
    truths = planted.planted_truths(corpus)
    assert {len(mask) for mask in truths.values()} == {300}
    assert truths["flipped label"].sum() == corpus.table["flipped"].sum() > 0
    assert {"indeed@hypothesis", "it is@hypothesis"} <= planted.planted_ngrams(0)
    words = planted.planted_words(["x@premise", "indeed@hypothesis", "however@hypothesis"])
    assert words.to_numpy().tolist() == [[0, 1], [2, 2]]
