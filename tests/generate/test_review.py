"""A review is kept answer by answer, and two annotations become one row, by WANLI's rule.

Run alone: pytest tests/generate/test_review.py"""

import json
import os
import string
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_reviews import NASTY, corpus

from nli_lib.corpora.corpus import CorpusError
from nli_lib.generate import review as made
from nli_lib.generate.review import BOTH, COSMETIC, DISCARDED, NONE, ONE, Review, aggregate, annotations
from nli_lib.store import StoreError

# ---------------------------------------------------------------- the queue


def label(review, name="neutral", **texts):
    pair = review.pair
    left = {"premise": pair["premise"], "hypothesis": pair["hypothesis"]} | texts
    review.label(pair["item"], name, **left)
    return pair["item"]


@pytest.fixture
def pairs():
    return made.pairs(corpus())


def test_pairs_are_answered_one_after_the_other_and_the_next_call_continues(tmp_path, pairs):
    review = Review(pairs, tmp_path, "anna")
    assert review.progress == (0, 3) and set(review.pair) == {"item", "premise", "hypothesis"}
    first, second = label(review, "entailment"), review.pair["item"]
    review.discard(second)
    again = Review(pairs, tmp_path, "anna")
    assert again.progress == (2, 3) and again.pair["item"] not in (first, second)
    last = label(again, "contradiction", premise="Something else.")
    assert again.pair is None and again.progress == (3, 3)
    found = annotations(tmp_path).set_index("item")
    assert found["label"].dropna().to_dict() == {first: "entailment", last: "contradiction"}
    assert found["discarded"].to_dict() == {first: False, second: True, last: False}
    assert found.loc[last, "revised_premise"] == "Something else." != found.loc[last, "premise"]


def test_undo_is_a_line_and_takes_back_the_last_answer(tmp_path, pairs):
    review = Review(pairs, tmp_path, "anna")
    review.undo()  # nothing to take back
    first, second = label(review), label(review)
    review.undo()
    assert review.pair["item"] == second and review.progress == (1, 3)
    review.undo()
    review.undo()
    assert review.pair["item"] == first and annotations(tmp_path).empty
    label(review, "entailment")
    lines = (tmp_path / "answers.anna.jsonl").read_text().splitlines()
    assert len(lines) == 5 and sum('"act": "undo"' in line for line in lines) == 2
    assert annotations(tmp_path)["label"].tolist() == ["entailment"]


def test_the_seed_decides_the_order_and_nobody_sees_another_answer(tmp_path):
    pairs = made.pairs(corpus([f"Text {at}." for at in range(30)], maker="model", intended_label="entailment"))
    one, other = ([pair["item"] for pair in made.queue(pairs, seed)] for seed in (0, 1))
    assert one != other and sorted(one) == sorted(other) == sorted(pairs["item"])
    anna, bert = Review(pairs, tmp_path, "anna"), Review(pairs, tmp_path, "bert")
    label(anna, premise="Secret.")
    assert bert.progress == (0, 30) and bert.pair["item"] == one[0]
    assert "Secret." not in str(Review(pairs, tmp_path, "bert").__dict__)
    assert not {"model", "entailment"} & set(bert.pair.values())


def test_texts_are_stored_as_they_are(tmp_path, pairs):
    nasty = made.pairs(corpus([*NASTY, "a" * 200_000]))  # the longest text that a corpus may hold
    review = Review(nasty, tmp_path, "anna")
    while review.pair:
        label(review)
    found = annotations(tmp_path).set_index("item").loc[nasty["item"]]
    assert found["premise"].tolist() == found["revised_premise"].tolist() == nasty["premise"].tolist()
    assert len((tmp_path / "answers.anna.jsonl").read_bytes().splitlines()) == len(nasty)
    label(Review(pairs, tmp_path, "bert"), premise="half \ud800")
    assert annotations(tmp_path).query("annotator == 'bert'")["revised_premise"].item() == "half ?"


def test_other_line_ends_are_no_revision():
    assert made.as_left("a\r\nb\rc", "a\nb\nc") == "a\r\nb\rc" and made.as_left("a\r\nb", "a b") == "a b"


def test_two_windows_may_be_open(tmp_path, pairs):
    one, other = Review(pairs, tmp_path, "anna"), Review(pairs, tmp_path, "anna")
    item = label(one, "entailment")
    other.label(item, "contradiction", premise="A dog runs.", hypothesis="It moves.")
    assert annotations(tmp_path)["label"].tolist() == ["entailment"]
    assert other.progress == (1, 3) and other.pair["item"] != item


NO_ANSWERS = [
    (lambda r: r.label("nothing", "neutral", premise="a", hypothesis="b"), "'nothing' is not in this queue of 3"),
    (lambda r: label(r, "maybe"), "field label: Input should be 'entailment'"),
    (lambda r: label(r, premise=" "), "the premise must have 1 to 200,000 characters"),
    (lambda r: label(r, hypothesis="a\0b"), "the hypothesis must have .* no NUL"),
    (lambda r: label(r, hypothesis="a" * 200_001), "Restore it, or discard the pair")]  # fmt: skip


@pytest.mark.parametrize(("what", "said"), NO_ANSWERS)
def test_what_is_no_answer_is_not_written(tmp_path, pairs, what, said):
    review = Review(pairs, tmp_path, "anna")
    with pytest.raises(CorpusError, match=said):
        what(review)
    assert not (tmp_path / "answers.anna.jsonl").exists() and review.progress == (0, 3)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 65, "é"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path, pairs, name):
    with pytest.raises(CorpusError, match="write 1 to 64 ASCII letters"):
        Review(pairs, tmp_path, name)


def test_a_name_for_two_pairs_a_changed_text_and_a_damaged_line_are_named(tmp_path, pairs):
    with pytest.raises(CorpusError, match="item 'p0' names two pairs"):
        Review(pairs.assign(item="p0"), tmp_path, "anna")
    label(Review(pairs, tmp_path, "anna"))
    with pytest.raises(CorpusError, match=r"answers.anna.jsonl: pair 'p\d' was answered when its text was another"):
        Review(pairs.assign(premise="Other."), tmp_path, "anna")
    with (tmp_path / "answers.anna.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(StoreError, match=r"line 2 is no answer .* Delete the line: its pair is shown again"):
        annotations(tmp_path)


def test_the_corpus_of_a_review_says_where_its_pairs_are_from(tmp_path):
    known = {"origin_uid": ["seed 1", None, "seed 3"], "origin_corpus": "mnli", "maker": "gpt", "intended_label": None}
    pairs = made.pairs(corpus(**known))
    assert pairs["origin_uid"].tolist() == ["seed 1", None, "seed 3"]
    assert pairs["intended_label"].tolist() == ["neutral"] * 3  # the label that the row bears
    for annotator in ("anna", "bert"):
        review = Review(pairs, tmp_path, annotator)
        review.discard("p2")
        while review.pair:
            label(review, **{"premise": "A cat sat."} if review.pair["item"] == "p1" else {})
    found = made.reviewed(pairs, annotations(tmp_path)).set_index("uid")
    assert found.index.tolist() == ["p0", "p1"]
    assert found.loc["p0"].drop("rule").to_dict() == {
        **{"premise": "A dog runs.", "hypothesis": "It moves.", "label": "neutral", "genre": "generated"},
        **{"origin_uid": "seed 1", "origin_corpus": "mnli", "maker": "gpt", "intended_label": "neutral"},
    }
    assert found.loc["p1", ["premise", "maker", "genre"]].tolist() == ["A cat sat.", "gpt, worker", "generated_revised"]
    assert aggregate(annotations(tmp_path))["item"].tolist() == ["p0", "p1", "p2"]
    with pytest.raises(CorpusError, match="pair 'p.' is not there, or its text is not the one"):
        made.reviewed(pairs.assign(premise="Other."), annotations(tmp_path))


def test_a_corpus_without_origins_is_its_own(pairs):
    assert pairs["origin_uid"].tolist() == pairs["item"].tolist() == ["p0", "p1", "p2"]
    assert set(pairs["origin_corpus"]) == {"mine"} and set(pairs["maker"]) == {None}


# ---------------------------------------------------------------- two annotations become one row


def answer(item, annotator, label="neutral", premise="A dog runs.", hypothesis="It moves.", discarded=False):
    shown = {"premise": "A dog runs.", "hypothesis": "It moves."}
    left = {"revised_premise": premise, "revised_hypothesis": hypothesis}
    return {"item": item, "annotator": annotator, **shown, **left, "label": label, "discarded": discarded}


SHOWN = ("A dog runs.", "It moves.")
ENTAILED, NEUTRAL = ({"label": name} for name in ("entailment", "neutral"))
RULES = [  # what the two say, the rule, the genre, and what each order can leave
    ({"discarded": True, "premise": "changed"}, NEUTRAL, DISCARDED, None, {(None, None, None)}),
    (ENTAILED | {"premise": "A cat."}, {"label": "contradiction", "hypothesis": "It sits."}, BOTH, "generated_revised",
     {("A cat.", "It moves.", "entailment"), ("A dog runs.", "It sits.", "contradiction")}),  # one of them, whole
    (ENTAILED | {"premise": "A cat runs."}, NEUTRAL, ONE, "generated", {(*SHOWN, "neutral")}),
    (ENTAILED | {"premise": "a dog, runs"}, NEUTRAL, COSMETIC, "generated_revised",
     {("a dog, runs", "It moves.", "entailment")}),
    (ENTAILED, NEUTRAL, NONE, "generated", {(*SHOWN, "entailment"), (*SHOWN, "neutral")})]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "rule", "genre", "possible"), RULES)
def test_each_rule_by_hand_in_either_order(one, other, rule, genre, possible):
    table = pd.DataFrame([answer(1, "a", **one), answer(1, "b", **other)])
    rows = pd.concat([aggregate(table, seed=seed) for seed in range(40)]).astype(object)
    rows = rows.where(rows.notna(), None)
    assert set(rows["rule"]) == {rule} and set(rows["genre"]) == {genre}
    drawn = Counter(rows[["premise", "hypothesis", "label"]].itertuples(index=False, name=None))
    assert drawn.keys() == possible and min(drawn.values()) > 8


def slow(one, other):
    """The released script, for two annotations in their order."""
    if one["discarded"] or other["discarded"]:
        return None
    sides = ("premise", "hypothesis")
    changed = [any(each[side] != each[f"revised_{side}"] for side in sides) for each in (one, other)]
    if all(changed):
        return one
    if any(changed):
        mine, theirs = (one, other) if changed[0] else (other, one)

        def bare(text):
            return "".join(letter for letter in text.lower() if letter not in string.punctuation)

        same = all(bare(mine[side]) == bare(mine[f"revised_{side}"]) for side in sides)
        return mine if same else theirs
    return one


def test_equal_to_the_released_script_in_one_of_the_two_orders():
    random, rows = np.random.default_rng(0), []
    for item in range(300):
        for annotator in "ab":
            premise = random.choice(["A dog runs.", "a dog runs", "A cat runs."], p=[0.6, 0.2, 0.2])
            label = random.choice(["entailment", "neutral", "contradiction"])
            rows.append(answer(item, annotator, label, premise=premise, discarded=random.random() < 0.1))
    found = aggregate(pd.DataFrame(rows))
    for item, kept in found.set_index("item").iterrows():
        one, other = rows[2 * item : 2 * item + 2]
        expected = [slow(one, other), slow(other, one)]
        if kept["rule"] == DISCARDED:
            assert expected == [None, None]
        else:
            left = (kept["premise"], kept["hypothesis"], kept["label"])
            assert left in [(e["revised_premise"], e["revised_hypothesis"], e["label"]) for e in expected]
    assert set(found["rule"]) == {DISCARDED, BOTH, COSMETIC, ONE, NONE}


def test_the_items_stand_in_their_order_and_more_than_two_annotations_are_drawn_from():
    rows = pd.DataFrame([answer(item, annotator) for item in (3, 1) for annotator in "abc"])
    assert aggregate(rows)["item"].tolist() == [1, 3]


NOTHING = {
    "item 7 has one annotation": [answer(7, "a")],
    "item 7 has two annotations of one annotator": [answer(7, "a"), answer(7, "a")],
    "lack the column annotator": [{"item": 1}]}  # fmt: skip


@pytest.mark.parametrize(("said", "rows"), NOTHING.items())
def test_what_cannot_be_aggregated_is_named(said, rows):
    with pytest.raises(CorpusError, match=said):
        aggregate(pd.DataFrame(rows))


@pytest.mark.realdata
def test_the_released_sample():
    path = Path(os.environ["NLI_DATA"], "wanli", "anonymized_annotations_sample.jsonl")
    rows = pd.DataFrame(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    rows = rows.rename(columns={"id": "item", "WorkerId": "annotator"}).assign(label=rows["gold"], discarded=False)
    untouched = {"revised_premise": rows["premise"], "revised_hypothesis": rows["hypothesis"], "annotator": "nobody"}
    found = aggregate(pd.concat([rows, rows.assign(**untouched)])).set_index("item")["rule"]
    assert found.value_counts().to_dict() == {NONE: 89, ONE: 9, COSMETIC: 2}
    assert found.index[found == COSMETIC].tolist() == [98787, 360533]
    assert set(found.index[found != NONE]) == set(rows.loc[rows["revised"].astype(bool), "item"])
