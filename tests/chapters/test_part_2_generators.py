"""Chapters 22 and 23: what trained generators write, and what a mask covers. Alone: pytest <this file>"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cells import ran
from scipy import sparse

from nli_lib.corpora.corpus import LABELS
from nli_lib.corpora.planted import ARTIFACT_WORDS, make_split
from nli_lib.measure import giveaways
from nli_lib.measure.features import Features
from nli_lib.measure.giveaways import flagged_words, joint_features
from nli_lib.select.zfilter import z_filter

CLASSES, DEBIASED = np.array(LABELS, dtype=object), "23_debiased_generator"


def pairs_of(corpus, generator, labels=None):
    table = corpus.table[["premise", "hypothesis", "label"]]
    return table.assign(generator=generator, seed=0, **({} if labels is None else {"label": labels}))


def test_margins_by_hand():
    corpus = make_split("train", 2, 0)
    own_first = zip([[-1.0, -3, -2], [-3, -1, -1]], corpus.labels, strict=True)
    run = SimpleNamespace(logits=np.stack([np.roll(row, label) for row, label in own_first])[None])
    generators = {(0.5, 7): SimpleNamespace(spec=SimpleNamespace(epochs=4))}
    found = ran("22_generator", "c4bfefb0048e", corpus=corpus, found={(0.5, 7): run}, generators=generators)
    names = ["epoch", "accuracy", "margin", "own", "unlikelihood", "seed"]
    assert found.tables["margins"][names].to_numpy().tolist() == [[4, 0.5, (1.5 - 2) / 2, -2, 0.5, 7]]


# ---------------------------------------------------------------- 23: the mask


def test_the_mask_in_a_table_and_in_texts():
    corpus = make_split("train", 300, 0)
    table, labels = joint_features(corpus, corpus.table[:0])
    kept = z_filter(table.matrix, labels, names=table.names, n_classes=3)
    flagged = flagged_words(corpus.premise, corpus.hypothesis, kept.hits, table.names)
    given = {"corpus": corpus, "labels": labels, "filtered": {3: kept}, "flagged": {3: flagged}, "seeds": [3]}
    cells = ran(DEBIASED, "86bbf097225f", "marked-texts", **given)
    found = cells.tables["mask"].set_index("label")
    assert list(found.index) == [*sorted(LABELS), "all"] and found["seed"].eq(3).all()
    assert found.loc["all", "pairs"] == (~kept.keep).sum() == found["pairs"].iloc[:-1].sum()
    assert 0 < found.loc["all", "premise"] < found.loc["all", "hypothesis"] <= 1
    assert found.loc["all", "whole"] == pytest.approx(flagged.whole[~kept.keep].mean())
    for at in np.flatnonzero(~kept.keep):
        premise, hypothesis = (cells.bracketed(side, at, flagged) for side in ("premise", "hypothesis"))
        assert "[" in premise + hypothesis  # each has a marked word
        assert corpus.hypothesis[at].startswith(hypothesis.replace("[", "").replace("]", "")[:150])
        if flagged.whole[at] and len(hypothesis) < 150:
            assert hypothesis.count("[") == len(corpus.hypothesis[at].split())
    assert len(cells.tables["marked"]) == 6 and cells.tables["marked"]["reason"].ne("kept").all()


# ---------------------------------------------------------------- 23: what is left of the artifacts


def features_left(corpus, pairs):
    """The tables `strength` and `kept` of a corpus and of samples of training 0."""
    table, labels = giveaways.joint_features(corpus, pairs[:0])
    settings = {"k": 20, "batch_size": 10, "n_classes": 3}
    given = {"table": table, "labels": labels, "n_classes": 3, "settings": settings, "classes": CLASSES}
    return ran(DEBIASED, "b2d2e3105324", "f92712c2f6d7", corpus=corpus, pairs=pairs, k=20, batch=10, **given).tables


def test_features_that_are_planted_are_found_in_samples_that_have_them_and_not_in_others():
    """Samples that are a second draw of the planted corpus keep its ties; those without artifacts have lost them."""
    none = dict.fromkeys(["artifact", "overlap", "length", "giveaway"], 0.0)
    biased, plain = make_split("train", 700, 1), make_split("train", 600, 1, **none)
    pairs = pd.concat([pairs_of(biased, "biased"), pairs_of(plain, "plain")], ignore_index=True)
    tables = features_left(make_split("train", 800, 0), pairs)
    z = tables["strength"].groupby("set")["z"].mean()
    assert min(z["corpus"], z["biased"]) > 3 * abs(z["plain"])
    kept = tables["kept"].set_index("set")
    assert list(kept.index) == ["corpus", "biased", "plain"] and kept["n"].eq(600).all()  # cut to the smallest
    assert kept.loc["plain", "share"] > kept.loc["biased", "share"]


def test_a_feature_that_a_set_does_not_hold_gives_nothing_away(monkeypatch):
    matrix, labels = np.array([[1, 0], [1, 1], [1, 0], [1, 0]]), np.array([0, 2, 0, 0])

    def made(corpus, pairs):
        n = len(corpus) + len(pairs)
        return Features(sparse.csr_array(matrix[:n]), np.array(["a", "b"], object)), labels[:n]

    monkeypatch.setattr(giveaways, "joint_features", made)
    corpus = make_split("train", 2, 0)
    found = features_left(corpus, pairs_of(corpus, "one"))["strength"].set_index(["set", "label", "name"])
    one = (1 / 2 - 1 / 3) / (2 / 9 / 2) ** 0.5
    wanted = {("corpus", "entailment", "a"): [one, 2, 0.5], ("corpus", "contradiction", "b"): [2**0.5, 1, 1]}
    wanted |= {("one", "entailment", "a"): [2, 2, 1], ("one", "contradiction", "b"): [0, 0, 0]}
    for key, row in wanted.items():
        assert found.loc[key, ["z", "n", "share"]].tolist() == pytest.approx(row, abs=1e-4)


def planted_ties(pairs, corpus, name="planted"):
    study = SimpleNamespace(corpus_name=name)
    return ran(DEBIASED, "9ff885dd8a68", study=study, corpus=corpus, pairs=pairs).tables["planted"]


def test_planted_ties():
    corpus = make_split("train", 900, 0)
    shuffled = pairs_of(corpus, "shuffled", np.random.default_rng(0).permutation(corpus.labels))
    found = planted_ties(shuffled, corpus).set_index("generator")
    assert found.loc["corpus", "own"] > 0.7 and found["chance"].round(2).eq(0.33).all()
    assert abs(found.loc["shuffled", "own"] - 1 / 3) < 0.08
    assert list(planted_ties(shuffled, corpus, "snli")) == ["generator", "n", "own", "chance"]
    nothing = SimpleNamespace(table=corpus.table.assign(hypothesis="nothing"))
    assert planted_ties(shuffled.assign(hypothesis="nothing"), nothing).empty


def test_planted_ties_by_hand():
    word, (entailment, neutral, contradiction) = ARTIFACT_WORDS[1][0], range(3)
    rows = [("one", word, neutral), ("one", word, entailment), ("one", "", neutral), ("one", "", neutral)]
    pairs = pd.DataFrame([*rows, ("other", word, contradiction)], columns=["generator", "hypothesis", "label"])
    found = planted_ties(pairs, SimpleNamespace(table=pairs[:1])).set_index("generator")
    # the first generator intends neutral, which is the word's label, in three pairs of four, the other one never
    assert found.loc["one"].tolist() == [2, 0.5, 0.75] and found.loc["other"].tolist() == [1, 0, 0]
