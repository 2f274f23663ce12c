"""Dynamics and levels, sensitivity to edits, spurious measures: values by hand, slow twins, bounds, planted truth.

Alone: pytest tests/measure/test_dynamics.py"""

import string
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import logsumexp, softmax
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from tiny_words import cases

from nli_lib.corpora import suites
from nli_lib.errors import PackageError
from nli_lib.measure import dynamics
from nli_lib.measure.dynamics import confidence, correctness, forgetting, levels, margin, max_variability, variability

SCORES = (confidence, variability, correctness, margin, forgetting)


def gold_logits(probabilities):
    """Logits (E, 1, 3) whose softmax gives class 0 these probabilities."""
    p = np.asarray(probabilities)
    return np.log(np.stack([p, (1 - p) / 2, (1 - p) / 2], axis=-1))[:, None, :]


def random_run(seed=0, epochs=5, examples=40, classes=3):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 2, (epochs, examples, classes)), rng.integers(classes, size=examples)


# ---------------------------------------------------------------- the six scores


def test_worked_rows():
    logits = gold_logits([0.2, 0.9, 0.7, 0.4, 0.8])
    assert confidence(logits, [0]) == pytest.approx([0.6])
    assert variability(logits, [0]) == pytest.approx([0.260768], abs=1e-6)  # the sample deviation would be .29155
    rows = [(0.6, 0.3, 0.1), (0.3, 0.6, 0.1), (0.5, 0.4, 0.1), (0.2, 0.7, 0.1), (0.1, 0.85, 0.05)]
    assert max_variability(np.log(rows)[:, None, :]) == pytest.approx([0.198997], abs=1e-6)
    assert margin([[[2.0, 1, 0]], [[0, 3, -1]]], [0]) == pytest.approx([-1.0])  # (1 - 3) / 2


def test_correctness_is_a_share_and_a_tie_goes_to_the_lowest_class():
    logits = [[[1.0, 0, 0]], [[0, 1, 0]], [[1, 1, 0]], [[0, 0, 1]]]
    assert correctness(logits, [0]) == pytest.approx([0.5]) and correctness(logits, [1]) == pytest.approx([0.25])


@pytest.mark.parametrize(("right", "events"), [
    ("11111", 0), ("00000", 0), ("10101", 2), ("01100", 1), ("00001", 0), ("10000", 1)])  # fmt: skip
def test_forgetting_counts_right_to_wrong(right, events):
    assert forgetting([[[1.0, 0]] if r == "1" else [[0.0, 1]] for r in right], [0]) == [events]


def test_slow_twin_of_the_scores():
    logits, labels = random_run()
    found = dynamics.scores(logits, labels)
    for i, gold in enumerate(labels):
        exponents = np.exp(logits[:, i])
        p = exponents / exponents.sum(axis=1, keepdims=True)
        right = [max(range(3), key=lambda c, e=e: logits[e, i, c]) == gold for e in range(5)]
        gaps = [z[gold] - max(z[c] for c in range(3) if c != gold) for z in logits[:, i]]
        spreads = [(sum((q - p[:, c].mean()) ** 2 for q in p[:, c]) / 5) ** 0.5 for c in range(3)]
        slow = {"confidence": sum(p[:, gold]) / 5, "variability": spreads[gold], "max_variability": max(spreads)}
        slow |= {"correctness": sum(right) / 5, "margin": sum(gaps) / 5}
        slow["forgetting"] = sum(a and not b for a, b in pairwise(right))
        assert {name: values[i] for name, values in found.items()} == pytest.approx(slow)


def test_an_examples_influence_on_itself_is_the_squared_gradient_of_its_loss():
    """By finite differences of the cross-entropy in the bias of the last layer, epoch by epoch."""
    logits, labels = random_run(examples=8)
    at, step = np.arange(8), 1e-6
    slopes = [(logsumexp(logits + step * one, axis=-1) - (logits + step * one)[:, at, labels]) for one in np.eye(3)]
    slopes = (np.array(slopes) - (logsumexp(logits, axis=-1) - logits[:, at, labels])) / step  # (C, E, N)
    assert dynamics.self_influence(logits, labels) == pytest.approx((slopes**2).sum(axis=(0, 1)), rel=1e-4)
    assert dynamics.el2n(logits, labels) == pytest.approx(np.sqrt((slopes**2).sum(axis=0)).mean(axis=0), rel=1e-4)


def test_of_two_classes_max_variability_is_the_variability():
    logits = np.random.default_rng(0).normal(size=(4, 50, 2))
    assert max_variability(logits) == pytest.approx(variability(logits, np.arange(50) % 2))


SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(2, 4))


@settings(max_examples=60)
@given(hnp.arrays(np.float32, SHAPES, elements=st.floats(-1e4, 1e4, width=32)))
def test_bounds(logits):
    epochs, examples, _ = logits.shape
    labels = np.zeros(examples, int)
    mu, sigma = confidence(logits, labels), variability(logits, labels)
    assert ((mu >= 0) & (mu <= 1)).all() and (sigma <= np.sqrt(np.clip(mu * (1 - mu), 0, None)) + 1e-7).all()
    assert (sigma <= (0.5 if epochs % 2 == 0 else np.sqrt(epochs**2 - 1) / (2 * epochs)) + 1e-9).all()
    assert (max_variability(logits) >= sigma - 1e-12).all() and (forgetting(logits, labels) <= epochs // 2).all()
    assert np.isin(np.round(correctness(logits, labels) * epochs, 9), np.arange(epochs + 1)).all()


def test_order_of_examples_and_shift_of_logits_do_not_matter():
    logits, labels = random_run()
    order = np.random.default_rng(1).permutation(len(labels))
    for score in SCORES:
        np.testing.assert_allclose(score(logits[:, order], labels[order]), score(logits, labels)[order])
        np.testing.assert_allclose(score(logits + 7.5, labels), score(logits, labels), atol=1e-9)


def test_huge_logits_one_epoch_and_no_examples():
    logits = np.array([[[1e4, 0.0, -1e4]], [[-1e4, 0.0, 1e4]]])
    assert confidence(logits, [0]) == variability(logits, [0]) == pytest.approx([0.5])  # reachable, since E is even
    assert margin(logits, [0]) == pytest.approx([-5000.0])
    one = random_run(epochs=1)
    assert (variability(*one) == 0).all() and (forgetting(*one) == 0).all() and set(correctness(*one)) <= {0.0, 1.0}
    assert all(score(np.empty((3, 0, 3)), np.empty(0, int)).shape == (0,) for score in SCORES)


def test_not_a_number_and_a_wrong_shape_are_named():
    logits, labels = random_run()
    logits[2, 7, 1] = np.nan
    with pytest.raises(ValueError, match="epoch 2, example 7"):
        confidence(logits, labels)
    with pytest.raises(ValueError, match=r"\(5, 3\)"):
        max_variability(np.zeros((5, 3)))


@pytest.mark.parametrize(("label", "message"), [
    (-1, "label -1 at position 0"), (3, "not one of 0..2"), (0.5, "integer")])  # fmt: skip
def test_bad_labels(label, message):
    with pytest.raises(ValueError, match=message):
        variability(random_run()[0], [label] * 40)
    with pytest.raises(ValueError, match="40 examples"):
        variability(random_run()[0], [0] * 3)


def test_simulated_training_puts_each_kind_where_the_data_map_says():
    """Easy examples rise and stay, mislabelled ones sink, ambiguous ones wander between two labels."""
    rng = np.random.default_rng(0)
    kind = np.repeat(["easy", "mislabelled", "ambiguous"], 200)
    rise = np.linspace(0.5, 4, 6)[:, None] * np.select([kind == "easy", kind == "mislabelled"], [1, -1], 0)
    gold = rise + rng.normal(0, np.where(kind == "ambiguous", 2.5, 0.4), (6, 600))
    found = dynamics.scores(np.stack([gold, np.zeros((6, 600)), np.full((6, 600), -3.0)], axis=-1), np.zeros(600, int))
    shown = {"confidence": "mislabelled", "margin": "mislabelled", "variability": "ambiguous"}
    for name, of in (shown | {"max_variability": "ambiguous", "correctness": "easy"}).items():
        assert roc_auc_score(kind == of, found[name] * (-1 if of == "mislabelled" else 1)) > 0.95, name


def test_each_score_of_doubt_is_higher_for_a_pair_that_is_learnt_and_forgotten_than_for_a_sure_one():
    sure, wavering = [[5.0, 0.0]] * 4, [[3.0, 0.0], [0.0, 3.0]] * 2
    given = dynamics.scores(np.stack([sure, wavering], axis=1), np.array([0, 0]))
    assert set(given) == set(dynamics.DOUBT)
    assert [name for name, sign in dynamics.DOUBT.items() if sign * given[name][1] <= sign * given[name][0]] == []


# ---------------------------------------------------------------- two views, three levels


def three_groups():
    """Features of examples that are plainly easy, ambiguous or hard, and which they are."""
    centres, truth = np.array([[0.9, 0.05], [0.5, 0.3], [0.15, 0.1]]), np.repeat(np.arange(3), (60, 30, 20))
    return centres[truth] + np.random.default_rng(0).normal(0, 0.02, (len(truth), 2)), truth


def test_the_features_by_hand():
    # two epochs, one example, gold label 0; the hypothesis model sees three equal logits
    pair, flat = np.log([[[0.5, 0.25, 0.25]], [[0.3, 0.6, 0.1]]]), np.zeros((2, 1, 3))
    row = dict(zip(dynamics.FEATURES, dynamics.dynamics_features(pair, flat, [0])[0], strict=True))
    mean = (np.log(2) + np.log(0.5)) / 2
    by_hand = {"confidence": 0.4, "variability": 0.1, "margin": mean, "correctness": 0.5}  # equation 2, with its square
    alone = {"confidence": 1 / 3, "variability": 0, "margin": 0, "correctness": 1}  # a tie counts for the lowest class
    expected = {f"pair {name}": value for name, value in by_hand.items()}
    assert row == pytest.approx(expected | {f"hypothesis {name}": value for name, value in alone.items()}, abs=1e-12)
    table = dynamics.feature_table(pair, flat, [0])
    assert list(table.columns) == [*dynamics.FEATURES, "gold"] and table["pair confidence"].iloc[0] == np.float32(0.4)
    with pytest.raises(ValueError, match="4,. for 3 examples"):
        dynamics.dynamics_features(np.zeros((5, 4, 3)), np.zeros((5, 3, 3)), np.zeros(4, int))


@pytest.mark.parametrize("seed", range(4))
def test_planted_levels_are_found_and_named_by_confidence(seed):
    features, truth = three_groups()
    assert np.array_equal(levels(features, seed=seed), truth) and dynamics.LEVELS == ("easy", "ambiguous", "hard")


def test_one_seed_gives_one_answer():
    features = np.random.default_rng(3).normal(size=(60, 8))  # no groups at all: the seed decides
    assert np.array_equal(levels(features), levels(features))


def test_order_and_units_do_not_matter_and_a_constant_feature_adds_nothing():
    features, truth = three_groups()
    order = np.random.default_rng(5).permutation(len(features))
    assert np.array_equal(levels(features[order]), truth[order])
    scaled = np.column_stack([features[:, 0], 1000 * features[:, 1], np.full(len(features), 7.0)])
    assert adjusted_rand_score(levels(scaled), truth) == 1
    # standardised first: of their variances, 1e-8 and less, the 1e-6 that is added to each would leave nothing
    assert np.array_equal(levels(3 + features / 1e4), truth)


def test_ambiguous_is_what_is_left_not_what_varies_most():
    features, truth = three_groups()
    features[truth == 2, 1] += 0.5  # now the hard ones vary most
    assert np.array_equal(levels(features), truth)


UNGROUPED = {
    "n_samples = 2": np.zeros((2, 8)), "Expected 2D array": np.zeros(8), "fall into 1 of 3 groups": np.zeros((9, 8)),
    "contains NaN": np.array([[0.0], [np.nan], [1.0]])}  # fmt: skip


@pytest.mark.parametrize("said", UNGROUPED)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_cannot_be_grouped_is_an_error(said):
    with pytest.raises(ValueError, match=said):
        levels(UNGROUPED[said])


def test_agreement_of_levels_by_hand():
    first, second = np.array([0, 0, 1, 2, 2]), np.array([0, 0, 2, 2, 1])
    found = dynamics.level_agreement(first, second)
    assert (found["same level"], found["hard in both"], found["hard by chance"]) == (0.6, 0.5, 0.4)
    assert found["adjusted Rand"] == pytest.approx(adjusted_rand_score(first, second))
    assert set(dynamics.level_agreement(first, first).values()) == {1.0, 0.4}
    found = dynamics.level_agreement([2, 2, 0, 1, 0], [2, 0, 0, 1, 1])  # of what is hard in the first
    assert (found["hard in both"], found["hard by chance"]) == (0.5, 0.2)


# ---------------------------------------------------------------- counterfactuals


@pytest.mark.parametrize(("before", "after", "expected"), [
    ([0.7, 0.2, 0.1], [0.1, 0.3, 0.6], 0.55),  # (.6 - .1 + .7 - .1) / 2, DISCO's section 5.2
    ([0.9, 0.05, 0.05], [0.4, 0.3, 0.3], 0),  # the prediction stays
    ([1, 1e-30, 1e-30], [1e-30, 1, 1e-30], 1),
    # of two classes the paper's short form
    ([0.8, 0.2], [0.3, 0.7], 0.7 + 0.8 - 1)])  # fmt: skip
def test_sensitivity_by_hand(before, after, expected):
    assert dynamics.sensitivity(np.log([before]), np.log([after])) == pytest.approx([expected])


def test_sensitivity_is_that_of_the_slow_twin_and_within_bounds():
    before, after = np.random.default_rng(0).normal(scale=3, size=(2, 500, 3))
    found, slow = dynamics.sensitivity(before, after), []
    for p, q in zip(softmax(before, axis=1), softmax(after, axis=1), strict=True):
        old, new = list(p).index(max(p)), list(q).index(max(q))
        slow.append(((q[new] - p[new]) + (p[old] - q[old])) / 2)
    assert found == pytest.approx(slow) and (found >= 0).all() and (found <= 1).all()
    assert (found == 0).tolist() == (before.argmax(1) == after.argmax(1)).tolist()
    assert dynamics.sensitivity(after, before) == pytest.approx(found)


def test_outcomes_add_up_to_pair_accuracy_and_single_accuracies():
    random = np.random.default_rng(1)
    before, after = random.normal(size=(2, 400, 3))
    labels = random.integers(0, 3, 400)
    new_labels = (labels + random.integers(1, 3, 400)) % 3
    found = dynamics.outcomes(before, after, labels, new_labels)
    right = [before.argmax(1) == labels, after.argmax(1) == new_labels]
    assert (found == "changed, 2 right").tolist() == (right[0] & right[1]).tolist()
    assert "unchanged, 2 right" not in found  # the gold labels differ
    assert dynamics.outcomes([[1.0, 0, 0]], [[1.0, 0, 0]], [0], [0]).tolist() == ["unchanged, 2 right"]
    before, after = np.log([[0.9, 0.05, 0.05]]), np.log([[0.05, 0.9, 0.05]])  # sensitive, and always wrong
    assert dynamics.sensitivity(before, after)[0] > 0.8
    assert dynamics.outcomes(before, after, [1], [0]).tolist() == ["changed, 0 right"]


def test_what_does_not_belong_together_is_refused():
    two, three = np.zeros((2, 3)), np.zeros((3, 3))
    for said, function, *arrays in [
        ("both texts", dynamics.sensitivity, three, two), ("label", dynamics.outcomes, two, two, [0, 3], [1, 2]),
        ("both texts", dynamics.outcomes, three, two, [0, 1, 2], [1, 2, 0]),
        ("finite", dynamics.sensitivity, [[np.nan, 0, 0]], [[0.0, 1, 0]])]:  # fmt: skip
        with pytest.raises(ValueError, match=said):
            function(*arrays)


# ---------------------------------------------------------------- spurious measures


OPPOSITES = {"win": {"lose"}, "big": {"small", "little"}, "up": {"down"}, "down": {"up"}}
KNOWN = {"a", "dog", "the", "runs", "don't", "no", "win", "big", "up", "down", "small", "3"}


def opposites(word):
    return OPPOSITES.get(word, set())


def unknown(words):
    return {word for word in words if word not in KNOWN}


SPURIOUS = {
    "word overlap": dynamics.word_overlap,
    "length mismatch": dynamics.length_mismatch,
    "negation": dynamics.negation,
    "corrected negation": lambda p, h: dynamics.negation(p, h, corrected=True),
    "misspelled": lambda p, h: dynamics.misspelled(p, h, unknown),
    "corrected misspelled": lambda p, h: dynamics.misspelled(p, h, unknown, corrected=True),
    "antonyms": lambda p, h: dynamics.antonyms(p, h, opposites),
}


def one(measure, premise, hypothesis):
    return float(SPURIOUS[measure]([premise], [hypothesis])[0])


@pytest.mark.parametrize(("measure", "premise", "hypothesis", "expected"), cases("spurious"))
def test_spurious_measures_by_hand(measure, premise, hypothesis, expected):
    assert one(measure, premise, hypothesis) == pytest.approx(float(Fraction(expected)))


@pytest.mark.parametrize("measure", SPURIOUS)
def test_texts_without_a_token_are_defined(measure):
    for premise, hypothesis in (("", ""), ("", "a dog"), ("a dog", ""), ("?!...", "--"), ("a", "' ''")):
        assert np.isfinite(one(measure, premise, hypothesis))
        if not hypothesis.strip(string.punctuation + " ") and "misspelled" not in measure:
            assert one(measure, premise, hypothesis) == 0
    assert SPURIOUS[measure]([], []).shape == (0,)
    with pytest.raises(ValueError, match="2 premises and 1 hypotheses"):
        SPURIOUS[measure](["a", "b"], ["a"])


def test_base_forms_find_inflected_antonyms():
    base = {"lost": "lose", "won": "win"}
    assert dynamics.antonyms(["they win"], ["they lost"], opposites)[0] == 0
    corrected = dynamics.antonyms(["they win"], ["they lost"], opposites, base_form=lambda word: base.get(word, word))
    assert corrected[0] == 0.5


def words(text):
    return text.lower().translate(str.maketrans("", "", string.punctuation)).split()


def slow(measure, premise, hypothesis):
    """The paper's code as it reads, pair by pair."""
    t1, t2 = words(premise), words(hypothesis)
    if measure == "misspelled":
        return len(unknown({*t1, *t2})) / len(t1 + t2) if t1 + t2 else 0
    if measure == "negation":
        return float(any(word in t1 + t2 for word in ("no", "not", "never", "none")))
    if not t2:
        return 0
    called_for = set().union(*(opposites(word) for word in t1)) if t1 else set()
    above = {"word overlap": len(set(t1) & set(t2)), "length mismatch": len(t1) - len(t2)}
    return above.get(measure, sum(word in called_for for word in t2)) / len(t2)


WORDS = st.sampled_from(["the", "Dog,", "win", "lose", "big", "small", "not", "don't", "UP", "down", "?!", "xq"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)


@pytest.mark.parametrize("measure", ["word overlap", "length mismatch", "negation", "misspelled", "antonyms"])
@settings(max_examples=40)
@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8))
def test_equal_to_the_slow_twin_in_any_order(measure, pairs):
    premises, hypotheses = zip(*pairs, strict=True)
    got = SPURIOUS[measure](premises, hypotheses)
    np.testing.assert_allclose(got, [slow(measure, *pair) for pair in pairs])
    np.testing.assert_allclose(SPURIOUS[measure](premises[::-1], hypotheses[::-1]), got[::-1])


def test_a_dictionary_is_asked_once_for_each_word():
    asked = []
    dynamics.misspelled(["the dog the dog"] * 50, ["a dog"] * 50, lambda wanted: asked.extend(wanted) or set())
    assert sorted(asked) == ["a", "dog", "the"]


def test_the_word_list_knows_words_and_numbers():
    pytest.importorskip("spellchecker", reason="pyspellchecker is not installed")
    assert suites.spelling()(["dog", "dgoxq", "theres", "42", "don't"]) == {"dgoxq", "theres"}


def test_wordnets_first_antonyms_and_base_forms():
    try:
        wordnet = suites.Wordnet()
    except PackageError as error:
        pytest.skip(str(error))
    assert "cold" in wordnet.antonyms_of("hot") and "lose" in wordnet.antonyms_of("win")
    assert wordnet.antonyms_of("qxqx") == set()
    assert wordnet.base_form("dogs") == "dog" and wordnet.base_form("qxqx") == "qxqx"


def test_what_is_missing_says_what_to_install(monkeypatch, tmp_path):
    suites._open_wordnet.cache_clear()
    monkeypatch.setattr(suites, "DEBIAN", tmp_path)
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    try:
        with pytest.raises(PackageError, match="wordnet-base|pip install nltk"):
            suites.Wordnet()
    finally:
        suites._open_wordnet.cache_clear()


def test_every_measure_by_name_and_those_without_a_dictionary_left_out():
    texts = (["A dog isn't here.", ""], ["No dog.", "?!"])
    bare = dynamics.every_measure(*texts)
    assert list(bare) == ["word overlap", "length mismatch", "negation", "negation, corrected"]
    assert bare["negation"].tolist() == [1, 0] and all(values.shape == (2,) for values in bare.values())
    full = dynamics.every_measure(*texts, unknown=lambda words: {w for w in words if w in ("isnt", "isn't")})
    assert full["misspelled"].tolist() == [1 / 6, 0] and "antonyms" not in full
