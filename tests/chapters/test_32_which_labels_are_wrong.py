"""How well a score finds wrong labels. Run alone: pytest tests/chapters/test_32_which_labels_are_wrong.py"""

import numpy as np
from cells import functions

retrieval = functions("32_which_labels_are_wrong").retrieval


def test_a_score_that_knows_stands_above_chance_and_a_random_one_does_not():
    generator = np.random.default_rng(0)
    wrong = generator.random(400) < 0.2
    knows = retrieval(wrong + generator.normal(0, 0.5, 400), wrong, (10, 50, 1000), 200)
    assert 0.6 < knows["low"] <= knows["area"] <= knows["high"]
    assert list(knows) == ["area", "low", "high", "n", "wrong", "at 10", "at 50"]  # 1,000 are not there
    by_chance = retrieval(generator.random(400), wrong, (), 200)
    assert by_chance["low"] < wrong.mean() < by_chance["high"]


def test_a_resample_without_a_wrong_example_does_not_count():
    """The one wrong example has the highest score: every resample that holds it has an area of 1."""
    found = retrieval(np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, False, False, False]), (), 200)
    assert (found["low"], found["area"], found["high"]) == (1, 1, 1)
