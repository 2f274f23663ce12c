"""Runs on disk: captures, resume, faults. Alone: pytest tests/learn/test_fit.py"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_words import make_corpus

from nli_lib.learn import fit as module
from nli_lib.learn.fit import Loop, TrainingError, fit
from nli_lib.learn.predict import predict
from nli_lib.store import RunFolder, StoreError

pytestmark = pytest.mark.usefixtures("runs")


def test_a_run_holds_what_it_declares(make_spec, corpus):
    spec = make_spec(epochs=2)
    run = fit(spec, corpus)
    assert run.logits.shape == (2, 50, 3)
    assert run.logits.dtype == np.float32
    assert np.isfinite(run.logits).all()
    assert run.labels.tolist() == corpus.labels.tolist()
    assert pd.read_csv(run.folder / "rows.csv")["uid"].tolist() == corpus.uid.tolist()
    assert run.log["epoch"].tolist() == [0, 1]
    assert set(run.log.columns) == {"epoch", "loss", "accuracy", "seconds", "tokens_per_second"}
    assert run.store.read_json("about.json")["classes"] == list(corpus.classes)
    assert (run.model / "model.safetensors").exists()
    assert not run.store.checkpoint.exists()
    about = run.store.read_json("about.json")
    assert about["notes"][0] == "21 of 43 word pieces occur and are trained"
    assert about["corpus"]["digest"] == corpus.digest


def test_a_finished_run_is_returned_at_once(make_spec, corpus, monkeypatch):
    spec = make_spec(epochs=1)
    first = fit(spec, corpus).logits.copy()
    monkeypatch.setattr(module, "Loop", None)
    assert np.array_equal(fit(spec, corpus).logits, first)


def test_it_learns(make_spec):
    corpus = make_corpus(300)
    run = fit(make_spec(epochs=16, learning_rate=3e-3), corpus)
    assert (run.logits[-1].argmax(1) == run.labels).mean() > 0.7  # chance is 0.4
    assert run.log["loss"].iloc[-1] < run.log["loss"].iloc[0]


def test_train_records_the_training_pass_and_eval_the_state_after_it(make_spec, corpus):
    passing, settled = (fit(make_spec(epochs=2, capture=each), corpus) for each in ("train", "eval"))
    # The training is the same, so the log is; the recorded logits are not.
    assert passing.log["loss"].tolist() == settled.log["loss"].tolist()
    log_softmax = torch.log_softmax(torch.tensor(np.array(passing.logits)), -1)
    losses = -log_softmax[:, np.arange(50), passing.labels].mean(1)
    last_batch_is_short = passing.log["loss"].to_numpy()  # 50 = 6 * 8 + 2: the mean of batch means is close, not equal
    np.testing.assert_allclose(losses, last_batch_is_short, rtol=0.1)
    assert passing.log["accuracy"].tolist() == pytest.approx((passing.logits.argmax(2) == passing.labels).mean(1))
    loop = Loop(make_spec(epochs=2), corpus)
    for rows in loop.start_epoch(0):
        loop.step(rows)
    assert np.array_equal(loop.evaluate()[1].numpy(), settled.logits[0])


@pytest.mark.parametrize("capture", ["eval", "train"])
def test_only_the_last_epoch_is_recorded_where_no_other_is_asked_for(make_spec, corpus, capture):
    every, last = (fit(make_spec(capture=capture, record=record), corpus) for record in ("every", "last"))
    assert every.logits.shape == (3, 50, 3) and last.logits.shape == (1, 50, 3)
    assert np.array_equal(last.logits[0], every.logits[2]) and last.log["loss"].tolist() == every.log["loss"].tolist()
    with pytest.raises(ValueError, match="no meaning with patience"):
        fit(make_spec(record="last", patience=1), corpus, validation=corpus)


def test_keep_trains_on_its_rows_only(make_spec, corpus):
    keep = np.zeros(50, bool)
    keep[[4, 9, 30]] = True
    run = fit(make_spec(epochs=1, subset="three"), corpus, keep)
    assert run.logits.shape == (1, 3, 3)
    assert pd.read_csv(run.folder / "rows.csv")["uid"].tolist() == ["x4", "x9", "x30"]
    with pytest.raises(ValueError, match="keeps none"):
        fit(make_spec(subset="none"), corpus, np.zeros(50, bool))


def test_one_example_is_enough(make_spec):
    run = fit(make_spec(epochs=2), make_corpus(1))
    assert run.logits.shape == (2, 1, 3)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_interrupted_run_continues_to_the_same_bits(make_spec, corpus, monkeypatch, runs, precision):
    spec = make_spec(precision=precision, capture="train")
    whole = fit(spec, corpus)
    logits, weights = whole.logits.copy(), (whole.model / "model.safetensors").read_bytes()
    losses = whole.log["loss"].tolist()
    whole.folder.rename(runs / "aside")
    step, calls = Loop.step, []

    def stops(loop, rows):
        calls.append(rows)
        if len(calls) == 10:  # in the second epoch of seven batches
            raise KeyboardInterrupt
        return step(loop, rows)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "step", stops)
        with pytest.raises(KeyboardInterrupt):
            fit(spec, corpus)
    assert RunFolder(spec.folder).done.tolist() == [True, False, False]
    run = fit(spec, corpus)
    assert np.array_equal(run.logits, logits)
    assert (run.model / "model.safetensors").read_bytes() == weights
    assert run.log["loss"].tolist() == losses


KILLED = """
import os, signal, sys, torch
sys.path.insert(0, {tests!r})
from tiny_words import make_corpus
from nli_lib.learn.fit import fit
from nli_lib.learn.fit import Loop
from nli_lib.learn.predict import predict
from nli_lib.store import RunSpec
torch.set_num_threads(1)
step, calls = Loop.step, []
def dies(loop, rows):
    calls.append(rows)
    if len(calls) == {at}:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(loop, rows)
Loop.step = dies
fit(RunSpec.model_validate_json({spec!r}), make_corpus(50))
"""


@pytest.mark.slow
def test_killed_in_an_epoch_and_started_again_ends_with_the_same_arrays(make_spec, corpus, runs, home):
    spec = make_spec(precision="bf16")
    program = KILLED.format(tests=str(Path(__file__).parents[1]), at=17, spec=spec.model_dump_json())
    environment = {**os.environ, "NLI_HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert RunFolder(spec.folder).done.tolist() == [True, True, False]
    continued = fit(spec, corpus)
    again = fit(spec.model_copy(update={"corpus": "tiny-again"}), corpus)
    assert np.array_equal(continued.logits, again.logits)
    assert (continued.model / "model.safetensors").read_bytes() == (again.model / "model.safetensors").read_bytes()


def test_a_loss_that_is_not_finite_stops_with_the_examples_named(make_spec, corpus, monkeypatch):
    spec = make_spec()
    step, calls = Loop.step, []

    def breaks(loop, rows):
        calls.append(rows)
        loss, logits = step(loop, rows)
        return (loss * float("nan") if len(calls) == 9 else loss), logits

    monkeypatch.setattr(Loop, "step", breaks)
    with pytest.raises(TrainingError) as caught:
        fit(spec, corpus)
    assert all(corpus.uid[row] in str(caught.value) for row in calls[-1])
    assert "epoch 1, step 1" in str(caught.value)
    folder = RunFolder(spec.folder)
    assert folder.done.tolist() == [True, False, False]
    assert torch.load(folder.checkpoint, weights_only=True)["epoch"] == 1


@pytest.mark.parametrize("changes", [{}, {"capture": "train"}, {"clip": None}])
def test_a_run_that_diverges_in_its_last_update_is_not_kept(make_spec, corpus, changes):
    one_batch = {"batch_size": 64, "learning_rate": 1e30, "warmup": 0.0}
    for epochs in (1, 2):
        spec = make_spec(epochs=epochs, **one_batch, **changes)
        for _ in range(2):  # started again, it says the same
            with pytest.raises(TrainingError, match="after the last update of epoch 0, on the examples x"):
                fit(spec, corpus)
        folder = RunFolder(spec.folder)
        assert not folder.done.any() and not folder.checkpoint.exists() and not folder.log


def test_an_evaluation_pass_that_is_not_finite_names_its_examples(make_spec, corpus, monkeypatch):
    def evaluate(loop, arrays=None):
        logits = torch.zeros(50, 3)
        logits[7] = float("nan")
        return float("nan"), logits

    monkeypatch.setattr(Loop, "evaluate", evaluate)
    with pytest.raises(TrainingError, match="in the evaluation pass after epoch 0, on the examples x7"):
        fit(make_spec(), corpus)
    assert not RunFolder(make_spec().folder).done.any()


@pytest.mark.parametrize("watch", ["accuracy", "loss"])
def test_a_validation_loss_that_is_not_finite_stops_the_training(make_spec, corpus, monkeypatch, watch):
    monkeypatch.setattr(Loop, "evaluate", lambda loop, arrays: (float("nan"), torch.zeros(len(arrays["labels"]), 3)))
    spec = make_spec(patience=1, watch=watch, capture="train")
    with pytest.raises(TrainingError, match="the validation loss is nan after epoch 0, on tiny/validation"):
        fit(spec, corpus, validation=validation_of(make_corpus(40, seed=5)))


def test_other_settings_or_rows_in_the_same_folder_name_the_field(make_spec, corpus):
    spec = make_spec(epochs=1)
    run = fit(spec, corpus)
    with pytest.raises(StoreError, match="corpus_digest"):
        fit(spec, make_corpus(50, seed=1))
    stored = json.loads((run.folder / "spec.json").read_text())
    (run.folder / "spec.json").write_text(json.dumps({**stored, "learning_rate": 0.5}))
    with pytest.raises(StoreError, match="learning_rate"):
        fit(spec, corpus)


def test_equal_rows_under_other_class_names_are_another_run(make_spec, corpus):
    fit(make_spec(epochs=1), corpus)
    other = replace(corpus, classes=("neutral", "entailment", "contradiction"))
    assert other.digest == corpus.digest
    with pytest.raises(StoreError, match=r"trained on the classes \['entailment', .* the corpus has \['neutral', "):
        fit(make_spec(epochs=1), other)


def validation_of(corpus):
    return replace(corpus, split="validation")


def test_early_stopping_keeps_the_best_epoch_and_ends_after_patience(make_spec, corpus, runs):
    """Trained on labels that a rate of nearly zero cannot learn, the first epoch stays the best one."""
    spec = make_spec(epochs=9, learning_rate=1e-12, patience=2, subset="patient", validation="validation")
    held_out = validation_of(make_corpus(40, seed=5))
    run = fit(spec, corpus, validation=held_out)
    assert run.logits.shape == (3, 50, 3) and run.store.done.all()
    assert {"validation_loss", "validation_accuracy"} <= set(run.log.columns)
    assert run.log["validation_accuracy"].nunique() == 1


@pytest.mark.parametrize("watch", ["accuracy", "loss"])
def test_the_model_of_a_patient_run_is_the_best_epochs_and_survives_a_kill(make_spec, corpus, monkeypatch, runs, watch):
    held_out = validation_of(make_corpus(40, seed=5))
    spec = make_spec(epochs=6, learning_rate=2e-2, patience=5, watch=watch)
    run = fit(spec, corpus, validation=held_out)
    seen = run.log[f"validation_{watch}"]
    best = int(seen.argmax() if watch == "accuracy" else seen.argmin())
    logits = predict(run, held_out)
    assert (logits.argmax(1) == held_out.labels).mean() == pytest.approx(run.log["validation_accuracy"][best])
    weights = (run.model / "model.safetensors").read_bytes()
    run.folder.rename(runs / "aside")
    step, calls = Loop.step, []

    def stops(loop, rows):
        calls.append(rows)
        if len(calls) == 40:  # in the sixth epoch of seven batches
            raise KeyboardInterrupt
        return step(loop, rows)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Loop, "step", stops)
        fit(spec, corpus, validation=held_out)
    again = fit(spec, corpus, validation=held_out)
    assert (again.model / "model.safetensors").read_bytes() == weights


def test_arguments_that_do_not_fit_the_spec_are_refused(make_spec, corpus):
    with pytest.raises(ValueError, match="needs both"):
        fit(make_spec(patience=2), corpus)
    with pytest.raises(ValueError, match="needs both"):
        fit(make_spec(), corpus, validation=validation_of(corpus))
    with pytest.raises(ValueError, match="watches the split 'validation', and 'train' is given"):
        fit(make_spec(patience=2), corpus, validation=corpus)
    with pytest.raises(ValueError, match="the spec asks for the objective 'other', and 'classify' is given"):
        fit(make_spec(objective="other"), corpus)


def test_a_damaged_checkpoint_is_named_without_torchs_advice(make_spec, corpus, monkeypatch):
    spec = make_spec()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(RunFolder, "mark", lambda folder, epochs: (_ for _ in ()).throw(KeyboardInterrupt))
        fit(spec, corpus)
    checkpoint = RunFolder(spec.folder).checkpoint
    for content in (b"", checkpoint.read_bytes()[:-2000], b"no zip at all"):
        checkpoint.write_bytes(content)
        with pytest.raises(
            StoreError, match=f"checkpoint.pt cannot be read .*: delete the folder {spec.folder}"
        ) as told:
            fit(spec, corpus)
        assert "weights_only" not in str(told.value) and told.value.__suppress_context__


def test_killed_twice_between_a_checkpoint_and_its_bit_it_continues(make_spec, corpus, monkeypatch):
    spec, seen, mark = make_spec(), set(), RunFolder.mark

    def stops(folder, epochs):
        if epochs < spec.epochs and epochs not in seen:
            seen.add(epochs)
            raise KeyboardInterrupt
        mark(folder, epochs)

    monkeypatch.setattr(RunFolder, "mark", stops)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            fit(spec, corpus)
    again = fit(spec.model_copy(update={"corpus": "tiny-again"}), corpus)
    assert np.array_equal(fit(spec, corpus).logits, again.logits)


def test_a_checkpoint_of_another_time_is_refused(make_spec, corpus):
    spec = make_spec()
    fit(spec, corpus)
    folder = RunFolder(spec.folder)
    torch.save({"epoch": 2, **Loop(spec, corpus).state_dict()}, folder.checkpoint)
    np.save(folder.path / "done.npy", np.zeros(3, bool))
    with pytest.raises(StoreError, match="does not belong to the epochs that are done"):
        fit(spec, corpus)


def test_labels_that_are_not_the_corpuss_are_refused(make_spec, corpus):
    run = fit(make_spec(epochs=1), corpus)
    (run.folder / "checksums.json").unlink()  # as a run of before
    np.save(run.folder / "labels.npy", np.roll(run.labels, 1))
    with pytest.raises(StoreError, match="labels.npy is not what the corpus says; delete this folder"):
        fit(make_spec(epochs=1), corpus)


def test_damaged_weights_and_predictions_are_named(make_spec, corpus):
    run = fit(make_spec(epochs=1), corpus)
    predict(run, corpus)
    (kept,) = (run.folder / "predictions").iterdir()
    kept.write_bytes(kept.read_bytes()[:-8])
    with pytest.raises(StoreError, match=f"{kept} cannot be read .*: delete this file to compute it again"):
        predict(run, corpus)
    kept.unlink()
    weights = run.model / "model.safetensors"
    damaged = bytearray(weights.read_bytes())
    damaged[-5] ^= 1
    weights.write_bytes(damaged)
    with pytest.raises(StoreError, match="model.safetensors does not hold what was written"):
        predict(run, corpus)
