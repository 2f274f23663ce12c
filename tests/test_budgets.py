"""Alone: pytest tests/test_budgets.py"""

import itertools

import numpy as np
import pandas as pd
import pytest
from cells import answered, functions, ran
from scipy import stats

from nli_lib import compare
from nli_lib.claims import ledger, read_claims
from nli_lib.compare import BASE, PLAIN, WEIGHTED, certainly_above, ranks, scores, smallest_detectable
from nli_lib.paths import RESULTS
from nli_lib.select.arms import ARM
from nli_lib.select.selection import TWIN
from nli_lib.stats import t_interval, with_trainings

CELLS, GROUPS = functions("61_equal_budgets"), {"near": ["a"], "far": ["b", "c"], "nothing at hand": []}
COUNTS, SIZES = {"a": 200, "b": 400, "c": 200}, {"a": 1000, "b": 3000, "c": 1000}
PREMISES = {title: [f"p{at // 2}" for at in range(n)] for title, n in COUNTS.items()}


def answers(accuracy, seeds, random):
    return {title: random.random((seeds, n)) < accuracy for title, n in COUNTS.items()}


def bench(accuracies, seeds=5, seed=0):
    """arm -> (accuracy, its twin's), all independent."""
    random = np.random.default_rng(seed)
    pairs = {(arm, which): p for arm, both in accuracies.items() for which, p in zip((ARM, TWIN), both, strict=True)}
    return {key: answers(accuracy, seeds, random) for key, accuracy in pairs.items()}


RIGHT = bench({"base": (0.6, 0.6), "helps": (0.8, 0.6), "harms": (0.5, 0.65), "nothing": (0.6, 0.6)})


def test_an_average_by_hand():
    # one training; a: 1 of 2 right, b: 2 of 2, c: 0 of 2; c weighs three times as much as b
    flags = {"a": [[1, 0]], "b": [[1, 1]], "c": [[0, 0]]}
    right = {("base", ARM): {title: np.array(each, bool) for title, each in flags.items()}}
    table = scores(right, {"all": ["a", "b", "c"], "far": ["b", "c"]}, {"a": 5, "b": 1, "c": 3})
    value = table.set_index(["group", "average"])["value"]
    assert value["all", PLAIN] == 0.5 and value["far", PLAIN] == 0.5
    assert value["all", WEIGHTED] == pytest.approx((5 * 0.5 + 1 * 1) / 9) and value["far", WEIGHTED] == 0.25


def test_planted_differences_are_found_and_no_others():
    table = compare.against_twins(RIGHT, PREMISES, GROUPS, SIZES).set_index(["arm", "group", "average"])
    assert len(table) == 4 * 2 * 2  # a group without a test set has no row
    for group, average in itertools.product(("near", "far"), (PLAIN, WEIGHTED)):
        assert table.loc[("helps", group, average), "low"] > 0 > table.loc[("harms", group, average), "high"]
        assert table.loc[("helps", group, average), "p, Holm"] < 0.05
        null = table.loc[("nothing", group, average)]
        assert null["low"] < 0 < null["high"] and null["p, Holm"] > 0.05
    assert (table["p, Holm"] >= table["p"]).all()
    assert set(table["over"]) == {"premises and trainings"} and set(table["seeds"]) == {5}


def test_the_order_of_arms_and_of_test_sets_changes_nothing():
    turned = {key: dict(reversed(each.items())) for key, each in reversed(RIGHT.items())}
    columns = ["arm", "group", "average", "value", "low", "high", "p", "p, Holm"]
    one = compare.against_twins(RIGHT, PREMISES, GROUPS, SIZES)[columns]
    other = compare.against_twins(turned, PREMISES, GROUPS, SIZES)[columns]
    one, other = (each.sort_values(columns[:3], ignore_index=True) for each in (one, other))
    pd.testing.assert_frame_equal(one, other)
    places = (ranks(scores(each, GROUPS, SIZES)) for each in (RIGHT, turned))
    pd.testing.assert_frame_equal(*(each.sort_values(columns[1:3] + columns[:1], ignore_index=True) for each in places))


def test_p_ends_where_the_interval_does():
    random = np.random.default_rng(1)
    for _ in range(30):
        single = random.normal(random.uniform(0, 0.04), 0.02, 4)
        found = with_trainings(single.mean(), random.normal(0, 0.01, 200), single, n=100)
        parts = compare.errors(found, single)
        assert (compare.p_value(found.value, *parts, 3) < 0.05) == (found.low > 0 or found.high < 0)
        assert compare.half_width(*parts, 3) == pytest.approx(found.high - found.value) and np.hypot(*parts) > 0
    # trainings alone: Student's t test; one training: a normal one
    single = np.array([0.01, 0.03, 0.02, 0.05])
    parts = compare.errors(t_interval(single), single)
    assert compare.p_value(single.mean(), *parts, 3) == pytest.approx(stats.ttest_1samp(single, 0).pvalue)
    assert (
        compare.p_value(0.02, 0.0, 0.01, 0) == pytest.approx(2 * stats.norm.sf(2)) and compare.p_value(0, 0, 0, 2) == 1
    )


def test_the_spread_between_trainings_is_drawn_towards_what_the_arms_have_in_common():
    """Variances around .5 with 6 degrees of freedom of their own, seen with 2: Smyth's estimate finds both."""
    random, freedom = np.random.default_rng(0), pd.Series(np.full(50_000, 2.0))
    true = 0.5 * 6 / random.chisquare(6, len(freedom))
    seen = pd.Series(true * random.chisquare(2, len(freedom)) / 2)
    found, total = compare.moderated(seen, freedom)
    assert total.iloc[0] == pytest.approx(2 + 6, rel=0.05)
    by_hand = (6 * 0.5 + 2 * seen) / 8
    assert found.to_numpy() == pytest.approx(by_hand.to_numpy(), rel=0.05)
    gaps = random.normal(0, np.sqrt(true / 3))
    assert (2 * stats.t.sf(np.abs(gaps) / np.sqrt(found / 3), total) < 0.05).mean() == pytest.approx(0.05, abs=0.006)
    alike, total = compare.moderated(pd.Series([1.0, 1.1, 0.9, 0.0]), pd.Series([2.0, 3.0, 2.0, 2.0]))
    assert total.tolist() == [9] * 4 and alike.std() < 0.01  # as one variance, that of the arm without spread too
    alone = compare.moderated(pd.Series([0.3]), pd.Series([2.0]))
    assert [part.tolist() for part in alone] == [[0.3], [2.0]]


def test_the_smallest_detectable_difference_is_found_four_times_in_five():
    random, spread, sampling = np.random.default_rng(0), 0.02, 0.004
    for trainings in (3, 5, 10):
        truth = smallest_detectable(spread, trainings, premises=sampling)
        single = truth + random.normal(0, sampling, (4000, 1)) + random.normal(0, spread, (4000, trainings))
        error = single.std(axis=1, ddof=1) / np.sqrt(trainings)
        half = np.hypot(stats.t.ppf(0.975, trainings - 1) * error, stats.norm.ppf(0.975) * sampling)
        assert (single.mean(axis=1) > half).mean() == pytest.approx(0.8, abs=0.06)
    assert np.isnan(smallest_detectable(spread, 1))
    assert smallest_detectable(0, 5, premises=0.01) == pytest.approx(0.01 * (1.95996 + 0.84162), rel=1e-4)
    assert smallest_detectable(spread, 5, family=90) > smallest_detectable(spread, 5) > smallest_detectable(spread, 9)


FREEDOM = dict.fromkeys(itertools.product(GROUPS, (PLAIN, WEIGHTED)), 20)


def test_what_can_be_detected_comes_from_two_draws_of_the_base():
    table = CELLS.detectable_table(RIGHT, PREMISES, GROUPS, SIZES, [3, 5], (1, 3, 30), FREEDOM)
    assert len(table) == 2 * 2 * 2 and set(table["base trainings"]) == {5}
    means = {which: RIGHT["base", which]["a"].mean(axis=1) for which in (ARM, TWIN)}
    near = table[(table["group"] == "near") & (table["average"] == PLAIN)]
    assert near["spread"].tolist() == pytest.approx([(means[ARM] - means[TWIN]).std(ddof=1)] * 2)
    assert (table[["of all", "declared", "alone"]].diff(axis=1).iloc[:, 1:] < 0).all(axis=None)
    assert near["alone"].iloc[0] > near["alone"].iloc[1]
    one = {key: {title: each[:1] for title, each in right.items()} for key, right in RIGHT.items()}
    assert CELLS.detectable_table(one, PREMISES, GROUPS, SIZES, [1, 5], (1, 3, 30), FREEDOM)["alone"].isna().all()


def slowly(values):
    """Tukey's comparisons arm by arm, as the definition says."""
    arms, trainings, row = len(values), len(values[0]), [np.mean(each) for each in values]
    column = [np.mean([each[s] for each in values]) for s in range(trainings)]
    total = sum((values[k][s] - row[k] - column[s] + np.mean(row)) ** 2 for k in range(arms) for s in range(trainings))
    error = np.sqrt(total / ((arms - 1) * (trainings - 1)) / trainings)
    limit, places = stats.studentized_range.ppf(0.95, arms, (arms - 1) * (trainings - 1)) * error, []
    for k in range(arms):
        better = sum(row[j] - row[k] > limit for j in range(arms))
        worse = sum(row[k] - row[j] > limit for j in range(arms))
        places.append((1 + sum(row[j] > row[k] for j in range(arms)), 1 + better, arms - worse))
    return places


def test_ranks_are_those_of_the_slow_twin():
    random = np.random.default_rng(3)
    values = np.linspace(0.5, 0.6, 6)[:, None] + random.normal(0, 0.01, (6, 4)) + random.normal(0, 0.05, 4)
    rows = [("arm", ARM, "g", PLAIN, s, values[k, s], k) for k in range(6) for s in range(4)]
    table = pd.DataFrame(rows, columns=["arm", "which", "group", "average", "training", "value", "k"])
    found = ranks(table.assign(arm=table["k"].map("arm {}".format))).set_index("arm")
    for k, expected in enumerate(slowly(values)):
        assert tuple(found.loc[f"arm {k}", ["rank", "best", "worst"]]) == expected
    assert found.loc["arm 5", "rank"] == 1 and found.loc["arm 0", "best"] > 1
    # what all arms of a training share is no noise of the comparison
    assert np.array_equal(certainly_above(values), certainly_above(values + random.normal(0, 9, 4)))


def test_of_equal_arms_the_places_hold_at_once_in_95_of_100():
    random = np.random.default_rng(4)
    wrong = [certainly_above(random.normal(size=(8, 4))).any() for _ in range(600)]
    assert np.mean(wrong) == pytest.approx(0.05, abs=0.025)


def test_places_without_trainings_to_compare_are_open():
    assert not certainly_above(np.arange(4.0)[:, None]).any() and not certainly_above(np.ones((1, 5))).any()
    one = {key: {title: each[:1] for title, each in right.items()} for key, right in RIGHT.items()}
    table = ranks(scores(one, GROUPS, SIZES))
    assert set(table["best"]) == {1} and set(table["worst"]) == {4}
    same = {(arm, ARM): RIGHT["base", ARM] for arm in ("x", "y")}
    assert ranks(scores(same, GROUPS, SIZES))["rank"].tolist() == [1] * 8 and ranks(scores({}, GROUPS, SIZES)).empty


def test_arms_of_fewer_trainings_are_compared_over_those_that_both_have():
    fewer = {**RIGHT, ("helps", ARM): {title: each[:3] for title, each in RIGHT["helps", ARM].items()}}
    table = compare.above_base(fewer, PREMISES, GROUPS, SIZES).set_index("arm")
    assert set(table.loc["helps", "seeds"]) == {3} and set(table.loc["harms", "seeds"]) == {5}
    assert set(ranks(scores(fewer, GROUPS, SIZES))["trainings"]) == {3}


def test_a_point_has_a_price_only_where_something_was_gained():
    rows = [("x", 0.02), ("y", -0.01), ("z", 0.005)]
    gains = pd.DataFrame(rows, columns=["arm", "value"]).assign(group="g", average=PLAIN, low=0.0, high=0.1)
    costs = pd.DataFrame({"arm": ["base", "x", "y", "z"], "seconds": [10, 30, 50, 5], "labels": [100, 100, 300, 400]})
    table = CELLS.price_of_a_point(gains, costs).set_index("arm")
    assert table.loc["x", "seconds"] == 10 and table.loc["x", "labels"] == 0
    assert table.loc["y", ["seconds", "labels"]].isna().all()
    assert table.loc["z", "seconds"] == -10 and table.loc["z", "labels"] == 600


def test_two_base_corpora_side_by_side():
    """Each interval by itself; a comparison that one of them lacks is left out, and so is the base's own."""
    ends = {("a", "g"): (1, 2), ("a", "h"): (-2, -1), ("b", "g"): (-1, 1), ("only", "g"): (1, 2), (BASE, "g"): (1, 2)}
    others = {("b", "g"): (-1, 1), ("a", "h"): (1, 2), ("a", "g"): (3, 4), ("c", "g"): (1, 2), (BASE, "g"): (1, 2)}
    columns = ["arm", "group", "average", "value", "low", "high"]
    one, other = (pd.DataFrame([(*key, by, sum(at) / 2, *at) for key, at in found.items() for by in (PLAIN, WEIGHTED)],
        columns=columns) for found in (ends, others))  # fmt: skip
    both = CELLS.across_bases({"SNLI": one, "MultiNLI": other})
    assert list(both) == ["base", *columns[:2], *columns[3:], "apart"]
    assert both.groupby(["arm", "group"])["apart"].agg(list).to_dict() == {("a", "g"): [2, 2], ("a", "h"): [-2, -2],
        ("b", "g"): [0, 0]}  # fmt: skip
    assert both["base"].tolist() == ["SNLI"] * 3 + ["MultiNLI"] * 3
    other.loc[(other["arm"] == "b"), ["low", "high"]] = 1, 2
    assert CELLS.across_bases({"SNLI": one, "MultiNLI": other}).query("arm == 'b'")["apart"].tolist() == [1, 1]
    three = CELLS.across_bases({"SNLI": one, "MultiNLI": other, "WANLI": one})
    assert three.groupby(["arm", "group"])["apart"].first().to_dict() == {("a", "g"): 3, ("a", "h"): -3, ("b", "g"): 1}


def test_the_ledger_says_of_the_declared_comparisons_what_the_chapter_says(tmp_path, monkeypatch):
    """By the tables recorded at small: the same intervals, the same rule for models that have learnt nothing."""
    folder, declared = RESULTS / "small", ran("61_equal_budgets", "fb88f539", "0efc3727").declared
    records = pd.read_csv(folder / "61_equal_budgets.claims.csv", keep_default_na=False, na_values=[""])
    judged = ledger(read_claims(), records, "small").set_index("id")
    found = pd.read_csv(folder / "61_equal_budgets.against_twins.csv").query("average == @PLAIN")
    found = found.set_index(["arm", "group"])
    for id in records["id"]:
        row, verdict = found.loc[declared[id]], judged.loc[id, "verdict"]
        inside = "held" if row["low, declared"] > 0 else "not held" if row["high, declared"] < 0 else "inconclusive"
        assert row["declared"] and verdict == (inside if row["learnt"] else "not judged"), id
    # and the computed answer; chapters 62 and 64 share no comparison with the ledger: planted text is no evidence
    (verdict, text), said = answered("61_equal_budgets", tmp_path, monkeypatch), judged.loc[records["id"], "verdict"]
    assert (verdict in ("Yes", "Barely")) == (said == "held").any()
    assert f"in the {(said != 'not judged').sum()} declared comparisons that can be judged" in text
    assert f"In {(said == 'not judged').sum()} further comparisons" in text
    assert not {"62_planted_truth", "64_planted_interventions"} & {claim.notebook for claim in read_claims()}
