"""The test that speaks most against "nowhere a difference". Alone: pytest tests/report/test_strongest.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.errors import UserError
from nli_lib.levels import OF_STRONGEST, effect_interval, label_tests, strongest
from nli_lib.stats import mann_whitney


def test_by_hand():
    """{1, 3} over {2}: one of two is larger, effect 0; a resample has both 1, both 3 or one of each."""
    assert effect_interval([1, 3], [2]) == (0.0, -1.0, 1.0, 3, 1, "pairs")
    assert effect_interval([2, 2], [2, 2])[:3] == (0, 0, 0)
    assert effect_interval([5, 6], [1, 2])[:3] == (1, 1, 1)


def test_equal_to_resampling_the_pairs():
    random = np.random.default_rng(0)
    a, b = random.integers(0, 4, 60).astype(float), random.integers(0, 5, 80).astype(float)
    found = effect_interval(a, b)
    slow = [mann_whitney(random.choice(a, 60), random.choice(b, 80)).effect for _ in range(2000)]
    assert found.value == pytest.approx(mann_whitney(a, b).effect)
    np.testing.assert_allclose([found.low, found.high], np.quantile(slow, [0.025, 0.975]), atol=0.025)
    wide = effect_interval(a, b, family=15)
    np.testing.assert_allclose([wide.low, wide.high], np.quantile(slow, [1 / 600, 1 - 1 / 600]), atol=0.06)
    assert wide.low < found.low and wide.high > found.high


@pytest.mark.parametrize(("a", "b"), [([], [1]), ([1], []), ([np.nan], [1])])
def test_an_effect_needs_values(a, b):
    with pytest.raises(ValueError, match="on both sides"):
        effect_interval(a, b)


def table(tied, seed=0, n=900):
    random = np.random.default_rng(seed)
    gold = random.integers(0, 3, n)
    measures = {"tied": tied * (gold == 2) + random.normal(size=n), "free": random.normal(size=n)}
    return pd.DataFrame(measures).assign(gold=gold, level=random.integers(0, 3, n), corpus="x", training=0)


def level_tests(pairs):
    by_training = pairs.groupby(["corpus", "training"])
    return pd.concat(label_tests(part, ["tied", "free"]).assign(corpus=c, training=t) for (c, t), part in by_training)


def test_the_planted_difference_is_found_in_each_level():
    pairs = table(tied=1.0)
    tests = level_tests(pairs)
    found = strongest(tests, pairs, resamples=1000)
    assert tuple(found.columns) == ("corpus", "level", *OF_STRONGEST)
    assert found["level"].tolist() == ["easy", "ambiguous", "hard"] and (found["tests"] == 6).all()
    assert (found["measure"] == "tied").all() and found["pair"].str.endswith("contradiction").all()
    assert (found["high"] < -0.05).all()  # entailment or neutral has less than contradiction
    least = tests.groupby("level", sort=False)["p"].min()
    assert found.set_index("level")["p"].to_dict() == least.to_dict()


def test_where_nothing_differs_the_simultaneous_interval_seldom_leaves_zero_out():
    """Picked as the strongest of six, it would leave zero out in every fourth level at 95%."""
    excluded = []
    for seed in range(20):
        pairs = table(tied=0.0, seed=seed)
        found = strongest(level_tests(pairs), pairs, resamples=1000)
        excluded += ((found["low"] > 0) | (found["high"] < 0)).tolist()
    assert len(excluded) == 60 and np.mean(excluded) <= 0.1


def test_levels_that_are_labels_are_refused_and_named():
    pairs = table(tied=1.0).assign(level=lambda part: part["gold"])
    with pytest.raises(UserError, match="^x: no pairs of two labels in the easy and ambiguous and hard level"):
        strongest(level_tests(pairs), pairs)


def test_over_trainings_the_median_picks_and_the_spread_is_added():
    one, other = table(tied=1.0), table(tied=0.4).assign(training=1)
    pairs = pd.concat([one, other, table(tied=0.7).assign(training=2)])
    tests = level_tests(pairs)
    found = strongest(tests, pairs, resamples=500).set_index("level").loc["hard"]
    picked = tests[
        (tests["level"] == "hard") & (tests["measure"] == found["measure"]) & (tests["pair"] == found["pair"])
    ]
    assert len(picked) == found["trainings"] == 3
    assert found["p"] == picked["p"].median() and found["effect"] == pytest.approx(picked["effect"].mean())
    alone = strongest(tests[tests["training"] == 0], one, resamples=500).set_index("level").loc["hard"]
    assert found["high"] - found["low"] > alone["high"] - alone["low"]
