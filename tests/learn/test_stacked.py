"""Trainings together: each ends as it does alone. Run alone: pytest tests/learn/test_stacked.py"""

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
from nli_lib.learn.fit import Classify, Loop, fit
from nli_lib.learn.stacked import Stack, StackedLoop, together

pytestmark = pytest.mark.usefixtures("runs")


@pytest.fixture
def make(make_spec, encoder, tmp_path):
    """Calls that train on corpora of these sizes, without dropout, which is drawn in another order."""
    folder = shutil.copytree(encoder, tmp_path / "still")
    config = (folder / "config.json").read_text().replace('dropout_prob": 0.1', 'dropout_prob": 0.0')
    (folder / "config.json").write_text(config)

    def make(*sizes, validation=None, objective=None, **changes):
        given, name = {"validation": validation, "objective": objective}, (objective or Classify).name
        specs = [make_spec(model=str(folder), seed=seed, objective=name, **changes) for seed in range(len(sizes))]
        return [lambda s=spec: fit(s, make_corpus(sizes[s.seed], s.seed), **given) for spec in specs]

    return make


@pytest.fixture
def assert_as_alone(tmp_path, monkeypatch):
    def check(calls, rtol=1e-3, atol=1e-5):
        with monkeypatch.context() as patch:
            patch.setattr(paths, "RUNS", tmp_path / "alone")
            alone = [call() for call in calls]
        for one, other in zip(alone, together(calls, at_once=3), strict=True):
            np.testing.assert_allclose(one.logits, other.logits, rtol, atol)

    return check


@pytest.mark.parametrize("filled", [False, True])  # as for a captured step
@pytest.mark.parametrize("changes", [{"clip": None, "weight_decay": 0.0}, {"patience": 1, "epochs": 4}])
def test_each_ends_as_it_does_alone(make, assert_as_alone, monkeypatch, changes, filled):
    plan = Stack._plan
    monkeypatch.setattr(Stack, "_plan", lambda stack, asked, fill: plan(stack, asked, filled))
    validation = replace(make_corpus(20, 9), split="validation") if "patience" in changes else None
    assert_as_alone(make(34, 33, 17, 34, validation=validation, **changes))  # of five batches, of three, and one alone


def test_in_bf16_up_to_its_digits(make, assert_as_alone, monkeypatch):
    monkeypatch.setattr(module, "takes_bf16", lambda precision: precision == "bf16")
    assert_as_alone(make(50, 50, precision="bf16", epochs=1), 0.02, 0.02)


def test_what_was_stopped_alone_continues_together(make, assert_as_alone, stopped, monkeypatch):
    calls = make(34, 34)
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "written_out", False)  # as on a GPU
        with stopped(7):
            calls[0]()
    with stopped(7):
        calls[1]()
    with pytest.raises(TrainingError, match="_s1_.* begun on another kind of device"):
        together(calls)
    shutil.rmtree(next(paths.RUNS.glob("*_s1_*")))
    assert_as_alone(calls)


def test_an_error_in_one_leaves_the_others_alone(make, assert_as_alone, monkeypatch):
    calls, step = make(34, 34, 34), StackedLoop.step

    def fails(loop, rows):
        if loop.spec.seed == 1 and loop.step_number == 7:
            raise OSError("no space left")
        return step(loop, rows)

    with monkeypatch.context() as patch:
        patch.setattr(StackedLoop, "step", fails)
        with pytest.raises(OSError, match="no space left"):
            together(calls)
        patch.setattr(Loop, "written_out", False)
        calls[1]()  # continues alone after its first epoch, which it made with the others
    monkeypatch.setattr(StackedLoop, "step", None)  # all are finished
    assert_as_alone(calls)


def test_what_is_not_built_like_bert_is_trained_alone(make, assert_as_alone):
    assert_as_alone(make(20, 20) + make(20, objective=ProductOfExperts()))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_captured_steps_give_what_a_training_gives_alone(make, assert_as_alone):
    assert_as_alone(make(*[120] * 3, precision="bf16"), 0.05, 0.05)
