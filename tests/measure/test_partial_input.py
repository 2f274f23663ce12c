"""Partial input: what leaks is found, what does not leak is at chance, and no text is scored by its own model."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold

from nli_lib.corpora import planted
from nli_lib.measure.giveaways import (
    NGRAMS,
    PASSES,
    PENALTY,
    balanced_sample,
    cross_fitted,
    joint_features,
    partial_input_predictions,
)


def leaking(n=300, seed=0):
    """Texts with a word that gives the label away four times in five."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    words = np.array(["indeed", "maybe", "never"])
    shown = np.where(rng.random(n) < 0.8, labels, rng.integers(3, size=n))
    return [f"{words[s]} item {rng.integers(1000)}" for s in shown], labels


def accuracy(texts, labels, **options):
    return (cross_fitted(texts, labels, **options).argmax(axis=1) == labels).mean()


def test_a_leak_is_found_and_its_absence_too():
    texts, labels = leaking()
    assert accuracy(texts, labels) > 0.75
    shuffled = np.random.default_rng(1).permutation(labels)
    assert 0.2 < accuracy(texts, shuffled) < 0.47


def test_planted_corpus_leaks_by_its_artifacts_only():
    none = dict.fromkeys(("flips", "ambiguous", "artifact", "overlap", "length", "giveaway"), 0.0)
    plain, dressed = planted.make(3000, 0, **none), planted.make(3000, 0)
    assert accuracy(plain.hypothesis, plain.labels) < 0.38
    assert accuracy(dressed.hypothesis, dressed.labels) > 0.45
    challenge = planted.make_split("challenge", 1000)
    out = partial_input_predictions(dressed.hypothesis, dressed.labels, {"challenge": challenge.hypothesis})
    assert (out["challenge"].argmax(axis=1) == challenge.labels).mean() < 0.33


def test_a_leak_is_found_in_texts_without_blanks():
    texts, labels = leaking()
    signs = {"indeed": "定", "maybe": "许", "never": "未", "item": "物"}
    there = [signs[a] + signs[b] + "".join(chr(0x4E8C + 7 * int(digit)) for digit in c)
             for a, b, c in map(str.split, texts)]  # fmt: skip
    assert accuracy(there, labels) > 0.75
    assert accuracy(there, np.random.default_rng(1).permutation(labels)) < 0.47


def test_probabilities_are_probabilities_and_repeat():
    texts, labels = leaking(90)
    one, two = (cross_fitted(texts, labels, seed=4) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one.sum(axis=1), 1)
    assert one.shape == (90, 3)


@pytest.mark.parametrize("grouped", [True, False])
def test_columns_that_no_text_uses_change_no_bit(grouped):
    texts, labels = leaking(90)
    groups = np.arange(90) // 3 if grouped else None
    matrix, slow = NGRAMS.transform(texts), np.zeros((90, 3))
    splitter = (GroupKFold if grouped else StratifiedKFold)(4, shuffle=True, random_state=1)
    for train, held_out in splitter.split(matrix, labels, groups):
        model = LogisticRegression(C=PENALTY, solver="saga", max_iter=PASSES, random_state=1)
        with pytest.warns(ConvergenceWarning):
            model.fit(matrix[train], labels[train])
        slow[held_out] = model.predict_proba(matrix[held_out])
    np.testing.assert_array_equal(cross_fitted(texts, labels, folds=4, groups=groups, seed=1), slow)


def test_a_text_is_never_scored_by_a_model_that_saw_it():
    """Each text is one word of its own with a random label: only a model that has seen it could be right."""
    labels = np.random.default_rng(0).integers(3, size=120)
    assert accuracy([f"word{i}" for i in range(120)], labels) < 0.5
    twice = [f"word{i}" for i in range(120)] * 2  # now the same word stands in two folds ...
    both, groups = np.tile(labels, 2), np.tile(np.arange(120), 2)
    assert accuracy(twice, both) > 0.7
    assert accuracy(twice, both, groups=groups) < 0.5  # ... unless grouped


def test_balanced_sample():
    labels = np.array([0] * 50 + [1] * 9 + [2] * 20)
    rows = balanced_sample(labels, seed=3)
    assert np.bincount(labels[rows]).tolist() == [9, 9, 9]
    assert (np.diff(rows) > 0).all()
    assert (rows == balanced_sample(labels, seed=3)).all()
    assert np.bincount(labels[balanced_sample(labels, per_label=5)]).tolist() == [5, 5, 5]
    with pytest.raises(ValueError, match="larger sample than population"):
        balanced_sample(labels, per_label=10)


def test_train_to_test():
    texts, labels = leaking(300, 0)
    others, truth = leaking(200, 9)
    found = partial_input_predictions(texts, labels, {"others": others})["others"]
    assert (found.argmax(axis=1) == truth).mean() > 0.75


def test_edges():
    assert (cross_fitted(["a", "", "!?", "b"], [1, 1, 1, 1], folds=2, n_classes=3)[:, 1] == 1).all()  # one class
    with pytest.raises(ValueError, match=r"folds=5, but label 0 has 1 texts"):
        cross_fitted(["a"], [0], n_classes=3)
    with pytest.raises(ValueError, match="0..2"):
        cross_fitted(["a", "b"], [0, -1], n_classes=3)
    with pytest.raises(ValueError, match="say how many classes"):
        cross_fitted(["a", "b"], [1, 1])
    assert NGRAMS.transform(["", "Dogs, bark"]).getnnz(axis=1).tolist() == [0, 3]  # dogs, bark, "dogs bark"


def test_several_test_sets_take_one_model():
    texts, labels = leaking()
    tests = {"first": texts[:7], "second": texts[7:20]}
    found = partial_input_predictions(texts, labels, tests)
    assert [found[name].shape for name in tests] == [(7, 3), (13, 3)]
    one = partial_input_predictions(texts, labels, {"alone": texts[7:20]})
    np.testing.assert_array_equal(found["second"], one["alone"])


def test_joint_features_of_a_corpus_and_of_samples():
    """The corpus's own columns are those without samples; a sample's prediction is that of a model of the corpus."""
    corpus, other = planted.make_split("train", 90, 0), planted.make_split("train", 60, 1)
    (alone, own), (table, labels) = (joint_features(corpus, other.table[:count]) for count in (0, 60))
    assert np.array_equal(own, corpus.labels) and np.array_equal(labels, [*own, *other.labels])
    column = {name: at for at, name in enumerate(table.names)}
    assert (table.matrix[:90, [column[name] for name in alone.names]] != alone.matrix).nnz == 0
    guesses = partial_input_predictions(corpus.hypothesis, corpus.labels, {"x": other.hypothesis}, n_classes=3)["x"]
    chosen = table.matrix[90:, [column[f"hypo-only-pred={label}"] for label in range(3)]].toarray()
    assert np.array_equal(chosen.argmax(axis=1), guesses.argmax(axis=1))
