"""People's labels beside a corpus: joined by uid, entropy in bits, the planted corpus answering for itself.

Alone: pytest tests/corpora/test_people.py"""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from cells import functions

from nli_lib.corpora import load
from nli_lib.corpora.corpus import LABELS, Corpus, CorpusError, concat
from nli_lib.corpora.people import COLUMNS, REFERENCES, annotators, human_labels, known_errors, references
from nli_lib.corpora.planted import make_split

E, N, C = LABELS
with_authors_labels = functions("36_authors_labels", pd=pd).with_authors_labels


def snli(uids, labels, five=None, name="snli", split="validation"):
    """Pairs with gold labels; `five`: the names that annotators gave each, None for none."""
    rows = {"uid": list(uids), "premise": "A dog runs.", "label": labels}
    rows["hypothesis"] = [f"A dog {i}." for i in range(len(uids))]
    if five is not None:
        rows["annotator_labels"] = [json.dumps(each) if each else None for each in five]
    return Corpus(pd.DataFrame(rows).assign(corpus=name, split=split), name, split)


@pytest.fixture
def chaos(tmp_path):
    """Writes a file in ChaosNLI's own format (label_count in the order e, n, c); gives the folder of corpora."""

    def write(**counts):
        path = tmp_path / "chaosnli" / "chaosNLI_snli.jsonl"
        path.parent.mkdir()
        row = {"old_label": "n", "entropy": 0.0, "example": {"premise": "A dog runs.", "hypothesis": "A dog."}}
        with path.open("w") as file:
            for uid, count in counts.items():
                own = {"uid": uid, "label_count": count, "majority_label": "enc"[int(np.argmax(count))]}
                file.write(json.dumps(row | own) + "\n")
        return {"data_dir": str(tmp_path)}

    return write


def test_joined_by_uid_in_the_corpus_order(chaos):
    people = human_labels(snli("abc", [0, 1, 0]), **chaos(c=[25, 75, 0], a=[100, 0, 0]))
    assert people["position"].tolist() == [0, 2] and people["uid"].tolist() == ["a", "c"]
    assert people["entropy"].to_numpy() == pytest.approx([0.0, 0.811278], abs=1e-6)  # H(1/4) in bits
    assert people["share_gold"].tolist() == [1.0, 0.25] and people["majority"].tolist() == [0, 1]


def test_the_authors_labels_are_judged_by_the_same_people(chaos):
    corpus = snli("abc", [0, 1, 0], [[N, E, E, E, E], [N], [E] * 5])
    people = human_labels(with_authors_labels(corpus), **chaos(c=[25, 75, 0], a=[100, 0, 0]))
    assert people["position"].tolist() == [0, 1] and people["uid"].tolist() == ["a", "c"]
    assert people["share_gold"].tolist() == [0.0, 0.25]  # of the author's label


def test_three_even_ways_are_log2_of_three(chaos):
    people = human_labels(snli("a", [2]), **chaos(a=[30, 30, 30]))
    assert people["entropy"].iloc[0] == pytest.approx(np.log2(3))
    assert people["majority"].iloc[0] == 0  # of equals, the first


def test_a_corpus_without_such_labels_gives_an_empty_table(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert list(human_labels(snli("a", [0]), data_dir=str(tmp_path)).columns) == list(COLUMNS)
    assert human_labels(snli("a", [0], name="mine", split="train")).empty


def test_the_author_is_judged_by_five():
    given = [[E, N, N, N, E], [E] * 5, [C], None, [N, N, E, "-", N]]
    five = annotators(snli("abcde", [1, 0, 2, 0, 1], given))
    assert five["position"].tolist() == [0, 1]  # the others have fewer than five labels
    assert five["author"].tolist() == [0, 0] and five["majority"].tolist() == [1, 0]
    assert five["agreement"].tolist() == [0.6, 1.0] and annotators(snli("a", [0])).empty


def test_with_its_authors_labels_a_corpus_is_judged_by_the_same_majority():
    corpus = snli("ab", [1, 0], [[E, N, N, N, E], [E] * 5])
    by_authors = with_authors_labels(corpus)
    assert by_authors.labels.tolist() == [0, 0]
    pd.testing.assert_frame_equal(annotators(by_authors), annotators(corpus))
    assert references(by_authors)["wrong"].tolist() == references(corpus)["wrong"].tolist() == [True, False]
    pd.testing.assert_frame_equal(with_authors_labels(by_authors).table, by_authors.table)
    lost = replace(by_authors, table=by_authors.table.drop(columns="majority"))
    with pytest.raises(CorpusError, match="snli-authors/validation: .* column 'majority'"):
        annotators(lost)


def test_the_first_of_five_takes_the_place_of_the_majority():
    corpus = with_authors_labels(snli("abc", [1, 1, 1], [[E, N, N, N, N], [N], [N] * 5]))
    assert corpus.name == "snli-authors" and corpus.labels.tolist() == [0, 1]
    assert corpus.table["majority"].tolist() == [1, 1] and corpus.uid.tolist() == ["a", "c"]
    assert corpus.skipped["no label of its author among five"] == 1
    with pytest.raises(CorpusError, match="no pair has five labels"):
        with_authors_labels(snli("a", [1], [[N]]))


def test_both_references_in_one_table(chaos):
    folder = chaos(b=[25, 75, 0])
    table = references(snli("ab", [1, 0], [[E] * 2 + [N] * 3, None]), **folder)
    assert table.to_numpy().tolist() == [[1, 0, 1, "hundred", True], [0, 0, 1, "five", True]]
    assert set(table["truth"]) <= set(REFERENCES) and references(snli("c", [0]), **folder).empty


def test_the_planted_corpus_answers_for_itself():
    corpus = make_split("train", 600, seed=3)
    people, five, authors = human_labels(corpus), annotators(corpus), with_authors_labels(corpus)
    ambiguous, flipped = corpus.table["ambiguous"].to_numpy(), corpus.table["flipped"].to_numpy()
    assert len(people) == len(corpus) and (people["entropy"].to_numpy() == ambiguous).all()
    assert (people["share_gold"][flipped & ~ambiguous] == 0).all()
    assert (people["share_gold"][~flipped & ~ambiguous] == 1).all()
    assert ((five["author"] != five["majority"]).to_numpy() == flipped).all()
    assert authors.name == "planted" and authors.digest == corpus.digest  # the given label is the author's
    assert (authors.table["majority"] == corpus.table["true_label"]).all()


def test_a_users_file_that_is_called_planted_has_no_planted_truth(tmp_path):
    path = tmp_path / "planted.csv"
    path.write_text("premise,hypothesis,label,annotator_labels\nA,B,neutral,1\nA,C,entailment,2\n")
    corpus = load(path)
    assert human_labels(corpus).empty and annotators(corpus).empty


def test_pairs_without_planted_truth_are_refused():
    mixed = concat([make_split("train", 30, seed=3), snli("a", [0])], name="planted")
    for ask in (human_labels, annotators, known_errors):
        with pytest.raises(CorpusError, match="planted/train: row 30 has no true_label: nothing was planted"):
            ask(mixed)


def test_labels_that_are_no_json_and_a_damaged_set_of_the_hundred(chaos, tmp_path):
    corpus = snli("ab", [0, 0], [[E] * 5] * 2)
    corpus.table.loc[0, "annotator_labels"] = "['neutral', 'entailment']"  # as pandas writes it
    assert annotators(corpus)["position"].tolist() == [1]
    folder, file = chaos(a=[100, 0, 0]), tmp_path / "chaosnli" / "chaosNLI_snli.jsonl"
    file.write_text(file.read_text().replace("label_count", "counts"))
    with pytest.raises(CorpusError, match="chaosNLI_snli"):  # not that nobody was asked
        human_labels(corpus, **folder)


# ---------------------------------------------------------------- all truths of chapter 60


def chapter(**given):
    found = functions("60_do_scores_agree", np=np, pd=pd)
    found.outside_truths.__globals__.update(given)
    return found


def test_truths_by_hand():
    people = pd.DataFrame({"position": [0, 3], "entropy": [0.5, 1.2], "majority": [0, 2]})
    five = pd.DataFrame({"position": [1, 2], "author": [0, 2], "majority": [1, 2]})
    berts = pd.DataFrame({"position": [2], "right": [93]})
    items = pd.DataFrame({"position": [1, 1], "label": [1, 2], "error": [False, True]})
    tables = {"human_labels": people, "annotators": five, "hundred_berts": berts, "known_errors": items}
    cells = chapter(**{name: lambda *_, found=table, **__: found for name, table in tables.items()})
    found = cells.outside_truths(snli("abcd", [0, 1, 2, 0]))
    rows = {name: part[["position", "label", "value"]].to_numpy().tolist() for name, part in found.groupby("truth")}
    assert rows == {
        cells.ENTROPY: [[0, 0, 0.5], [3, 0, 1.2]], cells.ERROR: [[0, 0, 0], [3, 0, 1]],
        cells.OVERRULED: [[1, 1, 1], [2, 2, 0]], cells.TAKEN_BACK: [[1, 1, 0], [1, 2, 1]],
        cells.BERTS: [[2, 2, pytest.approx(0.07)]]}  # fmt: skip


def test_nobody_judged_a_corpus(tmp_path):
    found = chapter().outside_truths(snli("abcd", [0, 1, 2, 0], name="mine"), str(tmp_path))
    assert list(found) == ["truth", "position", "label", "value"] and found.empty


def test_the_planted_corpus_knows_what_was_planted():
    corpus, cells = make_split("train", 400, seed=1), chapter()
    flipped = corpus.table["flipped"].to_numpy(dtype=bool)
    by_name = dict(list(cells.outside_truths(corpus).groupby("truth")))
    assert set(by_name) == {cells.ENTROPY, cells.ERROR, cells.OVERRULED, cells.TAKEN_BACK}
    for name, part in by_name.items():
        assert part["label"].tolist() == corpus.labels[part["position"]].tolist()
        if name != cells.ENTROPY:
            assert np.array_equal(part["value"] == 1, flipped[part["position"]])
    assert all(len(by_name[name]) == 400 for name in (cells.ERROR, cells.OVERRULED))


# ---------------------------------------------------------------- real data


@pytest.mark.realdata
def test_authors_of_snli():
    """Bowman et al. (2015), section 2.2: the gold label is the author's in 91.2% of the validated pairs."""
    five = annotators(load("snli", "test"))
    assert len(five) == 9815  # nine of 9,824 have four labels
    assert (five["author"] != five["majority"]).sum() == 682 and five["agreement"].min() == 0.6
    corpus = with_authors_labels(load("snli", "validation"))
    same = (corpus.labels == corpus.table["majority"].to_numpy()).mean()
    assert len(corpus) > 9_800
    assert same == pytest.approx(0.912 / 0.98, abs=0.02)  # of the pairs that have a gold label
    assert np.isin(corpus.labels, [0, 1, 2]).all()


@pytest.mark.realdata
def test_who_judged_the_development_sets():
    cells, places = chapter(), (("snli", "validation"), ("mnli", "validation_matched"))
    snli, mnli = (cells.outside_truths(load(*place))["truth"].value_counts() for place in places)
    assert snli[cells.ENTROPY] == snli[cells.ERROR] == 1514
    assert mnli[cells.ENTROPY] == 1599 and mnli[cells.BERTS] == 9815 and mnli[cells.TAKEN_BACK] == 878
