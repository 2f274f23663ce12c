"""The fast cross-fitting is the slow one, bit for bit. Run alone: pytest tests/measure/test_used_columns.py"""

import numpy as np
import pytest

from nli_lib.measure import partial_input, used_columns

WORDS = [
    "a",
    "man",
    "woman",
    "dog",
    "sleeps",
    "runs",
    "outside",
    "nobody",
    "is",
    "not",
    "here",
    "for",
    "the",
    "first",
    "time",
]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("grouped", [True, False])
def test_the_same_bits(classes, grouped):
    random = np.random.default_rng(classes)
    texts = [" ".join(random.choice(WORDS, size=5)) for _ in range(60)]
    labels = np.arange(60) % classes
    options = {"n_classes": classes, "folds": 4, "groups": np.arange(60) // 3 if grouped else None, "seed": 1}
    slow = partial_input.cross_fitted(texts, labels, **options)
    assert np.array_equal(used_columns.cross_fitted(texts, labels, **options), slow)
