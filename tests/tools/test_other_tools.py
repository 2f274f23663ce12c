"""Other tools' files and objects go in and out. Run alone: pytest tests/tools/test_other_tools.py"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from audited import label_studio, lines, refused
from scipy.special import softmax

import nli_tools
from nli_lib.corpora.planted import make_split
from nli_lib.evaluate import review_list
from nli_lib.measure import dynamics
from nli_lib.select.selection import Selection
from nli_tools import exchange
from nli_tools.exchange import Dynamics, read_cartography, write_cartography

CORPUS = make_split("train", 60)
RANDOM = np.random.default_rng(0)
NASTY = "<script>alert(1)</script> =1+1\r\n\u202e"
GIVEN = Dynamics(RANDOM.normal(size=(5, 40, 3)), RANDOM.integers(0, 3, 40), np.arange(100, 140), "train")
FEW = Dynamics(GIVEN.logits[:2, :4].astype(np.float32), np.array([0, 1, 2, 1]), np.array([*"abcd"]), "train")


def put(path, value):
    """A file of one JSON value, or where it is a list in a .jsonl, of one a line."""
    lines = value if path.suffix == ".jsonl" else [value]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def test_the_door_opens_without_torch():
    code = (
        "import sys, nli_tools as door\n"
        "[getattr(door, name) for name in door.__all__ if name not in ('RecordLogits', 'explore')]\n"
        "print([name for name in ('torch', 'transformers', 'datasets', 'cleanlab', 'argilla') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
    assert nli_tools.RecordLogits.__name__ == "RecordLogits"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = nli_tools.nothing


# ---------------------------------------------------------------- dynamics


def test_dynamics_are_saved_and_read_and_a_file_that_is_none_is_named(tmp_path):
    FEW.save(tmp_path / "mine.npz")
    read = exchange.read_dynamics(tmp_path / "mine.npz")
    np.testing.assert_array_equal(read.logits, FEW.logits)
    assert (read.labels.tolist(), read.uid.tolist(), read.capture) == ([0, 1, 2, 1], [*"abcd"], "train")
    (tmp_path / "mine.npz").write_bytes(b"no archive")
    np.savez(tmp_path / "unsafe.npz", logits=np.array([object()], dtype=object))
    for name in ("mine.npz", "unsafe.npz"):
        refused(f"{name} cannot be read", exchange.read_dynamics, tmp_path / name, error=RuntimeError)


def test_dynamics_stand_beside_a_corpus_by_name_whatever_the_order():
    order = RANDOM.permutation(60)
    logits = RANDOM.normal(size=(2, 60, 3))
    turned = Dynamics(logits[:, order], CORPUS.labels[order], CORPUS.uid[order].astype(str))
    np.testing.assert_array_equal(turned.of(CORPUS).logits, logits)
    np.testing.assert_array_equal(turned.of(CORPUS[[3, 5]]).logits, logits[:, [3, 5]])
    refused("4 of 60 rows of planted were not recorded", turned[np.argsort(order)[:56]].of, CORPUS)
    refused("was recorded with label", Dynamics(logits, (CORPUS.labels + 1) % 3, CORPUS.uid.astype(str)).of, CORPUS)
    assert exchange.dynamics_of(FEW.logits, labels=[0, 1, 2, 1]).uid.tolist() == [0, 1, 2, 3]
    assert exchange.dynamics_of(FEW) is FEW


def test_rows_that_an_epoch_lacks_and_what_does_not_fit():
    logits = FEW.logits.copy()
    logits[1, 2] = np.nan
    part = Dynamics(logits, FEW.labels, FEW.uid)
    assert part.missing.tolist() == [False, False, True, False] and part.whole().uid.tolist() == ["a", "b", "d"]
    refused("not finite", dynamics.confidence, part.logits, part.labels, error=ValueError)
    refused(r"logits \(2, 4, 3\), labels \(3,\)", Dynamics, FEW.logits, np.arange(3), FEW.uid)
    refused("uid 'a' names more than one row", Dynamics, FEW.logits, FEW.labels, np.array([*"abad"]))


# ---------------------------------------------------------------- cartography


def their_reader(folder):
    """`read_training_dynamics` of train_dy_filtering.py, as it stands but for the progress bar and the logging."""
    train_dynamics = {}
    num_epochs = len([f for f in Path(folder).iterdir() if f.is_file()])
    for epoch_num in range(num_epochs):
        epoch_file = Path(folder, f"dynamics_epoch_{epoch_num}.jsonl")
        assert epoch_file.exists()
        for record in lines(epoch_file):
            guid = record["guid"]
            if guid not in train_dynamics:
                assert epoch_num == 0
                train_dynamics[guid] = {"gold": record["gold"], "logits": []}
            train_dynamics[guid]["logits"].append(record[f"logits_epoch_{epoch_num}"])
    return train_dynamics


def their_metrics(train_dynamics):
    """`compute_train_dy_metrics`, in numpy."""
    for index, (guid, record) in enumerate(train_dynamics.items()):
        probabilities = softmax(np.array(record["logits"]), axis=1)[:, record["gold"]]
        right = [int(np.argmax(logits)) == record["gold"] for logits in record["logits"]]
        forgotten, learnt = 0, False
        for is_correct in right:
            forgotten += learnt and not is_correct
            learnt = is_correct
        mean = probabilities.mean()
        times = forgotten if any(right) else 1000
        yield guid, index, mean * (1 - mean), mean, probabilities.std(), sum(right), times


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_out_and_in_is_the_same_bit_for_bit_for_their_reader_too(tmp_path, dtype):
    given = replace(GIVEN, logits=GIVEN.logits.astype(dtype))
    write_cartography(tmp_path, given)
    read, theirs = read_cartography(tmp_path), their_reader(tmp_path)
    for name in ("logits", "labels", "uid"):
        np.testing.assert_array_equal(getattr(read, name), getattr(given, name))
    assert list(theirs) == GIVEN.uid.tolist() and [each["gold"] for each in theirs.values()] == GIVEN.labels.tolist()
    np.testing.assert_array_equal([each["logits"] for each in theirs.values()], given.logits.swapaxes(0, 1))


def test_names_may_be_text_and_rows_in_any_order(tmp_path):
    for epoch, order in enumerate(([0, 1, 2], [2, 0, 1])):
        lines = [{"guid": f"x{at}", f"logits_epoch_{epoch}": [at, epoch, 0.5], "gold": at} for at in order]
        put(tmp_path / f"dynamics_epoch_{epoch}.jsonl", lines)
    read = read_cartography(tmp_path)
    assert read.uid.tolist() == ["x0", "x1", "x2"] and read.labels.tolist() == [0, 1, 2]
    assert read.logits[:, :, 0].tolist() == [[0, 1, 2], [0, 1, 2]] and read.logits[1, :, 1].tolist() == [1, 1, 1]


def test_the_classes_of_their_mnli_are_put_into_our_order(tmp_path):
    write_cartography(tmp_path, GIVEN)
    read = read_cartography(tmp_path, classes=("contradiction", "entailment", "neutral"))
    np.testing.assert_array_equal(read.logits, GIVEN.logits[:, :, [1, 2, 0]])
    for score in (dynamics.confidence, dynamics.margin):
        np.testing.assert_allclose(score(read.logits, read.labels), score(GIVEN.logits, GIVEN.labels), atol=1e-12)
    assert read.labels[GIVEN.labels == 0].tolist() == [2] * (GIVEN.labels == 0).sum()
    three = "the three are entailment, neutral, contradiction"
    refused(three, read_cartography, tmp_path, classes=("yes", "no", "maybe"))


def test_their_table_of_scores(tmp_path):
    table = exchange.write_td_metrics(tmp_path / "td_metrics.jsonl", GIVEN)
    write_cartography(tmp_path / "training_dynamics", GIVEN)
    expected = list(their_metrics(their_reader(tmp_path / "training_dynamics")))
    np.testing.assert_allclose(table.to_numpy(float), expected, atol=1e-12)
    assert (table["forgetfulness"] == 1000).any()  # the never-learnt are among them
    names = ["guid", "index", "threshold_closeness", "confidence", "variability", "correctness", "forgetfulness"]
    assert list(lines(tmp_path / "td_metrics.jsonl")[0]) == names
    assert len(exchange.read_coordinates(tmp_path / "td_metrics.jsonl")) == 40


def test_rows_that_an_epoch_lacks_stay_out_of_it_and_those_that_fill_a_batch_count_once(tmp_path, capsys):
    """Several processes repeat rows to fill their last batch."""
    logits = GIVEN.logits.copy()
    logits[3, 7] = np.nan
    write_cartography(tmp_path, replace(GIVEN, logits=logits))
    assert len(lines(tmp_path / "dynamics_epoch_3.jsonl")) == 39
    path = tmp_path / "dynamics_epoch_2.jsonl"
    put(path, [*lines(path), *lines(path)[:2]])
    read = read_cartography(tmp_path)
    np.testing.assert_array_equal(read.logits, logits)
    np.testing.assert_array_equal(read.uid, GIVEN.uid)
    assert np.flatnonzero(read.missing).tolist() == [7]
    told = "2 rows that repeat another row were left out, the first in"
    assert capsys.readouterr().out == f"{tmp_path}: {told} {path}: guid 100.\n"


LINE = {"guid": 1, "logits_epoch_0": [0.1, 0.2, 0.3], "gold": 0}


BAD_ROWS = [
    ([LINE, LINE, {**LINE, "logits_epoch_0": [0.1, 0.2, 0.4]}], "guid 1 appears in two rows with different"),
    ([LINE, {**LINE, "gold": 1}], "guid 1 appears in two rows with different contents"),
    ([{**LINE, "gold": "neutral"}], "gold is string"),
    ([{**LINE, "gold": 3}], r"must be in 0\.\.2"),
    ([{**LINE, "gold": -1}], r"must be in 0\.\.2"),
    ([{**LINE, "gold": None}, {**LINE, "guid": 2}], "row 0: gold is missing"),
    ([LINE, {"guid": 2, "logits_epoch_0": [0.1, 0.2], "gold": 0}], "2 to 3 logits"),
    ([{"guid": 1, "gold": 0}], "no field 'logits_epoch_0'"),
    ([{**LINE, "logits_epoch_0": 0.5}], "must be a list")]  # fmt: skip


@pytest.mark.parametrize(("lines", "said"), BAD_ROWS)
def test_a_bad_row_is_named(tmp_path, lines, said):
    put(tmp_path / "dynamics_epoch_0.jsonl", lines)
    refused(said, read_cartography, tmp_path)


def test_a_bad_folder_is_named(tmp_path):
    refused("holds no dynamics_epoch_0", read_cartography, tmp_path)
    put(tmp_path / "dynamics_epoch_1.jsonl", [{"guid": 1, "logits_epoch_1": [0.1, 0.2, 0.3], "gold": 1}])
    refused(r"has no dynamics_epoch_0\.jsonl", read_cartography, tmp_path)
    put(tmp_path / "dynamics_epoch_0.jsonl", [LINE])
    refused(r"epoch_1\.jsonl: guid 1 changes its gold label", read_cartography, tmp_path)
    (tmp_path / "dynamics_epoch_0.jsonl").write_text("{no json")
    refused(r"dynamics_epoch_0\.jsonl cannot be read", read_cartography, tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    two = replace(GIVEN, logits=GIVEN.logits[:2])
    refused(r"holds .*cartography takes for an epoch", write_cartography, tmp_path, two)


@pytest.mark.realdata
def test_their_own_sample_goes_in_and_comes_out_row_by_row_and_a_published_map_is_read(tmp_path):
    folder = Path(os.environ["NLI_DATA"], "training_dynamics")
    read = read_cartography(folder / "cartography_sample")
    assert read.logits.shape[0] == 5 and (~np.isnan(read.logits).any(axis=2)).sum(axis=1).tolist() == [10] * 5
    for path in write_cartography(tmp_path, read):
        ours, theirs = lines(path), lines(folder / "cartography_sample" / path.name)
        assert [list(row) for row in ours] == [list(row) for row in theirs]  # the fields and their order
        assert sorted(ours, key=lambda row: row["guid"]) == sorted(theirs, key=lambda row: row["guid"])
    table = exchange.read_coordinates(folder / "winogrande_roberta_0_6_data_map_coordinates.jsonl")
    assert len(table) == 40_398 and table["correctness"].max() == 6
    bound = np.sqrt(table["confidence"] * (1 - table["confidence"]))
    assert (table["variability"] <= bound + 1e-9).all()


# ---------------------------------------------------------------- frames and Datalab


def test_a_frame_and_a_dataset_come_back_as_the_corpus():
    score = RANDOM.random(60)
    table = exchange.to_pandas(CORPUS, Selection.where(score > 0.5, "low"), score=score)
    assert list(table["label"].unique()) and set(table["label"]) <= set(CORPUS.classes)
    assert table["kept"].tolist() == (score > 0.5).tolist() and table["score"].tolist() == score.tolist()
    dataset = exchange.to_dataset(CORPUS, score=score)
    assert dataset.features["label"].names == list(CORPUS.classes)
    for given in (table, dataset):
        back = exchange.from_pandas(given)
        assert back.digest == CORPUS.digest and back.table["score"].tolist() == score.tolist()
    refused(r"score has shape \(59,\) for 60 rows", exchange.to_pandas, CORPUS, score=np.zeros(59))
    refused("has a column 'premise'", exchange.to_pandas, CORPUS, premise=np.zeros(60))


def planted_logits(corpus, flipped):
    """Out-of-sample logits that know every label but think otherwise of the `flipped`."""
    logits = RANDOM.normal(scale=0.3, size=(len(corpus), 3))
    truth = corpus.labels.copy()
    truth[flipped] = (truth[flipped] + 1) % 3
    logits[np.arange(len(corpus)), truth] += 4
    return logits


FLIPPED = np.array([3, 17, 40])
LOGITS = planted_logits(CORPUS, FLIPPED)


def test_datalab_finds_the_planted_errors_and_what_it_is_not_given():
    filtering = pytest.importorskip("cleanlab.filter")
    pytest.importorskip("datasets")
    probabilities = softmax(LOGITS, axis=1)
    lab = exchange.datalab(CORPUS, probabilities, issue_types={"label": {}})
    table = exchange.issues(lab, CORPUS)
    found = np.flatnonzero(table["is_label_issue"])
    assert found.tolist() == np.flatnonzero(filtering.find_label_issues(CORPUS.labels, probabilities)).tolist()
    assert len(found) > 1 and set(found) <= set(FLIPPED)
    assert set(table["label_score"].nsmallest(3).index) == set(FLIPPED)
    names = np.array(CORPUS.classes)
    assert table.loc[FLIPPED, "predicted"].tolist() == names[LOGITS[FLIPPED].argmax(axis=1)].tolist()
    refused("60 rows, planted 59", exchange.issues, lab, CORPUS[:59])
    two = CORPUS[CORPUS.labels != 1]
    wrong = {"nothing to check": [CORPUS], r"shape \(59, 3\)": [CORPUS, probabilities[:59]]}
    wrong |= {"not probabilities": [CORPUS, LOGITS], "no row of neutral": [two, probabilities[: len(two)]]}
    for said, given in wrong.items():
        refused(said, exchange.datalab, *given)


# ---------------------------------------------------------------- lists of suspects


@pytest.fixture
def suspects():
    table = review_list(CORPUS, LOGITS, np.zeros(60, int))
    table.loc[0, "premise"] = NASTY
    return table


def answered(task, number, label, note=""):
    result = [{"from_name": "label", "to_name": "hypothesis", "type": "choices", "value": {"choices": [label]}}]
    if note:
        field = {"from_name": "note", "to_name": "hypothesis", "type": "textarea", "value": {"text": [note]}}
        result.append(field)
    return {**task, "annotations": [{"completed_by": number, "result": result}]}


@pytest.mark.parametrize("shown", [False, True])
def test_label_studio_takes_the_tasks_and_gives_decisions(tmp_path, suspects, shown):
    configuration, tasks = exchange.write_label_studio(tmp_path, suspects, show_labels=shown)
    tasks = json.loads(tasks.read_text())
    assert [task["data"]["uid"] for task in tasks] == suspects["uid"].tolist() and tasks[0]["data"]["premise"] == NASTY
    assert all(("gold" in task["data"], "predictions" in task) == (shown, shown) for task in tasks)
    given = [answered(tasks[0], 7, "neutral", "=1+1"), answered(tasks[1], 8, "discard"), *tasks[2:]]
    given = [{"annotations": [], **task} for task in given]
    table = exchange.read_label_studio(put(tmp_path / "export.json", given), suspects)
    pd.testing.assert_frame_equal(table[["uid", "gold"]], suspects[["uid", "gold"]][:2], check_dtype=False)
    assert table["label"].iloc[0] == "neutral" and pd.isna(table["label"].iloc[1])
    assert table["discarded"].tolist() == [False, True] and table["note"].tolist() == ["=1+1", ""]
    interface = label_studio(configuration)
    assert all(interface.validate_task({"data": task["data"]}) for task in tasks)
    assert all(interface.validate_prediction(each) for task in tasks for each in task.get("predictions", []))
    assert all(interface.validate_annotation(each) for task in given for each in task["annotations"])
    assert not interface.validate_annotation(answered(tasks[0], 7, "maybe")["annotations"][0])


def test_annotations_of_another_list_or_without_one_label(tmp_path, suspects, capsys):
    tasks = json.loads(exchange.write_label_studio(tmp_path, suspects)[1].read_text())
    path = tmp_path / "export.json"
    none = "no answer can be used: label 'maybe', which is none of entailment.*1, the first in task 1"
    for said, export in {
        none: [answered(tasks[0], 1, "maybe")],
        "'other' is not in the list": [answered({"data": {"uid": "other"}}, 1, "neutral")],
        "field 0.data: .*Export the project as JSON": [{}],
        "export.json cannot be read .No such file.*Export the project as JSON": None,
    }.items():
        path.unlink(missing_ok=True) if export is None else put(path, export)
        refused(said, exchange.read_label_studio, path, suspects)
    whole = answered(tasks[0], 7, "neutral", "sure")["annotations"][0]
    label, note = whole["result"]
    relation = {"from_id": "r1", "to_id": "r2", "type": "relation", "direction": "right"}
    both = {**label, "value": {"choices": ["neutral", "entailment"]}}
    other = {**label, "value": {"choices": ["entailment"]}}
    discarded = answered(tasks[1], 7, "discard")["annotations"][0]
    late = {**whole, "completed_by": {"id": 9, "email": "a@b.c"}, "was_cancelled": None}
    nobody = [{**whole, "completed_by": by} for by in (None, {"email": "a@b.c"})]
    given = [
        (31, tasks[0], [{**whole, "result": [note, relation, label]}, {**whole, "result": []}]),
        (32, tasks[1], [*nobody, {**whole, "result": [both]}, {**whole, "result": [label, other]}]),
        (33, tasks[2], [whole, whole, {**whole, "completed_by": 8}]),
        (34, tasks[1], [whole, discarded, whole, late]),
    ]
    put(path, [{"id": number, **task, "annotations": each} for number, task, each in given])
    table = exchange.read_label_studio(path, suspects)
    assert table["uid"].tolist() == suspects["uid"].iloc[[0, 2, 2, 1]].tolist()
    assert table["annotator"].tolist() == [f"label-studio-{number}" for number in (7, 7, 8, 9)]
    assert set(table["label"]) == {"neutral"} and set(table["note"]) == {"sure"}
    counts = {"a relation": 31, "no label": 31, "no annotator": 32, "more than one label": 32, "a repeated answer": 33}
    out = capsys.readouterr().out
    for why, number in counts.items():
        assert f"{why} ({1 + (number == 32)}, the first in task {number - 30} (id {number}))" in out
    assert out.endswith("; two different answers of one annotator (3, the first in task 4 (id 34)).\n")


@pytest.mark.parametrize("shown", [False, True])
def test_argilla_reads_the_files_and_gives_decisions(tmp_path, suspects, shown):
    decided = suspects.assign(decision="fix", fix_to="neutral", votes=2, fold=0)
    settings, records = exchange.write_argilla(tmp_path, decided, show_labels=shown)
    about = {each["name"]: each["visible_for_annotators"] for each in json.loads(settings.read_text())["metadata"]}
    for name in ("rank", "gold", "predicted", "kind", "gap", "p_gold", "votes", "fold", "decision", "fix_to"):
        assert about[name] == shown, name
    given = json.loads(records.read_text())
    assert [record["id"] for record in given] == suspects["uid"].tolist() and given[0]["fields"]["premise"] == NASTY
    for record, label, who in zip(given, ["neutral", "discard"], ["u1", "u2"], strict=False):
        record["responses"] = {"label": [{"value": label, "user_id": who}], "note": [{"value": "why", "user_id": who}]}
    table = exchange.read_argilla(put(tmp_path / "reviewed.json", given), suspects)
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


def test_argilla_records_of_another_list_and_responses_without_one_label(tmp_path, suspects, capsys):
    given, path = json.loads(exchange.write_argilla(tmp_path, suspects)[1].read_text()), tmp_path / "reviewed.json"
    maybe = {"responses": {"label": [{"value": "maybe", "user_id": "u"}]}}
    none = "no answer can be used: label 'maybe', which is none of"
    for said, change in {none: maybe, "record other is not in the list": {"id": "other"}}.items():
        put(path, [{**given[0], **change}])
        refused(said, exchange.read_argilla, path, suspects)
    said = [("neutral", "u1"), (None, "u2"), ("neutral", None), (["neutral", "entailment"], "u3"), ("neutral", "u1")]
    given[0]["responses"] = {"label": [{"value": value, "user_id": who} for value, who in said]}
    given[1]["responses"] = None
    table = exchange.read_argilla(put(path, given), suspects)
    assert table[["uid", "annotator", "label"]].to_numpy().tolist() == [[given[0]["id"], "argilla-u1", "neutral"]]
    first = f"1, the first in record {given[0]['id']}"
    reasons = "no label", "no annotator", "more than one label", "a repeated answer"
    assert capsys.readouterr().out == f"{path}: left out: {'; '.join(f'{why} ({first})' for why in reasons)}.\n"


def test_two_classes_are_the_choices_and_a_list_that_does_not_fit(tmp_path, suspects):
    collapsed = replace(CORPUS, table=CORPUS.table.assign(label=CORPUS.labels // 2), classes=("yes", "no"))
    table = review_list(collapsed, LOGITS[:, [0, 2]], np.zeros(60, int))
    text = exchange.write_label_studio(tmp_path, table)[0].read_text()
    assert [word in text for word in ("yes", "no", "discard", "neutral")] == [True] * 3 + [False]
    options = json.loads(exchange.write_argilla(tmp_path, table)[0].read_text())["questions"][0]["settings"]["options"]
    assert [option["value"] for option in options] == ["no", "yes", "discard"]
    for write in (exchange.write_label_studio, exchange.write_argilla):
        for said, wrong in {
            "has no column predicted": suspects.drop(columns="predicted"),
            "appears in two rows": pd.concat([suspects, suspects]),
            "is empty": suspects[:0],
        }.items():
            refused(said, write, tmp_path, wrong)
        refused("is none of the classes yes, no", write, tmp_path, suspects, classes=("yes", "no"))
