"""Tests between labels within levels, and their control for size. Alone: pytest tests/report/test_contrasts.py"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from nli_lib.levels import COLUMNS, label_tests, matched_tests

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
