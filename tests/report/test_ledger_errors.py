"""The ledger's own error rate. Alone: pytest tests/report/test_ledger_errors.py"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nli_lib.claims import PLACES, Region
from nli_lib.report.ledger_errors import Spread, error_rates, simulated, spread, true_value, verdicts
from nli_lib.stats import with_trainings


def ledger(**columns):
    row = {"low": 0.1, "high": 0.3, "seeds": 3, "over": "trainings", "region_low": 0.0, "region_high": np.inf}
    return pd.DataFrame([row | columns])


def share(rates, level, distance, verdict):
    found = rates.query("level == @level and distance == @distance and verdict == @verdict")
    return found["share"].item()


def test_a_spread_gives_back_the_interval_it_was_read_from():
    assert spread(-1.96, 1.96, 1, "pairs").pairs == pytest.approx(1, abs=1e-4)
    t = stats.t.ppf(0.975, 2)
    assert spread(-1, 1, 3, "trainings") == pytest.approx((0, np.sqrt(3) / t, 3))
    both = spread(-1, 1, 3, "premises and trainings")
    assert np.hypot(1.959964 * both.pairs, t * both.trainings / np.sqrt(3)) == pytest.approx(1, abs=1e-6)


def test_the_interval_is_the_one_that_the_chapters_record():
    noise = Spread(0.5, 0.2, 3)
    value, low, high = simulated(1.0, noise, 4, seed=7)
    generator = np.random.default_rng(7)
    drawn = 1 + 0.5 * generator.standard_normal((4, 1)) + 0.2 * generator.standard_normal((4, 3))
    for at in range(4):
        draws = drawn[at].mean() + 0.5 * np.random.default_rng(0).standard_normal(200_000)
        ours = with_trainings(drawn[at].mean(), draws, drawn[at], n=10)
        assert (value[at], low[at], high[at]) == pytest.approx(ours[:3], abs=0.01)


@pytest.mark.parametrize(
    ("region", "inside", "outside"),
    [
        (Region(above=1), 1.5, 0.5),
        (Region(below=1), 0.5, 1.5),
        (Region(between=(0, 10)), 0.5, -0.5),
        (Region(between=(0, 0.4)), 0.2, -0.5),  # never past the middle
    ],
)
def test_the_truth_lies_where_it_should(region, inside, outside):
    assert true_value(region, 0.5, 1.0) == pytest.approx(inside)
    assert true_value(region, 0.5, -1.0) == pytest.approx(outside)


@pytest.mark.parametrize("region", [Region(above=0), Region(below=0), Region(between=(-1, 0))])
def test_verdicts_of_many_intervals_are_those_of_one_at_a_time(region):
    ends = [(-2, -1.5), (-2, -1), (-1, 0), (-0.5, 0), (-0.5, 0.5), (0, 1), (0.5, 1), (-3, 3), (0, 0)]
    low, high = np.array(ends, dtype=float).T
    assert verdicts(region, low, high).tolist() == [PLACES[region.place(*each)] for each in ends]


def test_at_the_border_a_false_claim_is_held_in_one_of_forty_studies_at_most():
    rates = error_rates(ledger(), distances=(-1e-9, 1e-9), studies=4_000)
    assert share(rates, 0.95, -1e-9, "held") == pytest.approx(0.025, abs=0.008)
    assert share(rates, 0.99, -1e-9, "held") == pytest.approx(0.005, abs=0.004)
    assert share(rates, 0.95, 1e-9, "not held") == pytest.approx(0.025, abs=0.008)


def test_far_from_the_border_the_verdict_is_right_and_nearer_less_often():
    rates = error_rates(ledger(over="pairs", seeds=1), distances=(-4.0, 0.5, 1.0, 4.0), studies=500)
    assert share(rates, 0.95, -4.0, "not held") == 1
    assert share(rates, 0.95, 4.0, "held") == 1
    assert share(rates, 0.95, 0.5, "held") < share(rates, 0.95, 1.0, "held") < 0.7


def test_shares_add_up_and_claims_without_an_interval_are_left_out():
    table = pd.concat([ledger(), ledger(low=np.nan, high=np.nan), ledger(low=0.2, high=0.2)])
    rates = error_rates(table, studies=50)
    assert set(rates["claims"]) == {1}
    assert rates.groupby(["level", "distance"])["share"].sum().to_numpy() == pytest.approx(1)
    assert error_rates(table[1:], studies=50).empty
