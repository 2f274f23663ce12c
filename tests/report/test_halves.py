"""The kept half and who judges it. Run alone: pytest tests/report/test_halves.py"""

import numpy as np
import pytest

from nli_lib.measure.dynamics import max_variability
from nli_lib.report.halves import (
    DROPPED,
    ENTROPY,
    INTENDED,
    KEPT,
    OTHER,
    TWIN,
    agreement,
    gap_to_twin,
    half_table,
    judgements,
    keeps_any,
    select_halves,
)

LABELS = np.arange(120) % 3
CONTEXTS = np.repeat(np.arange(24), 5)


def planted(trainings=3, seed=0):
    """Logits (E, N, C) of trainings that all waver over the same pairs, each of which has an uncertain end."""
    random = np.random.default_rng(seed)
    wavers = np.arange(120) % 2 == 0
    found = []
    for _ in range(trainings):
        size = np.where(wavers, 0.3, 4.0)[None, :, None]
        logits = random.normal(0, 0.1, (4, 120, 3)) + np.eye(3)[LABELS] * size
        logits[:2, wavers] = logits[:2, wavers][..., ::-1] * 4  # early epochs thought otherwise
        found.append(logits)
    return found, wavers


def test_a_half_is_what_the_paper_says_and_its_twin_has_its_labels():
    logits, wavers = planted()
    halves = select_halves(logits, LABELS)
    assert halves.scores.shape == halves.keep.shape == halves.twin.shape == (3, 120)
    assert np.array_equal(halves.scores[1], max_variability(logits[1]))
    assert (halves.keep.sum(axis=1) == 60).all()
    for row in (*halves.keep, *halves.twin):
        assert np.bincount(LABELS[row]).tolist() == [20, 20, 20]
    assert wavers[halves.keep[0]].mean() > 0.9


def test_of_two_classes_a_half_is_kept_as_well():
    random, labels = np.random.default_rng(0), np.arange(40) % 2
    halves = select_halves([random.normal(size=(4, 40, 2))], labels)
    assert np.bincount(labels[halves.keep[0]]).tolist() == np.bincount(labels[halves.twin[0]]).tolist() == [10, 10]


def test_the_next_training_is_the_judge():
    last = np.zeros((2, 1, 4, 3))  # two trainings, one epoch, four pairs
    last[1, 0, 0] = [9, -9, -9]
    judged = judgements(list(last), [0, 0, 1, 1])
    bits = np.log2(3)
    assert judged[ENTROPY] == pytest.approx(np.array([[0, bits, bits, bits], [bits] * 4]), abs=1e-6)
    assert judged[INTENDED].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0]]  # of equal logits the first class
    logits, _ = planted(2)
    assert np.array_equal(judgements(logits, LABELS)[OTHER][0], max_variability(logits[1]))


def test_planted_ambiguity_is_found_and_chance_is_not():
    logits, _ = planted()
    halves = select_halves(logits, LABELS)
    entropy = judgements(logits, LABELS)[ENTROPY]
    gap = gap_to_twin(halves, entropy, CONTEXTS)
    assert gap.low > 0.2 and gap.n == 24 and gap.over == "premises and trainings"
    shuffled = [each[:, np.random.default_rng(at).permutation(120)] for at, each in enumerate(logits)]
    chance = gap_to_twin(halves, judgements(shuffled, LABELS)[ENTROPY], CONTEXTS)
    assert chance.low < 0 < chance.high


def test_the_table_holds_three_parts_of_every_judgement():
    logits, _ = planted()
    halves = select_halves(logits, LABELS)
    judged = judgements(logits, LABELS)
    table = half_table(halves, judged, CONTEXTS).set_index(["title", "part"])["value"]
    assert list(table.index) == [(name, part) for name in (ENTROPY, OTHER, INTENDED) for part in (KEPT, TWIN, DROPPED)]
    values = judged[ENTROPY]
    means = [
        np.mean([row[chosen].mean() for row, chosen in zip(values, part, strict=True)])
        for part in (halves.keep, ~halves.keep)
    ]
    assert table[ENTROPY, KEPT] == pytest.approx(means[0]) and table[ENTROPY, DROPPED] == pytest.approx(means[1])


def test_how_far_trainings_agree():
    logits, _ = planted()
    same = agreement(select_halves([logits[0], logits[0]], LABELS))
    assert same[["one", "other", "spearman", "overlap"]].values.tolist() == [[0, 1, 1, 1]]
    assert 0.2 < same["twins"][0] < 0.5  # a third of what either random half has
    assert len(agreement(select_halves(logits, LABELS))) == 3


@pytest.mark.parametrize(("trainings", "pairs"), [(0, 0), (3, 0), (0, 5), (3, 5)])
def test_too_few_pairs_give_empty_tables(trainings, pairs):
    logits = [np.zeros((2, pairs, 3))] * trainings
    labels = np.zeros(pairs, int)
    halves = select_halves(logits, labels)
    judged = judgements(logits, labels) if trainings else {}
    assert halves.keep.shape == (trainings, pairs) and not keeps_any(halves)
    assert half_table(halves, judged, labels).empty and agreement(halves).empty
