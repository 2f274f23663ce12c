"""cleanlab beside the gap. Alone: pytest tests/measure/test_label_issues.py"""

import sys

import numpy as np
import pytest

from nli_lib.measure.consensus import named_by_cleanlab, self_confidence


@pytest.fixture
def flipped():
    """Logits that know the truth, and labels of which a tenth was flipped."""
    generator = np.random.default_rng(0)
    true = generator.integers(0, 3, 600)
    wrong = generator.random(600) < 0.1
    labels = np.where(wrong, (true + 1) % 3, true)
    return np.eye(3)[true] * 4 + generator.normal(0, 1, (600, 3)), labels, wrong


def test_it_finds_flips_by_a_model_that_knows(flipped):
    pytest.importorskip("cleanlab")
    logits, labels, wrong = flipped
    found, reasons = named_by_cleanlab(logits, labels)
    assert found.dtype == bool and reasons == []
    assert found[wrong].mean() > 0.9
    assert wrong[found].mean() > 0.8


def test_self_confidence_is_the_number_that_cleanlab_ranks_by(flipped):
    rank = pytest.importorskip("cleanlab.rank")
    logits, labels, _ = flipped
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert self_confidence(logits, labels) == pytest.approx(rank.get_label_quality_scores(labels, probabilities))


def test_a_class_without_examples_is_a_reason(flipped):
    pytest.importorskip("cleanlab")
    logits, labels, _ = flipped
    named, reasons = named_by_cleanlab(logits[labels < 2], labels[labels < 2])
    assert not named.any() and "class 2 labels no example" in reasons[0]


def test_without_cleanlab_it_says_what_to_install(flipped, monkeypatch):
    monkeypatch.setitem(sys.modules, "cleanlab.filter", None)
    named, reasons = named_by_cleanlab(*flipped[:2])
    assert not named.any() and "pip install" in reasons[0]
