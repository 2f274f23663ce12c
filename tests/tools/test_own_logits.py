"""Logits that somebody else recorded, beside a corpus. Run alone: pytest tests/tools/test_own_logits.py"""

import subprocess
import sys

import numpy as np
import pytest

import nli_tools
from nli_lib.corpora.planted import make_split
from nli_lib.measure import dynamics
from nli_tools.exchange import Dynamics, IntegrationError, dynamics_of, read_dynamics

LOGITS = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
GIVEN = Dynamics(LOGITS, np.array([0, 1, 2, 1]), np.array(["a", "b", "c", "d"]), "train")


def test_saved_and_read_are_equal(tmp_path):
    GIVEN.save(tmp_path / "mine.npz")
    read = read_dynamics(tmp_path / "mine.npz")
    np.testing.assert_array_equal(read.logits, LOGITS)
    assert (read.labels.tolist(), read.uid.tolist(), read.capture) == ([0, 1, 2, 1], ["a", "b", "c", "d"], "train")


def test_a_file_that_is_none_is_named(tmp_path):
    (tmp_path / "mine.npz").write_bytes(b"no archive")
    with pytest.raises(RuntimeError, match=r"mine.npz cannot be read"):
        read_dynamics(tmp_path / "mine.npz")
    np.savez(tmp_path / "unsafe.npz", logits=np.array([object()], dtype=object))
    with pytest.raises(RuntimeError, match=r"unsafe.npz cannot be read"):
        read_dynamics(tmp_path / "unsafe.npz")


def test_beside_a_corpus_by_name_whatever_the_order():
    corpus = make_split("train", 12)
    order = np.random.default_rng(1).permutation(12)
    logits = np.random.default_rng(2).normal(size=(2, 12, 3))
    shuffled = Dynamics(logits[:, order], corpus.labels[order], corpus.uid[order].astype(str))
    beside = shuffled.of(corpus)
    np.testing.assert_array_equal(beside.logits, logits)
    np.testing.assert_array_equal(shuffled.of(corpus[[3, 5]]).logits, logits[:, [3, 5]])
    with pytest.raises(IntegrationError, match="4 of 12 rows of planted were not recorded"):
        shuffled[np.argsort(order)[:8]].of(corpus)
    with pytest.raises(IntegrationError, match="was recorded with label"):
        Dynamics(logits, (corpus.labels + 1) % 3, corpus.uid.astype(str)).of(corpus)


def test_rows_that_an_epoch_lacks():
    logits = LOGITS.copy()
    logits[1, 2] = np.nan
    part = Dynamics(logits, GIVEN.labels, GIVEN.uid)
    assert part.missing.tolist() == [False, False, True, False] and part.whole().uid.tolist() == ["a", "b", "d"]
    with pytest.raises(ValueError, match="not finite"):
        dynamics.confidence(part.logits, part.labels)


def test_shapes_and_names_that_do_not_fit():
    with pytest.raises(IntegrationError, match=r"logits \(2, 4, 3\), labels \(3,\)"):
        Dynamics(LOGITS, np.arange(3), GIVEN.uid)
    with pytest.raises(IntegrationError, match="uid 'a' names more than one row"):
        Dynamics(LOGITS, GIVEN.labels, np.array(["a", "b", "a", "d"]))


def test_arrays_and_runs_are_taken():
    assert dynamics_of(LOGITS, labels=[0, 1, 2, 1]).uid.tolist() == [0, 1, 2, 3]
    assert dynamics_of(GIVEN) is GIVEN


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
