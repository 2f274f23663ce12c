"""Words, features, z-statistics and their controls: by hand, against slow twins, and on planted words.

Alone: pytest tests/measure/test_features.py"""

import string
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from cells import functions
from hypothesis import given, settings, strategies as st
from scipy import sparse

from nli_lib.corpora import planted
from nli_lib.measure import features as measure
from nli_lib.measure.features import features, prediction, tokenize, top_features, z_from_counts, z_statistics

PREMISES = ["a dog runs", "a dog runs", "two cats sit", "nobody sleeps"]
HYPOTHESES = ["a dog moves", "nobody runs", "cats", "nobody is awake"]
LABELS = np.array([0, 2, 1, 2])


def plain_words(text):
    return text.lower().translate(str.maketrans("", "", string.punctuation)).split()


def words(tokens):
    vocabulary = tokens.vocabulary.to_pylist()
    return [[vocabulary[i] for i in tokens.ids[a:b]] for a, b in pairwise(tokens.offsets)]


def plainly(premise, hypothesis):
    """The features of a pair as the definition says, word by word."""
    p, h = plain_words(premise), plain_words(hypothesis)
    found = {"null"}
    for side, words in (("premise", p), ("hypothesis", h)):
        found |= {f"{word}@{side}" for word in words}
        found |= {f"{a} {b}@{side}" for a, b in pairwise(words)}
    found |= {f"hypo-len< {k}" for k in (3, 4, 5, 6, 7, 8, 10, 12) if len(h) < k}
    found |= {f"hypo-len> {k}" for k in (8, 10, 12, 15, 20) if len(h) > k}
    bins = pairwise([0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, float("inf")])
    found |= {f"len-ratio [{a:g}, {b:g})" for a, b in bins if p and a <= len(h) / len(p) < b}
    found |= set() if p else {"len-ratio no-premise"}
    overlap = sum(word in p for word in h) / len(h) if h else 0
    found |= {f"lex-overlap> {t}" for t in (0.5, 0.6, 0.7, 0.8, 0.9) if overlap > t}
    return found | ({"full-lex-overlap"} if h and overlap == 1 else set())


def fired(table):
    """The names of what fires on each pair."""
    return [set(table.names[row]) for row in np.split(table.matrix.indices, table.matrix.indptr[1:-1])]


# ---------------------------------------------------------------- words


def test_words_of_the_paper_and_wide_white_space():
    texts = ["There's a man!", "The New-York  Yankees\twin.", "", " ... ", "a"]
    assert words(tokenize(texts)) == [["theres", "a", "man"], ["the", "newyork", "yankees", "win"], [], [], ["a"]]
    assert words(tokenize(["a É\u00a0", "a É\u00a0"])) == [["a", "é"]] * 2  # at the end of the last text
    assert words(tokenize(["\u3000"])) == [[]]


SIGNS = st.sampled_from("aAbZéÉßø09 .,'!-_`~[]{}\\^\t\n\r\x0b\x0c\x1c\x85\u00a0\u2003\u3000")


@settings(max_examples=100)
@given(st.lists(st.text(SIGNS, max_size=12), max_size=8))
def test_slow_twin_of_the_words(texts):
    assert words(tokenize(texts)) == [plain_words(text) for text in texts]


@pytest.mark.parametrize(("text", "expected"), [
    ("雨，停了。", "雨 停 了"),
    ("他有3.5只 iPhone", "他 有 3 5 只 iphone"),
    ("コーヒーを飲む", "コ ー ヒ ー を 飲 む"),
    ("น้ำดื่ม", "น้ ำ ดื่ ม"),  # a character keeps its marks
    ("ខ្ញុំ\u200bទៅ", "ខ្ ញុំ ទៅ"),
    ("ကျွန်တော်", "ကျွ န် တော်"),
    ("ຂ້ອຍໄປ", "ຂ້ ອ ຍ ໄ ປ")])  # fmt: skip
def test_texts_without_blanks_are_split_into_characters(text, expected):
    assert words(tokenize([text, "a"])) == [expected.split(), ["a"]]
    assert measure.unspaced([text, "", "a"]).tolist() == [True, False, False]


KOREAN, PORTUGUESE, QUOTED = ["韓美 회담", "비가 그쳤다. 韓美"], "Não há pão — só água.", "The name 北京大学 is known."


@pytest.mark.parametrize("text", [*KOREAN, PORTUGUESE, QUOTED, "“” —", "دفتر", "дождь идёт"])
def test_texts_with_blanks_are_as_they_were(text):
    assert words(tokenize([text, "雨停了"])) == [plain_words(text), ["雨", "停", "了"]]
    assert measure.spaced([text])[0].as_py() == text


def test_punctuation_may_stay_and_blanks_are_taken_out_again():
    assert measure.spaced(["雨，停了。"], marks=r" \0 ").to_pylist() == ["雨 ， 停 了 。"]
    given = ["雨 停 了@hypothesis", "a b", "有 iPhone 了"]
    assert measure.joined(given) == ["雨停了@hypothesis", "a b", "有 iPhone 了"]


def test_vocabulary_is_sorted_and_shared_by_both_halves():
    tokens = tokenize(["b a", "c", "a"])
    assert tokens.vocabulary.to_pylist() == ["a", "b", "c"]
    assert [words(half) for half in tokens.split(1)] == [[["b", "a"]], [["c"], ["a"]]]
    assert tokenize(["ba Ab, b", "a"]).vocabulary.to_pylist() == ["a", "ab", "b", "ba"]


def test_counting_leaves_the_tokens_as_they_are():
    tokens = tokenize(["a a b", "c c", ""])
    first, second = tokens.counts(), tokens.counts()
    assert first.toarray().tolist() == second.toarray().tolist() == [[2, 1, 0], [0, 0, 2], [0, 0, 0]]
    assert tokens.lengths.tolist() == [3, 2, 0]


@pytest.mark.parametrize("bad", [None, float("nan"), 3])
def test_what_is_not_a_string_is_named(bad):
    with pytest.raises(ValueError, match="position 1"):
        tokenize(np.array(["fine", bad], dtype=object))


# ---------------------------------------------------------------- features


def test_features_of_one_pair_by_hand():
    table = features(["A dog's toy, a toy."], ["A toy for a cat"])
    premise = "a", "dogs", "toy", "a dogs", "dogs toy", "toy a", "a toy"
    hypothesis = "a", "toy", "for", "cat", "a toy", "toy for", "for a", "a cat"
    lengths = {*(f"hypo-len< {k}" for k in (6, 7, 8, 10, 12)), "len-ratio [1, 1.25)"}
    overlap = {"lex-overlap> 0.5", "null"}  # 3 of 5 tokens: 0.6 is not above 0.6
    sides = {f"{name}@premise" for name in premise} | {f"{name}@hypothesis" for name in hypothesis}
    assert fired(table) == [sides | lengths | overlap]
    assert table.matrix.dtype == np.uint8 and (table.matrix.data == 1).all()
    full = {"full-lex-overlap", "lex-overlap> 0.9", "lex-overlap> 0.8", "hypo-len< 5", "len-ratio [0.5, 0.75)"}
    assert full <= fired(features(["the old dog sleeps"], ["the dog"]))[0]  # fires every threshold


WORDS = st.text(st.sampled_from("ab cB.,' "), max_size=14)


@settings(max_examples=80)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6))
def test_slow_twin_of_the_features(pairs):
    table = features(*zip(*pairs, strict=True))
    assert fired(table) == [plainly(*pair) for pair in pairs]
    assert len(set(table.names)) == len(table.names) == table.matrix.shape[1]


def test_empty_and_punctuation_only():
    for found in fired(features(["", "..."], ["?!", ""])):
        assert {"null", "len-ratio no-premise", "hypo-len< 3"} <= found
        assert not any("overlap" in name or "@" in name for name in found)


@pytest.mark.parametrize("count", [*range(23), 300])
def test_lengths_and_ratios_at_and_beside_every_edge(count):
    premise, hypothesis = "x y z w v u t s", "b " * count
    assert fired(features([premise], [hypothesis])) == [plainly(premise, hypothesis)]  # each once, however often said


def test_columns_do_not_depend_on_the_order_of_pairs():
    corpus, order = planted.make(200, 1), np.random.default_rng(0).permutation(200)
    one, two = (features(c.premise, c.hypothesis) for c in (corpus, corpus[order]))
    assert (one.names == two.names).all() and (one.matrix[order] != two.matrix).nnz == 0


def test_choice_of_ngrams():
    table = features(["a b"], ["c d"], ngrams=(1,), shape=False)
    assert table.names.tolist() == ["a@premise", "b@premise", "c@hypothesis", "d@hypothesis"]
    with pytest.raises(ValueError, match="2 premises and 1 hypotheses"):
        features(["a", "b"], ["c"])


@pytest.mark.parametrize("size", [1, 10, 57, 1000])
def test_shards_equal_the_features_made_at_once(size):
    random, some = np.random.default_rng(0), ["a", "man", "dog", "sleeps", "nobody", "red", "tree,", "There's"]
    texts = [[" ".join(random.choice(some, random.integers(0, 9))) for _ in range(57)] for _ in range(2)]
    found = measure.features_in_shards(*texts, size=size)
    assert fired(found) == fired(features(*texts)) and found.matrix.has_canonical_format and found.matrix.data.all()
    assert len(set(found.names)) == found.matrix.shape[1]


def test_edges_of_shards():
    assert measure.features_in_shards([], []).matrix.shape[0] == 0
    assert fired(measure.features_in_shards([""], [""])) == fired(features([""], [""]))
    with pytest.raises(ValueError, match="1 premises and 2 hypotheses"):
        measure.features_in_shards(["a"], ["b", "c"])


def test_a_prediction_is_counted_like_any_other_feature_and_bears_the_papers_name():
    both = measure.join(features(["a"] * 3, ["b", "c", "b"], shape=False), prediction([0, 1, 0], n_classes=3))
    counted = z_statistics(both.matrix, [0, 1, 0], n_classes=3)
    place = both.names.tolist().index("hypo-only-pred=0")
    assert counted.counts[place].tolist() == [2, 0, 0] and counted.z[place, 0] == pytest.approx(2.0)
    found = prediction([2, 0, 2], n_classes=3)
    assert found.names.tolist() == ["hypo-only-pred=0", "hypo-only-pred=1", "hypo-only-pred=2"]
    assert found.matrix.toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match="dimensions"):  # tables that do not belong together
        measure.join(prediction([0], n_classes=2), prediction([1, 1], n_classes=2))


def test_a_feature_knows_its_side():
    table = features(PREMISES, HYPOTHESES)
    sides = dict(zip(table.names, measure.side_of(table.names), strict=True))
    assert sides["dog@premise"] == "premise" and sides["is awake@hypothesis"] == "hypothesis"
    assert sides["null"] == sides["lex-overlap> 0.8"] == "" and measure.side_of(["x"]).tolist() == [""]


# ---------------------------------------------------------------- z-statistics


def test_z_of_the_worked_counts():
    z, n, _ = z_from_counts([[60, 20, 20], [1, 0, 0], [2, 0, 0], [0, 0, 0]])
    assert z[:3, 0] == pytest.approx([5.656854, 1.414214, 2.0], abs=1e-6)
    assert z[0, 1] == pytest.approx(-2.828427, abs=1e-6) and np.isnan(z[3]).all() and n.tolist() == [100, 1, 2, 0]


def test_slow_twin_of_z():
    rng = np.random.default_rng(0)
    dense, labels, order = rng.random((300, 12)) < 0.2, rng.integers(3, size=300), rng.permutation(300)
    dense[:, 5] = False
    z, n, counts = z_statistics(sparse.csr_array(dense.astype(np.uint8)), labels)
    for feature in range(12):
        seen = Counter(labels[dense[:, feature]].tolist())
        assert n[feature] == seen.total() and counts[feature].tolist() == [seen[label] for label in range(3)]
        for label in range(3) if n[feature] else ():
            share = seen[label] / n[feature]
            assert z[feature, label] == pytest.approx((share - 1 / 3) / (2 / 9 / n[feature]) ** 0.5)
    np.testing.assert_array_equal(z_statistics(dense[order].astype(int), labels[order]).z, z)


def test_stored_zeros_and_repeats_are_not_counted_twice():
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
    assert measure.z_threshold(0.01) == pytest.approx(2.326348, abs=1e-6)
    assert measure.z_threshold(0.01, 28_000) == pytest.approx(4.957439, abs=1e-6)
    assert measure.share_at_z(100, 5.656854, 1 / 3) == pytest.approx(0.6, abs=1e-6)


def test_ties_go_to_more_examples_then_to_the_name():
    stats, names = z_from_counts([[2, 1, 1], [1, 0, 0], [1, 0, 0], [4, 2, 2], [0, 0, 0]]), ["d", "b", "a", "c", "e"]
    top = top_features(stats, names, k=3)  # b and a tie in z and n
    assert top[top.label == 0].name.tolist() == ["a", "b", "c"]
    assert top[top.label == 1].name.tolist() == ["d", "c", "a"] and "e" not in set(top.name)
    assert (top_features(z_from_counts([[1, 1, 1], [2, 2, 2]]), ["x", "y"], k=1).name == "y").all()
    assert "a" not in set(top_features(stats, names, min_count=2).name)


def test_ties_of_z_are_exact():
    """z of 3 among 3 is that of 8 among 12; computed in floating point the first is larger."""
    counts = np.array([[3, 0, 0], [8, 2, 2], [3, 1, 1]])
    z, order = z_from_counts(counts).z[:, 0], measure.z_order(counts)[:, 0]
    assert z[0] > z[1] and z[0] == pytest.approx(z[1], rel=1e-12)
    assert order[0] == order[1] == 12 and order[2] == pytest.approx(16 / 5)
    top = top_features(z_from_counts(counts), ["a", "b", "c"], k=2)
    assert top[top.label == 0].name.tolist() == ["b", "a"]  # a tie, so the more frequent feature first
    random = np.random.default_rng(0).integers(0, 40, (500, 3))
    expected = (z_from_counts(random).z ** 2 * 2) * np.sign(z_from_counts(random).z)
    np.testing.assert_allclose(measure.z_order(random), expected, rtol=1e-9, atol=1e-9)
    assert (measure.z_order([[0, 0, 0]]) == -np.inf).all()


def test_planted_artifacts_rank_on_top():
    corpus = planted.make(6000, 3)
    table = features(corpus.premise, corpus.hypothesis)
    top = top_features(z_statistics(table.matrix, corpus.labels), table.names, k=40)
    first = {label: set(part.name[:20]) for label, part in top.groupby("label")}
    for label, words in planted.ARTIFACT_WORDS.items():
        assert {f"{word}@hypothesis" for word in words} <= first[label]
    assert "lex-overlap> 0.8" in first[0] and "hypo-len> 12" in first[1] and "safe to@hypothesis" in set(top.name)


def test_the_highest_z_of_features_seen_often_enough():
    stats = z_from_counts([[3, 0, 0], [40, 10, 10], [0, 0, 0]])
    assert measure.highest_z(stats) == measure.highest_z(stats, min_count=60) == stats.z[1, 0]
    assert np.isnan(measure.highest_z(stats, min_count=61))
    assert measure.highest_z(z_from_counts([[3, 0, 0]])) == pytest.approx(np.sqrt(6))


def test_label_shares_have_a_row_for_each_label_and_feature():
    counted = pd.DataFrame({"yes": [6, 1], "no": [2, 3], "feature": ["a", "b"], "corpus": "one"})
    long = measure.label_shares(counted, ["yes", "no"])
    assert (long["label"] + long["feature"]).tolist() == ["yesa", "yesb", "noa", "nob"]
    assert long["n"].tolist() == [8, 4, 8, 4] and long["p"].tolist() == [0.75, 0.25, 0.25, 0.75]
    np.testing.assert_allclose(long["z"], z_from_counts([[6, 2], [1, 3]]).z.T.ravel())
    assert set(long["corpus"]) == {"one"}


# ---------------------------------------------------------------- controls


def test_a_resample_counts_a_pair_as_often_as_its_weight_says():
    matrix = features(PREMISES, HYPOTHESES).matrix
    for weights in (np.array([2, 0, 1, 3]), np.ones(4, int)):
        drawn = np.repeat(np.arange(4), weights)
        both = z_statistics(matrix, LABELS, weights=weights), z_statistics(matrix[drawn], LABELS[drawn], n_classes=3)
        for one, other in zip(*both, strict=True):
            np.testing.assert_array_equal(one, other)


CELLS = functions("20_z_statistics")


def test_the_highest_z_and_the_share_above_a_line_of_each_copy():
    table = features(PREMISES, HYPOTHESES)
    shuffles = [measure.shuffled_labels(LABELS, PREMISES, seed=seed) for seed in range(4)]
    copies = [z_statistics(table.matrix, each, 3) for each in shuffles]
    columns = measure.side_of(table.names) == "hypothesis"
    highest, above = CELLS.above_line(copies, columns, 1.0)
    assert highest.tolist() == [np.nanmax(copy.z, axis=0).tolist() for copy in copies]
    assert above.tolist() == [(copy.z[columns] > 1.0).mean() for copy in copies]
    # a label that no feature gives away has a highest z below 0, however far below it the others lie
    copy = measure.ZStatistics(np.array([[1.0, -9.0], [2.0, -3.0]]), np.array([5, 5]), np.zeros((2, 2)))
    assert [part.tolist() for part in CELLS.above_line([copy], [0, 1], 1.0)] == [[[2.0, -3.0]], [0.25]]


def test_table_12_as_written_plainly():
    corpus = planted.make(1500, 3)
    table = features(corpus.premise, corpus.hypothesis)
    stats = z_statistics(table.matrix, corpus.labels)
    named, line = {0: ["outside", "no such word"], 2: ["sleeping"]}, 4.0
    found = CELLS.table_12([stats, stats], table.names, named, line)
    assert found.shape == (2, 4) and (found[0] == found[1]).all()
    ranked = top_features(stats, table.names, k=len(table.names)).query("label == 0")["name"]
    overlap = ranked.str.startswith(("lex-overlap>", "full-lex-overlap")).to_numpy()
    sixty = top_features(stats, table.names, k=20, min_count=20)["name"]
    z = {name: stats.z[at] for at, name in enumerate(table.names)}
    above = [z.get(f"{word}@hypothesis", [0, 0, 0])[label] > line for label, group in named.items() for word in group]
    rank, lowest = 1 + int((~overlap)[: overlap.argmax()].sum()), stats.z[stats.n >= 20].max(axis=0).min() / line
    assert found[0].tolist() == [rank, np.mean(above), sixty.str.endswith("@premise").mean(), lowest]


def test_the_top_of_table_12_holds_what_twenty_pairs_have_and_not_what_19_have():
    stats = z_from_counts([[12, 4, 4], [0, 10, 9]])
    (row,) = CELLS.table_12([stats], np.array(["a@premise", "b@hypothesis"], dtype=object), {1: ["b"]}, 1.0)
    assert row.tolist() == [3, 1, 1, stats.z[0].min()]  # no overlap, so its rank is after the last


def test_nested_features_of_overlap_take_one_place():
    names = np.array(["word", "full-lex-overlap", "lex-overlap> 0.5", "lex-overlap> 0.6", "x", "null"], dtype=object)
    n, overlap = np.array([9, 5, 7, 6, 7, 30]), np.array([0, 1, 1, 1, 0, 0], dtype=bool)
    rank = [CELLS.family_rank(np.array(z, dtype=float), n, names, overlap) for z in (
        [9, 8, 7, 6, 5, 0],  # one word is ahead
        [4, 8, 7, 6, 5, 0],  # three of overlap lead and count once
        [1, 0, 5, 0, 5, 0],  # a tie of z and n: "lex-overlap> 0.5" before "x"
        [5, 0, 5, 0, 1, 5],  # a tie of z: those with more pairs first
    )]  # fmt: skip
    assert rank == [2, 1, 1, 3]
    assert CELLS.family_rank(np.array([1.0, -np.inf]), np.array([3, 0]), names[:2], overlap[:2]) == 2


def test_labels_are_shuffled_inside_a_premise_and_among_the_lone_ones():
    groups, labels = np.array(list("aaabbxyz")), np.array([0, 1, 2, 0, 0, 1, 2, 2])
    for seed in range(5):
        shuffled = measure.shuffled_labels(labels, groups, seed=seed)
        found = [sorted(shuffled[part]) for part in (slice(3), slice(3, 5), slice(5, None))]
        assert found == [[0, 1, 2], [0, 0], [1, 2, 2]]


def test_shuffling_moves_every_label_about_equally():
    labels, groups = np.array([0, 1, 2] * 2000), np.repeat(np.arange(2000), 3)
    shuffled = measure.shuffled_labels(labels, groups, seed=1)
    shares = [np.bincount(shuffled[labels == label], minlength=3) / 2000 for label in range(3)]
    assert np.array(shares) == pytest.approx(np.full((3, 3), 1 / 3), abs=0.05)
    assert (measure.shuffled_labels(labels, groups, seed=1) == shuffled).all()
