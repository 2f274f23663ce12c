"""Intervals over premises. Alone: pytest tests/test_premises.py"""

import numpy as np
import pytest

from nli_lib.stats import bootstrap_interval, centred_interval, drawn_rows, half_samples, mean_over_premises


def test_by_hand():
    """Two premises, one always right and one always wrong: a resample is right in all, half or none of its pairs."""
    found = mean_over_premises([1, 1, 0, 0], ["a", "a", "b", "b"])
    assert found == (0.5, 0.0, 1.0, 2, 1, "premises")
    gap = mean_over_premises([1, 1, 0, 0], ["a", "a", "b", "b"], other=([1, 1, 1], ["c", "d", "c"]))
    assert (gap.value, gap.low, gap.high, gap.n) == (-0.5, -1.0, 0.0, 2)


def test_equal_to_drawing_premises_one_by_one():
    random = np.random.default_rng(0)
    premises = random.integers(0, 40, 200)
    values = (random.random(200) < 0.2 + 0.6 * (premises % 2)).astype(float)
    found = mean_over_premises(values, premises)
    names, slow = np.unique(premises), []
    for _ in range(2000):
        rows = np.concatenate([np.flatnonzero(premises == name) for name in random.choice(names, len(names))])
        slow.append(values[rows].mean())
    assert found.value == values.mean() and found.n == len(names)
    np.testing.assert_allclose([found.low, found.high], np.quantile(slow, [0.025, 0.975]), atol=0.02)


def test_premises_of_one_pair_are_pairs_and_repeated_ones_widen_the_interval():
    values = np.random.default_rng(1).integers(0, 2, 300).astype(float)
    pairs, alone = bootstrap_interval(values), mean_over_premises(values, np.arange(300))
    np.testing.assert_allclose(alone[:3], pairs[:3], atol=0.01)
    tripled = mean_over_premises(np.repeat(values, 3), np.repeat(np.arange(300), 3))
    np.testing.assert_allclose(tripled[:3], alone[:3], atol=1e-12)  # the same answers three times say no more
    assert tripled.n == 300


@pytest.mark.parametrize(("values", "premises"), [([], []), ([1, 0], ["a"]), ([np.nan], ["a"])])
def test_what_has_no_mean(values, premises):
    with pytest.raises(ValueError, match="a finite one for each pair"):
        mean_over_premises(values, premises)


def test_rows_come_with_their_whole_premise():
    premises = np.array(["a", "b", "a", "c"])
    for rows in drawn_rows(premises, resamples=20):
        times = np.bincount(rows, minlength=4)
        assert times[0] == times[2] and times[0] + times[1] + times[3] == 3


def test_half_of_the_premises_each_whole_and_none_twice():
    premises = np.array(["a", "b", "a", "c", "d", "d", "d", "e"])
    halves = list(half_samples(premises, resamples=40))
    for rows in halves:
        assert len(set(premises[rows])) == 2 and np.array_equal(rows, np.flatnonzero(np.isin(premises, premises[rows])))
    assert {name for rows in halves for name in premises[rows]} == set(premises)


def test_a_mean_varies_over_halves_as_over_samples_of_all():
    """Delete-half: the variance of the mean of half of the values is that of the mean of all of them in new samples."""
    values = np.random.default_rng(2).gamma(1, size=400)
    means = [values[rows].mean() for rows in half_samples(np.arange(400), resamples=4000)]
    np.testing.assert_allclose(np.std(means), values.std(ddof=1) / 20, rtol=0.05)
    np.testing.assert_allclose(np.mean(means), values.mean(), atol=0.005)


def test_draws_are_moved_onto_the_value():
    draws = np.linspace(10, 20, 1001)
    found = centred_interval(5, draws, n=7)
    assert (found.value, found.n, found.over) == (5, 7, "premises")
    np.testing.assert_allclose([found.low, found.high], [5 - 4.75, 5 + 4.75])


def test_a_count_above_a_line_rises_in_resamples_and_the_centred_interval_covers_it():
    """The reason for `centred_interval`: of z by chance one per cent lies above the line, in resamples five."""
    random, line, held = np.random.default_rng(0), 2.326, []
    for _ in range(60):
        z = random.normal(size=1000)
        draws = ((z + random.normal(size=(200, 1000))) > line).sum(axis=1)
        assert draws.mean() > 2 * (z > line).sum()
        found = centred_interval((z > line).sum(), draws, n=1)
        held.append(found.low <= 10 <= found.high)
    assert np.mean(held) >= 0.95
