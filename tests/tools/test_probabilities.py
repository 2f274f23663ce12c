"""A user's own probabilities meet the rows of a corpus by id and its classes by name. Nothing else is taken.

Run alone: pytest tests/tools/test_probabilities.py"""

import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audited import refused

from nli_lib.corpora import load
from nli_lib.corpora.corpus import LABELS, TWO_WAY, CorpusError
from nli_tools.own_corpus import read_probabilities

FOREIGN = {"premise": "context", "hypothesis": "claim", "label": "verdict"}
PROBS = np.random.default_rng(0).dirichlet([1, 1, 1], 6)
NAMED = dict(zip(LABELS, PROBS.T, strict=True))
IDS = [f"n{at}" for at in range(6)]
ORDER = [3, 1, 5, 0, 2, 4]


@pytest.fixture
def mine(tmp_path):
    """A corpus of six pairs, without ids where `ids` is None, and its table."""

    def make(ids="uid", classes=LABELS, **columns):
        table = pd.DataFrame({"context": [f"P {at}" for at in range(6)], "claim": [f"H {at}" for at in range(6)]})
        table["verdict"] = [classes[at % 3 % len(classes)] for at in range(6)]
        if ids:
            table.insert(0, ids, IDS)
        return loaded(tmp_path, table.assign(**columns)), table

    return make


def loaded(tmp_path, table):
    table.to_csv(tmp_path / "mine.csv", index=False)
    return load(str(tmp_path / "mine.csv"), columns=FOREIGN)


@pytest.fixture
def check(tmp_path):
    """That a table of probabilities is read as ``expected``, or refused with what is ``said``."""

    def checked(corpus, columns, expected=PROBS, *, said=None, given=None):
        path = tmp_path / "probs.csv"
        pd.DataFrame(columns).to_csv(path, index=False)
        if said:
            refused(said, read_probabilities, path, corpus, given)
        else:
            np.testing.assert_allclose(read_probabilities(path, corpus, given), expected)

    return checked


def test_columns_are_matched_by_name_and_rows_by_id(mine, check, tmp_path):
    corpus, _ = mine()
    turned = {"p_neutral": PROBS[ORDER, 1], "Contradiction": PROBS[ORDER, 2], "prob entailment": PROBS[ORDER, 0]}
    check(corpus, {"other": "x", "uid": np.array(IDS)[ORDER], **turned})
    check(corpus, {"id": [f"other{at}" for at in range(6)], "uid": IDS, **NAMED})  # uid comes before other ids
    rows = [*np.array(IDS)[ORDER], "of a row without a label"]
    values = np.vstack([PROBS[ORDER][:, [2, 0, 1]], [[5, 5, 5]]])  # a row that is not in the corpus is not judged
    np.savez(tmp_path / "p.npz", uid=rows, pred_probs=values, classes=np.array(LABELS)[[2, 0, 1]])
    np.testing.assert_allclose(read_probabilities(tmp_path / "p.npz", corpus), PROBS)
    for way in ("pred_{}", "score_{}", "{}_prob", "{}_score", "prob_{}", "P({})", "Pred.{} probability"):
        check(corpus, {"uid": IDS, **{way.format(name): column for name, column in NAMED.items()}})
    two, _ = mine(ids="pairID", classes=TWO_WAY)
    check(two, {"pairid": IDS, "not_entailment": 0.25, "entailment": 0.75}, [[0.75, 0.25]] * 6)


def test_a_copy_of_a_file_without_ids_is_known_by_its_texts(mine, check, tmp_path, capsys):
    corpus, table = mine(ids=None)
    full = table.assign(**NAMED)
    turned = full.iloc[ORDER]
    for rows in (full, turned, turned.drop(columns="verdict"), pd.concat([turned, full.iloc[:2]])):
        check(corpus, rows, given=FOREIGN)
    said = "probs.csv: rows were found by premise and hypothesis"
    assert capsys.readouterr().out.splitlines()[-2:] == [f"{said}.", f"{said}, without 2 that repeat another row."]
    numbered, _ = mine(ids=None, index=range(6), uid=[str(at) for at in range(6)])  # a frame's index is not the uid
    check(numbered, turned.assign(index=range(6)), given=FOREIGN)
    other = full.assign(claim=[*full["claim"][:5], "H of another file"])
    said = "neither the id nor the texts of 1 of the 6 .* 'mine-train-5'"
    check(corpus, other, given=FOREIGN, said=said)
    # a pair that stands twice is known by its place or refused
    twice = full[:3].assign(context=["P", "P", "Q"], claim="H")
    corpus = loaded(tmp_path, twice.drop(columns=list(LABELS)))
    check(corpus, twice, PROBS[:3], given=FOREIGN)
    said = "'P / H' appears in more than one row, and rows 1 and 3 have different"
    check(corpus, twice.iloc[[1, 2, 0]], given=FOREIGN, said=said)


BARE = r"Its numbers have no names: they were assigned to entailment, neutral, contradiction, in this order\."


def scored(row):
    return [{"label": name.upper(), "score": value} for name, value in zip(LABELS, row, strict=True)]


def frame(**columns):
    return pd.DataFrame({**columns, **NAMED})


def listed(path):
    rows = pd.DataFrame({"uid": IDS, "probs": PROBS.tolist()})[::-1]
    rows.to_json(path, orient="records", lines=True, double_precision=15)


SHAPES = [
    ("p.parquet", frame(uid=IDS).to_parquet, r"by 'uid'\.$"),
    ("p.jsonl", listed, rf"by 'uid'\. {BARE}"),
    ("p.json", lambda path: path.write_text(json.dumps([*map(scored, PROBS)])), r"by their order: .* 6"),
    ("p.npy", lambda path: np.save(path, PROBS), rf"by their order: .* are 6, as the corpus .* {BARE}"),
    ("p.npz", lambda path: np.savez(path, PROBS), rf"by their order: .* {BARE}"),
    ("p.npz", lambda path: np.savez(path, uid=IDS, classes=LABELS, pred_probs=PROBS), r"by 'uid'\.$"),
    ("P.CSV", lambda path: frame(uid=IDS).to_csv(path, index=False), r"by 'uid'\.$"),  # an ending in capitals
    ("p.csv", lambda path: frame(uid=IDS).to_csv(path, index=False, sep=";", decimal=","), r"by 'uid'\.$"),
    ("p.tsv", lambda path: frame().to_csv(path, index=False, sep="\t"), "by their order: .* 6, as"),
    # a frame's own index, which says how it was shuffled
    ("p.csv", lambda path: frame().iloc[ORDER].to_csv(path), "numbers in 'column 1', from 0"),
    ("p.csv", lambda path: frame(id=range(1, 7))[::-1].to_csv(path, index=False), "row numbers in 'id', from 1"),
]


@pytest.mark.parametrize(("name", "save", "said"), SHAPES)
def test_every_shape_that_can_mean_one_thing_is_taken(mine, tmp_path, capsys, name, save, said):
    corpus, _ = mine()
    save(tmp_path / name)
    np.testing.assert_allclose(read_probabilities(tmp_path / name, corpus), PROBS)
    (line,) = capsys.readouterr().out.splitlines()
    assert re.match(f"{name}: rows were found .*{said}", line)


def test_ids_that_were_made_decimals_and_rows_that_repeat_another(mine, check, capsys):
    corpus, _ = mine(ids=None, id=np.arange(6) * 10)
    rows = frame(id=np.arange(6) * 10.0)
    check(corpus, pd.concat([rows[::-1], rows[:2]]))
    assert capsys.readouterr().out.endswith("probs.csv: rows were found by 'id', without 2 that repeat another row.\n")
    said = "'0' appears in more than one row, and rows 1 and 7 have different"
    check(corpus, pd.concat([rows, rows[:1].assign(neutral=0.5)]), said=said)


def test_rows_that_the_corpus_left_out_are_counted_in_its_file(mine, check, tmp_path):
    """Of eight rows two are unusable: what has eight rows speaks of the file, and what has six of the corpus."""
    _, table = mine(ids=None)
    hole, path = table[:1].assign(verdict="-"), tmp_path / "probs.npy"
    corpus = loaded(tmp_path, pd.concat([table[:1], hole, table[1:], hole]))
    eight = np.insert(PROBS, [1, 6], [0.2, 0.3, 0.5], axis=0)
    for values in (PROBS, eight):
        np.save(path, values)
        np.testing.assert_allclose(read_probabilities(path, corpus), PROBS)
    for start in (0, 1):
        check(corpus, {"id": np.arange(start, start + 8), **dict(zip(LABELS, eight.T, strict=True))})
    np.save(path, eight[:7])
    said = "7 rows without ids or texts, and the corpus 6 usable ones of 8: .*Give"
    refused(said, read_probabilities, path, corpus)


def test_nothing_is_taken_by_its_place_against_what_the_file_says(mine, check):
    corpus, _ = mine()
    premises, hypotheses = ([f"{letter} {5 - at}" for at in range(6)] for letter in "PH")
    turned = ["entailment", "contradiction", "neutral"] * 2
    for said, columns in {
        "row for 6 of the 6 .* 'uid' begins with 'x0'.* Give a csv, tsv": {"uid": [f"x{at}" for at in range(6)]},
        "row for 6 of the 6 .* 'id' begins with '2'": {"id": range(2, 8)},
        "the label of 'n1' is 'contradiction' there and 'neutral' in .* another order": {"label": turned},
        "the hypothesis of 'n0' is 'H 5' there and 'H 0' in the": {"hypothesis": hypotheses},
        "the premise of 'n0' is 'P 5' there .* another version": {"uid": IDS, "premise": premises},
    }.items():
        check(corpus, {**columns, **NAMED}, said=said)
    numbered, _ = mine(uid=range(6))
    said = "row for 1 of the 6 pairs, the first of them '0'"  # from 1 is no id
    check(numbered, {"uid": range(1, 7), **NAMED}, said=said)


UNMATCHED = [
    ({"uid": list("abcdef")}, "no row for 6 of the 6 pairs, the first of them 'n0'; its 'uid' begins with 'a'"),
    ({"neutral": 0.5}, "the probabilities of 'n0' are .*, 0.5, .* add up to 1 .*the softmax of logits first"),
    ({"neutral": "high"}, "row 1, column 'neutral': 'high' is not a number"),
    ({"neutral": ""}, "row 1, column 'neutral': '' is not a number"),
    ({"neutral": None, "LABEL_1": 1}, "no column for the class 'neutral'; found 'uid', 'entailment'"),
    ({"p_neutral": 1}, "the columns 'neutral', 'p_neutral' for the class 'neutral'")]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), UNMATCHED)
def test_what_cannot_be_matched_is_one_message(mine, check, change, said):
    columns = {"uid": IDS, **NAMED, **change}
    columns = {name: column for name, column in columns.items() if column is not None}
    check(mine()[0], columns, said=f"probs.csv.*{said}")


def test_rounded_rows_are_made_to_add_up_and_others_refused(mine, check):
    corpus, _ = mine()
    for row in ([0.333, 0.333, 0.333], [0.5, 0.25, 0.259]):
        check(corpus, {"uid": IDS, **dict(zip(LABELS, row, strict=True))}, [np.array(row) / sum(row)] * 6)
    for row in ([0.5, 0.25, 0.239], [0.5, 0.25, 0.261], [1.005, 0, 0], [0.505, 0.5, -0.005]):
        check(corpus, {"uid": IDS, **dict(zip(LABELS, row, strict=True))}, said="add up to 1")


def test_an_npz_that_cannot_be_used_is_one_message(mine, tmp_path):
    corpus, _ = mine()
    path, good = tmp_path / "probs.npz", {"uid": IDS, "classes": LABELS, "pred_probs": PROBS}

    for change, said in [
        ({"pred_probs": None}, "no array 'pred_probs'; found uid, classes. Save it with numpy.savez"),
        ({"classes": LABELS[:2]}, r"pred_probs has shape \(6, 3\) .* classes are entailment, neutral\. Save"),
        ({"classes": ("neutral", "neutral", "entailment")}, "classes are neutral, neutral, entailment"),
        ({"pred_probs": PROBS[:5]}, r"pred_probs has shape \(5, 3\) .* uid has 6 values"),
        ({"pred_probs": np.log(PROBS)}, "'n0' are -.* softmax of logits"),
        ({"uid": np.array([Path("n0")] * 6)}, "is not a file of plain arrays .Object arrays"),
        ({"uid": corpus.uid}, r"not a file of plain arrays .*uid=corpus\.uid\.astype\(str\)"),  # numpy pickles them
        ({"labels": [0, 1, 2, 0, 1, 1]}, "the label of 'n5' is 'neutral' there and 'contradiction' in the corpus"),
        ({"labels": [0, 1, 2, 0, 1, 7]}, "labels must hold a number from 0 to 2"),
    ]:
        np.savez(path, **{name: value for name, value in {**good, **change}.items() if value is not None})
        refused(said, read_probabilities, path, corpus)
    np.savez(path, **good, labels=[0, 1, 2, 0, 1, 2])
    np.testing.assert_allclose(read_probabilities(path, corpus), PROBS)
    whole, npy = path.read_bytes(), io.BytesIO()
    np.save(npy, PROBS)
    for damaged in (b"no archive", b"", whole[: len(whole) // 2], npy.getvalue()[:-8]):
        path.write_bytes(damaged)
        refused("is not a file of plain arrays .* Save it with numpy.savez", read_probabilities, path, corpus)
    ending = r"probs.pt: files with this ending .* Give a csv.*; or an npz saved with"
    refused(ending, read_probabilities, tmp_path / "probs.pt", corpus)
    refused("none.csv: no such file", read_probabilities, tmp_path / "none.csv", corpus, error=CorpusError)
