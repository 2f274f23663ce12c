"""Alone: pytest tests/corpora/test_counterfactual_pairs.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.suites import directions, from_table, join, load_pairs, one_of_each, pair_up


def corpus(rows, name="mine", **columns):
    table = pd.DataFrame(rows, columns=["uid", "premise", "hypothesis", "label"])
    return Corpus(table.assign(corpus=name, split="train", **columns), name, "train")


ORIGINAL = corpus([("a", "A dog runs.", "It moves.", 0), ("b", "A cat sleeps.", "It dreams.", 1)])
REVISIONS = [("r0", "A dog sits.", "It moves.", 2), ("r1", "A cat sleeps.", "It is awake.", 2)]
REVISIONS += [("r2", "A dog.", "It moves.", 1), ("r3", "A cow.", "It moos.", 0)]
REVISED = corpus(REVISIONS, origin_uid=["a", "b", "a", "gone"])


def test_revisions_find_their_originals_and_the_lost_are_counted():
    pairs = pair_up(REVISED, ORIGINAL)
    assert pairs.origin.tolist() == [0, 1, 0] and len(pairs) == 3
    assert pairs.revised.skipped == {"original not found": 1}
    assert pairs.direction.tolist() == ["e2c", "n2c", "e2n"]
    assert pairs.side.tolist() == ["premise", "hypothesis", "premise"]
    assert pairs.old_labels.tolist() == [0, 1, 0]
    assert pairs.texts() == (["A dog runs.", "It dreams.", "A dog runs."], ["A dog sits.", "It is awake.", "A dog."])


def test_originals_that_stand_in_the_revisions_own_columns():
    revised = corpus(
        [("x", "p1", "h", 1), ("y", "p2", "h", 1), ("z", "p3", "k", 2), ("w", "p4", "k", 2)],
        origin_premise=["p", "p", "q", "q"],
        origin_label=["entailment", "entailment", "neutral", "nonsense"],
        origin_corpus="snli",
    )
    pairs = pair_up(revised)
    assert len(pairs.original) == 2 and pairs.original.name == "snli"
    assert pairs.origin.tolist() == [0, 0, 1]
    assert pairs.original.hypothesis.tolist() == ["h", "k"] and pairs.direction.tolist() == ["e2n", "e2n", "n2c"]


def test_a_row_without_an_original_shifts_no_other():
    rows = [("x", "p1", "h", 1), ("y", "p2", "h", 1), ("z", "p3", "h", 2)]
    revised = corpus(rows, origin_premise=["a", None, "b"], origin_label=["entailment", "entailment", "entailment"])
    pairs = pair_up(revised)
    assert pairs.original.premise[pairs.origin].tolist() == ["a", "b"] and len(pairs.original) == 2
    assert pairs.revised.uid.tolist() == ["x", "z"]


def test_one_revision_of_each_original_and_joining():
    pairs = pair_up(REVISED, ORIGINAL)
    chosen = [pairs[one_of_each(pairs.origin, seed)] for seed in range(20)]
    assert all(sorted(each.origin) == [0, 1] for each in chosen)
    assert {tuple(each.revised.uid) for each in chosen} == {("r0", "r1"), ("r1", "r2")}
    both = join([pairs, pairs[np.array([1])]], name="both")
    assert both.origin.tolist() == [0, 1, 0, 3] and len(both.original) == 4
    assert both.old_labels.tolist() == [0, 1, 0, 1]


def test_planted_pairs_are_true_and_of_every_direction():
    pairs = load_pairs("planted", "test", originals=60)
    assert len(pairs) == 120 and set(pairs.direction) == set(directions())
    assert (pairs.revised.table["true_label"] == pairs.revised.labels).all()
    assert set(pairs.side) == {"premise"}


def test_what_is_missing_is_named():
    with pytest.raises(CorpusError, match="origin_uid"):
        pair_up(ORIGINAL, ORIGINAL)
    with pytest.raises(CorpusError, match="origin_premise"):
        pair_up(ORIGINAL)


def test_pairs_of_a_table_of_ones_own():
    rows = [("p1", "h", 1, "p", "entailment"), ("p2", "h", 2, "p", "entailment")]
    table = pd.DataFrame(rows, columns=["premise", "hypothesis", "label", "origin_premise", "origin_label"])
    pairs = from_table(table, "generated")
    assert len(pairs.original) == 1 and pairs.direction.tolist() == ["e2n", "e2c"]
    assert pairs.revised.uid.tolist() == ["generated-0", "generated-1"]


@pytest.mark.realdata
def test_human_cad_has_four_revisions_whose_labels_all_differ_from_the_originals():
    pairs = load_pairs("cad", "test")
    assert np.bincount(pairs.origin).tolist() == [4] * 400
    assert (pairs.revised.labels != pairs.old_labels).all()
    labels = np.stack([pairs.revised.labels, pairs.old_labels])
    seen = pd.DataFrame({"origin": np.tile(pairs.origin, 2), "label": labels.ravel()}).groupby("origin")["label"]
    assert (seen.nunique() == 3).all()
    disco = load_pairs("disco", "e2n")
    assert len(disco) == 5698 and set(disco.direction) == {"e2n"} and set(disco.side) == {"premise"}
