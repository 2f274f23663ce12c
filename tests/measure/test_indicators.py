"""Alone: pytest tests/measure/test_indicators.py"""

import pytest

from nli_lib.measure.artifacts import features, z_statistics
from nli_lib.measure.indicators import join, prediction


def test_a_prediction_is_counted_like_any_other_feature():
    joined = join(features(["a"] * 3, ["b", "c", "b"], shape=False), prediction([0, 1, 0], n_classes=3))
    counted = z_statistics(joined.matrix, [0, 1, 0], n_classes=3)
    place = joined.names.tolist().index("hypo-only-pred=0")
    assert counted.counts[place].tolist() == [2, 0, 0] and counted.z[place, 0] == pytest.approx(2.0)


def test_predictions_bear_the_papers_names():
    found = prediction([2, 0, 2], n_classes=3)
    assert found.names.tolist() == ["hypo-only-pred=0", "hypo-only-pred=1", "hypo-only-pred=2"]
    assert found.matrix.toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]


def test_tables_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="dimensions"):
        join(prediction([0], n_classes=2), prediction([1, 1], n_classes=2))
