"""Estimate and variability. Run alone: pytest tests/chapters/test_17_estimate_vs_variability.py"""

from types import SimpleNamespace

import numpy as np
import pytest
from cells import measured

from nli_lib.corpora import load
from nli_lib.learn import fit, predict
from nli_lib.measure.dynamics import max_variability, variability


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """What the measuring cells leave where each pair wavers by an amount of its own, in training after training."""
    corpus = load("planted", "train", limit=1_500)
    random = np.random.default_rng(0)
    wavers = random.uniform(0, 2, len(corpus))[None, :, None]

    def train(spec, pairs, keep=None):
        noise = random.normal(0, 0.3, (5, len(corpus), 3))
        moves = np.array([-1, 0.5, 1, -0.5, 0])[:, None, None] * np.eye(3)[corpus.labels]
        return SimpleNamespace(logits=noise + wavers * moves)

    monkeypatch.setattr(fit, "fit", train)
    monkeypatch.setattr(predict, "predict_epochs", lambda run, part: run.logits[:, np.isin(corpus.uid, part.uid)])
    return lambda seeds: measured("17_estimate_vs_variability", tmp_path, monkeypatch, corpus=corpus, SEEDS=seeds)


def test_each_stand_in_is_what_it_says_and_what_is_planted_is_found(chapter):
    made = chapter(3)
    (paper, statistic, model, seed, random), table = made.stand_ins, made.study.table("correlations")
    found, truth, labels = made.stand_ins, made.truth, made.part.labels
    assert np.array_equal(truth[2], variability(made.learnt[2], labels))
    assert np.array_equal(found[paper][1], max_variability(made.unseen[1]))
    assert np.array_equal(found[statistic][0], max_variability(made.learnt[0]))
    assert np.array_equal(found[model][0], variability(made.unseen[0], labels))
    assert np.array_equal(found[seed], truth[[1, 2, 0]]) and "another seed" in seed
    assert np.array_equal(np.sort(found[random], axis=1), np.sort(found[paper], axis=1))
    assert (found[statistic] >= truth - 1e-12).all()
    assert table["kind"].tolist() == ["Pearson"] * 5 + ["Spearman"] * 5 and table["title"].tolist() == [*found] * 2
    assert set(table["n"]) == {len(set(made.part.premise))} and set(table["seeds"]) == {3}
    low, value, high = table[:5].set_index("title")[["low", "value", "high"]].to_dict("series").values()
    assert low[paper] > 0.3 and low[random] < 0 < high[random] and value[statistic] > value[paper]
    claimed = made.study.claimed("wanli-appa-estimate-follows-variability")
    assert claimed.value == pytest.approx(value[paper], abs=1e-5)


def test_one_training_has_no_other_seed(chapter):
    titles = chapter(1).study.table("correlations")["title"]
    assert len(titles) == 8 and not titles.str.contains("another seed").any()
