"""Alone: pytest tests/select/test_arms.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import load
from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.learn.encode import shuffled_batches
from nli_lib.measure.dynamics import variability
from nli_lib.select import arms
from nli_lib.select.arms import ARM, ARMS, CLASSIFY, GENERATED, Pool, budget_of, candidates_of, choices, training_sets
from nli_lib.select.selection import TWIN, Selection

PAIRS = load("planted", "train", limit=420)
OTHER = load("planted", "challenge", limit=90)
RANDOM = np.random.default_rng(0)
LOGITS = RANDOM.normal(size=(3, 420, 3)) + 2 * np.eye(3)[PAIRS.labels] * RANDOM.random((420, 1))
SOURCES = dict.fromkeys(("WANLI", "our WANLI", "DISCO", "our DISCO", "Human-CAD", GENERATED), OTHER)


def pool(**changed):
    candidates = candidates_of(PAIRS, SOURCES.values(), size=360)
    at = np.flatnonzero(np.isin(PAIRS.uid, candidates.uid))
    logits = LOGITS[:, at]
    given = {"pair": logits, "hypothesis": logits[::-1], "cross": logits[0], "generated": OTHER, "threshold": 0.5}
    made, absent = choices(candidates, **given)
    return Pool(**{"candidates": candidates, "additions": SOURCES, "choices": made, "absent": absent, **changed})


@pytest.fixture(scope="module")
def shared():
    """The pool that most tests read, made once."""
    return pool()


def different(corpus):
    return len(corpus.table.drop_duplicates(["premise", "hypothesis", "label"]))


@pytest.mark.parametrize("left_out", ["entailment", "neutral"])
def test_pruning_is_absent_where_the_rule_has_not_both_its_classes(left_out):
    at = PAIRS.classes.index(left_out)
    classes = tuple(name for name in PAIRS.classes if name != left_out)
    table = PAIRS.table[PAIRS.labels != at]
    table = table.assign(label=table["label"] - (table["label"] > at))
    two = Corpus(table.reset_index(drop=True), "planted", "train", classes)
    made, absent = choices(two, cross=RANDOM.normal(size=(len(two), 2)))
    assert "consensus pruning" not in made and f"has the labels {', '.join(classes)}" in absent["consensus pruning"]


def test_a_hand_case_of_sizes(shared):
    # 96 rows, a quarter added: 72 of the base and 24 others
    sets, absent = training_sets(shared, budget=96, share=0.25, seed=1)
    assert absent == {} and {len(each.corpus) for each in sets.values()} == {96}
    distinct = {name: each.distinct for (name, which), each in sets.items() if which == ARM}
    assert distinct["base"] == 72 and distinct["random more"] == 96
    assert distinct["WANLI added"] == 96 and distinct["WANLI swapped in"] == 72
    assert sets["random more", TWIN].distinct == 72  # the base itself, whose rows repeat
    assert sets["random more", TWIN].corpus.digest == sets["base", ARM].corpus.digest
    added = sets["WANLI added", ARM].corpus.table["corpus"] + "/" + sets["WANLI added", ARM].corpus.table["split"]
    assert (added == "planted/challenge").sum() == 24


@pytest.mark.parametrize("arm", [arm.name for arm in ARMS])
def test_every_twin_has_as_many_pairs_labels_repeats_and_updates(arm, shared):
    sets, _ = training_sets(shared, budget=96, arms=[arm], seed=2)
    one, twin = sets[arm, ARM], sets[arm, TWIN]
    assert len(one.corpus) == len(twin.corpus) == 96 and one.distinct == different(one.corpus)
    batches = [len(shuffled_batches(np.ones(len(each.corpus)), 32, 0, 0)) for each in (one, twin)]
    assert batches == [3, 3]
    if arm != "random more":  # whose twin is the base, and asks what other pairs do instead of the same again
        assert one.distinct == twin.distinct
    if one.distinct == twin.distinct == 96:
        assert np.bincount(one.corpus.labels).tolist() == np.bincount(twin.corpus.labels).tolist()


def test_what_an_arm_adds_replaces_others_of_its_twin_and_nothing_else(shared):
    sets, _ = training_sets(shared, budget=96, seed=0)
    base = set(sets["base", ARM].corpus.uid)
    for name in ("WANLI added", "DISCO added", "Human-CAD added"):
        arm, twin = (set(sets[name, which].corpus.uid) for which in (ARM, TWIN))
        kept = {uid for uid in base if "#" not in uid}
        assert kept <= arm and kept <= twin and all(uid in shared.candidates.uid for uid in twin)
    swapped, twin = (sets["WANLI swapped in", which] for which in (ARM, TWIN))
    assert swapped.added == 24 and twin.added == 0
    # Z-Aug takes the start whole, as its twin does, and both add generated pairs: filtered or not
    one, other = (sets["Z-Aug", which].corpus.table for which in (ARM, TWIN))
    assert one[one["split"] == "train"]["uid"].tolist() == other[other["split"] == "train"]["uid"].tolist()
    assert (one["split"] == "challenge").sum() == (other["split"] == "challenge").sum() == 24


def test_the_product_of_experts_trains_on_one_set_with_two_losses(shared):
    sets, _ = training_sets(shared, budget=96)
    one, twin = sets["product of experts", ARM], sets["product of experts", TWIN]
    assert one.corpus.digest == twin.corpus.digest == sets["random more", ARM].corpus.digest
    assert (one.objective, twin.objective) == (arms.PRODUCT, arms.PRODUCT_TWIN)
    assert {each.objective for key, each in sets.items() if key[0] != "product of experts"} == {CLASSIFY}


def test_planted_truth_the_chosen_are_those_that_the_score_names(shared):
    sets, _ = training_sets(shared, budget=96)
    at = np.flatnonzero(np.isin(PAIRS.uid, shared.candidates.uid))
    score = variability(LOGITS[:, at], PAIRS.labels[at])
    least = dict(zip(shared.candidates.uid, score, strict=True))
    chosen = [least[uid] for uid in sets["ambiguous third", ARM].corpus.uid]
    assert min(chosen) > np.quantile(score, 0.66)
    assert sets["ambiguous third", ARM].labels == 360 and sets["ambiguous third", TWIN].labels == 96


def test_a_twin_has_the_same_pairs_but_for_those_that_the_arm_dropped(shared):
    order = np.random.default_rng(7).permutation(360)
    gone = np.zeros(360, dtype=bool)
    gone[order[:5]] = True  # the first that anybody would draw
    few = Selection.where(~gone, dropped="pruned")
    sets, _ = training_sets(pool(choices={"consensus pruning": few}), budget=96, arms=["consensus pruning"], seed=7)
    arm, twin = (set(sets["consensus pruning", which].corpus.uid) for which in (ARM, TWIN))
    assert set(shared.candidates.uid[gone]) <= twin and not set(shared.candidates.uid[gone]) & arm
    assert len(arm & twin) >= 90


def test_equal_seeds_give_equal_sets_whatever_else_is_asked_for(shared):
    whole, _ = training_sets(shared, budget=96, seed=5)
    alone, _ = training_sets(shared, budget=96, arms=["AUM", "WANLI added"], seed=5)
    assert list(alone) == [(name, which) for name in ("AUM", "WANLI added") for which in (ARM, TWIN)]
    assert all(whole[key].corpus.digest == each.corpus.digest for key, each in alone.items())
    other, _ = training_sets(shared, budget=96, arms=["AUM"], seed=6)
    assert other["AUM", ARM].corpus.digest != whole["AUM", ARM].corpus.digest


def test_fewer_than_the_budget_are_repeated_equally_often():
    few = Selection.where(np.arange(360) % 9 == 0, dropped="not one in nine")  # 40 pairs
    sets, _ = training_sets(pool(choices={"AUM": few}), budget=96, arms=["AUM"])
    times = sets["AUM", ARM].corpus.table.groupby(["premise", "hypothesis"]).size()
    assert len(times) == sets["AUM", ARM].distinct == 40 and set(times) == {2, 3} and times.sum() == 96


def test_an_arm_without_its_input_is_left_out_with_the_reason(shared):
    made, absent = training_sets(Pool(shared.candidates), budget=96)
    assert {name for name, _ in made} == {"base", "random more", "product of experts"}
    assert absent["WANLI added"] == "no pairs of WANLI are at hand"
    assert absent["consensus pruning"] == "cross scores of the candidates were not computed"
    _, told = training_sets(Pool(shared.candidates, absent={"WANLI": "chapter 13 was not run"}), budget=96)
    assert told["WANLI added"] == told["WANLI swapped in"] == "chapter 13 was not run"
    _, small = training_sets(pool(additions={"WANLI": OTHER[:5]}), budget=96, arms=["WANLI added"])
    assert small["WANLI added"] == "WANLI has 5 pairs for this arm, and 24 are added"
    two = Corpus(OTHER.table.assign(label=0), "two", "train", ("entailment", "not_entailment"))
    _, wrong = training_sets(pool(additions={"DISCO": two}), budget=96, arms=["DISCO added"])
    assert "has the classes entailment, not_entailment" in wrong["DISCO added"]
    one_label = Selection.where(shared.candidates.labels == 0, dropped="not an entailment")
    _, unusable = training_sets(pool(choices={"hard": one_label}), budget=24, arms=["hard"])
    assert unusable["hard"] == "of 24 pairs that it keeps, none is neutral, contradiction"


def test_labels_by_people_are_counted_pair_by_pair():
    people = {arms.BY_PEOPLE: np.arange(len(OTHER)) % 2 == 0}
    half = Corpus(OTHER.table.assign(**people), "half", "train", OTHER.classes)
    sets, _ = training_sets(pool(additions={**SOURCES, "DISCO": half[:24]}), budget=96)
    assert sets["Human-CAD added", ARM].labels == 96 and sets["our WANLI added", ARM].labels == 72
    assert sets["DISCO added", ARM].labels == 72 + 12
    assert sets["WANLI swapped in", ARM].labels == 72 and sets["our WANLI swapped in", TWIN].labels == 72


def test_candidates_hold_no_pair_twice_and_nothing_that_is_added():
    twice = pd.concat([PAIRS.table, PAIRS.table.assign(uid="again-" + PAIRS.table["uid"])])
    corpus = Corpus(twice, "planted", "train", PAIRS.classes)
    found = candidates_of(corpus, [PAIRS[:100]], size=None)
    assert different(found) == len(found)
    gone = set(zip(PAIRS.premise[:100], PAIRS.hypothesis[:100], strict=True))
    assert not gone & set(zip(found.premise, found.hypothesis, strict=True))


def test_too_small_a_corpus_is_refused_with_the_size_that_it_would_take(shared):
    with pytest.raises(CorpusError, match=r"60 different pairs are too few.*72 are needed"):
        budget_of(PAIRS[:60])
    assert budget_of(PAIRS[:90]) == 30
    with pytest.raises(CorpusError, match="and 450 candidates, better 900; there are 360"):
        training_sets(shared, budget=300)
    with pytest.raises(CorpusError, match="is not one of the arms: base, random more"):
        training_sets(shared, budget=96, arms=["filter"])
    with pytest.raises(CorpusError, match="below a half"):
        training_sets(shared, budget=96, share=0.5)
