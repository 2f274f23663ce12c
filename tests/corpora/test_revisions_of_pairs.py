"""Revisions of a corpus's own pairs. Alone: pytest tests/corpora/test_revisions_of_pairs.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import load
from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.planted import counterfactuals
from nli_lib.corpora.suites import matched, pair_up, revisions_of


def corpus(*rows, **columns):
    table = pd.DataFrame(rows, columns=["uid", "premise", "hypothesis", "label"])
    return Corpus(table.assign(corpus="mine", split="train", **columns), "mine", "train")


OURS = corpus(("1", "A cat sleeps.", "It dreams.", 1), ("2", "A Dog runs. ", "It moves.", 0), ("3", "No.", "No.", 2))
ORIGINAL = corpus(("a", "A dog runs.", "It moves.", 0), ("b", "A cow stands.", "It moos.", 1))
REVISED = corpus(
    ("r0", "A dog sits.", "It moves.", 2), ("r1", "A cow.", "It moos.", 0), ("r2", "A dog.", "It moves.", 1),
    origin_uid=["a", "b", "a"],
)  # fmt: skip


def test_originals_are_found_by_their_texts():
    revised, place = matched(OURS, pair_up(REVISED, ORIGINAL))
    assert revised.uid.tolist() == ["r0", "r2"] and place.tolist() == [1, 1]


def test_of_equal_pairs_it_is_the_first():
    rows = OURS.table[["uid", "premise", "hypothesis", "label"]].itertuples(index=False)
    twice = corpus(*rows, ("4", "a dog runs.", "It moves.", 1))
    assert matched(twice, pair_up(REVISED, ORIGINAL))[1].tolist() == [1, 1]


def test_none_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert matched(OURS[np.array([0, 2])], pair_up(REVISED, ORIGINAL)) is None
    assert revisions_of(OURS, "cad", "validation", data_dir=str(tmp_path)) is None


def test_a_planted_set_belongs_to_its_own_originals():
    original, revised = counterfactuals(20, split="train")
    found, place = revisions_of(original, "planted", "train", originals=20)
    assert len(found) == len(revised) == 40
    assert place.tolist() == [at for at in range(20) for _ in range(2)]


@pytest.mark.realdata
def test_human_revisions_of_snli():
    found, place = revisions_of(load("snli", "validation"), "cad", "validation")
    assert len(found) == 800 and len(set(place)) == 200
