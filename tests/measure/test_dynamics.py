"""Dynamics: published values, loops as the definition says, bounds, and what simulated training must show."""

import os
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import roc_auc_score

from nli_lib.measure.dynamics import (
    DOUBT,
    confidence,
    correctness,
    forgetting,
    margin,
    max_variability,
    score_table,
    scores,
    variability,
)

SCORES = (confidence, variability, correctness, margin, forgetting)


def gold_logits(probabilities):
    """Logits (E, 1, 3) whose softmax gives class 0 these probabilities."""
    p = np.asarray(probabilities)
    return np.log(np.stack([p, (1 - p) / 2, (1 - p) / 2], axis=-1))[:, None, :]


def random_run(seed=0, epochs=5, examples=40, classes=3):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 2, (epochs, examples, classes)), rng.integers(classes, size=examples)


# --- values worked by hand -------------------------------------------------------------------------------------------


def test_confidence_and_variability_of_the_worked_row():
    logits = gold_logits([0.2, 0.9, 0.7, 0.4, 0.8])
    assert confidence(logits, [0]) == pytest.approx([0.6])
    assert variability(logits, [0]) == pytest.approx([0.260768], abs=1e-6)  # the sample deviation would be .29155


def test_max_variability_of_the_worked_rows():
    rows = [(0.6, 0.3, 0.1), (0.3, 0.6, 0.1), (0.5, 0.4, 0.1), (0.2, 0.7, 0.1), (0.1, 0.85, 0.05)]
    assert max_variability(np.log(rows)[:, None, :]) == pytest.approx([0.198997], abs=1e-6)


def test_margin_of_the_worked_rows():
    assert margin([[[2.0, 1, 0]], [[0, 3, -1]]], [0]) == pytest.approx([-1.0])  # (1 - 3) / 2


def test_correctness_is_a_share_and_a_tie_goes_to_the_lowest_class():
    logits = [[[1.0, 0, 0]], [[0, 1, 0]], [[1, 1, 0]], [[0, 0, 1]]]
    assert correctness(logits, [0]) == pytest.approx([0.5])
    assert correctness(logits, [1]) == pytest.approx([0.25])


@pytest.mark.parametrize(
    ("right", "events"), [("11111", 0), ("00000", 0), ("10101", 2), ("01100", 1), ("00001", 0), ("10000", 1)]
)
def test_forgetting_counts_right_to_wrong(right, events):
    logits = np.array([[[1.0, 0]] if r == "1" else [[0.0, 1]] for r in right])
    assert forgetting(logits, [0]) == [events]


# --- the definition as a loop ----------------------------------------------------------------------------------------


def test_slow_twin():
    logits, labels = random_run()
    for i, gold in enumerate(labels):
        exponents = np.exp(logits[:, i])
        p = exponents / exponents.sum(axis=1, keepdims=True)
        mean = sum(p[:, gold]) / len(p)
        assert confidence(logits, labels)[i] == pytest.approx(mean)
        assert variability(logits, labels)[i] == pytest.approx(
            (sum((q - mean) ** 2 for q in p[:, gold]) / len(p)) ** 0.5
        )
        right = [max(range(3), key=lambda c, e=e: logits[e, i, c]) == gold for e in range(5)]
        assert correctness(logits, labels)[i] == pytest.approx(sum(right) / 5)
        assert forgetting(logits, labels)[i] == sum(a and not b for a, b in pairwise(right))
        gaps = [z[gold] - max(z[c] for c in range(3) if c != gold) for z in logits[:, i]]
        assert margin(logits, labels)[i] == pytest.approx(sum(gaps) / 5)
        spreads = [(sum((q - p[:, c].mean()) ** 2 for q in p[:, c]) / 5) ** 0.5 for c in range(3)]
        assert max_variability(logits)[i] == pytest.approx(max(spreads))


def test_of_two_classes_max_variability_is_the_variability():
    logits = np.random.default_rng(0).normal(size=(4, 50, 2))
    assert max_variability(logits) == pytest.approx(variability(logits, np.arange(50) % 2))


# --- bounds and invariances ------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(2, 4)),
        elements=st.floats(-1e4, 1e4, width=32),
    )
)
def test_bounds(logits):
    epochs, examples, _ = logits.shape
    labels = np.zeros(examples, int)
    mu, sigma = confidence(logits, labels), variability(logits, labels)
    assert ((mu >= 0) & (mu <= 1)).all()
    assert (sigma <= np.sqrt(np.clip(mu * (1 - mu), 0, None)) + 1e-7).all()
    assert (sigma <= (0.5 if epochs % 2 == 0 else np.sqrt(epochs**2 - 1) / (2 * epochs)) + 1e-9).all()
    assert (max_variability(logits) >= sigma - 1e-12).all()
    assert (forgetting(logits, labels) <= epochs // 2).all()
    assert np.isin(np.round(correctness(logits, labels) * epochs, 9), np.arange(epochs + 1)).all()


def test_order_of_examples_and_shift_of_logits_do_not_matter():
    logits, labels = random_run()
    order = np.random.default_rng(1).permutation(len(labels))
    for score in SCORES:
        np.testing.assert_allclose(score(logits[:, order], labels[order]), score(logits, labels)[order])
        np.testing.assert_allclose(score(logits + 7.5, labels), score(logits, labels), atol=1e-9)


def test_huge_logits_neither_overflow_nor_lose_the_margin():
    logits = np.array([[[1e4, 0.0, -1e4]], [[-1e4, 0.0, 1e4]]])
    assert confidence(logits, [0]) == pytest.approx([0.5])
    assert variability(logits, [0]) == pytest.approx([0.5])  # reachable, since E is even
    assert margin(logits, [0]) == pytest.approx([-5000.0])


def test_one_epoch():
    logits, labels = random_run(epochs=1)
    assert (variability(logits, labels) == 0).all()
    assert (forgetting(logits, labels) == 0).all()
    assert set(correctness(logits, labels)) <= {0.0, 1.0}


def test_no_examples():
    assert all(score(np.empty((3, 0, 3)), np.empty(0, int)).shape == (0,) for score in SCORES)


# --- errors ----------------------------------------------------------------------------------------------------------


def test_not_a_number_names_epoch_and_example():
    logits, labels = random_run()
    logits[2, 7, 1] = np.nan
    with pytest.raises(ValueError, match="epoch 2, example 7"):
        confidence(logits, labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([-1] * 40, "label -1 at position 0"),
        ([3] * 40, "not one of 0..2"),
        ([0] * 3, "40 examples"),
        ([0.5] * 40, "integer"),
    ],
)
def test_bad_labels(labels, message):
    with pytest.raises(ValueError, match=message):
        variability(random_run()[0], labels)


def test_wrong_shape():
    with pytest.raises(ValueError, match=r"\(5, 3\)"):
        max_variability(np.zeros((5, 3)))


# --- planted truth ---------------------------------------------------------------------------------------------------


def test_simulated_training_puts_each_kind_where_the_data_map_says():
    """Easy examples rise and stay, mislabelled ones sink, ambiguous ones wander between two labels."""
    rng = np.random.default_rng(0)
    kind = np.repeat(["easy", "mislabelled", "ambiguous"], 200)
    rise = np.linspace(0.5, 4, 6)[:, None] * np.select([kind == "easy", kind == "mislabelled"], [1, -1], 0)
    gold = rise + rng.normal(0, np.where(kind == "ambiguous", 2.5, 0.4), (6, 600))
    logits = np.stack([gold, np.zeros((6, 600)), np.full((6, 600), -3.0)], axis=-1)
    labels = np.zeros(600, int)
    assert roc_auc_score(kind == "mislabelled", -confidence(logits, labels)) > 0.95
    assert roc_auc_score(kind == "mislabelled", -margin(logits, labels)) > 0.95
    assert roc_auc_score(kind == "ambiguous", variability(logits, labels)) > 0.95
    assert roc_auc_score(kind == "ambiguous", max_variability(logits)) > 0.95
    assert roc_auc_score(kind == "easy", correctness(logits, labels)) > 0.95


@pytest.mark.realdata
@pytest.mark.skipif(not os.environ.get("NLI_DATA"), reason="needs the real data: set NLI_DATA to their folder")
def test_published_coordinates_keep_the_bound():
    name = "training_dynamics/winogrande_roberta_0_6_data_map_coordinates.jsonl"
    table = pd.read_json(Path(os.environ["NLI_DATA"]) / name, lines=True)
    mu, sigma = table["confidence"], table["variability"]
    assert len(table) == 40_398
    assert (sigma <= np.sqrt(mu * (1 - mu)) + 1e-9).all()
    assert sigma.max() == pytest.approx(0.4778, abs=5e-5)
    counts = table["correctness"].value_counts()
    assert counts.to_dict() == {6: 24900, 5: 12215, 4: 2208, 3: 698, 2: 266, 1: 84, 0: 27}


def test_a_table_of_scores_has_a_row_for_each_example_and_run():
    runs = []
    for seed in (0, 1):
        logits, labels = random_run(seed)
        runs.append(SimpleNamespace(logits=logits, labels=labels, spec=SimpleNamespace(seed=seed, corpus="planted")))
    table = score_table(runs)
    assert list(table["position"]) == [*range(40), *range(40)]
    assert set(DOUBT) == set(scores(runs[0].logits, runs[0].labels)) < set(table)
    second = table[table["seed"] == 1]
    np.testing.assert_array_equal(second["margin"], margin(runs[1].logits, runs[1].labels))
    assert len(score_table([])) == 0
    assert set(score_table([])) == set(table)


def test_each_score_of_doubt_is_higher_for_a_pair_that_is_learnt_and_forgotten_than_for_a_sure_one():
    sure, wavering = [[5.0, 0.0]] * 4, [[3.0, 0.0], [0.0, 3.0]] * 2
    given = scores(np.stack([sure, wavering], axis=1), np.array([0, 0]))
    assert [name for name, sign in DOUBT.items() if sign * given[name][1] <= sign * given[name][0]] == []
