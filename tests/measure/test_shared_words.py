"""Words in common. Run alone: pytest tests/measure/test_shared_words.py"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nli_lib.measure.similarity import shared_words

TEXTS = ["A dog runs.", "a dog, a dog sleeps", "", "It rains!", "A DOG runs"]


def test_by_hand():
    # {a, dog, runs} and {a, dog, sleeps}: two of four
    assert shared_words(TEXTS, [0, 0, 0, 0, 2, 2], [1, 4, 3, 2, 2, 0]).tolist() == [0.5, 1, 0, 0, 0, 0]


def test_positions_of_any_shape_that_fits():
    found = shared_words(TEXTS, np.array([[0], [1]]), np.array([[1, 4, 3], [0, 1, 2]]))
    assert found.tolist() == [[0.5, 1, 0], [0.5, 1, 0]]


def slow(one, other):
    one, other = set(one.split()), set(other.split())
    return len(one & other) / max(len(one | other), 1)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("abc ", max_size=12), min_size=1, max_size=6), st.integers(0, 99), st.integers(0, 99))
def test_equal_to_the_definition_and_symmetric(texts, one, other):
    one, other = one % len(texts), other % len(texts)
    found = float(shared_words(texts, one, other))
    assert found == slow(texts[one], texts[other]) == float(shared_words(texts, other, one))
    assert 0 <= found <= 1
