"""Every score for one list of pairs. Alone: pytest tests/measure/test_pair_scores.py"""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from nli_lib.measure import pair_scores as module
from nli_lib.measure.dynamics import dynamics_features, levels
from nli_lib.measure.features import Features, features, z_statistics
from nli_lib.measure.pair_scores import (
    CLEANLAB,
    CONFIDENCE,
    CROSSED,
    GAP,
    GENERATOR,
    LEVEL,
    MARGIN,
    OTHER_LABEL,
    SCORES,
    SENSITIVITY,
    VOTES,
    Said,
    Z,
    aligned,
    highest_z,
    levels_of_pairs,
    pair_scores,
    sensitivity_of_pairs,
)

S, E, N, C = 3, 4, 30, 3
GOLD = np.arange(N) % C


def said(seed=0, **changes):
    random = np.random.default_rng(seed)
    parts = {
        "data_map": random.normal(size=(S, E, N, C)),
        "hypothesis": random.normal(size=(S, E, N, C)),
        "in_training": random.normal(size=(S, E, N, C)),
        "crossed": random.normal(size=(S, N, C)),
        "generator": random.normal(size=(S, N, C)) - 20,
        "ngrams": softmax(random.normal(size=(N, C)), axis=1),
        "z": random.normal(size=(N, C)),
        "level": random.integers(0, 3, size=(S, N)).astype(float),
        "sensitivity": random.random((S, N)),
    }
    return Said(**parts | changes)


def all_pairs(what, labels=GOLD):
    return pair_scores(what, np.arange(N), labels, GOLD)


def test_two_pairs_by_hand():
    """One training, two epochs: the margins are (2 - 1, 0 - 3) and so -1 in the mean; a sure pair and a lost one."""
    map_ = np.array([[[[2.0, 1, 0], [0, 9, 0]], [[0.0, 3, -1], [0, 9, 0]]]])
    crossed, flat = np.array([[[0.0, 2, 1], [5, 0, 0]]]), np.zeros((2, 3))
    what = Said(map_, map_, map_, crossed, np.array([[[-7.0, -5, -9], [-5, -6, -8]]]), flat, flat, [[2, 0]], [[0, 1]])
    found = pair_scores(what, [0, 1], [0, 1], [0, 1])
    assert found[MARGIN][0] == pytest.approx([1.0, -9.0])
    assert found[GAP][0] == pytest.approx([2.0, 5.0])
    assert found[GENERATOR][0] == pytest.approx([2.0, 1.0])  # -(-7 + 5), -(-6 + 5)
    assert found[VOTES][0].tolist() == [1, 1]
    p = [np.exp(2) / (np.exp(2) + np.e + 1), 1 / (1 + np.exp(3) + np.exp(-1))]
    assert found[CONFIDENCE][0, 0] == pytest.approx(-np.mean(p))
    assert found[LEVEL][0].tolist() == [2, 0] and OTHER_LABEL not in found


def test_equal_to_a_slow_twin():
    what = said()
    found = all_pairs(what)
    for s in range(S):
        for i, y in enumerate(GOLD):
            p, z = softmax(what.data_map[s, :, i], axis=1), what.data_map[s, :, i]
            right = z.argmax(axis=1) == y
            slow = {
                CONFIDENCE: -np.mean([row[y] for row in p]),
                "variability": np.sqrt(np.mean([(row[y] - np.mean(p[:, y])) ** 2 for row in p])),
                "estimated max variability": max(p[:, c].std() for c in range(C)),
                "low correctness": -np.mean(right),
                MARGIN: -np.mean([row[y] - max(np.delete(row, y)) for row in z]),
                "forgetting": sum(a and not b for a, b in pairwise(right)),
                "low AUM": -np.mean([row[y] - max(np.delete(row, y)) for row in what.in_training[s, :, i]]),
                "low hypothesis-only confidence": -softmax(what.hypothesis[s, :, i], axis=1)[:, y].mean(),
                CROSSED: -softmax(what.crossed[s, i])[y],
                GAP: max(what.crossed[s, i]) - what.crossed[s, i, y],
                VOTES: np.mean([what.crossed[t, i].argmax() != y for t in range(S)]),
                GENERATOR: max(np.delete(what.generator[s, i], y)) - what.generator[s, i, y],
                "low n-gram probability": -what.ngrams[i, y],
                Z: -what.z[i, y],
                LEVEL: what.level[s, i],
                SENSITIVITY: what.sensitivity[s, i],
            }
            assert {name: found[name][s, i] for name in slow} == pytest.approx(slow)


def test_cleanlab_is_the_library_itself(monkeypatch):
    rank = pytest.importorskip("cleanlab.rank")
    what = said()
    found = all_pairs(what)
    theirs = rank.get_label_quality_scores(GOLD, softmax(what.crossed[1], axis=1))
    assert found[CLEANLAB][1] == pytest.approx(-theirs)
    assert set(found) == set(SCORES)
    monkeypatch.setattr(module, "_cleanlab", lambda: None)
    assert set(all_pairs(what)) == set(SCORES) - {CLEANLAB}


def test_the_order_of_the_pairs_does_not_matter():
    what, order = said(), np.random.default_rng(1).permutation(N)
    found, again = all_pairs(what), pair_scores(what, order, GOLD[order], GOLD)
    for name, values in found.items():
        assert np.array_equal(values[:, order], again[name]), name


def test_another_label_on_trial():
    """The second label of a pair is scored by the same logits; that it is not the corpus's stands among the scores."""
    what = said()
    found = pair_scores(what, [4, 4], [1, 2], GOLD)
    assert found[OTHER_LABEL][0].tolist() == [0, 1]
    assert found[CROSSED][0] == pytest.approx(-softmax(what.crossed[0, 4])[[1, 2]])
    assert found[Z][0] == pytest.approx(-what.z[4, [1, 2]])
    assert np.ptp(found[LEVEL], axis=1).tolist() == [0, 0, 0]  # of the pair


def test_what_is_not_known_is_nan_or_left_out():
    short = said().generator[:1].copy()
    short[:, 5:] = np.nan
    crossed = said().crossed.copy()
    crossed[:, 7] = np.nan
    found = all_pairs(said(generator=short, crossed=crossed, sensitivity=np.empty((0, N))))
    assert SENSITIVITY not in found
    assert found[GENERATOR].shape == (S, N) and np.isfinite(found[GENERATOR]).sum() == 5
    assert np.isnan(found[GENERATOR][1:]).all()
    for name in (CROSSED, GAP, VOTES):
        assert np.flatnonzero(np.isnan(found[name]).any(axis=0)).tolist() == [7], name
    empty = Said(*(np.empty((0, *np.shape(each)[1:])) if np.ndim(each) > 2 else each for each in said()))
    assert {Z, "low n-gram probability"} <= set(all_pairs(empty._replace(level=np.empty((0, N)))))


def test_bad_labels_are_refused():
    with pytest.raises(ValueError, match="label 3"):
        all_pairs(said(), np.full(N, 3))
    with pytest.raises(ValueError, match="labels have shape"):
        pair_scores(said(), [0, 1], [0], GOLD)


def test_highest_z_by_its_definition():
    random = np.random.default_rng(2)
    matrix, labels = random.random((60, 8)) < 0.4, random.integers(0, 3, 60)
    matrix[:, 0] = True
    matrix[3] = False
    names = np.array(["null", *"abcdefg"], dtype=object)
    table = Features(sparse.csr_array(matrix.astype(np.uint8)), names)
    z, ours = z_statistics(table.matrix, labels, 3), highest_z(table, labels, 3)
    for i in range(60):
        fires = [v for v in range(1, 8) if matrix[i, v] and z.n[v] >= 20]
        expected = z.z[fires].max(axis=0) if fires else np.full(3, np.nan)
        assert ours[i] == pytest.approx(expected, nan_ok=True)
    assert np.isnan(ours[3]).all()


def test_highest_z_finds_a_planted_word():
    labels = np.arange(90) % 3
    hypotheses = [f"a man sleeps {'nobody' if y == 2 and i % 2 else 'here'}" for i, y in enumerate(labels)]
    found = highest_z(features(["a man is here now"] * 90, hypotheses), labels, 3, often=5)
    planted = np.array(["nobody" in text for text in hypotheses])
    assert found[planted, 2].min() > found[~planted].max()


def test_aligned_by_names():
    values = np.arange(12.0).reshape(1, 4, 3)
    found = aligned(values, list("abcd"), ["c", "x", "a"])
    assert found[0, [0, 2]].tolist() == [[6, 7, 8], [0, 1, 2]] and np.isnan(found[0, 1]).all()
    assert aligned(values, list("abcd"), list("abcd")).tolist() == values.tolist()


def test_sensitivity_is_the_mean_over_the_revisions_of_a_pair():
    """The worked example of DISCO's formula, .55, and a revision that changes nothing."""
    before = np.log([[[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.7, 0.2, 0.1]]])
    after = np.log([[[0.1, 0.7, 0.2], [0.7, 0.2, 0.1], [0.1, 0.7, 0.2]]])
    found = sensitivity_of_pairs(before, after, [2, 2, 0], 4)
    assert found[0, [0, 2]] == pytest.approx([0.55, 0.275])
    assert np.isnan(found[0, [1, 3]]).all()


def test_levels_are_those_of_the_difficulty_paper():
    random, labels = np.random.default_rng(3), np.arange(120) % 3
    ease = np.repeat([6.0, 1.0, -3.0], 40)[:, None] * np.eye(3)[labels]
    pair = ease + random.normal(size=(1, 4, 120, 3)) * 0.3
    hypothesis = random.normal(size=(1, 4, 120, 3))
    hypothesis[:, :, 5] = np.nan
    found, known = levels_of_pairs(pair, hypothesis, labels), np.arange(120) != 5
    expected = levels(dynamics_features(pair[0][:, known], hypothesis[0][:, known], labels[known]))
    assert found[0, known].tolist() == expected.tolist() and np.isnan(found[0, 5])
    assert found[0, :40][known[:40]].mean() < found[0, 80:].mean()
