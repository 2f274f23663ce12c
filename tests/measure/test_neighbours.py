"""Nearest neighbours of the same label. Run alone: pytest tests/measure/test_neighbours.py"""

import numpy as np
import pytest

from nli_lib.measure import similarity
from nli_lib.measure.similarity import PLACES, neighbours, random_companions


def slow(vectors, labels, seeds, k, cap=None):
    """The definition, one seed after the other."""
    rows = []
    for seed in seeds:
        cosine = vectors @ vectors[seed] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[seed])
        order = sorted(range(len(vectors)), key=lambda at: (-round(float(cosine[at]), PLACES), at))
        looked_at = order if cap is None else order[:cap]
        near = [at for at in looked_at if labels[at] == labels[seed] and at != seed][:k]
        rows.append(near + [-1] * (k - len(near)))
    return np.array(rows)


def corpus(n=90, dimensions=8, seed=0):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(n, dimensions)) * random.uniform(0.1, 9, size=(n, 1))
    vectors[40:50] = vectors[30:40]  # exact duplicates
    vectors[50:55] = 3 * vectors[35:40]  # as near, of another length
    return vectors, random.integers(0, 3, n)


def test_by_hand():
    vectors = np.array([[1, 0], [2, 0.1], [0, 1], [1, 1], [5, 0]])
    labels = np.array([0, 0, 0, 0, 1])
    # from [1, 0]: [2, .1] at .999, [1, 1] at .707, [0, 1] at 0; [5, 0] has another label
    assert neighbours(vectors, labels, [0], k=3).tolist() == [[1, 3, 2]]
    assert neighbours(vectors, labels, [4, 0], k=2).tolist() == [[-1, -1], [1, 3]]


@pytest.mark.parametrize("cap", [None, 15, 3, 500])
@pytest.mark.parametrize("k", [1, 4, 40])
def test_equal_to_the_definition(k, cap):
    vectors, labels = corpus()
    seeds = np.array([3, 35, 45, 52, 3, 89])
    assert neighbours(vectors, labels, seeds, k=k, cap=cap).tolist() == slow(vectors, labels, seeds, k, cap).tolist()


def test_blocks_do_not_matter(monkeypatch):
    vectors, labels = corpus()
    whole = neighbours(vectors, labels, np.arange(90))
    monkeypatch.setattr(similarity, "BLOCK", 100)
    assert np.array_equal(neighbours(vectors, labels, np.arange(90)), whole)


def test_a_duplicate_is_a_neighbour_and_the_seed_is_not():
    vectors = np.ones((5, 3))
    assert neighbours(vectors, np.zeros(5), [2, 0], k=3).tolist() == [[0, 1, 3], [1, 2, 3]]


def test_length_and_order_of_the_seeds_do_not_matter():
    vectors, labels = corpus()
    seeds = np.arange(90)
    found = neighbours(vectors, labels, seeds)
    assert np.array_equal(neighbours(vectors * 7, labels, seeds[::-1])[::-1], found)


def test_the_cap_loses_seeds_whose_nearest_have_other_labels():
    random = np.random.default_rng(1)
    vectors, labels = random.normal(size=(300, 4)), (np.arange(300) % 10 == 0).astype(int)
    seeds = np.arange(300)
    capped = neighbours(vectors, labels, seeds, cap=15)
    rare, common = (capped[labels == label] for label in (1, 0))
    assert (rare == -1).any(axis=1).mean() > 0.9 > 0.1 > (common == -1).any(axis=1).mean()
    assert (neighbours(vectors, labels, seeds) >= 0).all()


@pytest.mark.parametrize("vectors", [np.zeros((2, 3)), np.full((2, 3), np.nan), np.ones((3, 3)), np.ones(2)])
def test_vectors_without_a_direction_are_refused(vectors):
    with pytest.raises(ValueError, match="finite, non-zero|axis"):
        neighbours(vectors, np.zeros(2), [0])


def test_random_companions_have_the_label_are_others_and_are_all_possible():
    labels = np.array([0, 1, 0, 0, 2, 1, 0])
    found = random_companions(labels, [0, 5, 4, 2], k=400, seed=3)
    assert [set(row.tolist()) for row in found] == [{2, 3, 6}, {1}, {-1}, {0, 3, 6}]
    shares = np.bincount(found[0], minlength=7)[[2, 3, 6]] / 400
    assert (abs(shares - 1 / 3) < 0.1).all()
    assert np.array_equal(random_companions(labels, [0, 5, 4, 2], k=400, seed=3), found)
    assert not np.array_equal(random_companions(labels, [0, 5, 4, 2], k=400, seed=4), found)
