"""Estimate and variability. Run alone: pytest tests/report/test_substitutes.py"""

import numpy as np
import pytest
from scipy import stats

from nli_lib.measure.dynamics import max_variability, variability
from nli_lib.report.substitutes import (
    MODEL,
    PAPER,
    RANDOM,
    SEED,
    STATISTIC,
    TRUTH,
    correlation,
    correlation_table,
    pearson,
    substitutes,
)

LABELS = np.arange(300) % 3


def planted(seed=0, own=0.3):
    """Logits of three trainings with and without the pairs: each pair wavers by an amount of its own."""
    random = np.random.default_rng(seed)
    wavers = random.uniform(0, 2, 300)[None, :, None]

    def training():
        return random.normal(0, own, (5, 300, 3)) + wavers * random.normal(0, 1, (5, 1, 1)) * np.eye(3)[LABELS]

    return [training() for _ in range(3)], [training() for _ in range(3)]


def test_each_substitute_is_what_it_says():
    whole, without = planted()
    found = substitutes(whole, without, LABELS)
    assert np.array_equal(found[TRUTH][2], variability(whole[2], LABELS))
    assert np.array_equal(found[PAPER][1], max_variability(without[1]))
    assert np.array_equal(found[STATISTIC][0], max_variability(whole[0]))
    assert np.array_equal(found[MODEL][0], variability(without[0], LABELS))
    assert np.array_equal(found[SEED], found[TRUTH][[1, 2, 0]])
    assert np.array_equal(np.sort(found[RANDOM], axis=1), np.sort(found[PAPER], axis=1))
    assert (found[STATISTIC] >= found[TRUTH] - 1e-12).all()
    assert SEED not in substitutes(whole[:1], without[:1], LABELS)


def test_with_two_classes_the_statistic_alone_changes_nothing():
    whole = [np.random.default_rng(0).normal(size=(4, 50, 2))]
    found = substitutes(whole, whole, np.arange(50) % 2)
    assert correlation(found, STATISTIC, np.arange(50)).value == pytest.approx(1)


def test_pearson_is_scipys_and_a_constant_has_none():
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, 4, 30))
    assert pearson(x, y) == pytest.approx([stats.pearsonr(*each)[0] for each in zip(x, y, strict=True)])
    assert np.isnan(pearson(np.ones((1, 3)), x[:1, :3])).all()


def test_what_is_planted_is_found_and_a_random_pair_tells_nothing():
    table = correlation_table(substitutes(*planted(), LABELS), np.arange(300) // 2)
    assert table["kind"].tolist() == ["Pearson"] * 5 + ["Spearman"] * 5
    assert set(table["n"]) == {150} and set(table["seeds"]) == {3}
    found = table[table["kind"] == "Pearson"].set_index("title")
    assert found.loc[PAPER, "low"] > 0.3
    assert found.loc[STATISTIC, "value"] > found.loc[PAPER, "value"]
    assert found.loc[RANDOM, "low"] < 0 < found.loc[RANDOM, "high"]
