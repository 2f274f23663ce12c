"""Numbers by level beside their random twins, over trainings. Alone: pytest tests/test_levels.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.levels import (
    by_training,
    correlation_table,
    level_gap,
    level_means,
)
from nli_lib.stats import with_trainings

RANDOM = np.random.default_rng(0)


def table(n=300, trainings=3):
    """One corpus: the level decides how often a model is right, labels and another score are free."""
    gold, parts = np.random.default_rng(9).integers(0, 3, n), []
    for training in range(trainings):
        random = np.random.default_rng(training)
        level = random.permutation(np.repeat([0, 1, 2], [n // 2, n // 4, n - n // 2 - n // 4]))
        right = random.random(n) < np.array([0.95, 0.6, 0.2])[level]
        measured = {"level": level, "gold": gold, "right": right.astype(float), "score": random.random(n)}
        place = {"corpus": "a", "training": training, "position": np.arange(n), "premise": np.arange(n) // 3}
        parts.append(pd.DataFrame({**place, **measured}))
    return pd.concat(parts, ignore_index=True)


def mean_by_hand(pairs, level, score="right"):
    return pairs[pairs["level"] == level].groupby("training")[score].mean()


def test_each_level_and_its_twin():
    pairs = table()
    found = level_means(pairs, ["right", "score"]).set_index(["level", "score", "condition"])
    assert found.loc[("easy", "right", "level"), "value"] == pytest.approx(mean_by_hand(pairs, 0).mean())
    assert found.loc[("hard", "score", "level"), "value"] == pytest.approx(mean_by_hand(pairs, 2, "score").mean())
    assert (found["n"] == 100).all()  # premises
    assert (found["low"] < found["value"]).all() and (found["value"] < found["high"]).all()
    # nothing of the levels is left in the twins
    twins = found.xs(("right", "random twin"), level=["score", "condition"])["value"]
    assert twins.max() - twins.min() < 0.15


def test_a_level_without_pairs_has_no_row():
    pairs = table()
    pairs.loc[pairs["level"] == 1, "level"] = 0
    assert list(level_means(pairs, ["right"])["level"].unique()) == ["easy", "hard"]
    assert level_means(table().iloc[:0], ["right"]).empty


def test_a_gap_over_trainings_and_premises_by_its_definition():
    """A slow twin: premises drawn as whole groups of rows with the trainings kept, then Student's interval."""
    pairs = table(90)
    gap = level_gap(pairs, "right", "easy", "hard")
    each = mean_by_hand(pairs, 0) - mean_by_hand(pairs, 2)
    of_premise, random, draws = dict(list(pairs.groupby("premise"))), np.random.default_rng(5), []
    for _ in range(500):
        drawn = random.integers(30, size=30)
        again = pd.concat(of_premise[premise] for premise in drawn)
        draws.append((mean_by_hand(again, 0) - mean_by_hand(again, 2)).mean())
    assert gap.value == pytest.approx(each.mean())
    slow = with_trainings(each.mean(), draws, each, n=30, units="premises")
    assert gap.high == pytest.approx(slow.high, rel=0.05)
    assert gap[3:] == (30, 3, "premises and trainings")


def test_one_training_has_an_interval_over_premises_alone():
    pairs = table(trainings=1)
    assert level_gap(pairs, "right", "easy", "hard")[3:] == (100, 1, "premises")
    assert level_gap(pairs.drop(columns="premise"), "right", "easy", "hard")[3:] == (300, 1, "pairs")


def test_the_order_of_the_rows_does_not_matter():
    pairs = table()
    mixed = pairs.sample(frac=1, random_state=1)
    assert level_gap(mixed, "right", "easy", "hard") == level_gap(pairs, "right", "easy", "hard")
    assert by_training(mixed, "score").tolist() == by_training(pairs, "score").tolist()


def test_correlations_within_each_training():
    pairs = table().assign(constant=1.0)
    pairs["easier"] = -pairs["level"]
    found = correlation_table(pairs, ["easier", "score", "constant"], "right").set_index("score")
    expected = [part["easier"].corr(part["right"], method="spearman") for _, part in pairs.groupby("training")]
    assert found.index.tolist() == ["easier", "score"]
    assert found.loc["easier", "value"] == pytest.approx(np.mean(expected))
    assert found.loc["score", "low"] < 0 < found.loc["score", "high"]


def test_correlations_with_the_same_columns_of_other_trainings():
    pairs, others = table(), table().assign(training=lambda t: 2 - t["training"]).sample(frac=1, random_state=3)
    found = correlation_table(pairs, ["score", "level"], others).set_index("score")
    expected = [
        pairs.query("training == @one")["score"].corr(
            pairs.query("training == 2 - @one").set_index(pairs.query("training == @one").index)["score"], "spearman"
        )
        for one in range(3)
    ]
    assert found.loc["score", "value"] == pytest.approx(np.mean(expected))
    itself = correlation_table(pairs, ["score"], pairs).loc[0]
    assert itself["value"] == itself["low"] == itself["high"] == pytest.approx(1)
