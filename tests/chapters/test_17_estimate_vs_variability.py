"""Estimate and variability. Run alone: pytest tests/chapters/test_17_estimate_vs_variability.py"""

from types import SimpleNamespace

import numpy as np
import pytest
from cells import measured

from nli_lib.corpora import load
from nli_lib.learn import fit, predict
from nli_lib.measure.dynamics import max_variability, variability

PAPER, STATISTIC, MODEL = (
    "max variability, pair held out (the paper's)",
    "max variability, trained on the pair",
    "variability, pair held out",
)
SEED, RANDOM = "variability, trained on the pair, another seed", "max variability, another pair held out"


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """What the measuring cells leave where each pair wavers by an amount of its own, in training after training."""
    corpus = load("planted", "train", limit=1_500)
    random = np.random.default_rng(0)
    wavers = random.uniform(0, 2, len(corpus))[None, :, None]

    def train(spec, pairs, keep=None):
        noise = random.normal(0, 0.3, (5, len(corpus), 3))
        moves = random.normal(0, 1, (5, 1, 1)) * np.eye(3)[corpus.labels]
        return SimpleNamespace(logits=noise + wavers * moves)

    monkeypatch.setattr(fit, "fit", train)
    monkeypatch.setattr(predict, "predict_epochs", lambda run, part: run.logits[:, np.isin(corpus.uid, part.uid)])
    return lambda seeds: measured("17_estimate_vs_variability", tmp_path, monkeypatch, corpus=corpus, SEEDS=seeds)


def test_each_stand_in_is_what_it_says(chapter):
    made = chapter(3)
    found, truth, labels = made.stand_ins, made.truth, made.part.labels
    assert np.array_equal(truth[2], variability(made.learnt[2], labels))
    assert np.array_equal(found[PAPER][1], max_variability(made.unseen[1]))
    assert np.array_equal(found[STATISTIC][0], max_variability(made.learnt[0]))
    assert np.array_equal(found[MODEL][0], variability(made.unseen[0], labels))
    assert np.array_equal(found[SEED], truth[[1, 2, 0]])
    assert np.array_equal(np.sort(found[RANDOM], axis=1), np.sort(found[PAPER], axis=1))
    assert (found[STATISTIC] >= truth - 1e-12).all()


def test_what_is_planted_is_found_and_a_random_pair_tells_nothing(chapter):
    made = chapter(3)
    table = made.study.table("correlations")
    assert table["kind"].tolist() == ["Pearson"] * 5 + ["Spearman"] * 5
    assert set(table["n"]) == {len(set(made.part.premise))} and set(table["seeds"]) == {3}
    found = table[table["kind"] == "Pearson"].set_index("title")
    assert found.loc[PAPER, "low"] > 0.3
    assert found.loc[STATISTIC, "value"] > found.loc[PAPER, "value"]
    assert found.loc[RANDOM, "low"] < 0 < found.loc[RANDOM, "high"]
    assert made.study.claimed("wanli-appa-estimate-follows-variability").value == pytest.approx(
        found.loc[PAPER, "value"], abs=1e-5
    )


def test_one_training_has_no_other_seed(chapter):
    assert chapter(1).study.table("correlations")["title"].tolist() == [PAPER, STATISTIC, MODEL, RANDOM] * 2
