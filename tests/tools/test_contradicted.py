"""Alone: pytest tests/tools/test_contradicted.py"""

import json

import numpy as np
import pytest
from audited import corpus

from nli_lib.corpora.corpus import LABELS, TWO_WAY
from nli_tools.report import MOST_CONTRADICTED, contradicted


def given(labels, classes=LABELS):
    return corpus([(f"premise {at // 2}", f"text {at}", classes[label]) for at, label in enumerate(labels)], classes)


def sure(predicted, classes, p=0.9):
    rest = (1 - p) / (classes - 1)
    return np.where(np.eye(classes)[predicted] > 0, p, rest)


def test_a_hand_case():
    labels, predicted = [0, 0, 1, 2, 1, 0], [0, 1, 1, 2, 0, 1]
    part = contradicted(given(labels), sure(predicted, 3), how="By hand.")
    found = {name: each["value"] for name, each in part["figures"].items()}
    assert found["accuracy"] == 0.5 and found["contradicted"] == 0.5 and found["majority"] == 0.5
    assert found["predicted neutral, labelled entailment"] == pytest.approx(2 / 6)
    assert found["predicted entailment, labelled neutral"] == pytest.approx(1 / 6)
    assert found["pruned"] == pytest.approx(2 / 6)  # log(.9 / .05) = 2.9 is above 2
    assert [row["uid"] for row in part["rows"]] == ["u1", "u4", "u5"]  # equal gaps, in the corpus's order
    assert part["rows"][0]["gap"]["value"] == pytest.approx(np.log(0.9 / 0.05), abs=1e-4)
    assert all(each["low"] <= each["value"] <= each["high"] for each in part["figures"].values())
    assert json.loads(json.dumps(part, allow_nan=False)) == part


def test_models_that_have_learnt_nothing_are_not_acted_on():
    random = np.random.default_rng(0)
    labels = random.integers(3, size=200)
    part = contradicted(given(labels), sure(random.integers(3, size=200), 3), how="")
    assert not part["learnt"] and part["next"].startswith("Do not act on contradicted labels yet")
    assert len(part["rows"]) == MOST_CONTRADICTED
    part = contradicted(given(labels), sure(labels, 3), how="")
    assert part["learnt"] and part["next"].startswith("Leave the labels as they are") and part["rows"] == []


def test_two_classes_have_no_rule_of_consensus_cleaning():
    labels = np.arange(60) % 2
    wrong = np.where(np.arange(60) < 6, 1 - labels, labels)
    part = contradicted(given(labels, TWO_WAY), sure(wrong, 2), how="")
    assert "pruned" not in part["figures"] and "consensus" not in part["next"]
    assert part["next"].startswith("Read the labels that models contradict, the most contradicted first: 6 of 60")
    assert part["figures"]["predicted not_entailment, labelled entailment"]["value"] == pytest.approx(3 / 60)
