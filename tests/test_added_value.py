"""What scores say of a truth, alone and on top of confidence. Alone: pytest tests/test_added_value.py"""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import SplineTransformer

from nli_lib.agreement import ANOTHER, AREA, CORRELATION, LABEL, adds, follows, gain_of, ordering, out_of_fold
from nli_lib.measure.consensus import CONFIDENCE
from nli_lib.plots import TWIN

N, S = 900, 3
RANDOM = np.random.default_rng(42)
PREMISES = np.repeat(np.arange(N // 3), 3)
BASE, NEW = RANDOM.uniform(-2, 2, size=(2, N))


def with_noise(of, size=0.1, seed=1):
    return of + np.random.default_rng(seed).normal(size=(S, N)) * size


SCORES = {
    CONFIDENCE: with_noise(BASE),
    "bent": with_noise(BASE, seed=1) ** 2,  # nothing but confidence
    "new": with_noise(NEW),
    "part": np.where(np.arange(N) < 300, with_noise(NEW), np.nan),
    "flat": np.ones((S, N)),
}
GRADED = BASE**2 / 2 + NEW + RANDOM.normal(size=N) * 0.5
YES = (BASE + NEW + RANDOM.normal(size=N) > 1).astype(float)


def test_alone_a_graded_truth_is_ranked_and_a_yes_is_told_from_a_no():
    found = follows(SCORES, GRADED, PREMISES, resamples=20).set_index("score")
    rho = [stats.spearmanr(row, GRADED).statistic for row in SCORES["new"]]
    assert found.loc["new", "value"] == pytest.approx(np.mean(rho))
    assert set(found["measure"]) == {CORRELATION} and "flat" not in found.index
    found = follows(SCORES, YES, PREMISES, resamples=20).set_index("score")
    areas = [roc_auc_score(YES, row) for row in SCORES["new"]]
    assert found.loc["new", "value"] == pytest.approx(np.mean(areas)) and set(found["measure"]) == {AREA}
    assert found.loc["part", "n"] == 100 and abs(found.loc[TWIN, "value"] - 0.5) < 0.05
    fixed = follows({"z": np.tile(NEW, (S, 1))}, YES, PREMISES, resamples=20).iloc[0]
    assert (fixed["seeds"], fixed["over"]) == (1, "premises")


def test_area_counts_ties_half_and_does_not_mind_the_order():
    scores, truth = np.array([[0.0, 1, 1, 2, 2]]), np.array([0.0, 1, 0, 1, 0])
    slow = [(a > b) + (a == b) / 2 for a in scores[0, truth == 1] for b in scores[0, truth == 0]]
    area = ordering(scores, truth)
    assert area(np.arange(5)) == pytest.approx(np.mean(slow)) == pytest.approx(area(np.array([4, 0, 3, 1, 2])))
    assert ordering(-scores, truth)(np.arange(5)) == pytest.approx(1 - np.mean(slow))
    assert np.isnan(area(np.array([1, 3]))).all()  # no "no" among them


def test_what_is_new_is_found_and_what_is_bent_is_not():
    for truth in (GRADED, YES):
        table, gains = adds(SCORES, truth, PREMISES, resamples=20)
        found = table.set_index("score")
        assert found.loc["new", "low"] > 0.05
        assert abs(found.loc["bent", "value"]) < 0.02
        assert abs(found.loc[TWIN, "value"]) < 0.02 and found.loc[ANOTHER, "value"] < found.loc["new", "value"] / 3
        assert CONFIDENCE not in found.index and "flat" not in found.index
        assert gains["new"].mean() == pytest.approx(found.loc["new", "value"])
        assert np.isfinite(gains["part"]).sum() == S * 300
        assert gain_of({"t": table}, "t", "new").value == found.loc["new", "value"]
    assert gain_of({"t": table}, "t", "gone") is None and gain_of({}, "t", "new") is None


def test_another_training_helps_where_a_training_is_noisy():
    scores = {CONFIDENCE: with_noise(BASE, 1.5), "new": with_noise(NEW)}
    found = adds(scores, BASE, PREMISES, resamples=20)[0].set_index("score")
    assert found.loc[ANOTHER, "low"] > 0.02
    alone = adds({name: each[:1] for name, each in scores.items()}, BASE, PREMISES, resamples=20)[0]
    assert ANOTHER not in alone["score"].tolist() and (alone["over"] == "premises").all()


def test_another_training_is_another_one_where_the_base_has_fewer():
    noisy = with_noise(BASE, 1.5)
    fewer = np.concatenate([noisy[:2], np.full((1, len(BASE)), np.nan)])
    found = [
        adds({CONFIDENCE: base, "new": with_noise(NEW)[: len(base)]}, BASE, PREMISES, resamples=20)[0]
        for base in (noisy[:2], fewer)
    ]
    gains = [table.set_index("score").loc[ANOTHER, "value"] for table in found]
    assert gains[0] > 0.02 and gains[1] == pytest.approx(gains[0])


def test_the_label_is_a_control():
    """The truth differs between the labels and in nothing else, not even in the order of their numbers."""
    labels = RANDOM.integers(0, 3, N)
    truth = np.array([0.0, 1.0, 0.2])[labels] + RANDOM.normal(size=N) * 0.3
    found = adds(SCORES, truth, PREMISES, labels=labels, resamples=20)[0].set_index("score")
    assert found.loc[LABEL, "low"] > 0.5 and abs(found.loc["new", "value"]) < 0.02
    assert LABEL not in adds(SCORES, truth, PREMISES, resamples=20)[0]["score"].tolist()


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
    of_premise, jumps = random.permutation(300).astype(float)[PREMISES], random.normal(size=300)[PREMISES]
    table, _ = adds({CONFIDENCE: with_noise(BASE), "name": np.tile(of_premise, (S, 1))}, jumps, PREMISES, resamples=20)
    assert table.set_index("score").loc["name", "value"] < 0.02


def test_explained_is_one_minus_the_squared_error_over_the_variance():
    found = adds(SCORES, GRADED, PREMISES, resamples=20)[0].set_index("score").loc["new"]
    errors = [np.mean((GRADED - out_of_fold(row[:, None], GRADED, PREMISES)) ** 2) for row in SCORES["new"]]
    assert found["alone"] == pytest.approx(1 - np.mean(errors) / GRADED.var())
    assert found["base"] + found["value"] <= 1


def test_too_few_are_not_judged():
    rare = np.zeros(N)
    rare[:9] = 1
    assert follows(SCORES, rare, PREMISES).empty and adds(SCORES, rare, PREMISES)[0].empty
    few = {name: each[:, :99] for name, each in SCORES.items()}
    assert follows(few, GRADED[:99], PREMISES[:99]).empty
    assert follows(SCORES, np.zeros(N), PREMISES).empty


def test_just_enough_are_judged():
    rare = np.zeros(N)
    rare[:10] = 1
    assert "new" in follows(SCORES, rare, PREMISES, resamples=2)["score"].tolist()
    enough = {name: each[:, :100] for name, each in SCORES.items()}
    assert "new" in follows(enough, GRADED[:100], PREMISES[:100], resamples=2)["score"].tolist()
