"""WANLI's released annotations. Run alone: pytest tests/corpora/test_wanli_annotations.py"""

import json

import pytest

from nli_lib.corpora.corpus import CorpusError
from nli_lib.corpora.people import annotations
from nli_lib.generate.review import NEEDED


def row(id=1, worker="A1", gold="neutral", label="entailment", premise="A dog runs.", **changes):
    texts = {"premise": premise, "hypothesis": "It moves."}
    texts |= {"revised_premise": premise, "revised_hypothesis": "It moves."}
    row = {"WorkerId": worker, "id": id, "nearest_neighbors": [3, 4], "label": label, "gold": gold, "revised": False}
    return row | texts | changes


def write(folder, *rows, name="wanli/anonymized_annotations_sample.jsonl"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return folder


def test_rows_become_annotations(tmp_path):
    write(tmp_path, row(7), row(8, gold="discard"), row(9, revised_premise="A cat runs.", revised=True))
    found = annotations(str(tmp_path))
    assert set(NEEDED) <= set(found)
    assert found["item"].tolist() == ["7", "8", "9"] and set(found["intended_label"]) == {"entailment"}
    assert found["discarded"].tolist() == [False, True, False]
    assert found["label"].isna().tolist() == [False, True, False]
    assert found.loc[2, "revised_premise"] == "A cat runs."


def test_the_whole_file_comes_before_the_sample(tmp_path):
    write(tmp_path, row(7))
    write(tmp_path, row(1, "A1"), row(1, "A2"), name="wanli/anonymized_annotations.jsonl")
    assert annotations(str(tmp_path))["annotator"].tolist() == ["A1", "A2"]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"gold": "maybe"}, "row 2, field gold: maybe is neither"),
        ({"label": "2"}, "row 2, field label: 2 is no label"),
        ({"revised": True}, "row 2, field revised: True is not what the texts say"),
        ({"id": 1}, "row 2, field WorkerId: A1 has annotated this pair twice"),
        ({"id": "2"}, "row 2, field id: Input should be a valid integer"),
        ({"premise": None}, "row 2, field premise: Input should be a valid string"),
    ],
)
def test_a_row_that_contradicts_itself_is_named(tmp_path, second, said):
    write(tmp_path, row(1), row(2) | second)
    with pytest.raises(CorpusError, match=said):
        annotations(str(tmp_path))


def test_a_file_that_is_not_there_is_named(tmp_path):
    said = "does not hold wanli/anonymized_annotations.jsonl, or anonymized_annotations_"
    with pytest.raises(CorpusError, match=said):
        annotations(str(tmp_path))
    write(tmp_path, row(1))
    with (tmp_path / "wanli" / "anonymized_annotations_sample.jsonl").open("a") as file:
        file.write("{\n")
    with pytest.raises(CorpusError, match="some of its lines cannot be read"):
        annotations(str(tmp_path))


@pytest.mark.realdata
def test_the_released_sample():
    found = annotations()
    counts = found["label"].value_counts().to_dict()
    assert counts == {"neutral": 41, "entailment": 35, "contradiction": 17} and found["discarded"].sum() == 7
    assert found["item"].is_unique
