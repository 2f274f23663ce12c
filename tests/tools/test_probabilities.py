"""A user's own probabilities meet the rows of a corpus by id and its classes by name. Nothing else is taken."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import load
from nli_lib.corpora.corpus import CorpusError
from nli_tools.own_corpus import IntegrationError, read_probabilities

CLASSES = ("entailment", "neutral", "contradiction")
LABELS = [0, 1, 2, 0, 1, 2]
FOREIGN = {"premise": "context", "hypothesis": "claim", "label": "verdict"}


@pytest.fixture
def mine(tmp_path):
    """A corpus of six pairs, without ids where `ids` is None, and its probabilities (6, 3)."""

    def make(ids="uid", classes=CLASSES):
        rows = {"context": [f"P {at}" for at in range(6)], "claim": [f"H {at}" for at in range(6)]}
        rows["verdict"] = [classes[label % len(classes)] for label in LABELS]
        table = pd.DataFrame(rows)
        if ids:
            table.insert(0, ids, [f"n{at}" for at in range(6)])
        table.to_csv(tmp_path / "mine.csv", index=False)
        return load(str(tmp_path / "mine.csv"), columns=FOREIGN), table

    return make


PROBS = np.random.default_rng(0).dirichlet([1, 1, 1], 6)


def csv_of(tmp_path, **columns):
    path = tmp_path / "probs.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def test_an_ending_in_capitals_is_that_ending(mine, tmp_path):
    corpus, _ = mine()
    path = csv_of(tmp_path, uid=[f"n{at}" for at in range(6)], **dict(zip(CLASSES, PROBS.T, strict=True)))
    np.testing.assert_allclose(read_probabilities(path.rename(tmp_path / "PROBS.CSV"), corpus), PROBS)


def test_columns_are_matched_by_name_and_rows_by_id(mine, tmp_path):
    corpus, _ = mine()
    order = [3, 1, 5, 0, 2, 4]
    by_name = {"p_neutral": PROBS[order, 1], "Contradiction": PROBS[order, 2], "prob entailment": PROBS[order, 0]}
    path = csv_of(tmp_path, other="x", uid=[f"n{at}" for at in order], **by_name)
    np.testing.assert_allclose(read_probabilities(path, corpus), PROBS)
    columns = {"classes": np.array(["contradiction", "entailment", "neutral"])}
    rows = [f"n{at}" for at in order] + ["of a row without a label"]
    values = np.vstack([PROBS[order][:, [2, 0, 1]], [[5, 5, 5]]])  # a row that is not in the corpus is not judged
    np.savez(tmp_path / "probs.npz", uid=rows, pred_probs=values, **columns)
    np.testing.assert_allclose(read_probabilities(tmp_path / "probs.npz", corpus), PROBS)


def test_names_in_brackets_are_names_and_uid_comes_before_other_ids(mine, tmp_path):
    corpus, _ = mine()
    ids = {"id": [f"other{at}" for at in range(6)], "uid": [f"n{at}" for at in range(6)]}
    path = csv_of(tmp_path, **ids, **{f"P({name})": PROBS[:, at] for at, name in enumerate(CLASSES)})
    np.testing.assert_allclose(read_probabilities(path, corpus), PROBS)


def test_a_copy_of_a_file_without_ids_is_known_by_its_texts(mine, tmp_path, capsys):
    corpus, table = mine(ids=None)
    full = table.assign(**dict(zip(CLASSES, PROBS.T, strict=True)))
    shuffled = full.iloc[[4, 1, 0, 2, 5, 3]]
    for rows in (full, shuffled, shuffled.drop(columns="verdict"), pd.concat([shuffled, full.iloc[:2]])):
        path = csv_of(tmp_path, **rows.reset_index(drop=True))
        np.testing.assert_allclose(read_probabilities(path, corpus, FOREIGN), PROBS)
    said = "probs.csv: rows were found by premise and hypothesis"
    assert capsys.readouterr().out.splitlines()[-2:] == [f"{said}.", f"{said}, without 2 that repeat another."]
    numbered = {"index": range(6), **table, "uid": [str(at) for at in range(6)]}  # a frame's index is not the uid
    pd.DataFrame(numbered).to_csv(tmp_path / "mine.csv", index=False)
    path = csv_of(tmp_path, **{"index": range(6), **shuffled.reset_index(drop=True)})
    read = read_probabilities(path, load(str(tmp_path / "mine.csv"), columns=FOREIGN), FOREIGN)
    np.testing.assert_allclose(read, PROBS)
    other = full.assign(claim=[*full["claim"][:5], "H of another file"])
    with pytest.raises(IntegrationError, match="neither the id nor the texts of 1 of the 6 .* 'mine-train-5'"):
        read_probabilities(csv_of(tmp_path, **other), corpus, FOREIGN)


def test_a_pair_that_stands_twice_is_known_by_its_place_or_refused(tmp_path):
    rows = pd.DataFrame({"premise": ["P", "P", "Q"], "hypothesis": "H", "label": CLASSES})
    rows.to_csv(tmp_path / "mine.csv", index=False)
    corpus, full = load(str(tmp_path / "mine.csv")), rows.assign(**dict(zip(CLASSES, PROBS[:3].T, strict=True)))
    np.testing.assert_allclose(read_probabilities(csv_of(tmp_path, **full), corpus), PROBS[:3])
    turned = full.iloc[[1, 2, 0]].reset_index(drop=True)
    with pytest.raises(IntegrationError, match="'P / H' stands in more than one row, and rows 1 and 3 have different"):
        read_probabilities(csv_of(tmp_path, **turned), corpus)


NAMED = dict(zip(CLASSES, PROBS.T, strict=True))
OWN_ORDER = r"Its numbers bear no names: they were taken for entailment, neutral, contradiction, in this order\."


def scored(row):
    return [{"label": name.upper(), "score": value} for name, value in zip(CLASSES, row, strict=True)]


@pytest.mark.parametrize(
    ("name", "write", "said"),
    [
        ("p.parquet", lambda path, uid: pd.DataFrame({"uid": uid, **NAMED}).to_parquet(path), r"by 'uid'\.$"),
        (
            "p.jsonl",
            lambda path, uid: pd.DataFrame({"uid": uid, "probs": PROBS.tolist()})[::-1].to_json(
                path, orient="records", lines=True, double_precision=15
            ),
            rf"by 'uid'\. {OWN_ORDER}",
        ),
        (
            "p.json",
            lambda path, uid: path.write_text(json.dumps([scored(row) for row in PROBS])),
            r"by their order: .* 6",
        ),
        ("p.npy", lambda path, uid: np.save(path, PROBS), rf"by their order: .* are 6, as the corpus .* {OWN_ORDER}"),
        ("p.npz", lambda path, uid: np.savez(path, PROBS), rf"by their order: .* {OWN_ORDER}"),
        (
            "p.npz",
            lambda path, uid: np.savez(path, uid=uid.astype(str), classes=CLASSES, pred_probs=PROBS),
            r"by 'uid'\.$",
        ),
        (
            "p.csv",
            lambda path, uid: pd.DataFrame({"uid": uid, **NAMED}).to_csv(path, index=False, sep=";", decimal=","),
            r"by 'uid'\.$",
        ),
        (
            "p.tsv",
            lambda path, uid: pd.DataFrame(NAMED).to_csv(path, index=False, sep="\t"),
            "by their order: .* 6, as",
        ),
        # a frame's own index, which says how it was shuffled
        (
            "p.csv",
            lambda path, uid: pd.DataFrame(NAMED).iloc[[3, 1, 5, 0, 2, 4]].to_csv(path),
            "numbers in 'column 1', from 0",
        ),
        (
            "p.csv",
            lambda path, uid: pd.DataFrame({"id": range(1, 7), **NAMED})[::-1].to_csv(path, index=False),
            "by the row numbers in 'id', from 1",
        ),
    ],
)
def test_every_shape_that_can_mean_one_thing_is_taken(mine, tmp_path, capsys, name, write, said):
    corpus, _ = mine()
    write(tmp_path / name, corpus.uid)
    np.testing.assert_allclose(read_probabilities(tmp_path / name, corpus), PROBS)
    (line,) = capsys.readouterr().out.splitlines()
    assert re.match(f"{name}: rows were found .*{said}", line)


def test_arrays_of_objects_are_refused_with_the_cure(mine, tmp_path):
    corpus, _ = mine()
    np.savez(tmp_path / "p.npz", uid=corpus.uid, classes=CLASSES, pred_probs=PROBS)  # numpy pickles them
    with pytest.raises(IntegrationError, match=r"no file of plain arrays .*uid=corpus\.uid\.astype\(str\)"):
        read_probabilities(tmp_path / "p.npz", corpus)


@pytest.mark.parametrize(
    "way", ["pred_{}", "score_{}", "{}_prob", "{}_score", "prob_{}", "P({})", "Pred.{} probability"]
)
def test_what_stands_around_the_name_of_a_class(mine, tmp_path, way):
    corpus, _ = mine()
    named = {way.format(name): column for name, column in NAMED.items()}
    np.testing.assert_allclose(read_probabilities(csv_of(tmp_path, uid=corpus.uid, **named), corpus), PROBS)


def test_ids_that_were_made_decimals_and_rows_that_repeat_another(mine, tmp_path, capsys):
    _, table = mine(ids=None)
    table.assign(id=np.arange(6) * 10).to_csv(tmp_path / "mine.csv", index=False)
    corpus = load(str(tmp_path / "mine.csv"), columns=FOREIGN)
    rows = pd.DataFrame({"id": np.arange(6) * 10.0, **NAMED})
    path = csv_of(tmp_path, **pd.concat([rows[::-1], rows[:2]]))
    np.testing.assert_allclose(read_probabilities(path, corpus), PROBS)
    assert capsys.readouterr().out.endswith("probs.csv: rows were found by 'id', without 2 that repeat another.\n")
    path = csv_of(tmp_path, **pd.concat([rows, rows[:1].assign(neutral=0.5)]))
    with pytest.raises(IntegrationError, match="'0' stands in more than one row, and rows 1 and 7 have different"):
        read_probabilities(path, corpus)


def test_rows_that_the_corpus_left_out_are_counted_in_its_file(mine, tmp_path):
    """Of eight rows two are unusable: what has eight rows speaks of the file, and what has six of the corpus."""
    _, table = mine(ids=None)
    holes = pd.concat([table[:1], table[:1].assign(verdict="-"), table[1:], table[:1].assign(verdict="-")])
    holes.to_csv(tmp_path / "mine.csv", index=False)
    corpus = load(str(tmp_path / "mine.csv"), columns=FOREIGN)
    eight = np.insert(PROBS, [1, 6], [0.2, 0.3, 0.5], axis=0)
    for values in (PROBS, eight):
        np.save(tmp_path / "probs.npy", values)
        np.testing.assert_allclose(read_probabilities(tmp_path / "probs.npy", corpus), PROBS)
    for start in (0, 1):
        path = csv_of(tmp_path, id=np.arange(start, start + 8), **dict(zip(CLASSES, eight.T, strict=True)))
        np.testing.assert_allclose(read_probabilities(path, corpus), PROBS)
    np.save(tmp_path / "probs.npy", eight[:7])
    with pytest.raises(
        IntegrationError, match="7 rows without ids or texts, and the corpus 6 usable ones of 8: .*Give"
    ):
        read_probabilities(tmp_path / "probs.npy", corpus)


def test_nothing_is_taken_by_its_place_against_what_the_file_says(mine, tmp_path):
    corpus, table = mine()
    wrong = {
        "row for 6 of the 6 .* 'uid' begins with 'x0'.* Give a csv, tsv": {"uid": [f"x{at}" for at in range(6)]},
        "row for 6 of the 6 .* 'id' begins with '2'": {"id": range(2, 8)},
        "the label of 'n1' is 'contradiction' there and 'neutral' in .* another order": {
            "label": ["entailment", "contradiction", "neutral"] * 2
        },
        "the hypothesis of 'n0' is 'H 5' there and 'H 0' in the": {"hypothesis": [f"H {5 - at}" for at in range(6)]},
        "the premise of 'n0' is 'P 5' there .* another version": {
            "uid": corpus.uid,
            "premise": [f"P {5 - at}" for at in range(6)],
        },
    }
    for said, columns in wrong.items():
        with pytest.raises(IntegrationError, match=said):
            read_probabilities(csv_of(tmp_path, **columns, **NAMED), corpus)
    table.assign(uid=np.arange(6)).to_csv(tmp_path / "mine.csv", index=False)
    numbered = load(str(tmp_path / "mine.csv"), columns=FOREIGN)
    with pytest.raises(IntegrationError, match="row for 1 of the 6 pairs, the first of them '0'"):  # from 1 is no id
        read_probabilities(csv_of(tmp_path, uid=range(1, 7), **NAMED), numbered)


def test_two_classes(mine, tmp_path):
    corpus, _ = mine(ids="pairID", classes=("entailment", "not_entailment"))
    path = csv_of(tmp_path, pairid=[f"n{at}" for at in range(6)], not_entailment=0.25, entailment=0.75)
    np.testing.assert_allclose(read_probabilities(path, corpus), [[0.75, 0.25]] * 6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"uid": list("abcdef")}, "no row for 6 of the 6 pairs, the first of them 'n0'; its 'uid' begins with 'a'"),
        ({"neutral": 0.5}, "the probabilities of 'n0' are .*, 0.5, .* add up to 1 .*the softmax of logits first"),
        ({"neutral": "high"}, "row 1, column 'neutral': 'high' is not a number"),
        ({"neutral": ""}, "row 1, column 'neutral': '' is not a number"),
        ({"neutral": None, "LABEL_1": 1}, "no column for the class 'neutral'; found 'uid', 'entailment'"),
        ({"p_neutral": 1}, "the columns 'neutral', 'p_neutral' for the class 'neutral'"),
    ],
)
def test_what_cannot_be_matched_is_one_message(mine, tmp_path, change, said):
    corpus, _ = mine()
    columns = {"uid": [f"n{at}" for at in range(6)], **dict(zip(CLASSES, PROBS.T, strict=True)), **change}
    if columns["neutral"] is None:
        del columns["neutral"]
    with pytest.raises(IntegrationError, match=f"probs.csv.*{said}"):
        read_probabilities(csv_of(tmp_path, **columns), corpus)


@pytest.mark.parametrize(
    ("row", "fine"),
    [
        ([0.333, 0.333, 0.333], True),
        ([0.5, 0.25, 0.259], True),
        ([0.5, 0.25, 0.239], False),
        ([0.5, 0.25, 0.261], False),
        ([1.005, 0, 0], False),
        ([0.505, 0.5, -0.005], False),
    ],
)
def test_rounded_rows_are_made_to_add_up_and_others_refused(mine, tmp_path, row, fine):
    corpus, _ = mine()
    path = csv_of(tmp_path, uid=[f"n{at}" for at in range(6)], **dict(zip(CLASSES, row, strict=True)))
    if fine:
        np.testing.assert_allclose(read_probabilities(path, corpus), [np.array(row) / sum(row)] * 6)
    else:
        with pytest.raises(IntegrationError, match="add up to 1"):
            read_probabilities(path, corpus)


def npy_of(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_an_npz_that_cannot_be_used_is_one_message(mine, tmp_path):
    corpus, _ = mine()
    path, good = tmp_path / "probs.npz", {"uid": [f"n{at}" for at in range(6)], "classes": CLASSES, "pred_probs": PROBS}
    for change, said in [
        ({"pred_probs": None}, "no array 'pred_probs'; found uid, classes. Save it with numpy.savez"),
        ({"classes": CLASSES[:2]}, r"pred_probs has shape \(6, 3\) .* classes are entailment, neutral\. Save"),
        ({"classes": ("neutral", "neutral", "entailment")}, "classes are neutral, neutral, entailment"),
        ({"pred_probs": PROBS[:5]}, r"pred_probs has shape \(5, 3\) .* uid has 6 values"),
        ({"pred_probs": np.log(PROBS)}, "'n0' are -.* softmax of logits"),
        ({"uid": np.array([Path("n0")] * 6)}, "is no file of plain arrays .Object arrays"),
        ({"labels": [0, 1, 2, 0, 1, 1]}, "the label of 'n5' is 'neutral' there and 'contradiction' in the corpus"),
        ({"labels": [0, 1, 2, 0, 1, 7]}, "labels must hold a number from 0 to 2"),
    ]:
        np.savez(path, **{name: value for name, value in {**good, **change}.items() if value is not None})
        with pytest.raises(IntegrationError, match=said):
            read_probabilities(path, corpus)
    np.savez(path, **good, labels=LABELS)
    np.testing.assert_allclose(read_probabilities(path, corpus), PROBS)
    whole = path.read_bytes()
    for damaged in (b"no archive", b"", whole[: len(whole) // 2], npy_of(PROBS)[:-8]):
        path.write_bytes(damaged)
        with pytest.raises(IntegrationError, match="is no file of plain arrays .* Save it with numpy.savez"):
            read_probabilities(path, corpus)
    with pytest.raises(IntegrationError, match=r"probs.pt: its ending .* Give a csv.*; or an npz saved with"):
        read_probabilities(tmp_path / "probs.pt", corpus)
    with pytest.raises(CorpusError, match="none.csv: no such file"):
        read_probabilities(tmp_path / "none.csv", corpus)
