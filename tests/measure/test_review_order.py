"""The order of review that learns: by hand, against a slow twin, and on planted kinds. No model, no files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from nli_lib.measure.consensus import next_suspects, review_in_turn

NOBODY = np.nan


def planted(size=400, seed=0):
    """Kinds "a", wrong in nine of ten, and "b", wrong in one of ten, which has the larger gaps."""
    generator = np.random.default_rng(seed)
    kind = np.where(np.arange(size) % 2, "a", "b")
    gap = generator.random(size) + (kind == "b") + 0.2 * generator.random(size)
    wrong = generator.random(size) < np.where(kind == "a", 0.9, 0.1)
    return kind, gap, wrong


def test_until_both_answers_are_known_the_first_order_stays():
    gap, kind = [0.1, 0.9, 0.5, 0.7], list("abab")
    assert next_suspects(gap, kind, [NOBODY] * 4).tolist() == [1, 3, 2, 0]
    assert next_suspects(gap, kind, [NOBODY, 0, NOBODY, NOBODY]).tolist() == [3, 2, 0]
    assert next_suspects(gap, kind, [NOBODY, 1, 1, NOBODY]).tolist() == [3, 0]


def test_a_kind_that_was_right_goes_to_the_end():
    kind, gap = list("aabbab"), [5, 4, 3, 2, 0.5, 1]
    decided = [0, 0, 1, NOBODY, NOBODY, NOBODY]
    assert next_suspects(gap, kind, decided).tolist() == [3, 5, 4]


def test_the_slope_of_the_gap_never_falls():
    """One kind, whose widest gaps were right labels: the narrowest do not come first. Where it rises, it is learnt."""
    gap, kind = np.arange(9, 0, -1.0), ["a"] * 9
    assert next_suspects(gap, kind, [0, 0, 1, 1] + [NOBODY] * 5).tolist() == [4, 5, 6, 7, 8]
    mixed = ["a", "a", "a", "a", "b", "b", "b", "b", "a"]
    rising = [1, 1, 0, 0, NOBODY, NOBODY, NOBODY, 0, NOBODY]
    assert next_suspects([9, 8, 3, 2, 8.5, 4, 1, 5, 8.4], mixed, rising).tolist() == [8, 4, 5, 6]


def test_a_kind_that_nobody_has_seen_counts_as_even():
    """Before a kind that was mostly right, and behind one that was mostly wrong."""
    kind = list("aaabac")
    assert next_suspects([6, 5, 4, 1, 3, 2], kind, [0, 0, 1, NOBODY, NOBODY, NOBODY]).tolist() == [5, 3, 4]
    assert next_suspects([6, 5, 4, 3, 1, 2], kind, [1, 0, 1, NOBODY, NOBODY, NOBODY]).tolist() == [4, 3, 5]


def test_planted_kinds_are_learnt_and_the_gap_alone_is_misled():
    kind, gap, wrong = planted()
    learnt = review_in_turn(gap, kind, wrong, upto=100)
    assert wrong[learnt[40:]].mean() > 0.8
    assert wrong[np.argsort(-gap)[:100]].mean() < 0.2


def test_what_a_reviewer_will_say_later_is_not_known_before():
    """Answers to what comes after the first batches change nothing of these batches."""
    kind, gap, wrong = planted()
    seen = review_in_turn(gap, kind, wrong, upto=60, every=20)
    later = wrong.copy()
    later[np.setdiff1d(np.arange(len(wrong)), seen[:40])] = False
    assert review_in_turn(gap, kind, later, upto=60, every=20).tolist() == seen.tolist()


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


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(3, 9), st.integers(0, 30))
def test_equal_to_the_slow_twin_in_any_order(seed, every, upto):
    generator = np.random.default_rng(seed)
    gap, kind, wrong = generator.random(40), generator.choice(list("abc"), 40), generator.random(40) < 0.4
    seen = review_in_turn(gap, kind, wrong, upto=upto, every=every)
    assert seen.tolist() == slow_review(gap, kind, wrong, upto, every)
    mixed = generator.permutation(40)
    again = review_in_turn(gap[mixed], kind[mixed], wrong[mixed], upto=upto, every=every)
    assert mixed[again].tolist() == seen.tolist()
    assert len(set(seen.tolist())) == upto


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: next_suspects([1, 2], ["a", "b"], [NOBODY]), "2 gaps, 2 kinds, 1 decisions"),
        (lambda: next_suspects([1, 2], ["a", "b"], [NOBODY, 2]), "1 .wrong., 0 .right. or NaN"),
        (lambda: review_in_turn([1, 2], ["a", "b"], [True, False], upto=3), "upto=3 of 2 labels"),
    ],
)
def test_what_does_not_fit_is_one_error(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_no_suspects_at_all():
    assert next_suspects([], [], []).tolist() == []
    assert review_in_turn([], [], [], upto=0).tolist() == []
