"""Alone: pytest tests/tools/test_level_figures.py"""

import json

import numpy as np
import pytest
from audited import corpus

from nli_lib.corpora.corpus import LABELS, TWO_WAY
from nli_lib.measure.dynamics import dynamics_features, levels
from nli_tools import report
from nli_tools.report import CONTRADICTED, WORDS, level_figures


@pytest.fixture(autouse=True)
def two_mixtures(monkeypatch):
    """Of five: each fit takes a tenth of a second or two, and these tests ask for dozens."""
    monkeypatch.setattr(report, "MIXTURES", 2)


def given(n=120, classes=LABELS):
    rows = [(f"premise {at // 3}", " ".join(["w"] * (1 + at % 4)), classes[at % len(classes)]) for at in range(n)]
    return corpus(rows, classes)


def trainings(own, count, seed=0):
    """Logits of models that learn most pairs at once, some late and every tenth never."""
    random, made = np.random.default_rng(seed), []
    n, classes = len(own), len(own.classes)
    kind = np.where(np.arange(n) % 10 == 0, -4.0, np.where(np.arange(n) % 3 == 0, 1.5, 4.0))
    for _ in range(count):
        views = []
        for strength in (1.0, 0.5):
            gold = np.eye(classes)[own.labels] * (kind * strength)[:, None]
            views.append(np.linspace(0.4, 1, 4)[:, None, None] * gold + random.normal(0, 0.3, (4, n, classes)))
        made.append(tuple(views))
    return made


def test_shares_are_those_of_a_plain_count():
    own = given()
    runs = trainings(own, 2)
    wrong = np.arange(120) % 10 == 0
    part = level_figures(own, runs, contradicted=wrong, said="two trainings")
    found = {name: each["value"] for name, each in part["figures"].items()}
    level = [levels(dynamics_features(*each, own.labels), seed=0) for each in runs]
    for at, name in enumerate(("easy", "ambiguous", "hard")):
        assert found[name] == pytest.approx(np.mean([np.mean(each == at) for each in level]))
        members = [np.flatnonzero(each == at) for each in level]
        share = np.mean([np.mean([own.labels[i] == 1 for i in rows]) for rows in members])
        assert found[f"{name}: neutral"] == pytest.approx(share)
        assert found[f"{name}: {CONTRADICTED}"] == pytest.approx(np.mean([wrong[rows].mean() for rows in members]))
        words = np.mean([np.mean([len(own.hypothesis[i].split()) for i in rows]) for rows in members])
        assert found[f"{name}: {WORDS}"] == pytest.approx(words)
    assert sum(found[name] for name in ("easy", "ambiguous", "hard")) == pytest.approx(1)
    right = np.mean([each[0][-1].argmax(axis=1) == own.labels for each in runs])
    assert found["fitted by the pair"] == pytest.approx(right)
    shares = [each for each in part["figures"].values() if each["unit"] == "share"]
    assert all(0 <= each["low"] <= each["value"] <= each["high"] <= 1 for each in shares)
    assert {each["trainings"] for each in shares} == {2} and "trainings" in part["figures"]["easy"]["over"]
    assert json.loads(json.dumps(part, allow_nan=False)) == part


def test_wrong_labels_that_gather_in_the_hard_level_are_found_and_shown():
    own = given()
    wrong = np.arange(120) % 10 == 0
    part = level_figures(own, trainings(own, 2), contradicted=wrong)
    assert part["learnt"] and part["next"].startswith("Review the ") and "wrong labels gather there" in part["next"]
    assert {int(row["uid"][1:]) % 10 for row in part["rows"]} == {0}
    elsewhere = level_figures(own, trainings(own, 2), contradicted=np.roll(wrong, 1))
    assert elsewhere["next"].startswith("Do not take the ")
    few = level_figures(own, trainings(own, 2), contradicted=np.isin(np.arange(120), [0, 20, 41, 61]))
    assert "which may be chance" in few["next"]
    without = level_figures(own, trainings(own, 1))
    assert without["next"].startswith("Look at the ") and "another training" not in without["figures"]
    assert f"hard: {CONTRADICTED}" not in without["figures"]


def test_levels_of_models_that_have_learnt_nothing_or_never_agree_are_not_read():
    own, random = given(), np.random.default_rng(3)
    nothing = [tuple(random.normal(size=(2, 4, 120, 3))) for _ in range(2)]
    part = level_figures(own, nothing)
    assert not part["learnt"] and part["next"].startswith("Do not read the levels yet")
    moved = []
    for at in range(2):
        order = random.permutation(120)
        pair, hypothesis = trainings(own, 1, seed=at)[0]
        scale = np.abs(pair).max(axis=(0, 2))[order] + 0.5
        gold = np.eye(3)[own.labels] * scale[:, None] * np.linspace(0.4, 1, 4)[:, None, None]
        moved.append((gold, hypothesis[:, random.permutation(120)]))
    part = level_figures(own, moved)
    assert part["next"].startswith("Do not cut the corpus by difficulty")


def test_two_classes_have_levels_too_and_equal_pairs_have_none():
    own = given(classes=TWO_WAY)
    part = level_figures(own, trainings(own, 1), contradicted=np.zeros(120, bool))
    assert "easy: not_entailment" in part["figures"] and part["figures"]["easy"]["trainings"] == 1
    with pytest.raises(ValueError, match="groups"):
        level_figures(own, [(np.zeros((4, 120, 2)), np.zeros((4, 120, 2)))])
