"""Alone: pytest tests/learn/test_stored.py"""

import pytest

import nli_lib.learn.fit as module
from nli_lib.learn.predict import stored
from nli_lib.store import RunSpec, StoreError


def test_a_run_is_found_by_its_settings_and_nothing_is_trained(corpus, make_spec, runs, monkeypatch):
    spec = make_spec(epochs=1)
    run = module.fit(spec, corpus)
    settings = spec.model_dump_json(exclude_defaults=True)
    monkeypatch.setattr(module, "_train", lambda *args, **kwargs: pytest.fail("it was trained again"))
    found = stored(settings)
    assert found.spec == spec and found.folder == run.folder
    assert (found.logits == run.logits).all()


def test_a_damaged_run_is_named(make_spec, corpus, runs):
    spec = make_spec(epochs=1)
    logits = module.fit(spec, corpus).folder / "logits.npy"
    logits.write_bytes(logits.read_bytes()[:-40] + bytes(40))
    with pytest.raises(StoreError, match="logits.npy does not hold what was written"):
        stored(spec.model_dump_json())


def test_a_run_that_is_not_there_is_named():
    spec = RunSpec(corpus="nowhere")
    with pytest.raises(StoreError, match="nowhere.*run the chapter"):
        stored(spec.model_dump_json(exclude_defaults=True))
    with pytest.raises(StoreError, match="cannot be read"):
        stored("{}")
    with pytest.raises(StoreError, match="cannot be read"):
        stored("not json")
