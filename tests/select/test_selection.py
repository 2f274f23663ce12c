"""Selections and twins, the papers' filters, folds, samples, mixtures. Alone: pytest tests/select/test_selection.py"""

import numpy as np
import pandas as pd
import pytest
from cells import functions
from hypothesis import given, strategies as st
from scipy.special import softmax
from tiny_words import corpus_from

from nli_lib.claims import paper_table
from nli_lib.corpora import load
from nli_lib.corpora.corpus import CorpusError, concat
from nli_lib.corpora.suites import load_pairs
from nli_lib.select import selection
from nli_lib.select.selection import Selection, folds, most_ambiguous, most_variable, teacher_filter, top, vote


def kept(found):
    return np.flatnonzero(found.keep).tolist()


# ---------------------------------------------------------------- selections and their twins


def test_top_takes_the_highest_and_gives_ties_to_the_earlier():
    found = top(np.array([0.1, 0.9, 0.5, 0.9, 0.5]), fraction=0.6)
    assert kept(found) == [1, 2, 3] and (found.size, len(found)) == (3, 5)
    assert found.reason.tolist() == ["not in the top", "top", "top", "top", "not in the top"]
    # the whole number below, and not one more
    assert [top(np.arange(10), fraction=part).size for part in (0.33, 0, 1)] == [3, 0, 10]
    with pytest.raises(ValueError, match="between 0 and 1"):
        top(np.arange(3), fraction=1.2)
    with pytest.raises(ValueError, match="the first at position 1"):
        top(np.array([1.0, np.nan]), fraction=0.5)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.floats(0, 1))
def test_top_agrees_with_sorting_in_a_loop(scores, fraction):
    slow = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[: int(fraction * len(scores))]
    assert kept(top(np.array(scores), fraction=fraction)) == sorted(slow)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=1, max_size=60), st.integers(0, 3))
def test_a_random_twin_has_the_same_size_and_label_balance(rows, seed):
    keep, labels = np.array([k for k, _ in rows]), np.array([label for _, label in rows])
    twin, again = (Selection.where(keep, dropped="rule").random_twin(labels, seed).keep for _ in range(2))
    assert np.array_equal(np.bincount(labels[twin], minlength=3), np.bincount(labels[keep], minlength=3))
    assert np.array_equal(twin, again)


def test_a_random_twin_is_random_and_uniform():
    labels, late = np.repeat([0, 1], 50), Selection.where(np.arange(100) % 50 < 10, dropped="late")
    drawn = np.mean([late.random_twin(labels, seed).keep for seed in range(400)], axis=0)
    assert np.abs(drawn - 0.2).max() < 0.1 and set(late.random_twin(labels).reason) == {"drawn", "not drawn"}


def test_shapes_and_types_are_checked():
    with pytest.raises(ValueError, match="boolean array"):
        Selection(np.array([0, 1]), np.array(["a", "b"]))
    with pytest.raises(ValueError, match="one reason an example"):
        Selection(np.array([True]), np.array(["a", "b"]))
    with pytest.raises(ValueError, match="labels have shape"):
        Selection.all(3).random_twin(np.zeros(2))
    assert Selection.all(0).size == 0


def test_overlap_is_the_share_of_what_both_keep():
    first, second = (Selection.where(np.array(keep, bool), dropped="no") for keep in ([1, 1, 1, 0], [0, 1, 1, 1]))
    assert first.overlap(second) == second.overlap(first) == 0.5 and first.overlap(first) == 1


# ---------------------------------------------------------------- the difficulty paper's Tables 5 and 6


def test_training_subsets_by_hand_and_named_as_the_papers_rows():
    variability, margin = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5]), np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    # .66 quantile of the variability .33; quantiles of the margin 1.65 and 3.3
    found = selection.training_subsets(np.array([0, 0, 1, 1, 2, 2]), variability, margin)
    first, second, third = [0, 1], [2, 3], [4, 5]
    by_level = {"easy": first, "easy+ambiguous": first + second, "ambiguous": second}
    by_level |= {"ambiguous+hard": second + third, "easy+hard": first + third, "hard": third}
    expected = {"data maps": third, "aum": second, **by_level, "all": first + second + third}
    assert {name: kept(each) for name, each in found.items()} == expected
    assert [name.replace(" ", "-") for name in found] == list(paper_table("difficulty", "Table 5").index)
    constant = selection.training_subsets(np.array([0, 1, 2]), np.zeros(3), np.zeros(3))
    assert constant["data maps"].size == constant["aum"].size == 0


def test_a_third_each_and_order_does_not_matter():
    random = np.random.default_rng(0)
    given_scores = random.integers(0, 3, 3000), random.random(3000), random.normal(size=3000)
    subsets, order = selection.training_subsets(*given_scores), random.permutation(3000)
    assert subsets["data maps"].size == pytest.approx(0.34 * 3000, abs=2)
    assert subsets["aum"].size == pytest.approx(0.33 * 3000, abs=2)
    mixed = selection.training_subsets(*(each[order] for each in given_scores))
    assert all(np.array_equal(mixed[name].keep, each.keep[order]) for name, each in subsets.items())


# ---------------------------------------------------------------- WANLI's selections by ambiguity


def test_the_top_quarter_of_each_label_strictly_above_its_quantile():
    # of label 0 the quantile is .4, and .4 does not lie above it; label 1 is all alike, so nothing lies above
    assert kept(most_variable([0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 0.9, 0.9, 0.9], [0, 0, 0, 0, 0, 1, 1, 1, 1])) == [4]
    # a genre is left out before the quantile is taken: .325 of the first four
    chosen = most_variable([0.1, 0.2, 0.3, 0.4, 5.0, 6.0, 7.0], np.zeros(7, int), excluded=[0, 0, 0, 0, 1, 1, 1])
    assert kept(chosen) == [3] and chosen.reason.tolist() == [selection.BELOW] * 3 + ["kept"] + [selection.EXCLUDED] * 3


def test_equally_many_of_each_label_the_highest_first_and_ties_by_place():
    scores = [0.5, 0.4, 0.4, 0.4, 0.9, 0.1, 0.2, 0.3, 0.3, 0.8, 0.7, 0.6, 0.6]
    # int(.5 * 13) // 3 = 2 of each
    assert kept(most_ambiguous(scores, [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2])) == [0, 1, 4, 7, 9, 10]
    labels = np.arange(287_241) % 3  # the paper's count
    assert np.bincount(labels[most_ambiguous(np.arange(287_241) % 1000, labels).keep]).tolist() == [47_873] * 3
    rare = np.array([0] * 20 + [1] * 2 + [2] * 20)  # gives all it has
    assert np.bincount(rare[most_ambiguous(np.arange(42.0), rare).keep]).tolist() == [7, 2, 7]
    two = np.arange(40) % 2  # of two classes each gives a quarter
    assert np.bincount(two[most_ambiguous(np.arange(40.0), two, classes=2).keep]).tolist() == [10, 10]


@given(st.lists(st.tuples(st.floats(0, 0.5), st.integers(0, 2)), min_size=1, max_size=40), st.randoms())
def test_nothing_that_is_dropped_is_more_ambiguous_whatever_the_order(pairs, random):
    scores, labels = (np.array(column) for column in zip(*pairs, strict=True))
    keep = most_ambiguous(scores, labels).keep
    for label in range(3):
        inside, outside = (scores[(labels == label) & (keep == side)] for side in (True, False))
        assert not len(inside) or not len(outside) or inside.min() >= outside.max()
    order = random.sample(range(len(pairs)), len(pairs))
    assert sorted(scores[order][most_ambiguous(scores[order], labels[order]).keep]) == sorted(scores[keep])


def test_a_pair_without_a_score_is_an_error_unless_it_is_left_out():
    variability, labels = np.array([0.1, np.nan, 0.3, 0.4]), np.array([0, 0, 1, 1])
    wrong = [(most_ambiguous, [0.1, np.nan], [0, 1]), (most_ambiguous, [0.1], [0, 1])]
    for call, *arguments in (*wrong, (most_variable, variability, labels)):
        with pytest.raises(ValueError, match="give each pair one"):
            call(*arguments)
    assert kept(most_variable(variability, labels, excluded=np.isnan(variability), quantile=0.5)) == [3]


# ---------------------------------------------------------------- DISCO's teacher


def test_the_shift_by_hand():
    before, after = np.log([[0.7, 0.2, 0.1]]), np.log([[0.1, 0.3, 0.6]])
    assert selection.probability_shift(before, after, [2])[0] == pytest.approx(0.5)
    assert selection.probability_shift(before, after, [0])[0] == pytest.approx(-0.6)
    logits = np.random.default_rng(0).normal(size=(9, 3))  # a teacher that shifts nothing keeps nothing
    shifts = selection.probability_shift(logits, logits, np.arange(9) % 3)
    assert (shifts == 0).all() and set(teacher_filter(shifts).reason) == {selection.SMALL}
    # kept is not predicted: from .02 to .2 is enough, although the teacher predicts another label before and after
    before, after = np.log([[0.9, 0.08, 0.02]]), np.log([[0.7, 0.1, 0.2]])
    assert teacher_filter(selection.probability_shift(before, after, [2])).keep.all() and after.argmax() == 0


def test_the_cut_is_half_of_the_threshold_and_must_be_exceeded():
    found = teacher_filter([0.15, 0.15003, 0.2, 0.26, -0.9])
    assert kept(found) == [1, 2, 3] and found.reason.tolist() == [selection.SMALL, *["kept"] * 3, selection.SMALL]
    assert kept(teacher_filter([0.2, 0.25, 0.26], threshold=0.5)) == [2]


@given(st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=1, max_size=4))
def test_the_vote_lies_between_the_mean_and_the_maximum_whatever_the_order(shifts):
    found, shifts = vote(shifts), np.array(shifts)
    assert (found >= shifts.mean(axis=0) - 1e-12).all() and (found <= shifts.max(axis=0) + 1e-12).all()
    assert np.allclose(found, vote(shifts[::-1]))
    assert vote([[0.3, -0.2]]).tolist() == vote([0.3, -0.2]).tolist() == [0.3, -0.2]  # one teacher, as he sees it
    assert vote([[0.1], [0.5]])[0] == pytest.approx(softmax([0.1, 0.5]) @ [0.1, 0.5])


def test_shifts_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="logits"):
        selection.probability_shift(np.zeros((2, 3)), np.zeros((3, 3)), [0, 0])
    with pytest.raises(ValueError, match="position 1 is NaN"):
        teacher_filter([0.1, np.nan])
    assert len(teacher_filter([])) == 0
    assert selection.probability_shift(np.empty((0, 3)), np.empty((0, 3)), np.empty(0, int)).shape == (0,)


@pytest.mark.realdata
@pytest.mark.parametrize(("split", "lowest"), [("e2n", 0.15003), ("n2c", 0.15004)])
def test_the_released_scores_prove_the_cut(split, lowest):
    scores = load("disco", split).table["score"].astype(float).to_numpy()
    assert scores.min() == pytest.approx(lowest, abs=5e-6)
    assert teacher_filter(scores, threshold=selection.THRESHOLD).keep.all()
    assert not teacher_filter(scores, threshold=0.5).keep.all()
    assert ((scores > 0.15) & (scores < 0.16)).any()  # none just below the cut, some just above it


# ---------------------------------------------------------------- folds


LABELS = np.arange(103) % 3
GROUPS = np.array([f"premise {i // 3}" for i in range(103)])


def test_every_example_has_one_fold_and_folds_are_even():
    assert sorted(np.bincount(folds(LABELS), minlength=10).tolist()) == [10] * 7 + [11] * 3
    assert np.array_equal(folds(LABELS, seed=1), folds(LABELS, seed=1))
    assert not np.array_equal(folds(LABELS, seed=1), folds(LABELS, seed=2))
    assert sorted(folds(np.array([0, 0, 1, 1]), count=4).tolist()) == [0, 1, 2, 3]  # as many as examples: leave one out


def test_no_group_is_split():
    spread = [pd.Series(folds(LABELS, **more)).groupby(GROUPS).nunique().max() for more in ({"groups": GROUPS}, {})]
    assert spread[0] == 1 < spread[1]


@pytest.mark.parametrize(("labels", "more", "said"), [
    (LABELS[:9], {}, "10 folds cannot be made of 9 examples"),
    (LABELS[:20], {"groups": ["one"] * 20}, "10 folds cannot be made of 1 groups"),
    (np.array([0] * 19 + [1]), {}, "label 1 occurs in fold"),
    (np.zeros(20, int), {}, "all 20 examples have the label 0"),
    (LABELS, {"count": 1}, "1 folds cannot be made of"),
    (LABELS, {"groups": range(11)}, "inconsistent numbers of samples")])  # fmt: skip
def test_what_cannot_be_folded_is_one_error(labels, more, said):
    with pytest.raises(ValueError, match=said):
        folds(labels, **more)


def test_linked_by_hand():
    """One premise twice, its second hypothesis again beside another premise; what is missing links nothing."""
    assert selection.linked(["a", "a", "b", "c", "d"], ["x", "y", "y", "z", "w"]).tolist() == [0, 0, 0, 1, 2]
    assert selection.linked([None, None, np.nan], [1.0, np.nan, np.nan]).tolist() == [0, 1, 2]
    assert selection.linked([], []).tolist() == []


def test_sibling_labels_by_hand_and_as_defined():
    sibling_labels = functions("31_cross_scoring").sibling_labels
    # one premise with labels 0, 1, 2 in folds 0, 0, 1; another alone
    beside = sibling_labels(*map(np.array, ([0, 1, 2, 1], ["a", "a", "a", "b"], [0, 0, 1, 1])))
    assert beside.tolist() == [[False, False, True], [False, False, True], [True, True, False], [False] * 3]
    random = np.random.default_rng(0)
    labels, groups, fold = random.integers(0, 3, 200), random.integers(0, 60, 200), random.integers(0, 5, 200)
    others = [(groups == groups[at]) & (fold != fold[at]) for at in range(200)]
    expected = [[any(other & (labels == label)) for label in range(3)] for other in others]
    assert np.array_equal(sibling_labels(labels, groups, fold), expected)
    split = [sibling_labels(LABELS, GROUPS, folds(LABELS, **more)).any() for more in ({"groups": GROUPS}, {})]
    assert split == [False, True]


def test_a_sample_of_whole_premises():
    labels, premises = np.arange(60) % 3, np.arange(60) // 3
    sample, *whole = (selection.sample_of_groups(labels, premises, size) for size in (20, 100, 0))
    assert sample.sum() == pytest.approx(20, abs=3) and not set(premises[sample]) & set(premises[~sample])
    assert all(each.all() for each in whole)


# ---------------------------------------------------------------- samples and mixtures


def corpus(name, size):
    """Pairs "<name> 0", "<name> 1", ... with the three labels in turn."""
    return corpus_from([(f"{name} {n} stands", f"{name} {n}", n % 3) for n in range(size)], uid=f"{name}-", name=name)


A, B = corpus("a", 12), corpus("b", 5)


def test_swapping_in_keeps_the_size_and_the_order():
    swapped = selection.swap_in(A, B)
    assert swapped.table["corpus"].tolist() == ["a"] * 7 + ["b"] * 5 and swapped.name == "a ◇ b"
    stayed = swapped.uid[:7].tolist()
    assert stayed == [uid for uid in A.uid if uid in stayed] and swapped.uid[7:].tolist() == B.uid.tolist()
    assert selection.swap_in(A, B[:0]).uid.tolist() == A.uid.tolist()
    assert selection.swap_in(B, corpus("c", 5)).table["corpus"].eq("c").all()
    with pytest.raises(CorpusError, match="12 pairs of a cannot replace pairs of b, which has 5: take a part"):
        selection.swap_in(B, A)


def test_a_seed_decides_which_pairs_go_whatever_comes():
    one, two = (selection.swap_in(A, each, seed=3).uid[:7].tolist() for each in (B, corpus("c", 5)))
    assert one == two != selection.swap_in(A, B, seed=4).uid[:7].tolist()
    gone = [set(A.uid) - set(selection.swap_in(A, B, seed=seed).uid) for seed in range(100)]
    often = pd.Series([uid for each in gone for uid in each]).value_counts() / 100
    assert len(often) == 12 and often.between(0.2, 0.65).all()  # 5 of 12 go, every pair alike


def test_samples_are_nested_and_in_order():
    small, large = (selection.sample(A, size, seed=1).uid.tolist() for size in (4, 9))
    assert set(small) < set(large) and large == [uid for uid in A.uid if uid in large]
    assert selection.drawn(A, 12).all() and not selection.drawn(A, 0).any()
    with pytest.raises(CorpusError, match="13 pairs of a/train are asked for, and it has 12"):
        selection.sample(A, 13)


def test_an_original_goes_before_its_revisions():
    pairs = load_pairs("planted", "train", originals=60)
    known = set()
    for row in selection.augmentation(pairs, 30, seed=1).table.itertuples():
        if isinstance(row.origin_uid, str):
            assert row.origin_uid in known
        else:
            known.add(row.uid)
    assert len(known) == 10 and len(selection.augmentation(pairs, 180)) == 180
    with pytest.raises(CorpusError, match="are asked for"):
        selection.augmentation(pairs, 181)


def test_copies_go_and_labels_run_out():
    both = selection.without_copies(concat([A[:5], A[:7]], name="both"))
    assert both.uid.tolist() == A.uid[:7].tolist()
    few = selection.of_labels(A, np.array([3, 0, 10_000]))
    assert list(few.counts.values()) == [3, 0, 4]
