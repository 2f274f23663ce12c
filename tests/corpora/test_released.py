"""What others released about the pairs: files that are read whole or not at all.

VariErr (what counts as an error, the published table made again), the hundred BERTs of McCoy et al. beside MultiNLI dev
matched, WANLI's annotations. Alone: pytest tests/corpora/test_released.py"""

import json

import numpy as np
import pandas as pd
import pytest
from cells import functions
from tiny_words import corpus_from

from nli_lib.claims import paper_table
from nli_lib.corpora import load, people
from nli_lib.corpora.corpus import LABELS, CorpusError
from nli_lib.corpora.people import hundred_berts, known_errors, varierr
from nli_lib.corpora.planted import make_split
from nli_lib.generate.review import NEEDED


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


# ---------------------------------------------------------------- varierr


CHAPTER = functions("34_known_errors", np=np, pd=pd)
HEAD = "Method\tAP\tP@50\tP@100\tR@100"  # of the published table
MNLI = "mnli/multinli_1.0_dev_matched.jsonl"


def pair(name, number, errors=(), **given):
    """A row of the file. `given`: letter of a label -> for each who gave it, the judgments by annotator."""
    row = {"id": name, "context": "A dog runs.", "statement": "It moves.", "idk": []}
    for label in LABELS:
        row[label] = [
            {"annotator": author, "id": f"{number}-{label}-{author}", "reason": "Dogs move when they run."}
            | {"judgments": [{"annotator": at, "makes_sense": sense} for at, sense in judged.items()]}
            for author, judged in enumerate(given.get(label[0], ()))
        ]
    counts = {label: float(len(row[label])) if row[label] else None for label in LABELS}
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
    """A short release; gives the folder of corpora."""
    write(tmp_path / "varierr" / "varierr.json", PAIRS)
    return str(tmp_path)


def test_a_label_that_none_of_its_authors_stands_by_is_an_error(release):
    items = varierr(release)
    assert items["key"].tolist() == ["7-e", "7-n", "8-c", "9-e", "9-n"]
    assert items["error"].tolist() == [False, True, True, True, False] and items["count"].tolist() == [2, 1, 1, 1, 1]
    assert items["label"].tolist() == [0, 1, 2, 0, 1] and items["hundred"].tolist() == [90, 10, 0, 90, 10]
    assert items["pair"].tolist() == ["1e", "1e", "2c", "3n", "3n"]


def changed(at, **fields):
    return [row | fields if place == at else row for place, row in enumerate(PAIRS)]


@pytest.mark.parametrize(("rows", "said"), [
    (changed(1, statement=None), "row 2, field statement"),
    ([PAIRS[0], {key: PAIRS[1][key] for key in PAIRS[1] if key != "error_labels"}], "row 2, field error_labels"),
    (changed(0, neutral="none"), "row 1, field neutral"),
    (changed(2, entailment=[PAIRS[0]["neutral"][0] | {"judgments": [{"annotator": 0, "makes_sense": "yes"}]}]),
     "row 3, field entailment.0.judgments.0.makes_sense"),
    (changed(1, error_labels=[]), "row 2, field error_labels"),
    (changed(0, error_labels=["neutral", "entailment"]), "row 1, field error_labels"),
    (changed(2, label_count_round_1={"entailment": 2.0, "neutral": 1.0, "contradiction": None}),
     "row 3, field label_count_round_1"),
    (changed(2, id="1e"), "row 3, field id")])  # fmt: skip
def test_a_release_that_does_not_fit_is_one_error(tmp_path, rows, said):
    write(tmp_path / "varierr" / "varierr.json", rows)
    with pytest.raises(CorpusError, match=rf"varierr\.json: {said}.*Fetch the file again\.$"):
        varierr(str(tmp_path))


def test_what_is_not_at_hand_is_empty_or_named(tmp_path):
    assert CHAPTER.published_scores(str(tmp_path)).empty and CHAPTER.published_table(str(tmp_path)).empty
    with pytest.raises(CorpusError, match=r"does not hold varierr/varierr\.json"):
        varierr(str(tmp_path))
    pair = {"pairID": "1e", "sentence1": "A dog runs.", "sentence2": "It moves.", "gold_label": "neutral"}
    write(tmp_path / MNLI, [pair])
    assert known_errors(load("mnli", "validation_matched", str(tmp_path)), data_dir=str(tmp_path)).empty


def test_joined_to_the_corpus_by_name_with_its_own_five_labels(release, tmp_path):
    same = {"sentence1": "A dog runs.", "gold_label": "entailment"}
    five = {"annotator_labels": ["entailment", "entailment", "entailment", "neutral", "neutral"]}
    rows = [{"pairID": name, "sentence2": name} | same | five for name in ("5e", "3n", "1e")]
    write(tmp_path / MNLI, rows)
    items = known_errors(load("mnli", "validation_matched", release), data_dir=release)
    assert items["position"].tolist() == [1, 1, 2, 2] and items["key"].tolist() == ["9-e", "9-n", "7-e", "7-n"]
    assert items["five"].tolist() == [0.6, 0.4, 0.6, 0.4]
    rows[1].pop("annotator_labels")
    write(tmp_path / MNLI, rows)
    items = known_errors(load("mnli", "validation_matched", release), data_dir=release)
    assert np.isnan(items["five"]).tolist() == [True, True, False, False] and items["five"].tolist()[2:] == [0.6, 0.4]


def test_the_planted_corpus_knows_its_errors():
    corpus = make_split("train", 800, seed=3)
    items = known_errors(corpus)
    flipped = corpus.table["flipped"].to_numpy(dtype=bool)
    assert (items["error"].to_numpy() == flipped[items["position"]]).all() and items["error"].any()
    assert 100 < len(items) < 300
    apart = ~np.isin(np.arange(len(corpus)), items["position"])
    assert not set(corpus.premise[apart]) & set(corpus.premise[items["position"]])


@pytest.mark.parametrize(("file", "text", "said"), [
    ("predictions/mine/1.json", '{"7-e": 0.5, "7-n": "high"}', "item 7-n"),
    ("predictions/mine/1.json", '{"7-e": 0.5', "item whole"),
    ("results/results.tsv", "", "results.tsv: no table with the column Method"),
    ("results/results.tsv", "Name\tAP\nmine\t$1.0$\n", "results.tsv: no table with the column Method"),
    ("results/results.tsv", "Method\tAP\nmine\t$1.0$\n", "row 1, field P@50"),
    ("results/results.tsv", f"{HEAD}\nmine\t$1.0$\tten\t$1.0$\t$1.0$\n", "row 1, field P@50")])  # fmt: skip
def test_a_published_file_that_does_not_fit_is_one_error(release, tmp_path, file, text, said):
    path = tmp_path / "varierr" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(CorpusError, match=said):
        (CHAPTER.published_scores if "predictions" in file else CHAPTER.published_table)(release)


@pytest.mark.realdata
def test_the_published_sizes():
    items = varierr()
    assert (len(items), items["error"].sum(), items["pair"].nunique()) == (878, 129, 500)
    joined = known_errors(load("mnli", "validation_matched"))
    assert (len(joined), joined["error"].sum()) == (878, 129)
    assert set(joined["key"]) == set(items["key"]) and joined["five"].between(0, 1).all()


@pytest.mark.realdata
def test_the_published_table_comes_of_the_published_predictions():
    printed = CHAPTER.published_table()["AP"]
    again = CHAPTER.reproduced(CHAPTER.published_scores(), varierr(), printed)
    assert set(printed.index) - set(again.index) == {"random"}
    assert (again["ours"] - again["printed"]).abs().max() < 0.051  # a tenth of a point, rounded
    assert {"dm_mean", "gpt-4-1106-preview", "LC_VariErr", "peer_heuristic_sum_all_exp"} <= set(again.index)
    assert printed["random"] == pytest.approx(100 * varierr()["error"].mean(), abs=0.05)
    table, columns = paper_table("varierr", "results.tsv"), {"AP": "ap", "P@50": "p50", "P@100": "p100"}
    assert all((CHAPTER.published_table()[column] == table[ours]).all() for column, ours in columns.items())


# ---------------------------------------------------------------- berts


def mnli(n, index=None, split="validation_matched"):
    columns = {} if index is None else {"index": index}
    return corpus_from([("A dog runs.", "It moves.", 0)] * n, name="mnli", split=split, **columns)


@pytest.fixture
def released(tmp_path, monkeypatch):
    """A short release in the official form; the number of rows it must have is shortened with it."""
    monkeypatch.setattr(people, "ROWS", 4)
    path = tmp_path / "berts_of_a_feather" / people.PREDICTION_FILES[0]
    path.parent.mkdir()
    path.write_text("index,number of correct responses (out of 100)\n0,100\n1,0\n2,57\n3,99\n")
    return path


def test_joined_by_index(released, tmp_path):
    found = hundred_berts(mnli(3, index=[3, 0, 2]), data_dir=str(tmp_path))
    assert found["position"].tolist() == [0, 1, 2] and found["right"].tolist() == [99, 100, 57]


def test_without_an_index_the_whole_split_is_in_order(released, tmp_path):
    assert hundred_berts(mnli(4), data_dir=str(tmp_path))["right"].tolist() == [100, 0, 57, 99]
    with pytest.raises(CorpusError, match="3 of 4 examples and no field 'index'"):
        hundred_berts(mnli(3), data_dir=str(tmp_path))
    with pytest.raises(CorpusError, match="example 2, field 'index': 'x' is no place"):
        hundred_berts(mnli(2, index=["0", "x"]), data_dir=str(tmp_path))


def test_other_corpora_and_missing_files_give_an_empty_table(released, tmp_path):
    assert hundred_berts(mnli(4, split="train"), data_dir=str(tmp_path)).empty
    released.unlink()
    assert list(hundred_berts(mnli(4), data_dir=str(tmp_path)).columns) == ["position", "right"]


@pytest.mark.parametrize(("text", "said"), [
    ("index,correct\n0,100\n1,0\n2,57\n", "row 4"),  # cut short
    ("index,correct\n0,100\n1,0\n1,57\n3,99\n", "row 4"),  # an index twice
    ("index,correct\n0,100\n1,101\n2,57\n3,99\n", "row 3"),
    ("index,correct\n0,100\n1,0.5\n2,57\n3,99\n", "row 3"),
    ("index,correct\n0,100\n1,0\nx,57\n3,99\n", "row 4"),
    ("index,correct\n0,many\n1,0\n2,57\n3,99\n", "row 2"),
    ("number,right\n0,100\n", "columns 'index' and"),
    ("", "cannot be read as a table"),
    ("index,correct\n0,100\n1,0,5\n", "cannot be read as a table"),
    (b"index,correct\n0,\xff\n", "cannot be read as a table")])  # fmt: skip
def test_counts_that_do_not_fit_are_one_error(released, tmp_path, text, said):
    released.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CorpusError, match=f"{released}: {said}"):
        hundred_berts(mnli(4), data_dir=str(tmp_path))


@pytest.mark.realdata
def test_the_real_counts_belong_to_the_real_corpus():
    corpus = load("mnli", "validation_matched")
    found = hundred_berts(corpus)
    assert len(found) == len(corpus) == 9_815 and np.array_equal(found["position"], np.arange(9_815))
    assert 83 < found["right"].mean() < 85.5  # the hundred models' mean accuracy, 84% (McCoy et al., Table 1)


# ---------------------------------------------------------------- wanli


def row(id=1, worker="A1", gold="neutral", label="entailment", premise="A dog runs.", **changes):
    texts = {"premise": premise, "hypothesis": "It moves."}
    texts |= {"revised_premise": premise, "revised_hypothesis": "It moves."}
    row = {"WorkerId": worker, "id": id, "nearest_neighbors": [3, 4], "label": label, "gold": gold, "revised": False}
    return row | texts | changes


WANLI = "wanli/anonymized_annotations_sample.jsonl"
annotations = functions("14_human_review", pd=pd).released


def test_rows_become_annotations(tmp_path):
    write(tmp_path / WANLI, [row(7), row(8, gold="discard"), row(9, revised_premise="A cat runs.", revised=True)])
    found = annotations(str(tmp_path))
    assert set(NEEDED) <= set(found)
    assert found["item"].tolist() == ["7", "8", "9"] and set(found["intended_label"]) == {"entailment"}
    assert found["discarded"].tolist() == [False, True, False]
    assert found["label"].isna().tolist() == [False, True, False] and found.loc[2, "revised_premise"] == "A cat runs."


def test_the_whole_file_comes_before_the_sample(tmp_path):
    write(tmp_path / WANLI, [row(7)])
    write(tmp_path / "wanli/anonymized_annotations.jsonl", [row(1, "A1"), row(1, "A2")])
    assert annotations(str(tmp_path))["annotator"].tolist() == ["A1", "A2"]


@pytest.mark.parametrize(("second", "said"), [
    ({"gold": "maybe"}, "row 2, field gold: maybe is neither"),
    ({"label": "2"}, "row 2, field label: 2 is no label"),
    ({"revised": True}, "row 2, field revised: True is not what the texts say"),
    ({"id": 1}, "row 2, field WorkerId: A1 has annotated this pair twice. Fetch the file again."),
    ({"id": "2"}, "row 2, field id: Input should be a valid integer"),
    ({"premise": None}, "row 2, field premise: Input should be a valid string")])  # fmt: skip
def test_a_row_that_contradicts_itself_is_named(tmp_path, second, said):
    write(tmp_path / WANLI, [row(1), row(2) | second])
    with pytest.raises(CorpusError, match=said):
        annotations(str(tmp_path))


def test_annotations_that_are_not_there_are_named(tmp_path):
    said = "does not hold wanli/anonymized_annotations.jsonl, or anonymized_annotations_"
    with pytest.raises(CorpusError, match=said):
        annotations(str(tmp_path))


@pytest.mark.parametrize(("path", "ask"), [(WANLI, annotations), ("varierr/varierr.json", varierr)])
def test_a_line_that_is_cut_short_is_not_left_out(release, tmp_path, path, ask):
    write(tmp_path / WANLI, [row(1)])
    with (tmp_path / path).open("a") as file:
        file.write('{"id": "4n", "con\n')
    with pytest.raises(CorpusError, match="some of its lines cannot be read"):
        ask(str(tmp_path))


@pytest.mark.realdata
def test_the_released_sample():
    found = annotations()
    counts = found["label"].value_counts().to_dict()
    assert counts == {"neutral": 41, "entailment": 35, "contradiction": 17} and found["discarded"].sum() == 7
    assert found["item"].is_unique
