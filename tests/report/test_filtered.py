"""Alone: pytest tests/report/test_filtered.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora import from_dataset
from nli_lib.evaluate import seed_gains
from nli_lib.measure.features import features, z_statistics, z_threshold
from nli_lib.report import filtered
from nli_lib.select.zfilter import z_filter


@pytest.fixture(scope="module")
def corpus():
    """120 pairs of two labels; "not" stands in every contradiction but few entailments."""
    labels = np.arange(120) % 2
    texts = [f"thing {n % 7} is {'not ' * bool(label or n % 10 == 0)}here" for n, label in enumerate(labels)]
    names = np.array(["entailment", "contradiction"])[labels]
    return from_dataset(pd.DataFrame({"premise": "a scene", "hypothesis": texts, "label": names}), "tiny", "train")


@pytest.fixture(scope="module")
def cut(corpus):
    table = features(corpus.premise, corpus.hypothesis)
    return table, z_filter(table.matrix, corpus.labels, names=table.names, k=2, batch_size=10)


def test_strongest_features_of_each_set(corpus, cut):
    table, kept = cut
    sets = {"before": np.ones(120, bool), "after": kept.keep}
    tops = filtered.strongest(table, corpus.labels, sets, corpus.classes, k=3)
    assert tops.groupby(["pairs", "label"]).size().eq(3).all() and len(tops) == 12
    stats = z_statistics(table.matrix, corpus.labels, 2)
    first = tops.query("pairs == 'before' and rank == 1").set_index("label")["z"]
    assert first[list(corpus.classes)].to_numpy() == pytest.approx(np.nanmax(stats.z, axis=0))
    assert set(tops["line"]) == {z_threshold(0.01, tests=stats.z.size)}


def test_what_the_filter_leaves_beside_its_twin(corpus, cut):
    """Written as the definition: the five best features of each set of pairs, and every z above the line."""
    table, kept = cut
    line, options = 1.5, {"k": 2, "batch_size": 10, "n_classes": 2}
    highest, flat, above = filtered.suppression(table, corpus.labels, line=line, **options)
    sets = {"after": kept.keep, "twin": kept.random_twin(corpus.labels).keep}
    tops = filtered.strongest(table, corpus.labels, sets, corpus.classes, k=5)
    z = tops.pivot(index=["pairs", "rank"], columns="label", values="z")
    assert highest == pytest.approx((z.loc["after", 1] / z.loc["twin", 1]).mean())
    assert flat == pytest.approx(((z.loc["after", 1] - z.loc["after", 5]) / z.loc["after", 1]).mean())
    counts = [
        sum(value > line for value in z_statistics(table.matrix[rows], corpus.labels[rows], 2).z.ravel())
        for rows in sets.values()
    ]
    assert counts[1] > 0 and above == counts[0] / counts[1]
    assert np.isnan(filtered.suppression(table, corpus.labels, line=99, **options)[2])


def test_another_seed_is_another_order_and_the_same_seed_the_same(corpus, cut):
    options = {"line": 1.5, "k": 2, "batch_size": 10, "n_classes": 2}
    one, same, other = (filtered.suppression(cut[0], corpus.labels, seed=seed, **options) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_composition_counts_what_is_there(corpus):
    rows = filtered.composition(corpus, {"all": np.ones(120, bool), "contradictions": corpus.labels == 1})
    assert rows["n"].tolist() == [120, 60] and rows["premises"].tolist() == [1, 1]
    assert rows["share of contradiction"].tolist() == [0.5, 1]
    assert rows["words of the hypothesis"][1] == 5


def test_gains_seed_by_seed():
    row = {"title": "test", "n": 100, "rule": "argmax"}
    scores = {"z-filter": (0.8, 0.7), "random twin": (0.7, 0.65)}
    ours = [{**row, "condition": name, "seed": seed, "accuracy": right}
            for name, each in scores.items() for seed, right in enumerate(each)]  # fmt: skip
    ours.append({**ours[0], "rule": "sum", "accuracy": 0.1})
    models = ("encoder, pair", "n-grams")
    base = [{**row, "model": model, "seed": seed, "accuracy": 0.9} for model in models for seed in range(3)]
    base.append({**base[0], "title": "another"})
    both = filtered.with_all_pairs(pd.DataFrame(ours), pd.DataFrame(base))
    assert both["condition"].tolist() == ["all pairs"] * 2 + ["z-filter"] * 2 + ["random twin"] * 2
    gains = seed_gains(both, "z-filter").set_index("other")
    assert set(gains.index) == {"all pairs", "random twin"}
    twin = gains.loc["random twin"]
    assert twin["value"] == pytest.approx(0.075) and (twin["n"], twin["seeds"]) == (100, 2)
    assert twin["low"] < 0.075 < twin["high"]
