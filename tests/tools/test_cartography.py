"""Dataset cartography's files go in and out. Run alone: pytest tests/tools/test_cartography.py"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from nli_lib.measure import dynamics
from nli_tools.exchange import (
    Dynamics,
    IntegrationError,
    read_cartography,
    read_coordinates,
    write_cartography,
    write_td_metrics,
)

real = pytest.mark.skipif(not os.environ.get("NLI_DATA"), reason="NLI_DATA is not set: no real corpora")
RANDOM = np.random.default_rng(0)
GIVEN = Dynamics(RANDOM.normal(size=(5, 40, 3)), RANDOM.integers(0, 3, 40), np.arange(100, 140), "train")


def rows(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def their_reader(folder):
    """`read_training_dynamics` of train_dy_filtering.py, as it stands but for the progress bar and the logging."""
    train_dynamics = {}
    num_epochs = len([f for f in Path(folder).iterdir() if f.is_file()])
    for epoch_num in range(num_epochs):
        epoch_file = Path(folder, f"dynamics_epoch_{epoch_num}.jsonl")
        assert epoch_file.exists()
        with epoch_file.open() as infile:
            for line in infile:
                record = json.loads(line.strip())
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
def test_out_and_in_is_the_same_bit_for_bit(tmp_path, dtype):
    write_cartography(tmp_path, Dynamics(GIVEN.logits.astype(dtype), GIVEN.labels, GIVEN.uid))
    read = read_cartography(tmp_path)
    np.testing.assert_array_equal(read.logits, GIVEN.logits.astype(dtype))
    np.testing.assert_array_equal(read.labels, GIVEN.labels)
    np.testing.assert_array_equal(read.uid, GIVEN.uid)


def test_their_reader_reads_what_we_write(tmp_path):
    write_cartography(tmp_path, GIVEN)
    read = their_reader(tmp_path)
    assert list(read) == GIVEN.uid.tolist()
    np.testing.assert_array_equal(np.array([each["logits"] for each in read.values()]), GIVEN.logits.swapaxes(0, 1))
    assert [each["gold"] for each in read.values()] == GIVEN.labels.tolist()


def test_names_may_be_text_and_rows_in_any_order(tmp_path):
    for epoch, order in enumerate(([0, 1, 2], [2, 0, 1])):
        lines = [{"guid": f"x{at}", f"logits_epoch_{epoch}": [at, epoch, 0.5], "gold": at} for at in order]
        path = tmp_path / f"dynamics_epoch_{epoch}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
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
    with pytest.raises(IntegrationError, match="the three are entailment, neutral, contradiction"):
        read_cartography(tmp_path, classes=("yes", "no", "maybe"))


def test_their_table_of_scores(tmp_path):
    table = write_td_metrics(tmp_path / "td_metrics.jsonl", GIVEN)
    write_cartography(tmp_path / "training_dynamics", GIVEN)
    expected = list(their_metrics(their_reader(tmp_path / "training_dynamics")))
    np.testing.assert_allclose(table.to_numpy(float), expected, atol=1e-12)
    assert (table["forgetfulness"] == 1000).any()  # the never-learnt are among them
    written = rows(tmp_path / "td_metrics.jsonl")
    assert list(written[0]) == [
        "guid", "index", "threshold_closeness", "confidence", "variability", "correctness", "forgetfulness",
    ]  # fmt: skip
    assert len(read_coordinates(tmp_path / "td_metrics.jsonl")) == 40


def test_rows_that_an_epoch_lacks_stay_out_of_it(tmp_path):
    logits = GIVEN.logits.copy()
    logits[3, 7] = np.nan
    write_cartography(tmp_path, Dynamics(logits, GIVEN.labels, GIVEN.uid))
    assert len(rows(tmp_path / "dynamics_epoch_3.jsonl")) == 39
    assert np.flatnonzero(read_cartography(tmp_path).missing).tolist() == [7]


def test_rows_that_fill_the_last_batch_of_several_processes_count_once(tmp_path, capsys):
    write_cartography(tmp_path, GIVEN)
    path = tmp_path / "dynamics_epoch_2.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, *lines[:2]]))
    read = read_cartography(tmp_path)
    np.testing.assert_array_equal(read.logits, GIVEN.logits)
    np.testing.assert_array_equal(read.uid, GIVEN.uid)
    assert capsys.readouterr().out == (
        f"{tmp_path}: 2 rows that repeat another were left out, the first in {path}: guid 100.\n"
    )


LINE = {"guid": 1, "logits_epoch_0": [0.1, 0.2, 0.3], "gold": 0}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([LINE, LINE, {**LINE, "logits_epoch_0": [0.1, 0.2, 0.4]}], "guid 1 stands in two rows that say different"),
        ([LINE, {**LINE, "gold": 1}], "guid 1 stands in two rows that say different things"),
        ([{**LINE, "gold": "neutral"}], "gold is string"),
        ([{**LINE, "gold": 3}], r"must lie in 0\.\.2"),
        ([{**LINE, "gold": -1}], r"must lie in 0\.\.2"),
        ([{**LINE, "gold": None}, {**LINE, "guid": 2}], "row 0: gold is missing"),
        ([LINE, {"guid": 2, "logits_epoch_0": [0.1, 0.2], "gold": 0}], "2 to 3 logits"),
        ([{"guid": 1, "gold": 0}], "no field 'logits_epoch_0'"),
        ([{**LINE, "logits_epoch_0": 0.5}], "must be a list"),
    ],
)
def test_a_bad_row_is_named(tmp_path, lines, said):
    (tmp_path / "dynamics_epoch_0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(IntegrationError, match=said):
        read_cartography(tmp_path)


def test_a_bad_folder_is_named(tmp_path):
    with pytest.raises(IntegrationError, match="holds no dynamics_epoch_0"):
        read_cartography(tmp_path)
    (tmp_path / "dynamics_epoch_1.jsonl").write_text(json.dumps(LINE))
    with pytest.raises(IntegrationError, match=r"lacks dynamics_epoch_0\.jsonl"):
        read_cartography(tmp_path)
    (tmp_path / "dynamics_epoch_0.jsonl").write_text("{no json")
    with pytest.raises(IntegrationError, match=r"dynamics_epoch_0\.jsonl cannot be read"):
        read_cartography(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(IntegrationError, match=r"holds .*cartography takes for an epoch"):
        write_cartography(tmp_path, Dynamics(GIVEN.logits[:2], GIVEN.labels, GIVEN.uid))


def test_a_label_that_changes_is_named(tmp_path):
    for epoch in (0, 1):
        line = {"guid": 1, f"logits_epoch_{epoch}": [0.1, 0.2, 0.3], "gold": epoch}
        (tmp_path / f"dynamics_epoch_{epoch}.jsonl").write_text(json.dumps(line))
    with pytest.raises(IntegrationError, match=r"epoch_1\.jsonl: guid 1 changes its gold label"):
        read_cartography(tmp_path)


@pytest.mark.realdata
@real
def test_their_own_sample_goes_in_and_comes_out_row_by_row(tmp_path):
    sample = Path(os.environ["NLI_DATA"], "training_dynamics", "cartography_sample")
    read = read_cartography(sample)
    assert read.logits.shape[0] == 5 and (~np.isnan(read.logits).any(axis=2)).sum(axis=1).tolist() == [10] * 5
    write_cartography(tmp_path, read)
    for epoch in range(5):
        ours, theirs = (rows(folder / f"dynamics_epoch_{epoch}.jsonl") for folder in (tmp_path, sample))
        assert [list(row) for row in ours] == [list(row) for row in theirs]  # the fields and their order
        assert sorted(ours, key=lambda row: row["guid"]) == sorted(theirs, key=lambda row: row["guid"])


@pytest.mark.realdata
@real
def test_a_published_map_is_read():
    folder = Path(os.environ["NLI_DATA"], "training_dynamics")
    table = read_coordinates(folder / "winogrande_roberta_0_6_data_map_coordinates.jsonl")
    assert len(table) == 40_398 and table["correctness"].max() == 6
    bound = np.sqrt(table["confidence"] * (1 - table["confidence"]))
    assert (table["variability"] <= bound + 1e-9).all()
