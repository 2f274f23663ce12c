"""Choosing knobs on development pairs and on the test. Alone: pytest tests/report/test_experts_report.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora.corpus import LABELS, TWO_WAY, Corpus
from nli_lib.report.experts import accuracy_on, best_of, choices

ROWS = [  # beta, gamma, development, hard
    (0.1, 0.4, 0.80, 0.60),
    (1.0, 0.4, 0.82, 0.62),
    (2.0, 0.4, 0.82, 0.66),
    (2.0, 1.0, 0.70, 0.71),
]
GRID = pd.DataFrame(
    [
        (beta, gamma, title, value)
        for beta, gamma, *both in ROWS
        for title, value in zip(("development", "hard"), both, strict=True)
    ],
    columns=["beta", "gamma", "title", "accuracy"],
)


def test_the_best_of_equals_is_the_first():
    assert best_of(GRID, "development").tolist() == [1.0, 0.4, 0.82]
    with pytest.raises(KeyError, match="not tested on 'HANS'"):
        best_of(GRID, "HANS")


def test_choosing_on_the_test_set_never_gives_less():
    found = choices(GRID, "development").iloc[0]
    assert found["title"] == "hard" and found[["beta by test", "gamma by test"]].tolist() == [2.0, 1.0]
    assert found["chosen"] == 0.62 and found["by test"] == 0.71
    assert found["optimism"] == pytest.approx(0.09) and found["mean"] == pytest.approx(0.6475)


def test_a_grid_of_one_has_nothing_to_choose():
    one = choices(GRID[(GRID["beta"] == 0.1)], "development")
    assert one["optimism"].tolist() == [0.0]


def made(classes, labels):
    columns = {"uid": list("abc"), "premise": "x", "hypothesis": "y", "label": labels, "corpus": "t", "split": "t"}
    return Corpus(pd.DataFrame(columns), "t", "t", classes)


def test_a_model_of_two_classes_is_judged_by_its_own_and_one_of_three_by_both_rules():
    two, three = np.array([[1, 0], [0, 1], [0, 1.0]]), np.log([[0.4, 0.3, 0.3], [0.1, 0.8, 0.1], [0.9, 0.05, 0.05]])
    own = accuracy_on({"mine": two}, {"mine": made(TWO_WAY, [0, 1, 0])}, TWO_WAY, seed=3)
    assert own[["correct", "rule", "seed"]].to_numpy().tolist() == [[2, "argmax", 3]]
    tests = {"HANS": made(TWO_WAY, [0, 1, 0]), "SNLI": made(LABELS, [0, 1, 2])}
    found = accuracy_on({"HANS": three, "SNLI": three}, tests, LABELS, seed=0).set_index(["title", "rule"])["correct"]
    assert found.to_dict() == {("HANS", "argmax"): 3, ("HANS", "sum"): 2, ("SNLI", "argmax"): 2}
