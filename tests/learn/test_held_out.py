"""Pairs that are watched and not learnt from. Alone: pytest tests/learn/test_held_out.py"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nli_lib.learn.fit import Loop, fit
from nli_lib.learn.predict import ClassifyOthers, predict, watch


def test_held_out_pairs_move_no_weight(make_spec, corpus):
    """Other labels of the held-out pairs leave every logit of every pair as it is."""
    held_out = np.arange(len(corpus)) % 5 == 0
    other = replace(corpus, table=corpus.table.assign(label=np.where(held_out, 2 - corpus.labels, corpus.labels)))
    objective = ClassifyOthers(held_out)
    weights = []
    for each in (corpus, other):
        loop = Loop(make_spec(objective=objective.name), each, objective=objective)
        for rows in loop.start_epoch(0):
            loop.step(rows)
        weights.append([parameter.detach().clone() for parameter in loop.finish().parameters()])
    assert all(torch.equal(one, two) for one, two in zip(*weights, strict=True))


def test_the_loss_is_the_mean_of_those_that_are_learnt_from(make_spec, corpus):
    held_out = np.arange(len(corpus)) >= 3
    objective = ClassifyOthers(held_out)
    loop = Loop(make_spec(objective=objective.name), corpus, objective=objective)
    loop.model.eval()
    loss, logits = loop._forward(loop.arrays, np.arange(6))
    plain = torch.nn.functional.cross_entropy(logits[:3], torch.tensor(corpus.labels[:3]))
    torch.testing.assert_close(loss, plain)
    assert loop._forward(loop.arrays, np.arange(3, 6))[0].item() == 0


@pytest.mark.usefixtures("runs")
def test_watched_after_every_epoch_and_apart_from_their_premises(make_spec, corpus):
    first = corpus.premise == corpus.premise[0]
    held_out = np.arange(len(corpus)) == 0
    watched, logits = watch(make_spec(epochs=2), corpus, held_out)
    assert logits.shape == (2, 1, 3) and np.isfinite(logits).all()
    keep = ~first | held_out
    objective = ClassifyOthers(held_out[keep])
    spec = make_spec(epochs=2, subset="other premises", objective=objective.name)
    run = fit(spec, corpus, keep, objective=objective)
    assert run.folder == watched.folder and len(run.labels) == keep.sum()
    assert np.array_equal(run.logits[:, held_out[keep]], logits)
    assert np.isnan(run.logits[:, ~held_out[keep]]).all()  # they are learnt from, and nobody asks
    assert logits[-1] == pytest.approx(predict(run, corpus[held_out]), abs=1e-4)


def test_a_mask_of_another_corpus_is_refused(make_spec, corpus):
    objective = ClassifyOthers([True, False])
    with pytest.raises(ValueError, match="2 entries for"):
        Loop(make_spec(objective=objective.name), corpus, objective=objective)
