"""Linear models of half of the input and of pairs, bias evidence, flagged words.

What leaks is found, what does not leak is at chance, and no text is scored by a model that saw it.
Alone: pytest tests/measure/test_giveaways.py"""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold

from nli_lib.corpora import planted
from nli_lib.measure import giveaways
from nli_lib.measure.features import features, tokenize
from nli_lib.measure.giveaways import bias_evidence, cross_fitted, out_of_fold, pair_ngrams, partial_input_predictions


def plainly(premises, hypotheses):
    """`pair_ngrams` by its definition, with a set of names for each pair; a dense table of sorted columns."""
    rows = []
    for premise, hypothesis in zip(premises, hypotheses, strict=True):
        p, h = ([words.vocabulary[i].as_py() for i in words.ids]
            for words in (tokenize([premise]), tokenize([hypothesis])))  # fmt: skip
        names = {("says", w) for w in h} | {("then", a, b) for a, b in pairwise(h)}
        names |= {("lacks", w) for w in set(h) - set(p)} | {("only", w) for w in set(p) - set(h)}
        share = len(set(h) & set(p)) / max(len(set(h)), 1)
        names |= {("share", sum(share >= each for each in giveaways.SHARES)), ("long", min(len(h), giveaways.LONGEST))}
        rows.append(names)
    every = sorted({name for names in rows for name in names}, key=str)
    table = np.array([[name in names for name in every] for names in rows], dtype=float)
    return table[:, table.sum(axis=0) >= giveaways.RARE]


# ---------------------------------------------------------------- partial input


def leaking(n=300, seed=0):
    """Texts with a word that gives the label away four times in five."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    words = np.array(["indeed", "maybe", "never"])
    shown = np.where(rng.random(n) < 0.8, labels, rng.integers(3, size=n))
    return [f"{words[s]} item {rng.integers(1000)}" for s in shown], labels


def accuracy(texts, labels, **options):
    return (cross_fitted(texts, labels, **options).argmax(axis=1) == labels).mean()


@pytest.mark.parametrize("blanks", [True, False])
def test_a_leak_is_found_and_its_absence_too(blanks):
    texts, labels = leaking()
    if not blanks:
        signs = {"indeed": "定", "maybe": "许", "never": "未", "item": "物"}
        parts = [text.split() for text in texts]
        numbers = ["".join(chr(0x4E8C + 7 * int(digit)) for digit in each[2]) for each in parts]
        texts = [signs[a] + signs[b] + number for (a, b, _), number in zip(parts, numbers, strict=True)]
    assert accuracy(texts, labels) > 0.75 and 0.2 < accuracy(texts, np.random.default_rng(1).permutation(labels)) < 0.47


def test_planted_corpus_leaks_by_its_artifacts_only():
    none = dict.fromkeys(("flips", "ambiguous", "artifact", "overlap", "length", "giveaway"), 0.0)
    plain, dressed = planted.make(3000, 0, **none), planted.make(3000, 0)
    assert accuracy(plain.hypothesis, plain.labels) < 0.38 and accuracy(dressed.hypothesis, dressed.labels) > 0.45
    challenge = planted.make_split("challenge", 1000)
    out = partial_input_predictions(dressed.hypothesis, dressed.labels, {"challenge": challenge.hypothesis})
    assert (out["challenge"].argmax(axis=1) == challenge.labels).mean() < 0.33


@pytest.mark.parametrize("grouped", [True, False])
def test_columns_that_no_text_uses_change_no_bit(grouped):
    texts, labels = leaking(90)
    groups = np.arange(90) // 3 if grouped else None
    matrix, slow = giveaways.NGRAMS.transform(texts), np.zeros((90, 3))
    splitter = (GroupKFold if grouped else StratifiedKFold)(4, shuffle=True, random_state=1)
    settings = {"C": giveaways.PENALTY, "solver": "saga", "max_iter": giveaways.PASSES, "random_state": 1}
    for train, held_out in splitter.split(matrix, labels, groups):
        model = LogisticRegression(**settings)
        with pytest.warns(ConvergenceWarning):
            model.fit(matrix[train], labels[train])
        slow[held_out] = model.predict_proba(matrix[held_out])
    found = cross_fitted(texts, labels, folds=4, groups=groups, seed=1)
    np.testing.assert_array_equal(found, slow)
    np.testing.assert_allclose(found.sum(axis=1), 1)


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
    rows = giveaways.balanced_sample(labels, seed=3)
    assert np.bincount(labels[rows]).tolist() == [9, 9, 9] and (np.diff(rows) > 0).all()
    assert (rows == giveaways.balanced_sample(labels, seed=3)).all()
    assert np.bincount(labels[giveaways.balanced_sample(labels, per_label=5)]).tolist() == [5, 5, 5]
    with pytest.raises(ValueError, match="larger sample than population"):
        giveaways.balanced_sample(labels, per_label=10)


def test_several_test_sets_take_one_model():
    texts, labels = leaking()
    others, truth = leaking(200, 9)
    found = partial_input_predictions(texts, labels, {"first": texts[:7], "others": others})
    assert [each.shape for each in found.values()] == [(7, 3), (200, 3)]
    assert (found["others"].argmax(axis=1) == truth).mean() > 0.75
    np.testing.assert_array_equal(found["first"], partial_input_predictions(texts, labels, {"": texts[:7]})[""])


def test_edges_of_partial_input():
    assert (cross_fitted(["a", "", "!?", "b"], [1, 1, 1, 1], folds=2, n_classes=3)[:, 1] == 1).all()  # one class
    wrong = {"folds=5, but label 0 has 1 texts": (["a"], [0], 3), "0..2": (["a", "b"], [0, -1], 3)}
    for said, (*given, n_classes) in (wrong | {"say how many classes": (["a", "b"], [1, 1], None)}).items():
        with pytest.raises(ValueError, match=said):
            cross_fitted(*given, n_classes=n_classes)
    found = giveaways.NGRAMS.transform(["", "Dogs, bark"])
    assert found.getnnz(axis=1).tolist() == [0, 3]  # dogs, bark, "dogs bark"


def test_joint_features_of_a_corpus_and_of_samples():
    """The corpus's own columns are those without samples; a sample's prediction is that of a model of the corpus."""
    corpus, other = planted.make_split("train", 90, 0), planted.make_split("train", 60, 1)
    (alone, own), (table, labels) = (giveaways.joint_features(corpus, other.table[:count]) for count in (0, 60))
    assert np.array_equal(own, corpus.labels) and np.array_equal(labels, [*own, *other.labels])
    column = {name: at for at, name in enumerate(table.names)}
    assert (table.matrix[:90, [column[name] for name in alone.names]] != alone.matrix).nnz == 0
    guesses = partial_input_predictions(corpus.hypothesis, corpus.labels, {"x": other.hypothesis}, n_classes=3)["x"]
    chosen = table.matrix[90:, [column[f"hypo-only-pred={label}"] for label in range(3)]].toarray()
    assert np.array_equal(chosen.argmax(axis=1), guesses.argmax(axis=1))


# ---------------------------------------------------------------- bias evidence


SIX = np.array([0, 1, 2, 0, 1, 2])


def evidence_by_definition(logits, labels):
    rows = [[math.exp(each) / sum(map(math.exp, row)) for each in row] for row in logits]
    mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    evidence = sum(math.log(row[label]) - math.log(mean[label]) for row, label in zip(rows, labels, strict=True))
    moves = sum(p * math.log(p / q) for row in rows for p, q in zip(row, mean, strict=True))
    leans = sum(q * math.log(3 * q) for q in mean)
    return {"evidence": evidence / len(rows), "moves": moves / len(rows), "leans": leans}


@pytest.mark.parametrize("seed", range(3))
def test_evidence_as_defined_in_any_order(seed):
    random = np.random.default_rng(seed)
    logits, order = random.normal(size=(6, 3)), random.permutation(6)
    found = bias_evidence(logits, SIX)
    assert found == pytest.approx(evidence_by_definition(logits, SIX))
    assert bias_evidence(logits[order], SIX[order]) == pytest.approx(found)


def test_heads_that_say_nothing_lean_know_move_at_random_or_are_sure():
    assert bias_evidence(np.full((6, 3), 7.0), SIX) == pytest.approx({"evidence": 0, "moves": 0, "leans": 0})
    leans = bias_evidence(np.tile([2.0, 0.0, 0.0], (6, 1)), SIX)
    assert leans["evidence"] == pytest.approx(0) and leans["moves"] == pytest.approx(0) and leans["leans"] > 0.3
    knows = bias_evidence(np.eye(3)[SIX] * 50, SIX)
    assert knows["evidence"] == pytest.approx(math.log(3)) and knows["leans"] == pytest.approx(0)
    wrong = bias_evidence(np.eye(3)[(SIX + 1) % 3] * 4, SIX)
    assert wrong["evidence"] < 0 and wrong["moves"] > 0.5
    sure = bias_evidence([[900.0, -900, 0], [0, 900, -900], [0, 0, 900]], [0, 1, 2])
    assert all(math.isfinite(value) for value in sure.values())


# ---------------------------------------------------------------- flagged words


PREMISES = ["A man sleeps for a day.", "The dog runs; the dog runs."]
HYPOTHESES = ["Nobody is sleeping for a day", "A dog, for a while."]


def flagged(*cells):
    """The words that these features flag, by side, and the pairs that are flagged whole; cells: pair and name."""
    table = features(PREMISES, HYPOTHESES)
    matrix = np.zeros(table.matrix.shape, bool)
    for row, name in cells:
        matrix[row, list(table.names).index(name)] = True
    found = giveaways.flagged_words(PREMISES, HYPOTHESES, sparse.csr_array(matrix), table.names)
    named = []
    for texts, flags in ((PREMISES, found.premise), (HYPOTHESES, found.hypothesis)):
        words = tokenize(texts)
        named.append(" ".join(words.vocabulary.to_numpy(zero_copy_only=False)[words.ids[flags]]))
    return [*named, found.whole.tolist()]


def test_flagged_by_hand():
    cells = [(0, "nobody@hypothesis"), (0, "for a@hypothesis"), (1, "dog runs@premise"), (1, "hypo-len< 6")]
    # each occurrence in the premise; of the second hypothesis no "for a"
    assert flagged(*cells) == ["dog runs dog runs", "nobody for a", [False, True]]
    # sides are kept apart, and absent words flag nothing
    assert flagged((0, "a@premise"), (1, "nobody@hypothesis"), (0, "a day@premise")) == ["a a day", "", [False, False]]
    table = features(PREMISES, HYPOTHESES)
    with pytest.raises(ValueError, match="2 pairs"):
        giveaways.flagged_words(PREMISES, HYPOTHESES, table.matrix[:1], table.names)


def test_slow_twin_of_flagged_words():
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(list("abcd"), random.integers(0, 7))) for _ in range(60)]
    premises, hypotheses = texts[:30], texts[30:]
    table = features(premises, hypotheses)
    picked = table.matrix.multiply(sparse.csr_array(random.random(table.matrix.shape) < 0.2)).tocsr()
    picked.eliminate_zeros()
    found = giveaways.flagged_words(premises, hypotheses, picked, table.names)
    slow, whole = {"premise": [], "hypothesis": []}, []
    for row in range(30):
        names = table.names[picked[[row]].indices]
        for side, text in (("premise", premises[row]), ("hypothesis", hypotheses[row])):
            tokens = text.split()
            flags = [f"{token}@{side}" in names for token in tokens]
            for at, pair in enumerate(pairwise(tokens)):
                if f"{' '.join(pair)}@{side}" in names:
                    flags[at] = flags[at + 1] = True
            slow[side] += flags
        whole.append(any("@" not in name for name in names))
    assert found.premise.tolist() == slow["premise"] and found.hypothesis.tolist() == slow["hypothesis"]
    assert found.whole.tolist() == whole and any(slow["premise"])


# ---------------------------------------------------------------- a linear model of pairs


def columns(table):
    """The columns of a table without their order."""
    return sorted(map(tuple, np.asarray(table).T.tolist()))


def test_features_of_pairs_by_hand_and_by_the_plain_definition():
    found = pair_ngrams(["A dog runs.", "A dog sleeps."], ["The dog runs!", "the dog"]).toarray()
    # in both pairs: says the, says dog, the dog, lacks the, only a; both shares lie from .5 to .8: 2/3 and 1/2 are
    # in bins of their own, and the lengths are 3 and 2
    assert columns(found) == [(1.0, 1.0)] * 5
    random, words = np.random.default_rng(0), np.array(["a", "Dog", "runs.", "it's", "no", "", "red", "two  cats"])
    texts = [[" ".join(random.choice(words, random.integers(0, 9))) for _ in range(60)] for _ in range(2)]
    assert columns(pair_ngrams(*texts).toarray()) == columns(plainly(*texts)) and pair_ngrams([], []).shape[0] == 0
    with pytest.raises(ValueError, match="2 premises and 1 hypotheses"):
        pair_ngrams(["a", "b"], ["c"])


def test_probabilities_are_those_of_a_model_without_the_row():
    random = np.random.default_rng(1)
    labels, fold = random.integers(0, 3, 120), random.integers(0, 4, 120)
    texts = [f"{('no', 'yes', 'maybe')[label]} thing {random.integers(5)}" for label in labels]
    table, said = pair_ngrams(["A thing."] * 120, texts), []
    found, settings = out_of_fold(table, labels, fold, say=said.append), (giveaways.PAIR_PENALTY, giveaways.PAIR_PASSES)
    for number in range(4):
        here = fold == number
        model = LogisticRegression(C=settings[0], max_iter=settings[1]).fit(table[~here], labels[~here])
        np.testing.assert_allclose(found[here], model.predict_proba(table[here]), atol=1e-9)
    assert (found.argmax(axis=1) == labels).all() and len(said) == 4 and "fold 4 of 4" in said[-1]
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)


def test_its_own_label_moves_no_probability_of_a_row():
    labels, fold = np.random.default_rng(2).integers(0, 3, 90), np.arange(90) % 3
    table = pair_ngrams([f"p{at % 7} a" for at in range(90)], [f"h{at % 5} b" for at in range(90)])
    other = labels.copy()
    other[7] = (other[7] + 1) % 3
    first, second = (out_of_fold(table, each, fold)[fold == fold[7]] for each in (labels, other))
    np.testing.assert_array_equal(first, second)


def test_a_class_that_a_fold_lacks_has_no_probability_there():
    table = pair_ngrams(["a b"] * 6, ["x y", "x y", "y z", "y z", "z x", "z x"])
    found = out_of_fold(table, [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 1, 1])
    assert found.shape == (6, 3) and (found[[1, 3, 4, 5], 2] == 0).all()
