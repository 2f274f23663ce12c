"""A tiny BERT with random weights and a vocabulary of its own; every test here runs on one thread."""

import contextlib

import pytest
import torch
from tiny_models import SIZES, make_language_model, write_encoder
from tiny_words import ENTRIES, make_corpus

from nli_lib import paths
from nli_lib.learn.fit import Loop
from nli_lib.store import RunSpec


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """Folder of a BERT of 2 layers, 32 wide, dropout 0.1, with a tokenizer for `WORDS` and unused entries."""
    sizes = SIZES | {"num_hidden_layers": 2, "max_position_embeddings": 64}
    return write_encoder(tmp_path_factory.mktemp("encoder"), ENTRIES, sizes=sizes)


@pytest.fixture(scope="session")
def language_models(tmp_path_factory):
    """Folders of tiny causal language models."""
    return {kind: make_language_model(tmp_path_factory.mktemp(kind), kind) for kind in ("gpt2", "llama")}


@pytest.fixture
def corpus():
    return make_corpus(50)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture
def make_spec(encoder):
    def make(**changes):
        settings = {"corpus": "tiny", "model": encoder, "epochs": 3, "batch_size": 8, "learning_rate": 1e-3}
        return RunSpec(**{**settings, "precision": "fp32", "max_length": 32, **changes})

    return make


@pytest.fixture
def stopped(monkeypatch):
    """A block whose training is stopped, as by Ctrl-C, before its update of this number."""

    @contextlib.contextmanager
    def stopped(number):
        step, calls = Loop.step, []

        def stops(loop, rows):
            calls.append(rows)
            if len(calls) == number:
                raise KeyboardInterrupt
            return step(loop, rows)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Loop, "step", stops)
            yield

    return stopped
