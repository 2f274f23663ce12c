"""A corpus is one checked table; its digest, subsets, duplicates and overlap."""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import Corpus, CorpusError, check_enough, duplicates, overlap
from nli_lib.corpora.corpus import LABELS

PAIRS = [("a", "A cat sleeps.", "An animal rests.", 0), ("b", "A cat sleeps.", "The cat is grey.", 1)]
PAIRS += [("c", "A dog runs.", "A dog sits.", 2), ("d", "A dog runs.", "A dog sits.", 1)]


def corpus(pairs=PAIRS, **kwargs) -> Corpus:
    table = pd.DataFrame(pairs, columns=["uid", "premise", "hypothesis", "label"]).assign(corpus="tiny", split="train")
    return Corpus(table, "tiny", "train", **kwargs)


def test_columns_and_arrays():
    tiny = corpus()
    assert len(tiny) == 4
    assert tiny.labels.dtype == np.int64
    assert tiny.labels.tolist() == [0, 1, 2, 1]
    assert tiny.premise.dtype == object
    assert tiny.hypothesis[2] == "A dog sits."
    assert tiny.uid.tolist() == ["a", "b", "c", "d"]
    assert "tiny/train" in repr(tiny)


def test_views():
    tiny = corpus()
    assert tiny.texts("pair") == (tiny.premise.tolist(), tiny.hypothesis.tolist())
    assert tiny.texts("hypothesis") == (tiny.hypothesis.tolist(), None)
    assert tiny.texts("premise") == (tiny.premise.tolist(), None)
    with pytest.raises(ValueError, match=r"pair, hypothesis, premise"):
        tiny.texts("both")


@pytest.mark.parametrize(
    ("keep", "uids"),
    [
        (np.array([True, False, False, True]), ["a", "d"]),
        (np.array([2, 0]), ["c", "a"]),
        ([1], ["b"]),
        ([], []),
        (slice(2), ["a", "b"]),
    ],
)
def test_subsets(keep, uids):
    subset = corpus(skipped={"empty text": 3}, source="somewhere")[keep]
    assert subset.uid.tolist() == uids
    assert subset.table.index.tolist() == list(range(len(uids)))
    assert subset.source == "somewhere"
    assert subset.skipped == {"empty text": 3}


def test_a_mask_of_another_length_is_refused():
    with pytest.raises(IndexError, match="size of axis is 4 but .* is 2"):
        corpus()[np.array([True, False])]
    with pytest.raises(IndexError, match="only integers"):
        corpus()[[0.5]]


def test_the_digest_is_of_content_and_order():
    tiny = corpus()
    assert tiny.digest == corpus(source="elsewhere").digest
    assert len(tiny.digest) == 64
    assert tiny.digest != tiny[[3, 2, 1, 0]].digest
    assert tiny.digest != corpus([(*PAIRS[0][:3], 1), *PAIRS[1:]]).digest
    moved = corpus([("a", "xy", "z", 0)]), corpus([("a", "x", "yz", 0)])
    assert moved[0].digest != moved[1].digest


def test_faults_of_the_table_are_named():
    with pytest.raises(CorpusError, match="'a' names more than one row"):
        corpus([PAIRS[0], PAIRS[0]])
    with pytest.raises(CorpusError, match="label 3"):
        corpus([("a", "p", "h", 3)])
    with pytest.raises(CorpusError, match="hypothesis"):
        Corpus(pd.DataFrame({"uid": ["a"]}), "tiny", "train")


def test_duplicates():
    found = duplicates(corpus())
    assert found.pairs.tolist() == [False, False, False, True]
    assert found.conflicting.tolist() == [False, False, True, True]
    assert found.sum().to_dict() == {"pairs": 1, "conflicting": 2, "premises": 2, "hypotheses": 1}


def test_letter_case_and_blanks_hide_no_overlap():
    pairs = [("a", "A cat.", "It  sleeps.", 0), ("b", "a CAT.", "it sleeps.", 0)]
    assert not duplicates(corpus(pairs))["pairs"].any()
    assert overlap(corpus(pairs[:1]), corpus(pairs[1:]))["pairs"].all()


def test_overlap_of_test_with_train():
    train, test = corpus(), corpus([("x", "A cat sleeps.", "It snores.", 1), ("y", "A dog runs.", "A dog sits.", 2)])
    shared = overlap(test, train)
    assert shared.pairs.tolist() == [False, True]
    assert shared.sum().to_dict() == {"pairs": 1, "premises": 2, "hypotheses": 1}
    assert overlap(train, test[[0]]).premises.tolist() == [True, True, False, False]


def test_the_report_counts_everything():
    report = corpus(skipped={"no gold label": 2}, source="tiny.jsonl").report()
    assert report["source"].unique().tolist() == ["tiny.jsonl"]
    count = report.set_index(["kind", "what"])["count"]
    assert count["rows", "kept"] == 4
    assert count["label", "neutral"] == 2
    assert count["skipped", "no gold label"] == 2
    assert count["repeated", "pairs"] == 1


def many(counts, classes=LABELS, **kwargs):
    labels = np.repeat(np.arange(len(counts)), counts)
    pairs = [(str(at), "A cat sleeps.", f"It is {at}.", label) for at, label in enumerate(labels)]
    return corpus(pairs, classes=classes, **kwargs)


def test_warnings_name_what_is_rare_small_or_left_out():
    assert many([200, 200, 200], skipped={"empty text": 10}).warnings() == []
    (rare,) = many([1500, 1500, 100]).warnings()
    assert rare.startswith("Only 100 of 3,100 rows (3.2%) are contradiction")
    (small,) = many([99, 120], classes=("entailment", "neutral")).warnings()
    assert small.startswith("Fewer than 100 rows of a class (entailment 99, neutral 120)")
    (left,) = many([200, 200], classes=("entailment", "neutral"), skipped={"empty text": 100}).warnings()
    assert left == "More than 5% of the rows cannot be used. 100 of 500 rows were left out: empty text 100."
    (one,) = many([0, 200, 0]).warnings()
    assert one.startswith("All rows are neutral")


def test_too_few_rows_of_a_class_are_one_error():
    check_enough(many([5, 5, 5]), 5, "five folds")
    with pytest.raises(CorpusError, match=r"tiny/train: five folds: 5 rows of each .* entailment 5, neutral 4, contra"):
        check_enough(many([5, 4, 5]), 5, "five folds")
    with pytest.raises(CorpusError, match="a corpus of one class cannot be analysed"):
        check_enough(many([0, 500, 0]))


def test_an_empty_subset_is_still_a_corpus():
    empty = corpus()[[]]
    assert len(empty.digest) == 64
    assert duplicates(empty)["pairs"].sum() == 0
    assert overlap(empty, corpus())["pairs"].sum() == 0


def test_examples_are_the_first_of_each_class():
    rows = {"uid": list("abcd"), "premise": "A dog runs.", "hypothesis": ["One.", "Two.", "Three.", "Four."]}
    table = pd.DataFrame(rows).assign(label=[1, 1, 0, 2], corpus="mine", split="train")
    shown = Corpus(table, "mine", "train").examples(extra=["uid"])
    assert shown["uid"].tolist() == ["a", "c", "d"]
    assert shown["label"].tolist() == ["neutral", "entailment", "contradiction"]


def test_points_carry_the_examples_alone_or_all_texts():
    whole = corpus()
    told = whole.points()
    examples = whole.examples()
    assert list(told.columns) == ["position", "label", "premise", "hypothesis"]
    assert len(told) == len(whole)
    assert told["premise"].notna().sum() == len(examples)
    assert list(told.dropna()["hypothesis"]) == list(examples["hypothesis"])
    assert whole.points(texts=True)["premise"].notna().all()
    few = whole.points(most=len(examples))
    assert few["premise"].notna().all(), "a part keeps the examples"
    assert whole.points(texts=True, letters=3)["premise"].str.len().max() <= 3


def test_a_class_without_a_row_is_said_in_plain_words():
    rows = [(str(at), f"P {at}", "H", at % 2, "mine", "train") for at in range(300)]
    found = Corpus(
        pd.DataFrame(rows, columns=["uid", "premise", "hypothesis", "label", "corpus", "split"]), "mine", "train"
    ).warnings()
    assert (
        found[0] == "No row is contradiction: nothing that compares contradiction with another class can be measured."
    )
