"""The z-filter, its mixtures, and the debiased sets that are trained on. Alone: pytest tests/select/test_zfilter.py"""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from nli_lib.measure.features import Ranking, features, top_features, z_statistics
from nli_lib.select import zfilter
from nli_lib.select.zfilter import CUTS, ROWS, confident, default_batch_size, to_train_on, z_filter, z_mix


def slow_z_filter(instances, labels, *, seed_set=(), k, batch_size, order, classes=3, min_count=1):
    """Algorithm 1 of the z-filter paper, written with dictionaries: instances are sets of feature names."""
    by_label = defaultdict(lambda: [0] * classes)

    def accept(held, label):
        for feature in held:
            by_label[feature][label] += 1

    for held, label in seed_set:
        accept(held, label)
    keep, why = [False] * len(instances), {}
    for start in range(0, len(order), batch_size):
        biased = []
        for label in range(classes):
            ranked = []
            for feature, counts in by_label.items():
                if (n := sum(counts)) >= min_count:
                    d = classes * counts[label] - n  # z is the signed root of d^2 / n over that of classes - 1
                    ranked.append((-Fraction(d * abs(d), n), -n, feature))
            biased.append({feature for *_, feature in sorted(ranked)[:k]})
        accepted = []
        for at in order[start : start + batch_size]:
            if found := instances[at] & biased[labels[at]]:
                why[at] = found
            else:
                keep[at] = True
                accepted.append(at)
        for at in accepted:
            accept(instances[at], labels[at])
    return keep, why


def as_matrix(instances, names):
    column = {name: at for at, name in enumerate(names)}
    matrix = np.zeros((len(instances), len(names)), np.uint8)
    for row, held in enumerate(instances):
        matrix[row, [column[name] for name in held]] = 1
    return sparse.csr_array(matrix)


NAMES = [f"w{at}" for at in range(12)]
held = st.sets(st.sampled_from(NAMES), max_size=6)
pairs = st.lists(st.tuples(held, st.integers(0, 2)), max_size=40)


@settings(max_examples=300)
@given(
    pairs=pairs, seed_set=pairs, k=st.integers(1, 14), batch_size=st.integers(1, 45),
    shuffle=st.booleans(), seed=st.integers(0, 3), min_count=st.integers(1, 3),
)  # fmt: skip
def test_equals_algorithm_1_written_with_dictionaries(pairs, seed_set, k, batch_size, shuffle, seed, min_count):
    instances, labels = [held for held, _ in pairs], np.array([label for _, label in pairs], int)
    given_set = as_matrix([h for h, _ in seed_set], NAMES), np.array([label for _, label in seed_set], int)
    found = z_filter(
        as_matrix(instances, NAMES), labels, names=NAMES, given=given_set if seed_set else None, k=k,
        batch_size=batch_size, shuffle=shuffle, seed=seed, min_count=min_count, n_classes=3,
    )  # fmt: skip
    order = np.random.default_rng(seed).permutation(len(pairs)) if shuffle else range(len(pairs))
    keep, why = slow_z_filter(
        instances, labels, seed_set=seed_set, k=k, batch_size=batch_size, order=list(order), min_count=min_count
    )
    assert found.keep.tolist() == keep
    for at, reason in enumerate(found.reason):
        assert reason == ("kept" if keep[at] else "; ".join(sorted(why[at], key=NAMES.index)))


def test_a_case_by_hand():
    """Batches of two. "no" is contradiction's in the first batch, so the second one's "no" goes if it contradicts."""
    instances = [{"no"}, {"a"}, {"no", "b"}, {"no"}, {"b"}]
    labels = np.array([2, 0, 2, 0, 1])
    found = z_filter(
        as_matrix(instances, ["a", "b", "no"]), labels, names=["a", "b", "no"], k=1, batch_size=2, shuffle=False
    )
    # first batch: Z is empty, both accepted. z(no, contradiction) = sqrt 2 is its highest, z(a, entailment) likewise.
    # second batch: pair 2 contradicts with "no": out. Pair 3 is an entailment with "no", but entailment's is "a": in.
    # neutral: all z are -1/sqrt 2 so far, "a" comes before "no"; pair 4 holds neither.
    assert found.keep.tolist() == [True, True, False, True, True]
    assert found.reason.tolist() == ["kept", "kept", "no", "kept", "kept"]
    assert found.hits.toarray().tolist()[2] == [False, False, True]
    assert found.statistics.counts.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 1]]


@pytest.fixture(scope="module")
def planted():
    """6,000 pairs of 40 words; word 0 gives contradiction away, word 1 entailment."""
    random = np.random.default_rng(3)
    labels = random.integers(0, 3, 6_000)
    present = random.random((6_000, 40)) < 0.08
    present[:, 0] = random.random(6_000) < np.where(labels == 2, 0.4, 0.05)
    present[:, 1] = random.random(6_000) < np.where(labels == 0, 0.3, 0.05)
    return sparse.csr_array(present.astype(np.uint8)), labels


def test_planted_words_lose_their_label(planted):
    matrix, labels = planted
    found, other = (z_filter(matrix, labels, k=2, batch_size=100, seed=seed) for seed in (0, 1))
    sets = np.arange(6_000), found.keep, found.random_twin(labels).keep
    before, after, twin = (z_statistics(matrix[rows], labels[rows]).z for rows in sets)
    assert before[0, 2] > 20 and before[1, 0] > 15 and after[0, 2] < 5 and after[1, 0] < 5 and np.nanmax(after) < 6
    assert twin[0, 2] > 10 and twin[1, 0] > 10  # the fall is not that of the size alone
    np.testing.assert_array_equal(found.statistics.z, after)  # Z is what was kept
    again = z_filter(matrix, labels, k=2, batch_size=100)
    assert (found.keep == again.keep).all() and (found.reason == again.reason).all()
    assert not (found.keep == other.keep).all()


def test_one_batch_filters_nothing_and_an_own_label_alone_is_asked(planted):
    matrix, labels = planted
    assert z_filter(matrix, labels, batch_size=len(labels)).size == len(labels)
    found = z_filter(matrix, labels, k=1, batch_size=50)
    lost = ~found.keep & (found.hits[:, [0]].toarray().ravel())
    assert lost.any() and (labels[lost] == 2).all()  # word 0 is held against contradictions, never against the others


def test_the_seed_set_is_not_filtered_and_sets_the_counts(planted):
    matrix, labels = planted
    seeded = z_filter(matrix[3_000:], labels[3_000:], given=(matrix[:3_000], labels[:3_000]), k=2, batch_size=100)
    firsts = np.random.default_rng(0).permutation(3_000)[:100]
    assert len(seeded) == 3_000 and not seeded.keep[firsts].all()  # with a seed set the first batch is filtered too
    assert seeded.statistics.n.sum() == matrix[:3_000].sum() + matrix[3_000:][seeded.keep].sum()


def test_a_growing_ranking_equals_a_fresh_one():
    """The pools are refilled and shrunk on the way: many features, few of them in each step."""
    random = np.random.default_rng(0)
    names = np.array([f"f{at:04d}" for at in random.permutation(3_000)], dtype=object)
    ranking, counts = Ranking(np.zeros((3_000, 3)), names, k=4), np.zeros((3_000, 3), int)
    for _ in range(120):
        columns, labels = np.minimum(random.geometric(0.004, 200) - 1, 2_999), random.integers(0, 3, 200)
        ranking.add(columns, labels)
        np.add.at(counts, (columns, labels), 1)
        expected = top_features(zfilter.z_from_counts(counts), names, k=4).groupby("label")["column"].agg(list)
        assert [found.tolist() for found in ranking.best()] == expected.tolist()


def two_classes():
    """400 pairs of two labels: every premise has the same words, the hypothesis some of 30 at random, and "often" in
    half of the entailments alone."""
    random = np.random.default_rng(0)
    labels = np.arange(400) % 2
    words = random.integers(0, 30, (400, 4))
    often = np.where((labels == 0) & (random.random(400) < 0.5), "often ", "now ")
    hypotheses = [first + " ".join(f"w{at}" for at in row) for first, row in zip(often, words, strict=True)]
    return features(["a person walks"] * 400, hypotheses, ngrams=(1,)), labels


def test_two_classes_are_compared_with_a_half():
    """Were three assumed, the features that every pair has would give both labels away, and hardly a pair be kept."""
    table, labels = two_classes()
    stats, place = z_statistics(table.matrix, labels), {name: at for at, name in enumerate(table.names)}
    assert stats.z[place["null"]].tolist() == stats.z[place["person@premise"]].tolist() == [0, 0]
    assert (z_statistics(table.matrix, labels, n_classes=3).z[place["null"], :2] > 7).all()
    top = top_features(stats, table.names, k=1)
    assert top["label"].tolist() == [0, 1] and top["name"].iloc[0] == "often@hypothesis"
    two, three = (z_filter(table.matrix, labels, names=table.names, k=5, n_classes=C) for C in (None, 3))
    assert two.size > 10 * three.size


def test_the_batch_follows_the_size_of_the_corpus():
    table, labels = two_classes()
    found = z_filter(table.matrix, labels, names=table.names)
    assert (found.keep == z_filter(table.matrix, labels, names=table.names, batch_size=4).keep).all()
    assert found.size < len(labels) and [default_batch_size(n) for n in (3, 300, 1_002, 549_367)] == [3, 3, 10, 1_000]


@pytest.mark.parametrize("labels", [np.zeros(4, int), np.array([0, 2, 2, 0])])
def test_the_number_of_classes_is_asked_where_the_labels_do_not_tell_it(labels):
    matrix = sparse.csr_array(np.ones((4, 2)))
    for call in (z_filter, z_statistics):
        with pytest.raises(ValueError, match="say how many classes"):
            call(matrix, labels)
        call(matrix, labels, n_classes=3)


def test_edges():
    none = z_filter(sparse.csr_array((0, 5), dtype=np.uint8), np.zeros(0, int), n_classes=3)
    assert len(none) == 0 and none.statistics.n.tolist() == [0] * 5
    no_feature = z_filter(sparse.csr_array((4, 0), dtype=np.uint8), np.zeros(4, int), batch_size=1, n_classes=3)
    assert no_feature.keep.all()
    # one label only: a feature of all pairs is its label's, so after the first batch nothing gets in
    ones = sparse.csr_array(np.ones((5, 1), np.uint8))
    one = z_filter(ones, np.zeros(5, int), batch_size=1, shuffle=False, n_classes=3)
    assert one.keep.tolist() == [True, False, False, False, False]
    # k above the number of features: all that were seen are biased; a pair that holds none of them is accepted
    texts = features(["", "a b", "", "c"], ["", "a", "", "c"], shape=False)
    wide = z_filter(texts.matrix, np.array([0, 1, 2, 1]), names=texts.names, k=99, batch_size=1, shuffle=False)
    assert wide.keep.all()
    assert not z_filter(texts.matrix[[1, 1]], np.array([0, 0]), k=99, batch_size=1, n_classes=3).keep.all()


WRONG = {
    "give one label each": {"labels": np.zeros(3, int)}, "not one of 0..2": {"labels": np.full(4, 3)},
    "without a gold label": {"labels": np.full(4, -1)}, "1 names for 2 features": {"names": ["a"]},
    "k=0": {"k": 0}, "batch_size=0": {"batch_size": 0},
    "3 features, the pairs 2": {"given": (np.ones((2, 3)), np.zeros(2, int))}}  # fmt: skip


@pytest.mark.parametrize("said", WRONG)
def test_wrong_input_is_named(said):
    given_labels = {"labels": np.zeros(4, int), "n_classes": 3} | WRONG[said]
    with pytest.raises(ValueError, match=said):
        z_filter(sparse.csr_array(np.ones((4, 2))), **given_labels)


def test_rejections_are_counted_by_feature(planted):
    matrix, labels = planted
    names = [f"word {at}" for at in range(matrix.shape[1])]
    found = z_filter(matrix, labels, names=names, k=5)
    rows = found.by_feature(names, most=1000)
    held = {at: set(reason.split("; ")) for at, reason in enumerate(found.reason) if not found.keep[at]}
    for row in rows.itertuples():
        owners = [at for at, named in held.items() if row.feature in named]
        assert (row.pairs, row.first) == (len(owners), owners[0])
        assert row.alone == sum(len(held[at]) == 1 for at in owners)
    assert len(rows) == len(set().union(*held.values())) and list(rows["pairs"]) == sorted(rows["pairs"], reverse=True)
    assert found.by_feature(names, most=2)["feature"].tolist() == rows["feature"].tolist()[:2]


# ---------------------------------------------------------------- mixtures


@pytest.fixture(scope="module")
def corpora():
    """900 pairs, every third generated; word 0 gives contradiction away in both, word 1 in the generated ones alone."""
    random = np.random.default_rng(1)
    labels, base = random.integers(0, 3, 900), np.arange(900) % 3 != 0
    present = random.random((900, 30)) < 0.1
    present[:, 0] = random.random(900) < np.where(labels == 2, 0.5, 0.05)
    present[:, 1] = random.random(900) < np.where((labels == 2) & ~base, 0.5, 0.05)
    return sparse.csr_array(present.astype(np.uint8)), labels, base


def test_the_three_ways_are_made_of_the_filter(corpora):
    matrix, labels, base = corpora
    options = {"k": 2, "batch_size": 20, "seed": 5}
    own = z_filter(matrix[base], labels[base], **options)
    rest = matrix[~base], labels[~base]
    found = {way: z_mix(way, *corpora, **options) for way in ("z-aug", "par-z", "seq-z")}
    keep = {way: each.keep for way, each in found.items()}
    assert keep["z-aug"][base].all()
    assert (keep["z-aug"][~base] == z_filter(*rest, given=(matrix[base], labels[base]), **options).keep).all()
    assert (keep["par-z"][base] == own.keep).all() and (keep["seq-z"][base] == own.keep).all()
    assert (keep["par-z"][~base] == z_filter(*rest, **options).keep).all()
    given_set = matrix[base][own.keep], labels[base][own.keep]
    assert (keep["seq-z"][~base] == z_filter(*rest, given=given_set, **options).keep).all()
    assert ((found["seq-z"].reason == "kept") == keep["seq-z"]).all() and 0 < found["seq-z"].size < 900


def test_nothing_generated_and_nothing_else(corpora):
    for base in (np.ones(900, bool), np.zeros(900, bool)):
        assert len(z_mix("seq-z", *corpora[:2], base)) == 900
    with pytest.raises(ValueError, match="'z-augment'"):
        z_mix("z-augment", *corpora)


# ---------------------------------------------------------------- debiased sets


def test_a_pair_is_kept_above_tau_and_not_at_it():
    probabilities = np.array([[0.96, 0.02, 0.02], [0.95, 0.03, 0.02], [0.1, 0.8, 0.1], [0.01, 0.01, 0.98]])
    found = confident(probabilities, [0, 0, 0, 2], tau=0.95)
    assert found.keep.tolist() == [True, False, False, True]
    assert found.reason.tolist()[1:3] == ["the teacher gives its label 0.95 or less", "the teacher gives another label"]
    assert confident(np.full((180, 3), 1 / 3), np.arange(180) % 3, tau=0.95).size == 0
    with pytest.raises(ValueError, match="1 probabilities are not finite"):
        confident([[np.nan, 0.5, 0.5], [0.2, 0.4, 0.4]], [0, 0], tau=0.95)


AT = np.arange(120)


def exported(sets):
    """A pool of 120 pairs, half of them D0; a set is its pairs, or those and its twin's. All others are D0."""
    table = {"label": AT % 3, "source": np.where(AT < 60, "D0", "G*")}
    for title in ROWS:
        both = sets.get(title, AT < 60)
        table[title], table[f"{title}, twin"] = both if isinstance(both, tuple) else (both, both)
    return pd.DataFrame(table)


def test_sets_come_with_twins_where_something_was_filtered_and_with_cuts():
    name = "D0 + G*, cut to Z-Aug"
    pool = exported({"Seq-Z": (AT % 2 == 0, AT % 2 == 1), "Z-Aug": AT < 90, "D0 + G*": AT < 120})
    (found, lacking), (again, _), (other, _) = (to_train_on(pool, list(ROWS), seed=seed) for seed in (1, 1, 2))
    assert list(found) == [*ROWS, "Seq-Z, twin", name] and name in CUTS and not lacking
    assert found[name].sum() == 90 and (found[name] == again[name]).all() and (found[name] != other[name]).any()
    assert list(to_train_on(pool, ["D0", "Seq-Z"])[0]) == ["D0", "Seq-Z", "Seq-Z, twin"]


def test_empty_sets_and_those_without_a_label_are_left_out_and_counted():
    pool = exported({"G*": (AT >= 60) & (AT % 3 < 2), "G* confident": AT < 0})
    found, lacking = to_train_on(pool, list(ROWS))
    assert lacking == {"G*": 40, "G* confident": 0} and list(found) == [title for title in ROWS if title not in lacking]
