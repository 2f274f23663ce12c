"""Statistics of mismatches over trainings and premises. Alone: pytest tests/test_mismatches.py"""

import numpy as np
import pytest
from scipy import stats

from nli_lib.agreement import NONE, Mismatches, difference_of_shares, errors_rise, share_of, threshold


def planted(trainings=3, n=120, seed=0):
    """Logits of S trainings on n pairs labelled entailment, two a premise; a larger gap means more wrong labels."""
    generator = np.random.default_rng(seed)
    gap = generator.uniform(0.1, 6, size=n)
    wrong = generator.random(n) < gap / 6
    logits = {}
    for at in range(trainings):
        noisy = gap + generator.normal(scale=0.1, size=n)
        logits[at] = np.stack([np.zeros(n), noisy, np.full(n, -9.0)], axis=1)
    return logits, np.zeros(n, dtype=int), wrong, np.repeat(np.arange(n // 2), 2)


def test_by_hand():
    """Four pairs, two trainings. The first contradicts pairs 0, 1 and 2, the second pairs 0 and 1."""
    logits = {
        0: [[0, 3, -9], [0, 1, -9], [0, 5, -9], [2, 0, -9]],
        1: [[0, 4, -9], [0, 2.5, -9], [1, 0, -9], [2, 0, -9]],
    }
    found = Mismatches.of(logits, [0, 0, 0, 0], wrong=[True, False, False, True], premises=["a", "a", "b", "c"])
    assert found.chosen.tolist() == [[True, True, True, False], [True, True, False, False]]
    assert found.gap.tolist() == [[3, 1, 5, 0], [4, 2.5, 0, 0]]
    every = share_of(found.wrong, found.chosen, found.premises)
    assert every.value == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert (every.n, every.seeds, every.over) == (2, 2, "premises and trainings")
    above = share_of(found.wrong, found.chosen & (found.gap > 2), found.premises)
    assert above.value == pytest.approx((1 / 2 + 1 / 2) / 2)


def test_the_other_kinds_are_not_counted():
    found = Mismatches.of({0: [[0, -1, 3], [0, 3, -1]]}, [0, 0], wrong=[True, True], premises=[0, 1])
    assert found.chosen.tolist() == [[False, True]]
    other = Mismatches.of({0: [[0, -1, 3], [0, 3, -1]]}, [0, 0], wrong=[True, True], premises=[0, 1], kind="P2G0")
    assert other.chosen.tolist() == [[True, False]]


def test_the_planted_rise_and_threshold_are_found():
    logits, labels, wrong, premises = planted(n=600)
    found = Mismatches.of(logits, labels, wrong=wrong, premises=premises)
    rise = errors_rise(found)
    pairs = zip(found.gap, found.chosen, strict=True)
    by_hand = np.mean([stats.spearmanr(gap[own], wrong[own]).statistic for gap, own in pairs])
    assert rise.value == pytest.approx(by_hand)
    assert rise.low > 0
    assert threshold(found).value == pytest.approx(3, abs=0.4)


def test_where_nothing_is_wrong_nothing_can_rise_and_there_is_no_threshold():
    logits, labels, _, premises = planted()
    found = Mismatches.of(logits, labels, wrong=np.zeros(len(labels), bool), premises=premises)
    assert errors_rise(found) is None
    assert threshold(found).value == NONE
    assert share_of(found.wrong, found.chosen, premises).value == 0


def test_a_training_without_such_a_pair_gives_no_estimate():
    logits, labels, wrong, premises = planted()
    found = Mismatches.of(logits, labels, wrong=wrong, premises=premises)
    chosen = found.chosen.copy()
    chosen[1] = False
    assert share_of(found.wrong, chosen, premises) is None
    assert difference_of_shares(found.wrong, found.chosen, chosen, premises) is None
    assert threshold(found._replace(chosen=chosen)) is None


def test_a_difference_is_that_of_the_two_shares_and_does_not_depend_on_the_order():
    logits, labels, wrong, premises = planted()
    found = Mismatches.of(logits, labels, wrong=wrong, premises=premises)
    large, small = found.gap > 3, found.gap <= 3
    ours = difference_of_shares(wrong, large, small, premises)
    parts = [share_of(wrong, part, premises).value for part in (large, small)]
    assert ours.value == pytest.approx(parts[0] - parts[1])
    order = np.random.default_rng(1).permutation(len(wrong))
    turned = difference_of_shares(wrong[order], large[:, order], small[:, order], premises[order])
    assert turned.value == pytest.approx(ours.value)
