"""Alone: pytest tests/measure/test_counterfactual.py"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nli_lib.measure.counterfactual import (
    KINDS,
    TIE,
    edits,
    flipped,
    negations,
    outcomes,
    sensitivity,
    softly_flipped,
)


def logits(*probabilities):
    return np.log(np.array(probabilities, dtype=float))


def test_sensitivity_of_the_worked_example():
    """p(x) = (.7, .2, .1), p(x') = (.1, .3, .6): (.6 - .1 + .7 - .1) / 2 = .55 (DISCO, section 5.2)."""
    assert sensitivity(logits([0.7, 0.2, 0.1]), logits([0.1, 0.3, 0.6])) == pytest.approx([0.55])


def test_sensitivity_is_nothing_where_the_prediction_stays_and_one_where_it_is_certain():
    stays = sensitivity(logits([0.9, 0.05, 0.05]), logits([0.4, 0.3, 0.3]))
    assert stays == pytest.approx([0])
    assert sensitivity([[50.0, 0, 0]], [[0, 50.0, 0]]) == pytest.approx([1])


def test_sensitivity_of_two_classes_is_the_papers_short_form():
    before, after = logits([0.8, 0.2]), logits([0.3, 0.7])
    assert sensitivity(before, after) == pytest.approx([0.7 + 0.8 - 1])


def slow_sensitivity(before, after):
    found = []
    for p, q in zip(before, after, strict=True):
        p, q = np.exp(p) / np.exp(p).sum(), np.exp(q) / np.exp(q).sum()
        old, new = list(p).index(max(p)), list(q).index(max(q))
        found.append(((q[new] - p[new]) + (p[old] - q[old])) / 2)
    return found


def test_sensitivity_is_that_of_the_slow_twin_and_within_bounds():
    random = np.random.default_rng(0)
    before, after = random.normal(scale=3, size=(2, 500, 3))
    found = sensitivity(before, after)
    assert found == pytest.approx(slow_sensitivity(before, after))
    assert (found >= 0).all() and (found <= 1).all()
    assert (found == 0).tolist() == (before.argmax(1) == after.argmax(1)).tolist()
    assert sensitivity(after, before) == pytest.approx(found)


def test_a_model_can_be_sensitive_and_always_wrong():
    before, after = logits([0.9, 0.05, 0.05]), logits([0.05, 0.9, 0.05])
    assert sensitivity(before, after)[0] > 0.8
    assert outcomes(before, after, [1], [0]).tolist() == ["changed, 0 right"]


def test_outcomes_add_up_to_pair_accuracy_and_single_accuracies():
    random = np.random.default_rng(1)
    before, after = random.normal(size=(2, 400, 3))
    labels = random.integers(0, 3, 400)
    new_labels = (labels + random.integers(1, 3, 400)) % 3
    found = outcomes(before, after, labels, new_labels)
    right = [before.argmax(1) == labels, after.argmax(1) == new_labels]
    assert (found == "changed, 2 right").tolist() == (right[0] & right[1]).tolist()
    assert "unchanged, 2 right" not in found  # the gold labels differ
    assert outcomes([[1.0, 0, 0]], [[1.0, 0, 0]], [0], [0]).tolist() == ["unchanged, 2 right"]


def test_what_does_not_belong_together_is_refused():
    with pytest.raises(ValueError, match="both texts"):
        sensitivity(np.zeros((3, 3)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="both texts"):
        outcomes(np.zeros((3, 3)), np.zeros((2, 3)), [0, 1, 2], [1, 2, 0])
    with pytest.raises(ValueError, match="label"):
        outcomes(np.zeros((2, 3)), np.zeros((2, 3)), [0, 3], [1, 2])
    with pytest.raises(ValueError, match="finite"):
        sensitivity([[np.nan, 0, 0]], [[0.0, 1, 0]])


# ---------------------------------------------------------------- flips


def test_flips_by_hand_and_the_soft_rate_is_never_below():
    original, target, judged = [0, 0, 0, 0], [1, 1, 1, 2], [1, 2, 0, TIE]
    assert flipped(judged, target).tolist() == [True, False, False, False]
    assert softly_flipped(judged, original).tolist() == [True, True, False, False]
    random = np.random.default_rng(2)
    original, judged = random.integers(0, 3, 200), random.integers(-1, 3, 200)
    target = (original + random.integers(1, 3, 200)) % 3
    assert (softly_flipped(judged, original) >= flipped(judged, target)).all()


# ---------------------------------------------------------------- edits


def slow_levenshtein(a, b):
    table = [[i + j if i * j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
    return table[-1][-1]


texts = st.lists(st.sampled_from("abcd"), max_size=7).map(" ".join)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=6))
def test_the_edit_distance_is_that_of_the_slow_twin(pairs):
    before, after = zip(*pairs, strict=True)
    found = edits(before, after)
    assert found.distance.tolist() == [slow_levenshtein(a.split(), b.split()) for a, b in pairs]
    assert (found.distance <= np.maximum(found.removed, found.inserted)).all()
    assert edits(after, before).distance.tolist() == found.distance.tolist()


@pytest.mark.parametrize(
    ("before", "after", "kind", "distance", "start"),
    [
        ("A man sleeps.", "a man sleeps", "nothing", 0, 0),
        ("A man sleeps.", "A big man sleeps.", "insertion", 1, 1 / 3),
        ("A big man sleeps.", "A man sleeps.", "deletion", 1, 1 / 4),
        ("A man sleeps outside.", "A man runs outside.", "substitution", 1, 2 / 4),
        ("A man sleeps outside.", "A man is running outside.", "rewriting", 2, 2 / 4),
        ("a a", "a a a", "insertion", 1, 1),
        ("", "a dog", "insertion", 2, 0),
        ("a dog", "", "deletion", 2, 0),
        ("", "", "nothing", 0, 0),
    ],
)
def test_what_was_edited(before, after, kind, distance, start):
    found = edits([before], [after])
    assert (found.kind[0], found.distance[0]) == (kind, distance) and kind in KINDS
    assert found.start[0] == pytest.approx(start)


def test_edits_of_nothing_and_of_unequal_lists():
    assert edits([], []).distance.shape == (0,)
    with pytest.raises(ValueError, match="as many"):
        edits(["a"], [])


def test_negations_in_any_spelling():
    assert negations(["He isn't here, no!", "Knowing another snow", "NOT", ""]).tolist() == [2, 0, 1, 0]
