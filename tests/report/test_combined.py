"""The sets of a pool as corpora to train on. Alone: pytest tests/report/test_combined.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora.corpus import COLUMNS, LABELS, Corpus
from nli_lib.report.combined import NO_SETS, training_sets


def pool_of(seed, n=12):
    """n pairs, the first third of D0; Seq-Z keeps the odd ones, its twin the even ones."""
    at = np.arange(n)
    return pd.DataFrame({
        "uid": [f"{seed}-{i}" for i in at],
        "premise": [f"Premise {i} of {seed}." for i in at],
        "hypothesis": [f"Hypothesis {i}." for i in at],
        "label": at % 3,
        "source": np.where(at < n // 3, "D0", "G*"),
        "seed": seed,
        "Seq-Z": at % 2 == 1,
        "Seq-Z, twin": at % 2 == 0,
        "D0": at < n // 3,
        "D0, twin": at < n // 3,
    })  # fmt: skip


def corpus(rows, name="test"):
    table = pd.DataFrame(rows, columns=["premise", "hypothesis"]).assign(label=0, corpus=name, split="test")
    table["uid"] = [f"t{i}" for i in range(len(table))]
    return Corpus(table[list(COLUMNS)], name, "test", LABELS)


def test_the_set_its_twin_and_the_seed_of_the_pool():
    pool = pd.concat([pool_of(0), pool_of(1)], ignore_index=True)
    for seed, wanted in ((0, 0), (1, 1), (2, 0)):
        found, table = training_sets(pool, ["Seq-Z"], {}, LABELS, seed=seed)
        assert list(found) == ["Seq-Z", "Seq-Z, twin"]
        assert list(found["Seq-Z"].table["uid"]) == [f"{wanted}-{i}" for i in (1, 3, 5, 7, 9, 11)]
        assert list(found["Seq-Z, twin"].table["uid"]) == [f"{wanted}-{i}" for i in (0, 2, 4, 6, 8, 10)]
        assert list(table) == list(NO_SETS) and table["pairs"].tolist() == [6, 6] and not table["left out"].any()


def test_what_is_tested_on_is_not_trained_on():
    tests = {
        "one": corpus([("premise 1 of 0.", "HYPOTHESIS 1.")]),
        "two": corpus([("Premise 4 of 0.", "Hypothesis 4.")]),
    }
    found, table = training_sets(pool_of(0), ["Seq-Z"], tests, LABELS)
    assert "0-1" not in set(found["Seq-Z"].table["uid"]) and "0-4" not in set(found["Seq-Z, twin"].table["uid"])
    assert table.set_index("set")[["pairs", "taken out"]].to_numpy().tolist() == [[5, 1], [5, 1]]


def test_a_set_that_is_its_own_twin_comes_once():
    found, _ = training_sets(pool_of(0), ["D0"], {}, LABELS)
    assert list(found) == ["D0"]


def test_a_set_without_a_label_is_left_out_and_said():
    pool = pool_of(0)
    pool["Seq-Z"] &= pool["label"] != 2
    found, table = training_sets(pool, ["Seq-Z"], {}, LABELS)
    assert list(found) == ["Seq-Z, twin"]
    assert table.set_index("set").loc["Seq-Z", ["pairs", "left out"]].tolist() == [4, True]


def test_a_set_that_the_pool_lacks():
    with pytest.raises(KeyError, match="Par-Z"):
        training_sets(pool_of(0), ["Par-Z"], {}, LABELS)
