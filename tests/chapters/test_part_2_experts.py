"""Chapter 26: knobs that are chosen, and sets to combine with. Alone: pytest <this file>"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cells import ran

from nli_lib.corpora.corpus import COLUMNS, LABELS, Corpus

CHAPTER, BEFORE = "26_product_of_experts", {"training": None, "tests": {}}  # defaults of a function in a cell

# ---------------------------------------------------------------- the grid

ROWS = [  # beta, gamma, development, hard
    (0.1, 0.4, 0.80, 0.60), (1.0, 0.4, 0.82, 0.62), (2.0, 0.4, 0.82, 0.66), (2.0, 1.0, 0.70, 0.71)]  # fmt: skip
GRID = pd.DataFrame(ROWS, columns=["beta", "gamma", "development", "hard"])
GRID = GRID.melt(["beta", "gamma"], var_name="title", value_name="accuracy")


def test_the_best_of_equals_is_the_first():
    dial = SimpleNamespace(gammas=[0.1, 0.3, 1.0])
    found = ran(CHAPTER, "18-4e207c", **BEFORE, every=GRID, by_rule="hard", dial=dial)
    assert (found.beta, found.gamma) == (1.0, 0.4) and found.on_hard.tolist() == [2.0, 1.0] and found.middle == 0.3


def picked(grid):
    given = {"accuracy": pd.DataFrame(columns=["title", "condition", "seed", "n", "accuracy"]), "hard": "hard"}
    return ran(CHAPTER, "35-20b640", **BEFORE, study=SimpleNamespace(table=lambda part: grid), **given)


def test_choosing_on_the_test_set_never_gives_less():
    cells = picked(GRID)
    found = cells.picked.loc["hard"]
    assert list(cells.picked.index) == ["hard"] and cells.best["beta"] == cells.best_hard["beta"] == 1.0
    assert found[["beta by test", "gamma by test"]].tolist() == [2.0, 1.0]
    assert found["chosen"] == 0.62 and found["by test"] == 0.71
    assert found["optimism"] == pytest.approx(0.09) and found["mean"] == pytest.approx(0.6475)
    one = picked(GRID[GRID["beta"] == 0.1])  # nothing to choose
    assert one.picked["optimism"].tolist() == [0.0]


# ---------------------------------------------------------------- the sets of a pool


def pool_of(seed, n=12):
    """n pairs, the first third of D0; Seq-Z keeps the odd ones, its twin the even ones."""
    at = np.arange(n)
    texts = {"premise": [f"Premise {i} of {seed}." for i in at], "hypothesis": [f"Hypothesis {i}." for i in at]}
    facts = {"label": at % 3, "source": np.where(at < n // 3, "D0", "G*"), "seed": seed}
    sets = {"Seq-Z": at % 2 == 1, "Seq-Z, twin": at % 2 == 0, "D0": at < n // 3, "D0, twin": at < n // 3}
    return pd.DataFrame({"uid": [f"{seed}-{i}" for i in at], **texts, **facts, **sets})


def corpus(rows=(("A dog.", "A cat."),)):
    table = pd.DataFrame(rows, columns=["premise", "hypothesis"]).assign(label=0, corpus="test", split="test")
    table["uid"] = [f"t{i}" for i in range(len(table))]
    return Corpus(table[list(COLUMNS)], "test", "test", LABELS)


def sets_of(pool, *wanted, seeds=(0,), own_file=False, **tests):
    """(the sets that are made, their table) of a pool that chapter 24 exported."""
    study = SimpleNamespace(own_file=own_file, exported=lambda part, notebook: pool)
    given = {"dial": SimpleNamespace(sets=wanted), "seeds": seeds, "tests": tests or {"some": corpus()}}
    cells = ran(CHAPTER, "60cd8af6", study=study, corpus=corpus(), **BEFORE | given)
    return cells.made, cells.tables["sets"]


def test_the_set_its_twin_and_the_seed_of_the_pool():
    found, table = sets_of(pd.concat([pool_of(0), pool_of(1)], ignore_index=True), "Seq-Z", seeds=(0, 1, 2))
    assert [key for key in found if key[1] == 0] == [("Seq-Z", 0), ("Seq-Z, twin", 0)]
    for seed, wanted in ((0, 0), (1, 1), (2, 0)):
        assert list(found["Seq-Z", seed].table["uid"]) == [f"{wanted}-{i}" for i in (1, 3, 5, 7, 9, 11)]
        assert list(found["Seq-Z, twin", seed].table["uid"]) == [f"{wanted}-{i}" for i in (0, 2, 4, 6, 8, 10)]
    assert list(table) == ["set", "seed", "pairs", "taken out", "left out"]
    assert table["pairs"].tolist() == [6] * 6 and not table["left out"].any()


def test_what_is_tested_on_is_not_trained_on():
    one, two = corpus([("premise 1 of 0.", "HYPOTHESIS 1.")]), corpus([("Premise 4 of 0.", "Hypothesis 4.")])
    found, table = sets_of(pool_of(0), "Seq-Z", one=one, two=two)
    assert "0-1" not in set(found["Seq-Z", 0].table["uid"]) and "0-4" not in set(found["Seq-Z, twin", 0].table["uid"])
    assert table.set_index("set")[["pairs", "taken out"]].to_numpy().tolist() == [[5, 1], [5, 1]]


def test_a_set_that_is_its_own_twin_comes_once_and_one_without_a_label_is_left_out_and_said():
    assert list(sets_of(pool_of(0), "D0")[0]) == [("D0", 0)]
    pool = pool_of(0)
    pool["Seq-Z"] &= pool["label"] != 2
    found, table = sets_of(pool, "Seq-Z")
    assert list(found) == [("Seq-Z, twin", 0)]
    assert table.set_index("set").loc["Seq-Z", ["pairs", "left out"]].tolist() == [4, True]


def test_without_a_set_no_pool_is_read():
    for made, table in (sets_of(None), sets_of(None, "Seq-Z", own_file=True)):
        assert not made and table.empty and "left out" in table
