"""Tasks go to Label Studio, annotations come back. Run alone: pytest tests/tools/test_label_studio.py"""

import json

import pandas as pd
import pytest
from small_reviews import NASTY, corpus

from nli_lib.generate.review import NEEDED, SIDES, ReviewError, pairs, queue
from nli_tools.review import CONFIGURATION, TASKS, read_export, write_tasks

MADE = pairs(corpus([*NASTY, "A dog runs."]))


def exported(task, number, by, label, **left):
    """An annotation as Label Studio exports it; a text field that nobody touched submits what was filled in."""
    texts = {side: task["data"][side].replace("\r\n", "\n") for side in SIDES} | left
    result = [
        {"from_name": side, "to_name": f"shown_{side}", "type": "textarea", "value": {"text": [text]}}
        for side, text in texts.items()
    ]
    result.append(
        {"from_name": "label", "to_name": "shown_hypothesis", "type": "choices", "value": {"choices": [label]}}
    )
    result = [{"id": f"r{at}", "origin": "manual"} | each for at, each in enumerate(result)]
    return {"id": number, "completed_by": by, "result": result, "was_cancelled": False, "lead_time": 3.5}


@pytest.fixture
def review(tmp_path):
    """(tasks as they are exported with two annotations each, the annotations that they say)."""
    write_tasks(tmp_path, MADE)
    tasks, rows = json.loads((tmp_path / TASKS).read_text()), []
    for at, task in enumerate(tasks):
        pair = task["data"]
        one = exported(task, 2 * at, 7, "neutral", premise="Revised." if at == 0 else pair["premise"])
        two = exported(task, 2 * at + 1, {"id": 8, "email": "a@b.c"}, "discard" if at == 1 else "entailment")
        task |= {"id": at, "annotations": [one, two], "predictions": []}
        left = {"revised_premise": pair["premise"], "revised_hypothesis": pair["hypothesis"]}
        revised = left | ({"revised_premise": "Revised."} if at == 0 else {})
        rows.append({**pair, "annotator": "label-studio-7", **revised, "label": "neutral", "discarded": False})
        label = {"label": None, "discarded": True} if at == 1 else {"label": "entailment", "discarded": False}
        rows.append({**pair, "annotator": "label-studio-8", **left, **label})
    return tasks, pd.DataFrame(rows, columns=list(NEEDED))


def read(tmp_path, tasks):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    return read_export(path, MADE)


def test_what_was_annotated_comes_back(tmp_path, review):
    tasks, expected = review
    pd.testing.assert_frame_equal(read(tmp_path, tasks), expected, check_dtype=False)
    assert "a@b.c" not in read(tmp_path, tasks).to_csv()


def test_a_skipped_task_has_no_annotation(tmp_path, review):
    tasks, expected = review
    tasks[0]["annotations"][0]["was_cancelled"] = True
    assert len(read(tmp_path, tasks)) == len(expected) - 1
    assert list(read(tmp_path, [])) == list(NEEDED)


def test_a_field_left_empty_is_no_revision(tmp_path, review):
    tasks, _ = review
    tasks[0]["annotations"][0]["result"] = tasks[0]["annotations"][0]["result"][2:]
    first = read(tmp_path, tasks).iloc[0]
    assert first["revised_premise"] == first["premise"] and first["label"] == "neutral"


def test_label_studio_takes_the_configuration_the_tasks_and_the_annotations(tmp_path, review):
    """Their own code says so; annotators are shown neither the intended label nor the maker."""
    interface = pytest.importorskip(
        "label_studio_sdk.label_interface", reason="label-studio-sdk is not installed (.ci/setup test)"
    ).LabelInterface(CONFIGURATION.read_text(encoding="utf-8"))
    interface.validate()
    tasks, _ = review
    for task in json.loads((tmp_path / TASKS).read_text()):
        assert set(task) == {"data"} and set(task["data"]) == {"item", *SIDES}
        assert interface.validate_task(task)
    assert all(interface.validate_annotation(each) for task in tasks for each in task["annotations"])
    assert not interface.validate_task({"data": {"premise": "alone"}})
    wrong = exported(tasks[0], 0, 7, "maybe")
    assert not interface.validate_annotation(wrong)


def test_the_seed_decides_the_order_of_the_tasks(tmp_path):
    _, path = write_tasks(tmp_path, MADE, seed=3)
    assert [task["data"] for task in json.loads(path.read_text())] == queue(MADE, 3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t[0].pop("annotations"), "task and field 0.annotations: Field required. Export the project as JSON"),
        (lambda t: t[0]["annotations"][0]["result"][2].update(value={"choices": 5}), "task and field 0.*value.choices"),
        (lambda t: t[0]["annotations"][0]["result"][0].update(value={"text": [5]}), "task and field 0.*value.text"),
        (lambda t: t[0]["annotations"][0]["result"][0].update(value={"text": {}}), "task and field 0.*value.text"),
        (lambda t: t[0]["data"].update(item="x"), "task 1 .id 0., item: there is no pair 'x'"),
        (lambda t: t[1]["data"].update(premise="x"), "task 2 .id 1., premise: the text of pair .* was another"),
    ],
)
def test_what_is_no_export_of_this_review_is_named(tmp_path, review, change, said):
    tasks, _ = review
    change(tasks)
    with pytest.raises(ReviewError, match=f"export.json: {said}"):
        read(tmp_path, tasks)
    with pytest.raises(ReviewError, match=r"none.json cannot be read"):
        read_export(tmp_path / "none.json", MADE)


def test_annotations_that_say_no_one_label_are_counted(tmp_path, review, capsys):
    tasks, expected = review
    tasks[0]["annotations"][0]["result"].append({"type": "relation", "from_id": "r0", "to_id": "r1"})
    tasks[2]["annotations"][0]["result"].pop()
    tasks[3]["annotations"][1]["completed_by"] = {"email": "a@b.c"}
    tasks[4]["annotations"][1]["result"][2]["value"]["choices"] = ["neutral", "entailment"]
    tasks[5]["annotations"][0]["result"][2]["value"]["choices"] = ["maybe"]
    left = expected.drop(index=[4, 7, 9, 10]).reset_index(drop=True)
    pd.testing.assert_frame_equal(read(tmp_path, tasks), left, check_dtype=False)
    said = capsys.readouterr().out
    assert said.startswith(
        f"{tmp_path / 'export.json'}: left out: a relation (1, the first in task 1 (id 0)); no label (1"
    )
    for reason in ("no annotator (1, the first in task 4", "more than one label (1", "label 'maybe', which is none of"):
        assert reason in said
    with pytest.raises(
        ReviewError, match="export.json: no answer can be used: label 'maybe', .*1, the first in task 1"
    ):
        read(tmp_path, [{**tasks[5], "annotations": tasks[5]["annotations"][:1]}])
