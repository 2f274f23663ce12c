"""Training sets and settings that one chapter makes in its cells: 15, 21, 24, 43.

Alone: pytest tests/chapters/test_sets_in_cells.py"""

import numpy as np
import pandas as pd
import pytest
from cells import functions
from scipy import sparse

from nli_lib.corpora import from_dataset, load
from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.suites import load_pairs
from nli_lib.measure.features import features, join, prediction
from nli_lib.select.selection import TWIN, augmentation, without_copies
from nli_lib.select.zfilter import ROWS, z_filter

# ---------------------------------------------------------------- 15: mixtures of two corpora


MIXING = functions("15_train_on_wanli", np=np, pd=pd)


def corpus(name, size, **columns):
    """Pairs "<name> 0", "<name> 1", ... with the three labels in turn."""
    at = np.arange(size)
    texts = {"premise": [f"{name} {n} stands" for n in at], "hypothesis": [f"{name} {n}" for n in at]}
    given = {"uid": [f"{name}-{n}" for n in at], "label": at % 3, "corpus": name, "split": "train"}
    return Corpus(pd.DataFrame({**given, **texts, **columns}), name, "train")


def mixed(pairs, share, generated=None, seed=0):
    both = ("A", corpus("a", 30)), ("B", corpus("b", 15))
    return MIXING.training_sets(*both, generated or {}, pairs=pairs, share=share, seed=seed)


def test_15_the_training_sets_of_a_comparison():
    sets = mixed(16, 0.25, {"written": corpus("g", 4), "few": corpus("f", 3)}, seed=2)
    sizes = {"A": 16, "B": 15, "B, part": 4}  # of B all there are; of "few" there are three, and it is left out
    sizes |= {"A ◇ B": 16, "A ◇ random twin": 16, "A ◇ written": 16, "A + B": 20, "A + random twin": 20}
    assert {name: len(each) for name, each in sets.items()} == sizes
    assert (sets["A + B"].name, sets["A ◇ B"].name) == ("a + b", "a ◇ b")
    uids = {name: set(each.uid) for name, each in sets.items()}
    assert uids["B, part"] < uids["B"] and uids["A + B"] == uids["A"] | uids["B, part"]
    stayed = [uids[f"A ◇ {name}"] & uids["A"] for name in ("B", "written", "random twin")]
    assert stayed[0] == stayed[1] == stayed[2] and len(stayed[0]) == 12 and uids["A ◇ B"] - stayed[0] == uids["B, part"]
    twin = uids["A ◇ random twin"] - stayed[0]
    assert len(twin) == 4 and all(uid.startswith("a") for uid in twin) and not twin & uids["A"]
    assert uids["A + random twin"] == uids["A"] | twin


def test_15_of_all_pairs_there_is_no_twin_and_another_seed_draws_others():
    whole, more = mixed(None, 0.5), mixed(31, 0.5)
    assert {name: len(each) for name, each in whole.items()} == {
        "A": 30, "B": 15, "B, part": 15, "A ◇ B": 30, "A + B": 45}  # fmt: skip
    assert whole["B"].digest == whole["B, part"].digest
    assert {name: each.digest for name, each in more.items()} == {name: each.digest for name, each in whole.items()}
    one, two = (mixed(8, 0.5, seed=seed) for seed in (0, 1))
    assert all(set(one[name].uid) != set(two[name].uid) for name in one)


@pytest.mark.parametrize(("size", "share"), [(0, 0.5), (5, 0.01)])
def test_15_a_mixture_has_something_mixed_in(size, share):
    with pytest.raises(CorpusError, match=r"of 12 pairs of A, where B has .*, is no pair"):
        MIXING.training_sets(("A", corpus("a", 12)), ("B", corpus("b", size)), {}, pairs=None, share=share, seed=0)


def slow_families(table):
    """Merge two pairs as long as some two of different families share a premise or an origin."""
    family, rows = list(range(len(table))), table.to_dict("records")
    for _ in rows:
        for i, one in enumerate(rows):
            for j, other in enumerate(rows):
                same = " ".join(one["premise"].lower().split()) == " ".join(other["premise"].lower().split())
                if same or any(one[name] == other[name] != "" for name in ("origin_uid", "pairID")):
                    family[i] = family[j] = min(family[i], family[j])
    return family


def test_15_families_are_linked_by_seed_and_by_premise():
    linked = corpus("w", 6, origin_uid=["s1", "s1", "s2", "", None, "s2"])
    linked.table.loc[[1, 2], "premise"] = ["One  premise", "one premise"]
    family = MIXING.families(linked)
    assert len({*family[[0, 1, 2, 5]]}) == 1  # s1, then the premise, then s2
    assert len(set(family)) == 3  # of an empty origin nothing follows
    random = np.random.default_rng(0)
    for _ in range(20):
        table = corpus("w", 8, **{name: random.choice(["", "x", "y", "z"], 8) for name in ("origin_uid", "pairID")})
        table.table["premise"] = random.choice(["p", "q", "r", "s", "t", "u"], 8)
        ours, theirs = MIXING.families(table), np.array(slow_families(table.table))
        assert ((ours[:, None] == ours) == (theirs[:, None] == theirs)).all()


# ---------------------------------------------------------------- 21: settings of the filter, sizes, three ways


FILTER = functions("21_z_filter", np=np, pd=pd, n_classes=3)


@pytest.fixture(scope="module")
def tiny():
    """240 pairs of two labels, every eighth a repetition; "nobody" stands in most contradictions."""
    random, labels = np.random.default_rng(0), np.arange(240) % 2
    words = [" ".join(random.choice(["a", "man", "walks", "fast", "home"], 4)) + f" {n}" for n in range(240)]
    words = ["nobody " * (label and random.random() < 0.8) + text for text, label in zip(words, labels, strict=True)]
    names = np.array(["entailment", "contradiction"])[labels]
    frame = pd.DataFrame({"premise": [f"scene {n // 2}" for n in range(240)], "hypothesis": words, "label": names})
    repeated = frame.index % 8 == 7
    frame.loc[repeated] = frame.shift(2).loc[repeated]
    return from_dataset(frame, "tiny", "train")


def test_21_each_row_changes_one_setting(tiny):
    shape, labels = features(tiny.premise, tiny.hypothesis), tiny.labels
    oracle, options = join(shape, prediction(labels, n_classes=2)), {"k": 3, "batch_size": 10, "n_classes": 2}
    grid = {"batch_size": (10, 240), "seed": range(2), "features": ("plain", "oracle"), "min_count": (1, 5)}
    table = FILTER.vary({"plain": shape, "oracle": oracle}, labels, grid, **options)
    rows = table.set_index(["what", "value"])
    assert len(table) == 8 and (table["kept"].between(0, 1)).all()
    assert rows.loc[("batch_size", "240"), "kept"] == 1  # one batch filters nothing
    base, other = (z_filter(shape.matrix, labels, names=shape.names, seed=seed, **options).keep for seed in (0, 1))
    same = [("batch_size", "10"), ("seed", "0"), ("features", "plain"), ("min_count", "1")]
    assert (rows.loc[same, "overlap"] == 1).all()
    assert rows.loc[("seed", "1"), "overlap"] == (base & other).sum() / (base | other).sum()
    assert rows.loc[("features", "oracle"), "kept"] < base.mean()  # no contradiction passes after the first batch


def test_21_parts_of_growing_size_hold_no_repeated_pair(tiny):
    table = FILTER.by_size(tiny, (4, 60, 100, 10_000), (0, 1), k=5)
    assert table["pairs"].unique().tolist() == [60, 100, 210]  # four pairs are too few for five folds
    assert table["seed"].tolist() == [0, 1] * 3 and set(table["pool"]) == {"tiny train"}
    assert (table["highest z"] < table["before"])[table["pairs"] == 210].all()  # of 60, too few are kept
    assert FILTER.by_size(tiny[:4], (), (0,)).empty


def test_21_the_three_ways_compared_on_two_corpora():
    texts = [f"{word} {n % 9}" for n, word in enumerate(["yes", "perhaps", "no"] * 40)]
    labels = ["entailment", "neutral", "contradiction"] * 40
    frame = pd.DataFrame({"premise": [f"scene {n}" for n in range(120)], "hypothesis": texts, "label": labels})
    own, other = (from_dataset(frame[at::2], name, "train") for at, name in enumerate(("own", "other")))
    table = FILTER.compare_ways(own, other, k=2, batch_size=5).set_index("way")
    assert table.index.tolist() == ["z-aug", "par-z", "seq-z"]
    assert table.loc["z-aug", "of D0"] == 1 > table.loc["z-aug", "of G"]
    assert (table["kept"] == (60 * table["of D0"] + 60 * table["of G"]).round()).all()


# ---------------------------------------------------------------- 24: debiased sets


DEBIASED, OPTIONS = functions("24_three_datasets", np=np, pd=pd), {"n_classes": 3, "k": 2, "batch_size": 5}


def pool():
    """180 pairs with 30 features, feature l goes with label l; their sources, and of which a teacher is sure."""
    random = np.random.default_rng(0)
    labels, matrix = random.integers(3, size=180), random.random((180, 30)) < 0.15
    matrix[np.arange(180), labels] |= random.random(180) < 0.6
    source = np.repeat(np.array(["D0", "G", "G*"], dtype=object), 60)
    return sparse.csr_array(matrix), labels, source, random.random(180) < 0.7


def test_24_sets_are_what_their_formulas_say():
    matrix, labels, source, sure = pool()
    sets = DEBIASED.debiased_sets(*pool(), seed=3, **OPTIONS)
    assert list(sets) == list(ROWS)
    base, star, plain = source == "D0", (source == "G*") & sure, (source == "G") & sure

    def slow(rows, given=None):
        seed_set = None if given is None else (matrix[np.flatnonzero(given)], labels[given])
        keep = z_filter(matrix[np.flatnonzero(rows)], labels[rows], given=seed_set, seed=3, **OPTIONS).keep
        return np.isin(np.arange(180), np.flatnonzero(rows)[keep])

    z_base = slow(base)
    assert 0 < z_base.sum() < 60
    expected = {"Z(D0)": z_base, "Z(G*)": slow(star), "D0 + G*": base | star, "D0 + G": base | plain}
    expected |= {"Z-Aug": base | slow(star, base), "Par-Z": z_base | slow(star)}
    expected |= {"Seq-Z": z_base | slow(star, z_base), "Seq-Z of G": z_base | slow(plain, z_base)}
    assert [title for title, mask in expected.items() if (sets[title][0] != mask).any()] == []
    assert all((keep <= chosen_from).all() for keep, chosen_from in sets.values())


def test_24_a_teacher_that_accepts_nothing_leaves_what_has_no_generated_pair():
    matrix, labels, source, _ = pool()
    sets = DEBIASED.debiased_sets(matrix, labels, source, np.zeros(180, bool), **OPTIONS)
    keep = {title: each for title, (each, _) in sets.items()}
    assert keep["G* confident"].sum() == keep["Z(G*)"].sum() == 0 and keep["G*"].sum() == 60
    assert (keep["Z-Aug"] == keep["D0"]).all() and (keep["D0 + G*"] == keep["D0"]).all()
    assert all((keep[title] == keep["Z(D0)"]).all() for title in ("Par-Z", "Seq-Z", "Seq-Z of G"))
    assert DEBIASED.random_twin(*sets["G* confident"], labels, source, 0).sum() == 0


@pytest.mark.parametrize("written", [3, 2])  # labels that the generators write: the last is theirs too, or never
def test_24_a_twin_has_as_many_of_each_label_and_source_from_the_same_pool(written):
    matrix, labels, source, sure = pool()
    labels = np.where((source != "D0") & (labels >= written), 1, labels)
    parts = DEBIASED.debiased_sets(matrix, labels, source, sure, **OPTIONS)
    twins = {title: DEBIASED.random_twin(*each, labels, source, 1) for title, each in parts.items()}
    for title, (keep, chosen_from) in parts.items():
        assert (twins[title] <= chosen_from).all()
        pd.testing.assert_frame_equal(*(pd.crosstab(labels[rows], source[rows]) for rows in (twins[title], keep)))
    assert (twins["D0 + G"] == parts["D0 + G"][0]).all()  # nothing was filtered
    assert twins["Z-Aug"][source == "D0"].all()  # D0 whole, as in the set
    assert (labels[parts["G*"][0]] == 2).any() == (written == 3) and (labels[parts["Seq-Z"][0]] == 2).any()


def test_24_a_pool_without_generations_and_one_without_a_corpus():
    matrix, labels, source, _ = pool()
    base, made = np.flatnonzero(source == "D0"), np.flatnonzero(source == "G*")
    alone, without = (DEBIASED.debiased_sets(matrix[at], labels[at], source[at], np.ones(60, bool), **OPTIONS)
                      for at in (base, made))  # fmt: skip
    assert alone["G*"][0].sum() == 0 and alone["Z-Aug"][0].sum() == 60
    assert without["Z(D0)"][0].sum() == 0 and (without["Seq-Z"][0] == without["Z(G*)"][0]).all()


# ---------------------------------------------------------------- 43: students


STUDENTS = functions("43_students", np=np, pd=pd)
SETS = {name: load_pairs("planted", split, originals=n) for name, split, n in
        (("one", "train", 60), ("two", "challenge", 90))}  # fmt: skip
POOL = load("planted", "train", limit=300)


def students(**changes):
    return STUDENTS.students_of(POOL, SETS, **({"pairs": 100, "added": 120, "title": "base", "seed": 3} | changes))


def test_43_every_set_adds_the_same_number_and_all_have_one_base():
    sets, again, other = students(), students(), students(seed=4)
    assert list(sets) == ["base", "base + one", "base + two", f"base + {TWIN}", "one alone"]
    assert [len(each) for each in sets.values()] == pytest.approx([100, 220, 220, 220, 120], abs=3)  # but for copies
    assert all(set(sets["base"].uid) <= set(sets[name].uid) for name in list(sets)[1:4])
    assert {name: each.digest for name, each in sets.items()} == {name: each.digest for name, each in again.items()}
    assert sets["base"].digest != other["base"].digest
    # the random twin has the labels of what it stands for
    sets = students(pairs=60, added=90, seed=0)
    base, piece = np.bincount(sets["base"].labels), np.bincount(augmentation(SETS["one"], 90).labels)
    assert np.bincount(sets[f"base + {TWIN}"].labels).tolist() == (base + piece).tolist()


def test_43_more_than_there_is_is_lowered_to_what_every_set_has():
    alone, every = students(added=10_000)["one alone"], without_copies(augmentation(SETS["one"], 180))
    assert len(alone) == len(every) > 120
    with pytest.raises(CorpusError, match="are asked for"):
        students(pairs=301, added=10)
