"""Vectors of single texts. Run alone: pytest tests/learn/test_sentences.py"""

import numpy as np

from nli_lib.learn.sentences import sentence_vectors

TEXTS = ["A dog runs.", "It rains on the quiet hills tonight, and nobody minds.", "A dog runs.", "A hound is running."]


def test_the_mean_of_the_tokens_whatever_stands_beside_it():
    found = sentence_vectors(TEXTS, batch_size=2)
    assert found.shape[0] == 4 and found.dtype == np.float32
    assert (found[0] == found[2]).all()
    alone = np.concatenate([sentence_vectors([text]) for text in TEXTS])
    assert np.abs(found - alone).max() < 1e-5
    assert np.linalg.norm(found[0] - found[3]) < np.linalg.norm(found[0] - found[1])


def test_no_text():
    assert len(sentence_vectors([])) == 0
