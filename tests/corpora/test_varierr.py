"""VariErr: what counts as an error, what a file may not say, the published table made again."""

import json

import numpy as np
import pandas as pd
import pytest
from cells import functions

from nli_lib.claims import paper_table
from nli_lib.corpora import load
from nli_lib.corpora.corpus import CorpusError
from nli_lib.corpora.people import known_errors, published_scores, published_table, varierr
from nli_lib.corpora.planted import make_split

HEAD = "Method\tAP\tP@50\tP@100\tR@100"  # of the published table
LETTERS = {"e": "entailment", "n": "neutral", "c": "contradiction"}


def pair(name, number, errors=(), **given):
    """A row of the file. `given`: letter of a label -> for each who gave it, the judgments by annotator."""
    row = {"id": name, "context": "A dog runs.", "statement": "It moves.", "idk": []}
    for letter, label in LETTERS.items():
        row[label] = [
            {"annotator": author, "id": f"{number}-{label}-{author}", "reason": "Dogs move when they run."}
            | {"judgments": [{"annotator": at, "makes_sense": sense} for at, sense in judged.items()]}
            for author, judged in enumerate(given.get(letter, ()))
        ]
    counts = {label: float(len(row[label])) if row[label] else None for label in LETTERS.values()}
    hundred = {"e": 90, "n": 10}  # a label that none of the hundred gave is left out
    return row | {"label_count_round_1": counts, "error_labels": list(errors), "chaosnli_labels": hundred}


PAIRS = [
    # two gave entailment, one of them stands by it; neutral is judged well by all but its own author
    pair("1e", 7, ["neutral"], e=[{0: False, 1: True}, {0: True, 1: True}], n=[{0: False, 1: True, 2: True}]),
    pair("2c", 8, ["contradiction"], c=[{0: False, 1: False, 2: False, 3: False}]),  # valid to nobody
    pair("3n", 9, ["entailment"], e=[{1: True}], n=[{0: True}]),  # the author of entailment did not judge it again
]


@pytest.fixture
def release(tmp_path):
    """A short release; gives a function that writes other rows, and the folder of corpora."""
    folder = tmp_path / "varierr"
    folder.mkdir()

    def write(rows):
        (folder / "varierr.json").write_text("\n".join(map(json.dumps, rows)) + "\n")
        return str(tmp_path)

    return write


def test_a_label_that_none_of_its_authors_stands_by_is_an_error(release):
    items = varierr(release(PAIRS))
    assert items["key"].tolist() == ["7-e", "7-n", "8-c", "9-e", "9-n"]
    assert items["error"].tolist() == [False, True, True, True, False]
    assert items["count"].tolist() == [2, 1, 1, 1, 1]
    assert items["label"].tolist() == [0, 1, 2, 0, 1]
    assert items["hundred"].tolist() == [90, 10, 0, 90, 10]
    assert items["pair"].tolist() == ["1e", "1e", "2c", "3n", "3n"]


def changed(at, **fields):
    return [row | fields if place == at else row for place, row in enumerate(PAIRS)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (changed(1, statement=None), "row 2, field statement"),
        ([PAIRS[0], {key: PAIRS[1][key] for key in PAIRS[1] if key != "error_labels"}], "row 2, field error_labels"),
        (changed(0, neutral="none"), "row 1, field neutral"),
        (changed(2, entailment=[PAIRS[0]["neutral"][0] | {"judgments": [{"annotator": 0, "makes_sense": "yes"}]}]),
         "row 3, field entailment.0.judgments.0.makes_sense"),
        (changed(1, error_labels=[]), "row 2, field error_labels"),
        (changed(0, error_labels=["neutral", "entailment"]), "row 1, field error_labels"),
        (changed(2, label_count_round_1={"entailment": 2.0, "neutral": 1.0, "contradiction": None}),
         "row 3, field label_count_round_1"),
        (changed(2, id="1e"), "row 3, field id"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_is_one_error(release, rows, said):
    with pytest.raises(CorpusError, match=said) as told:
        varierr(release(rows))
    assert "varierr.json" in str(told.value)


def test_a_line_that_is_cut_short_is_an_error(release, tmp_path):
    folder = release(PAIRS)
    with (tmp_path / "varierr" / "varierr.json").open("a") as file:
        file.write('{"id": "4n", "con\n')
    with pytest.raises(CorpusError, match="cannot be read"):
        varierr(folder)


def test_what_is_not_at_hand_is_empty_or_named(tmp_path):
    assert published_scores(str(tmp_path)).empty and published_table(str(tmp_path)).empty
    with pytest.raises(CorpusError, match=r"does not hold varierr/varierr\.json"):
        varierr(str(tmp_path))
    path = tmp_path / "mnli" / "multinli_1.0_dev_matched.jsonl"
    path.parent.mkdir()
    row = {"pairID": "1e", "sentence1": "A dog runs.", "sentence2": "It moves.", "gold_label": "entailment"}
    path.write_text(json.dumps(row) + "\n")
    assert known_errors(load("mnli", "validation_matched", str(tmp_path)), data_dir=str(tmp_path)).empty


def test_joined_to_the_corpus_by_name_with_its_own_five_labels(release, tmp_path):
    folder, path = release(PAIRS), tmp_path / "mnli" / "multinli_1.0_dev_matched.jsonl"
    five = ["entailment", "entailment", "entailment", "neutral", "neutral"]
    rows = [{"pairID": name, "annotator_labels": five} for name in ("5e", "3n", "1e")]
    same = {"sentence1": "A dog runs.", "sentence2": "It moves.", "gold_label": "entailment"}
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row | same | {"sentence2": row["pairID"]}) + "\n" for row in rows))
    items = known_errors(load("mnli", "validation_matched", folder), data_dir=folder)
    assert items["position"].tolist() == [1, 1, 2, 2]
    assert items["key"].tolist() == ["9-e", "9-n", "7-e", "7-n"]
    assert items["five"].tolist() == [0.6, 0.4, 0.6, 0.4]
    rows[1].pop("annotator_labels")
    path.write_text("".join(json.dumps(row | same | {"sentence2": row["pairID"]}) + "\n" for row in rows))
    items = known_errors(load("mnli", "validation_matched", folder), data_dir=folder)
    assert np.isnan(items["five"]).tolist() == [True, True, False, False] and items["five"].tolist()[2:] == [0.6, 0.4]


def test_the_planted_corpus_answers_for_itself():
    corpus = make_split("train", 800, seed=3)
    items = known_errors(corpus)
    flipped = corpus.table["flipped"].to_numpy(dtype=bool)
    assert (items["error"].to_numpy() == flipped[items["position"]]).all() and items["error"].any()
    assert 100 < len(items) < 300
    apart = ~np.isin(np.arange(len(corpus)), items["position"])
    assert not set(corpus.premise[apart]) & set(corpus.premise[items["position"]])


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("predictions/mine/1.json", '{"7-e": 0.5, "7-n": "high"}', "item 7-n"),
        ("predictions/mine/1.json", '{"7-e": 0.5', "item whole"),
        ("results/results.tsv", "", "results.tsv: no table with the column Method"),
        ("results/results.tsv", "Name\tAP\nmine\t$1.0$\n", "results.tsv: no table with the column Method"),
        ("results/results.tsv", "Method\tAP\nmine\t$1.0$\n", "row 1, field P@50"),
        ("results/results.tsv", f"{HEAD}\nmine\t$1.0$\tten\t$1.0$\t$1.0$\n", "row 1, field P@50"),
    ],
)
def test_a_published_file_that_does_not_fit_is_one_error(release, tmp_path, file, text, said):
    folder, path = release(PAIRS), tmp_path / "varierr" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(CorpusError, match=said):
        (published_scores if "predictions" in file else published_table)(folder)


@pytest.mark.realdata
def test_the_published_sizes():
    items = varierr()
    assert (len(items), items["error"].sum(), items["pair"].nunique()) == (878, 129, 500)
    joined = known_errors(load("mnli", "validation_matched"))
    assert (len(joined), joined["error"].sum()) == (878, 129)
    assert set(joined["key"]) == set(items["key"]) and joined["five"].between(0, 1).all()


@pytest.mark.realdata
def test_the_published_table_comes_of_the_published_predictions():
    printed = published_table()["AP"]
    again = functions("34_known_errors", np=np, pd=pd).reproduced(published_scores(), varierr(), printed)
    assert set(printed.index) - set(again.index) == {"random"}
    assert (again["ours"] - again["printed"]).abs().max() < 0.051  # a tenth of a point, rounded
    assert {"dm_mean", "gpt-4-1106-preview", "LC_VariErr", "peer_heuristic_sum_all_exp"} <= set(again.index)
    assert printed["random"] == pytest.approx(100 * varierr()["error"].mean(), abs=0.05)


@pytest.mark.realdata
def test_the_papers_numbers_are_those_of_the_release():
    printed, table = published_table(), paper_table("varierr", "results.tsv")
    for column, ours in {"AP": "ap", "P@50": "p50", "P@100": "p100"}.items():
        assert (printed[column] == table[ours]).all()
