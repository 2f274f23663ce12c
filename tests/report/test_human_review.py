"""What a review amounts to. Run alone: pytest tests/report/test_human_review.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import load
from nli_lib.corpora.corpus import Corpus
from nli_lib.generate.review import BOTH, COSMETIC, DISCARDED, DISCARDS, NONE, ONE, SLIPS
from nli_lib.report.human_review import (
    GIVEN,
    SECONDS,
    against_release,
    annotated,
    declared,
    kept_shares,
    repeated,
    revision_table,
    rules_table,
)


def one(item, annotator="a", label="neutral", premise="A dog runs.", discarded=False):
    made = {"premise": "A dog runs.", "hypothesis": "It moves.", "revised_hypothesis": "It moves."}
    who = {"item": item, "annotator": annotator, "revised_premise": premise}
    return who | made | {"label": None if discarded else label, "discarded": discarded}


def table(*rows):
    return pd.DataFrame(rows)


def corpus(*rows):
    """A released corpus of (uid, premise, label)."""
    made = pd.DataFrame(rows, columns=["uid", "premise", "label"])
    return Corpus(made.assign(hypothesis="It moves.", corpus="wanli", split="train"), "wanli", "train")


SINGLE = table(
    one("1"), one("2", discarded=True), one("3", premise="a dog, runs"), one("4", premise="A cat runs."), one("5")
)


def test_one_annotation_bounds_what_the_rules_can_do():
    found = rules_table(SINGLE).set_index(["second", "rule"])
    assert GIVEN not in found.index.get_level_values("second")
    assents, same = (found.loc[second] for second in SECONDS)
    assert assents["items"].to_dict() == {DISCARDED: 1, COSMETIC: 1, ONE: 1, NONE: 2}
    assert assents["revised"].to_dict() == {DISCARDED: 0, COSMETIC: 1, ONE: 0, NONE: 0}
    assert same["items"].to_dict() == {DISCARDED: 1, BOTH: 2, NONE: 2} and same.loc[BOTH, "revised"] == 2
    shares = kept_shares(rules_table(SINGLE)).set_index(["second", "what"])["value"]
    assert shares[SECONDS[0]].to_dict() == {"kept": 0.8, "revised": 0.25}
    assert shares[SECONDS[1]].to_dict() == {"kept": 0.8, "revised": 0.5}


def test_two_annotations_are_taken_as_they_are():
    found = rules_table(table(one("1"), one("1", "b"), one("2")))
    assert found[found["second"] == GIVEN]["items"].sum() == 1
    assert found[found["second"] == SECONDS[0]]["items"].sum() == 2


CASES = [  # an annotation, what was released, and whether the rules can have made it
    (one("1"), ("1", "A dog runs.", 1), True),
    (one("2"), ("2", "A dog runs.", 0), True),  # the other's label was drawn
    (one("3"), ("3", "a dog, runs", 0), True),  # the other revised punctuation alone
    (one("4"), ("4", "A cat runs.", 1), False),  # one revision, and not of punctuation, is not kept
    (one("5", premise="A cat runs."), ("5", "A dog runs.", 0), True),
    (one("6", premise="A cat runs."), ("6", "A cow runs.", 0), True),  # both revised
    (one("7", premise="A cat runs."), ("7", "A cat runs.", 1), True),
    (one("8", discarded=True), ("8", "A dog runs.", 1), False),
]


def test_what_can_have_been_released():
    annotations, released, possible = zip(*CASES, strict=True)
    assert against_release(table(*annotations), corpus(*released))["possible"].tolist() == list(possible)


def test_a_label_is_compared_where_nobody_touched_the_texts():
    rows = [one("1"), one("2"), one("3", premise="A cat runs."), one("9")]
    found = against_release(table(*rows), corpus(*((str(at), "A dog runs.", at % 2) for at in (1, 2, 3))))
    assert found["item"].tolist() == ["1", "2", "3"]
    assert found["untouched"].tolist() == [True, True, False] and found["same"].tolist()[:2] == [True, False]
    estimate = declared(table(*rows), found)["wanli-sec2.4-label-is-the-released-one"]
    assert (estimate.value, estimate.n) == (0.5, 2)


def test_the_declared_statistics_by_hand():
    rows = [*SINGLE.to_dict("records"), one("6", premise="It is a dog that runs.")]  # +3 words, and a pronoun
    found = declared(table(*rows), against_release(table(*rows), corpus(("0", "x", 0))))
    values = {id.split("-", 2)[2]: (round(of.value, 3), of.n) for id, of in found.items() if of.n}
    assert values == {
        "discarded": (0.167, 6),
        "revised-more-than-kept": (0.6, 5),
        "premises-change-slightly": (0.667, 3),
        "premise-pronouns": (0.333, 3),
    }
    assert all(np.isnan(of[:3]).all() for of in found.values() if not of.n)
    assert revision_table(SINGLE)["words"].tolist() == [0, 0]


def test_a_second_pair_of_annotators_is_asked_where_there_is_one():
    rows = [one(str(item), who) for item in range(6) for who in "abcd"] + [one("7", who) for who in "abc"]
    found = repeated(table(*rows))
    assert [(of.value, of.n) for of in found.values()] == [(1, 6), (1, 6)]
    assert all(of.n == 0 for of in repeated(SINGLE).values())
    planted = annotated(load("planted", "train", limit=1_500))[1]
    found = repeated(planted)
    nobody = (1 - DISCARDS) ** 2  # chance that both of a pair keep an item; two pairs decide independently
    assert found["kept or discarded"].value == pytest.approx(nobody**2 + (1 - nobody) ** 2, abs=0.04)
    assert found["label"].value == pytest.approx((1 - SLIPS) ** 2 + SLIPS**2 / 2, abs=0.05)


def test_who_annotated_depends_on_the_corpus(tmp_path):
    name, simulated = annotated(load("planted", "train", limit=50), str(tmp_path))
    assert name == "planted" and set(simulated["annotator"]) == {f"simulated {n}" for n in (1, 2, 3, 4)}
    name, none = annotated(corpus(("1", "A dog runs.", 1)), str(tmp_path))
    assert name == "wanli-annotations" and none.empty
    assert rules_table(none).empty and kept_shares(rules_table(none)).empty and revision_table(none).empty
    found = against_release(none, corpus(("1", "A dog runs.", 1)))
    assert found.empty and {of.n for of in declared(none, found).values()} == {0}
