"""Alone: pytest tests/select/test_mix.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.select.selection import add, drawn, families, sample, swap_in, training_sets


def corpus(name, size, **columns):
    """Pairs "<name> 0", "<name> 1", ... with the three labels in turn."""
    at = np.arange(size)
    texts = {"premise": [f"{name} {n} stands" for n in at], "hypothesis": [f"{name} {n}" for n in at]}
    given = {"uid": [f"{name}-{n}" for n in at], "label": at % 3, "corpus": name, "split": "train"}
    return Corpus(pd.DataFrame({**given, **texts, **columns}), name, "train")


A, B = corpus("a", 12), corpus("b", 5)


def test_swapping_in_keeps_the_size_and_adding_does_not():
    swapped, added = swap_in(A, B), add(A, B)
    assert (len(swapped), len(added)) == (12, 17)
    assert swapped.table["corpus"].value_counts().to_dict() == {"a": 7, "b": 5}
    assert added.uid.tolist() == [*A.uid, *B.uid]
    assert swapped.uid.tolist()[7:] == B.uid.tolist()
    stayed = [uid for uid in swapped.uid if uid.startswith("a")]
    assert stayed == [uid for uid in A.uid if uid in stayed]  # in their order
    assert (swapped.name, added.name) == ("a ◇ b", "a + b")


def test_a_seed_decides_which_pairs_go_whatever_comes():
    other = corpus("c", 5)
    one, two = (swap_in(A, each, seed=3).uid[:7].tolist() for each in (B, other))
    assert one == two != swap_in(A, B, seed=4).uid[:7].tolist()
    gone = [set(A.uid) - set(swap_in(A, B, seed=seed).uid) for seed in range(100)]
    often = pd.Series([uid for each in gone for uid in each]).value_counts() / 100
    assert len(often) == 12 and often.between(0.2, 0.65).all()  # 5 of 12 go, every pair alike


def test_nothing_everything_and_too_much():
    assert swap_in(A, B[:0]).uid.tolist() == A.uid.tolist()
    assert swap_in(B, corpus("c", 5)).table["corpus"].eq("c").all()
    with pytest.raises(CorpusError, match="12 pairs of a cannot replace pairs of b, which has 5: take a part"):
        swap_in(B, A)
    with pytest.raises(CorpusError, match="different classes cannot be joined"):
        add(A, Corpus(B.table.assign(label=0), "two", "train", ("entailment", "not_entailment")))


def test_the_same_name_twice_stays_apart():
    assert add(B, B).uid.tolist() == [*B.uid, *(f"{uid}#2" for uid in B.uid)]


def test_samples_are_nested_and_in_order():
    small, large = (sample(A, size, seed=1).uid.tolist() for size in (4, 9))
    assert set(small) < set(large) and large == [uid for uid in A.uid if uid in large]
    assert drawn(A, 12).all() and not drawn(A, 0).any()
    with pytest.raises(CorpusError, match="13 pairs of a/train are asked for, and it has 12"):
        sample(A, 13)


def test_the_training_sets_of_a_comparison():
    base, other = corpus("a", 30), corpus("b", 15)
    generated = {"written": corpus("g", 4), "few": corpus("f", 3)}
    sets = training_sets(("A", base), ("B", other), generated, pairs=16, share=0.25, seed=2)
    assert {name: len(each) for name, each in sets.items()} == {
        "A": 16,
        "B": 15,  # all there are
        "B, part": 4,
        "A ◇ B": 16,
        "A ◇ random twin": 16,
        "A ◇ written": 16,  # and not "few", of which there are three
        "A + B": 20,
        "A + random twin": 20,
    }
    uids = {name: set(each.uid) for name, each in sets.items()}
    assert uids["B, part"] < uids["B"] and uids["A + B"] == uids["A"] | uids["B, part"]
    stayed = [uids[f"A ◇ {name}"] & uids["A"] for name in ("B", "written", "random twin")]
    assert stayed[0] == stayed[1] == stayed[2] and len(stayed[0]) == 12
    assert uids["A ◇ B"] - stayed[0] == uids["B, part"]
    twin = uids["A ◇ random twin"] - stayed[0]
    assert len(twin) == 4 and all(uid.startswith("a") for uid in twin) and not twin & uids["A"]
    assert uids["A + random twin"] == uids["A"] | twin


def test_of_all_pairs_there_is_no_twin_and_another_seed_draws_others():
    base, other = corpus("a", 30), corpus("b", 15)
    whole = training_sets(("A", base), ("B", other), {}, pairs=None, share=0.5)
    assert list(whole) == ["A", "B", "B, part", "A ◇ B", "A + B"]
    assert [len(each) for each in whole.values()] == [30, 15, 15, 30, 45]
    assert whole["B"].digest == whole["B, part"].digest
    more = training_sets(("A", base), ("B", other), {}, pairs=31, share=0.5)
    assert {name: each.digest for name, each in more.items()} == {name: each.digest for name, each in whole.items()}
    one, two = (training_sets(("A", base), ("B", other), {}, pairs=8, share=0.5, seed=seed) for seed in (0, 1))
    assert all(set(one[name].uid) != set(two[name].uid) for name in one)


def slow_families(table):
    """Merge two pairs as long as some two of different families share a premise or an origin."""
    family = list(range(len(table)))
    rows = table.to_dict("records")
    for _ in rows:
        for i, one in enumerate(rows):
            for j, other in enumerate(rows):
                same = " ".join(one["premise"].lower().split()) == " ".join(other["premise"].lower().split())
                same |= any(one[name] == other[name] != "" for name in ("origin_uid", "pairID"))
                if same:
                    family[i] = family[j] = min(family[i], family[j])
    return family


def test_families_are_linked_by_seed_and_by_premise():
    linked = corpus("w", 6, origin_uid=["s1", "s1", "s2", "", None, "s2"])
    linked.table.loc[[1, 2], "premise"] = ["One  premise", "one premise"]
    family = families(linked)
    assert len({*family[[0, 1, 2, 5]]}) == 1  # s1, then the premise, then s2
    assert len(set(family)) == 3  # of an empty origin nothing follows


def test_families_are_those_of_the_slow_twin():
    random = np.random.default_rng(0)
    for _ in range(20):
        origins = {name: random.choice(["", "x", "y", "z"], 8) for name in ("origin_uid", "pairID")}
        table = corpus("w", 8, **origins)
        table.table["premise"] = random.choice(["p", "q", "r", "s", "t", "u"], 8)
        ours, theirs = families(table), np.array(slow_families(table.table))
        assert ((ours[:, None] == ours) == (theirs[:, None] == theirs)).all()


def test_a_mixture_has_something_mixed_in():
    for other, share in ((B[:0], 0.5), (B, 0.01)):
        with pytest.raises(CorpusError, match=r"of 12 pairs of A, where B has .*, is no pair"):
            training_sets(("A", A), ("B", other), {}, pairs=None, share=share)
