"""Two annotators, and what the suspicion of a label is worth. Alone: pytest tests/test_agreement.py"""

import numpy as np
import pandas as pd
import pytest
from cells import functions
from hypothesis import given, strategies as st
from scipy import stats
from sklearn.metrics import average_precision_score, cohen_kappa_score
from small_reviews import both

from nli_lib import agreement
from nli_lib.agreement import Mismatches, average_precision, error_shares, kappa, precision_at, share_of, threshold
from nli_lib.generate.review import untouched

WITHIN = functions("35_order_of_suspects").precision_within

# ---------------------------------------------------------------- kappa


def drawn(n=200, same=0.7):
    random = np.random.default_rng(0)
    ones = random.choice(["entailment", "neutral", "contradiction"], size=n)
    return both(ones, np.where(random.random(n) < same, ones, random.choice(["entailment", "neutral"], size=n)))


def test_kappa_by_hand():
    """Ten pairs, eight agree; the twenty labels are 10 and 10, so that chance agrees in half: (.8 - .5) / .5 = .6."""
    found = kappa(both("eeeennnnen", "eeeennnnne"))
    assert found.value == pytest.approx(0.6) and found.n == 10 and found.over == "pairs"
    assert found.low < 0.6 < found.high <= 1


def test_the_value_is_scikit_learns_with_both_orders_counted():
    annotations = drawn()
    found, pairs = kappa(annotations), untouched(annotations)
    assert found.value == pytest.approx(cohen_kappa_score(pairs.ravel(), pairs[:, ::-1].ravel()))
    assert found.n == len(pairs) == 200
    swapped = annotations.assign(annotator=annotations["annotator"].map({"a": "b", "b": "a"}))
    for moved in (swapped, annotations.sample(frac=1, random_state=1)):
        assert kappa(moved)[:3] == pytest.approx(found[:3])


def test_what_somebody_changed_or_discarded_does_not_count():
    annotations = drawn(60)
    changed = annotations.assign(item="x" + annotations["item"])[:4]
    changed["revised_premise"], changed["discarded"] = ["other", "a", "a", "a"], [False, False, True, False]
    assert kappa(pd.concat([annotations, changed])) == kappa(annotations)


def test_equal_to_a_slow_bootstrap():
    annotations = drawn(60)
    table = annotations.pivot(index="item", columns="annotator", values="label")
    random, draws, found = np.random.default_rng(1), [], kappa(annotations)
    for _ in range(300):
        again = table.iloc[random.integers(len(table), size=len(table))]
        draws.append(cohen_kappa_score([*again["a"], *again["b"]], [*again["b"], *again["a"]]))
    assert np.quantile(draws, [0.025, 0.975]) == pytest.approx([found.low, found.high], abs=0.05)


def test_bounds_and_what_has_no_kappa():
    assert kappa(both("ennc", "ennc"))[:2] == (pytest.approx(1), pytest.approx(1))
    assert kappa(both("en", "ne")).value == pytest.approx(-1)
    for nothing, n in ((both("ee", "ee"), 2), (both("en", "en").assign(discarded=True), 0)):
        assert np.isnan(kappa(nothing)[:3]).all() and kappa(nothing).n == n


# ---------------------------------------------------------------- shares of wrong labels


def test_shares_by_group_in_the_order_of_the_rows():
    table = pd.DataFrame({"truth": "five", "kind": ["b", "a", "b", "b"], "wrong": [True, False, False, True]})
    shares = error_shares(table, ["truth", "kind"])
    assert shares[["kind", "n", "wrong", "share"]].to_numpy().tolist() == [["b", 3, 2, 2 / 3], ["a", 1, 0, 0]]
    assert (shares["low"] <= shares["share"]).all() and (shares["share"] <= shares["high"]).all()
    # several seeds have the size of one
    table = pd.DataFrame({"truth": "five", "seed": [0] * 10 + [1] * 10, "wrong": [True, False] * 10})
    assert error_shares(table, ["truth"])[["n", "wrong"]].to_numpy().tolist() == [[10, 5]]
    assert error_shares(table.assign(truth=["five"] * 19 + ["hundred"]), ["truth"])["n"].tolist() == [10, 1]


def test_by_kind_beside_any_pair_with_the_label():
    rows = [("P1G0", 2.0, False), ("P1G0", 2.5, True), ("P1G0", 0.5, False), ("P0G1", 9.0, True)]
    judged = pd.DataFrame(rows, columns=["kind", "gap", "wrong"]).assign(truth="five")
    labels = pd.DataFrame({"truth": "five", "label": [0, 1], "n": [10, 20], "wrong": [1, 10]})
    table = agreement.shares_by_kind(judged, labels).set_index(["kind", "condition"])["share"]
    assert table["P1G0", "any gap"] == pytest.approx(1 / 3) and table["P1G0", "gap above 2"] == 1
    twin = table.xs("random twin: any pair with that label", level="condition")
    assert twin.to_dict() == {"P1G0": 0.1, "P2G0": 0.1, "P0G1": 0.5, "P2G1": 0.5}


def test_overlap_of_two_lists_in_chapter_31():
    lists = pd.DataFrame({"seed": [0, 0, 0, 1, 1], "position": [1, 2, 3, 2, 3]})
    table = functions("31_cross_scoring").overlaps(lists, [0, 1, 2], pool=12)
    assert table[["first", "second"]].to_numpy().tolist() == [[0, 1], [0, 2], [1, 2]]
    assert table["overlap"].tolist() == [2 / 3, 0, 0]  # the third seed lists nothing
    assert table["chance"].tolist() == pytest.approx([0.5 / 4.5, 0, 0])


# ---------------------------------------------------------------- how well a score finds them

SCORES, WRONG = np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, False, True, False])


def test_precision_by_hand():
    assert average_precision(SCORES, WRONG) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert [precision_at(SCORES, WRONG, k) for k in (1, 2, 3, 4)] == [1, 1 / 2, 2 / 3, 1 / 2]
    # who knows nothing finds the share of wrong ones
    assert average_precision(np.zeros(4), WRONG) == precision_at(np.zeros(4), WRONG, 1) == 0.5


def test_all_weightings_at_once_are_scikit_learns_one_by_one():
    random = np.random.default_rng(1)
    wrong, weights = random.random(120) < 0.2, random.integers(1, 4, size=(20, 120))
    scores = (random.normal(size=120) + 1.5 * wrong).round(1)  # with ties
    plain = [average_precision_score(wrong, scores, sample_weight=row) for row in weights]
    assert agreement.weighted_precision(scores, wrong, weights) == pytest.approx(plain)
    some = np.where(np.arange(120) < 10, np.nan, scores)  # what is not scored is left out
    plain = agreement.weighted_precision(scores[10:], wrong[10:], weights[:, 10:])
    assert agreement.weighted_precision(some, wrong, weights) == pytest.approx(plain)


def test_within_a_label_an_order_gains_nothing_by_knowing_the_labels():
    label, wrong = np.repeat([0, 1], 10), np.r_[np.arange(10) < 6, np.arange(10) < 2]
    weights = np.ones((3, 20))
    by_label, draws = WITHIN(1.0 - label, wrong, label, weights)
    assert by_label == pytest.approx((0.6 + 0.2) / 2) and draws == pytest.approx([by_label] * 3)
    assert agreement.precision_within(1 - label, wrong, label, weights)[0] == by_label
    whole, _ = WITHIN(1.0 - label, wrong, 0 * label, weights)
    assert whole == pytest.approx(average_precision(1.0 - label, wrong)) and whole > by_label
    random = np.random.default_rng(0)
    scores, weights = random.normal(size=20), random.integers(1, 4, size=(5, 20))
    _, found = agreement.precision_within(scores, wrong, label, weights)
    parts = [label == each for each in (0, 1)]
    plain = [[average_precision_score(wrong[p], scores[p], sample_weight=row[p]) for p in parts] for row in weights]
    assert found == pytest.approx(np.mean(plain, axis=1))
    assert agreement.precision_within(label, wrong, label)[0] == pytest.approx(by_label)


examples = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=40)
examples = examples.filter(lambda rows: any(wrong for _, wrong in rows))


@given(examples, st.randoms(use_true_random=False))
def test_equal_to_the_slow_twin_in_any_order(rows, random):
    scores, wrong = np.array([row[0] for row in rows], float), np.array([row[1] for row in rows])
    area, slow, before = average_precision(scores, wrong), 0.0, 0.0
    for level in sorted(set(scores), reverse=True):
        named = wrong[scores >= level]
        recall = named.sum() / wrong.sum()
        slow, before = slow + (recall - before) * named.mean(), recall
    assert area == pytest.approx(slow) and 0 < area <= 1
    order = list(range(len(rows)))
    random.shuffle(order)
    assert average_precision(scores[order], wrong[order]) == pytest.approx(area)


def test_bad_input_is_one_error():
    wrong = {"nothing can be found": (SCORES, np.zeros(4, bool)), "NaN": ([1.0, np.nan], WRONG[:2])}
    wrong |= {"inconsistent numbers of samples": (SCORES, WRONG[:2]), "k=5 of 4": (SCORES, WRONG, 5)}
    for said, each in wrong.items():
        with pytest.raises(ValueError, match=said):
            (precision_at if len(each) == 3 else average_precision)(*each)


# ---------------------------------------------------------------- mismatches over trainings and premises


def planted(n=120, wrong=None):
    """Three trainings on n pairs labelled entailment, two a premise; a larger gap means more wrong labels."""
    generator = np.random.default_rng(0)
    gap = generator.uniform(0.1, 6, size=n)
    wrong = generator.random(n) < gap / 6 if wrong is None else np.full(n, wrong)
    noisy = [gap + generator.normal(scale=0.1, size=n) for _ in range(3)]
    logits = {at: np.stack([np.zeros(n), each, np.full(n, -9.0)], axis=1) for at, each in enumerate(noisy)}
    return Mismatches.of(logits, np.zeros(n, dtype=int), wrong=wrong, premises=np.repeat(np.arange(n // 2), 2))


def test_mismatches_by_hand():
    """Four pairs, two trainings. The first contradicts pairs 0, 1 and 2, the second pairs 0 and 1."""
    logits = {
        0: [[0, 3, -9], [0, 1, -9], [0, 5, -9], [2, 0, -9]],
        1: [[0, 4, -9], [0, 2.5, -9], [1, 0, -9], [2, 0, -9]]}  # fmt: skip
    found = Mismatches.of(logits, [0, 0, 0, 0], wrong=[True, False, False, True], premises=["a", "a", "b", "c"])
    assert found.chosen.tolist() == [[True, True, True, False], [True, True, False, False]]
    assert found.gap.tolist() == [[3, 1, 5, 0], [4, 2.5, 0, 0]]
    every = share_of(found.wrong, found.chosen, found.premises)
    assert every.value == pytest.approx((1 / 3 + 1 / 2) / 2) and every[3:] == (2, 2, "premises and trainings")
    above = share_of(found.wrong, found.chosen & (found.gap > 2), found.premises)
    assert above.value == pytest.approx((1 / 2 + 1 / 2) / 2)
    for kind, chosen in (("P1G0", [[False, True]]), ("P2G0", [[True, False]])):  # the other kinds are not counted
        one = {0: [[0, -1, 3], [0, 3, -1]]}
        assert Mismatches.of(one, [0, 0], wrong=[1, 1], premises=[0, 1], kind=kind).chosen.tolist() == chosen


def test_the_planted_rise_and_threshold_are_found():
    found = planted(600)
    rise, pairs = agreement.errors_rise(found), zip(found.gap, found.chosen, strict=True)
    by_hand = np.mean([stats.spearmanr(gap[own], found.wrong[own]).statistic for gap, own in pairs])
    assert rise.value == pytest.approx(by_hand) and rise.low > 0 and threshold(found).value == pytest.approx(3, abs=0.4)


def test_where_nothing_is_wrong_nothing_can_rise_and_there_is_no_threshold():
    found = planted(wrong=False)
    assert agreement.errors_rise(found) is None and threshold(found).value == agreement.NONE
    assert share_of(found.wrong, found.chosen, found.premises).value == 0


def test_a_training_without_such_a_pair_gives_no_estimate():
    found = planted()
    chosen = found.chosen & np.array([[True], [False], [True]])
    assert share_of(found.wrong, chosen, found.premises) is None
    assert agreement.difference_of_shares(found.wrong, found.chosen, chosen, found.premises) is None
    assert threshold(found._replace(chosen=chosen)) is None


def test_a_difference_is_that_of_the_two_shares_and_does_not_depend_on_the_order():
    _, gap, wrong, premises = planted()
    large, small = gap > 3, gap <= 3
    ours = agreement.difference_of_shares(wrong, large, small, premises)
    parts = [share_of(wrong, part, premises).value for part in (large, small)]
    assert ours.value == pytest.approx(parts[0] - parts[1])
    order = np.random.default_rng(1).permutation(len(wrong))
    turned = agreement.difference_of_shares(wrong[order], large[:, order], small[:, order], premises[order])
    assert turned.value == pytest.approx(ours.value)
