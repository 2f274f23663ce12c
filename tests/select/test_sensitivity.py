"""Alone: pytest tests/select/test_sensitivity.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import from_dataset
from nli_lib.measure.features import features, join, prediction
from nli_lib.select.zfilter import by_size, vary, z_filter


@pytest.fixture(scope="module")
def corpus():
    """240 pairs of two labels, every eighth a repetition; "nobody" stands in most contradictions."""
    random = np.random.default_rng(0)
    words = [" ".join(random.choice(["a", "man", "walks", "fast", "home"], 4)) + f" {n}" for n in range(240)]
    labels = np.arange(240) % 2
    words = ["nobody " * (label and random.random() < 0.8) + text for text, label in zip(words, labels, strict=True)]
    names = np.array(["entailment", "contradiction"])[labels]
    frame = pd.DataFrame({"premise": [f"scene {n // 2}" for n in range(240)], "hypothesis": words, "label": names})
    repeated = frame.index % 8 == 7
    frame.loc[repeated] = frame.shift(2).loc[repeated]
    return from_dataset(frame, "tiny", "train")


def test_each_row_changes_one_setting(corpus):
    shape, labels = features(corpus.premise, corpus.hypothesis), corpus.labels
    oracle = join(shape, prediction(labels, n_classes=2))
    settings = {"k": 3, "batch_size": 10, "n_classes": 2}
    grid = {"batch_size": (10, 240), "seed": range(2), "features": ("plain", "oracle"), "min_count": (1, 5)}
    table = vary({"plain": shape, "oracle": oracle}, labels, grid, **settings)
    rows = table.set_index(["what", "value"])
    assert len(table) == 8 and (table["kept"].between(0, 1)).all()
    assert rows.loc[("batch_size", "240"), "kept"] == 1  # one batch filters nothing
    base = z_filter(shape.matrix, labels, names=shape.names, **settings)
    other = z_filter(shape.matrix, labels, names=shape.names, seed=1, **settings)
    same = [("batch_size", "10"), ("seed", "0"), ("features", "plain"), ("min_count", "1")]
    assert (rows.loc[same, "overlap"] == 1).all()
    shared = (base.keep & other.keep).sum() / (base.keep | other.keep).sum()
    assert rows.loc[("seed", "1"), "overlap"] == shared
    assert rows.loc[("features", "oracle"), "kept"] < base.keep.mean()  # no contradiction passes after the first batch


def test_parts_of_growing_size_hold_no_repeated_pair(corpus):
    table = by_size(corpus, (4, 60, 100, 10_000), (0, 1), k=5)
    assert table["pairs"].unique().tolist() == [60, 100, 210]  # four pairs are too few for five folds
    assert table["seed"].tolist() == [0, 1] * 3 and set(table["pool"]) == {"tiny train"}
    assert (table["highest z"] < table["before"])[table["pairs"] == 210].all()  # of 60, too few are kept
    assert by_size(corpus[:4], (), (0,)).empty
