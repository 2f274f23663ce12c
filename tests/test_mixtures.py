"""Alone: pytest tests/test_mixtures.py"""

import numpy as np
import pytest

from nli_lib.compare import ANLI, MEAN, accuracy, columns, compare, printed

SIZES = {"HANS": 40, "ANLI R1": 10, "ANLI R2": 20, "ANLI R3": 60}
PREMISES = {title: np.arange(size) // 2 for title, size in SIZES.items()}


def answers(share, seed, trainings=3):
    """Right answers at random, ``share`` of them."""
    random = np.random.default_rng(seed)
    return {title: random.random((trainings, size)) < share for title, size in SIZES.items()}


def test_the_rounds_of_anli_are_one_column():
    assert columns(SIZES) == {"HANS": ["HANS"], "ANLI": ["ANLI R1", "ANLI R2", "ANLI R3"]}
    assert columns(["ANLI", "ANLI dev"]) == {"ANLI": ["ANLI"], "ANLI dev": ["ANLI dev"]}


def test_the_papers_gains_on_anli():
    """47.49, 26.10 and 25.00% against 51.99, 35.89 and 38.08%: 9.1 points (WANLI, Table 3 and section 3.3)."""
    sizes = {"ANLI R1": 10_000, "ANLI R2": 10_000, "ANLI R3": 12_000}
    printed = {"multinli": (47.49, 26.10, 25.00), "wanli": (51.99, 35.89, 38.08)}
    right = {
        name: {t: (np.arange(n) < round(n * v / 100))[None] for (t, n), v in zip(sizes.items(), row, strict=True)}
        for name, row in printed.items()
    }
    premises = {title: np.arange(size) for title, size in sizes.items()}
    found = accuracy(right["wanli"], premises, columns(sizes), other=right["multinli"], resamples=20)
    assert found.value == pytest.approx(0.09123, abs=5e-5)
    assert (found.seeds, found.n, found.over) == (1, 32_000, "premises")


def slow(right, other, wanted):
    """One value a training: a loop over trainings, columns, test sets and pairs."""
    found = []
    for s in range(3):
        gaps = []
        for members in wanted.values():
            rounds = []
            for title in members:
                pairs = zip(right[title][s], other[title][s], strict=True)
                gaps_of_pairs = [int(one) - int(two) for one, two in pairs]
                rounds.append(sum(gaps_of_pairs) / len(gaps_of_pairs))
            gaps.append(sum(rounds) / len(rounds))
        found.append(sum(gaps) / len(gaps))
    return sum(found) / len(found)


def test_the_difference_is_that_of_the_slow_twin():
    one, two, wanted = answers(0.7, 1), answers(0.5, 2), columns(SIZES)
    found = accuracy(one, PREMISES, wanted, other=two, resamples=30)
    assert found.value == pytest.approx(slow(one, two, wanted))
    assert found.low < found.value < found.high and found.n == 65
    assert (found.seeds, found.over) == (3, "premises and trainings")
    back = accuracy(two, PREMISES, wanted, other=one, resamples=30)
    assert back.value == pytest.approx(-accuracy(one, PREMISES, wanted, other=two, resamples=30).value)


def test_the_papers_table():
    found = printed()
    assert found["HANS", "WANLI, part"] - found["HANS", "MultiNLI"] == pytest.approx(0.1132)
    assert found[ANLI, "MultiNLI ◇ WANLI"] == pytest.approx((0.5070 + 0.2910 + 0.2841) / 3)
    gaps = found[MEAN] - found[MEAN, "MultiNLI"]
    assert gaps["WANLI, part"] == pytest.approx(0.13406, abs=1e-5)
    assert gaps["MultiNLI + WANLI"] == pytest.approx(0.0626, abs=5e-5)


def test_it_does_not_matter_in_which_order_the_pairs_or_the_test_sets_stand():
    one, two, order = answers(0.7, 1), answers(0.5, 2), np.random.default_rng(3).permutation(40)
    value = accuracy(one, PREMISES, columns(SIZES), other=two, resamples=20).value
    for each in (one, two):
        each["HANS"] = each["HANS"][:, order]
    turned = dict(reversed(columns(SIZES).items()))
    premises = PREMISES | {"HANS": PREMISES["HANS"][order]}
    assert accuracy(one, premises, turned, other=two, resamples=20).value == pytest.approx(value)


def test_pairs_of_one_premise_are_drawn_together():
    """Where all pairs of a premise are right or wrong alike, ten premises of 20 pairs are ten draws, not 200."""
    share = np.repeat(np.arange(10) % 2 == 0, 20)[None].repeat(3, axis=0)
    wide, narrow = (
        accuracy({"A": share}, {"A": groups}, {"A": ["A"]}, resamples=200)
        for groups in (np.repeat(np.arange(10), 20), np.arange(200))
    )
    assert wide.high - wide.low == pytest.approx((narrow.high - narrow.low) * np.sqrt(20), rel=0.25)


def test_other_trainings_widen_the_interval():
    same = {title: part[:1].repeat(3, axis=0) for title, part in answers(0.6, 1).items()}
    differing = {title: part.copy() for title, part in same.items()}
    differing["HANS"][1] = True
    one, two = (accuracy(each, PREMISES, columns(SIZES), resamples=50) for each in (same, differing))
    assert two.high - two.low > 1.5 * (one.high - one.low)


def test_the_table_has_every_training_set_on_every_column():
    right = {"MultiNLI": answers(0.5, 1), "WANLI": answers(0.8, 2)}
    table = compare(right, PREMISES, ["HANS", "ANLI", "QNLI"], resamples=20).set_index(["condition", "title"])
    assert table.index.tolist() == [(name, title) for name in right for title in ("HANS", "ANLI", MEAN)]
    both = table.loc["WANLI", "value"]
    assert both[MEAN] == pytest.approx((both["HANS"] + both["ANLI"]) / 2)
    gaps = compare(right, PREMISES, ["HANS"], baseline="MultiNLI", resamples=20)
    assert set(gaps["condition"]) == {"WANLI"}
    above = table["value"]["WANLI"]["HANS"] - table["value"]["MultiNLI"]["HANS"]
    assert gaps.set_index("title")["value"][["HANS", MEAN]].tolist() == pytest.approx([above, above])
    assert compare({}, PREMISES, ["HANS"]).empty
    assert MEAN not in set(compare(right, PREMISES, ["QNLI"], resamples=20)["title"])
