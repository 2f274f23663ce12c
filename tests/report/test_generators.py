"""What samples of generators are asked. Alone: pytest tests/report/test_generators.py"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nli_lib.corpora.planted import ARTIFACT_WORDS, make_split
from nli_lib.measure.features import Features, top_features, z_statistics
from nli_lib.measure.giveaways import flagged_words
from nli_lib.report.generators import (
    accepted,
    agreement,
    biased_in,
    equal_sets,
    joint_features,
    label_margins,
    marked_texts,
    mask_table,
    planted_ties,
)
from nli_lib.select.zfilter import z_filter


def pairs_of(corpus, generator):
    table = corpus.table[["premise", "hypothesis", "label"]]
    return table.assign(generator=generator)


def test_agreement_by_hand():
    pairs = pd.DataFrame({"label": [0, 0, 1, 2], "kind": ["a", "a", "a", "b"]})
    found = agreement(pairs, [0, 1, 1, 2], ["kind"]).set_index("kind")
    assert found["n"].tolist() == [3, 1] and found["agree"].tolist() == [2, 1]
    assert found.loc["a", "share"] == pytest.approx(2 / 3)
    # intended 2/3, 1/3 of labels 0, 1; predicted 1/3, 2/3: at random 2/9 + 2/9
    assert found.loc["a", "chance"] == pytest.approx(4 / 9) and found.loc["a", "most"] == pytest.approx(2 / 3)
    assert (found["low"] < found["share"] + 1e-9).all()


def test_margins_by_hand():
    logits = np.array([[[-1.0, -3, -2], [-4, -2, -3]], [[-3.0, -1, -1], [-2, -1, -3]]])
    found = label_margins(logits, [0, 1])
    assert found["epoch"].tolist() == [1, 2] and found["accuracy"].tolist() == [1.0, 0.5]
    assert found["margin"].tolist() == pytest.approx([(1.5 + 1.5) / 2, (-2 + 1.5) / 2])
    assert found["own"].tolist() == pytest.approx([-1.5, -2.0])


def test_features_that_are_planted_are_found_in_samples_that_have_them_and_not_in_others():
    """Samples that are a second draw of the planted corpus keep its ties; those without artifacts have lost them."""
    corpus = make_split("train", 600, 0)
    none = dict.fromkeys(["artifact", "overlap", "length", "giveaway"], 0.0)
    biased, plain = make_split("train", 600, 1), make_split("train", 600, 1, **none)
    pairs = pd.concat([pairs_of(biased, "biased"), pairs_of(plain, "plain")], ignore_index=True)
    table, labels = joint_features(corpus, pairs)
    assert table.matrix.shape[0] == len(labels) == 1800
    sets = equal_sets(corpus, pairs, "generator")
    assert {name: len(at) for name, at in sets.items()} == {"corpus": 600, "biased": 600, "plain": 600}
    tops = top_features(z_statistics(table.matrix[:600], labels[:600], 3), table.names)
    z = biased_in(table, labels, sets, tops, n_classes=3).groupby("set")["z"].mean()
    assert min(z["corpus"], z["biased"]) > 3 * abs(z["plain"])
    kept = accepted(table, labels, sets, n_classes=3).set_index("set")["share"]
    assert kept["plain"] > kept["biased"]


def test_a_feature_that_a_set_does_not_hold_gives_nothing_away():
    table = Features(sparse.csr_array(np.array([[1, 0], [1, 1]])), np.array(["a", "b"], object))
    tops = pd.DataFrame({"label": [0, 2], "name": ["a", "b"]})
    found = biased_in(table, [0, 2], {"one": np.array([0]), "both": np.array([0, 1])}, tops, n_classes=3)
    assert found["n"].tolist() == [1, 0, 2, 1]
    assert found["z"].tolist() == pytest.approx([2**0.5, 0, (1 / 2 - 1 / 3) / (2 / 9 / 2) ** 0.5, 2**0.5])
    assert found["share"].tolist() == [1, 0, 0.5, 1]


def test_no_samples_at_all_leave_the_corpus():
    corpus = make_split("train", 60, 0)
    table, labels = joint_features(corpus, pairs_of(corpus, "x")[:0])
    assert table.matrix.shape[0] == 60 and np.array_equal(labels, corpus.labels)


def test_the_mask_in_a_table_and_in_texts():
    corpus = make_split("train", 300, 0)
    table, labels = joint_features(corpus, pairs_of(corpus, "x")[:0])
    kept = z_filter(table.matrix, labels, names=table.names, n_classes=3)
    flagged = flagged_words(corpus.premise, corpus.hypothesis, kept.hits, table.names)
    found = mask_table(corpus, ~kept.keep, flagged).set_index("label")
    assert found.loc["all", "pairs"] == (~kept.keep).sum() == found["pairs"].iloc[:-1].sum()
    assert 0 < found.loc["all", "premise"] < found.loc["all", "hypothesis"] <= 1
    assert found.loc["all", "whole"] == pytest.approx(flagged.whole[~kept.keep].mean())
    rows = np.flatnonzero(~kept.keep)
    texts = marked_texts(corpus, rows, flagged, kept.reason)
    assert (texts["premise"] + texts["hypothesis"]).str.contains("[", regex=False).all()  # each has a marked word
    for at, text in zip(rows, texts["hypothesis"], strict=True):
        bare = text.replace("[", "").replace("]", "")
        assert corpus.hypothesis[at].startswith(bare[:150])
        if flagged.whole[at] and len(text) < 150:
            assert text.count("[") == len(corpus.hypothesis[at].split())


def test_planted_ties():
    corpus = make_split("train", 900, 0)
    pairs = pd.concat([pairs_of(corpus, "tied"), pairs_of(corpus, "shuffled")], ignore_index=True)
    shuffled = pairs["generator"] == "shuffled"
    pairs.loc[shuffled, "label"] = np.random.default_rng(0).permutation(corpus.labels)
    found = planted_ties(pairs, ["generator"]).set_index("generator")
    assert found.loc["tied", "own"] > 0.7 and found["chance"].round(2).eq(0.33).all()
    assert abs(found.loc["shuffled", "own"] - 1 / 3) < 0.08
    assert planted_ties(pairs.assign(hypothesis="nothing"), ["generator"]).empty


def test_planted_ties_by_hand():
    word, (entailment, neutral, contradiction) = ARTIFACT_WORDS[1][0], range(3)
    rows = [("one", word, neutral), ("one", word, entailment), ("one", "", neutral), ("one", "", neutral)]
    pairs = pd.DataFrame([*rows, ("other", word, contradiction)], columns=["generator", "hypothesis", "label"])
    found = planted_ties(pairs, ["generator"]).set_index("generator")
    # the first generator intends neutral, which is the word's label, in three pairs of four, the other one never
    assert found.loc["one"].tolist() == [2, 0.5, 0.75] and found.loc["other"].tolist() == [1, 0, 0]
