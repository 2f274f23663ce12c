"""Fast, any machine: pytest tests/test_evaluate.py"""

import warnings

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.evaluate import (
    accuracy_row,
    across_seeds,
    agreement,
    correct_predictions,
    majority_table,
    seed_gains,
    skill,
    suite_table,
)
from nli_lib.stats import t_interval, wilson

TWO = ("entailment", "not_entailment")


def corpus(labels, *, classes=("entailment", "neutral", "contradiction"), name="toy", **extra):
    n = len(labels)
    table = {"uid": [f"{name}-{i}" for i in range(n)], "premise": "A cat sits.", "hypothesis": "It sits."}
    return Corpus(
        pd.DataFrame({**table, "label": labels, "corpus": name, "split": "test", **extra}), name, "test", classes
    )


def test_accuracy_of_three_classes():
    logits = np.array([[3, 0, 0], [0, 3, 0], [0, 0, 3], [3, 0, 0.0]])
    labels = np.array([0, 1, 2, 1])
    row = accuracy_row(correct_predictions(logits, labels))
    _, low, high, *_ = wilson(3, 4)
    assert row == {"n": 4, "correct": 3, "accuracy": 0.75, "low": low, "high": high}


def test_the_two_rules_differ_where_entailment_leads_without_half_the_mass():
    logits = np.log([[0.4, 0.3, 0.3], [0.6, 0.2, 0.2]])
    assert correct_predictions(logits, np.array([0, 0]), TWO, "argmax").tolist() == [True, True]
    assert correct_predictions(logits, np.array([0, 0]), TWO, "sum").tolist() == [False, True]


def test_bad_predictions_are_refused():
    with pytest.raises(ValueError, match="not finite .1 rows"):
        correct_predictions(np.array([[np.nan, 0, 0], [1, 0, 0]]), np.array([0, 0]))
    with pytest.raises(ValueError, match="give one label each"):
        correct_predictions(np.zeros((3, 3)), np.array([0, 0]))
    with pytest.raises(ValueError, match="n > 0"):
        accuracy_row(np.zeros(0, dtype=bool))


def test_suite_table_reports_both_rules_of_two_class_sets():
    suite = {"three": corpus([0, 1, 2]), "two": corpus([0, 1], classes=TWO, name="pair")}
    predictions = {"three": np.eye(3) * 4, "two": np.log([[0.4, 0.3, 0.3], [0.1, 0.1, 0.8]])}
    table = suite_table(predictions, suite, seed=7)
    assert table[["title", "rule", "accuracy", "n", "seed"]].values.tolist() == [
        ["three", "argmax", 1.0, 3, 7],
        ["two", "argmax", 1.0, 2, 7],
        ["two", "sum", 0.5, 2, 7],
    ]
    mine = {"two": np.array([[0, 1], [0, 1.0]])}  # a model of these two classes is judged by its own
    own = suite_table(mine, {"two": suite["two"]}, classes=TWO, seed=3)
    assert own[["correct", "rule", "seed"]].values.tolist() == [[1, "argmax", 3]]


def test_agreement_by_hand():
    pairs = pd.DataFrame({"label": [0, 0, 1, 2], "kind": ["a", "a", "a", "b"]})
    found = agreement(pairs, [0, 1, 1, 2], ["kind"]).set_index("kind")
    assert found["n"].tolist() == [3, 1] and found["agree"].tolist() == [2, 1]
    assert found.loc["a", "share"] == pytest.approx(2 / 3)
    # intended 2/3, 1/3 of labels 0, 1; predicted 1/3, 2/3: at random 2/9 + 2/9
    assert found.loc["a", "chance"] == pytest.approx(4 / 9) and found.loc["a", "most"] == pytest.approx(2 / 3)
    assert (found["low"] < found["share"] + 1e-9).all()


def test_majority_is_the_best_constant_answer():
    table = majority_table({"toy": corpus([1, 1, 2]), "pair": corpus([0, 1, 1, 1], classes=TWO, name="pair")})
    assert table[["title", "label", "accuracy"]].values.tolist() == [
        ["toy", "neutral", pytest.approx(2 / 3)],
        ["pair", "not_entailment", 0.75],
    ]


def test_across_seeds_by_hand():
    rows = [("a", "pair", "argmax", 10, s, v) for s, v in ((0, 0.7), (1, 0.8), (2, 0.9))]
    rows.append(("b", "pair", "argmax", 10, 0, 0.5))
    table = pd.DataFrame(rows, columns=["title", "view", "rule", "n", "seed", "accuracy"])
    wide = across_seeds(table)
    assert wide.loc[0, ["title", "view", "mean", "std", "min", "max", "seeds"]].tolist() == [
        "a", "pair", pytest.approx(0.8), pytest.approx(0.1), 0.7, 0.9, 3,
    ]  # fmt: skip
    assert wide.loc[0, "low"] < 0.8 < wide.loc[0, "high"]
    assert wide.loc[1, "seeds"] == 1
    assert wide.loc[1, ["std", "low", "high"]].isna().all()
    assert wide.loc[0, "high"] == pytest.approx(t_interval(np.array([0.7, 0.8, 0.9])).high)
    shuffled = across_seeds(table.sample(frac=1, random_state=3)).sort_values("title", ignore_index=True)
    pd.testing.assert_frame_equal(shuffled, wide)


def test_across_seeds_of_one_training_warns_of_nothing():
    table = pd.DataFrame({"title": ["a", "b"], "seed": [0, 0], "accuracy": [0.1, 0.2]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning would stand on the page
        assert across_seeds(table)[["low", "high"]].isna().all(axis=None)


def test_across_seeds_refuses_doubles():
    table = pd.DataFrame({"title": ["a", "a"], "seed": [0, 0], "accuracy": [0.1, 0.2]})
    with pytest.raises(ValueError, match="seed 0 appears twice"):
        across_seeds(table)


def test_models_that_have_not_learnt_say_so():
    good = skill(450, 1000, 0.34)
    assert good.learnt and "have not learnt" not in good.words
    chance = skill(350, 1000, 0.34)  # better, but not by more than 1,000 pairs can show
    assert not chance.learnt
    assert "35.0% [32.1%, 38.0%] of 1,000 labels" in chance.words and "34.0%" in chance.words
    assert "have not learnt the task" in chance.words


def test_a_suite_of_which_nothing_is_at_hand_says_what_to_do():
    with pytest.raises(CorpusError, match="name a folder that holds one in DATA_DIR"):
        majority_table({})


def test_no_row_over_seeds_is_an_empty_table_with_its_columns():
    empty = across_seeds(pd.DataFrame(columns=["title", "seed", "accuracy"]))
    assert len(empty) == 0
    assert {"title", "mean", "low", "high"} <= set(empty)


def test_gains_are_taken_within_a_seed():
    rows = [("gold", "one", 0, 0.8), ("gold", "one", 1, 0.7), ("gold", "two", 0, 0.7), ("gold", "two", 1, 0.62)]
    table = pd.DataFrame(rows, columns=["title", "condition", "seed", "accuracy"])
    gains = seed_gains(table.assign(n=50), "one")
    assert gains["other"].tolist() == ["two"]
    assert gains["value"].item() == pytest.approx(0.09) and gains["seeds"].item() == 2
    assert gains["n"].item() == 50
    assert gains["low"].item() < 0.09 < gains["high"].item()
    assert seed_gains(table.assign(n=50), "none").empty
