"""Trainings together: each ends as it does alone. Run alone: pytest tests/learn/test_stacked.py"""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_words import make_corpus

from nli_lib import paths
from nli_lib.errors import TrainingError
from nli_lib.learn import fit as module
from nli_lib.learn.experts import ProductOfExperts
from nli_lib.learn.fit import Loop, fit
from nli_lib.learn.stacked import Stack, StackedLoop, together

pytestmark = pytest.mark.usefixtures("runs")


@pytest.fixture
def make(make_spec, encoder, tmp_path):
    """Calls that train on corpora of these sizes, without dropout, which is drawn in another order."""
    folder = shutil.copytree(encoder, tmp_path / "still")
    config = json.loads((folder / "config.json").read_text())
    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    (folder / "config.json").write_text(json.dumps(config | rates))

    def make(*sizes, validation=None, objective=None, **changes):
        def call(seed, size):
            name = objective.name if objective else "classify"
            spec = make_spec(model=str(folder), seed=seed, objective=name, **changes)
            return lambda: fit(spec, make_corpus(size, seed), validation=validation, objective=objective)

        return [call(seed, size) for seed, size in enumerate(sizes)]

    return make


@pytest.fixture
def alone(tmp_path, monkeypatch):
    def alone(calls):
        with monkeypatch.context() as patch:
            patch.setattr(paths, "RUNS", tmp_path / "alone")
            return [call() for call in calls]

    return alone


def assert_equal(runs, others, **tolerance):
    for one, other in zip(runs, others, strict=True):
        assert one.spec == other.spec and one.logits.shape == other.logits.shape
        np.testing.assert_allclose(one.logits, other.logits, **tolerance or {"rtol": 1e-3, "atol": 1e-5})


@pytest.mark.parametrize("filled", [False, True])  # as for a captured step
@pytest.mark.parametrize("changes", [{}, {"clip": None, "weight_decay": 0.0}, {"patience": 1, "epochs": 6}])
def test_each_ends_as_it_does_alone(make, alone, monkeypatch, changes, filled):
    plan = Stack._plan
    monkeypatch.setattr(Stack, "_plan", lambda stack, asked, fill: plan(stack, asked, filled))
    validation = replace(make_corpus(20, 9), split="validation") if "patience" in changes else None
    calls = make(50, 50, 49, 42, 17, validation=validation, **changes)  # three stacks, by the number of batches
    assert_equal(alone(calls), together(calls, at_once=4))


def test_in_bf16_up_to_its_digits(make, alone, monkeypatch):
    monkeypatch.setattr(module, "takes_bf16", lambda precision: precision == "bf16")
    calls = make(50, 50, precision="bf16", epochs=1)
    assert_equal(alone(calls), together(calls), rtol=0.02, atol=0.02)


def test_what_was_stopped_alone_continues_together(make, alone, stopped, monkeypatch):
    calls = make(50, 50, 50)
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "written_out", False)  # as on a GPU
        with stopped(10):
            calls[0]()
    with stopped(10):
        calls[1]()
    with pytest.raises(TrainingError, match="_s1_.* begun on another kind of device"):
        together(calls)
    shutil.rmtree(next(paths.RUNS.glob("*_s1_*")))
    assert_equal(alone(calls), together(calls))


def test_an_error_in_one_leaves_the_others_alone(make, alone, monkeypatch):
    calls = make(50, 50, 50)
    step = StackedLoop.step

    def fails(loop, rows):
        if loop.spec.seed == 1 and loop.step_number == 9:
            raise OSError("no space left")
        return step(loop, rows)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space left"):
        patch.setattr(StackedLoop, "step", fails)
        together(calls)
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "written_out", False)
        calls[1]()  # continues alone after its first epoch, which it made with the others
    monkeypatch.setattr(StackedLoop, "step", None)  # all are finished
    assert_equal(alone(calls), together(calls))


def test_what_is_not_built_like_bert_is_trained_alone(make, alone):
    calls = make(20, 20) + make(20, objective=ProductOfExperts())
    assert_equal(alone(calls), together(calls))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_captured_steps_give_what_a_training_gives_alone(make, alone, monkeypatch):
    monkeypatch.setattr(module, "takes_bf16", lambda precision: precision == "bf16")
    calls = make(*[120] * 4, precision="bf16", epochs=3)
    assert_equal(alone(calls), together(calls), rtol=0.05, atol=0.05)
