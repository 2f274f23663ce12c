"""Tests between labels within levels: their control for size, and the one that speaks most against "no difference".

Chapter 52's cells. Alone: pytest tests/test_contrasts.py"""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from cells import functions
from scipy.stats import mannwhitneyu

from nli_lib.errors import UserError

CELLS = functions("52_spurious_measures")
CELLS.strongest.__globals__["effect_interval"] = partial(CELLS.effect_interval, resamples=1000)
BOTH = ["tied", "free"]


def planted(n=600, seed=0):
    """One measure that follows the label everywhere, one that follows nothing; levels of 400, 100 and 100 pairs."""
    random = np.random.default_rng(seed)
    labels, levels = random.integers(0, 3, n), np.repeat([0, 1, 2], [n - 200, 100, 100])
    measures = {"tied": labels + random.normal(0, 1.7, n), "free": random.normal(size=n)}
    return pd.DataFrame(measures).assign(gold=labels, level=levels)


def test_by_hand():
    # entailment {3, 4} against neutral {1, 2}: every one is larger, U = 4, effect 1
    tests = CELLS.label_tests(pd.DataFrame({"m": [3.0, 4.0, 1.0, 2.0], "gold": [0, 0, 1, 1], "level": 0}), ["m"])
    (row,) = tests.to_dict("records")
    wanted = {"measure": "m", "level": "easy", "pair": "entailment - neutral", "n_a": 2, "n_b": 2, "u": 4.0}
    wanted |= {"p": row["p"], "p_bonferroni": pytest.approx(min(1, 9 * row["p"])), "effect": 1.0, "stars": "ns"}
    assert row == wanted and list(row) == list(wanted)


def test_equal_to_one_test_at_a_time_in_any_order_of_the_examples():
    table = planted()
    tests = CELLS.label_tests(table, BOTH)
    a, b = (table.loc[(table["level"] == 2) & (table["gold"] == label), "tied"] for label in (0, 2))
    expected = mannwhitneyu(a, b, alternative="two-sided", method="asymptotic", use_continuity=True)
    found = tests.set_index(["measure", "level", "pair"]).loc[("tied", "hard", "entailment - contradiction"), "p"]
    assert found == pytest.approx(expected.pvalue) and len(tests) == 2 * 3 * 3
    assert CELLS.label_tests(table.sample(frac=1, random_state=3), BOTH).equals(tests)


def test_a_small_part_finds_less_of_the_same_difference():
    table = planted()
    whole = CELLS.label_tests(table, BOTH).set_index(["measure", "level"])
    assert (whole.loc[("tied", "easy"), "p_bonferroni"] <= 0.05).all()
    parts = CELLS.matched_tests(table, ["tied"], table["level"] == 0, 60, 0)
    assert 0.05 < (parts["p_bonferroni"] <= 0.05).mean() < 0.9
    assert parts["effect"].abs().mean() == pytest.approx(whole.loc[("tied", "easy"), "effect"].abs().mean(), abs=0.1)


def test_parts_have_the_labels_of_the_level_and_depend_on_the_seed_alone():
    table = planted()
    easy = table["level"] == 0
    first, again, other = (CELLS.matched_tests(table, BOTH, easy, 5, seed) for seed in (1, 1, 2))
    assert first.equals(again) and not first.equals(other) and len(first) == 5 * 2 * 3
    hard = table.loc[table["level"] == 2, "gold"].value_counts()
    assert first.loc[first["pair"] == "entailment - neutral", ["n_a", "n_b"]].eq([hard[0], hard[1]]).all(axis=None)
    # a label that is rare in the pool gives all it has
    table = pd.DataFrame({"m": np.arange(8.0), "gold": [0, 1, 2, 0, 1, 2, 0, 1], "level": [0, 0, 0, 2, 2, 2, 2, 2]})
    tests = CELLS.matched_tests(table, ["m"], table["level"] == 0, 1, 0)
    assert tests[["n_a", "n_b"]].to_numpy().tolist() == [[1, 1]] * 3


def test_a_level_without_a_label_has_no_test_for_it():
    tests = CELLS.label_tests(pd.DataFrame({"m": np.arange(4.0), "gold": [0, 0, 1, 1], "level": [0, 0, 0, 2]}), ["m"])
    assert tests[["level", "pair"]].to_numpy().tolist() == [["easy", "entailment - neutral"]]


def table(tied, seed=0, training=0, n=900):
    random = np.random.default_rng(seed)
    gold = random.integers(0, 3, n)
    measures = {"tied": tied * (gold == 2) + random.normal(size=n), "free": random.normal(size=n)}
    return pd.DataFrame(measures).assign(gold=gold, level=random.integers(0, 3, n), corpus="x", training=training)


def level_tests(pairs):
    by_training = pairs.groupby(["corpus", "training"])
    return pd.concat(CELLS.label_tests(part, BOTH).assign(corpus=c, training=t) for (c, t), part in by_training)


def test_the_planted_difference_is_found_in_each_level():
    pairs = table(tied=1.0)
    tests = level_tests(pairs)
    found = CELLS.strongest(tests, pairs)
    assert found["level"].tolist() == ["easy", "ambiguous", "hard"] and (found["tests"] == 6).all()
    assert (found["measure"] == "tied").all() and found["pair"].str.endswith("contradiction").all()
    assert (found["high"] < -0.05).all()  # entailment or neutral has less than contradiction
    assert found.set_index("level")["p"].to_dict() == tests.groupby("level", sort=False)["p"].min().to_dict()


def test_where_nothing_differs_the_simultaneous_interval_seldom_leaves_zero_out():
    """Picked as the strongest of six, it would leave zero out in every fourth level at 95%."""
    excluded = []
    for seed in range(20):
        pairs = table(tied=0.0, seed=seed)
        found = CELLS.strongest(level_tests(pairs), pairs)
        excluded += ((found["low"] > 0) | (found["high"] < 0)).tolist()
    assert len(excluded) == 60 and np.mean(excluded) <= 0.1


def test_levels_that_are_labels_are_refused_and_named():
    pairs = table(tied=1.0).assign(level=lambda part: part["gold"])
    with pytest.raises(UserError, match="^x: no pairs of two labels in the easy and ambiguous and hard level"):
        CELLS.check_levels(level_tests(pairs), ["x"])


def test_over_trainings_the_median_picks_and_the_spread_is_added():
    pairs = pd.concat([table(tied, training=training) for training, tied in enumerate((1.0, 0.4, 0.7))])
    tests, one = level_tests(pairs), pairs[pairs["training"] == 0]
    found = CELLS.strongest(tests, pairs).set_index("level").loc["hard"]
    picked = tests.set_index(["level", "measure", "pair"]).loc[("hard", found["measure"], found["pair"])]
    assert len(picked) == found["trainings"] == 3
    assert found["p"] == picked["p"].median() and found["effect"] == pytest.approx(picked["effect"].mean())
    alone = CELLS.strongest(tests[tests["training"] == 0], one).set_index("level").loc["hard"]
    assert found["high"] - found["low"] > alone["high"] - alone["low"]
