"""Chapter 60: every score for one list of pairs. Alone: pytest tests/chapters/test_60_pair_scores.py"""

from itertools import pairwise

import numpy as np
import pytest
from cells import functions
from scipy import sparse
from scipy.special import softmax

from nli_lib.measure.consensus import CONFIDENCE, VOTES
from nli_lib.measure.dynamics import dynamics_features, levels
from nli_lib.measure.features import Features, features, z_statistics

CHAPTER = functions("60_do_scores_agree")
LEVEL, Z, MARGIN, CROSSED, GENERATOR = CHAPTER.LEVEL, CHAPTER.Z, CHAPTER.MARGIN, CHAPTER.CROSSED, CHAPTER.GENERATOR
CLEANLAB, SENSITIVITY, NGRAMS, OTHER = CHAPTER.CLEANLAB, CHAPTER.SENSITIVITY, CHAPTER.NGRAMS, "not the gold label"
S, E, N, C = 3, 4, 30, 3
ALL, GOLD = np.arange(N), np.arange(N) % C


def said(**changes):
    random = np.random.default_rng(0)
    parts = {name: random.normal(size=(S, E, N, C)) for name in ("data_map", "hypothesis", "in_training")}
    parts |= {"crossed": random.normal(size=(S, N, C)), "generator": random.normal(size=(S, N, C)) - 20}
    parts |= {"ngrams": softmax(random.normal(size=(N, C)), axis=1), "z": random.normal(size=(N, C))}
    parts |= {"level": random.integers(0, 3, size=(S, N)).astype(float), "sensitivity": random.random((S, N))}
    return parts | changes


def scores(what, rows=ALL, labels=GOLD, gold=GOLD):
    return CHAPTER.pair_scores(what, np.asarray(rows), np.asarray(labels), gold)


def test_two_pairs_by_hand():
    """One training, two epochs: the margins are (2 - 1, 0 - 3) and so -1 in the mean; a sure pair and a lost one."""
    map_ = np.array([[[[2.0, 1, 0], [0, 9, 0]], [[0.0, 3, -1], [0, 9, 0]]]])
    given = {"crossed": np.array([[[0.0, 2, 1], [5, 0, 0]]]), "generator": np.array([[[-7.0, -5, -9], [-5, -6, -8]]])}
    given |= {"level": np.array([[2.0, 0]]), "sensitivity": np.array([[0.0, 1]])}
    what = dict.fromkeys(("data_map", "hypothesis", "in_training"), map_) | dict.fromkeys(
        ("ngrams", "z"), np.eye(3)[:2]
    )
    found = scores(what | given, [0, 1], [0, 1], np.array([0, 1]))
    p = [np.exp(2) / (np.exp(2) + np.e + 1), 1 / (1 + np.exp(3) + np.exp(-1))]
    expected = {MARGIN: [1, -9], "cross-scored gap": [2, 5], VOTES: [1, 1], LEVEL: [2, 0], NGRAMS: [-1, -1]}
    expected[GENERATOR] = [2, 1]  # -(-7 + 5), -(-6 + 5)
    assert np.array([found[name][0] for name in expected]) == pytest.approx(np.array([*expected.values()]))
    assert found[CONFIDENCE][0, 0] == pytest.approx(-np.mean(p)) and OTHER not in found


def test_equal_to_a_slow_twin():
    what = said()
    found = scores(what)
    for s in range(S):
        for i, y in enumerate(GOLD):
            p, z = softmax(what["data_map"][s, :, i], axis=1), what["data_map"][s, :, i]
            right, crossed = z.argmax(axis=1) == y, what["crossed"][s, i]
            slow = {
                CONFIDENCE: -np.mean([row[y] for row in p]),
                "variability": np.sqrt(np.mean([(row[y] - np.mean(p[:, y])) ** 2 for row in p])),
                "estimated max variability": max(p[:, c].std() for c in range(C)), "low correctness": -np.mean(right),
                MARGIN: -np.mean([row[y] - max(np.delete(row, y)) for row in z]),
                "forgetting": sum(a and not b for a, b in pairwise(right)),
                "low AUM": -np.mean([row[y] - max(np.delete(row, y)) for row in what["in_training"][s, :, i]]),
                "low hypothesis-only confidence": -softmax(what["hypothesis"][s, :, i], axis=1)[:, y].mean(),
                CROSSED: -softmax(crossed)[y], "cross-scored gap": max(crossed) - crossed[y],
                VOTES: np.mean([what["crossed"][t, i].argmax() != y for t in range(S)]),
                GENERATOR: max(np.delete(what["generator"][s, i], y)) - what["generator"][s, i, y],
                NGRAMS: -what["ngrams"][i, y], Z: -what["z"][i, y], LEVEL: what["level"][s, i],
                SENSITIVITY: what["sensitivity"][s, i]}  # fmt: skip
            assert {name: found[name][s, i] for name in slow} == pytest.approx(slow)
    order = np.random.default_rng(1).permutation(N)
    again = scores(what, order, GOLD[order])
    assert all(np.array_equal(values[:, order], again[name]) for name, values in found.items())


def test_cleanlab_is_the_library_itself_and_left_out_where_it_is_missing(monkeypatch):
    rank, what = pytest.importorskip("cleanlab.rank"), said()
    found, theirs = scores(what), rank.get_label_quality_scores(GOLD, softmax(what["crossed"][1], axis=1))
    assert found[CLEANLAB][1] == pytest.approx(-theirs) and set(found) == set(CHAPTER.SCORES)
    monkeypatch.setitem(CHAPTER.low_quality.__globals__, "find_spec", lambda _: None)
    assert set(scores(what)) == set(CHAPTER.SCORES) - {CLEANLAB}


def test_another_label_on_trial():
    """The second label of a pair is scored by the same logits; that it is not the corpus's stands among the scores."""
    what = said()
    found = scores(what, [4, 4], [1, 2])
    assert found[OTHER][0].tolist() == [0, 1]
    assert found[CROSSED][0] == pytest.approx(-softmax(what["crossed"][0, 4])[[1, 2]])
    assert found[Z][0] == pytest.approx(-what["z"][4, [1, 2]])
    assert np.ptp(found[LEVEL], axis=1).tolist() == [0, 0, 0]  # of the pair


def test_what_is_not_known_is_nan_or_left_out():
    generator, crossed = said()["generator"][:1].copy(), said()["crossed"].copy()
    generator[:, 5:], crossed[:, 7] = np.nan, np.nan
    found = scores(said(generator=generator, crossed=crossed, sensitivity=np.empty((0, N))))
    assert SENSITIVITY not in found and found[GENERATOR].shape == (S, N)
    assert np.isfinite(found[GENERATOR]).sum(axis=1).tolist() == [5, 0, 0]
    for name in (CROSSED, "cross-scored gap", VOTES):
        assert np.flatnonzero(np.isnan(found[name]).any(axis=0)).tolist() == [7], name


def test_highest_z_by_its_definition_and_of_a_planted_word():
    random = np.random.default_rng(2)
    matrix, labels = random.random((60, 8)) < 0.4, random.integers(0, 3, 60)
    matrix[:, 0] = True
    matrix[3] = False
    table = Features(sparse.csr_array(matrix.astype(np.uint8)), np.array(["null", *"abcdefg"], dtype=object))
    z, ours = z_statistics(table.matrix, labels, 3), CHAPTER.highest_z(table, labels, 3)
    for i in range(60):
        fires = [v for v in range(1, 8) if matrix[i, v] and z.n[v] >= 20]
        assert ours[i] == pytest.approx(z.z[fires].max(axis=0) if fires else np.full(3, np.nan), nan_ok=True)
    assert np.isnan(ours[3]).all()
    labels = np.arange(180) % 3
    planted = (labels == 2) & (np.arange(180) % 2 == 1)
    hypotheses = [f"a man sleeps {'nobody' if each else 'here'}" for each in planted]
    found = CHAPTER.highest_z(features(["a man is here now"] * 180, hypotheses), labels, 3)
    assert found[planted, 2].min() > found[~planted].max()


def test_aligned_by_names():
    values = np.arange(12.0).reshape(1, 4, 3)
    found = CHAPTER.aligned(values, list("abcd"), ["c", "x", "a"])
    assert found[0, [0, 2]].tolist() == [[6, 7, 8], [0, 1, 2]] and np.isnan(found[0, 1]).all()
    assert CHAPTER.aligned(values, list("abcd"), list("abcd")).tolist() == values.tolist()


def test_sensitivity_is_the_mean_over_the_revisions_of_a_pair():
    """The worked example of DISCO's formula, .55, and a revision that changes nothing."""
    before, after = np.log([[[0.7, 0.2, 0.1]] * 3]), np.log([[[0.1, 0.7, 0.2], [0.7, 0.2, 0.1], [0.1, 0.7, 0.2]]])
    found = CHAPTER.sensitivity_of_pairs(before, after, [2, 2, 0], 4)[0]
    assert found == pytest.approx([0.55, np.nan, 0.275, np.nan], nan_ok=True)


def test_levels_are_those_of_the_difficulty_paper():
    random, labels = np.random.default_rng(3), np.arange(120) % 3
    ease = np.repeat([6.0, 1.0, -3.0], 40)[:, None] * np.eye(3)[labels]
    pair, hypothesis = ease + random.normal(size=(1, 4, 120, 3)) * 0.3, random.normal(size=(1, 4, 120, 3))
    hypothesis[:, :, 5] = np.nan
    found, known = CHAPTER.levels_of_pairs(pair, hypothesis, labels), np.arange(120) != 5
    expected = levels(dynamics_features(pair[0][:, known], hypothesis[0][:, known], labels[known]))
    assert found[0, known].tolist() == expected.tolist() and np.isnan(found[0, 5])
    assert found[0, :40][known[:40]].mean() < found[0, 80:].mean()
