"""What trained runs say: predictions, vectors, cross-scores. Alone: pytest tests/learn/test_predict.py"""

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import go_through
from tiny_words import make_corpus
from transformers import AutoConfig, AutoTokenizer, LlamaConfig, LlamaModel

from nli_lib import paths
from nli_lib.corpora.corpus import CorpusError
from nli_lib.learn import predict as module
from nli_lib.learn.fit import Loop, fit
from nli_lib.learn.model import is_decoder, load_classifier, load_tokenizer
from nli_lib.learn.predict import cross_predict, cross_score, embed, fold_specs, predict, predict_epochs
from nli_lib.select.selection import folds
from nli_lib.store import RunFolder, RunSpec, StoreError

pytestmark = pytest.mark.usefixtures("runs")


@pytest.fixture
def run(runs, make_spec, corpus):
    return fit(make_spec(epochs=1), corpus)


@pytest.fixture
def in_fp32(monkeypatch):
    monkeypatch.setattr(module, "takes_bf16", lambda *_: False)


def test_the_final_epoch_is_predicted_again(run, corpus):
    np.testing.assert_allclose(predict(run, corpus), run.logits[-1], rtol=1e-4, atol=1e-5)


def test_what_another_process_has_predicted_is_taken(run, corpus, monkeypatch):
    logits = predict(run, corpus)
    (kept,) = (run.folder / "predictions").iterdir()
    made = kept.rename(run.folder / "made.npy")

    @contextlib.contextmanager
    def waits(*_):
        made.rename(kept)
        yield

    monkeypatch.setattr(module, "alone", waits)
    monkeypatch.setattr(module, "_pass", None)
    assert np.array_equal(predict(run, corpus), logits)


def test_a_prediction_is_kept(run, monkeypatch):
    other = make_corpus(20, seed=9)
    first = predict(run, other, batch_size=7)
    assert first.shape == (20, 3) and first.dtype == np.float32
    monkeypatch.setattr(module, "_pass", None)
    assert np.array_equal(predict(run, other), first)


@pytest.mark.usefixtures("in_fp32")
def test_a_ready_model_is_mapped_by_name_and_refused_without_names(encoder, tmp_path, corpus):
    def ready(*order):
        load_classifier(encoder, order, 3)[0].save_pretrained(tmp_path / order[0])
        load_tokenizer(encoder).save_pretrained(tmp_path / order[0])
        return predict(str(tmp_path / order[0]), corpus)

    # The heads are equal; under the alphabetical names column 1 of the model is entailment, our column 0.
    alphabetical = ready("contradiction", "entailment", "neutral")
    ours = ready("entailment", "neutral", "contradiction")
    np.testing.assert_allclose(alphabetical, ours[:, [1, 2, 0]], rtol=1e-5, atol=1e-6)
    with pytest.raises(CorpusError, match="LABEL_0"):
        ready("LABEL_0", "LABEL_1", "LABEL_2")


@pytest.mark.usefixtures("in_fp32")
def test_embeddings(run, encoder, corpus):
    of_run, of_encoder = embed(run, corpus), embed(encoder, corpus)
    assert of_run.shape == (50, 32) and not np.allclose(of_run, of_encoder)
    np.testing.assert_allclose(of_encoder, embed(encoder, corpus, batch_size=1), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("in_fp32")
def test_a_decoder_is_read_at_its_last_token(encoder, tmp_path, corpus):
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    tokenizer.save_pretrained(tmp_path)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    LlamaModel(LlamaConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(tmp_path)
    vectors = embed(str(tmp_path), corpus)
    np.testing.assert_allclose(vectors, embed(str(tmp_path), corpus, batch_size=1), rtol=1e-4, atol=1e-5)
    distinct = len(corpus.table.drop_duplicates(["premise", "hypothesis"]))
    assert len(np.unique(vectors.round(3), axis=0)) == distinct  # the first token, [CLS], is the same everywhere


FORWARD = {"llama": True, "gpt2": True, "bert": False, "roberta": False, "deberta-v2": False, "modernbert": False}


@pytest.mark.parametrize("kind", FORWARD)
def test_which_models_read_from_left_to_right(kind):
    assert is_decoder(AutoConfig.for_model(kind)) == FORWARD[kind]


# ---------------------------------------------------------------- models of every epoch


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_model_of_every_epoch_predicts_what_was_recorded_after_it(make_spec, corpus, precision):
    run, one = (fit(make_spec(models=kept, precision=precision), corpus) for kept in ("all", "last"))
    again = predict_epochs(run, corpus)
    assert again.shape == run.logits.shape == (3, 50, 3)
    np.testing.assert_allclose(again, run.logits, rtol=1e-3, atol=1e-3)
    assert not np.allclose(again[0], again[1]) and not np.allclose(again[1], again[2])
    assert np.array_equal(again[-1], predict(run, corpus))
    assert [path.name for path in run.models] == ["epoch-0", "epoch-1", "model"]
    assert one.folder != run.folder and np.array_equal(one.logits, run.logits)  # keeping them changes no bit
    with pytest.raises(ValueError, match="models='all'"):
        predict_epochs(one, corpus)
    (weights,) = run.models[0].glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-8] + b"\0" * 8)
    with pytest.raises(StoreError, match=r"epoch-0/model.safetensors does not hold what was written"):
        predict_epochs(run, make_corpus(5, seed=1))


def test_words_that_were_not_trained_on_are_those_of_their_epoch(make_spec, corpus):
    """What a model knows of a word that no example has is decayed as far as its own epoch had come."""
    run = fit(make_spec(models="all", epochs=2, weight_decay=0.5, learning_rate=0.1), corpus[:8])
    tables = [load_classifier(str(path), corpus.classes, 0)[0].get_input_embeddings().weight for path in run.models]
    first, last = (float(table[-1].detach().norm()) for table in tables)  # an entry that is in no text
    assert 0 < last < first * 0.95


# ---------------------------------------------------------------- stored


def test_a_run_is_found_by_its_settings_and_nothing_is_trained(run, monkeypatch):
    monkeypatch.setattr("nli_lib.learn.fit._train", lambda *args, **kwargs: pytest.fail("it was trained again"))
    found = module.stored(run.spec.model_dump_json(exclude_defaults=True))
    assert found.spec == run.spec and found.folder == run.folder and (found.logits == run.logits).all()
    logits = run.folder / "logits.npy"
    logits.write_bytes(logits.read_bytes()[:-40] + bytes(40))
    with pytest.raises(StoreError, match="logits.npy does not hold what was written"):
        module.stored(run.spec.model_dump_json())


@pytest.mark.parametrize(("settings", "said"), [
    (RunSpec(corpus="nowhere").model_dump_json(exclude_defaults=True), "nowhere.*run the chapter"),
    ("{}", "cannot be read"),
    ("not json", "cannot be read")])  # fmt: skip
def test_a_run_that_is_not_there_is_named(settings, said):
    with pytest.raises(StoreError, match=said):
        module.stored(settings)


# ---------------------------------------------------------------- cross-scores


@pytest.fixture
def fold(corpus):
    return folds(corpus.labels, count=3, seed=0)


def test_each_is_scored_by_the_model_that_trained_on_the_others(make_spec, corpus, fold, monkeypatch):
    spec = make_spec(epochs=2, capture="train")
    by_hand = [fit(spec.model_copy(update={"subset": f"by hand {at}"}), corpus[fold != at]) for at in range(3)]
    monkeypatch.setattr("nli_lib.learn.fit.encode", None)  # tokenised once: a loop that did it itself would fail
    logits = cross_score(spec, corpus, fold, jobs=1)
    assert logits.shape == (50, 3) and logits.dtype == np.float32
    for at, run in enumerate(by_hand):
        assert np.array_equal(logits[fold == at], predict(run, corpus[fold == at]))
    assert np.allclose(cross_predict(spec, fold, corpus, np.arange(50)), logits)
    of, other = np.array([4, 4, 9, 30]), corpus[np.array([1, 2, 3, 8])]  # texts that belong to four of the pairs
    found = cross_predict(spec, fold, other, of)
    for at in np.unique(fold[of]):
        here = fold[of] == at
        assert np.array_equal(found[here], predict(by_hand[at], other[here]))


def test_fresh_models_are_blind_to_the_labels_they_score(make_spec, corpus, fold):
    before = cross_score(make_spec(epochs=1), corpus, fold)
    labels = np.where(fold == 1, (corpus.labels + 1) % 3, corpus.labels)
    changed = replace(corpus, table=corpus.table.assign(label=labels))
    after = cross_score(make_spec(epochs=1, corpus="changed"), changed, fold)
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
    assert second.model == f"run:{first.id}" and first.subset != second.subset
    assert next(fold_specs(make_spec(), 2 - fold, [1])).id != first.id  # other folds, another run


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
    assert len(seen) == 1 and not set(seen) & set(trained)


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


@pytest.mark.drill
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


@pytest.mark.parametrize(("fold", "said"), [
    (np.zeros(49, int), "shape"),
    (np.zeros(50, int), r"holds \[0\]: .* two folds or more"),
    (np.arange(50) % 2 * 2, r"holds \[0, 2\]: .* none of them empty"),
    (np.arange(50) % 2 - 1, "from 0 up"),
    (np.full(50, 0.5), "from 0 up")])  # fmt: skip
def test_folds_that_cannot_be_scored_are_one_error(make_spec, corpus, fold, said):
    with pytest.raises(ValueError, match=said):
        cross_score(make_spec(), corpus, fold)


def test_for_other_texts_nothing_is_trained_and_each_names_its_pair(make_spec, corpus):
    with pytest.raises(StoreError, match="is not in"):
        cross_predict(make_spec(epochs=1), np.arange(50) % 2, corpus, np.arange(50))
    assert not list(paths.RUNS.glob("*"))
    with pytest.raises(ValueError, match="3 pairs for 50 texts"):
        cross_predict(make_spec(), np.arange(50) % 2, corpus, [0, 1, 2])


# ---------------------------------------------------------------- watched and not learnt from


def test_held_out_pairs_move_no_weight(make_spec, corpus):
    """Other labels of the held-out pairs leave every weight as it is."""
    held_out = np.arange(len(corpus)) % 5 == 0
    other = replace(corpus, table=corpus.table.assign(label=np.where(held_out, 2 - corpus.labels, corpus.labels)))
    objective, weights = module.ClassifyOthers(held_out), []
    for each in (corpus, other):
        loop = Loop(make_spec(objective=objective.name), each, objective=objective)
        go_through(loop)
        weights.append([parameter.detach().clone() for parameter in loop.finish().parameters()])
    assert all(torch.equal(one, two) for one, two in zip(*weights, strict=True))


def test_the_loss_is_the_mean_of_those_that_are_learnt_from(make_spec, corpus):
    objective = module.ClassifyOthers(np.arange(len(corpus)) >= 3)
    loop = Loop(make_spec(objective=objective.name), corpus, objective=objective)
    loop.model.eval()
    loss, logits = loop.forward(np.arange(6))
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(logits[:3], torch.tensor(corpus.labels[:3])))
    assert loop.forward(np.arange(3, 6))[0].item() == 0
    other = module.ClassifyOthers([True, False])
    with pytest.raises(ValueError, match="2 entries for"):
        Loop(make_spec(objective=other.name), corpus, objective=other)


def test_they_are_watched_after_every_epoch(make_spec, corpus):
    held_out = np.arange(len(corpus)) == 0
    objective = module.ClassifyOthers(held_out)
    run = fit(make_spec(epochs=2, objective=objective.name), corpus, objective=objective)
    assert np.isfinite(run.logits[:, held_out]).all()
    assert np.isnan(run.logits[:, ~held_out]).all()  # they are learnt from, and nobody asks
    assert run.logits[-1, held_out] == pytest.approx(predict(run, corpus[held_out]), abs=1e-4)
