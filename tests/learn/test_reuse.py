"""What is trained already, asked once more. Alone: pytest tests/learn/test_reuse.py"""

import numpy as np
import pytest

from nli_lib.learn.fit import fit
from nli_lib.learn.predict import cross_predict, cross_score, predict
from nli_lib.select.selection import folds
from nli_lib.store import StoreError

pytestmark = pytest.mark.usefixtures("runs")


def test_each_text_is_predicted_by_the_model_that_did_not_train_on_its_pair(make_spec, corpus):
    fold, spec = folds(corpus.labels, count=3, seed=0), make_spec(epochs=1, capture="train")
    logits = cross_score(spec, corpus, fold, jobs=1)
    assert np.allclose(cross_predict(spec, fold, corpus, np.arange(50)), logits)
    of = np.array([4, 4, 9, 30])
    other = corpus[np.array([1, 2, 3, 8])]
    found = cross_predict(spec, fold, other, of)
    for at in range(3):
        run = fit(spec.model_copy(update={"subset": f"by hand {at}"}), corpus[fold != at])
        here = fold[of] == at
        if here.any():
            assert np.array_equal(found[here], predict(run, other[here]))


def test_nothing_is_trained(make_spec, corpus, runs):
    with pytest.raises(StoreError, match="is not in"):
        cross_predict(make_spec(epochs=1), np.arange(50) % 2, corpus, np.arange(50))
    assert not list(runs.glob("*"))


def test_each_text_names_its_pair(make_spec, corpus):
    with pytest.raises(ValueError, match="3 pairs for 50 texts"):
        cross_predict(make_spec(), np.arange(50) % 2, corpus, [0, 1, 2])
