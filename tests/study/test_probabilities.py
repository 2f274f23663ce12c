"""A user's own probabilities meet the rows of a corpus by id and its classes by name. Nothing else is taken."""

import io

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import load
from nli_lib.csv_files import CsvError
from nli_lib.study.probabilities import ProbabilitiesError, read_probabilities

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


def test_a_copy_of_a_file_without_ids_is_known_by_its_texts(mine, tmp_path):
    corpus, table = mine(ids=None)
    full = dict(zip(CLASSES, PROBS.T, strict=True))
    path = csv_of(tmp_path, **table, **full)
    np.testing.assert_allclose(read_probabilities(path, corpus, FOREIGN), PROBS)
    path = csv_of(tmp_path, **table.iloc[[1, 0, 2, 3, 4, 5]].reset_index(drop=True), **full)
    with pytest.raises(ProbabilitiesError, match="no column of ids .*Its premise of usable row 1 is not that"):
        read_probabilities(path, corpus, FOREIGN)
    path = csv_of(tmp_path, **full)
    with pytest.raises(ProbabilitiesError, match="no column of ids"):
        read_probabilities(path, corpus, FOREIGN)


def test_two_classes(mine, tmp_path):
    corpus, _ = mine(ids="pairID", classes=("entailment", "not_entailment"))
    path = csv_of(tmp_path, pairid=[f"n{at}" for at in range(6)], not_entailment=0.25, entailment=0.75)
    np.testing.assert_allclose(read_probabilities(path, corpus), [[0.75, 0.25]] * 6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"uid": ["n0"] * 6}, "id 'n0' stands in more than one row"),
        ({"uid": list("abcdef")}, "no row for 6 of the 6 pairs, the first of them 'n0'; its own ids begin with 'a'"),
        ({"neutral": 0.5}, "the probabilities of 'n0' are .*, 0.5, .* add up to 1 .*not logits"),
        ({"neutral": "high"}, "row 2, column 'neutral': 'high' is not a number"),
        ({"neutral": ""}, "row 2, column 'neutral': '' is not a number"),
        ({"neutral": None, "LABEL_1": 1}, "no column for the class 'neutral'; found 'uid', 'entailment'"),
        ({"p_neutral": 1}, "the columns 'neutral', 'p_neutral' for the class 'neutral'"),
    ],
)
def test_what_cannot_be_matched_is_one_message(mine, tmp_path, change, said):
    corpus, _ = mine()
    columns = {"uid": [f"n{at}" for at in range(6)], **dict(zip(CLASSES, PROBS.T, strict=True)), **change}
    if columns["neutral"] is None:
        del columns["neutral"]
    with pytest.raises(ProbabilitiesError, match=f"probs.csv.*{said}"):
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
        with pytest.raises(ProbabilitiesError, match="add up to 1"):
            read_probabilities(path, corpus)


def npy_of(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_an_npz_that_cannot_be_used_is_one_message(mine, tmp_path):
    corpus, _ = mine()
    path, good = tmp_path / "probs.npz", {"uid": [f"n{at}" for at in range(6)], "classes": CLASSES, "pred_probs": PROBS}
    for change, said in [
        ({"uid": None}, "no array 'uid'; found classes, pred_probs. Save it with numpy.savez"),
        ({"classes": None}, "no array 'classes'"),
        ({"pred_probs": PROBS[:5]}, r"pred_probs has shape \(5, 3\) .* uid names 6 rows"),
        ({"uid": np.array([f"n{at}" for at in range(6)], dtype=object)}, "is no npz of plain arrays .*allow_pickle"),
        ({"labels": [0, 1, 2, 0, 1, 1]}, "the label of 'n5' is neutral there and contradiction in the corpus"),
        ({"labels": [0, 1, 2, 0, 1, 7]}, "labels must hold a number from 0 to 2"),
    ]:
        np.savez(path, **{name: value for name, value in {**good, **change}.items() if value is not None})
        with pytest.raises(ProbabilitiesError, match=said):
            read_probabilities(path, corpus)
    np.savez(path, **good, labels=LABELS)
    np.testing.assert_allclose(read_probabilities(path, corpus), PROBS)
    whole = path.read_bytes()
    for damaged in (b"no archive", b"", whole[: len(whole) // 2], npy_of(PROBS)):
        path.write_bytes(damaged)
        with pytest.raises(ProbabilitiesError, match="is no npz of plain arrays .* Save it with numpy.savez"):
            read_probabilities(path, corpus)
    with pytest.raises(ProbabilitiesError, match=r"probs.npy: give a csv .*, or an npz saved with numpy.savez"):
        read_probabilities(tmp_path / "probs.npy", corpus)
    with pytest.raises(CsvError, match="none.csv cannot be read as a csv"):
        read_probabilities(tmp_path / "none.csv", corpus)
