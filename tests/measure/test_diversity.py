"""Alone: pytest tests/measure/test_diversity.py"""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nli_lib.errors import PackageError
from nli_lib.measure.similarity import class_distances, exact_cost, otdd, self_bleu, words

nltk_bleu = pytest.importorskip("nltk.translate.bleu_score", reason="NLTK is the reference: pip install '.[study]'")


def sentences(n, seed=0, vocabulary=60, longest=14):
    random = np.random.default_rng(seed)
    return [[f"w{word}" for word in random.zipf(1.4, random.integers(1, longest)) % vocabulary] for _ in range(n)]


def by_nltk(tokens, order=3):
    """The definition: every sentence against all others."""
    smooth, weights = nltk_bleu.SmoothingFunction().method1, (1 / order,) * order
    return [
        nltk_bleu.sentence_bleu(tokens[:at] + tokens[at + 1 :], each, weights, smoothing_function=smooth)
        for at, each in enumerate(tokens)
    ]


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_self_bleu_is_nltks_on_three_hundred_sentences(order):
    tokens = sentences(300)
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


def test_equal_sentences_have_one_and_strangers_zero():
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


def test_words_of_texts_without_blanks_are_characters():
    assert words(["雨，停了。", "It's 1."]) == [["雨", "，", "停", "了", "。"], ["It", "'s", "1", "."]]


def test_words_keep_case_and_part_punctuation():
    assert words(["Isn't it? A dog (big) runs.", ""]) == [
        ["Is", "n't", "it", "?", "A", "dog", "(", "big", ")", "runs", "."],
        [],
    ]


# ---------------------------------------------------------------- OTDD

ot = pytest.importorskip("ot", reason="POT is the reference: pip install '.[study]'")


def labelled(n, seed, shift=0.0, width=6, classes=3):
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, n)
    return random.normal(size=(n, width)) * (1 + labels[:, None] / 4) + labels[:, None] + shift, labels


def by_pot(one, two, regularisation, inner):
    """The definition with POT: each pair of classes, then the data sets, in three calls for the debiased value."""
    if regularisation == 0:
        return pot_cost(one, two, 0, inner)
    return (
        pot_cost(one, two, regularisation, inner)
        - (pot_cost(one, one, regularisation, inner) + pot_cost(two, two, regularisation, inner)) / 2
    )


def pot_cost(one, two, regularisation, inner):
    (x, labels), (y, others) = one, two
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
    found = otdd(*one, *two, regularisation=regularisation, inner=inner)
    assert found == pytest.approx(by_pot(one, two, regularisation, inner), rel=1e-6)


def test_several_regularisations_at_once_are_each_on_its_own():
    one, two = labelled(60, 2), labelled(80, 3, shift=1.0)
    wanted = [1.0, 0, 4.0, 0.25]
    together = otdd(*one, *two, regularisation=wanted)
    assert together == pytest.approx([float(otdd(*one, *two, regularisation=each)) for each in wanted], rel=1e-6)
    assert otdd(*one, *two, regularisation=1.0).shape == () and together.shape == (4,)


def test_a_set_is_at_no_distance_from_itself_and_order_does_not_count():
    one, two = labelled(90, 4), labelled(90, 5, shift=0.3)
    assert otdd(*one, *one, regularisation=[0, 0.5]) == pytest.approx([0, 0], abs=1e-5)
    turn = np.random.default_rng(1).permutation(90)
    turned = one[0][turn], one[1][turn]
    assert otdd(*turned, *two) == pytest.approx(otdd(*one, *two), rel=1e-6)
    assert otdd(*two, *one) == pytest.approx(otdd(*one, *two), rel=1e-6)
    assert otdd(*one, *two) < otdd(*one, two[0] + 2, two[1])


def test_two_points_by_hand():
    """One example each, 2 apart: (|x - x'|^2 + W) / 2 = (4 + 4) / 2, whatever the regularisation."""
    arguments = [[0.0, 0.0]], [0], [[2.0, 0.0]], [1]
    assert otdd(*arguments, regularisation=[0, 0.1, 5]) == pytest.approx([4, 4, 4])


def test_normal_classes_have_their_closed_form():
    """Two classes whose moments are exact: means 3 apart, standard deviations 1 and 2 in each of two directions."""
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=float)
    found, *_ = class_distances(corners, [0] * 4, 2 * corners + [3, 0], [7] * 4)
    assert found == pytest.approx(np.array([[9 + 2 * (2 - 1) ** 2]]))


def test_a_class_of_one_example_and_classes_wider_than_their_size():
    one, two = labelled(7, 6, width=30), labelled(9, 7, width=30)
    singles = (one[0], np.arange(7))
    assert np.isfinite(otdd(*singles, *two, regularisation=[0, 1.0])).all()


def test_what_cannot_be_compared_is_refused():
    one, two = labelled(10, 0), labelled(10, 1, width=4)
    with pytest.raises(ValueError, match="same encoder"):
        otdd(*one, *two)
    with pytest.raises(ValueError, match="finite"):
        otdd(one[0] * np.nan, one[1], *one)
    with pytest.raises(ValueError, match="regularisation"):
        otdd(*one, *one, regularisation=-1)
    with pytest.raises(ValueError, match="inner"):
        otdd(*one, *one, inner="means")


def test_without_the_packages_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk.tokenize", None)
    monkeypatch.setitem(sys.modules, "ot", None)
    for call in (lambda: words(["A dog."]), lambda: exact_cost(np.ones((2, 2)))):
        with pytest.raises(PackageError, match=r"need packages that are not here .*: pip install"):
            call()
