"""People's labels beside a corpus: joined by uid, entropy in bits, the planted corpus answering for itself."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import load, sources
from nli_lib.corpora.corpus import LABELS, Corpus, CorpusError, concat
from nli_lib.corpora.people import (
    COLUMNS,
    REFERENCES,
    annotators,
    human_labels,
    known_errors,
    references,
    with_authors_labels,
)
from nli_lib.corpora.planted import make_split, planted_truths


def snli(uids, labels):
    rows = {"uid": uids, "premise": "A dog runs.", "label": labels}
    rows["hypothesis"] = [f"A dog {i}." for i in range(len(uids))]
    return Corpus(pd.DataFrame(rows).assign(corpus="snli", split="validation"), "snli", "validation")


def chaos(folder, counts):
    """A file in ChaosNLI's own format: label_count in the order e, n, c."""
    folder.mkdir()
    with (folder / "chaosNLI_snli.jsonl").open("w") as file:
        for uid, count in counts.items():
            shares = [n / 100 for n in count]
            row = {
                "uid": uid, "label_count": count, "label_dist": shares, "majority_label": "enc"[int(np.argmax(count))],
                "label_counter": dict(zip("enc", count, strict=True)), "entropy": 0.0, "old_label": "n",
                "example": {"uid": uid, "premise": "A dog runs.", "hypothesis": "A dog.", "source": "invented"},
            }  # fmt: skip
            file.write(json.dumps(row) + "\n")


def test_joined_by_uid_in_the_corpus_order(tmp_path):
    chaos(tmp_path / "chaosnli", {"c": [25, 75, 0], "a": [100, 0, 0]})
    people = human_labels(snli(["a", "b", "c"], [0, 1, 0]), data_dir=str(tmp_path))
    assert people["position"].tolist() == [0, 2]
    assert people["uid"].tolist() == ["a", "c"]
    assert people["entropy"].to_numpy() == pytest.approx([0.0, 0.811278], abs=1e-6)  # H(1/4) in bits
    assert people["share_gold"].tolist() == [1.0, 0.25]
    assert people["majority"].tolist() == [0, 1]


def test_the_authors_labels_are_judged_by_the_same_people(tmp_path):
    chaos(tmp_path / "chaosnli", {"c": [25, 75, 0], "a": [100, 0, 0]})
    corpus = snli(["a", "b", "c"], [0, 1, 0])
    corpus.table["annotator_labels"] = [
        json.dumps([LABELS[n] for n in each]) for each in ([1, 0, 0, 0, 0], [1], [0] * 5)
    ]
    people = human_labels(with_authors_labels(corpus), data_dir=str(tmp_path))
    assert people["position"].tolist() == [0, 1] and people["uid"].tolist() == ["a", "c"]
    assert people["share_gold"].tolist() == [0.0, 0.25]  # of the author's label


def test_three_even_ways_are_log2_of_three(tmp_path):
    chaos(tmp_path / "chaosnli", {"a": [30, 30, 30]})
    people = human_labels(snli(["a"], [2]), data_dir=str(tmp_path))
    assert people["entropy"].iloc[0] == pytest.approx(np.log2(3))
    assert people["majority"].iloc[0] == 0  # of equals, the first


def test_a_corpus_without_such_labels_gives_an_empty_table(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert list(human_labels(snli(["a"], [0]), data_dir=str(tmp_path)).columns) == list(COLUMNS)
    other = snli(["a"], [0])
    assert human_labels(Corpus(other.table, "mine", "train")).empty


def test_the_planted_corpus_answers_for_itself():
    corpus = make_split("train", 600, seed=3)
    people = human_labels(corpus)
    ambiguous, flipped = corpus.table["ambiguous"].to_numpy(), corpus.table["flipped"].to_numpy()
    assert len(people) == len(corpus)
    assert (people["entropy"].to_numpy() == ambiguous).all()
    assert (people["share_gold"][flipped & ~ambiguous] == 0).all()
    assert (people["share_gold"][~flipped & ~ambiguous] == 1).all()


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "split", "rows"), [("snli", "validation", 1514), ("mnli", "validation_matched", 1599)]
)
def test_chaosnli_meets_its_corpora(name, split, rows):
    corpus = sources.load(name, split)
    people = human_labels(corpus)
    assert len(people) <= rows
    assert len(people) >= 0.9 * rows  # MultiNLI's pairIDs are not known for every row here
    assert people["share_gold"].mean() > 0.5


def test_the_author_is_judged_by_five():
    corpus = snli(["a", "b", "c", "d", "e"], [1, 0, 2, 0, 1])
    e, n, c = "entailment", "neutral", "contradiction"
    given = [[e, n, n, n, e], [e] * 5, [c], None, [n, n, e, "-", n]]
    corpus.table["annotator_labels"] = [json.dumps(each) if each else None for each in given]
    five = annotators(corpus)
    assert five["position"].tolist() == [0, 1]  # the others have fewer than five labels
    assert five["author"].tolist() == [0, 0]
    assert five["majority"].tolist() == [1, 0]
    assert five["agreement"].tolist() == [0.6, 1.0]
    assert annotators(snli(["a"], [0])).empty


def test_with_its_authors_labels_a_corpus_is_judged_by_the_same_majority():
    corpus = snli(["a", "b"], [1, 0])
    e, n = "entailment", "neutral"
    corpus.table["annotator_labels"] = [json.dumps(each) for each in ([e, n, n, n, e], [e] * 5)]
    by_authors = with_authors_labels(corpus)
    assert by_authors.labels.tolist() == [0, 0]
    pd.testing.assert_frame_equal(annotators(by_authors), annotators(corpus))
    assert references(by_authors)["wrong"].tolist() == references(corpus)["wrong"].tolist() == [True, False]
    pd.testing.assert_frame_equal(with_authors_labels(by_authors).table, by_authors.table)
    lost = replace(by_authors, table=by_authors.table.drop(columns="majority"))
    with pytest.raises(CorpusError, match="snli-authors/validation: .* column 'majority'"):
        annotators(lost)


def test_the_planted_authors_are_the_flips():
    corpus = make_split("train", 300, seed=1)
    five = annotators(corpus)
    assert ((five["author"] != five["majority"]).to_numpy() == corpus.table["flipped"].to_numpy()).all()


@pytest.mark.realdata
def test_authors_of_snli():
    corpus = sources.load("snli", "test")
    five = annotators(corpus)
    assert len(five) == 9815  # nine of 9,824 have four labels
    assert (five["author"] != five["majority"]).sum() == 682
    assert five["agreement"].min() == 0.6


def test_both_references_in_one_table(tmp_path):
    chaos(tmp_path / "chaosnli", {"b": [25, 75, 0]})
    corpus = snli(["a", "b"], [1, 0])
    corpus.table["annotator_labels"] = [json.dumps(["entailment"] * 2 + ["neutral"] * 3), None]
    table = references(corpus, data_dir=str(tmp_path))
    assert table.to_numpy().tolist() == [[1, 0, 1, "hundred", True], [0, 0, 1, "five", True]]
    assert set(table["truth"]) <= set(REFERENCES)
    assert references(snli(["c"], [0]), data_dir=str(tmp_path)).empty


def test_a_users_file_that_is_called_planted_has_no_planted_truth(tmp_path):
    path = tmp_path / "planted.csv"
    path.write_text("premise,hypothesis,label,annotator_labels\nA,B,neutral,1\nA,C,entailment,2\n")
    corpus = load(path)
    assert human_labels(corpus).empty and annotators(corpus).empty


def test_pairs_without_planted_truth_are_refused():
    mixed = concat([make_split("train", 30, seed=3), snli(["a"], [0])], name="planted")
    for ask in (human_labels, annotators, planted_truths, known_errors):
        with pytest.raises(CorpusError, match="planted/train: row 30 has no true_label: nothing was planted"):
            ask(mixed)


def test_labels_that_are_no_json_and_a_damaged_set_of_the_hundred(tmp_path):
    corpus = snli(["a", "b"], [0, 0])
    corpus.table["annotator_labels"] = ["['neutral', 'entailment']", json.dumps([LABELS[0]] * 5)]  # as pandas writes it
    assert annotators(corpus)["position"].tolist() == [1]
    chaos(tmp_path / "chaosnli", {"a": [100, 0, 0]})
    file = tmp_path / "chaosnli" / "chaosNLI_snli.jsonl"
    file.write_text(file.read_text().replace("label_count", "counts"))
    with pytest.raises(CorpusError, match="chaosNLI_snli"):  # not that nobody was asked
        human_labels(corpus, data_dir=str(tmp_path))
