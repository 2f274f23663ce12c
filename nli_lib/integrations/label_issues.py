"""cleanlab's Datalab on a corpus, and what it found as a table beside the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.integrations.dynamics import IntegrationError

if TYPE_CHECKING:
    from cleanlab import Datalab


def datalab(
    corpus: Corpus, pred_probs: ArrayLike | None = None, *, features: ArrayLike | None = None, **options: Any
) -> Datalab:
    """A `cleanlab.Datalab` of the corpus in which issues were looked for.

    pred_probs  (N, C) out of sample, columns in the order of the corpus's classes: what `learn.cross_score` gives after
                a softmax, or `cleanlab.npz` of `nli-study suspects`
    features    (N, D) embeddings, for near duplicates and outliers
    options     go to `Datalab.find_issues`: issue_types={"label": {}}

    Labels are given as numbers: names would be put into alphabetical order, and the columns of the probabilities would
    then belong to other classes. For the same reason every class must occur. Raises `IntegrationError` otherwise, and
    where cleanlab is not installed.
    """
    try:
        from cleanlab import Datalab
    except ImportError:
        raise IntegrationError("cleanlab is not installed: pip install cleanlab datasets") from None
    given: dict[str, np.ndarray] = {}
    if pred_probs is not None:
        given["pred_probs"] = _probabilities(corpus, pred_probs)
    if features is not None:
        given["features"] = np.asarray(features)
        if given["features"].ndim != 2 or len(given["features"]) != len(corpus):
            raise IntegrationError(f"features have shape {given['features'].shape} for {len(corpus):,} rows: (rows, D)")
    if not given:
        raise IntegrationError("give pred_probs, features, or both: there is nothing to look at")
    columns = {"uid": corpus.uid, "premise": corpus.premise, "hypothesis": corpus.hypothesis}
    table = {name: values.astype(str).tolist() for name, values in columns.items()}
    lab = Datalab({**table, "label": corpus.labels.tolist()}, label_name="label", verbosity=0)
    lab.find_issues(**given, **options)
    return lab


def issues(lab: Datalab, corpus: Corpus) -> pd.DataFrame:
    """What a Datalab found, N rows in the corpus's order: uid, texts, gold and predicted (names), its columns.

    is_<kind>_issue says which rows have it, <kind>_score how badly (0-1, low = worse).
    """
    found = lab.get_issues().reset_index(drop=True)
    if len(found) != len(corpus):
        raise IntegrationError(f"the Datalab has {len(found):,} rows, {corpus.name} {len(corpus):,}: give its corpus")
    names = np.array(corpus.classes, dtype=object)
    table = corpus.table[["uid", "premise", "hypothesis"]].assign(gold=names[corpus.labels])
    if "is_label_issue" in found:
        table["predicted"] = names[lab.get_issues("label")["predicted_label"].to_numpy(np.int64)]
    return table.join(found)


def _probabilities(corpus: Corpus, pred_probs: ArrayLike) -> np.ndarray:
    values, wanted = np.asarray(pred_probs, dtype=np.float64), (len(corpus), len(corpus.classes))
    if values.shape != wanted:
        raise IntegrationError(f"pred_probs have shape {values.shape}: {wanted} is needed, a row for each pair")
    wrong = np.flatnonzero(~((values >= 0).all(axis=1) & (np.abs(values.sum(axis=1) - 1) <= 1e-3)))
    if wrong.size:
        raise IntegrationError(f"pred_probs of row {corpus.uid[wrong[0]]!r} are no probabilities that add up to 1")
    if absent := [name for name, count in corpus.counts.items() if not count]:
        raise IntegrationError(f"{corpus.name} has no row of {', '.join(absent)}: cleanlab would mix the columns up")
    return values
