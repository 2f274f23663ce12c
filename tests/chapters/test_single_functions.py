"""Chapters that have one function or two of their own. Run alone: pytest tests/chapters/test_single_functions.py"""

import numpy as np
import pandas as pd
import pytest
from cells import functions, measured
from hypothesis import given, settings, strategies as st
from scipy import sparse
from tiny_models import write_encoder

from nli_lib.stats import t_interval
from nli_lib.study import dial

# ---------------------------------------------------------------- 16: similarity by label


def test_effects_of_neighbouring_labels():
    labels = np.repeat(["entailment", "neutral", "contradiction"], 4)
    table = pd.DataFrame({"label": labels, "similarity": [9, 8, 9, 8, 1, 2, 1, 2, 2, 1, 2, 1]})
    effects = functions("16_artifacts").label_effects(table)
    # every entailment is closer; neutral and contradiction tie
    assert effects == {"entailment over neutral": 1.0, "neutral over contradiction": 0.0}


# ---------------------------------------------------------------- 20: the pair quoted beside a feature

FIRST_PAIRS = functions("20_z_statistics").first_pairs


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 4))), max_size=12))
def test_first_pairs_are_those_of_a_search(pairs):
    dense = np.array([[at in held for at in range(5)] for _, held in pairs], bool).reshape(-1, 5)
    labels = np.array([label for label, _ in pairs], dtype=int)
    found = FIRST_PAIRS(sparse.csr_array(dense), labels, n_classes=3)
    for feature, label in np.ndindex(5, 3):
        expected = [i for i in range(len(pairs)) if dense[i, feature] and labels[i] == label]
        assert found[feature, label] == (expected or [-1])[0]


# ---------------------------------------------------------------- 31: how accuracy climbs from fold to fold


def test_a_sawtooth_climbs_and_a_level_does_not():
    climb, fold = functions("31_cross_scoring").climb, np.arange(10)
    assert climb(fold, 0.88 + 0.02 * (fold % 5)) == pytest.approx(0.02)
    assert climb(fold, np.full(10, 0.88)) == pytest.approx(0)
    assert climb(np.arange(2), np.array([0.6, 0.7])) == pytest.approx(0.1)
    assert climb(np.arange(3), np.array([0.5, 0.6, 0.9])) == pytest.approx(0.1)  # the last fold alone has no slope


# ---------------------------------------------------------------- 32: how well a score finds wrong labels

RETRIEVAL = functions("32_which_labels_are_wrong").retrieval


def test_a_score_that_knows_stands_above_chance_and_a_random_one_does_not():
    generator = np.random.default_rng(0)
    wrong = generator.random(400) < 0.2
    knows = RETRIEVAL(wrong + generator.normal(0, 0.5, 400), wrong, (10, 50, 1000), resamples=200)
    assert 0.6 < knows["low"] <= knows["area"] <= knows["high"]
    assert list(knows) == ["area", "low", "high", "n", "wrong", "at 10", "at 50"]  # 1,000 are not there
    by_chance = RETRIEVAL(generator.random(400), wrong, (), resamples=200)
    assert by_chance["low"] < wrong.mean() < by_chance["high"]


def test_a_resample_without_a_wrong_example_does_not_count():
    """The one wrong example has the highest score: every resample that holds it has an area of 1."""
    found = RETRIEVAL(np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, False, False, False]), (), resamples=200)
    assert (found["low"], found["area"], found["high"]) == (1, 1, 1)


# ---------------------------------------------------------------- 52: the control for the size of the hard level


def significant(shares, **columns):
    rows = [(training, share) for training, of in enumerate(shares) for share in of]
    return pd.DataFrame(rows, columns=["training", "significant"]).assign(**columns)


def test_the_smaller_share_is_parts_minus_hard_over_trainings():
    smaller_share = functions("52_spurious_measures").smaller_share
    hard, easy = significant([[1, 0], [0, 0], [1, 1]], level="hard"), significant([[1], [1], [1]], level="easy")
    drops = np.array([0.2, 0.6, -0.4])  # parts of .7, .6 and .6 against .5, 0 and 1
    found = smaller_share(pd.concat([hard, easy]), significant([[0.6, 0.8], [0.6, 0.6], [0.5, 0.7]]))
    assert found.value == pytest.approx(drops.mean()) and found[3:] == (2, 3, "pairs and trainings")
    assert found.high - found.value > t_interval(drops).high - drops.mean()  # the parts differ as well
    alone = smaller_share(significant([[1, 0]], level="hard"), significant([[0.6, 0.8]]))
    assert alone.value == pytest.approx(0.2) and alone[4:] == (1, "pairs")


# ---------------------------------------------------------------- 53: flags by level and label, between encoders

CELL_AGREEMENT = functions("53_across_encoders").cell_agreement


def levels(**columns):
    """300 pairs in three trainings, each of which has levels of its own."""
    gold, parts = np.random.default_rng(9).integers(0, 3, 300), []
    for training in range(3):
        level = np.random.default_rng(training).permutation(np.repeat([0, 1, 2], [150, 75, 75]))
        place = {"training": training, "position": np.arange(300), "premise": np.arange(300) // 3}
        parts.append(pd.DataFrame({**place, "level": level, "gold": gold, "flag": (gold == 2).astype(float)}))
    return pd.concat(parts, ignore_index=True).assign(**columns)


def test_cells_agree_with_themselves_and_one_that_one_of_the_two_lacks_is_left_out():
    pairs = levels(moved=lambda t: t["level"] % 2)
    assert all(CELL_AGREEMENT(pairs, "flag", "level", other).value == pytest.approx(1) for other in ("level", "moved"))


def test_the_agreement_by_hand():
    flags = np.tile(np.random.default_rng(1).integers(0, 2, 300), 3).astype(float)
    pairs, by_hand = levels(flag=flags, moved=lambda t: np.roll(t["level"], 7)), []
    found = CELL_AGREEMENT(pairs, "flag", "level", "moved")
    for _, part in pairs.groupby("training"):
        one, two = (part.groupby([column, "gold"])["flag"].mean() for column in ("level", "moved"))
        by_hand.append(np.corrcoef(one, two)[0, 1])
    assert found.value == pytest.approx(np.mean(by_hand)) and -1 <= found.low < found.value < found.high <= 1
    assert t_interval(by_hand).high > 1 and found.high == 1  # no correlation is beyond 1, whatever the spread of three


# ---------------------------------------------------------------- 15: without the pairs of chapter 13


def test_without_generated_pairs_their_sets_are_left_out_and_the_others_are_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(dial.read_scale("smoke"), "model", write_encoder(tmp_path / "encoder", ["the", "a", "not"]))
    left = measured("15_train_on_wanli", tmp_path, monkeypatch)
    assert left.study.table("generated").iloc[0].tolist() == [0, 0, 0]
    assert left.study.table("left_out")["pairs"].tolist() == [0] * 4
    conditions = left.study.table("sets")["condition"].unique()
    assert [name for name in conditions if "generated" in name or "relabelled" in name] == []
    assert {"Planted", "challenge", "Planted ◇ challenge", "Planted + random twin"} <= set(conditions)
