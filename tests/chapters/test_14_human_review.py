"""What a review amounts to. Run alone: pytest tests/chapters/test_14_human_review.py"""

import numpy as np
import pandas as pd
import pytest
from cells import functions, measured

from nli_lib.agreement import kappa
from nli_lib.corpora import load
from nli_lib.corpora.corpus import Corpus
from nli_lib.evaluate import write_jsonl
from nli_lib.generate.review import BOTH, COSMETIC, DISCARDED, NEEDED, NONE, ONE, aggregate
from nli_lib.study.notebook import Study

CHAPTER = functions("14_human_review")
SLIPS, DISCARDS = CHAPTER.SLIPS, CHAPTER.DISCARDS
GIVEN, ASSENTS, SAME = "as annotated", "a second one assents and revises nothing", "a second one does the same"


def one(item, annotator="a", label="neutral", premise="A dog runs.", discarded=False):
    made = {"premise": "A dog runs.", "hypothesis": "It moves.", "revised_hypothesis": "It moves."}
    who = {"item": item, "annotator": annotator, "revised_premise": premise}
    return who | made | {"label": None if discarded else label, "discarded": discarded}


def corpus(*rows):
    """A released corpus of (uid, premise, label)."""
    made = pd.DataFrame(rows, columns=["uid", "premise", "label"])
    return Corpus(made.assign(hypothesis="It moves.", corpus="wanli", split="train"), "wanli", "train")


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """The chapter's tables for a corpus and annotations of it; without annotations there is no file of them."""
    monkeypatch.setattr(Study, "load_each", lambda *_, **__: {})

    def read(*annotations, of=None):
        names = {"annotator": "WorkerId", "item": "id", "label": "gold"}
        table = pd.DataFrame(annotations, columns=list(one("0"))).rename(columns=names).astype({"id": int})
        table["revised"] = table["revised_premise"] != table["premise"]
        table = table.fillna({"gold": "discard"}).assign(label="neutral").drop(columns="discarded")
        if annotations:
            write_jsonl(tmp_path / "anonymized_annotations.jsonl", table)
        given = {"corpus": of or corpus(("0", "x", 0)), "DATA_DIR": str(tmp_path)}
        return measured("14_human_review", tmp_path, monkeypatch, **given).study.table

    return read


SINGLE = [one("1"), one("2", discarded=True), one("3", premise="a dog, runs")]
SINGLE += [one("4", premise="A cat runs."), one("5")]


def test_one_annotation_bounds_what_the_rules_can_do(tables):
    table = tables(*SINGLE)
    found = table("rules").set_index(["second", "rule"])
    assert GIVEN not in found.index.get_level_values("second")
    assents, same = (found.loc[second] for second in (ASSENTS, SAME))
    assert assents["items"].to_dict() == {DISCARDED: 1, COSMETIC: 1, ONE: 1, NONE: 2}
    assert assents["revised"].to_dict() == {DISCARDED: 0, COSMETIC: 1, ONE: 0, NONE: 0}
    assert same["items"].to_dict() == {DISCARDED: 1, BOTH: 2, NONE: 2} and same.loc[BOTH, "revised"] == 2
    shares = table("kept").set_index(["second", "what"])["value"]
    assert shares[ASSENTS].to_dict() == {"kept": 0.8, "revised": 0.25}
    assert shares[SAME].to_dict() == {"kept": 0.8, "revised": 0.5}


def test_two_annotations_are_taken_as_they_are(tables):
    items = tables(one("1"), one("1", "b"), one("2"))("rules").groupby("second")["items"].sum()
    assert items.to_dict() == {GIVEN: 1, ASSENTS: 2, SAME: 2}


def test_of_items_that_are_all_discarded_none_has_a_share_of_revised_ones(tables):
    shares = tables(one("1", discarded=True))("kept")
    assert set(shares["what"]) == {"kept"} and set(shares["value"]) == {0}


CASES = [  # an annotation, what was released, and whether the rules can have made it
    (one("1"), ("1", "A dog runs.", 1), True),
    (one("2"), ("2", "A dog runs.", 0), True),  # the other's label was drawn
    (one("3"), ("3", "a dog, runs", 0), True),  # the other revised punctuation alone
    (one("4"), ("4", "A cat runs.", 1), False),  # one revision, and not of punctuation, is not kept
    (one("5", premise="A cat runs."), ("5", "A dog runs.", 0), True),
    (one("6", premise="A cat runs."), ("6", "A cow runs.", 0), True),  # both revised
    (one("7", premise="A cat runs."), ("7", "A cat runs.", 1), True),
    (one("8", discarded=True), ("8", "A dog runs.", 1), False)]  # fmt: skip


def test_what_can_have_been_released(tables):
    annotations, released, possible = zip(*CASES, strict=True)
    assert tables(*annotations, of=corpus(*released))("released")["possible"].tolist() == list(possible)


def test_a_label_is_compared_where_nobody_touched_the_texts(tables):
    rows = [one("1"), one("2"), one("3", premise="A cat runs."), one("9")]
    table = tables(*rows, of=corpus(*((str(at), "A dog runs.", at % 2) for at in (1, 2, 3))))
    found = table("released")
    assert found["untouched"].tolist() == [True, True, False] and found["same"].tolist()[:2] == [True, False]
    claim = table("claims").set_index("id").loc["wanli-sec2.4-label-is-the-released-one"]
    assert (claim["value"], claim["n"], claim["corpora"]) == (0.5, 2, "wanli-annotations;wanli")


def test_the_declared_statistics_by_hand(tables):
    table = tables(*SINGLE, one("6", premise="It is a dog that runs."))  # +3 words, and a pronoun
    assert table("revisions")["words"].tolist() == [0, 0, 3]
    found = table("claims").set_index("id")
    known = {id.split("-", 2)[2]: (round(row.value, 3), row.n) for id, row in found[found["n"] > 0].iterrows()}
    values = {"discarded": (0.167, 6), "revised-more-than-kept": (0.6, 5)}
    assert known == values | {"premises-change-slightly": (0.667, 3), "premise-pronouns": (0.333, 3)}
    assert len(found) == 8 and found.loc[found["n"] == 0, ["value", "low", "high"]].isna().all(axis=None)


def test_a_second_pair_of_annotators_is_asked_where_there_is_one(tables):
    rows = [one(str(item), who) for item in range(6) for who in "abcd"] + [one("7", who) for who in "abc"]
    assert tables(*rows)("repeated")[["value", "n"]].values.tolist() == [[1, 6], [1, 6]]
    assert tables(*SINGLE)("repeated")["n"].tolist() == [0, 0]


@pytest.fixture(scope="module")
def planted():
    return load("planted", "train", limit=3_000)


def test_simulated_annotators_do_what_their_rates_say(planted):
    found = CHAPTER.simulated_annotations(planted, 2)
    assert list(found) == list(NEEDED) and len(found) == 6_000
    assert set(found["annotator"]) == {"simulated 1", "simulated 2"}
    kept, changed = ~found["discarded"], CHAPTER.revisions(found)
    assert kept.mean() == pytest.approx(1 - DISCARDS, abs=0.01)
    assert len(changed) / kept.sum() == pytest.approx(CHAPTER.REVISES, abs=0.012)
    truth = np.array(planted.classes)[planted.table["true_label"].to_numpy(dtype=int)]
    wrong = found["label"] != pd.Series(truth, planted.uid)[found["item"]].to_numpy()
    assert wrong[kept].mean() == pytest.approx(SLIPS, abs=0.015)
    slight = pd.Series(CHAPTER.word_change(changed["before"], changed["after"])).between(-1, 2)
    assert slight.mean() == pytest.approx(2 / 3, abs=0.06)
    both = zip(changed["before"], changed["after"], strict=True)
    others = np.array([CHAPTER.pronouns(before) != CHAPTER.pronouns(after) for before, after in both])
    assert others[~slight].mean() > 0.9 and COSMETIC in set(aggregate(found)["rule"])
    # both right, or both in the same one of two errors: .85^2 + .15^2 / 2 agree; chance is a third, about
    assert kappa(found).value == pytest.approx((((1 - SLIPS) ** 2 + SLIPS**2 / 2) - 1 / 3) / (2 / 3), abs=0.04)


def test_the_seed_decides_everything_and_annotators_differ(planted):
    one, again, other = (CHAPTER.simulated_annotations(planted[:200], 3, seed=seed) for seed in (0, 0, 1))
    assert one.equals(again) and not one.equals(other)
    said = one.pivot(index="item", columns="annotator", values="label")
    assert said.shape == (200, 3) and (said["simulated 1"] != said["simulated 2"]).any()


def test_simulated_annotators_decide_alike_as_often_as_their_rates_say(tables):
    table = tables(of=load("planted", "train", limit=1_500))
    assert table("facts").loc[0, ["simulated", "annotators"]].tolist() == [True, 4]
    found = table("repeated").set_index("what")["value"]
    nobody = (1 - DISCARDS) ** 2  # chance that both of a pair keep an item; two pairs decide independently
    assert found["kept or discarded"] == pytest.approx(nobody**2 + (1 - nobody) ** 2, abs=0.04)
    assert found["label"] == pytest.approx((1 - SLIPS) ** 2 + SLIPS**2 / 2, abs=0.05)


def test_without_annotations_every_table_is_empty(tables):
    table = tables(of=corpus(("1", "A dog runs.", 1)))
    assert all(table(part).empty for part in ("rules", "kept", "released", "revisions", "examples", "own"))
    assert set(table("claims")["n"]) == {0} and not table("facts").loc[0, ["annotations", "simulated"]].any()
