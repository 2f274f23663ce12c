"""Average precision over drawn pairs and trainings. Alone: pytest tests/report/test_known_errors.py"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score

from nli_lib.corpora.people import known_errors
from nli_lib.corpora.planted import make_split
from nli_lib.measure.consensus import COUNTS, FIVE, MODELS
from nli_lib.plots import TWIN
from nli_lib.report.known_errors import (
    COUNTED,
    Resamples,
    find_errors,
    gain_table,
    precision_table,
    reproduced,
    score_items,
    weighted_precision,
)

RANDOM = np.random.default_rng(1)
WRONG = RANDOM.random(120) < 0.2
PAIRS = np.arange(120) // 2
GOOD = RANDOM.normal(size=(3, 120)) + 1.5 * WRONG  # three trainings that know something


def test_all_weightings_at_once_are_scikit_learns_one_by_one():
    scores = GOOD[0].round(1)  # with ties
    weights = RANDOM.integers(0, 4, size=(20, 120))
    plain = [average_precision_score(WRONG, scores, sample_weight=row) for row in weights]
    assert weighted_precision(scores, WRONG, weights) == pytest.approx(plain)


def test_what_is_not_scored_is_left_out():
    scores, weights = GOOD[0].copy(), RANDOM.integers(1, 4, size=(5, 120))
    scores[:10] = np.nan
    plain = weighted_precision(scores[10:], WRONG[10:], weights[:, 10:])
    assert weighted_precision(scores, WRONG, weights) == pytest.approx(plain)
    whole = Resamples(WRONG, PAIRS).each(scores).value
    assert whole == pytest.approx(average_precision_score(WRONG[10:], scores[10:]))


def test_whole_pairs_and_trainings_are_drawn():
    draw = Resamples(WRONG, PAIRS, resamples=200)
    assert (draw.weights[:, ::2] == draw.weights[:, 1::2]).all()
    each, one, together = draw.each(GOOD), draw.each(GOOD[0]), draw.together(GOOD)
    assert each.value == pytest.approx(np.mean([average_precision_score(WRONG, row) for row in GOOD]))
    assert together.value == pytest.approx(average_precision_score(WRONG, GOOD.mean(axis=0)))
    assert each.estimate().over == "pairs and trainings" and one.estimate().over == "pairs"
    assert together.estimate().low < together.value < together.estimate().high
    same = draw.each(GOOD[:1].repeat(3, axis=0)).estimate()
    assert same[:3] == pytest.approx(one.estimate()[:3])  # equal trainings add no spread


def test_the_interval_is_that_over_trainings_and_pairs():
    """By hand: 1.96 standard deviations of the resamples, and Student's interval over the trainings, in quadrature."""
    each = Resamples(WRONG, PAIRS, resamples=200).each(GOOD)
    by_training = [average_precision_score(WRONG, row) for row in GOOD]
    student = stats.t.ppf(0.975, 2) * np.std(by_training, ddof=1) / np.sqrt(3)
    half = np.hypot(student, stats.norm.ppf(0.975) * each.draws.std(ddof=1))
    assert each.estimate()[:3] == pytest.approx((each.value, each.value - half, each.value + half))


def test_trainings_that_are_one_order_spread_by_the_jackknife():
    together = Resamples(WRONG, PAIRS, resamples=20).together(GOOD)
    without = [average_precision_score(WRONG, np.delete(GOOD, place, axis=0).mean(axis=0)) for place in range(3)]
    assert together.by_training == pytest.approx(3 * together.value - 2 * np.array(without))
    alone = Resamples(WRONG, PAIRS, resamples=20).together(GOOD[0])
    assert alone.by_training == pytest.approx([alone.value])


def test_other_trainings_spread_on_their_own():
    draw = Resamples(WRONG, PAIRS, resamples=200)
    ours, theirs = draw.each(GOOD), draw.each(GOOD + 0.0, others=True)
    assert ours.minus(draw.each(GOOD + 0.0))[:3] == (0, 0, 0)
    gain = ours.minus(theirs)
    student = stats.t.ppf(0.975, 2) * ours.by_training.std(ddof=1) / np.sqrt(3)
    assert gain[:3] == pytest.approx((0, -np.sqrt(2) * student, np.sqrt(2) * student))


def test_a_difference_is_paired():
    draw = Resamples(WRONG, PAIRS)
    better, worse = draw.each(GOOD), draw.each(GOOD - 0.8 * WRONG)
    gain = better.minus(worse)
    assert gain.value == pytest.approx(better.value - worse.value)
    assert gain.low > 0
    assert gain.high - gain.low < better.estimate().high - worse.estimate().low
    assert better.minus(better)[:3] == (0, 0, 0)


def test_flips_are_found_by_models_that_see_the_truth():
    corpus = make_split("train", 600, seed=2)
    items, none = known_errors(corpus), pd.DataFrame(columns=["method", "run", "key", "score"])
    true = corpus.table["true_label"].to_numpy(dtype=int)[items["position"]]
    watched = {seed: np.random.default_rng(seed).normal(size=(2, len(items), 3)) for seed in (0, 1)}
    for logits in watched.values():
        logits[:, np.arange(len(items)), true] += 3
    scores = score_items(watched, items)
    found = find_errors(scores, items, none, resamples=50)
    table = precision_table(found).set_index("score")
    assert found[MODELS].value > 0.8 and table.loc[TWIN, "value"] < 0.3
    assert table.loc[COUNTED, "value"] == pytest.approx(items["error"].mean())  # one annotator each: counts say nothing
    assert table.loc[COUNTS, "value"] == pytest.approx(table.loc[MODELS, "value"])
    gains = gain_table(found, [COUNTED])
    assert (gains.set_index("score").loc[[MODELS, FIVE], "low"] > 0).all()


def test_without_judged_items_all_tables_are_empty_with_their_columns():
    items = known_errors(make_split("train", 600, seed=2))[:0]
    scores = score_items({}, items)
    assert scores.empty and find_errors(scores, items, pd.DataFrame(columns=["method", "run", "key", "score"])) == {}
    assert precision_table({}).empty and "score" in precision_table({})
    assert gain_table({}, [COUNTED]).empty


def test_the_release_is_made_again_from_its_scores():
    items = pd.DataFrame({"key": list("abcd"), "error": [True, False, True, False], "count": [1, 1, 2, 3]})
    scores = pd.DataFrame({"method": "mine", "run": "1", "key": list("acdx"), "score": [0.2, 0.9, 0.5, 3.0]})
    printed = pd.Series({"mine": 83.3, "mine_rerank": 100.0, "LC_VariErr": 58.3, "random": 50.0})
    again = reproduced(scores, items, printed).set_index("method")
    assert again.loc["mine", "ours"] == pytest.approx(100 * (1 + 2 / 3) / 2)  # c, d, a; b has no score
    assert again.loc["mine_rerank", "ours"] == pytest.approx(100 * (1 + 2 / 3) / 2)  # a, b (0), c, d
    assert again.loc["LC_VariErr", "ours"] == pytest.approx(100 * (1 / 2 + 2 / 3) / 2)
    assert "random" not in again.index
