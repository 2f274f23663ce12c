"""How far scores agree, and what they say of a truth, alone and on top of confidence: chapter 60's cells.

Alone: pytest tests/test_score_agreement.py"""

from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest
from cells import functions
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import SplineTransformer

from nli_lib.agreement import FEW, out_of_fold, rank_correlations
from nli_lib.measure.consensus import CONFIDENCE, VOTES
from nli_lib.plots import TWIN
from nli_lib.stats import t_interval

CELLS = functions("60_do_scores_agree")
agreement, square = CELLS.agreement, CELLS.square
PREMISES, TRUTH = np.repeat(np.arange(50), 3), np.random.default_rng(0).normal(size=150)


def noisy(of, size, seed, trainings=3):
    return of + np.random.default_rng(seed).normal(size=(trainings, len(of))) * size


SCORES = {
    "a": noisy(TRUTH, 0.5, 1),
    "also a": np.exp(noisy(TRUTH, 0.5, 1)),  # the same order
    "minus a": -(noisy(TRUTH, 0.5, 1) ** 3), "b": noisy(TRUTH, 2.0, 2), "chance": noisy(0 * TRUTH, 1.0, 3),
    "counted": np.tile(np.round(TRUTH), (3, 1))}  # fmt: skip
TABLE = agreement(SCORES, PREMISES, 40)


def of(table, one, other):
    """The row of two scores."""
    return table.set_index(["one", "other"]).loc[(one, other)]


def test_equal_to_scipy_on_what_both_know():
    values = np.random.default_rng(4).normal(size=(4, 90)).round(1)
    values[1, :40], values[2, 30:], values[3] = np.nan, np.nan, 7.0
    found = rank_correlations(values)
    for i, j in np.ndindex(4, 4):
        x, y = values[[i, j]][:, np.isfinite(values[[i, j]]).all(axis=0)]
        nothing = len(x) < FEW or np.ptp(x) == 0 or np.ptp(y) == 0
        assert found[i, j] == pytest.approx(np.nan if nothing else stats.spearmanr(x, y).statistic, nan_ok=True)
    assert np.isnan(found[1, 2]) and np.isnan(found[3]).all()


def test_values_are_means_over_trainings():
    by_training = [stats.spearmanr(SCORES["a"][s], SCORES["b"][s]).statistic for s in range(3)]
    found = of(TABLE, "a", "b")
    assert found["value"] == pytest.approx(np.mean(by_training))
    assert found["high"] - found["value"] >= t_interval(by_training).high - np.mean(by_training)
    assert found[["n", "seeds", "over"]].tolist() == [50, 3, "premises and trainings"]


def test_one_order_under_three_names():
    for other, sign in (("also a", 1), ("minus a", -1)):
        assert of(TABLE, "a", other)[["value", "low", "high"]].tolist() == pytest.approx([sign] * 3)
    groups, order = CELLS.same_things(TABLE), CELLS.drawing_order(TABLE)
    assert ["a", "also a", "minus a"] in groups and sorted(chain(*groups)) == sorted(SCORES) and len(groups) == 4
    places = sorted(order.index(name) for name in ("a", "also a", "minus a"))
    assert places[-1] - places[0] == 2 and order.index("chance") in (0, len(order) - 1)
    assert CELLS.drawing_order(TABLE.iloc[:0]) == [] and CELLS.same_things(TABLE.iloc[:0]) == []


def test_a_group_asks_it_of_every_two():
    """a = b and b = c, but a and c fall short: no group of three. An interval that begins below the line fails."""
    rows = [("a", "b", 0.97, 0.96), ("b", "c", 0.97, 0.955), ("a", "c", 0.94, 0.93), ("c", "d", 0.99, 0.9)]
    table = pd.DataFrame(rows, columns=["one", "other", "value", "low"]).assign(high=1.0)
    assert CELLS.same_things(table) == [["a", "b"], ["c"], ["d"]]
    assert CELLS.same_things(table, line=0.925) == [["a", "b", "c"], ["d"]]


def test_a_score_beside_itself_in_another_training():
    rho = [stats.spearmanr(SCORES["a"][s], SCORES["a"][t]).statistic for s, t in combinations(range(3), 2)]
    assert of(TABLE, "a", "a")[["value", "low", "high"]].tolist() == pytest.approx([np.mean(rho), min(rho), max(rho)])
    assert of(TABLE, "counted", "counted")["value"] == 1
    votes = agreement({VOTES: SCORES["counted"], "a": SCORES["a"]}, PREMISES, 20)
    assert VOTES not in votes.loc[votes["one"] == votes["other"], "one"].tolist()  # one number of all trainings


def test_what_no_training_changes_has_an_interval_over_premises_alone():
    found = agreement({"x": SCORES["counted"], "y": np.tile(TRUTH, (3, 1))}, PREMISES, 20)
    assert of(found, "x", "y")[["seeds", "over"]].tolist() == [1, "premises"]
    one = agreement({"x": SCORES["a"][:1], "y": SCORES["b"][:1]}, PREMISES, 20)
    assert of(one, "x", "y")[["seeds", "over"]].tolist() == [1, "premises"] and len(one) == 1


def test_a_score_of_fewer_trainings_or_pairs():
    short = SCORES["a"].copy()
    short[1:], short[0, 90:] = np.nan, np.nan
    found = agreement({"short": short, "b": SCORES["b"], "flat": np.ones((3, 150))}, PREMISES, 20)
    wanted = stats.spearmanr(short[0, :90], SCORES["b"][0, :90]).statistic
    assert of(found, "short", "b")[["value", "n", "seeds"]].tolist() == [pytest.approx(wanted), 30, 1]
    assert "flat" not in found[["one", "other"]][found["one"] != found["other"]].to_numpy()


def test_neither_order_matters():
    order, names = np.random.default_rng(0).permutation(150), sorted(SCORES)
    moved = agreement({name: SCORES[name][:, order] for name in reversed(SCORES)}, PREMISES[order], 40)
    assert np.allclose(square(TABLE, names=names), square(moved, names=names), equal_nan=True)
    assert CELLS.same_things(moved) == CELLS.same_things(TABLE)
    assert CELLS.drawing_order(TABLE.sample(frac=1, random_state=1)) == CELLS.drawing_order(TABLE)
    table = square(TABLE).to_numpy()
    assert np.array_equal(table, table.T, equal_nan=True) and (np.abs(table) <= 1 + 1e-12).all()


def test_an_interval_ends_within_the_possible():
    """Trainings of which one agrees far less: Student's interval over them would end beyond 1."""
    one = np.arange(60.0)
    others = np.stack([one, one, np.random.default_rng(1).permutation(one)])
    table = agreement({"one": np.tile(one, (3, 1)), "other": others, "minus": -others}, np.arange(60), 20)
    assert of(table, "one", "other")["high"] == 1 and of(table, "one", "minus")["low"] == -1
    assert table[["low", "high"]].abs().max(axis=None) <= 1


def test_the_interval_covers():
    """30 studies: both scores are a truth and noise of the training; wanted is the mean over many trainings."""
    wanted = agreement({"x": noisy(TRUTH, 1, 8, 100), "y": noisy(TRUTH, 1, 9, 100)}, PREMISES, 2)
    wanted, inside = of(wanted, "x", "y")["value"], 0
    for seed in range(30):
        found = agreement({"x": noisy(TRUTH, 1, 100 + seed), "y": noisy(TRUTH, 1, 500 + seed)}, PREMISES, 15)
        inside += of(found, "x", "y")["low"] <= wanted <= of(found, "x", "y")["high"]
    assert inside >= 27


# ---------------------------------------------------------------- of a truth

N, S, RANDOM = 900, 3, np.random.default_rng(42)
THREES = np.repeat(np.arange(N // 3), 3)
BASE, NEW = RANDOM.uniform(-2, 2, size=(2, N))
JUDGED = {
    CONFIDENCE: noisy(BASE, 0.1, 1),
    "bent": noisy(BASE, 0.1, 1) ** 2,  # nothing but confidence
    "new": noisy(NEW, 0.1, 1), "part": np.where(np.arange(N) < 300, noisy(NEW, 0.1, 1), np.nan),
    "flat": np.ones((S, N))}  # fmt: skip
GRADED, YES = BASE**2 / 2 + NEW + RANDOM.normal(size=N) * 0.5, (BASE + NEW + RANDOM.normal(size=N) > 1).astype(float)


def follows(scores, truth, premises=THREES, resamples=20, labels=None, among="all labels"):
    labels = np.zeros(len(truth)) if labels is None else labels
    return CELLS.follows(scores, truth, premises, resamples, labels).query("among == @among").set_index("score")


def adds(scores, truth, labels=None):
    return CELLS.adds(scores, truth, THREES, 20, labels)[0].set_index("score")


def test_alone_a_graded_truth_is_ranked_and_a_yes_is_told_from_a_no():
    slow = {"rank correlation": (GRADED, lambda row: stats.spearmanr(row, GRADED).statistic),
            "area under the ROC curve": (YES, lambda row: roc_auc_score(YES, row))}  # fmt: skip
    for measure, (truth, by_hand) in slow.items():
        found = follows(JUDGED, truth)
        assert found.loc["new", "value"] == pytest.approx(np.mean([by_hand(row) for row in JUDGED["new"]]))
        assert set(found["measure"]) == {measure} and "flat" not in found.index
    assert found.loc["part", "n"] == 100 and abs(found.loc[TWIN, "value"] - 0.5) < 0.05
    fixed = follows({"z": np.tile(NEW, (S, 1))}, YES).iloc[0]
    assert (fixed["seeds"], fixed["over"]) == (1, "premises")


def test_area_counts_ties_half_and_does_not_mind_the_order():
    scores, truth = np.array([[0.0, 1, 1, 2, 2]]), np.array([0.0, 1, 0, 1, 0])
    slow = [(a > b) + (a == b) / 2 for a in scores[0, truth == 1] for b in scores[0, truth == 0]]
    area = CELLS.ordering(scores, truth)
    assert area(np.arange(5)) == pytest.approx(np.mean(slow)) == pytest.approx(area(np.array([4, 0, 3, 1, 2])))
    assert CELLS.ordering(-scores, truth)(np.arange(5)) == pytest.approx(1 - np.mean(slow))
    assert np.isnan(area(np.array([1, 3]))).all()  # no "no" among them


@pytest.mark.parametrize("truth", [GRADED, YES], ids=["graded", "yes or no"])
def test_what_is_new_is_found_and_what_is_bent_is_not(truth):
    table, gains = CELLS.adds(JUDGED, truth, THREES, 20)
    found = table.set_index("score")
    assert found.loc["new", "low"] > 0.05
    assert abs(found.loc["bent", "value"]) < 0.02 and abs(found.loc[TWIN, "value"]) < 0.02
    assert found.loc[CELLS.ANOTHER, "value"] < found.loc["new", "value"] / 3
    assert CONFIDENCE not in found.index and "flat" not in found.index
    assert gains["new"].mean() == pytest.approx(found.loc["new", "value"])
    assert np.isfinite(gains["part"]).sum() == S * 300


def test_another_training_helps_where_a_training_is_noisy():
    base, new = noisy(BASE, 1.5, 1), noisy(NEW, 0.1, 1)
    assert adds({CONFIDENCE: base, "new": new}, BASE).loc[CELLS.ANOTHER, "low"] > 0.02
    alone = adds({CONFIDENCE: base[:1], "new": new[:1]}, BASE)
    assert CELLS.ANOTHER not in alone.index and (alone["over"] == "premises").all()
    # where the base has fewer trainings, another one is another of those
    fewer = np.concatenate([base[:2], np.full((1, N), np.nan)])
    found = [adds({CONFIDENCE: each, "new": new[: len(each)]}, BASE) for each in (base[:2], fewer)]
    gains = [table.loc[CELLS.ANOTHER, "value"] for table in found]
    assert gains[0] > 0.02 and gains[1] == pytest.approx(gains[0])


def test_the_label_is_a_control():
    """The truth differs between the labels and in nothing else, not even in the order of their numbers."""
    labels = RANDOM.integers(0, 3, N)
    truth = np.array([0.0, 1.0, 0.2])[labels] + RANDOM.normal(size=N) * 0.3
    judged = {name: JUDGED[name] for name in (CONFIDENCE, "new")}
    found = adds(judged, truth, labels)
    assert found.loc[CELLS.LABEL, "low"] > 0.5 and abs(found.loc["new", "value"]) < 0.02
    assert CELLS.LABEL not in adds(judged, truth).index
    # a score that knows the label and nothing else gains over confidence, and nothing beyond the label
    knows = {CONFIDENCE: JUDGED[CONFIDENCE], "knows": noisy(np.array([0.0, 1.0, 0.2])[labels], 0.1, 7)}
    found = adds(knows, truth, labels).loc["knows"]
    assert found["low"] > 0.4 and abs(found["beyond"]) < 0.02 and found["beyond low"] < 0 < found["beyond high"]
    both = adds(judged, truth + NEW, labels).loc["new"]
    assert both["beyond low"] > 0.3 and both["beyond high"] < 0.95
    whole, within = (follows(knows, truth, labels=labels, among=among) for among in ("all labels", "within a label"))
    assert whole.loc[CELLS.LABEL, "value"] > whole.loc["knows", "value"] > 0.6 > 0.1 > within.loc["knows", "value"]
    assert CELLS.LABEL not in within.index and CELLS.LABEL not in follows(knows, truth).index


@pytest.mark.parametrize("truth", [GRADED, YES], ids=["graded", "yes or no"])
def test_within_a_label_is_the_mean_of_each_alone(truth):
    labels, new = np.arange(N) % 3, JUDGED["new"]
    found = follows(JUDGED, truth, labels=labels, among="within a label").loc["new"]
    alone = [CELLS.ordering(new[:, labels == each], truth[labels == each]) for each in range(3)]
    assert found["value"] == pytest.approx(np.mean([each(np.arange(N // 3)) for each in alone]))
    assert found["low"] < found["value"] < found["high"] and found["n"] == N // 3


def test_out_of_fold_by_its_definition():
    x, y = np.random.default_rng(5).normal(size=(2, 120))
    groups, ranks = np.arange(120) // 4, (stats.rankdata(x) / 120)[:, None]
    found = out_of_fold(x[:, None], y, groups, seed=3)
    for train, test in GroupKFold(5, shuffle=True, random_state=3).split(ranks, y, groups):
        splines = SplineTransformer(n_knots=5, include_bias=False).fit(ranks[train])
        model = Ridge(0.01).fit(splines.transform(ranks[train]), y[train])
        assert found[test] == pytest.approx(model.predict(splines.transform(ranks[test])))


def test_a_premise_cannot_be_learnt_by_heart():
    """Truth and score are the premise's own number: with pairs drawn one by one, the score would explain much of it."""
    random = np.random.default_rng(6)
    of_premise, jumps = random.permutation(300).astype(float)[THREES], random.normal(size=300)[THREES]
    found = adds({CONFIDENCE: JUDGED[CONFIDENCE], "name": np.tile(of_premise, (S, 1))}, jumps)
    assert found.loc["name", "value"] < 0.02


def test_explained_is_one_minus_the_squared_error_over_the_variance():
    found = adds(JUDGED, GRADED).loc["new"]
    errors = [np.mean((GRADED - out_of_fold(row[:, None], GRADED, THREES)) ** 2) for row in JUDGED["new"]]
    assert found["alone"] == pytest.approx(1 - np.mean(errors) / GRADED.var()) and found["base"] + found["value"] <= 1


@pytest.mark.parametrize(("yes", "pairs"), [(9, N), (10, N), (None, 99), (None, 100), (0, N)])
def test_just_enough_are_judged_and_too_few_are_not(yes, pairs):
    truth = GRADED[:pairs] if yes is None else (np.arange(N) < yes).astype(float)
    some, enough = {name: each[:, :pairs] for name, each in JUDGED.items()}, yes == 10 or pairs == 100
    assert ("new" in follows(some, truth, THREES[:pairs], 2).index) == enough
    assert enough or follows(some, truth, THREES[:pairs], 2).empty
    assert enough or pairs < N or adds(some, truth).empty
