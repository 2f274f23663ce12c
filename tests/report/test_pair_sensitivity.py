"""Alone: pytest tests/report/test_pair_sensitivity.py"""

import numpy as np
import pytest

from nli_lib.corpora.counterfactuals import load_pairs
from nli_lib.measure.counterfactual import sensitivity
from nli_lib.report.sensitivity import (
    ACCURACY,
    SENSITIVITY,
    WRONG,
    by_direction,
    gap,
    outcome_table,
    pair_values,
    sensitivity_table,
)

PAIRS = load_pairs("planted", "test", originals=30)
OLD, NEW = PAIRS.old_labels, PAIRS.revised.labels


def sure(labels, trainings=3):
    """Logits (S, K, C) of models that predict the labels with near certainty."""
    return np.repeat(20.0 * np.eye(3)[labels][None], trainings, axis=0)


def test_right_wrong_and_stubborn_models():
    right = pair_values(sure(OLD), sure(NEW), PAIRS)
    assert right[SENSITIVITY] == pytest.approx(np.ones((3, 60))) and right[ACCURACY].all() and not right[WRONG].any()
    wrong = pair_values(sure((OLD + 1) % 3), sure((NEW + 1) % 3), PAIRS)
    assert wrong[SENSITIVITY].mean() == pytest.approx(1) and not wrong[ACCURACY].any() and wrong[WRONG].all()
    stubborn = pair_values(sure(OLD), sure(OLD), PAIRS)
    assert not any(each.any() for each in stubborn.values())


def test_values_are_those_of_the_measures_training_by_training():
    random = np.random.default_rng(0)
    before, after = random.normal(size=(2, 2, 60, 3))
    found = pair_values(before, after, PAIRS)
    for s in range(2):
        assert found[SENSITIVITY][s] == pytest.approx(sensitivity(before[s], after[s]))
        both = (before[s].argmax(axis=1) == OLD) & (after[s].argmax(axis=1) == NEW)
        assert found[ACCURACY][s].tolist() == both.tolist()
    assert not (found[ACCURACY] * found[WRONG]).any()


def test_a_gap_and_what_it_counts():
    found = gap(np.full((3, 60), 0.7), np.full((3, 60), 0.6), PAIRS.origin, resamples=20)
    assert found.value == pytest.approx(0.1) and found.n == 30
    assert (found.seeds, found.over) == (3, "premises and trainings")


def test_an_interval_over_originals_is_wider_than_one_over_pairs_that_agree():
    """The pairs of one original agree: the interval must be that of 30 originals, not of 60 pairs."""
    random = np.random.default_rng(1)
    flags = (random.random(30) < 0.5)[PAIRS.origin].astype(float)[None]
    by_origin = gap(flags, 0 * flags, PAIRS.origin, resamples=2000)
    by_pair = gap(flags, 0 * flags, np.arange(60), resamples=2000)
    ratio = (by_origin.high - by_origin.low) / (by_pair.high - by_pair.low)
    assert ratio == pytest.approx(np.sqrt(2), rel=0.1)


def test_tables_have_a_row_for_each_and_outcomes_add_up():
    random = np.random.default_rng(2)
    logits = {("planted", arm): tuple(random.normal(size=(2, 2, 60, 3))) for arm in ("base", "more")}
    sets = {"planted": PAIRS}
    values = {key: pair_values(*both, PAIRS) for key, both in logits.items()}
    table = sensitivity_table(values, sets)
    assert len(table) == 6 and set(table["measure"]) == {SENSITIVITY, ACCURACY, WRONG}
    gaps = sensitivity_table(values, sets, baseline="base")
    assert set(gaps["condition"]) == {"more"}
    mean = table.set_index(["condition", "measure"])["value"]
    wanted = [mean["more", name] - mean["base", name] for name in gaps["measure"]]
    assert gaps["value"].tolist() == pytest.approx(wanted)
    assert outcome_table(logits, sets).groupby("condition")["value"].sum().tolist() == pytest.approx([1, 1])
    parts = by_direction(values, sets)
    whole = (
        parts[parts["measure"] == ACCURACY]
        .groupby("condition")
        .apply(lambda part: (part["value"] * part["pairs"]).sum() / part["pairs"].sum())
    )
    assert whole.tolist() == pytest.approx([mean[arm, ACCURACY] for arm in whole.index])
