"""Alone: pytest tests/learn/test_sentences.py"""

import numpy as np
import pytest

from nli_lib.learn.encoders import resolve_model
from nli_lib.learn.sentences import sentence_vectors

TEXTS = ["A man plays a guitar.", "Nobody sleeps.", "A man plays a guitar.", "x", ""]


def test_the_vectors_are_those_of_sentence_transformers():
    try:
        folder = resolve_model("minilm")
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    library = pytest.importorskip("sentence_transformers")
    wanted = library.SentenceTransformer(folder, device="cpu").encode(TEXTS, normalize_embeddings=True)
    found = sentence_vectors(TEXTS, batch_size=2)
    assert np.abs(found - wanted).max() < 1e-5
    assert (found[0] == found[2]).all() and np.linalg.norm(found, axis=1) == pytest.approx(np.ones(5), abs=1e-5)


def test_no_texts_are_an_error():
    with pytest.raises(ValueError, match="no texts"):
        sentence_vectors([])
