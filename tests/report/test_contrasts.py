"""Tests between labels within levels, and their control for size. Alone: pytest tests/report/test_contrasts.py"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from nli_lib.levels import (
    ALL_TESTS,
    COLUMNS,
    label_effects,
    label_tests,
    level_tests,
    matched_tests,
    over_trainings_of_tests,
    significant_shares,
    size_control,
    smaller_share,
    star_notes,
)

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


def two_corpora():
    """The planted measures of two corpora as a table."""
    tables = [planted(seed=seed).assign(corpus=name, training=0) for seed, name in enumerate(("a", "b"))]
    return pd.concat(tables, ignore_index=True)


def test_tests_of_a_table_are_those_of_each_corpus():
    tests = level_tests(two_corpora(), ["tied", "free"])
    alone = tests[tests["corpus"] == "b"].drop(columns=["corpus", "training"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, label_tests(planted(seed=1), BOTH))
    notes = star_notes(tests[tests["corpus"] == "b"])
    assert notes["tied", "easy"].splitlines() == ["E·N ***", "E·C ***", "N·C ***"]


def test_the_share_of_significant_tests_stands_beside_parts_as_small():
    table = two_corpora()
    control = size_control(table, ["tied", "free"], parts=20)
    assert (control["measure"] == ALL_TESTS).sum() == 2 * 2 * 20
    assert set(control["source"]) == {"easy", "all levels"}
    shares = significant_shares(level_tests(table, ["tied", "free"]), control).set_index(["corpus", "condition"])
    assert len(shares) == 2 * 5
    assert shares.loc[("a", "easy"), "value"] == 0.5  # the tied measure, and not the free one
    assert shares["low"].isna().all()  # one training has no interval over trainings
    again = pd.concat([table, table.assign(training=1)])
    both = significant_shares(level_tests(again, ["tied", "free"]), size_control(again, ["tied", "free"], parts=5))
    assert (both["low"] <= both["value"]).all() and (both["value"] <= both["high"]).all()
    assert shares.loc[("a", "easy, as small as hard"), "value"] < 0.5


def test_the_control_is_the_mean_over_parts_of_its_own_seed():
    table = planted().assign(corpus="a", training=3)
    control = size_control(table, BOTH, parts=6)
    for source, pool in (("easy", table["level"] == 0), ("all levels", table["level"] >= 0)):
        own = control[(control["source"] == source) & (control["measure"] != ALL_TESTS)]
        slow = matched_tests(table, BOTH, pool, parts=6, seed=3).groupby(["measure", "pair"], sort=False)
        assert own["effect"].tolist() == pytest.approx(slow["effect"].mean().tolist())
        assert own["size"].tolist() == pytest.approx([np.abs(part["effect"]).mean() for _, part in slow])
        assert own["significant"].tolist() == [(part["p_bonferroni"] <= 0.05).mean() for _, part in slow]


def test_one_row_for_the_tests_of_all_trainings():
    tests = level_tests(two_corpora().query("corpus == 'a'"), ["tied"])
    again = pd.concat([tests, tests.assign(training=1, effect=tests["effect"] + 0.2, p=1.0, p_bonferroni=1.0)])
    merged = over_trainings_of_tests(again).set_index(["level", "pair"])
    first = tests.set_index(["level", "pair"])
    assert (merged["effect"] - first["effect"]).to_numpy() == pytest.approx(0.1)
    assert (merged["p"] >= 0.5).all() and (merged["stars"] == "ns").all()


def test_over_trainings_the_median_p_gives_the_stars_and_the_effect_is_a_mean():
    p = {"p": [0.01, 0.02, 0.9], "p_bonferroni": [0.04, 0.03, 1.0]}
    tests = pd.DataFrame({"measure": "m", "pair": "x", "level": "easy", "effect": [0.1, 0.2, 0.6], **p})
    (found,) = over_trainings_of_tests(tests).to_dict("records")
    assert (found["p"], found["p_bonferroni"], found["stars"]) == (0.02, 0.04, "*")
    assert found["effect"] == pytest.approx(0.3)


def test_the_smaller_share_is_parts_minus_hard_over_trainings():
    table = pd.concat([planted(seed=seed).assign(corpus="a", training=seed) for seed in (0, 1, 2)])
    tests, control = level_tests(table, BOTH), size_control(table, BOTH, parts=20)
    found = smaller_share(tests, control)
    shares = significant_shares(tests, control).set_index("condition")["value"]
    assert found.value == pytest.approx(shares["easy, as small as hard"] - shares["hard"])
    assert found.low < found.value < found.high and found[3:] == (20, 3, "pairs and trainings")
    alone = smaller_share(tests.query("training == 0"), control.query("training == 0"))
    assert alone[4:] == (1, "pairs") and alone.high - alone.low < found.high - found.low


def test_effects_of_neighbouring_labels():
    labels = np.repeat(["entailment", "neutral", "contradiction"], 4)
    table = pd.DataFrame({"corpus": "x", "label": labels, "similarity": [9, 8, 9, 8, 1, 2, 1, 2, 2, 1, 2, 1]})
    effects = label_effects(table)
    assert effects.loc["x"].tolist() == [1.0, 0.0]  # every entailment is closer; neutral and contradiction tie
