"""Predictions and embeddings. Alone: pytest tests/learn/test_predict.py"""

import contextlib

import numpy as np
import pytest
from tiny_words import make_corpus
from transformers import AutoConfig, AutoTokenizer, LlamaConfig, LlamaModel

from nli_lib.corpora.corpus import CorpusError
from nli_lib.learn import predict as module
from nli_lib.learn.fit import fit
from nli_lib.learn.model import is_decoder, load_classifier, load_tokenizer
from nli_lib.learn.predict import embed, predict, predict_epochs
from nli_lib.store import StoreError


@pytest.fixture
def run(runs, make_spec, corpus):
    return fit(make_spec(epochs=1), corpus)


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


def test_batches_do_not_change_a_prediction_and_it_is_kept(run, monkeypatch):
    other = make_corpus(20, seed=9)
    first = predict(run, other, batch_size=7)
    assert first.shape == (20, 3)
    assert first.dtype == np.float32
    monkeypatch.setattr(module, "_pass", None)
    assert np.array_equal(predict(run, other), first)


def test_a_ready_model_is_mapped_by_name(encoder, tmp_path, corpus, monkeypatch):
    monkeypatch.setattr(module, "takes_bf16", lambda *_: False)
    logits = {}
    for order in (("contradiction", "entailment", "neutral"), ("entailment", "neutral", "contradiction")):
        folder = tmp_path / order[0]
        load_classifier(encoder, order, 3)[0].save_pretrained(folder)
        load_tokenizer(encoder).save_pretrained(folder)
        logits[order[0]] = predict(str(folder), corpus)
    # The heads are equal; under the alphabetical names column 1 of the model is entailment, our column 0.
    alphabetical, ours = logits["contradiction"], logits["entailment"]
    np.testing.assert_allclose(alphabetical, ours[:, [1, 2, 0]], rtol=1e-5, atol=1e-6)


def test_a_model_with_numbered_labels_is_refused(encoder, tmp_path, corpus):
    load_classifier(encoder, ("LABEL_0", "LABEL_1", "LABEL_2"), 3)[0].save_pretrained(tmp_path)
    load_tokenizer(encoder).save_pretrained(tmp_path)
    with pytest.raises(CorpusError, match="LABEL_0"):
        predict(str(tmp_path), corpus)


def test_embeddings(run, encoder, corpus, monkeypatch):
    monkeypatch.setattr(module, "takes_bf16", lambda *_: False)
    of_run = embed(run, corpus)
    assert of_run.shape == (50, 32)
    of_encoder = embed(encoder, corpus)
    assert not np.allclose(of_run, of_encoder)
    alone = embed(encoder, corpus, batch_size=1)
    np.testing.assert_allclose(of_encoder, alone, rtol=1e-4, atol=1e-5)


def test_a_decoder_is_read_at_its_last_token(encoder, tmp_path, corpus, monkeypatch):
    monkeypatch.setattr(module, "takes_bf16", lambda *_: False)
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    tokenizer.save_pretrained(tmp_path)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    LlamaModel(LlamaConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(tmp_path)
    vectors = embed(str(tmp_path), corpus)
    np.testing.assert_allclose(vectors, embed(str(tmp_path), corpus, batch_size=1), rtol=1e-4, atol=1e-5)
    distinct = len(corpus.table.drop_duplicates(["premise", "hypothesis"]))
    assert len(np.unique(vectors.round(3), axis=0)) == distinct  # the first token, [CLS], is the same everywhere


@pytest.mark.parametrize(
    ("kind", "forward"),
    [
        ("llama", True),
        ("gpt2", True),
        ("bert", False),
        ("roberta", False),
        ("deberta-v2", False),
        ("modernbert", False),
    ],
)
def test_which_models_read_from_left_to_right(kind, forward):
    assert is_decoder(AutoConfig.for_model(kind)) == forward


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_model_of_every_epoch_predicts_what_was_recorded_after_it(runs, make_spec, corpus, precision):
    run = fit(make_spec(models="all", precision=precision), corpus)
    again = predict_epochs(run, corpus)
    assert again.shape == run.logits.shape == (3, 50, 3)
    np.testing.assert_allclose(again, run.logits, rtol=1e-3, atol=1e-3)
    assert not np.allclose(again[0], again[1]) and not np.allclose(again[1], again[2])
    assert np.array_equal(again[-1], predict(run, corpus))
    assert [path.name for path in run.models] == ["epoch-0", "epoch-1", "model"]


def test_words_that_were_not_trained_on_are_those_of_their_epoch(runs, make_spec, corpus):
    """What a model knows of a word that no example has is decayed as far as its own epoch had come."""
    run = fit(make_spec(models="all", epochs=2, weight_decay=0.5, learning_rate=0.1), corpus[:8])
    tables = [load_classifier(str(path), corpus.classes, 0)[0].get_input_embeddings().weight for path in run.models]
    first, last = (float(table[-1].detach().norm()) for table in tables)  # an entry that is in no text
    assert 0 < last < first * 0.95


def test_keeping_every_model_changes_no_bit_of_the_training(runs, make_spec, corpus):
    one, all_ = (fit(make_spec(models=kept), corpus) for kept in ("last", "all"))
    assert one.folder != all_.folder
    assert np.array_equal(one.logits, all_.logits)


def test_a_run_that_kept_one_model_and_damaged_ones_are_named(runs, make_spec, corpus):
    with pytest.raises(ValueError, match="models='all'"):
        predict_epochs(fit(make_spec(epochs=1), corpus), corpus)
    run = fit(make_spec(epochs=2, models="all"), corpus)
    (weights,) = run.models[0].glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-8] + b"\0" * 8)
    with pytest.raises(StoreError, match=r"epoch-0/model.safetensors does not hold what was written"):
        predict_epochs(run, corpus)
    with pytest.raises(ValueError, match="early stopping"):
        fit(make_spec(models="all", patience=1), corpus, validation=corpus)
