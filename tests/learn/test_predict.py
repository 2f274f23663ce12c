"""Predictions and embeddings. Alone: pytest tests/learn/test_predict.py"""

import numpy as np
import pytest
from tiny_words import make_corpus

from nli_lib.corpora.labels import LabelError
from nli_lib.learn import predict as module
from nli_lib.learn.fit import fit
from nli_lib.learn.model import load_classifier, load_tokenizer
from nli_lib.learn.predict import embed, predict


@pytest.fixture
def run(runs, make_spec, corpus):
    return fit(make_spec(epochs=1), corpus)


def test_the_final_epoch_is_predicted_again(run, corpus):
    np.testing.assert_allclose(predict(run, corpus), run.logits[-1], rtol=1e-4, atol=1e-5)


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
    with pytest.raises(LabelError, match="LABEL_0"):
        predict(str(tmp_path), corpus)


def test_embeddings(run, encoder, corpus, monkeypatch):
    monkeypatch.setattr(module, "takes_bf16", lambda *_: False)
    of_run = embed(run, corpus)
    assert of_run.shape == (50, 32)
    of_encoder = embed(encoder, corpus)
    assert not np.allclose(of_run, of_encoder)
    alone = embed(encoder, corpus, batch_size=1)
    np.testing.assert_allclose(of_encoder, alone, rtol=1e-4, atol=1e-5)
