"""A linear model on words of pairs: its features by hand, its slow twin, and what it cannot have seen."""

import numpy as np
import pytest
from plain_pairs import plainly
from sklearn.linear_model import LogisticRegression

from nli_lib.measure.giveaways import PAIR_PASSES, PAIR_PENALTY, out_of_fold, pair_ngrams


def columns(table):
    """The columns of a table without their order."""
    return sorted(map(tuple, np.asarray(table).T.tolist()))


def test_features_by_hand():
    found = pair_ngrams(["A dog runs.", "A dog sleeps."], ["The dog runs!", "the dog"]).toarray()
    # in both pairs: says the, says dog, the dog, lacks the, only a; both shares lie from .5 to .8: 2/3 and 1/2 are
    # in bins of their own, and the lengths are 3 and 2
    assert columns(found) == [(1.0, 1.0)] * 5


def test_features_are_those_of_the_plain_definition():
    random, words = np.random.default_rng(0), np.array(["a", "Dog", "runs.", "it's", "no", "", "red", "two  cats"])
    texts = [[" ".join(random.choice(words, random.integers(0, 9))) for _ in range(60)] for _ in range(2)]
    assert columns(pair_ngrams(*texts).toarray()) == columns(plainly(*texts))


def test_probabilities_are_those_of_a_model_without_the_row():
    random = np.random.default_rng(1)
    labels = random.integers(0, 3, 120)
    texts = [f"{('no', 'yes', 'maybe')[label]} thing {random.integers(5)}" for label in labels]
    features, fold = pair_ngrams(["A thing."] * 120, texts), random.integers(0, 4, 120)
    said = []
    found = out_of_fold(features, labels, fold, say=said.append)
    for number in range(4):
        here = fold == number
        model = LogisticRegression(C=PAIR_PENALTY, max_iter=PAIR_PASSES).fit(features[~here], labels[~here])
        np.testing.assert_allclose(found[here], model.predict_proba(features[here]), atol=1e-9)
    assert (found.argmax(axis=1) == labels).all() and len(said) == 4 and "fold 4 of 4" in said[-1]
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)


def test_its_own_label_moves_no_probability_of_a_row():
    random = np.random.default_rng(2)
    labels, fold = random.integers(0, 3, 90), np.arange(90) % 3
    features = pair_ngrams([f"p{at % 7} a" for at in range(90)], [f"h{at % 5} b" for at in range(90)])
    other = labels.copy()
    other[7] = (other[7] + 1) % 3
    first, second = (out_of_fold(features, each, fold)[fold == fold[7]] for each in (labels, other))
    np.testing.assert_array_equal(first, second)


def test_planted_flips_come_first():
    """Labels that follow from a word, a tenth of them replaced: these get the lowest probability."""
    random = np.random.default_rng(3)
    true = random.integers(0, 3, 600)
    texts = [
        f"{('surely', 'perhaps', 'never')[label]} the {random.choice(['cat', 'dog', 'man'])} moves" for label in true
    ]
    flipped = random.random(600) < 0.1
    labels = np.where(flipped, (true + 1) % 3, true)
    found = out_of_fold(pair_ngrams(["The animal moves."] * 600, texts), labels, np.arange(600) % 5)
    order = np.argsort(found[np.arange(600), labels])
    assert flipped[order[: flipped.sum()]].mean() > 0.95


def test_a_class_that_a_fold_lacks_has_no_probability_there():
    features = pair_ngrams(["a b"] * 6, ["x y", "x y", "y z", "y z", "z x", "z x"])
    found = out_of_fold(features, [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 1, 1])
    assert found.shape == (6, 3) and (found[[1, 3, 4, 5], 2] == 0).all()


def test_edges():
    assert pair_ngrams([], []).shape[0] == 0
    with pytest.raises(ValueError, match="2 premises and 1 hypotheses"):
        pair_ngrams(["a", "b"], ["c"])
