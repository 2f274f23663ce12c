"""What became of perturbations. Run alone: pytest tests/report/test_perturbed.py"""

import os

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import load
from nli_lib.corpora.planted import counterfactuals
from nli_lib.generate.perturb import HOLDS, REASONS
from nli_lib.report.perturbed import (
    DIRECTIONS,
    EVERY,
    cross_labelled,
    draw_originals,
    missed_estimate,
    other_premises,
    reason_table,
    released_table,
    separation,
    shifts_of,
    spans_missed,
    suffix_gap,
    survival_table,
    truth_table,
)
from nli_lib.select.selection import KEPT, Selection

PAIRS = pd.DataFrame({"position": [0, 0, 0, 1, 1, 2], "direction": ["e2n", "e2n", "e2c", "n2c", "n2c", "c2e"]})


def test_equally_many_originals_of_each_label_and_none_that_was_not_kept():
    labels = np.array([0] * 50 + [1] * 30 + [2] * 4)
    keep = np.arange(84) % 2 == 0
    found = draw_originals(keep, labels, 30, seed=3)
    assert np.bincount(labels[found]).tolist() == [10, 10, 2] and keep[found].all()
    assert (np.diff(found) > 0).all() and (found == draw_originals(keep, labels, 30, seed=3)).all()
    assert len(draw_originals(np.zeros(84, dtype=bool), labels, 30)) == 0
    assert len(draw_originals(np.ones(80, dtype=bool), np.arange(80) % 2, 30)) == 30  # of two classes as many


def test_a_teacher_does_not_learn_from_the_premises_it_judges():
    originals, revised = counterfactuals(20, 0)
    found = other_premises(revised, revised.premise[:3])
    assert not found.keep[:3].any() and found.size == (~np.isin(revised.premise, revised.premise[:3])).sum()
    assert other_premises(originals, []).keep.all()


def test_survival_by_direction_and_a_direction_without_problems_or_survivors():
    table = survival_table(PAIRS, {"asked": np.ones(6), "kept": [1, 0, 0, 1, 1, 0]}).set_index(["direction", "step"])
    assert table.loc[(EVERY, "kept"), ["count", "n"]].tolist() == [3, 6]
    assert table.loc[("e2n", "kept"), "share"] == 0.5 and table.loc[("n2c", "kept"), "share"] == 1
    assert table.loc[("c2e", "kept"), "count"] == 0 and table.loc[("c2e", "kept"), "share"] == 0
    assert table.loc[("c2n", "kept"), "n"] == 0 and np.isnan(table.loc[("c2n", "kept"), "share"])
    assert set(table.index.get_level_values(0)) == {EVERY, *DIRECTIONS}


def test_reasons_by_version():
    passed = Selection(np.array([True] * 5 + [False]), np.array([KEPT] * 5 + [HOLDS], dtype=object))
    table = reason_table(PAIRS, {"2022": passed}, REASONS).set_index("reason")
    assert table.loc[HOLDS, "count"] == 1 and table.loc[KEPT, "count"] == 5 and table["count"].sum() == 6
    assert reason_table(PAIRS[:0], {"2022": passed}, REASONS).empty


def test_shifts_of_two_teachers_by_hand():
    before, after = np.log([[0.5, 0.3, 0.2]]), np.log([[0.1, 0.8, 0.1], [0.5, 0.3, 0.2]])
    found = shifts_of([(before, after), (before, after[::-1])], [0, 0], [1, 1])
    assert np.allclose(found, [[0.5, 0], [0, 0.5]])
    assert shifts_of([(before, after[:0])], [], []).shape == (1, 0)


def test_what_two_spans_miss_by_hand_and_by_simulation():
    kept = [True, False, False, True, True, False]
    found = spans_missed(PAIRS, kept).set_index(["position", "direction"])
    assert found.loc[(0, "e2n"), "missed_0"] == pytest.approx(0.25)  # one of two, drawn twice
    assert found.loc[(0, "e2n"), "missed_apart_0"] == 0
    assert found.loc[(1, "n2c"), "missed_0"] == 0
    assert np.isnan(found.loc[(0, "e2c"), "missed_0"])
    five = pd.DataFrame({"position": [0] * 5, "direction": ["e2n"] * 5})
    exact = spans_missed(five, [True, True, False, False, False]).iloc[0]
    rng = np.random.default_rng(0)
    draws = rng.integers(5, size=(20_000, 2))
    assert exact["missed_0"] == pytest.approx((draws >= 2).all(axis=1).mean(), abs=0.01)
    assert exact["missed_apart_0"] == pytest.approx(3 / 10)


def test_the_estimate_leaves_out_what_has_one_span_or_nothing_kept():
    missed = spans_missed(PAIRS, [[1, 0, 1, 1, 1, 0], [1, 1, 0, 1, 0, 0]])
    found = missed_estimate(missed, 2)
    assert found.value == pytest.approx(np.mean([np.mean([0.25, 0]), np.mean([0, 0.25])]))
    assert (found.n, found.seeds, found.over) == (2, 2, "premises and trainings")
    assert missed_estimate(spans_missed(PAIRS, np.zeros((2, 6), dtype=bool)), 2) is None
    assert missed_estimate(spans_missed(PAIRS[:0], np.zeros((1, 0), dtype=bool)), 1) is None


def test_revisions_with_the_label_they_have_and_the_one_they_have_not():
    originals, revised = counterfactuals(10, 0)
    found = cross_labelled(originals, revised)
    assert len(found) == 40 and found["true"].sum() == 20
    assert (found.loc[found["true"], "label"].to_numpy() == revised.labels[found.loc[found["true"], "row"]]).all()
    assert (found["label"].to_numpy() != originals.labels[found["position"]]).all()
    assert not found.duplicated(["row", "label"]).any()
    assert cross_labelled(originals[:0], revised).empty


def test_separation_of_a_perfect_and_of_a_blind_teacher():
    true, groups = np.arange(200) % 2 == 0, np.arange(200) // 2
    perfect = separation(np.where(true, 0.9, 0.1), true, groups)
    assert (perfect.value, perfect.low, perfect.high, perfect.n) == (1, 1, 1, 100)
    blind = separation(np.zeros((3, 200)), true, groups)
    assert blind.value == 0.5 and blind.seeds == 3
    with pytest.raises(ValueError, match="nothing to tell apart"):
        separation(np.zeros(4), np.ones(4, dtype=bool), np.arange(4))


def test_what_filters_keep_of_true_and_broken_pairs():
    true = np.array([True, True, False, False])
    table = truth_table(true, np.arange(4), {"half": [1, 0, 1, 0], "none": [0, 0, 0, 0]}).set_index(["filter", "label"])
    assert table.loc[("half", "true"), "share"] == 0.5 and table.loc[("half", "broken"), "pure"] == 0.5
    assert np.isnan(table.loc[("none", "true"), "pure"]) and table.loc[("none", "true"), "count"] == 0
    assert truth_table(true, np.arange(4), {}).empty


def test_the_words_more_than_the_span_by_hand():
    rows = [
        ("A man runs home.", "runs", "walks all the way", None),  # masked, 3 more
        ("A man runs home.", "home", "very far away now", None),  # ends the premise
        ("A cat sits here.", "sits", "sleeps", "A cat "),  # inserted, 0 more
    ]
    table = pd.DataFrame(rows, columns=["origin_premise", "span_prev", "gen_out", "prefix"])
    assert suffix_gap(table).value == 3


@pytest.mark.realdata
@pytest.mark.skipif(not os.environ.get("NLI_DATA"), reason="NLI_DATA is not set: the real corpora are not read")
def test_the_released_files_are_what_they_are_said_to_be():
    table = released_table({split: load("disco", split) for split in ("e2n", "n2c")}).set_index("title")
    assert table["n"].tolist() == [5698, 3476] and table["dropped"].tolist() == [0, 5]
    assert table["lowest"].tolist() == pytest.approx([0.15003, 0.15004], abs=6e-6)
    assert table.loc["n2c", "by_insertion"] == pytest.approx(1667 / 3476, abs=1e-5)
