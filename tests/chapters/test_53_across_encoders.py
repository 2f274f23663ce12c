"""Flags by level and label, between encoders. Run alone: pytest tests/chapters/test_53_across_encoders.py"""

import numpy as np
import pandas as pd
import pytest
from cells import functions

from nli_lib.stats import t_interval

cell_agreement = functions("53_across_encoders").cell_agreement


def table(n=300, trainings=3):
    gold, parts = np.random.default_rng(9).integers(0, 3, n), []
    for training in range(trainings):
        level = np.random.default_rng(training).permutation(np.repeat([0, 1, 2], [n // 2, n // 4, n // 4]))
        place = {"training": training, "position": np.arange(n), "premise": np.arange(n) // 3}
        parts.append(pd.DataFrame({**place, "level": level, "gold": gold}))
    return pd.concat(parts, ignore_index=True)


def test_cells_agree_with_themselves():
    pairs = table().assign(flag=lambda t: (t["gold"] == 2).astype(float))
    assert cell_agreement(pairs, "flag", "level", "level").value == pytest.approx(1)


def test_the_agreement_by_hand():
    flags = np.tile(np.random.default_rng(1).integers(0, 2, 300), 3).astype(float)
    pairs = table().assign(flag=flags, moved=lambda t: np.roll(t["level"], 7))
    found = cell_agreement(pairs, "flag", "level", "moved")
    by_hand = []
    for _, part in pairs.groupby("training"):
        one, two = (part.groupby([column, "gold"])["flag"].mean() for column in ("level", "moved"))
        by_hand.append(np.corrcoef(one, two)[0, 1])
    assert found.value == pytest.approx(np.mean(by_hand))
    assert -1 <= found.low < found.value < found.high <= 1
    spread = t_interval(by_hand)
    assert spread.high > 1 and found.high == 1  # no correlation is beyond 1, whatever the spread of three trainings


def test_a_cell_that_one_of_the_two_lacks_is_left_out():
    pairs = table().assign(flag=lambda t: (t["gold"] == 2).astype(float), moved=lambda t: t["level"] % 2)
    assert cell_agreement(pairs, "flag", "level", "moved").value == pytest.approx(1)
