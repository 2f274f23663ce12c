import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nli_lib.measure.similarity import time_under_way

MIDNIGHT = np.datetime64("2026-01-01T00:00:00")


def at(*seconds):
    return MIDNIGHT + np.array(seconds, dtype="timedelta64[s]")


def test_by_hand():
    """Two requests that overlap take 6 seconds together; a pause that does not count; then one alone for 4."""
    assert time_under_way(at(0, 2, 100), np.array([6.0, 4.0, 4.0])) == 10


def test_one_after_the_other_is_the_sum():
    assert time_under_way(at(0, 3, 6), np.array([3.0, 3.0, 3.0])) == 9


def test_a_short_request_within_a_long_one():
    assert time_under_way(at(0, 1, 2), np.array([10.0, 1.0, 1.0])) == 10


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=30), st.randoms())
def test_against_the_definition_in_any_order(requests, random):
    """Second by second: in how many of them is a request under way."""
    wanted = sum(any(start <= second < start + took for start, took in requests) for second in range(90))
    random.shuffle(requests)
    started, seconds = zip(*requests, strict=True)
    assert time_under_way(at(*started), np.array(seconds, dtype=float)) == pytest.approx(wanted)


@pytest.mark.parametrize("seconds", [[], [0.0]])
def test_nothing_under_way(seconds):
    assert time_under_way(at(*range(len(seconds))), np.array(seconds)) == 0
