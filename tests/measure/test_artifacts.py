"""Artifacts: features against sets made by hand, z-statistics against dictionaries, planted words on top."""

import string
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nli_lib.corpora import planted
from nli_lib.measure.features import (
    features,
    highest_z,
    join,
    label_shares,
    prediction,
    share_at_z,
    top_features,
    z_from_counts,
    z_order,
    z_statistics,
    z_threshold,
)

BETWEEN = {"len-ratio [0, 0.25)": (0, 0.25), "len-ratio [0.5, 0.75)": (0.5, 0.75), "len-ratio [1, 1.25)": (1, 1.25)}


def fired(table, row):
    return {str(name) for name in table.names[table.matrix[[row]].indices]}


def plainly(premise, hypothesis):
    """The features of a pair as the definition says, word by word."""
    p, h = (text.lower().translate(str.maketrans("", "", string.punctuation)).split() for text in (premise, hypothesis))
    found = {"null"}
    for side, words in (("premise", p), ("hypothesis", h)):
        found |= {f"{word}@{side}" for word in words}
        found |= {f"{a} {b}@{side}" for a, b in pairwise(words)}
    found |= {f"hypo-len< {k}" for k in (3, 4, 5, 6, 7, 8, 10, 12) if len(h) < k}
    found |= {f"hypo-len> {k}" for k in (8, 10, 12, 15, 20) if len(h) > k}
    edges = [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, float("inf")]
    bins = pairwise(edges)
    found |= {f"len-ratio [{a:g}, {b:g})" for a, b in bins if p and a <= len(h) / len(p) < b}
    found |= set() if p else {"len-ratio no-premise"}
    overlap = sum(word in p for word in h) / len(h) if h else 0
    found |= {f"lex-overlap> {t}" for t in (0.5, 0.6, 0.7, 0.8, 0.9) if overlap > t}
    return found | ({"full-lex-overlap"} if h and overlap == 1 else set())


# --- features --------------------------------------------------------------------------------------------------------


def test_features_of_one_pair_by_hand():
    table = features(["A dog's toy, a toy."], ["A toy for a cat"])
    assert fired(table, 0) == {
        *(
            "a@premise",
            "dogs@premise",
            "toy@premise",
            "a dogs@premise",
            "dogs toy@premise",
            "toy a@premise",
            "a toy@premise",
        ),
        *("a@hypothesis", "toy@hypothesis", "for@hypothesis", "cat@hypothesis"),
        *("a toy@hypothesis", "toy for@hypothesis", "for a@hypothesis", "a cat@hypothesis"),
        *("hypo-len< 6", "hypo-len< 7", "hypo-len< 8", "hypo-len< 10", "hypo-len< 12", "len-ratio [1, 1.25)"),
        *("lex-overlap> 0.5", "null"),  # 3 of 5 tokens: 0.6 is not above 0.6
    }
    assert table.matrix.dtype == np.uint8
    assert (table.matrix.data == 1).all()


def test_full_overlap_fires_every_threshold():
    found = fired(features(["the old dog sleeps"], ["the dog"]), 0)
    assert {"full-lex-overlap", "lex-overlap> 0.9", "lex-overlap> 0.8", "hypo-len< 5", "len-ratio [0.5, 0.75)"} <= found


WORDS = st.text(st.sampled_from("ab cB.,' "), max_size=14)


@settings(max_examples=80)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6))
def test_slow_twin_features(pairs):
    table = features(*zip(*pairs, strict=True))
    for row, (premise, hypothesis) in enumerate(pairs):
        assert fired(table, row) == plainly(premise, hypothesis)
    assert len(set(table.names)) == len(table.names) == table.matrix.shape[1]


def test_empty_and_punctuation_only():
    table = features(["", "..."], ["?!", ""])
    for row in (0, 1):
        assert {"null", "len-ratio no-premise", "hypo-len< 3"} <= fired(table, row)
        assert not any("overlap" in name or "@" in name for name in fired(table, row))


@pytest.mark.parametrize("words", range(23))
def test_lengths_and_ratios_at_and_beside_every_edge(words):
    premise, hypothesis = "x y z w v u t s", "b " * words
    assert fired(features([premise], [hypothesis]), 0) == plainly(premise, hypothesis)


def test_a_word_said_300_times_fires_once():
    matrix, names = (lambda t: (t.matrix, t.names))(features(["x"], ["b " * 300]))
    assert matrix[0, np.flatnonzero(names == "b@hypothesis")[0]] == 1


def test_columns_do_not_depend_on_the_order_of_pairs():
    corpus = planted.make(200, 1)
    order = np.random.default_rng(0).permutation(200)
    one, two = (features(c.premise, c.hypothesis) for c in (corpus, corpus[order]))
    assert (one.names == two.names).all()
    assert (one.matrix[order] != two.matrix).nnz == 0


def test_choice_of_ngrams():
    table = features(["a b"], ["c d"], ngrams=(1,), shape=False)
    assert table.names.tolist() == ["a@premise", "b@premise", "c@hypothesis", "d@hypothesis"]
    with pytest.raises(ValueError, match="2 premises and 1 hypotheses"):
        features(["a", "b"], ["c"])


# --- z-statistics ----------------------------------------------------------------------------------------------------


def test_z_of_the_worked_counts():
    z, n, _ = z_from_counts([[60, 20, 20], [1, 0, 0], [2, 0, 0], [0, 0, 0]])
    assert z[:3, 0] == pytest.approx([5.656854, 1.414214, 2.0], abs=1e-6)
    assert z[0, 1] == pytest.approx(-2.828427, abs=1e-6)
    assert np.isnan(z[3]).all()
    assert n.tolist() == [100, 1, 2, 0]


def test_slow_twin_z():
    rng = np.random.default_rng(0)
    dense = rng.random((300, 12)) < 0.2
    dense[:, 5] = False
    labels = rng.integers(3, size=300)
    seen, with_label = Counter(), Counter()
    for row, label in zip(dense, labels, strict=True):
        for feature in np.flatnonzero(row):
            seen[feature] += 1
            with_label[feature, label] += 1
    z, n, counts = z_statistics(sparse.csr_array(dense.astype(np.uint8)), labels)
    for feature in range(12):
        assert n[feature] == seen[feature]
        for label in range(3):
            assert counts[feature, label] == with_label[feature, label]
            if seen[feature]:
                share = with_label[feature, label] / seen[feature]
                assert z[feature, label] == pytest.approx((share - 1 / 3) / (2 / 9 / seen[feature]) ** 0.5)
    order = rng.permutation(300)
    np.testing.assert_array_equal(z_statistics(dense[order].astype(int), labels[order]).z, z)


def test_stored_zeros_repeats_and_counts_are_not_counted_twice():
    odd = sparse.csr_array((np.array([1, 1, 0, 5]), np.array([0, 0, 1, 2]), np.array([0, 3, 4])), shape=(2, 3))
    assert z_statistics(odd, [0, 1], n_classes=3).n.tolist() == [1, 0, 1]
    assert odd.nnz == 4  # the caller's matrix is as it was


def test_one_example_one_class_and_two_classes():
    assert z_statistics([[1]], [2], n_classes=3).z[0] == pytest.approx([-(0.5**0.5), -(0.5**0.5), 2**0.5])
    assert z_statistics([[1], [1]], [0, 1]).z.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("labels", [[-1, 0], [0, 3], [0], [0.0, 1.0]])
def test_bad_labels(labels):
    with pytest.raises(ValueError, match="label"):
        z_statistics([[1], [1]], labels, n_classes=3)


def test_thresholds():
    assert z_threshold(0.01) == pytest.approx(2.326348, abs=1e-6)
    assert z_threshold(0.01, 28_000) == pytest.approx(4.957439, abs=1e-6)
    assert share_at_z(100, 5.656854, 1 / 3) == pytest.approx(0.6, abs=1e-6)


def test_ties_go_to_more_examples_then_to_the_name():
    counts = [[2, 1, 1], [1, 0, 0], [1, 0, 0], [4, 2, 2], [0, 0, 0]]  # b and a tie in z and n
    top = top_features(z_from_counts(counts), ["d", "b", "a", "c", "e"], k=3)
    assert top[top.label == 0].name.tolist() == ["a", "b", "c"]
    assert top[top.label == 1].name.tolist() == ["d", "c", "a"]
    assert "e" not in set(top.name)
    assert (top_features(z_from_counts([[1, 1, 1], [2, 2, 2]]), ["x", "y"], k=1).name == "y").all()
    assert "a" not in set(top_features(z_from_counts(counts), ["d", "b", "a", "c", "e"], min_count=2).name)


def test_ties_of_z_are_exact():
    """z of 3 among 3 is that of 8 among 12; computed in floating point the first is larger."""
    counts = np.array([[3, 0, 0], [8, 2, 2], [3, 1, 1]])
    z, order = z_from_counts(counts).z[:, 0], z_order(counts)[:, 0]
    assert z[0] > z[1] and z[0] == pytest.approx(z[1], rel=1e-12)
    assert order[0] == order[1] == 12 and order[2] == pytest.approx(16 / 5)
    top = top_features(z_from_counts(counts), ["a", "b", "c"], k=2)
    assert top[top.label == 0].name.tolist() == ["b", "a"]  # a tie, so the more frequent feature first
    random = np.random.default_rng(0).integers(0, 40, (500, 3))
    expected = (z_from_counts(random).z ** 2 * 2) * np.sign(z_from_counts(random).z)
    np.testing.assert_allclose(z_order(random), expected, rtol=1e-9, atol=1e-9)
    assert (z_order([[0, 0, 0]]) == -np.inf).all()


# --- planted truth ---------------------------------------------------------------------------------------------------


def test_planted_artifacts_rank_on_top():
    corpus = planted.make(6000, 3)
    table = features(corpus.premise, corpus.hypothesis)
    top = top_features(z_statistics(table.matrix, corpus.labels), table.names, k=20)
    for label, words in planted.ARTIFACT_WORDS.items():
        assert {f"{word}@hypothesis" for word in words} <= set(top[top.label == label].name)
    assert "lex-overlap> 0.8" in set(top[top.label == 0].name)
    assert "hypo-len> 12" in set(top[top.label == 1].name)
    assert {"safe to@hypothesis"} <= set(
        top_features(z_statistics(table.matrix, corpus.labels), table.names, k=40).name
    )


def test_the_highest_z_of_features_seen_often_enough():
    stats = z_from_counts([[3, 0, 0], [40, 10, 10], [0, 0, 0]])
    assert highest_z(stats) == stats.z[1, 0]
    assert highest_z(z_from_counts([[3, 0, 0]])) == pytest.approx(np.sqrt(6))
    assert np.isnan(highest_z(stats, min_count=100))


def test_a_feature_seen_just_often_enough_counts():
    stats = z_from_counts([[3, 0, 0], [40, 10, 10]])
    assert highest_z(stats, min_count=60) == stats.z[1, 0]
    assert np.isnan(highest_z(stats, min_count=61))


def test_label_shares_have_a_row_for_each_label_and_feature():
    counted = pd.DataFrame({"yes": [6, 1], "no": [2, 3], "feature": ["a", "b"], "corpus": "one"})
    long = label_shares(counted, ["yes", "no"])
    assert list(zip(long["label"], long["feature"], strict=True)) == [
        ("yes", "a"),
        ("yes", "b"),
        ("no", "a"),
        ("no", "b"),
    ]
    assert list(long["n"]) == [8, 4, 8, 4]
    np.testing.assert_allclose(long["p"], [0.75, 0.25, 0.25, 0.75])
    np.testing.assert_allclose(long["z"], z_from_counts([[6, 2], [1, 3]]).z.T.ravel())
    assert set(long["corpus"]) == {"one"}


def test_a_prediction_is_counted_like_any_other_feature():
    joined = join(features(["a"] * 3, ["b", "c", "b"], shape=False), prediction([0, 1, 0], n_classes=3))
    counted = z_statistics(joined.matrix, [0, 1, 0], n_classes=3)
    place = joined.names.tolist().index("hypo-only-pred=0")
    assert counted.counts[place].tolist() == [2, 0, 0] and counted.z[place, 0] == pytest.approx(2.0)


def test_predictions_bear_the_papers_names():
    found = prediction([2, 0, 2], n_classes=3)
    assert found.names.tolist() == ["hypo-only-pred=0", "hypo-only-pred=1", "hypo-only-pred=2"]
    assert found.matrix.toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]


def test_tables_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="dimensions"):
        join(prediction([0], n_classes=2), prediction([1, 1], n_classes=2))
