"""What a bias head says, in nats, worked by hand. Alone: pytest tests/measure/test_bias_evidence.py"""

import math

import numpy as np
import pytest

from nli_lib.measure.giveaways import bias_evidence

LABELS = np.array([0, 1, 2, 0, 1, 2])


def by_definition(logits, labels):
    rows = [[math.exp(each) / sum(map(math.exp, row)) for each in row] for row in logits]
    mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    evidence = sum(math.log(row[label]) - math.log(mean[label]) for row, label in zip(rows, labels, strict=True))
    moves = sum(p * math.log(p / q) for row in rows for p, q in zip(row, mean, strict=True))
    leans = sum(q * math.log(3 * q) for q in mean)
    return {"evidence": evidence / len(rows), "moves": moves / len(rows), "leans": leans}


@pytest.mark.parametrize("seed", range(3))
def test_as_defined(seed):
    logits = np.random.default_rng(seed).normal(size=(6, 3))
    assert bias_evidence(logits, LABELS) == pytest.approx(by_definition(logits, LABELS))


def test_a_head_that_says_nothing_is_neutral():
    assert bias_evidence(np.full((6, 3), 7.0), LABELS) == pytest.approx({"evidence": 0, "moves": 0, "leans": 0})


def test_a_head_that_leans_knows_nothing():
    found = bias_evidence(np.tile([2.0, 0.0, 0.0], (6, 1)), LABELS)
    assert found["evidence"] == pytest.approx(0) and found["moves"] == pytest.approx(0) and found["leans"] > 0.3


def test_a_head_that_knows_and_one_that_moves_at_random():
    knows = np.eye(3)[LABELS] * 50
    found = bias_evidence(knows, LABELS)
    assert found["evidence"] == pytest.approx(math.log(3)) and found["leans"] == pytest.approx(0)
    wrong = bias_evidence(np.eye(3)[(LABELS + 1) % 3] * 4, LABELS)
    assert wrong["evidence"] < 0 and wrong["moves"] > 0.5


def test_sure_predictions_stay_finite_and_order_does_not_count():
    logits = np.array([[900.0, -900, 0], [0, 900, -900], [0, 0, 900]])
    found = bias_evidence(logits, [0, 1, 2])
    assert all(math.isfinite(value) for value in found.values())
    some = np.random.default_rng(1).normal(size=(30, 3))
    labels, order = np.arange(30) % 3, np.random.default_rng(2).permutation(30)
    assert bias_evidence(some, labels) == pytest.approx(bias_evidence(some[order], labels[order]))


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="not finite"):
        bias_evidence([[np.nan, 0, 0]], [0])
    with pytest.raises(ValueError, match="label 3"):
        bias_evidence([[0.0, 0, 0]], [3])
