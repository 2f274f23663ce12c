"""Runs on disk: captures, resume, faults. Alone: pytest tests/learn/test_fit.py"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_models import go_through
from tiny_words import make_corpus

from nli_lib.errors import TrainingError
from nli_lib.learn import fit as module
from nli_lib.learn.experts import ProductOfExperts
from nli_lib.learn.fit import Classify, Loop, fit
from nli_lib.learn.generator import Generate
from nli_lib.learn.predict import predict
from nli_lib.store import RunFolder, StoreError

pytestmark = pytest.mark.usefixtures("runs")


def weights_of(run):
    return (run.model / "model.safetensors").read_bytes()


def test_a_run_holds_what_it_declares(make_spec, corpus, monkeypatch):
    spec = make_spec(epochs=2)
    run = fit(spec, corpus)
    assert run.logits.shape == (2, 50, 3) and run.logits.dtype == np.float32 and np.isfinite(run.logits).all()
    assert run.labels.tolist() == corpus.labels.tolist()
    assert pd.read_csv(run.folder / "rows.csv")["uid"].tolist() == corpus.uid.tolist()
    assert run.log["epoch"].tolist() == [0, 1]
    assert set(run.log.columns) == {"epoch", "loss", "accuracy", "seconds", "tokens_per_second"}
    about = run.store.read_json("about.json")
    assert about["classes"] == list(corpus.classes) and about["corpus"]["digest"] == corpus.digest
    assert about["notes"][0] == "21 of 43 word pieces occur and are trained"
    assert (run.model / "model.safetensors").exists() and not run.store.checkpoint.exists()
    monkeypatch.setattr(module, "Loop", None)  # it is returned at once
    assert np.array_equal(fit(spec, corpus).logits, run.logits)


def test_it_learns(make_spec):
    run = fit(make_spec(epochs=16, learning_rate=3e-3), make_corpus(300))
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
    go_through(loop)
    assert np.array_equal(loop.evaluate()[1].numpy(), settled.logits[0])


@pytest.mark.parametrize("capture", ["eval", "train"])
def test_only_the_last_epoch_is_recorded_where_no_other_is_asked_for(make_spec, corpus, capture):
    every, last = (fit(make_spec(capture=capture, record=record), corpus) for record in ("every", "last"))
    assert every.logits.shape == (3, 50, 3) and last.logits.shape == (1, 50, 3)
    assert np.array_equal(last.logits[0], every.logits[2]) and last.log["loss"].tolist() == every.log["loss"].tolist()


def test_keep_trains_on_its_rows_only(make_spec, corpus):
    run = fit(make_spec(epochs=1, subset="three"), corpus, np.isin(np.arange(50), [4, 9, 30]))
    assert run.logits.shape == (1, 3, 3) and pd.read_csv(run.folder / "rows.csv")["uid"].tolist() == ["x4", "x9", "x30"]


def test_one_example_is_enough(make_spec):
    assert fit(make_spec(epochs=2), make_corpus(1)).logits.shape == (2, 1, 3)


# ---------------------------------------------------------------- interrupted


OBJECTIVES = {
    "classify": Classify(),
    "product": ProductOfExperts(),
    "generate one": Generate(0.5, "one"),
    "generate both": Generate(0.5, "both"),
}


@pytest.fixture
def spec_of(make_spec, language_models):
    def spec_of(name, **changes):
        more = {"model": language_models["gpt2"], "max_length": 64} if name.startswith("generate") else {}
        return make_spec(objective=OBJECTIVES[name].name, **more, **changes)

    return spec_of


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_interrupted_run_continues_to_the_same_bits(spec_of, corpus, runs, stopped, name, precision):
    spec, objective = spec_of(name, precision=precision, capture="train"), OBJECTIVES[name]
    whole = fit(spec, corpus, objective=objective)
    logits, weights, losses = whole.logits.copy(), weights_of(whole), whole.log["loss"].tolist()
    whole.folder.rename(runs / "aside")
    with stopped(10):  # in the second epoch of seven batches
        fit(spec, corpus, objective=objective)
    assert RunFolder(spec.folder).done.tolist() == [True, False, False]
    run = fit(spec, corpus, objective=objective)
    assert np.array_equal(run.logits, logits) and weights_of(run) == weights and run.log["loss"].tolist() == losses


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


def test_a_damaged_checkpoint_is_named_without_torchs_advice(make_spec, corpus, monkeypatch):
    spec = make_spec()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(RunFolder, "mark", lambda folder, epochs: (_ for _ in ()).throw(KeyboardInterrupt))
        fit(spec, corpus)
    checkpoint = RunFolder(spec.folder).checkpoint
    for content in (b"", checkpoint.read_bytes()[:-2000], b"no zip at all"):
        checkpoint.write_bytes(content)
        said = f"checkpoint.pt cannot be read .*: delete the folder {spec.folder}"
        with pytest.raises(StoreError, match=said) as told:
            fit(spec, corpus)
        assert "weights_only" not in str(told.value) and told.value.__suppress_context__


def test_a_checkpoint_of_another_time_is_refused(make_spec, corpus):
    spec = make_spec()
    fit(spec, corpus)
    folder = RunFolder(spec.folder)
    torch.save({"epoch": 2, **Loop(spec, corpus).state_dict()}, folder.checkpoint)
    np.save(folder.path / "done.npy", np.zeros(3, bool))
    with pytest.raises(StoreError, match="does not belong to the epochs that are done"):
        fit(spec, corpus)


# ---------------------------------------------------------------- losses that are not finite


@pytest.mark.parametrize("name", ["classify", "generate one"])
def test_a_loss_that_is_not_finite_stops_with_the_examples_named(spec_of, corpus, monkeypatch, name):
    spec, step, calls = spec_of(name), Loop.step, []

    def breaks(loop, rows):
        calls.append(rows)
        loss, logits = step(loop, rows)
        return (loss * float("nan") if len(calls) == 9 else loss), logits

    monkeypatch.setattr(Loop, "step", breaks)
    with pytest.raises(TrainingError, match="epoch 1, step 1, on the examples x") as caught:
        fit(spec, corpus, objective=OBJECTIVES[name])
    assert all(corpus.uid[row] in str(caught.value) for row in calls[-1])
    folder = RunFolder(spec.folder)
    assert folder.done.tolist() == [True, False, False]
    assert torch.load(folder.checkpoint, weights_only=True)["epoch"] == 1


@pytest.mark.parametrize("changes", [{}, {"capture": "train"}, {"clip": None}])
@pytest.mark.parametrize("epochs", [1, 2])
def test_a_run_that_diverges_in_its_last_update_is_not_kept(make_spec, corpus, epochs, changes):
    spec = make_spec(epochs=epochs, batch_size=64, learning_rate=1e30, warmup=0.0, **changes)  # one batch an epoch
    for _ in range(2):  # started again, it says the same
        with pytest.raises(TrainingError, match="after the last update of epoch 0, on the examples x"):
            fit(spec, corpus)
    folder = RunFolder(spec.folder)
    assert not folder.done.any() and not folder.checkpoint.exists() and not folder.log


def test_an_evaluation_pass_that_is_not_finite_names_its_examples(make_spec, corpus, monkeypatch):
    logits = torch.zeros(50, 3).index_fill_(0, torch.tensor(7), torch.nan)
    monkeypatch.setattr(Loop, "evaluate", lambda loop: (float("nan"), logits))
    with pytest.raises(TrainingError, match="in the evaluation pass after epoch 0, on the examples x7"):
        fit(make_spec(), corpus)
    assert not RunFolder(make_spec().folder).done.any()


# ---------------------------------------------------------------- early stopping


@pytest.fixture
def held_out():
    return replace(make_corpus(40, seed=5), split="validation")


WATCH = pytest.mark.parametrize("watch", ["accuracy", "loss"])


@WATCH
def test_a_validation_loss_that_is_not_finite_stops_the_training(make_spec, corpus, held_out, monkeypatch, watch):
    monkeypatch.setattr(Loop, "evaluate", lambda loop, arrays: (float("nan"), torch.zeros(len(arrays["labels"]), 3)))
    spec = make_spec(patience=1, watch=watch, capture="train")
    with pytest.raises(TrainingError, match="the validation loss is nan after epoch 0, on tiny/validation"):
        fit(spec, corpus, validation=held_out)


def test_early_stopping_keeps_the_best_epoch_and_ends_after_patience(make_spec, corpus, held_out):
    """Trained on labels that a rate of nearly zero cannot learn, the first epoch stays the best one."""
    spec = make_spec(epochs=9, learning_rate=1e-12, patience=2, subset="patient", validation="validation")
    run = fit(spec, corpus, validation=held_out)
    assert run.logits.shape == (3, 50, 3) and run.store.done.all()
    assert {"validation_loss", "validation_accuracy"} <= set(run.log.columns)
    assert run.log["validation_accuracy"].nunique() == 1


@WATCH
def test_the_model_of_a_patient_run_is_the_best_epochs_and_survives_a_kill(
    make_spec, corpus, held_out, runs, stopped, watch
):
    spec = make_spec(epochs=6, learning_rate=2e-2, patience=5, watch=watch)
    run = fit(spec, corpus, validation=held_out)
    seen = run.log[f"validation_{watch}"]
    best = int(seen.argmax() if watch == "accuracy" else seen.argmin())
    logits = predict(run, held_out)
    assert (logits.argmax(1) == held_out.labels).mean() == pytest.approx(run.log["validation_accuracy"][best])
    weights = weights_of(run)
    run.folder.rename(runs / "aside")
    with stopped(40):  # in the sixth epoch of seven batches
        fit(spec, corpus, validation=held_out)
    assert weights_of(fit(spec, corpus, validation=held_out)) == weights


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(("changes", "given", "said"), [
    ({"patience": 2}, {}, "needs both"),
    ({}, {"validation": "validation"}, "needs both"),
    ({"patience": 2}, {"validation": "train"}, "watches the split 'validation', and 'train' is given"),
    ({"patience": 1, "record": "last"}, {"validation": "validation"}, "no meaning with patience"),
    ({"patience": 1, "models": "all"}, {"validation": "validation"}, "early stopping keeps the best"),
    ({"objective": "other"}, {}, "the spec asks for the objective 'other', and 'classify' is given"),
    ({"subset": "none"}, {"keep": np.zeros(50, bool)}, "keeps none")])  # fmt: skip
def test_arguments_that_do_not_fit_the_spec_are_refused(make_spec, corpus, changes, given, said):
    given = {key: replace(corpus, split=each) if key == "validation" else each for key, each in given.items()}
    with pytest.raises(ValueError, match=said):
        fit(make_spec(**changes), corpus, **given)


def test_other_rows_or_class_names_in_the_same_folder_name_the_field(make_spec, corpus):
    spec = make_spec(epochs=1)
    fit(spec, corpus)
    with pytest.raises(StoreError, match="corpus_digest"):
        fit(spec, make_corpus(50, seed=1))
    other = replace(corpus, classes=("neutral", "entailment", "contradiction"))
    assert other.digest == corpus.digest
    with pytest.raises(StoreError, match=r"trained on the classes \['entailment', .* the corpus has \['neutral', "):
        fit(spec, other)


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
    weights.write_bytes(weights.read_bytes()[:-5] + b"\1" * 5)
    with pytest.raises(StoreError, match="model.safetensors does not hold what was written"):
        predict(run, corpus)
