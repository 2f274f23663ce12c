"""Cells of the chapters on agreement, on the ledger and on planted interventions.

Alone: pytest tests/chapters/test_part_6.py"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cells import functions, ran
from matplotlib.patches import Rectangle
from scipy import stats

from nli_lib.claims import PLACES, Region
from nli_lib.corpora.planted import STRENGTHS, make_split
from nli_lib.stats import with_trainings

# ---------------------------------------------------------------- 60: the map of agreement

SCORE_MAP = functions("60_do_scores_agree").score_map
ROWS = [("a", "b", 0.97), ("a", "c", -0.32), ("b", "b", 0.8), ("b", "c", 0.04)]
AGREED = pd.DataFrame(ROWS, columns=["one", "other", "value"])


def test_numbers_stand_where_their_scores_meet():
    axes = SCORE_MAP(AGREED, ["c", "a", "b"], [["a", "b"], ["c"]], "Two of three").axes[0]
    drawn = {text.get_position(): text.get_text() for text in axes.texts}
    assert drawn == {(1, 0): "−32", (0, 1): "−32", (2, 1): "97", (1, 2): "97", (2, 2): "80"}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["c  1", "a  2", "b  3"]
    assert axes.get_title(loc="left") == "Two of three"
    (frame,) = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert frame.get_xy() == (0.5, 0.5) and frame.get_width() == 2


def test_what_is_not_known_is_blank_and_a_group_that_is_apart_has_no_frame():
    axes = SCORE_MAP(AGREED, ["a", "c", "b"], [["a", "b"]], "").axes[0]
    assert np.ma.getmaskarray(axes.images[0].get_array()).sum() == 2 and not axes.patches  # a and c with themselves
    axes = SCORE_MAP(AGREED.iloc[:0], [], [], "").axes[0]
    assert [text.get_text() for text in axes.texts] == ["Nothing to show for this corpus."]


# ---------------------------------------------------------------- 63: errors of the ledger

LEDGER = functions("63_claims", study=SimpleNamespace(), judged=None, pd=pd)


def ledger(**columns):
    row = {"low": 0.1, "high": 0.3, "seeds": 3, "over": "trainings", "region_low": 0.0, "region_high": np.inf}
    return pd.DataFrame([row | {"p": 1, "q": 1, "freedom": np.nan, "parts": 1} | columns])


def share(rates, *place):
    return rates.set_index(["rule", "distance", "verdict"])["share"][place]


def ends(region):
    return region.values.left, region.values.right


def test_a_spread_gives_back_the_interval_it_was_read_from():
    t = stats.t.ppf(0.975, 2)
    assert LEDGER.spread(-1.96, 1.96, 1, "pairs", 0) == pytest.approx((1, 0), abs=1e-4)
    assert LEDGER.spread(-1, 1, 3, "trainings", 2) == pytest.approx((0, np.sqrt(3) / t))
    pairs, trainings = LEDGER.spread(-1, 1, 3, "premises and trainings", 2)
    assert np.hypot(1.959964 * pairs, t * trainings / np.sqrt(3)) == pytest.approx(1, abs=1e-6)


def test_the_interval_is_the_one_that_the_chapters_record():
    value, low, high = LEDGER.simulated(1.0, 0.5, 0.2, 3, 2, 4, seed=7)
    generator = np.random.default_rng(7)
    drawn = 1 + 0.5 * generator.standard_normal((4, 1)) + 0.2 * generator.standard_normal((4, 3))
    for row, found in zip(drawn, zip(value, low, high, strict=True), strict=True):
        draws = row.mean() + 0.5 * np.random.default_rng(0).standard_normal(200_000)
        assert found == pytest.approx(with_trainings(row.mean(), draws, row, n=10)[:3], abs=0.01)


TRUE = [(Region(above=1), 1.5, 0.5), (Region(below=1), 0.5, 1.5), (Region(between=(0, 10)), 0.5, -0.5)]
TRUE += [(Region(between=(0, 0.4)), 0.2, -0.5)]  # never past the middle


@pytest.mark.parametrize(("region", "inside", "outside"), TRUE)
def test_the_truth_lies_where_it_should(region, inside, outside):
    assert LEDGER.true_value(ends(region), 0.5, 1.0) == pytest.approx(inside)
    assert LEDGER.true_value(ends(region), 0.5, -1.0) == pytest.approx(outside)


@pytest.mark.parametrize("region", [Region(above=0), Region(below=0), Region(between=(-1, 0))])
def test_verdicts_of_many_intervals_are_those_of_one_at_a_time(region):
    intervals = [(-2, -1.5), (-2, -1), (-1, 0), (-0.5, 0), (-0.5, 0.5), (0, 1), (0.5, 1), (-3, 3), (0, 0)]
    low, high = np.array(intervals, dtype=float).T
    assert LEDGER.verdicts(ends(region), low, high).tolist() == [PLACES[region.place(*each)] for each in intervals]


def test_at_the_border_a_false_claim_is_held_in_one_of_forty_studies_at_most():
    rates = LEDGER.error_rates(ledger(), (-1e-9, 1e-9), studies=4_000)
    assert share(rates, LEDGER.RULES[0], -1e-9, "held") == pytest.approx(0.025, abs=0.008)
    assert share(rates, LEDGER.RULES[0], 1e-9, "not held") == pytest.approx(0.025, abs=0.008)
    pooled = LEDGER.error_rates(ledger(freedom=8.2), (-1e-9, 1.0), studies=4_000)
    assert share(pooled, LEDGER.RULES[0], -1e-9, "held") == pytest.approx(0.025, abs=0.008)
    # any of three parts loses a true claim, a false one has to hold in all
    parts = LEDGER.error_rates(ledger(parts=3), (-1e-9, 1e-9), studies=4_000)
    assert share(parts, LEDGER.RULES[0], 1e-9, "not held") == pytest.approx(1 - 0.975**3, abs=0.012)
    assert share(parts, LEDGER.RULES[0], -1e-9, "held") < 0.001
    table = ledger().assign(p=0.01, q=0.05)  # the least that the correction asks for here
    rates = LEDGER.error_rates(table, (-1e-9,), studies=4_000)
    assert share(rates, LEDGER.RULES[1], -1e-9, "held") == pytest.approx(0.005, abs=0.004)


def test_far_from_the_border_the_verdict_is_right_and_nearer_less_often():
    rates = LEDGER.error_rates(ledger(over="pairs", seeds=1), (-4.0, 0.5, 1.0, 4.0), studies=500)
    assert share(rates, LEDGER.RULES[0], -4.0, "not held") == share(rates, LEDGER.RULES[0], 4.0, "held") == 1
    assert share(rates, LEDGER.RULES[0], 0.5, "held") < share(rates, LEDGER.RULES[0], 1.0, "held") < 0.7


def test_shares_add_up_and_claims_without_an_interval_are_left_out():
    table = pd.concat([ledger(), ledger(low=np.nan, high=np.nan), ledger(low=0.2, high=0.2)])
    rates = LEDGER.error_rates(table, studies=50)
    assert set(rates["claims"]) == {1}
    assert rates.groupby(["rule", "distance"])["share"].sum().to_numpy() == pytest.approx(1)
    assert LEDGER.error_rates(table[1:], studies=50).empty


# ---------------------------------------------------------------- 64: planted interventions

OFF, PLANTED = dict.fromkeys(STRENGTHS, 0.0), {"words": {"artifact": 0.6}, "flips": {"flips": 0.25}, "nothing": {}}
HELP = functions("64_planted_interventions", planted=PLANTED, pd=pd)
LINEAR, ENCODER = "n-grams of the hypothesis", "encoder"
TRUTH, Z, PRUNED, AMBIGUOUS = HELP.REMOVES


def corpora(title, seed, n=400):
    clean = OFF | PLANTED[title] | {"flips": 0.0}
    tests = {split: make_split(split, n, seed, **clean) for split in ("test", "challenge")}
    return make_split("train", n, seed, **(OFF | PLANTED[title])), tests


def gains_of(accuracy):
    given = {"study": SimpleNamespace(table=lambda _: accuracy), "planted": PLANTED, "np": np, "pd": pd}
    return ran("64_planted_interventions", "aa86f1a0", "gains-table", **given).tables["gains"]


def test_removing_a_planted_artifact_helps_exactly_on_the_challenge_split():
    measured = [
        HELP.linear_accuracy(*corpora(title, seed, n), seed=seed).assign(planted=title, learner=LINEAR)
        for title, n in (("words", 1_000), ("flips", 300), ("nothing", 300)) for seed in range(3)]  # fmt: skip
    measured = pd.concat(measured)
    found = gains_of(measured).set_index(["planted", "arm", "title"]).sort_index()
    truth, z = (found.loc["words"].loc[arm] for arm in (TRUTH, Z))
    assert all(each.loc["challenge", "low"] > 0 > each.loc["test", "high"] for each in (truth, z))
    assert truth.loc["challenge", "value"] > z.loc["challenge", "value"]
    assert set(found.loc["words", "seen"]) == {"as planted"}
    # n-grams of the hypothesis cannot learn the task
    assert (found.loc[["nothing", "flips"], "expected"] == "no gain").all()
    wide = measured.pivot_table(index=["planted", "title"], columns="condition", values="accuracy")["all pairs"]
    assert wide["words", "challenge"] < 0.25 < 0.6 < wide["words", "test"]
    assert wide["nothing", "test"] == pytest.approx(1 / 3, abs=0.1)


def test_arms_and_their_twins():
    corpus, _ = corpora("flips", 0, n=120)
    random = np.random.default_rng(0)
    logits = random.normal(size=(2, 120, 3)), random.normal(size=(120, 3)) * 3
    found = HELP.arms(corpus, *logits, threshold=0.5)
    assert list(found)[:5] == ["all pairs", TRUTH, Z, PRUNED, AMBIGUOUS] and len(found) == 9
    assert found["all pairs"].keep.all() and found[AMBIGUOUS].size == 40 and 0 < found[PRUNED].size < 120
    assert (found[TRUTH].keep == ~corpus.table["flipped"].to_numpy(bool)).all()
    counts = {name: np.bincount(corpus.labels[each.keep], minlength=3).tolist() for name, each in found.items()}
    assert all(counts[name] == counts[f"{name}, twin"] for name in HELP.REMOVES)
    assert list(HELP.arms(corpus))[:3] == ["all pairs", TRUTH, Z] and len(HELP.arms(corpus)) == 5


def test_planted_pairs_are_all_faults_and_nothing_else():
    corpus = make_split("train", 300, 1)
    faulty = (corpus.table["planted"] != "") | corpus.table["flipped"] | corpus.table["ambiguous"]
    assert HELP.arms(corpus)[TRUTH].keep.tolist() == (~faulty).tolist()
    assert HELP.arms(make_split("train", 100, 0, **OFF))[TRUTH].keep.all()


@pytest.mark.parametrize(("arm", "learner", "planted", "title", "low", "high", "says", "seen"), [
    (Z, LINEAR, "words", "challenge", 0.01, 0.1, "gain", "as planted"),
    (Z, LINEAR, "words", "challenge", -0.1, -0.01, "gain", "not as planted"),
    (Z, LINEAR, "words", "challenge", -0.1, 0.1, "gain", "open"),
    (Z, LINEAR, "words", "challenge", np.nan, np.nan, "gain", "open"),
    (Z, LINEAR, "words", "test", 0.01, 0.1, "no gain", "not as planted"),
    (Z, LINEAR, "words", "test", -0.1, 0.1, "no gain", "as planted"),
    (Z, ENCODER, "flips", "test", 0.01, 0.1, "no gain", "not as planted"),
    (PRUNED, ENCODER, "flips", "test", 0.01, 0.1, "gain", "as planted"),
    (PRUNED, ENCODER, "words", "challenge", -0.1, -0.01, "no gain", "as planted"),
    (TRUTH, LINEAR, "flips", "test", -0.1, 0.1, "no gain", "as planted"),
    (TRUTH, ENCODER, "flips", "challenge", -0.1, 0.1, "gain", "open"),
    (AMBIGUOUS, ENCODER, "words", "challenge", 0.1, 0.2, "no gain", "not as planted"),
    (TRUTH, ENCODER, "nothing", "test", 0.1, 0.2, "no gain", "not as planted")])  # fmt: skip
def test_what_is_expected_and_what_is_seen(arm, learner, planted, title, low, high, says, seen):
    row = {"planted": planted, "learner": learner, "arm": arm, "title": title, "low": low, "high": high}
    assert HELP.expected(row) == says and HELP.seen(row | {"expected": says}) == seen


def test_gains_are_within_a_seed_and_against_the_own_twin():
    accuracies = {Z: (0.5, 0.7), f"{Z}, twin": (0.4, 0.4), TRUTH: (0.9, 0.9), "all pairs": (0.1, 0.1)}
    rows = [("words", LINEAR, "test", name, seed, 100, value)
            for name, values in accuracies.items() for seed, value in enumerate(values)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["planted", "learner", "title", "condition", "seed", "n", "accuracy"])
    found = gains_of(table)  # the other has no twin in the table
    assert found["arm"].tolist() == [Z] and found["value"].iloc[0] == pytest.approx(0.2)
