"""Alone: pytest tests/measure/test_shards.py"""

import numpy as np
import pytest

from nli_lib.measure.features import features, features_in_shards

WORDS = np.array(["a", "man", "dog", "sleeps", "runs", "not", "nobody", "the", "red", "tree,", "There's"])


@pytest.fixture(scope="module")
def texts():
    random = np.random.default_rng(0)

    def some():
        return [" ".join(random.choice(WORDS, random.integers(0, 9))) for _ in range(57)]

    return some(), some()


def by_name(found):
    return [set(found.names[row]) for row in np.split(found.matrix.indices, found.matrix.indptr[1:-1])]


@pytest.mark.parametrize("size", [1, 10, 57, 1000])
def test_equals_the_features_made_at_once(texts, size):
    found = features_in_shards(*texts, size=size)
    assert by_name(found) == by_name(features(*texts))
    assert found.matrix.has_canonical_format and found.matrix.data.all()
    assert len(set(found.names)) == found.matrix.shape[1]


def test_edges():
    assert features_in_shards([], []).matrix.shape[0] == 0
    assert by_name(features_in_shards([""], [""])) == by_name(features([""], [""]))
    with pytest.raises(ValueError, match="1 premises and 2 hypotheses"):
        features_in_shards(["a"], ["b", "c"])
