"""Cross-scoring: each example by a model that did not see it. Alone: pytest tests/learn/test_cross.py"""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nli_lib.learn import predict as module
from nli_lib.learn.fit import fit
from nli_lib.learn.predict import cross_score, fold_specs, predict
from nli_lib.select.selection import folds
from nli_lib.store import RunFolder

pytestmark = pytest.mark.usefixtures("runs")


@pytest.fixture
def fold(corpus):
    return folds(corpus.labels, count=3, seed=0)


def relabelled(corpus, labels):
    return replace(corpus, table=corpus.table.assign(label=labels))


def test_equal_to_its_definition(make_spec, corpus, fold):
    spec = make_spec(epochs=2, capture="train")
    logits = cross_score(spec, corpus, fold)
    assert logits.shape == (50, 3)
    assert logits.dtype == np.float32
    for at in range(3):
        run = fit(spec.model_copy(update={"subset": f"by hand {at}"}), corpus[fold != at])
        assert np.array_equal(logits[fold == at], predict(run, corpus[fold == at]))


def test_fresh_models_are_blind_to_the_labels_they_score(make_spec, corpus, fold):
    spec = make_spec(epochs=1)
    before = cross_score(spec, corpus, fold)
    changed = relabelled(corpus, np.where(fold == 1, (corpus.labels + 1) % 3, corpus.labels))
    spec = make_spec(epochs=1, corpus="changed")
    after = cross_score(spec, changed, fold)
    assert np.array_equal(before[fold == 1], after[fold == 1])
    assert not np.array_equal(before[fold == 0], after[fold == 0])


def test_parts_that_fall_into_the_same_folds_have_runs_of_their_own(make_spec, corpus, fold):
    turned = replace(corpus, table=corpus.table.assign(hypothesis=corpus.table["hypothesis"].str.upper() + " indeed"))
    one, other = (cross_score(make_spec(epochs=1, subset=name), each, fold)
                  for name, each in (("one", corpus), ("other", turned)))  # fmt: skip
    assert not np.array_equal(one, other)
    names = [each.subset for each in fold_specs(make_spec(subset="one"), fold, [0, 1])]
    assert all(name.startswith("one, without fold ") and name.count("one") == 1 for name in names)
    assert next(fold_specs(make_spec(), fold, [0])).subset.startswith("without fold ")  # as runs were always called


def test_a_model_that_is_reused_has_seen_what_it_scores(make_spec, corpus, fold):
    spec = make_spec(epochs=1, capture="train")
    fresh, reused = (cross_score(spec, corpus, fold, reuse_model_for=each) for each in (1, 2))
    for at, same in ((0, True), (1, False), (2, True)):  # two sessions: folds 0 and 1, fold 2
        assert np.array_equal(fresh[fold == at], reused[fold == at]) == same
    first = fit(spec.model_copy(update={"subset": "by hand, first"}), corpus[fold != 0])  # it sees fold 1
    second = fit(spec.model_copy(update={"subset": "second", "model": str(first.model)}), corpus[fold != 1])
    assert np.array_equal(reused[fold == 1], predict(second, corpus[fold == 1]))


def test_a_chain_starts_from_the_model_before(make_spec, fold):
    first, second = fold_specs(make_spec(), fold, [1, 2])
    assert second.model == f"run:{first.id}"
    assert first.subset != second.subset
    other = next(fold_specs(make_spec(), 2 - fold, [1]))
    assert other.id != first.id  # other folds, another run


def test_stopped_after_a_fold_it_continues_at_the_next(make_spec, corpus, fold, monkeypatch):
    spec, trained = make_spec(epochs=1), []

    def stops(run_spec, *given, **more):
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(run_spec.subset)
        return fit(run_spec, *given, **more)

    monkeypatch.setattr(module, "fit", stops)
    with pytest.raises(KeyboardInterrupt):
        cross_score(spec, corpus, fold)
    seen = []
    monkeypatch.setattr("nli_lib.learn.fit._train", lambda spec, *_, **__: seen.append(spec.subset))
    monkeypatch.setattr(module, "fit", fit)
    monkeypatch.setattr(module, "predict", lambda run, part: np.zeros((len(part), 3), np.float32))
    cross_score(spec, corpus, fold)
    assert len(seen) == 1
    assert not set(seen) & set(trained)


def test_folds_share_one_tokenisation(make_spec, corpus, fold, monkeypatch):
    monkeypatch.setattr("nli_lib.learn.fit.encode", None)  # a loop that tokenised by itself would fail
    assert np.isfinite(cross_score(make_spec(epochs=1), corpus, fold)).all()


KILLED = """
import os, signal, sys, threading, time
import numpy as np
sys.path.insert(0, {tests!r})
from tiny_words import make_corpus
from nli_lib import paths
from nli_lib.learn.predict import cross_score
from nli_lib.select.selection import folds
from nli_lib.store import RunSpec
def dies():
    while not [path for path in paths.RUNS.glob("*/done.npy") if path.stat().st_size and np.load(path).any()]:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=dies, daemon=True).start()
corpus = make_corpus(50)
cross_score(RunSpec.model_validate_json({spec!r}), corpus, folds(corpus.labels, count=3, seed=0), jobs=2)
"""


@pytest.mark.slow
def test_two_at_a_time_killed_and_started_again_end_as_one_after_another(make_spec, corpus, fold, home):
    spec = make_spec(epochs=6, capture="train")
    program = KILLED.format(tests=str(Path(__file__).parents[1]), spec=spec.model_dump_json())
    environment = {**os.environ, "NLI_HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[2])}
    with (home / "said.txt").open("w+") as said:  # not a pipe, which the processes left behind would keep open
        code = subprocess.run([sys.executable, "-c", program], env=environment, stdout=said, stderr=said).returncode
        said.seek(0)
        assert code == -signal.SIGKILL, said.read()
    parts = [next(fold_specs(spec, fold, [at])).folder for at in range(3)]  # each a chain of its own
    assert any(RunFolder(part).done.any() for part in parts if (part / "done.npy").exists())
    again = cross_score(spec, corpus, fold, jobs=1)  # waits for what the killed one's processes still hold
    assert np.array_equal(again, cross_score(make_spec(epochs=6, capture="train", limit=50), corpus, fold, jobs=1))


@pytest.mark.parametrize(
    ("fold", "said"),
    [
        (np.zeros(49, int), "shape"),
        (np.zeros(50, int), r"holds \[0\]: .* two folds or more"),
        (np.arange(50) % 2 * 2, r"holds \[0, 2\]: .* none of them empty"),
        (np.arange(50) % 2 - 1, "from 0 up"),
        (np.full(50, 0.5), "from 0 up"),
    ],
)
def test_folds_that_cannot_be_scored_are_one_error(make_spec, corpus, fold, said):
    with pytest.raises(ValueError, match=said):
        cross_score(make_spec(), corpus, fold)
