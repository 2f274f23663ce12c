"""What others say of the pairs. Alone: pytest tests/test_outside_truths.py"""

import os

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import load
from nli_lib.corpora import people as module
from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.people import BERTS, ENTROPY, ERROR, OVERRULED, TAKEN_BACK, TRUTH_COLUMNS, outside_truths
from nli_lib.corpora.planted import make_split


def tiny():
    rows = {"uid": list("abcd"), "premise": "P.", "hypothesis": list("wxyz"), "label": [0, 1, 2, 0]}
    return Corpus(pd.DataFrame(rows).assign(corpus="mine", split="train"), "mine", "train")


def test_by_hand(monkeypatch):
    people = pd.DataFrame({"position": [0, 3], "entropy": [0.5, 1.2], "majority": [0, 2]})
    five = pd.DataFrame({"position": [1, 2], "author": [0, 2], "majority": [1, 2]})
    berts = pd.DataFrame({"position": [2], "right": [93]})
    items = pd.DataFrame({"position": [1, 1], "label": [1, 2], "error": [False, True]})
    monkeypatch.setattr(module, "human_labels", lambda *a, **k: people)
    monkeypatch.setattr(module, "annotators", lambda *a: five)
    monkeypatch.setattr(module, "hundred_berts", lambda *a, **k: berts)
    monkeypatch.setattr(module, "known_errors", lambda *a, **k: items)
    found = outside_truths(tiny())
    rows = {name: part[["position", "label", "value"]].to_numpy().tolist() for name, part in found.groupby("truth")}
    assert rows == {
        ENTROPY: [[0, 0, 0.5], [3, 0, 1.2]],
        ERROR: [[0, 0, 0], [3, 0, 1]],
        OVERRULED: [[1, 1, 1], [2, 2, 0]],
        BERTS: [[2, 2, pytest.approx(0.07)]],
        TAKEN_BACK: [[1, 1, 0], [1, 2, 1]],
    }


def test_nobody_judged_a_corpus(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = outside_truths(tiny(), data_dir=str(tmp_path))
    assert list(found) == list(TRUTH_COLUMNS) and found.empty


def test_the_planted_corpus_knows_what_was_planted():
    corpus = make_split("train", 400, seed=1)
    found = outside_truths(corpus)
    flipped = corpus.table["flipped"].to_numpy(dtype=bool)
    by_name = dict(list(found.groupby("truth")))
    assert set(by_name) == {ENTROPY, ERROR, OVERRULED, TAKEN_BACK}
    for part in by_name.values():
        assert part["label"].tolist() == corpus.labels[part["position"]].tolist()
    assert (by_name[OVERRULED]["value"].to_numpy(dtype=bool) == flipped).all()
    assert (by_name[ERROR]["value"].to_numpy(dtype=bool) == flipped).all()
    assert np.array_equal(by_name[TAKEN_BACK]["value"] == 1, flipped[by_name[TAKEN_BACK]["position"]])


@pytest.mark.realdata
@pytest.mark.skipif(not os.environ.get("NLI_DATA"), reason="NLI_DATA names no folder of corpora")
def test_who_judged_the_development_sets():
    counts = {name: outside_truths(load(name, split))["truth"].value_counts().to_dict()
              for name, split in (("snli", "validation"), ("mnli", "validation_matched"))}  # fmt: skip
    assert counts["snli"][ENTROPY] == counts["snli"][ERROR] == 1514
    assert counts["mnli"][ENTROPY] == 1599 and counts["mnli"][BERTS] == 9815 and counts["mnli"][TAKEN_BACK] == 878
