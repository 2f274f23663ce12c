"""The order of review that learns: by hand, against a slow twin, and on planted kinds. No model, no files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from nli_lib.measure.review_order import next_suspects, review_in_turn, suspect_features

NOBODY = np.nan


def planted(size=400, seed=0):
    """Kinds "a", wrong in nine of ten, and "b", wrong in one of ten, which has the larger gaps."""
    generator = np.random.default_rng(seed)
    kind = np.where(np.arange(size) % 2, "a", "b")
    gap = generator.random(size) + (kind == "b") + 0.2 * generator.random(size)
    wrong = generator.random(size) < np.where(kind == "a", 0.9, 0.1)
    return kind, gap, wrong


def test_features_by_hand():
    found = suspect_features(["P1G0", "P0G2", "P1G0"], [1.5, 0.2, 3])
    assert found.tolist() == [[0, 1, 1.5], [1, 0, 0.2], [0, 1, 3]]


def test_until_both_answers_are_known_the_first_order_stays():
    start, features = [0.1, 0.9, 0.5, 0.7], suspect_features(list("abab"), [0.1, 0.9, 0.5, 0.7])
    assert next_suspects(start, features, [NOBODY] * 4).tolist() == [1, 3, 2, 0]
    assert next_suspects(start, features, [NOBODY, 0, NOBODY, NOBODY]).tolist() == [3, 2, 0]
    assert next_suspects(start, features, [NOBODY, 1, 1, NOBODY]).tolist() == [3, 0]


def test_a_kind_that_was_right_goes_to_the_end():
    kind, gap = list("aabbab"), [5, 4, 3, 2, 0.5, 1]
    decided = [0, 0, 1, NOBODY, NOBODY, NOBODY]
    assert next_suspects(gap, suspect_features(kind, gap), decided).tolist() == [5, 3, 4]  # a small gap was wrong
    same = np.ones(6)
    assert next_suspects(gap, suspect_features(kind, same), decided).tolist() == [3, 5, 4]  # of one kind, by the start


def test_planted_kinds_are_learnt_and_the_gap_alone_is_misled():
    kind, gap, wrong = planted()
    learnt = review_in_turn(gap, suspect_features(kind, gap), wrong, upto=100)
    assert wrong[learnt[40:]].mean() > 0.8
    assert wrong[np.argsort(-gap)[:100]].mean() < 0.2


def test_what_a_reviewer_will_say_later_is_not_known_before():
    """Answers to what comes after the first batches change nothing of these batches."""
    kind, gap, wrong = planted()
    seen = review_in_turn(gap, suspect_features(kind, gap), wrong, upto=60, every=20)
    later = wrong.copy()
    later[np.setdiff1d(np.arange(len(wrong)), seen[:40])] = False
    assert review_in_turn(gap, suspect_features(kind, gap), later, upto=60, every=20).tolist() == seen.tolist()


def slow_review(start, features, wrong, upto, every):
    """Its definition: learn from what was seen, sort what is left, look at a batch, and begin again."""
    seen = []
    while len(seen) < upto:
        score, answers = np.zeros(len(start)), [int(wrong[at]) for at in seen]
        if 0 < sum(answers) < len(answers):
            mean, spread = features[seen].mean(axis=0), features[seen].std(axis=0)
            scaled = (features - mean) / np.where(spread > 0, spread, 1)
            score = LogisticRegression(solver="newton-cholesky").fit(scaled[seen], answers).predict_proba(scaled)[:, 1]
        rest = sorted((at for at in range(len(start)) if at not in seen), key=lambda at: (-score[at], -start[at]))
        seen += rest[: min(every, upto - len(seen))]
    return seen


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(3, 9), st.integers(0, 30))
def test_equal_to_the_slow_twin_in_any_order(seed, every, upto):
    generator = np.random.default_rng(seed)
    gap, kind, wrong = generator.random(40), generator.choice(list("abc"), 40), generator.random(40) < 0.4
    features = suspect_features(kind, gap)
    seen = review_in_turn(gap, features, wrong, upto=upto, every=every)
    assert seen.tolist() == slow_review(gap, features, wrong, upto, every)
    mixed = generator.permutation(40)
    again = review_in_turn(gap[mixed], features[mixed], wrong[mixed], upto=upto, every=every)
    assert mixed[again].tolist() == seen.tolist()
    assert len(set(seen.tolist())) == upto


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: next_suspects([1, 2], [[0], [1]], [NOBODY]), "2 scores, 2 rows of features, 1 decisions"),
        (lambda: next_suspects([1, 2], [[0], [1]], [NOBODY, 2]), "1 .wrong., 0 .right. or NaN"),
        (lambda: review_in_turn([1, 2], [[0], [1]], [True, False], upto=3), "upto=3 of 2 labels"),
    ],
)
def test_what_does_not_fit_is_one_error(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_no_suspects_at_all():
    assert next_suspects([], np.empty((0, 1)), []).tolist() == []
    assert review_in_turn([], np.empty((0, 1)), [], upto=0).tolist() == []
