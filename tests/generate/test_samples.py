"""Samples as pairs. Alone: pytest tests/generate/test_samples.py"""

import contextlib

import numpy as np
import pandas as pd
import pytest
from tiny_models import make_language_model
from tiny_words import make_corpus

from nli_lib import paths
from nli_lib.errors import StudyError
from nli_lib.learn import generator
from nli_lib.learn.fit import Run
from nli_lib.learn.generator import Generate, train
from nli_lib.store import RunSpec, StoreError
from nli_lib.study import parts
from nli_lib.study.parts import as_corpus, counts, draw, pack_samples, read_samples, unpack_samples

FORM = "the dog\nneutral\na cat"


@pytest.fixture
def corpus():
    return make_corpus(16)


@pytest.fixture
def run(tmp_path, monkeypatch, corpus):
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    model, objective = make_language_model(tmp_path / "model"), Generate(0.0)
    settings = {"corpus": "tiny", "model": model, "epochs": 8, "batch_size": 4, "learning_rate": 1e-2, "max_length": 48}
    return train(RunSpec(**settings, objective=objective.name, precision="fp32", seed=3), corpus, objective)


def test_reasons_duplicates_and_copies(corpus):
    known = f"{corpus.premise[0]}\nneutral\n{corpus.hypothesis[0]}"
    texts = [FORM, FORM, FORM.replace("neutral", "entailment"), known, "no separator", None]
    found = read_samples(pd.DataFrame({"draw": range(6), "text": texts}), corpus)
    assert (found["reason"] == "").tolist() == found["intended_label"].notna().tolist() == [True] * 4 + [False] * 2
    assert found["duplicate"].tolist() == [False, True, False, False, False, False]  # another label is another sample
    assert found["copy"].tolist() == [False, False, False, True, False, False]  # whatever its label
    assert found["intended_label"].tolist()[:3] == ["neutral", "neutral", "entailment"]
    table = counts(found).set_index("outcome")["count"]
    assert table.to_dict()["a pair"] == 2 and table["a repeated pair"] == table["a copy of a training pair"] == 1
    assert table.sum() == 6 and counts(found)["share"].sum() == pytest.approx(1)


def test_packed_samples_come_back_and_hold_no_text_of_the_corpus(corpus):
    known = f"{corpus.premise[0]}\nneutral\n{corpus.hypothesis[0]}"
    recited = f"{corpus.premise[1]}\nneutral\nan owl"
    texts = [FORM, known, known, recited, "no separator", None]
    found = read_samples(pd.DataFrame({"draw": range(2, 8), "text": texts}), corpus)
    small = pack_samples(found, corpus)
    assert small["premise"].tolist()[:4] == ["the dog", None, None, None]
    assert small["premise of"].tolist()[1:4] == [corpus.uid[0], corpus.uid[0], corpus.uid[1]]
    assert small["hypothesis"].tolist()[3] == "an owl" and small["hypothesis of"].notna().tolist()[:3] == [0, 1, 1]
    pd.testing.assert_frame_equal(unpack_samples(small, corpus), found.drop(columns="text"), check_exact=True)
    nothing = read_samples(pd.DataFrame({"draw": [0], "text": [None]}), corpus)
    pd.testing.assert_frame_equal(unpack_samples(pack_samples(nothing, corpus), corpus), nothing.drop(columns="text"))


def test_a_label_that_is_never_generated_and_no_sample_at_all(corpus):
    found = read_samples(pd.DataFrame({"draw": [0], "text": [FORM]}), corpus).assign(seed=0)
    made = as_corpus(found, corpus.classes)
    assert made.counts == {"entailment": 0, "neutral": 1, "contradiction": 0}
    empty = read_samples(pd.DataFrame({"draw": [0], "text": [None]}), corpus).assign(seed=0)
    assert len(as_corpus(empty[empty["reason"] == ""], corpus.classes)) == 0
    assert counts(empty)["share"].tolist() == [1.0]


def test_drawn_in_parts_that_are_kept(run, corpus, monkeypatch):
    whole = draw(run, corpus, 40, at_once=16)
    assert whole["draw"].tolist() == list(range(40)) and set(whole["seed"]) == {3}
    files = sorted(path.name for path in (run.folder / "samples").iterdir())
    ends = ["00000000-00000016.parquet", "00000016-00000032.parquet", "00000032-00000040.parquet"]
    assert [name.partition("-")[2] for name in files] == ends
    (run.folder / "samples" / files[1]).unlink()  # as if killed before it was written
    made = []
    real = generator.sample
    monkeypatch.setattr(generator, "sample", lambda *given, **more: made.append(list(given[3])) or real(*given, **more))
    pd.testing.assert_frame_equal(draw(run, corpus, 40, at_once=16), whole)
    assert made == [list(range(16, 32))]  # only what was missing


def test_a_part_that_another_process_has_drawn_is_taken(run, corpus, monkeypatch):
    whole = draw(run, corpus, 8, at_once=8)
    (kept,) = (run.folder / "samples").iterdir()
    made = kept.rename(run.folder / "made.parquet")

    @contextlib.contextmanager
    def waits(*_):
        made.rename(kept)
        yield

    monkeypatch.setattr(parts, "alone", waits)
    monkeypatch.setattr(generator, "sample", None)
    pd.testing.assert_frame_equal(draw(run, corpus, 8, at_once=8), whole)


def test_a_damaged_part_and_an_unfinished_run_are_named(run, corpus):
    draw(run, corpus, 8, at_once=8)
    (path,) = (run.folder / "samples").iterdir()
    path.write_bytes(b"nothing")
    with pytest.raises(StoreError, match=path.name):
        draw(run, corpus, 8, at_once=8)
    bits = np.load(run.folder / "done.npy")
    bits[-1] = False
    np.save(run.folder / "done.npy", bits)
    with pytest.raises(StoreError, match="not finished"):
        draw(Run(run.spec, run.folder), corpus, 8)


def test_a_generator_that_writes_no_pair_is_named_with_what_it_wrote(corpus):
    found = read_samples(pd.DataFrame({"draw": range(3), "text": [FORM, "no separator", None]}), corpus)
    table = found.assign(kind=["plain", "debiased", "debiased"], seed=0)
    with pytest.raises(StudyError, match=r"kind debiased, seed 0 wrote no pair \(no "):
        parts.parsed(table, ["kind", "seed"])
    pairs = parts.parsed(table[:1], ["kind", "seed"])
    assert len(pairs) == 1 and "reason" not in pairs
