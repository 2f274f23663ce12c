"""The controls of the z-statistics: resampled counts, shuffled labels, and words of either text."""

import numpy as np
import pytest

from nli_lib.corpora import planted
from nli_lib.measure.dynamics import confidence, forgetting, max_variability, scores
from nli_lib.measure.features import (
    ZStatistics,
    above_line,
    family_rank,
    features,
    join,
    pair_words,
    prediction,
    prediction_lead,
    shuffled_labels,
    side_of,
    table_12,
    top_features,
    z_from_counts,
    z_statistics,
)

PREMISES = ["a dog runs", "a dog runs", "two cats sit", "nobody sleeps"]
HYPOTHESES = ["a dog moves", "nobody runs", "cats", "nobody is awake"]
LABELS = np.array([0, 2, 1, 2])


def test_a_resample_counts_a_pair_as_often_as_its_weight_says():
    table = features(PREMISES, HYPOTHESES)
    weights = np.array([2, 0, 1, 3])
    drawn = np.repeat(np.arange(4), weights)
    heavy, ones = (z_statistics(table.matrix, LABELS, weights=each) for each in (weights, np.ones(4, int)))
    for found, slow in (
        (heavy, z_statistics(table.matrix[drawn], LABELS[drawn], n_classes=3)),
        (ones, z_statistics(table.matrix, LABELS)),
    ):
        for one, other in zip(found, slow, strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_highest_z_and_the_share_above_a_line_of_each_copy():
    table = features(PREMISES, HYPOTHESES)
    copies = [z_statistics(table.matrix, shuffled_labels(LABELS, PREMISES, seed=seed), 3) for seed in range(4)]
    columns = side_of(table.names) == "hypothesis"
    highest, above = above_line(copies, columns, 1.0)
    assert highest.tolist() == [np.nanmax(copy.z, axis=0).tolist() for copy in copies]
    assert above.tolist() == [(copy.z[columns] > 1.0).mean() for copy in copies]


def test_the_highest_z_keeps_its_sign():
    """A label that no feature gives away has a highest z below 0, however far below it the others lie."""
    copy = ZStatistics(np.array([[1.0, -9.0], [2.0, -3.0]]), np.array([5, 5]), np.zeros((2, 2)))
    highest, above = above_line([copy], [True, True], 1.0)
    assert highest.tolist() == [[2.0, -3.0]] and above.tolist() == [0.25]


def test_table_12_as_written_plainly():
    corpus = planted.make(1500, 3)
    table = features(corpus.premise, corpus.hypothesis)
    stats = z_statistics(table.matrix, corpus.labels)
    named, line = {0: ["outside", "no such word"], 2: ["sleeping"]}, 4.0
    found = table_12([stats, stats], table.names, named, line=line)
    assert found.shape == (2, 4) and (found[0] == found[1]).all()
    ranked = top_features(stats, table.names, k=len(table.names)).query("label == 0")["name"]
    overlap = ranked.str.startswith(("lex-overlap>", "full-lex-overlap")).to_numpy()
    sixty = top_features(stats, table.names, k=20, min_count=20)["name"]
    z = {name: stats.z[at] for at, name in enumerate(table.names)}
    words = [z.get(f"{word}@hypothesis", [0, 0, 0])[label] > line for label, group in named.items() for word in group]
    assert found[0].tolist() == [
        1 + int((~overlap)[: overlap.argmax()].sum()),
        np.mean(words),
        sixty.str.endswith("@premise").mean(),
        stats.z[stats.n >= 20].max(axis=0).min() / line,
    ]


def test_the_top_of_table_12_holds_what_twenty_pairs_have_and_not_what_19_have():
    stats = z_from_counts([[12, 4, 4], [0, 10, 9]])
    (row,) = table_12([stats], ["a@premise", "b@hypothesis"], {1: ["b"]}, line=1.0)
    assert row.tolist() == [3, 1, 1, stats.z[0].min()]  # no overlap, so its rank is after the last


def test_the_lead_of_a_prediction_by_hand():
    """6 over 2 for the first label, 4 over 3 for the second; what 19 pairs have is too rare."""
    names = ["hypo-only-pred=0", "hypo-only-pred=1", "a@hypothesis", "rare@hypothesis"]
    z = np.array([[6, -6], [-6, 4], [2, 3], [9, 1.0]])
    found = ZStatistics(z, np.array([50, 50, 20, 19]), np.zeros((4, 2)))
    np.testing.assert_allclose(prediction_lead([found, found], names), [[3, 4 / 3]] * 2)


def test_a_prediction_that_is_the_label_leads_and_one_that_is_a_word_ties_with_it():
    labels = np.arange(120) % 3
    table = features(["a scene"] * 120, [f"word{label} here" for label in labels])
    leads = []
    for predicted in (labels, np.zeros(120, int)):  # the second never predicts two of the labels
        both = join(table, prediction(predicted, n_classes=3))
        leads += list(prediction_lead([z_statistics(both.matrix, labels)], both.names))
    assert leads[0].tolist() == [1, 1, 1] and np.isnan(leads[1]).sum() == 2


def test_nested_features_of_overlap_take_one_place():
    names = np.array(["word", "full-lex-overlap", "lex-overlap> 0.5", "lex-overlap> 0.6", "x", "null"], dtype=object)
    n = np.array([9, 5, 7, 6, 7, 30])
    overlap = np.array([0, 1, 1, 1, 0, 0], dtype=bool)
    rank = [family_rank(np.array(z, dtype=float), n, names, overlap) for z in (
        [9, 8, 7, 6, 5, 0],  # one word is ahead
        [4, 8, 7, 6, 5, 0],  # three of overlap lead and count once
        [1, 0, 5, 0, 5, 0],  # a tie of z and n: "lex-overlap> 0.5" before "x"
        [5, 0, 5, 0, 1, 5],  # a tie of z: those with more pairs first
    )]  # fmt: skip
    assert rank == [2, 1, 1, 3]
    assert family_rank(np.array([1.0, -np.inf]), np.array([3, 0]), names[:2], overlap[:2]) == 2


def test_a_feature_knows_its_side():
    table = features(PREMISES, HYPOTHESES)
    sides = dict(zip(table.names, side_of(table.names), strict=True))
    assert sides["dog@premise"] == "premise" and sides["is awake@hypothesis"] == "hypothesis"
    assert sides["null"] == sides["lex-overlap> 0.8"] == ""
    assert side_of(["x"]).tolist() == [""]


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_shuffled_inside_a_premise_and_among_the_lone_ones(seed):
    groups = np.array(["a", "a", "a", "b", "b", "x", "y", "z"])
    labels = np.array([0, 1, 2, 0, 0, 1, 2, 2])
    shuffled = shuffled_labels(labels, groups, seed=seed)
    assert sorted(shuffled[:3]) == [0, 1, 2]
    assert shuffled[3:5].tolist() == [0, 0]
    assert sorted(shuffled[5:]) == [1, 2, 2]


def test_shuffling_moves_every_label_about_equally():
    labels = np.array([0, 1, 2] * 2000)
    groups = np.repeat(np.arange(2000), 3)
    shuffled = shuffled_labels(labels, groups, seed=1)
    for label in range(3):
        shares = np.bincount(shuffled[labels == label], minlength=3) / 2000
        assert shares == pytest.approx([1 / 3] * 3, abs=0.05)
    assert (shuffled_labels(labels, groups, seed=1) == shuffled).all()


def test_words_of_either_text_count_once_a_pair():
    words = pair_words(PREMISES, HYPOTHESES)
    column = {name: words.matrix[:, [i]].toarray().ravel().tolist() for i, name in enumerate(words.names)}
    assert column["nobody"] == [0, 1, 0, 1]
    assert column["runs"] == [1, 1, 0, 0]
    assert column["cats"] == [0, 0, 1, 0]
    assert not any("@" in name for name in words.names)


def test_scores_are_the_six_by_name():
    logits = np.random.default_rng(0).normal(size=(4, 7, 3))
    labels = np.arange(7) % 3
    given = scores(logits, labels)
    assert set(given) == {"confidence", "variability", "correctness", "margin", "forgetting", "max_variability"}
    assert (given["confidence"] == confidence(logits, labels)).all()
    assert (given["forgetting"] == forgetting(logits, labels)).all()
    assert (given["max_variability"] == max_variability(logits)).all()
