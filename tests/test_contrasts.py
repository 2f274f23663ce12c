"""Tests between labels within levels: their control for size, and the one that speaks most against "no difference".

Alone: pytest tests/test_contrasts.py"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from nli_lib.errors import UserError
from nli_lib.levels import COLUMNS, OF_STRONGEST, effect_interval, label_tests, matched_tests, strongest
from nli_lib.stats import mann_whitney

BOTH = ["tied", "free"]


def planted(n=600, seed=0):
    """One measure that follows the label everywhere, one that follows nothing; levels of 400, 100 and 100 pairs."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, n)
    levels = np.repeat([0, 1, 2], [n - 200, 100, 100])
    measures = {"tied": labels + random.normal(0, 1.7, n), "free": random.normal(size=n)}
    return pd.DataFrame(measures).assign(gold=labels, level=levels)


def test_by_hand():
    # entailment {3, 4} against neutral {1, 2}: every one is larger, U = 4, effect 1
    tests = label_tests(pd.DataFrame({"m": [3.0, 4.0, 1.0, 2.0], "gold": [0, 0, 1, 1], "level": 0}), ["m"])
    assert tuple(tests.columns) == COLUMNS
    (row,) = tests.to_dict("records")
    assert (row["pair"], row["level"], row["n_a"], row["n_b"]) == ("entailment - neutral", "easy", 2, 2)
    assert (row["u"], row["effect"]) == (4.0, 1.0)
    assert row["p_bonferroni"] == pytest.approx(min(1, 9 * row["p"]))
    assert row["stars"] == "ns"


def test_equal_to_one_test_at_a_time():
    table = planted()
    tests = label_tests(table, BOTH).set_index(["measure", "level", "pair"])
    assert len(tests) == 2 * 3 * 3
    a, b = (table.loc[(table["level"] == 2) & (table["gold"] == label), "tied"] for label in (0, 2))
    expected = mannwhitneyu(a, b, alternative="two-sided", method="asymptotic", use_continuity=True)
    assert tests.loc[("tied", "hard", "entailment - contradiction"), "p"] == pytest.approx(expected.pvalue)


def test_order_of_the_examples_does_not_matter():
    table = planted()
    assert label_tests(table.sample(frac=1, random_state=3), BOTH).equals(label_tests(table, BOTH))


def test_a_small_part_finds_less_of_the_same_difference():
    table = planted()
    whole = label_tests(table, BOTH).set_index(["measure", "level"])
    assert (whole.loc[("tied", "easy"), "p_bonferroni"] <= 0.05).all()
    parts = matched_tests(table, ["tied"], table["level"] == 0, parts=60)
    found = (parts["p_bonferroni"] <= 0.05).mean()
    assert 0.05 < found < 0.9
    assert parts["effect"].abs().mean() == pytest.approx(whole.loc[("tied", "easy"), "effect"].abs().mean(), abs=0.1)


def test_parts_have_the_labels_of_the_level_and_depend_on_the_seed_alone():
    table = planted()
    easy = table["level"] == 0
    first = matched_tests(table, BOTH, easy, parts=5, seed=1)
    assert first.equals(matched_tests(table, BOTH, easy, parts=5, seed=1))
    assert not first.equals(matched_tests(table, BOTH, easy, parts=5, seed=2))
    assert len(first) == 5 * 2 * 3
    hard = table.loc[table["level"] == 2, "gold"].value_counts()
    assert first.loc[first["pair"] == "entailment - neutral", ["n_a", "n_b"]].eq([hard[0], hard[1]]).all(axis=None)


def test_a_label_that_is_rare_in_the_pool_gives_all_it_has():
    table = pd.DataFrame({"m": np.arange(8.0), "gold": [0, 1, 2, 0, 1, 2, 0, 1], "level": [0, 0, 0, 2, 2, 2, 2, 2]})
    tests = matched_tests(table, ["m"], table["level"] == 0, parts=1)
    assert tests[["n_a", "n_b"]].to_numpy().tolist() == [[1, 1]] * 3


def test_a_level_without_a_label_has_no_test_for_it():
    tests = label_tests(pd.DataFrame({"m": np.arange(4.0), "gold": [0, 0, 1, 1], "level": [0, 0, 0, 2]}), ["m"])
    assert tests[["level", "pair"]].to_numpy().tolist() == [["easy", "entailment - neutral"]]


def test_an_effect_by_hand():
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
