"""Alone: pytest tests/select/test_augment.py"""

import numpy as np
import pytest

from nli_lib.corpora import load
from nli_lib.corpora.corpus import CorpusError, concat
from nli_lib.corpora.suites import load_pairs
from nli_lib.select.selection import TWIN, augmentation, of_labels, students_of, without_copies

SETS = {
    "one": load_pairs("planted", "train", originals=60),
    "two": load_pairs("planted", "challenge", originals=90),
}
POOL = load("planted", "train", limit=300)


def test_every_set_adds_the_same_number_and_all_have_one_base():
    sets = students_of(POOL, SETS, pairs=100, added=120, seed=3)
    assert list(sets) == ["base", "base + one", "base + two", f"base + {TWIN}", "one alone"]
    assert [len(each) for each in sets.values()] == pytest.approx([100, 220, 220, 220, 120], abs=3)  # but for copies
    base = set(sets["base"].uid)
    assert all(base <= set(sets[name].uid) for name in list(sets)[1:4])
    again = students_of(POOL, SETS, pairs=100, added=120, seed=3)
    assert {name: each.digest for name, each in sets.items()} == {name: each.digest for name, each in again.items()}
    assert sets["base"].digest != students_of(POOL, SETS, pairs=100, added=120, seed=4)["base"].digest


def test_the_random_twin_has_the_labels_of_what_it_stands_for():
    sets = students_of(POOL, SETS, pairs=60, added=90)
    base, piece = np.bincount(sets["base"].labels), np.bincount(augmentation(SETS["one"], 90).labels)
    assert np.bincount(sets[f"base + {TWIN}"].labels).tolist() == (base + piece).tolist()


def test_more_than_there_is_is_lowered_to_what_every_set_has():
    sets = students_of(POOL, SETS, pairs=100, added=10_000)
    assert len(augmentation(SETS["one"], 180)) == 180
    assert len(sets["one alone"]) == len(without_copies(augmentation(SETS["one"], 180))) > 120
    with pytest.raises(CorpusError, match="are asked for"):
        students_of(POOL, SETS, pairs=301, added=10)
    with pytest.raises(CorpusError, match="are asked for"):
        augmentation(SETS["one"], 181)


def test_an_original_goes_before_its_revisions():
    rows = augmentation(SETS["one"], 30, seed=1).table
    known = {}
    for row in rows.itertuples():
        if isinstance(row.origin_uid, str):
            assert row.origin_uid in known
        else:
            known[row.uid] = True
    assert len(known) == 10


def test_copies_go_and_labels_run_out():
    both = without_copies(concat([POOL[:5], POOL[:7]], name="both"))
    assert both.uid.tolist() == POOL.uid[:7].tolist()
    few = of_labels(POOL, np.array([5, 0, 10_000]))
    assert few.counts["entailment"] == 5 and few.counts["neutral"] == 0
    assert few.counts["contradiction"] == POOL.counts["contradiction"]
