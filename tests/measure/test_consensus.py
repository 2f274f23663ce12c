"""Mismatches, gaps and orders of review; cleanlab beside them. Alone: pytest tests/measure/test_consensus.py"""

import math
import sys

import numpy as np
import pandas as pd
import pytest
from cells import functions
from hypothesis import given, settings, strategies as st
from scipy.optimize import brentq, minimize

from nli_lib.measure import consensus
from nli_lib.measure.consensus import logit_gap, mismatch, next_suspects, suspects, threshold_rule

LOGITS = np.array([[1.0, 4.5, 0.0], [3.0, 1.0, 0.0], [0.0, 2.0, -1.0], [5.0, 0.0, 7.5]])
GOLD = np.array([0, 0, 0, 2])


def test_by_hand():
    assert mismatch(LOGITS, GOLD).tolist() == ["P1G0", "agree", "P1G0", "agree"]
    assert logit_gap(LOGITS, GOLD).tolist() == [3.5, 0, 2.0, 0]
    assert mismatch(LOGITS, [2, 1, 0, 0]).tolist() == ["P1G2", "P0G1", "P1G0", "P2G0"]
    assert len(consensus.KINDS) == len(set(consensus.KINDS)) == 6
    p = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    assert logit_gap(LOGITS, GOLD)[0] == pytest.approx(math.log(p[0, 1] / p[0, 0]))  # log-odds of the two labels
    assert logit_gap(LOGITS + 100, GOLD) == pytest.approx(logit_gap(LOGITS, GOLD))


def test_strictly_above_the_threshold_and_of_the_kinds_asked_for():
    assert suspects(LOGITS, GOLD).tolist() == [True, False, False, False]  # the third stands at 2.0 exactly
    assert suspects(LOGITS, GOLD, threshold=1.9).tolist() == [True, False, True, False]
    assert suspects(LOGITS, [2, 1, 0, 0], kinds=("P1G2", "P2G0")).tolist() == [True, False, False, True]
    with pytest.raises(ValueError, match="P1G1"):
        suspects(LOGITS, GOLD, kinds=("P1G1",))


rows = st.lists(st.tuples(*[st.floats(-20, 20) for _ in range(3)], st.integers(0, 2)), min_size=1, max_size=30)


@given(rows)
def test_equal_to_the_slow_twin_in_any_order(cases):
    logits, gold = np.array([case[:3] for case in cases]), np.array([case[3] for case in cases])
    kinds, gaps = mismatch(logits, gold), logit_gap(logits, gold)
    for i, (*scores, label) in enumerate(cases):
        predicted = scores.index(max(scores))
        assert kinds[i] == ("agree" if predicted == label else f"P{predicted}G{label}")
        assert gaps[i] == pytest.approx(scores[predicted] - scores[label]) and gaps[i] >= 0
    order = np.random.default_rng(0).permutation(len(cases))
    assert (mismatch(logits[order], gold[order]) == kinds[order]).all()


def test_the_threshold_is_where_errors_become_the_majority():
    gap = np.array([0.5, 0.6, 1.5, 1.6, 2.5, 2.6, 2.7, 4.5])
    wrong = np.array([0, 0, 1, 0, 1, 1, 0, 1], dtype=bool)
    assert threshold_rule(gap, wrong, [0, 1, 2, 3, 4]) == 2.0  # half is not more than half; 3 to 4 is empty
    assert threshold_rule(gap, np.zeros(8, bool), [0, 1, 2]) is None
    assert threshold_rule(gap, np.ones(8, bool), [0, 1, 2]) == 0.0 and threshold_rule([], [], [0, 1]) is None
    assert threshold_rule([-0.1, 1.0], [True, False], [0, 1]) is None  # below the edges, and at one
    assert threshold_rule([0.9, 1.0], [False, True], [0, 1]) == 1.0


@pytest.mark.parametrize("measure", [mismatch, logit_gap])
def test_bad_input_is_one_error_and_no_example_gives_no_number(measure):
    for logits, gold, said in (
        (np.zeros((2, 3, 3)), [0, 0], "shape"),
        (np.zeros((2, 3)), [0], "shape"),
        (np.array([[0, np.nan, 0]]), [0], "first at example 0"),
        (np.zeros((1, 3)), [3], "not one of 0..2"),
        (np.zeros((1, 3)), [-1], "label -1 at position 0"),
    ):
        with pytest.raises(ValueError, match=said):
            measure(logits, gold)
    assert measure(np.zeros((0, 3)), np.zeros(0, int)).shape == (0,)


def test_a_reference_is_judged_at_its_positions():
    reference = pd.DataFrame({"position": [3, 0], "label": [2, 0], "wrong": [False, True]})
    judged = consensus.judge(LOGITS, reference)
    assert judged["kind"].tolist() == ["agree", "P1G0"] and judged["gap"].tolist() == [0.0, 3.5]
    assert judged["wrong"].tolist() == [False, True]


def test_every_score_of_a_label_and_the_orders_they_give():
    table = consensus.label_scores(LOGITS, GOLD, training=np.stack([LOGITS, LOGITS]), fold=[0, 1, 0, 1])
    assert table["pruned"].tolist() == suspects(LOGITS, GOLD).tolist()
    assert table["margin"].tolist() == [-3.5, 2.0, -2.0, 2.5]
    assert table["p(gold)"].to_numpy() == pytest.approx(table["confidence"])
    orders, again = (consensus.review_orders(table, seed=1) for _ in range(2))
    assert orders["gap of P1G0 alone"].tolist() == consensus.pruned_gap(LOGITS, GOLD).tolist() == [3.5, 0, 2.0, 0]
    assert (orders["random twin"] == again["random twin"]).all()
    # every order but the random one begins with the most suspect
    numbers = {"gap": [0.5, 3.0], "p(gold)": [0.9, 0.1], "confidence": [0.8, 0.2], "margin": [2.0, -1.0]}
    orders = consensus.review_orders(pd.DataFrame({"kind": ["P2G1", "P1G0"], **numbers}))
    assert [name for name, score in orders.items() if score[1] <= score[0]] in ([], ["random twin"])


def test_a_rare_direction_comes_after_a_common_one_with_the_same_gap():
    logits = np.array([[0, 2, 0], [0, 2, 0], [0, 0, 2], [3, 0, 0], [0, 5, 0], [5, 0, 0.0]])
    labels = np.array([0, 0, 0, 0, 1, 1])
    found = consensus.by_direction(logits, labels)
    expected = [2 + np.log(2 / 4), 2 + np.log(2 / 4), 2 + np.log(1 / 4), -np.inf, -np.inf, 5 + np.log(1 / 2)]
    assert found == pytest.approx(expected)


# ---------------------------------------------------------------- cleanlab


@pytest.fixture
def flipped():
    """Logits that know the truth, and labels of which a tenth was flipped."""
    generator = np.random.default_rng(0)
    true = generator.integers(0, 3, 600)
    wrong = generator.random(600) < 0.1
    labels = np.where(wrong, (true + 1) % 3, true)
    return np.eye(3)[true] * 4 + generator.normal(0, 1, (600, 3)), labels, wrong


def test_cleanlab_finds_flips_by_a_model_that_knows_and_ranks_by_self_confidence(flipped):
    rank = pytest.importorskip("cleanlab.rank")
    logits, labels, wrong = flipped
    found, reasons = consensus.named_by_cleanlab(logits, labels)
    assert found.dtype == bool and reasons == [] and found[wrong].mean() > 0.9 and wrong[found].mean() > 0.8
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    theirs = rank.get_label_quality_scores(labels, probabilities)
    assert consensus.self_confidence(logits, labels) == pytest.approx(theirs)
    named, reasons = consensus.named_by_cleanlab(logits[labels < 2], labels[labels < 2])
    assert not named.any() and "class 2 labels no example" in reasons[0]


def test_without_cleanlab_it_says_what_to_install(flipped, monkeypatch):
    monkeypatch.setitem(sys.modules, "cleanlab.filter", None)
    named, reasons = consensus.named_by_cleanlab(*flipped[:2])
    assert not named.any() and "pip install" in reasons[0]


# ---------------------------------------------------------------- the order of review that learns


NOBODY = np.nan
review_in_turn = functions("35_order_of_suspects").review_in_turn


def planted(size=400, seed=0):
    """Kinds "a", wrong in nine of ten, and "b", wrong in one of ten, which has the larger gaps."""
    generator = np.random.default_rng(seed)
    kind = np.where(np.arange(size) % 2, "a", "b")
    gap = generator.random(size) + (kind == "b") + 0.2 * generator.random(size)
    return gap, kind, generator.random(size) < np.where(kind == "a", 0.9, 0.1)


RISING = [1, 1, 0, 0, NOBODY, NOBODY, NOBODY, 0, NOBODY]


@pytest.mark.parametrize(("gap", "kind", "decided", "order"), [
    # until both answers are known the first order stays
    ([0.1, 0.9, 0.5, 0.7], "abab", [NOBODY] * 4, [1, 3, 2, 0]),
    ([0.1, 0.9, 0.5, 0.7], "abab", [NOBODY, 0, NOBODY, NOBODY], [3, 2, 0]),
    ([0.1, 0.9, 0.5, 0.7], "abab", [NOBODY, 1, 1, NOBODY], [3, 0]),
    # a kind that was right goes to the end
    ([5, 4, 3, 2, 0.5, 1], "aabbab", [0, 0, 1, NOBODY, NOBODY, NOBODY], [3, 5, 4]),
    # the slope of the gap never falls: the widest gaps were right labels, and the narrowest do not come first
    (np.arange(9, 0, -1.0), "aaaaaaaaa", [0, 0, 1, 1] + [NOBODY] * 5, [4, 5, 6, 7, 8]),
    # where it rises, it is learnt
    ([9, 8, 3, 2, 8.5, 4, 1, 5, 8.4], "aaaabbbba", RISING, [8, 4, 5, 6]),
    # a kind that nobody has seen counts as even: before one mostly right, behind one mostly wrong
    ([6, 5, 4, 1, 3, 2], "aaabac", [0, 0, 1, NOBODY, NOBODY, NOBODY], [5, 3, 4]),
    ([6, 5, 4, 3, 1, 2], "aaabac", [1, 0, 1, NOBODY, NOBODY, NOBODY], [4, 3, 5]),
    ([], "", [], [])])  # fmt: skip
def test_next_suspects_by_hand(gap, kind, decided, order):
    assert next_suspects(gap, list(kind), decided).tolist() == order


def test_planted_kinds_are_learnt_and_the_gap_alone_is_misled():
    gap, kind, wrong = planted()
    learnt = review_in_turn(gap, kind, wrong, upto=100)
    assert wrong[learnt[40:]].mean() > 0.8 and wrong[np.argsort(-gap)[:100]].mean() < 0.2
    # answers to what comes after the first batches change nothing of these batches
    seen, later = review_in_turn(gap, kind, wrong, upto=60, every=20), wrong.copy()
    later[np.setdiff1d(np.arange(len(wrong)), seen[:40])] = False
    assert review_in_turn(gap, kind, later, upto=60, every=20).tolist() == seen.tolist()
    assert review_in_turn([], [], [], upto=0).tolist() == []


def slow_logit(features, seen, answers):
    """Its definition: the minimum of the penalised loss over the weights that are allowed, the last at least 0."""
    sign = 2 * np.array(answers) - 1

    def loss(weights):
        return np.logaddexp(0, -sign * (features[seen] @ weights)).sum() + (weights**2).sum() / 2

    bounds = [(None, None)] * (features.shape[1] - 1) + [(0, None)]
    options = {"ftol": 1e-15, "gtol": 1e-9}
    found = minimize(loss, np.zeros(features.shape[1]), bounds=bounds, method="L-BFGS-B", options=options)
    return np.round(features @ found.x, 4)


def slow_review(gap, kind, wrong, upto, every):
    """Learn from what was seen, sort what is left, look at a batch, and begin again."""
    seen = []
    while len(seen) < upto:
        score, answers = np.zeros(len(gap)), [int(wrong[at]) for at in seen]
        if 0 < sum(answers) < len(answers):
            scaled = (gap - gap[seen].mean()) / gap[seen].std()
            score = slow_logit(np.column_stack([kind == "a", kind == "b", kind == "c", scaled]), seen, answers)
        rest = sorted((at for at in range(len(gap)) if at not in seen), key=lambda at: (-score[at], -gap[at]))
        seen += rest[: min(every, upto - len(seen))]
    return seen


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 9), st.integers(0, 30))
def test_a_review_is_that_of_the_slow_twin_in_any_order(seed, every, upto):
    generator = np.random.default_rng(seed)
    gap, kind, wrong = generator.random(40), generator.choice(list("abc"), 40), generator.random(40) < 0.4
    seen = review_in_turn(gap, kind, wrong, upto=upto, every=every)
    assert seen.tolist() == slow_review(gap, kind, wrong, upto, every) and len(set(seen.tolist())) == upto
    mixed = generator.permutation(40)
    assert (
        mixed[review_in_turn(gap[mixed], kind[mixed], wrong[mixed], upto=upto, every=every)].tolist() == seen.tolist()
    )


@pytest.mark.parametrize(("decided", "said"), [([NOBODY], "2 gaps, 2 kinds, 1 decisions"), ([NOBODY, 2], "1 .wrong.")])
def test_what_does_not_fit_is_one_error(decided, said):
    with pytest.raises(ValueError, match=said):
        next_suspects([1, 2], ["a", "b"], decided)


# ---------------------------------------------------------------- how many are wrong


def test_how_many_are_wrong_by_hand():
    """Decisions count as known; one kind and one gap leave a single number to learn, whose mode is found by hand."""
    gap, kind = np.full(8, 2.0), ["a"] * 8
    p, ((value, low, high), nothing) = consensus.wrong_among(gap, kind, [1, 0, 1, *[NOBODY] * 5], [range(3), []])
    assert (value, low, high) == (2, 2, 2) and nothing == (0, 0, 0) and p[:3].tolist() == [1, 0, 1]
    variance = consensus.SPREAD**2 + consensus.KIND**2  # of the logit, by the prior
    start = math.log(consensus.RATE / (1 - consensus.RATE))
    score = brentq(lambda s: 2 - 3 / (1 + math.exp(-s)) - (s - start) / variance, -5, 5)
    rate = 1 / (1 + math.exp(-score))
    left = 1 / (1 / variance + 3 * rate * (1 - rate))
    assert p[3:] == pytest.approx(1 / (1 + math.exp(-score / math.sqrt(1 + math.pi * left / 8))), abs=1e-6)
    assert consensus.wrong_among([], [], [], [[]])[1] == [(0, 0, 0)]


@pytest.mark.parametrize(("seed", "decisions"), [(0, 0), (1, 20), (2, 30), (3, 50)])
def test_how_many_are_wrong_is_that_of_the_slow_twin(seed, decisions):
    """Coefficients from the prior, weighted by how probable they make the decisions, and labels drawn with them."""
    gap, kind, wrong = planted(300, seed)
    order, generator = np.argsort(-gap), np.random.default_rng(seed)
    decided = np.where(np.isin(np.arange(300), order[:decisions]), wrong, NOBODY)
    groups = [order[:100], order[decisions : decisions + 50]]
    p, found = consensus.wrong_among(gap, kind, decided, groups)
    size, scaled = 50_000, (gap - gap.mean()) / gap.std()
    base = generator.normal(math.log(consensus.RATE / (1 - consensus.RATE)), consensus.SPREAD, size)
    own, slope = generator.normal(0, consensus.KIND, (2, size)), generator.normal(consensus.RISE, consensus.STEEP, size)
    weight, counts = np.zeros(size), [np.zeros(size), np.zeros(size)]
    for at in order[: max(100, decisions + 50)]:
        chance = 1 / (1 + np.exp(-(base + own[int(kind[at] == "b")] + slope * scaled[at])))
        if at in order[:decisions]:
            weight += np.log(chance if wrong[at] else 1 - chance)
        drawn = wrong[at] if at in order[:decisions] else generator.random(size) < chance
        for place, group in enumerate(groups):
            counts[place] += drawn if at in group else 0
    weight = np.exp(weight - weight.max())
    for count, (value, low, high), group in zip(counts, found, groups, strict=True):
        by_size = np.argsort(count)
        ends = count[by_size][np.searchsorted(weight[by_size].cumsum() / weight.sum(), [0.025, 0.975])]
        assert value == pytest.approx(np.average(count, weights=weight), abs=0.03 * len(group))
        assert value == pytest.approx(p[group].sum()) and [low, high] == pytest.approx(ends, abs=0.05 * len(group))


def test_a_simulated_review_reads_the_learnt_order_and_knows_what_it_states():
    gap, kind, wrong = planted()
    chapter = functions("37_how_right_is_the_list")
    rows, seen = chapter.sitting(gap, kind, wrong)
    assert seen.tolist() == review_in_turn(gap, kind, wrong, upto=100).tolist()
    true = {(n, of): number for n, of, *_, number in rows}
    assert true[20, "next 50"] >= wrong[seen[20:40]].sum() and true[50, "first 100"] >= wrong[seen[:60]].sum()
    # all of the first label, and one of three of the second
    assert chapter.by_label([0, 0, 1, 1, 1], [1, 1, 1, 0, 0], 3) == pytest.approx(2 + 1 / 3)
