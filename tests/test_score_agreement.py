"""How far scores agree. Alone: pytest tests/test_score_agreement.py"""

from itertools import chain

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nli_lib.agreement import (
    FEW,
    agreement,
    drawing_order,
    estimate_of,
    rank_correlations,
    same_things,
    square,
)
from nli_lib.measure.consensus import VOTES
from nli_lib.stats import t_interval

RANDOM = np.random.default_rng(0)
PREMISES = np.repeat(np.arange(50), 3)
TRUTH = RANDOM.normal(size=150)


def noisy(of, size, seed, trainings=3):
    return of + np.random.default_rng(seed).normal(size=(trainings, len(of))) * size


SCORES = {
    "a": noisy(TRUTH, 0.5, 1),
    "also a": np.exp(noisy(TRUTH, 0.5, 1)),  # the same order
    "minus a": -(noisy(TRUTH, 0.5, 1) ** 3),
    "b": noisy(TRUTH, 2.0, 2),
    "chance": noisy(0 * TRUTH, 1.0, 3),
    "counted": np.tile(np.round(TRUTH), (3, 1)),
}
TABLE = agreement(SCORES, PREMISES, resamples=40)


def test_equal_to_scipy_on_what_both_know():
    values = np.random.default_rng(4).normal(size=(4, 90)).round(1)
    values[1, :40], values[2, 30:], values[3] = np.nan, np.nan, 7.0
    found = rank_correlations(values)
    for i in range(4):
        for j in range(4):
            both = np.isfinite(values[i]) & np.isfinite(values[j])
            if both.sum() < FEW or np.ptp(values[i, both]) == 0 or np.ptp(values[j, both]) == 0:
                assert np.isnan(found[i, j])
            else:
                assert found[i, j] == pytest.approx(stats.spearmanr(values[i, both], values[j, both]).statistic)
    assert np.isnan(found[1, 2]) and np.isnan(found[3]).all()


def test_values_are_means_over_trainings():
    by_training = [stats.spearmanr(SCORES["a"][s], SCORES["b"][s]).statistic for s in range(3)]
    found = estimate_of(TABLE, "b", "a")
    assert found.value == pytest.approx(np.mean(by_training))
    assert found.high - found.value >= t_interval(by_training).high - np.mean(by_training)
    assert (found.n, found.seeds, found.over) == (50, 3, "premises and trainings")
    assert estimate_of(TABLE, "a", "gone") is None and estimate_of(TABLE, "a", "a") is None


def test_one_order_under_three_names():
    assert estimate_of(TABLE, "a", "also a")[:3] == pytest.approx((1, 1, 1))
    assert estimate_of(TABLE, "a", "minus a")[:3] == pytest.approx((-1, -1, -1))
    groups = same_things(TABLE)
    assert ["a", "also a", "minus a"] in groups
    assert sorted(chain(*groups)) == sorted(SCORES) and len(groups) == 4


def test_a_group_asks_it_of_every_two():
    """a = b and b = c, but a and c fall short: no group of three. An interval that begins below the line fails."""
    rows = [("a", "b", 0.97, 0.96), ("b", "c", 0.97, 0.955), ("a", "c", 0.94, 0.93), ("c", "d", 0.99, 0.9)]
    table = pd.DataFrame(
        [(one, other, value, low, 1.0, 9, 3, "") for one, other, value, low in rows],
        columns=["one", "other", "value", "low", "high", "n", "seeds", "over"],
    )
    assert same_things(table) == [["a", "b"], ["c"], ["d"]]
    assert same_things(table, line=0.925) == [["a", "b", "c"], ["d"]]


def test_a_score_beside_itself_in_another_training():
    own = TABLE[TABLE["one"] == TABLE["other"]].set_index("one")
    rho = [stats.spearmanr(SCORES["a"][s], SCORES["a"][t]).statistic for s, t in ((0, 1), (0, 2), (1, 2))]
    assert own.loc["a", ["value", "low", "high"]].tolist() == pytest.approx([np.mean(rho), min(rho), max(rho)])
    assert own.loc["counted", "value"] == 1
    votes = agreement({VOTES: SCORES["counted"], "a": SCORES["a"]}, PREMISES, resamples=20)
    assert VOTES not in votes.loc[votes["one"] == votes["other"], "one"].tolist()  # one number of all trainings


def test_what_no_training_changes_has_an_interval_over_premises_alone():
    found = agreement({"x": SCORES["counted"], "y": np.tile(TRUTH, (3, 1))}, PREMISES, resamples=20)
    assert estimate_of(found, "x", "y")[4:] == (1, "premises")
    one = agreement({"x": SCORES["a"][:1], "y": SCORES["b"][:1]}, PREMISES, resamples=20)
    assert estimate_of(one, "x", "y")[4:] == (1, "premises") and len(one) == 1


def test_a_score_of_fewer_trainings_or_pairs():
    short = SCORES["a"].copy()
    short[1:], short[0, 90:] = np.nan, np.nan
    found = agreement({"short": short, "b": SCORES["b"], "flat": np.ones((3, 150))}, PREMISES, resamples=20)
    estimate = estimate_of(found, "short", "b")
    assert estimate.value == pytest.approx(stats.spearmanr(short[0, :90], SCORES["b"][0, :90]).statistic)
    assert (estimate.n, estimate.seeds) == (30, 1)
    assert "flat" not in found[["one", "other"]][found["one"] != found["other"]].to_numpy()


def test_neither_order_matters():
    order = RANDOM.permutation(150)
    moved = agreement({name: SCORES[name][:, order] for name in reversed(SCORES)}, PREMISES[order], resamples=40)
    names = sorted(SCORES)
    assert np.allclose(square(TABLE, names=names), square(moved, names=names), equal_nan=True)
    assert same_things(moved) == same_things(TABLE)
    assert drawing_order(TABLE.sample(frac=1, random_state=1)) == drawing_order(TABLE)


def test_bounds_and_symmetry():
    table = square(TABLE).to_numpy()
    assert np.array_equal(table, table.T, equal_nan=True) and (np.abs(table) <= 1 + 1e-12).all()


def test_an_interval_ends_within_the_possible():
    """Trainings of which one agrees far less: Student's interval over them would end beyond 1."""
    one = np.arange(60.0)
    others = np.stack([one, one, np.random.default_rng(1).permutation(one)])
    table = agreement({"one": np.tile(one, (3, 1)), "other": others, "minus": -others}, np.arange(60), resamples=20)
    assert estimate_of(table, "one", "other").high == 1 and estimate_of(table, "one", "minus").low == -1
    assert table[["low", "high"]].abs().max(axis=None) <= 1


def test_neighbours_agree():
    order = drawing_order(TABLE)
    places = sorted(order.index(name) for name in ("a", "also a", "minus a"))
    assert places[-1] - places[0] == 2
    assert order.index("chance") in (0, len(order) - 1)
    assert drawing_order(TABLE.iloc[:0]) == [] and same_things(TABLE.iloc[:0]) == []


def test_the_interval_covers():
    """30 studies: both scores are a truth and noise of the training; wanted is the mean over many trainings."""
    wanted = agreement({"x": noisy(TRUTH, 1, 8, 100), "y": noisy(TRUTH, 1, 9, 100)}, PREMISES, resamples=2)
    wanted, inside = estimate_of(wanted, "x", "y").value, 0
    for seed in range(30):
        scores = {"x": noisy(TRUTH, 1, 100 + seed), "y": noisy(TRUTH, 1, 500 + seed)}
        found = estimate_of(agreement(scores, PREMISES, resamples=15), "x", "y")
        inside += found.low <= wanted <= found.high
    assert inside >= 27
