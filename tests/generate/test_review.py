"""A review is kept answer by answer. Run alone: pytest tests/generate/test_review.py"""

import multiprocessing
import os
import random
import signal
import time

import pytest
from small_reviews import NASTY, corpus

from nli_lib.generate.review import (
    AnnotationError,
    Answers,
    Review,
    ReviewError,
    aggregate,
    annotations,
    as_left,
    pairs,
    queue,
    reviewed,
)


def label(review, name="neutral", **texts):
    pair = review.pair
    left = {"premise": pair["premise"], "hypothesis": pair["hypothesis"]} | texts
    review.label(pair["item"], name, **left)
    return pair["item"]


def test_pairs_are_answered_one_after_the_other_and_the_next_call_continues(tmp_path):
    made = pairs(corpus())
    review = Review(made, tmp_path, "anna")
    assert review.progress == (0, 3) and set(review.pair) == {"item", "premise", "hypothesis"}
    first = label(review, "entailment")
    second = review.pair["item"]
    review.discard(second)
    again = Review(made, tmp_path, "anna")
    assert again.progress == (2, 3) and again.pair["item"] not in (first, second)
    last = label(again, "contradiction", premise="Something else.")
    assert again.pair is None and again.progress == (3, 3)
    found = annotations(tmp_path).set_index("item")
    assert found["label"].dropna().to_dict() == {first: "entailment", last: "contradiction"}
    assert found["discarded"].to_dict() == {first: False, second: True, last: False}
    assert found.loc[last, "revised_premise"] == "Something else." != found.loc[last, "premise"]


def test_undo_is_a_line_and_takes_back_the_last_answer(tmp_path):
    made = pairs(corpus())
    review = Review(made, tmp_path, "anna")
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
    made = pairs(corpus([f"Text {at}." for at in range(30)], maker="model", intended_label="entailment"))
    orders = {seed: [pair["item"] for pair in queue(made, seed)] for seed in (0, 0, 1)}
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]) == sorted(made["item"])
    anna, bert = Review(made, tmp_path, "anna"), Review(made, tmp_path, "bert")
    label(anna, premise="Secret.")
    assert bert.progress == (0, 30) and bert.pair["item"] == orders[0][0]
    assert "Secret." not in str(Review(made, tmp_path, "bert").__dict__)
    assert not {"model", "entailment"} & set(bert.pair.values())


def test_texts_are_stored_as_they_are(tmp_path):
    made = pairs(corpus(NASTY))
    review = Review(made, tmp_path, "anna")
    while review.pair:
        label(review)
    found = annotations(tmp_path).set_index("item").loc[made["item"]]
    assert found["premise"].tolist() == found["revised_premise"].tolist() == NASTY
    assert len((tmp_path / "answers.anna.jsonl").read_bytes().splitlines()) == len(NASTY)
    one = Review(pairs(corpus()), tmp_path, "bert")
    label(one, premise="half \ud800")
    assert annotations(tmp_path).query("annotator == 'bert'")["revised_premise"].item() == "half ?"


def test_other_line_ends_are_no_revision():
    assert as_left("a\r\nb\rc", "a\nb\nc") == "a\r\nb\rc"
    assert as_left("a\r\nb", "a b") == "a b"


def test_two_windows_may_be_open(tmp_path):
    made = pairs(corpus())
    one, other = Review(made, tmp_path, "anna"), Review(made, tmp_path, "anna")
    item = label(one, "entailment")
    other.label(item, "contradiction", premise="A dog runs.", hypothesis="It moves.")
    assert annotations(tmp_path)["label"].tolist() == ["entailment"]
    assert other.progress == (1, 3) and other.pair["item"] != item


def test_the_longest_text_that_a_corpus_may_hold_is_taken(tmp_path):
    review = Review(pairs(corpus()), tmp_path, "anna")
    label(review, hypothesis="a" * 200_000)
    assert review.progress == (1, 3)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda r: r.label("nothing", "neutral", premise="a", hypothesis="b"), "'nothing' is not in this queue of 3"),
        (lambda r: label(r, "maybe"), "field label: Input should be 'entailment'"),
        (lambda r: label(r, premise=" "), "the premise must have 1 to 200,000 characters"),
        (lambda r: label(r, hypothesis="a\0b"), "the hypothesis must have .* no NUL"),
        (lambda r: label(r, hypothesis="a" * 200_001), "Restore it, or discard the pair"),
    ],
)
def test_what_is_no_answer_is_not_written(tmp_path, what, said):
    review = Review(pairs(corpus()), tmp_path, "anna")
    with pytest.raises(ReviewError, match=said):
        what(review)
    assert not (tmp_path / "answers.anna.jsonl").exists() and review.progress == (0, 3)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 65, "é"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path, name):
    with pytest.raises(ReviewError, match="write 1 to 64 ASCII letters"):
        Review(pairs(corpus()), tmp_path, name)


def test_a_changed_text_and_a_damaged_line_are_named(tmp_path):
    label(Review(pairs(corpus()), tmp_path, "anna"))
    changed = pairs(corpus(["Other.", "Other.", "Other."]))
    with pytest.raises(ReviewError, match=r"answers.anna.jsonl: pair 'p\d' was answered when its text was another"):
        Review(changed, tmp_path, "anna")
    with (tmp_path / "answers.anna.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(ReviewError, match=r"line 2 is no answer .* Delete the line"):
        annotations(tmp_path)


def answer_all(made, folder):
    review = Review(made, folder, "anna")
    while review.pair:
        label(review)


def test_a_review_survives_kills(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # for a loss of power; a kill loses nothing that was written
    made, moments, fork = pairs(corpus(["A text."] * 120)), random.Random(1), multiprocessing.get_context("fork")
    before, path = 0, tmp_path / "answers.anna.jsonl"
    for _ in range(8):
        process = fork.Process(target=answer_all, args=(made, tmp_path))
        process.start()
        time.sleep(0.02 + 0.05 * moments.random())
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        kept = len(Answers(path).standing)
        assert kept >= before
        before = kept
    answer_all(made, tmp_path)
    assert annotations(tmp_path)["item"].tolist() == [pair["item"] for pair in queue(made)]
    assert len(path.read_bytes().splitlines()) == 120


def test_the_corpus_of_a_review_says_where_its_pairs_are_from(tmp_path):
    known = {"origin_uid": ["seed 1", None, "seed 3"], "origin_corpus": "mnli", "maker": "gpt", "intended_label": None}
    made = pairs(corpus(**known))
    assert made["origin_uid"].tolist() == ["seed 1", None, "seed 3"]
    assert made["intended_label"].tolist() == ["neutral"] * 3  # the label that the row bears
    for annotator in ("anna", "bert"):
        review = Review(made, tmp_path, annotator)
        while review.pair:
            if review.pair["item"] == "p2":
                review.discard("p2")
            else:
                label(review, **{"premise": "A cat sat."} if review.pair["item"] == "p1" else {})
    found = reviewed(made, annotations(tmp_path)).set_index("uid")
    assert found.index.tolist() == ["p0", "p1"]
    assert found.loc["p0"].to_dict() | {"rule": ""} == {
        **{"premise": "A dog runs.", "hypothesis": "It moves.", "label": "neutral", "rule": ""},
        **{"origin_uid": "seed 1", "origin_corpus": "mnli", "maker": "gpt", "intended_label": "neutral"},
        "genre": "generated",
    }
    assert found.loc["p1", ["premise", "maker", "genre"]].tolist() == ["A cat sat.", "gpt, worker", "generated_revised"]
    assert aggregate(annotations(tmp_path))["item"].tolist() == ["p0", "p1", "p2"]
    with pytest.raises(AnnotationError, match="pair 'p.' is not there, or its text is not the one"):
        reviewed(made.assign(premise="Other."), annotations(tmp_path))


def test_a_name_for_two_pairs_is_refused(tmp_path):
    with pytest.raises(ReviewError, match="item 'p0' names two pairs"):
        Review(pairs(corpus()).assign(item="p0"), tmp_path, "anna")


def test_a_corpus_without_origins_is_its_own():
    made = pairs(corpus())
    assert made["origin_uid"].tolist() == made["item"].tolist() == ["p0", "p1", "p2"]
    assert set(made["origin_corpus"]) == {"mine"} and set(made["maker"]) == {None}
