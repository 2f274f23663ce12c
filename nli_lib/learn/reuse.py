"""What other chapters have trained, asked once more: models of folds on other texts."""

import numpy as np
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.learn.cross import fold_specs
from nli_lib.learn.predict import predict
from nli_lib.learn.stored import stored
from nli_lib.spec import RunSpec


def cross_predict(spec: RunSpec, fold: ArrayLike, others: Corpus, of: ArrayLike) -> np.ndarray:
    """Logits (K, C) float32 of texts that belong to pairs of a cross-scored corpus, such as their revisions.

    Each by the model that did not train on the pair: fold (N,) and spec are what `learn.cross.cross_score` was called
    with, of (K,) the pair that each of the K texts of ``others`` belongs to. Raises `StoreError` where that call is yet
    to be made.
    """
    fold, of = np.asarray(fold), np.asarray(of, dtype=int)
    if len(of) != len(others):
        raise ValueError(f"{len(of)} pairs for {len(others)} texts: say of each which pair it belongs to")
    logits = np.empty((len(others), len(others.classes)), np.float32)
    for at in np.unique(fold[of]):
        here = fold[of] == at
        run = stored(next(fold_specs(spec, fold, [int(at)])).model_dump_json())
        logits[here] = predict(run, others[here])
    return logits
