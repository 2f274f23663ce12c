"""Alone: pytest tests/measure/test_indicators.py"""

import numpy as np
import pytest

from nli_lib.measure.artifacts import features, z_statistics
from nli_lib.measure.indicators import indicators, join, prediction


def test_a_column_of_ones_own_is_counted_like_any_other():
    own = indicators({"short": [True, False, True], "odd": [False, False, False]})
    assert own.names.tolist() == ["short", "odd"]
    assert own.matrix.toarray().tolist() == [[1, 0], [0, 0], [1, 0]]
    joined = join(features(["a"] * 3, ["b", "c", "b"], shape=False), own)
    counted = z_statistics(joined.matrix, [0, 1, 0], n_classes=3)
    place = joined.names.tolist().index("short")
    assert counted.counts[place].tolist() == [2, 0, 0] and counted.z[place, 0] == pytest.approx(2.0)


def test_predictions_bear_the_papers_names():
    found = prediction([2, 0, 2], n_classes=3)
    assert found.names.tolist() == ["hypo-only-pred=0", "hypo-only-pred=1", "hypo-only-pred=2"]
    assert found.matrix.toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]


def test_wrong_columns_are_named():
    with pytest.raises(ValueError, match="at least one"):
        indicators({})
    with pytest.raises(ValueError, match=r"'b': \('bool', \(3,\)\)"):
        indicators({"a": [True, False], "b": [True, False, True]})
    with pytest.raises(ValueError, match="int64"):
        indicators({"a": [1, 0]})
    with pytest.raises(ValueError, match="'a' comes twice"):
        join(indicators({"a": [True]}), indicators({"a": [False]}))
    with pytest.raises(ValueError, match=r"\[1, 2\] rows"):
        join(indicators({"a": [True]}), indicators({"b": np.ones(2, bool)}))
