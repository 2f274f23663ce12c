"""Orders of review for labels whose pairs no model learnt from. Alone: pytest tests/measure/test_suspicion.py"""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from scipy.stats import rankdata

from nli_lib.measure.consensus import COUNTS, FIVE, MEMBERS, MODELS, VOTES, combine, suspicion

LOGITS = np.random.default_rng(0).normal(size=(4, 30, 3))
LABELS = np.arange(30) % 3


def test_every_order_is_high_where_the_models_contradict():
    sure = np.zeros((2, 3, 3))
    sure[:, :, 0] = [4, 0, -4]  # the label 0 is certain, open, excluded
    for name, scores in suspicion(sure, [0, 0, 0]).items():
        assert name.startswith("variability") or ((np.diff(scores) >= 0).all() and scores[2] > scores[0]), name


def test_by_hand():
    found, p = suspicion(LOGITS, LABELS), softmax(LOGITS, axis=-1)
    at = np.arange(30)
    others = np.where(np.eye(3, dtype=bool)[LABELS], -np.inf, p[-1])
    assert found["low p(label)"] == pytest.approx(-p[-1, at, LABELS])
    assert found["low normalised margin"] == pytest.approx(others.max(axis=1) - p[-1, at, LABELS])
    assert found["low confidence (data map)"] == pytest.approx(-p[:, at, LABELS].mean(axis=0))
    assert found["gap"] == pytest.approx(LOGITS[-1].max(axis=1) - LOGITS[-1, at, LABELS])


def test_combinations_by_hand():
    scores, count = pd.DataFrame(suspicion(LOGITS, LABELS)), 1 + np.arange(30) % 4
    found = combine(scores, count=count, five=np.full(30, 0.4))
    models = np.mean([rankdata(scores[name]) / 30 for name in MEMBERS], axis=0)
    assert found[MODELS] == pytest.approx(models)
    assert found[FIVE] == pytest.approx((models + 0.6) / 2)
    assert found[VOTES].tolist() == (LOGITS[-1].argmax(axis=1) != LABELS).tolist()
    order = np.argsort(-found[COUNTS])
    assert (np.diff(count[order]) >= 0).all()  # fewer annotators first
    assert (np.diff(models[order][count[order] == 1]) <= 0).all()
