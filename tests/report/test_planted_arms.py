"""An intervention helps where the planted faults say so. Alone: pytest tests/report/test_planted_arms.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora.planted import STRENGTHS, make_split
from nli_lib.report.planted_arms import (
    ALL,
    AMBIGUOUS,
    COLUMNS,
    ENCODER,
    LINEAR,
    PRUNED,
    TRUTH,
    TWIN,
    Z,
    arms,
    expected,
    gains_over_twins,
    linear_accuracy,
    planted_pairs,
)

OFF = dict.fromkeys(STRENGTHS, 0.0)
PLANTED = {"words": {"artifact": 0.6}, "flips": {"flips": 0.25}, "nothing": {}}


def corpora(title, seed, n=400):
    clean = OFF | PLANTED[title] | {"flips": 0.0}
    tests = {split: make_split(split, n, seed, **clean) for split in ("test", "challenge")}
    return make_split("train", n, seed, **(OFF | PLANTED[title])), tests


@pytest.fixture(scope="module")
def measured():
    tables = [
        linear_accuracy(*corpora(title, seed, n), seed=seed).assign(planted=title, learner=LINEAR)
        for title, n in (("words", 1_000), ("flips", 300), ("nothing", 300))
        for seed in range(3)
    ]
    return pd.concat(tables, ignore_index=True)


def test_removing_a_planted_artifact_helps_exactly_on_the_challenge_split(measured):
    found = (
        expected(gains_over_twins(measured), PLANTED, "challenge").set_index(["planted", "arm", "title"]).sort_index()
    )
    assert list(found.reset_index()[COLUMNS]) == COLUMNS
    for arm in (TRUTH, Z):
        assert found.loc[("words", arm, "challenge"), "low"] > 0
        assert found.loc[("words", arm, "test"), "high"] < 0
    assert found.loc[("words", TRUTH, "challenge"), "value"] > found.loc[("words", Z, "challenge"), "value"]
    assert set(found.loc["words", "seen"]) == {"as planted"}
    assert (found.loc["nothing", "expected"] == "no gain").all()
    assert (found.loc["flips", "expected"] == "no gain").all()  # n-grams of the hypothesis cannot learn the task
    wide = measured.pivot_table(index=["planted", "title"], columns="condition", values="accuracy")
    assert wide.loc[("words", "challenge"), ALL] < 0.25 < 0.6 < wide.loc[("words", "test"), ALL]
    assert wide.loc[("nothing", "test"), ALL] == pytest.approx(1 / 3, abs=0.1)


def test_arms_and_their_twins():
    corpus, _ = corpora("flips", 0, n=120)
    random = np.random.default_rng(0)
    logits = random.normal(size=(2, 120, 3)), random.normal(size=(120, 3)) * 3
    found = arms(corpus, *logits, threshold=0.5)
    assert list(found)[:5] == [ALL, TRUTH, Z, PRUNED, AMBIGUOUS] and len(found) == 9
    assert found[ALL].keep.all() and found[AMBIGUOUS].size == 40 and 0 < found[PRUNED].size < 120
    assert (found[TRUTH].keep == ~corpus.table["flipped"].to_numpy(bool)).all()
    for name in (TRUTH, Z, PRUNED, AMBIGUOUS):
        keep, twin = found[name].keep, found[f"{name}{TWIN}"].keep
        assert (
            np.bincount(corpus.labels[keep], minlength=3).tolist()
            == np.bincount(corpus.labels[twin], minlength=3).tolist()
        )
    assert list(arms(corpus))[:3] == [ALL, TRUTH, Z] and len(arms(corpus)) == 5


def test_planted_pairs_are_all_faults_and_nothing_else():
    corpus = make_split("train", 300, 1)
    table = corpus.table
    expected = (table["planted"] != "") | table["flipped"] | table["ambiguous"]
    assert planted_pairs(corpus).tolist() == expected.tolist()
    assert not planted_pairs(make_split("train", 100, 0, **OFF)).any()


@pytest.mark.parametrize(
    ("arm", "learner", "planted", "title", "low", "high", "says", "seen"),
    [
        (Z, LINEAR, "words", "challenge", 0.01, 0.1, "gain", "as planted"),
        (Z, LINEAR, "words", "challenge", -0.1, -0.01, "gain", "not as planted"),
        (Z, LINEAR, "words", "challenge", -0.1, 0.1, "gain", "open"),
        (Z, LINEAR, "words", "challenge", np.nan, np.nan, "gain", "open"),
        (Z, LINEAR, "words", "test", 0.01, 0.1, "no gain", "not as planted"),
        (Z, LINEAR, "words", "test", -0.1, 0.1, "no gain", "as planted"),
        (Z, ENCODER, "flips", "test", 0.01, 0.1, "no gain", "not as planted"),
        (PRUNED, ENCODER, "flips", "test", 0.01, 0.1, "gain", "as planted"),
        (PRUNED, ENCODER, "words", "challenge", -0.1, -0.01, "no gain", "as planted"),
        (TRUTH, LINEAR, "flips", "test", -0.1, 0.1, "no gain", "as planted"),
        (TRUTH, ENCODER, "flips", "challenge", -0.1, 0.1, "gain", "open"),
        (AMBIGUOUS, ENCODER, "words", "challenge", 0.1, 0.2, "no gain", "not as planted"),
        (TRUTH, ENCODER, "nothing", "test", 0.1, 0.2, "no gain", "not as planted"),
    ],
)
def test_what_is_expected_and_what_is_seen(arm, learner, planted, title, low, high, says, seen):
    row = {"planted": planted, "learner": learner, "arm": arm, "title": title, "value": 0.0, "low": low, "high": high}
    found = expected(pd.DataFrame([row | {"seeds": 3}]), PLANTED, "challenge").iloc[0]
    assert (found["expected"], found["seen"]) == (says, seen)


def test_gains_are_within_a_seed_and_against_the_own_twin():
    rows = [("w", LINEAR, "test", name, seed, 100, value) for name, values in
            {Z: (0.5, 0.7), Z + TWIN: (0.4, 0.4), TRUTH: (0.9, 0.9), ALL: (0.1, 0.1)}.items()
            for seed, value in enumerate(values)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["planted", "learner", "title", "condition", "seed", "n", "accuracy"])
    found = gains_over_twins(table)
    assert found["arm"].tolist() == [Z]  # the other has no twin in the table
    assert found["value"].iloc[0] == pytest.approx(0.2)
