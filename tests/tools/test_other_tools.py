"""Frames, Datalab, Label Studio, Argilla. Run alone: pytest tests/tools/test_other_tools.py"""

import json
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora.planted import make_split
from nli_lib.evaluate import review_list
from nli_lib.select.selection import Selection
from nli_tools import exchange
from nli_tools.exchange import (
    IntegrationError,
    from_pandas,
    read_argilla,
    read_label_studio,
    to_dataset,
    to_pandas,
    write_argilla,
    write_label_studio,
)

CORPUS = make_split("train", 60)
RANDOM = np.random.default_rng(0)
NASTY = "<script>alert(1)</script> =1+1\r\n\u202e"


def planted_logits(corpus, flipped):
    """Out-of-sample logits that know every label but think otherwise of the `flipped`."""
    logits = RANDOM.normal(scale=0.3, size=(len(corpus), 3))
    truth = corpus.labels.copy()
    truth[flipped] = (truth[flipped] + 1) % 3
    logits[np.arange(len(corpus)), truth] += 4
    return logits


FLIPPED = np.array([3, 17, 40])
LOGITS = planted_logits(CORPUS, FLIPPED)


@pytest.fixture
def suspects():
    table = review_list(CORPUS, LOGITS, np.zeros(60, int))
    table.loc[0, "premise"] = NASTY
    return table


# ---------------------------------------------------------------- frames


def test_a_frame_comes_back_as_the_corpus():
    score = RANDOM.random(60)
    table = to_pandas(CORPUS, Selection.where(score > 0.5, "low"), score=score)
    assert list(table["label"].unique()) and set(table["label"]) <= set(CORPUS.classes)
    assert table["kept"].tolist() == (score > 0.5).tolist() and table["score"].tolist() == score.tolist()
    back = from_pandas(table)
    assert back.digest == CORPUS.digest and back.table["score"].tolist() == score.tolist()


def test_a_dataset_comes_back_as_the_corpus():
    dataset = to_dataset(CORPUS, score=np.arange(60))
    assert dataset.features["label"].names == list(CORPUS.classes)
    back = from_pandas(dataset)
    assert back.digest == CORPUS.digest and back.table["score"].tolist() == list(range(60))


def test_a_score_that_does_not_fit():
    with pytest.raises(IntegrationError, match=r"score has shape \(59,\) for 60 rows"):
        to_pandas(CORPUS, score=np.zeros(59))
    with pytest.raises(IntegrationError, match="has a column 'premise'"):
        to_pandas(CORPUS, premise=np.zeros(60))


# ---------------------------------------------------------------- Datalab


def test_datalab_finds_the_planted_errors():
    filtering = pytest.importorskip("cleanlab.filter")
    pytest.importorskip("datasets")
    probabilities = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    lab = exchange.datalab(CORPUS, probabilities, issue_types={"label": {}})
    table = exchange.issues(lab, CORPUS)
    found = np.flatnonzero(table["is_label_issue"])
    assert found.tolist() == np.flatnonzero(filtering.find_label_issues(CORPUS.labels, probabilities)).tolist()
    assert len(found) > 1 and set(found) <= set(FLIPPED)
    assert set(table["label_score"].nsmallest(3).index) == set(FLIPPED)
    names = np.array(CORPUS.classes)
    assert table.loc[FLIPPED, "predicted"].tolist() == names[LOGITS[FLIPPED].argmax(axis=1)].tolist()
    with pytest.raises(IntegrationError, match="60 rows, planted 59"):
        exchange.issues(lab, CORPUS[:59])


def test_what_datalab_is_not_given():
    pytest.importorskip("cleanlab")
    probabilities = np.full((60, 3), 1 / 3)
    with pytest.raises(IntegrationError, match="nothing to look at"):
        exchange.datalab(CORPUS)
    with pytest.raises(IntegrationError, match=r"shape \(59, 3\)"):
        exchange.datalab(CORPUS, probabilities[:59])
    with pytest.raises(IntegrationError, match="no probabilities"):
        exchange.datalab(CORPUS, LOGITS)
    two = CORPUS[CORPUS.labels != 1]
    with pytest.raises(IntegrationError, match="no row of neutral"):
        exchange.datalab(two, probabilities[: len(two)])


# ---------------------------------------------------------------- Label Studio


def answered(task, number, label, note=""):
    choice = {"from_name": "label", "to_name": "hypothesis", "type": "choices", "value": {"choices": [label]}}
    result = [choice]
    if note:
        value = {"text": [note]}
        result.append({"from_name": "note", "to_name": "hypothesis", "type": "textarea", "value": value})
    return {**task, "annotations": [{"completed_by": number, "result": result}]}


@pytest.mark.parametrize("shown", [False, True])
def test_label_studio_takes_the_tasks_and_gives_decisions(tmp_path, suspects, shown):
    configuration, tasks = write_label_studio(tmp_path, suspects, show_labels=shown)
    tasks = json.loads(tasks.read_text())
    assert [task["data"]["uid"] for task in tasks] == suspects["uid"].tolist()
    assert tasks[0]["data"]["premise"] == NASTY
    assert all(("gold" in task["data"], "predictions" in task) == (shown, shown) for task in tasks)
    given = [answered(tasks[0], 7, "neutral", "=1+1"), answered(tasks[1], 8, "discard"), *tasks[2:]]
    given = [{"annotations": [], **task} for task in given]
    (tmp_path / "export.json").write_text(json.dumps(given))
    table = read_label_studio(tmp_path / "export.json", suspects)
    assert (
        table["uid"].tolist() == suspects["uid"][:2].tolist()
        and table["gold"].tolist() == suspects["gold"][:2].tolist()
    )
    assert table["label"].iloc[0] == "neutral" and pd.isna(table["label"].iloc[1])
    assert table["discarded"].tolist() == [False, True] and table["note"].tolist() == ["=1+1", ""]
    interface = pytest.importorskip(
        "label_studio_sdk.label_interface", reason="label-studio-sdk is not installed: no judge of the files"
    ).LabelInterface(configuration.read_text())
    interface.validate()
    assert all(interface.validate_task({"data": task["data"]}) for task in tasks)
    assert all(interface.validate_prediction(each) for task in tasks for each in task.get("predictions", []))
    assert all(interface.validate_annotation(each) for task in given for each in task["annotations"])
    assert not interface.validate_annotation(answered(tasks[0], 7, "maybe")["annotations"][0])


def test_label_studio_export_of_another_list(tmp_path, suspects):
    tasks = json.loads(write_label_studio(tmp_path, suspects)[1].read_text())
    path = tmp_path / "export.json"
    path.write_text(json.dumps([answered(tasks[0], 1, "maybe")]))
    with pytest.raises(
        IntegrationError,
        match="no answer can be used: label 'maybe', which is none of entailment.*1, the first in task 1",
    ):
        read_label_studio(path, suspects)
    path.write_text(json.dumps([answered({"data": {"uid": "other"}}, 1, "neutral")]))
    with pytest.raises(IntegrationError, match="'other' is not in the list"):
        read_label_studio(path, suspects)
    path.write_text("[{}]")
    with pytest.raises(IntegrationError, match=r"field 0.data: .*Export the project as JSON"):
        read_label_studio(path, suspects)
    with pytest.raises(IntegrationError, match="none.json cannot be read .No such file.*Export the project as JSON"):
        read_label_studio(tmp_path / "none.json", suspects)


def test_label_studio_annotations_that_say_no_one_label_are_counted(tmp_path, suspects, capsys):
    tasks = json.loads(write_label_studio(tmp_path, suspects)[1].read_text())
    whole = answered(tasks[0], 7, "neutral", "sure")["annotations"][0]
    label, note = whole["result"]
    relation = {"from_id": "r1", "to_id": "r2", "type": "relation", "direction": "right"}
    both = {**label, "value": {"choices": ["neutral", "entailment"]}}
    one = {"id": 31, **tasks[0], "annotations": [{**whole, "result": [note, relation, label]}, {**whole, "result": []}]}
    two = {"id": 32, **tasks[1], "annotations": [{**whole, "completed_by": None}, {**whole, "result": [both]}]}
    two["annotations"] += [{**whole, "result": [label, {**label, "value": {"choices": ["entailment"]}}]}]
    three = {"id": 33, **tasks[2], "annotations": [whole, whole, {**whole, "completed_by": 8}]}
    four = {"id": 34, **tasks[1], "annotations": [whole, answered(tasks[1], 7, "discard")["annotations"][0], whole]}
    four["annotations"] += [{**whole, "completed_by": {"id": 9, "email": "a@b.c"}, "was_cancelled": None}]
    (tmp_path / "export.json").write_text(json.dumps([one, two, three, four]))
    table = read_label_studio(tmp_path / "export.json", suspects)
    assert table["uid"].tolist() == suspects["uid"].iloc[[0, 2, 2, 1]].tolist()
    assert table["annotator"].tolist() == [f"label-studio-{number}" for number in (7, 7, 8, 9)]
    assert set(table["label"]) == {"neutral"} and set(table["note"]) == {"sure"}
    assert capsys.readouterr().out == (
        f"{tmp_path / 'export.json'}: left out: a relation (1, the first in task 1 (id 31)); no label (1, the first in "
        "task 1 (id 31)); no annotator (1, the first in task 2 (id 32)); more than one label (2, the first in task 2 "
        "(id 32)); an answer that was given before (1, the first in task 3 (id 33)); two different answers of one "
        "annotator (3, the first in task 4 (id 34)).\n"
    )


# ---------------------------------------------------------------- Argilla


@pytest.mark.parametrize("shown", [False, True])
def test_argilla_reads_the_files_and_gives_decisions(tmp_path, suspects, shown):
    decided = suspects.assign(decision="fix", fix_to="neutral", votes=2, fold=0)
    settings, records = write_argilla(tmp_path, decided, show_labels=shown)
    about = {each["name"]: each["visible_for_annotators"] for each in json.loads(settings.read_text())["metadata"]}
    for name in ("rank", "gold", "predicted", "kind", "gap", "p_gold", "votes", "fold", "decision", "fix_to"):
        assert about[name] == shown, name
    given = json.loads(records.read_text())
    assert [record["id"] for record in given] == suspects["uid"].tolist() and given[0]["fields"]["premise"] == NASTY
    for record, label, who in zip(given, ["neutral", "discard"], ["u1", "u2"], strict=False):
        record["responses"] = {"label": [{"value": label, "user_id": who}], "note": [{"value": "why", "user_id": who}]}
    reviewed = tmp_path / "reviewed.json"
    reviewed.write_text(json.dumps(given))
    table = read_argilla(reviewed, suspects)
    assert table["annotator"].tolist() == ["argilla-u1", "argilla-u2"] and table["discarded"].tolist() == [False, True]
    assert table["note"].tolist() == ["why", "why"] and table["label"].iloc[0] == "neutral"

    argilla = pytest.importorskip("argilla", reason="argilla is not installed: no judge of the files")
    from argilla.records._io import JsonIO

    with mock.patch.object(argilla.Argilla, "_get_default", return_value=mock.MagicMock()):  # it wants a server
        read = argilla.Settings.from_json(settings)
        assert [question.name for question in read.questions] == ["label", "note"]
        assert read.questions[0].labels == ["entailment", "neutral", "contradiction", "discard"]
        assert [field.name for field in read.fields] == ["premise", "hypothesis"]
        properties = {each.name: each for each in read.metadata}
        assert {"gold", "predicted", "gap", "p_gold"} <= set(properties)
        assert properties["gold"].visible_for_annotators == shown
        taken = JsonIO._records_from_json(records)
        assert [each.fields["premise"] for each in taken] == suspects["premise"].tolist()
        assert [each.metadata["gap"] for each in taken] == suspects["gap"].tolist()
        assert sum(len(each.suggestions) for each in taken) == (len(suspects) if shown else 0)
        again = [each.to_dict() for each in taken]
    assert [each["metadata"] for each in again] == [each["metadata"] for each in given]


def test_argilla_records_of_another_list(tmp_path, suspects):
    given = json.loads(write_argilla(tmp_path, suspects)[1].read_text())
    path = tmp_path / "reviewed.json"
    path.write_text(json.dumps([{**given[0], "responses": {"label": [{"value": "maybe", "user_id": "u"}]}}]))
    with pytest.raises(IntegrationError, match="no answer can be used: label 'maybe', which is none of"):
        read_argilla(path, suspects)
    path.write_text(json.dumps([{**given[0], "id": "other"}]))
    with pytest.raises(IntegrationError, match="record other is not in the list"):
        read_argilla(path, suspects)


def test_argilla_responses_that_say_no_one_label_are_counted(tmp_path, suspects, capsys):
    given = json.loads(write_argilla(tmp_path, suspects)[1].read_text())
    said = [("neutral", "u1"), (None, "u2"), ("neutral", None), (["neutral", "entailment"], "u3"), ("neutral", "u1")]
    given[0]["responses"] = {"label": [{"value": value, "user_id": who} for value, who in said]}
    given[1]["responses"] = None
    (tmp_path / "reviewed.json").write_text(json.dumps(given))
    table = read_argilla(tmp_path / "reviewed.json", suspects)
    assert table[["uid", "annotator", "label"]].to_numpy().tolist() == [[given[0]["id"], "argilla-u1", "neutral"]]
    first = f"1, the first in record {given[0]['id']}"
    assert capsys.readouterr().out == (
        f"{tmp_path / 'reviewed.json'}: left out: no label ({first}); no annotator ({first}); more than one label "
        f"({first}); an answer that was given before ({first}).\n"
    )


# ---------------------------------------------------------------- any list


def test_two_classes_are_the_choices(tmp_path):
    collapsed = replace(CORPUS, table=CORPUS.table.assign(label=CORPUS.labels // 2), classes=("yes", "no"))
    table = review_list(collapsed, LOGITS[:, [0, 2]], np.zeros(60, int))
    configuration, _ = write_label_studio(tmp_path, table)
    assert [word in configuration.read_text() for word in ("yes", "no", "discard", "neutral")] == [True] * 3 + [False]
    settings, _ = write_argilla(tmp_path, table)
    options = json.loads(settings.read_text())["questions"][0]["settings"]["options"]
    assert [option["value"] for option in options] == ["no", "yes", "discard"]


def test_a_list_that_does_not_fit(tmp_path, suspects):
    for write in (write_label_studio, write_argilla):
        with pytest.raises(IntegrationError, match="has no column predicted"):
            write(tmp_path, suspects.drop(columns="predicted"))
        with pytest.raises(IntegrationError, match="stands in two rows"):
            write(tmp_path, pd.concat([suspects, suspects]))
        with pytest.raises(IntegrationError, match="is empty"):
            write(tmp_path, suspects[:0])
        with pytest.raises(IntegrationError, match="is none of the classes yes, no"):
            write(tmp_path, suspects, classes=("yes", "no"))
