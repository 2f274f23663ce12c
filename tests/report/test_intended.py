import numpy as np
import pytest

from nli_lib.report.intended import DEALT, GENERATED, WRITTEN, Judged, comparable, further_behind, intended_table

CLASSES = ("entailment", "neutral", "contradiction")


def judged(predicted, labels, groups=None):
    labels = np.array(labels)
    return Judged(np.array(predicted), labels, np.arange(len(labels)) if groups is None else np.array(groups))


def made(rng, size, chances, trainings=3):
    """Pairs of which a training predicts label c with the chance of c, else the next label."""
    labels = rng.integers(3, size=size)
    hit = rng.random((trainings, size)) < np.array(chances)[labels]
    return judged(np.where(hit, labels, (labels + 1) % 3), labels)


GENERATION = judged([[2, 2, 0, 0], [2, 0, 0, 1]], [2, 2, 0, 0])  # contradictions 1 and .5, others 1 and .5
PEOPLE = judged([[2, 0, 1, 1], [2, 2, 1, 1]], [2, 2, 1, 1])  # contradictions .5 and 1, others 1 and 1


def test_by_hand():
    """Generated: 1 - 1 = 0 and .5 - .5 = 0; by people: .5 - 1 = -.5 and 1 - 1 = 0. The difference is (.5 + 0) / 2."""
    assert further_behind(GENERATION, PEOPLE, 2).value == pytest.approx(0.25)
    found = intended_table({GENERATED: GENERATION, WRITTEN: PEOPLE}, CLASSES).set_index(["title", "condition"])["value"]
    assert found["contradiction", GENERATED] == 0.75
    assert found["contradiction", WRITTEN] == 0.75
    assert found["entailment", GENERATED] == 0.75
    assert ("entailment", WRITTEN) not in found, "nobody wrote one"


def test_against_the_definition():
    rng = np.random.default_rng(0)
    one, other = made(rng, 60, (0.8, 0.7, 0.4)), made(rng, 40, (0.8, 0.7, 0.7))

    def behind(part, training):
        rows = [
            (label, predicted == label) for label, predicted in zip(part.labels, part.predicted[training], strict=True)
        ]
        return np.mean([hit for label, hit in rows if label == 2]) - np.mean([hit for label, hit in rows if label != 2])

    wanted = np.mean([behind(one, training) - behind(other, training) for training in range(3)])
    assert further_behind(one, other, 2).value == pytest.approx(wanted)


def test_what_was_planted_is_found():
    """A label that only generated pairs miss is found; one at which the model itself is weak is not."""
    rng = np.random.default_rng(1)
    weak, fair = made(rng, 1500, (0.8, 0.8, 0.4)), made(rng, 1500, (0.8, 0.8, 0.8))
    found = further_behind(weak, fair, 2)
    assert found.high < -0.2
    own = further_behind(weak, made(rng, 1500, (0.8, 0.8, 0.4)), 2)
    assert own.low < 0 < own.high


def test_labels_dealt_out_leave_chance():
    found = made(np.random.default_rng(2), 3000, (1, 1, 1))
    table = intended_table({DEALT: found.dealt_out()}, CLASSES)
    assert np.allclose(table["value"], 1 / 3, atol=0.05)
    assert sorted(found.dealt_out().labels) == sorted(found.labels)


def test_the_order_of_the_pairs_does_not_matter():
    rng = np.random.default_rng(3)
    one, other = made(rng, 50, (0.8, 0.7, 0.4)), made(rng, 50, (0.8, 0.7, 0.7))
    order = rng.permutation(50)
    moved = Judged(one.predicted[:, order], one.labels[order], one.groups[order])
    assert further_behind(moved, other, 2).value == pytest.approx(further_behind(one, other, 2).value)


def test_equal_groups_of_both_parts_are_different_groups():
    found = further_behind(judged([[2, 0], [2, 0]], [2, 0], [7, 7]), judged([[2, 0], [2, 0]], [2, 0], [7, 7]), 2)
    assert found.n == 2


def test_what_cannot_be_compared():
    assert comparable(GENERATION, PEOPLE, 2)
    assert not comparable(GENERATION, PEOPLE, 0), "people wrote none"
    assert not comparable(judged([[2, 2]], [2, 2]), PEOPLE, 2), "none of another label"
    assert not comparable(judged(np.zeros((0, 2), int), [2, 0]), PEOPLE, 2), "no training"
    assert not comparable(judged(np.zeros((2, 0), int), []), PEOPLE, 2)
    with pytest.raises(ValueError, match="finite"):
        further_behind(GENERATION, PEOPLE, 0)
    assert list(intended_table({}, CLASSES)) == ["title", "condition", *further_behind(GENERATION, PEOPLE, 2)._fields]
