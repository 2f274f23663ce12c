"""What one training set is worth beside another; chapters 15 and 43. Alone: pytest tests/test_mixtures.py"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cells import functions

from nli_lib.claims import paper_table
from nli_lib.compare import ANLI, MEAN, PLAIN, WEIGHTED, accuracy, average, columns, compare

SIZES = {"HANS": 40, "ANLI R1": 10, "ANLI R2": 20, "ANLI R3": 60}
PREMISES = {title: np.arange(size) // 2 for title, size in SIZES.items()}


def answers(share, seed, trainings=3, sizes=SIZES):
    """Right answers at random, ``share`` of them."""
    random = np.random.default_rng(seed)
    return {title: random.random((trainings, size)) < share for title, size in sizes.items()}


def test_the_rounds_of_anli_are_one_column():
    assert columns(SIZES) == {"HANS": ["HANS"], "ANLI": ["ANLI R1", "ANLI R2", "ANLI R3"]}
    assert columns(["ANLI", "ANLI dev"]) == {"ANLI": ["ANLI"], "ANLI dev": ["ANLI dev"]}


def test_the_papers_gains_on_anli():
    """47.49, 26.10 and 25.00% against 51.99, 35.89 and 38.08%: 9.1 points (WANLI, Table 3 and section 3.3)."""
    sizes = {"ANLI R1": 10_000, "ANLI R2": 10_000, "ANLI R3": 12_000}
    multinli, wanli = ({
        t: (np.arange(n) < round(n * v / 100))[None] for (t, n), v in zip(sizes.items(), row, strict=True)}
        for row in ((47.49, 26.10, 25.00), (51.99, 35.89, 38.08)))  # fmt: skip
    premises = {title: np.arange(size) for title, size in sizes.items()}
    found = accuracy(wanli, premises, columns(sizes), other=multinli, resamples=20)
    assert found.value == pytest.approx(0.09123, abs=5e-5) and found[3:] == (32_000, 1, "premises")


def slow(right, other, wanted, weights=None):
    """The mean over the trainings of a loop over columns, test sets and pairs."""
    found = []
    for s in range(len(next(iter(right.values())))):
        gaps = []
        for members in wanted.values():
            pairs = [list(zip(right[title][s], other[title][s], strict=True)) for title in members]
            rounds = [sum(int(one) - int(two) for one, two in each) / len(each) for each in pairs]
            gaps.append(sum(rounds) / len(rounds))
        found.append(np.average(gaps, weights=weights))
    return np.mean(found)


def test_the_difference_is_that_of_the_slow_twin():
    one, two, wanted = answers(0.7, 1), answers(0.5, 2), columns(SIZES)
    found = accuracy(one, PREMISES, wanted, other=two, resamples=30)
    back = accuracy(two, PREMISES, wanted, other=one, resamples=30)
    assert found.value == pytest.approx(slow(one, two, wanted)) == pytest.approx(-back.value)
    assert found.low < found.value < found.high and found[3:] == (65, 3, "premises and trainings")


def test_it_does_not_matter_in_which_order_the_pairs_or_the_test_sets_stand():
    one, two, order = answers(0.7, 1), answers(0.5, 2), np.random.default_rng(3).permutation(40)
    value = accuracy(one, PREMISES, columns(SIZES), other=two, resamples=20).value
    for each in (one, two):
        each["HANS"] = each["HANS"][:, order]
    turned, premises = dict(reversed(columns(SIZES).items())), PREMISES | {"HANS": PREMISES["HANS"][order]}
    assert accuracy(one, premises, turned, other=two, resamples=20).value == pytest.approx(value)


def test_pairs_of_one_premise_are_drawn_together():
    """Where all pairs of a premise are right or wrong alike, ten premises of 20 pairs are ten draws, not 200."""
    share = np.repeat(np.arange(10) % 2 == 0, 20)[None].repeat(3, axis=0)
    wide, narrow = (accuracy({"A": share}, {"A": groups}, {"A": ["A"]}, resamples=200)
        for groups in (np.repeat(np.arange(10), 20), np.arange(200)))  # fmt: skip
    assert wide.high - wide.low == pytest.approx((narrow.high - narrow.low) * np.sqrt(20), rel=0.25)


def test_other_trainings_widen_the_interval():
    same = {title: part[:1].repeat(3, axis=0) for title, part in answers(0.6, 1).items()}
    differing = {title: part.copy() for title, part in same.items()}
    differing["HANS"][1] = True
    one, two = (accuracy(each, PREMISES, columns(SIZES), resamples=50) for each in (same, differing))
    assert two.high - two.low > 1.5 * (one.high - one.low)


def test_the_table_has_every_training_set_on_every_column():
    right = {"MultiNLI": answers(0.5, 1), "WANLI": answers(0.8, 2)}
    table = compare(right, PREMISES, ["HANS", "ANLI", "QNLI"]).set_index(["condition", "title"])
    assert table.index.tolist() == [(name, title) for name in right for title in ("HANS", "ANLI", MEAN)]
    both = table.loc["WANLI", "value"]
    assert both[MEAN] == pytest.approx((both["HANS"] + both["ANLI"]) / 2)
    gaps = compare(right, PREMISES, ["HANS"], baseline="MultiNLI")
    above = both["HANS"] - table.loc[("MultiNLI", "HANS"), "value"]
    assert set(gaps["condition"]) == {"WANLI"}
    assert gaps.set_index("title")["value"][["HANS", MEAN]].tolist() == pytest.approx([above, above])
    assert compare({}, PREMISES, ["HANS"]).empty and MEAN not in set(compare(right, PREMISES, ["QNLI"])["title"])


def test_the_table_of_chapter_15s_paper():
    found = functions("15_train_on_wanli").printed()
    assert found["HANS", "WANLI, part"] - found["HANS", "MultiNLI"] == pytest.approx(0.1132)
    assert found[ANLI, "MultiNLI ◇ WANLI"] == pytest.approx((0.5070 + 0.2910 + 0.2841) / 3)
    gaps = found[MEAN] - found[MEAN, "MultiNLI"]
    assert gaps["WANLI, part"] == pytest.approx(0.13406, abs=1e-5)
    assert gaps["MultiNLI + WANLI"] == pytest.approx(0.0626, abs=5e-5)


# ---------------------------------------------------------------- chapter 43

CELLS = functions("43_students", study=SimpleNamespace())
SUITES, ROWS, TWO = {"robustness": ["hans", "st"]}, {"hans": "hans", "st": "st"}, {"hans": 60, "st": 40}
BY_PREMISE = {"hans": np.arange(60) // 2, "st": np.arange(40)}


def test_the_papers_averages_are_weighted_by_size():
    """Fixture D13: all sixteen cells of Table 4 follow from Tables 3 and 5 by the sizes of Table 2, none by chance."""
    cell = CELLS.printed_averages().set_index(["condition", "column"])
    assert len(cell) == 16
    assert (cell[WEIGHTED] - cell["printed"]).abs().max() < 0.101  # printed with one digit, cut or rounded
    rows = ["subset", "subset-add-disco", "wanli", "wanli-add-disco"]
    assert rows == list(paper_table("disco", "Table 4").index)
    wanted = {
        ("robustness", PLAIN): [74.79, 79.90, 72.43, 80.93], ("robustness", WEIGHTED): [71.05, 77.51, 65.86, 75.12],
        ("out-of-domain", WEIGHTED): [76.66, 79.38, 78.00, 80.10], ("accuracy", WEIGHTED): [47.12, 55.17, 34.64, 52.66],
        ("sensitivity", WEIGHTED): [58.64, 64.88, 44.95, 57.60]}  # fmt: skip
    for (column, kind), values in wanted.items():
        close = pytest.approx(values, abs=0.01 if column == "robustness" else 0.011)
        assert cell.xs(column, level="column").loc[rows, kind].tolist() == close


def test_one_stress_test_is_almost_two_thirds_of_the_robustness():
    weights = CELLS.weights_of(CELLS.ROBUSTNESS, {title: title for title in CELLS.ROBUSTNESS})
    assert weights[CELLS.ROBUSTNESS.index("st")] == pytest.approx(0.63, abs=0.005)
    assert CELLS.weights_of(["mine", "st"], ROWS).tolist() == [0.5, 0.5]  # a set the paper has not


def test_an_average_is_that_of_the_slow_twin():
    one, two, weights = answers(0.8, 0, 5, TWO), answers(0.5, 1, 5, TWO), CELLS.weights_of(["hans", "st"], ROWS)
    by_hand = slow(one, two, columns(TWO), weights)
    found = average(one, BY_PREMISE, ["hans", "st"], weights, other=two, resamples=40)
    assert found.value == pytest.approx(by_hand) and found.low < found.value < found.high
    assert found[4:] == (5, "premises and trainings")
    table = CELLS.average_table({"a": one, "b": two}, BY_PREMISE, SUITES, ROWS, baseline="b")
    assert table["condition"].tolist() == ["a", "a"] and table["average"].tolist() == [PLAIN, WEIGHTED]
    assert table["value"].iloc[1] == pytest.approx(by_hand)
    assert CELLS.score_table({"a": one}, {"empty": []}, {}, range(5)).empty
    assert CELLS.average_table({"a": one}, BY_PREMISE, {"empty": []}, {}).empty


def test_the_best_of_five_by_hand():
    scores = pd.DataFrame({"suite": "r", "average": WEIGHTED, "condition": "a", "seed": range(5)})
    validation = scores[["condition", "seed"]].assign(validation=[0.7, 0.9, 0.9, 0.8, 0.6])
    row = CELLS.best_of(scores.assign(value=[0.50, 0.60, 0.55, 0.65, 0.45]), validation).iloc[0]
    # of two equal validation accuracies the first seed
    wanted = {"trainings": 5, CELLS.OF_ALL: pytest.approx(0.55), CELLS.BY_VALIDATION: 0.60, CELLS.BY_SCORE: 0.65}
    assert row[list(wanted)].to_dict() == wanted


def test_the_best_is_never_below_the_mean_and_one_training_is_its_own_best():
    right = {name: answers(0.6, seed, 5, TWO) for seed, name in enumerate("abc")}
    validation = [(n, s, 0.5 + s / 10) for n in "abc" for s in range(5)]
    validation = pd.DataFrame(validation, columns=["condition", "seed", "validation"])
    best = CELLS.best_of(CELLS.score_table(right, SUITES, ROWS, range(5)), validation)
    assert (best[CELLS.BY_SCORE] >= best[[CELLS.OF_ALL, CELLS.BY_VALIDATION]].max(axis=1) - 1e-12).all()
    worth = CELLS.worth_of_choosing(best, "robustness")
    assert worth.value > 0 and (worth.n, worth.seeds) == (15, 15)
    single = CELLS.score_table({"a": answers(0.6, 0, 1, TWO)}, SUITES, ROWS, [0])
    alone = CELLS.best_of(single, validation.head(1)).iloc[0]
    assert alone[CELLS.OF_ALL] == alone[CELLS.BY_VALIDATION] == alone[CELLS.BY_SCORE]
