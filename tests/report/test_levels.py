"""Numbers by level beside their random twins. Alone: pytest tests/report/test_levels.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.report.contrasts import level_gap, level_means
from nli_lib.report.inference import bootstrap_interval, share


def table(n=300):
    """One corpus: the level decides how often a model is right, labels and another score are free."""
    random = np.random.default_rng(0)
    level = np.repeat([0, 1, 2], [n // 2, n // 4, n - n // 2 - n // 4])
    right = random.random(n) < np.array([0.95, 0.6, 0.2])[level]
    return pd.DataFrame(
        {"corpus": "a", "level": level, "gold": random.integers(0, 3, n), "right": right, "score": random.random(n)}
    )


def test_each_level_and_its_twin():
    pairs = table()
    found = level_means(pairs, ["right", "score"]).set_index(["level", "score", "condition"])
    easy, hard = pairs[pairs["level"] == 0], pairs[pairs["level"] == 2]
    assert tuple(found.loc[("easy", "right", "level"), ["value", "low", "high", "n"]]) == share(easy["right"])[:4]
    expected = bootstrap_interval(hard["score"])
    assert tuple(found.loc[("hard", "score", "level"), ["value", "low", "high"]]) == expected[:3]
    # the twins hold as many pairs, and nothing of the levels is left in them
    assert found.loc[("hard", "right", "random twin"), "n"] == len(hard)
    twins = found.xs(("right", "random twin"), level=["score", "condition"])["value"]
    assert twins.max() - twins.min() < 0.25


def test_a_level_without_pairs_has_no_row():
    found = level_means(table().query("level != 1"), ["right"])
    assert list(found["level"].unique()) == ["easy", "hard"]
    assert level_means(table().iloc[:0], ["right"]).empty


def test_the_gap_between_two_levels():
    pairs = table()
    gap = level_gap(pairs, "right", "easy", "hard")
    easy, hard = (pairs.loc[pairs["level"] == level, "right"].mean() for level in (0, 2))
    assert gap.value == pytest.approx(easy - hard)
    assert gap.low < gap.value < gap.high
    assert gap.n == (pairs["level"] != 1).sum()
