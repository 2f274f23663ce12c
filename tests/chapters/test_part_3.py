"""Cells of the chapters on known errors and on the order of suspects. Alone: pytest tests/chapters/test_part_3.py"""

import re
from collections import namedtuple

import numpy as np
import pandas as pd
import pytest
from cells import code, functions, ran
from scipy import stats
from sklearn.metrics import average_precision_score

from nli_lib.corpora.people import known_errors
from nli_lib.corpora.planted import make_split
from nli_lib.plots import TWIN
from nli_lib.stats import with_trainings

# ---------------------------------------------------------------- 34: known errors

KNOWN = functions("34_known_errors", np=np, pd=pd)
COUNTS, FIVE, MODELS, RANDOM = KNOWN.COUNTS, KNOWN.FIVE, KNOWN.MODELS, np.random.default_rng(1)
WRONG = RANDOM.random(120) < 0.2
GOOD = RANDOM.normal(size=(3, 120)) + 1.5 * WRONG  # three trainings that know something
WEIGHTS = KNOWN.weights_of(WRONG, np.arange(120) // 2, 200)
AP, NORMAL = [average_precision_score(WRONG, row) for row in GOOD], stats.norm.ppf(0.975)
STUDENT = stats.t.ppf(0.975, 2) * np.std(AP, ddof=1) / np.sqrt(3)
UNPUBLISHED = pd.DataFrame(columns=["method", "run", "key", "score"])


SAME = np.zeros(120)  # one label


def each(rows, label=SAME):
    return KNOWN.one_by_one(np.atleast_2d(rows), WRONG, WEIGHTS, label)


def estimate(found):
    value, trainings, draws = found
    return with_trainings(value, draws, trainings, n=120)


def tables(watched, items):
    given = {"watched": watched, "items": items, "published": UNPUBLISHED, "np": np, "pd": pd}
    return ran("34_known_errors", "scores-table", "found-orders", "found-save", "gains-table", **given).tables


def test_within_a_label_an_order_of_the_labels_is_worth_nothing():
    label = np.arange(120) % 3
    of_the_label = WRONG.astype(float) + 2 * label  # knows the errors, and puts the labels first
    assert each(of_the_label)[0] < 0.6 and each(of_the_label, label)[0] == 1
    rates = [WRONG[label == at].mean() for at in range(3)]
    value, _, draws = each(label, label)
    assert value == pytest.approx(np.mean(rates)) and np.mean(draws) == pytest.approx(value, abs=0.02)
    assert KNOWN.rank_in([3.0, 1.0, np.nan, 5.0], [0, 0, 0, 1]).tolist() == [1, 0.5, 0.5, 1]


def test_whole_pairs_and_trainings_are_drawn():
    assert (WEIGHTS[:, ::2] == WEIGHTS[:, 1::2]).all()
    found, one, together = each(GOOD), each(GOOD[0]), KNOWN.together(GOOD, WRONG, WEIGHTS, SAME)
    assert found[0] == pytest.approx(np.mean(AP))
    assert together[0] == pytest.approx(average_precision_score(WRONG, GOOD.mean(axis=0)))
    assert estimate(found).over == "pairs and trainings" and estimate(one).over == "pairs"
    assert estimate(together).low < together[0] < estimate(together).high
    same = each(GOOD[:1].repeat(3, axis=0))
    assert estimate(same)[:3] == pytest.approx(estimate(one)[:3])  # equal trainings add no spread
    assert len(KNOWN.weights_of(np.arange(30) == 0, np.arange(30), 200)) < 200  # those without the error are left out


def test_what_is_not_scored_is_left_out():
    scores = GOOD[0].copy()
    scores[:10] = np.nan
    assert each(scores)[0] == pytest.approx(average_precision_score(WRONG[10:], scores[10:]))


def test_the_interval_is_that_over_trainings_and_pairs():
    """By hand: 1.96 standard deviations of the resamples, and Student's interval over the trainings, in quadrature."""
    found = each(GOOD)
    half = np.hypot(STUDENT, NORMAL * found[2].std(ddof=1))
    assert estimate(found)[:3] == pytest.approx((found[0], found[0] - half, found[0] + half))


def test_trainings_that_are_one_order_spread_by_the_jackknife():
    value, by_training, _ = KNOWN.together(GOOD, WRONG, WEIGHTS, SAME)
    without = [average_precision_score(WRONG, np.delete(GOOD, place, axis=0).mean(axis=0)) for place in range(3)]
    assert by_training == pytest.approx(3 * value - 2 * np.array(without))
    value, alone, _ = KNOWN.together(GOOD[:1], WRONG, WEIGHTS, SAME)
    assert alone == pytest.approx([value])


def test_a_difference_is_paired_and_other_trainings_spread_on_their_own():
    better, worse = each(GOOD), each(GOOD - 0.8 * WRONG)
    gain = KNOWN.gain(better, worse, 120, paired=True)
    assert gain.value == pytest.approx(better[0] - worse[0]) and gain.low > 0
    assert gain.high - gain.low < estimate(better).high - estimate(worse).low
    assert KNOWN.gain(better, better, 120, paired=True)[:3] == (0, 0, 0)
    apart = KNOWN.gain(better, better, 120, paired=False)
    assert apart[:3] == pytest.approx((0, -np.sqrt(2) * STUDENT, np.sqrt(2) * STUDENT))
    one = each(GOOD[0])  # one training has no spread
    fewer, spread = KNOWN.gain(better, one, 120, paired=True), (better[2] - one[2]).std(ddof=1)
    assert fewer.high - fewer.value == pytest.approx(np.hypot(STUDENT, NORMAL * spread))


def test_flips_are_found_by_models_that_see_the_truth():
    corpus = make_split("train", 600, seed=2)
    items = known_errors(corpus)
    true = corpus.table["true_label"].to_numpy(dtype=int)[items["position"]]
    watched = {seed: np.random.default_rng(seed).normal(size=(2, len(items), 3)) for seed in (0, 1)}
    for logits in watched.values():
        logits[:, np.arange(len(items)), true] += 3
    found = tables(watched, items)
    value = found["found"].query("items == 'all labels'").set_index("score")["value"]
    assert value.is_monotonic_decreasing and value[MODELS] > 0.8 and value[TWIN] < 0.3
    assert value["label counts alone"] == pytest.approx(items["error"].mean())  # one annotator each
    assert value[COUNTS] == pytest.approx(value[MODELS])
    gains = found["gains"].query("items == 'all labels'").set_index("score")
    assert set(gains["other"]) == {"label counts alone", KNOWN.LABEL} and (gains.loc[[MODELS, FIVE], "low"] > 0).all()


def test_without_judged_items_all_tables_are_empty_with_their_columns():
    found = tables({}, known_errors(make_split("train", 600, seed=2))[:0])
    assert all(table.empty for table in found.values())
    assert "score" in found["found"] and "score" in found["gains"] and MODELS in found["scores"]


def test_the_release_is_made_again_from_its_scores():
    items = pd.DataFrame({"key": list("abcd"), "error": [True, False, True, False], "count": [1, 1, 2, 3]})
    scores = pd.DataFrame({"method": "mine", "run": "1", "key": list("acdx"), "score": [0.2, 0.9, 0.5, 3.0]})
    printed = pd.Series({"mine": 83.3, "mine_rerank": 100.0, "LC_VariErr": 58.3, "random": 50.0})
    again = KNOWN.reproduced(scores, items, printed)["ours"].to_dict()
    mine = 100 * (1 + 2 / 3) / 2  # c, d, a, for b has no score; a, b (0), c, d
    assert again == pytest.approx({"mine": mine, "mine_rerank": mine, "LC_VariErr": 100 * (1 / 2 + 2 / 3) / 2})
    assert KNOWN.reproduced(scores[:0], items, printed).empty


# ---------------------------------------------------------------- 35: the order of suspects

SUSPECTS = functions("35_order_of_suspects")
ORDERS = LEARNT, FIXED, SHUFFLED, CHANCE = SUSPECTS.ORDERS


def planted(size=300, seed=0):
    """Suspects of two kinds: the one with the larger gaps is wrong in one of five, the other in three of five."""
    generator = np.random.default_rng(seed)
    kind = np.where(generator.random(size) < 0.5, "P1G0", "P2G1")
    gap = generator.random(size) + 0.5 * (kind == "P2G1")
    wrong = generator.random(size) < np.where(kind == "P1G0", 0.6, 0.2)
    return pd.DataFrame({"kind": kind, "gap": gap, "wrong": wrong, "unit": np.arange(size)})


def compared(*given, **options):
    table = SUSPECTS.compare_orders(*given, **options)
    return table.drop(table.index[table["order"] == "gain"]), table[table["order"] == "gain"].set_index("depth")


def test_a_case_by_hand():
    """Two batches of two. Both answers are known after the first, so the second prefers the kind that was wrong."""
    table = pd.DataFrame({"kind": list("abab"), "gap": [4.0, 3, 2.9, 2.8], "wrong": [False, True, False, True]})
    found = dict(zip(ORDERS, SUSPECTS.precision_in_turn(table, [2, 3, 4], every=2), strict=True))
    assert found[LEARNT] == pytest.approx([1 / 2, 2 / 3, 1 / 2])
    assert found[FIXED] == pytest.approx([1 / 2, 1 / 3, 1 / 2]) and found[CHANCE].tolist() == [0.5, 0.5, 0.5]


def test_decisions_on_others_teach_nothing():
    trials = [SUSPECTS.precision_in_turn(planted(seed=seed), [100], seed=seed)[:, 0] for seed in range(12)]
    precision = dict(zip(ORDERS, np.mean(trials, axis=0), strict=True))
    assert precision[LEARNT] > precision[FIXED] + 0.15 and precision[SHUFFLED] < precision[CHANCE] + 0.05


def test_the_halves_vary_as_other_corpora_do():
    gains = [np.subtract(*SUSPECTS.precision_in_turn(planted(seed=seed), [80])[:2, 0]) for seed in range(40)]
    table, gain = compared([planted(seed=seed) for seed in (100, 101)], [80], halves=8)
    assert gain.loc[80, ["n", "seeds", "over"]].tolist() == [300, 2, "premises and trainings"]
    _, alone = compared([planted(seed=100)], [80], halves=60)  # one training: the interval is over premises
    assert alone.loc[80, "over"] == "premises"
    assert ((alone.loc[80, "high"] - alone.loc[80, "low"]) / 2) / 1.96 == pytest.approx(np.std(gains), rel=0.4)
    assert set(table["order"]) == set(ORDERS) and (table["low"] <= table["value"]).all()


def test_a_unit_is_drawn_whole():
    table = planted(60)
    twice = pd.concat([table, table], ignore_index=True)
    once, gain = compared([table], [10], halves=20)
    both, gain_of_both = compared([twice], [20], halves=20, units="pairs")
    assert gain.loc[10, "n"] == gain_of_both.loc[20, "n"] == 60 and gain_of_both.loc[20, "over"] == "pairs"
    ends = [part[part["order"] == FIXED][["low", "value", "high"]].to_numpy() for part in (once, both)]
    np.testing.assert_allclose(*ends)  # rows drawn one by one would vary less


def test_a_list_that_is_too_short_has_no_rows():
    table, gains = compared([planted(40), planted(30)], [50, 30], halves=5)
    assert table["depth"].unique().tolist() == [30] and gains.index.tolist() == [30]
    assert all(part.empty for part in compared([], [50]))


# ---------------------------------------------------------------- 38: detectors

SIDE = functions("38_detectors", RESAMPLES=20)


def trial(n=240, trainings=2):
    """Labels of which a tenth is wrong; models, neighbours and people see the truth."""
    rng = np.random.default_rng(3)
    true, wrong = np.arange(n) % 3, rng.permutation(n) < n // 10
    label = np.where(wrong, (true + 1) % 3, true)
    views = rng.normal(size=(2, trainings, 4, n, 3)) + 3 * np.eye(3)[true]
    near, means, z, ngrams = rng.normal(size=(4, n, 3)) + 3 * np.eye(3)[true]
    five = np.where(rng.random((n, 5)) < 0.8, true[:, None], rng.integers(0, 3, (n, 5)))
    five[:, 0] = label
    Trial = namedtuple("Trial", "label group pair hypothesis crossed near means z ngrams five")
    return Trial(label, np.arange(n) // 3, *views, views[0][:, -1], near, means, z, ngrams, five), wrong


def test_a_larger_share_of_noise_has_the_smaller_in_it():
    labels, others = np.zeros(100, dtype=int), np.where(np.arange(100)[:, None] < 60, [[-1, 2, 0]], -1)
    few, many = (SIDE.replaced(labels, others, share) for share in (0.1, 0.3))
    assert ((few != 0).sum(), (many != 0).sum()) == (10, 30) and set(many[many != 0]) == {2}
    assert (many[few != 0] != 0).all() and (few[60:] == 0).all()


def test_dawid_and_skene_find_who_confuses_what():
    rng, true = np.random.default_rng(0), np.arange(600) % 3
    careful = np.where(rng.random((600, 3)) < 0.75, true[:, None], rng.integers(0, 3, (600, 3)))
    given = np.column_stack([careful, (true + 1) % 3, (true + 1) % 3])  # two always err, in one way
    given[:50, 0] = -1
    found, votes = SIDE.dawid_skene(given), (given[..., None] == np.arange(3)).sum(axis=1).argmax(axis=1)
    assert (found.argmax(axis=1) == true).mean() > 0.95 > 0.9 > (votes == true).mean()
    assert found.sum(axis=1) == pytest.approx(1)


def test_ones_own_detector_is_judged_with_the_others():
    """The line of the chapter's second exercise, put after the cell with the detectors."""
    (line,) = re.findall(r'`(DETECTORS\["mine"\].*?)`', "\n".join(code("38_detectors", kind="markdown")))
    given, wrong = trial()
    exec(line, vars(SIDE) | {"entropy": stats.entropy})
    names = [*SIDE.DETECTORS, SIDE.BORDA, *SIDE.WITH_PEOPLE]
    found, first, groups = SIDE.judge(given, np.arange(240), wrong)
    found = {key: values[:, 0].mean() for key, values in found.items()}
    assert {name for name, _ in found} == {*names, SIDE.ALONE, SIDE.TWIN} and groups == 80
    assert found[SIDE.ALONE, SIDE.WITHIN] == pytest.approx(wrong.mean(), abs=0.02)
    blind = {"mine", "variability", "max variability", "forgetting", SIDE.ALONE, SIDE.TWIN, "level of difficulty"}
    assert min(value for (name, _), value in found.items() if name not in blind) > 0.5 > found["mine", SIDE.WITHIN]
    assert len({row[0] for row in first}) == len(names) + 2 and max(row[-1] for row in first) <= 1
