"""Alone: pytest tests/test_students.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.claims import paper_table
from nli_lib.compare import (
    BY_SCORE,
    BY_VALIDATION,
    OF_ALL,
    PLAIN,
    ROBUSTNESS,
    WEIGHTED,
    average,
    average_table,
    best_of,
    printed_averages,
    score_table,
    weights_of,
    worth_of_choosing,
)


def test_the_papers_averages_are_weighted_by_size():
    """Fixture D13: all sixteen cells of Table 4 follow from Tables 3 and 5 by the sizes of Table 2, none by chance."""
    table = printed_averages()
    assert len(table) == 16
    assert (table[WEIGHTED] - table["printed"]).abs().max() < 0.101  # printed with one digit, cut or rounded
    cell = table.set_index(["condition", "column"])
    assert cell.loc[("subset", "robustness"), WEIGHTED] == pytest.approx(71.05, abs=0.01)
    assert cell.loc[("subset", "robustness"), PLAIN] == pytest.approx(74.79, abs=0.01)
    expected = {
        ("subset-add-disco", "robustness"): (79.90, 77.51),
        ("wanli", "robustness"): (72.43, 65.86),
        ("wanli-add-disco", "robustness"): (80.93, 75.12),
    }
    for key, both in expected.items():
        assert cell.loc[key, [PLAIN, WEIGHTED]].tolist() == pytest.approx(both, abs=0.01)
    rows = list(paper_table("disco", "Table 4").index)
    wanted = {
        "out-of-domain": [76.66, 79.38, 78.00, 80.10],
        "accuracy": [47.12, 55.17, 34.64, 52.66],
        "sensitivity": [58.64, 64.88, 44.95, 57.60],
    }
    for column, values in wanted.items():
        assert cell.loc[[(row, column) for row in rows], WEIGHTED].tolist() == pytest.approx(values, abs=0.011)


def test_one_stress_test_is_almost_two_thirds_of_the_robustness():
    rows = {title: title for title in ROBUSTNESS}
    assert weights_of(ROBUSTNESS, rows)[ROBUSTNESS.index("st")] == pytest.approx(0.63, abs=0.005)
    assert weights_of(["mine", "st"], rows).tolist() == [0.5, 0.5]  # a set the paper has not


def answers(share, seed, trainings=5):
    random = np.random.default_rng(seed)
    return {title: random.random((trainings, n)) < share for title, n in (("hans", 60), ("st", 40))}


PREMISES = {"hans": np.arange(60) // 2, "st": np.arange(40)}
SUITES, ROWS = {"robustness": ["hans", "st"]}, {"hans": "hans", "st": "st"}


def test_an_average_is_that_of_the_slow_twin():
    one, two = answers(0.8, 0), answers(0.5, 1)
    weights = weights_of(["hans", "st"], ROWS)
    slow = [
        sum(w * (one[t][s].mean() - two[t][s].mean()) for w, t in zip(weights, ("hans", "st"), strict=True))
        for s in range(5)
    ]
    found = average(one, PREMISES, ["hans", "st"], weights, other=two, resamples=40)
    assert found.value == pytest.approx(np.mean(slow)) and found.low < found.value < found.high
    assert found.seeds == 5 and found.over == "premises and trainings"
    table = average_table({"a": one, "b": two}, PREMISES, SUITES, ROWS, baseline="b")
    assert table["condition"].tolist() == ["a", "a"] and table["average"].tolist() == [PLAIN, WEIGHTED]
    assert table["value"].iloc[1] == pytest.approx(np.mean(slow))


def test_the_best_of_five_by_hand():
    scores = pd.DataFrame({"suite": "r", "average": WEIGHTED, "condition": "a", "seed": range(5)})
    scores["value"] = [0.50, 0.60, 0.55, 0.65, 0.45]
    validation = pd.DataFrame({"condition": "a", "seed": range(5), "validation": [0.7, 0.9, 0.9, 0.8, 0.6]})
    row = best_of(scores, validation).iloc[0]
    assert row[OF_ALL] == pytest.approx(0.55) and row[BY_SCORE] == 0.65
    assert row[BY_VALIDATION] == 0.60  # of two equal validation accuracies the first seed
    assert row["trainings"] == 5


def test_the_best_is_never_below_the_mean_and_one_training_is_its_own_best():
    right = {name: answers(0.6, seed) for seed, name in enumerate("abc")}
    scores = score_table(right, SUITES, ROWS, range(5))
    validation = pd.DataFrame([(n, s, 0.5 + s / 10) for n in "abc" for s in range(5)])
    best = best_of(scores, validation.set_axis(["condition", "seed", "validation"], axis=1))
    assert (best[BY_SCORE] >= best[[OF_ALL, BY_VALIDATION]].max(axis=1) - 1e-12).all()
    worth = worth_of_choosing(best, suite="robustness")
    assert worth.value > 0 and (worth.n, worth.seeds) == (15, 15)
    single = score_table({"a": answers(0.6, 0, trainings=1)}, SUITES, ROWS, [0])
    alone = best_of(single, validation.head(1).set_axis(["condition", "seed", "validation"], axis=1)).iloc[0]
    assert alone[OF_ALL] == alone[BY_VALIDATION] == alone[BY_SCORE]


def test_a_suite_without_a_test_set_has_no_rows():
    assert score_table({"a": answers(0.5, 0)}, {"empty": []}, {}, range(5)).empty
    assert average_table({"a": answers(0.5, 0)}, PREMISES, {"empty": []}, {}).empty
