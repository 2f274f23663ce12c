"""The training sets of debiased generation. Alone: pytest tests/select/test_debiased_sets.py"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nli_lib.select.zfilter import CUTS, ROWS, confident, cuts, debiased_sets, random_twin, to_train_on, z_filter

SOURCES = ["D0"] * 60 + ["G"] * 60 + ["G*"] * 60
OPTIONS = {"n_classes": 3, "k": 2, "batch_size": 5}


def pool(seed=0):
    """180 pairs with 30 features; feature l goes with label l."""
    random = np.random.default_rng(seed)
    labels = random.integers(3, size=180)
    matrix = random.random((180, 30)) < 0.15
    matrix[np.arange(180), labels] |= random.random(180) < 0.6
    return sparse.csr_array(matrix), labels, np.array(SOURCES, dtype=object), random.random(180) < 0.7


def test_a_pair_is_kept_above_tau_and_not_at_it():
    probabilities = np.array([[0.96, 0.02, 0.02], [0.95, 0.03, 0.02], [0.1, 0.8, 0.1], [0.01, 0.01, 0.98]])
    found = confident(probabilities, [0, 0, 0, 2])
    assert found.keep.tolist() == [True, False, False, True]
    assert found.reason.tolist()[1:3] == ["the teacher gives its label 0.95 or less", "the teacher gives another label"]


def test_a_teacher_that_accepts_nothing_leaves_what_has_no_generated_pair():
    matrix, labels, source, _ = pool()
    nothing = confident(np.full((180, 3), 1 / 3), labels)
    assert nothing.size == 0
    sets = debiased_sets(matrix, labels, source, nothing.keep, **OPTIONS)
    base = source == "D0"
    assert sets["G* confident"].size == sets["Z(G*)"].size == 0
    assert (sets["Z-Aug"].keep == base).all() and (sets["D0 + G*"].keep == base).all()
    for title in ("Par-Z", "Seq-Z", "Seq-Z of G"):
        assert (sets[title].keep == sets["Z(D0)"].keep).all()
    assert sets["G*"].size == 60
    assert random_twin(sets["G* confident"], labels, source).sum() == 0
    assert cuts(sets) == {}


def test_a_teacher_without_an_answer_is_an_error():
    with pytest.raises(ValueError, match="1 probabilities are not finite"):
        confident([[np.nan, 0.5, 0.5], [0.2, 0.4, 0.4]], [0, 0])


def test_sets_are_what_their_formulas_say():
    matrix, labels, source, sure = pool()
    sets = debiased_sets(matrix, labels, source, sure, seed=3, **OPTIONS)
    assert list(sets) == list(ROWS)
    base, star, plain = source == "D0", (source == "G*") & sure, (source == "G") & sure

    def slow(rows, given=None):
        seed_set = None if given is None else (matrix[np.flatnonzero(given)], labels[given])
        keep = z_filter(matrix[np.flatnonzero(rows)], labels[rows], given=seed_set, seed=3, **OPTIONS).keep
        mask = np.zeros(180, bool)
        mask[np.flatnonzero(rows)[keep]] = True
        return mask

    z_base = slow(base)
    assert 0 < z_base.sum() < 60
    expected = {
        "Z(D0)": z_base,
        "Z(G*)": slow(star),
        "D0 + G*": base | star,
        "D0 + G": base | plain,
        "Z-Aug": base | slow(star, base),
        "Par-Z": z_base | slow(star),
        "Seq-Z": z_base | slow(star, z_base),
        "Seq-Z of G": z_base | slow(plain, z_base),
    }
    for title, mask in expected.items():
        assert (sets[title].keep == mask).all(), title
    assert all((part.keep <= part.pool).all() for part in sets.values())


def test_a_twin_has_as_many_of_each_label_and_source_from_the_same_pool():
    matrix, labels, source, sure = pool()
    for title, part in debiased_sets(matrix, labels, source, sure, **OPTIONS).items():
        twin = random_twin(part, labels, source, seed=1)
        assert (twin <= part.pool).all()
        for name in ("D0", "G", "G*"):
            here = source == name
            assert (
                np.bincount(labels[twin & here], minlength=3).tolist()
                == np.bincount(labels[part.keep & here], minlength=3).tolist()
            ), title
    parts = debiased_sets(matrix, labels, source, sure, **OPTIONS)
    assert (random_twin(parts["D0 + G"], labels, source) == parts["D0 + G"].keep).all()  # nothing was filtered
    z_aug = parts["Z-Aug"]
    assert (random_twin(z_aug, labels, source)[source == "D0"]).all()  # D0 whole, as in the set


def test_a_label_that_was_never_generated_stays_absent_and_nothing_fails():
    matrix, labels, source, sure = pool()
    labels = np.where((source != "D0") & (labels == 2), 1, labels)
    sets = debiased_sets(matrix, labels, source, sure, **OPTIONS)
    assert not (labels[sets["G*"].keep] == 2).any() and (labels[sets["Seq-Z"].keep] == 2).any()
    twin = random_twin(sets["Seq-Z"], labels, source)
    assert (labels[twin] == 2).sum() == (labels[sets["Seq-Z"].keep] == 2).sum()


def test_an_empty_z_and_a_pool_without_generations():
    matrix, labels, source, _ = pool()
    base = np.flatnonzero(source == "D0")
    alone = debiased_sets(matrix[base], labels[base], source[base], np.zeros(60, bool), **OPTIONS)
    assert alone["G*"].size == 0 and alone["Z-Aug"].size == 60
    made = np.flatnonzero(source == "G*")  # no D0: Z(D0) is empty, and Seq-Z starts from nothing
    without = debiased_sets(matrix[made], labels[made], source[made], np.ones(60, bool), **OPTIONS)
    assert without["Z(D0)"].size == 0
    assert (without["Seq-Z"].keep == without["Z(G*)"].keep).all()


def test_cuts_have_the_size_of_the_other_set():
    matrix, labels, source, sure = pool()
    sets = debiased_sets(matrix, labels, source, sure, **OPTIONS)
    found = cuts(sets, seed=2)
    assert "D0 + G*, cut to Z-Aug" in found
    for title, part in found.items():
        whole, other = title.split(", cut to ")
        assert part.size == sets[other].size < sets[whole].size and (part.keep <= sets[whole].keep).all()
        assert other in CUTS[whole]


def test_an_unknown_source_is_named():
    matrix, labels, source, sure = pool()
    source[0] = "GPT"
    with pytest.raises(ValueError, match="'GPT'"):
        debiased_sets(matrix, labels, source, sure, **OPTIONS)


def exported(matrix, labels, source, sure):
    sets = debiased_sets(matrix, labels, source, sure, **OPTIONS)
    twins = {f"{title}, twin": random_twin(part, labels, source) for title, part in sets.items()}
    return pd.DataFrame({"label": labels, "source": source, **{t: p.keep for t, p in sets.items()}, **twins})


def test_sets_come_with_twins_where_something_was_filtered_and_with_cuts():
    pool_ = exported(*pool())
    found, lacking = to_train_on(pool_, list(ROWS), seed=1)
    assert not lacking and list(found)[: len(ROWS)] == list(ROWS)
    assert "Seq-Z, twin" in found and "D0, twin" not in found and "D0 + G, twin" not in found
    assert found["Seq-Z, twin"].sum() == found["Seq-Z"].sum() and "D0 + G*, cut to Z-Aug" in found
    few, _ = to_train_on(pool_, ["D0", "Seq-Z"])
    assert {title.split(",")[0] for title in few} == {"D0", "Seq-Z"}


def test_empty_sets_and_those_without_a_label_are_left_out_and_counted():
    matrix, labels, source, sure = pool()
    labels = np.where((source != "D0") & (labels == 2), 1, labels)  # the generators never wrote a contradiction
    found, lacking = to_train_on(exported(matrix, labels, source, sure), list(ROWS))
    assert {"G*", "G* confident", "Z(G*)"} <= set(lacking) and lacking["G*"] == 60 and "Seq-Z" in found
    found, lacking = to_train_on(exported(matrix, labels, source, np.zeros(180, bool)), list(ROWS))
    assert lacking["G* confident"] == 0 and "Z-Aug" in found and "Z-Aug, twin" not in found
