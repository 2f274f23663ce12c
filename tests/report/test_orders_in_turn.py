"""Precision early in a list, in orders that stay and orders that learn. No model, no files."""

import numpy as np
import pandas as pd
import pytest

from nli_lib.report.review_order import CHANCE, FIXED, LEARNT, ORDERS, SHUFFLED, compare_orders, precision_in_turn


def planted(size=300, seed=0):
    """Suspects of two kinds: the one with the larger gaps is wrong in one of five, the other in three of five."""
    generator = np.random.default_rng(seed)
    kind = np.where(generator.random(size) < 0.5, "P1G0", "P2G1")
    gap = generator.random(size) + 0.5 * (kind == "P2G1")
    wrong = generator.random(size) < np.where(kind == "P1G0", 0.6, 0.2)
    return pd.DataFrame({"kind": kind, "gap": gap, "wrong": wrong, "unit": np.arange(size)})


def test_a_case_by_hand():
    """Two batches of two. Both answers are known after the first, so the second prefers the kind that was wrong."""
    table = pd.DataFrame({"kind": list("abab"), "gap": [4.0, 3, 2.9, 2.8], "wrong": [False, True, False, True]})
    found = pd.DataFrame(precision_in_turn(table, [2, 3, 4], every=2), index=ORDERS, columns=[2, 3, 4])
    assert found.loc[LEARNT].tolist() == pytest.approx([1 / 2, 2 / 3, 1 / 2])
    assert found.loc[FIXED].tolist() == pytest.approx([1 / 2, 1 / 3, 1 / 2])
    assert found.loc[CHANCE].tolist() == [0.5, 0.5, 0.5]


def test_decisions_on_others_teach_nothing():
    found = np.mean([precision_in_turn(planted(seed=seed), [100], seed=seed)[:, 0] for seed in range(12)], axis=0)
    precision = dict(zip(ORDERS, found, strict=True))
    assert precision[LEARNT] > precision[FIXED] + 0.15
    assert precision[SHUFFLED] < precision[CHANCE] + 0.05


def test_the_halves_vary_as_other_corpora_do():
    gains = [np.subtract(*precision_in_turn(planted(seed=seed), [80])[:2, 0]) for seed in range(40)]
    table, gain = compare_orders([planted(seed=seed) for seed in (100, 101)], [80], halves=8)
    assert gain[80].seeds == 2 and gain[80].n == 300 and gain[80].over == "premises and trainings"
    _, alone = compare_orders([planted(seed=100)], [80], halves=60)  # one training: the interval is over premises
    assert alone[80].over == "premises"
    assert (alone[80].high - alone[80].low) / 2 / 1.96 == pytest.approx(np.std(gains), rel=0.4)
    assert set(table["order"]) == set(ORDERS) and (table["low"] <= table["value"]).all()


def test_a_unit_is_drawn_whole():
    table = planted(60)
    twice = pd.concat([table, table], ignore_index=True)
    once, gain = compare_orders([table], [10], halves=20)
    both, gain_of_both = compare_orders([twice], [20], halves=20, units="pairs")
    assert (gain[10].n, gain_of_both[20].n, gain_of_both[20].over) == (60, 60, "pairs")
    ends = [part[part["order"] == FIXED][["low", "value", "high"]].to_numpy() for part in (once, both)]
    np.testing.assert_allclose(*ends)  # rows drawn one by one would vary less


def test_a_list_that_is_too_short_has_no_rows():
    table, gains = compare_orders([planted(40), planted(30)], [50, 30], halves=5)
    assert table["depth"].unique().tolist() == [30] and list(gains) == [30]
    table, gains = compare_orders([], [50])
    assert table.empty and gains == {}
