"""A corpus as a DataFrame or a Hugging Face dataset with what was measured beside it, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.integrations.dynamics import IntegrationError
from nli_lib.select.selection import Selection

if TYPE_CHECKING:
    from datasets import Dataset


def to_pandas(corpus: Corpus, selection: Selection | None = None, **scores: ArrayLike) -> pd.DataFrame:
    """The corpus with its labels as names, then kept and reason of a selection, then the scores, each (N,).

    A score may not have the name of a column that is there.
    """
    return _beside(corpus, selection, scores).assign(label=np.array(corpus.classes, dtype=object)[corpus.labels])


def to_dataset(corpus: Corpus, selection: Selection | None = None, **scores: ArrayLike) -> Dataset:
    """The same as a Hugging Face dataset, its labels a `ClassLabel` in the order of the corpus's classes."""
    return replace(corpus, table=_beside(corpus, selection, scores)).to_dataset()


from_pandas = Corpus.from_dataset  # takes a DataFrame or a Hugging Face dataset


def _beside(corpus: Corpus, selection: Selection | None, scores: Mapping[str, ArrayLike]) -> pd.DataFrame:
    found = {name: np.asarray(values) for name, values in scores.items()}
    if selection is not None:
        found = {"kept": selection.keep, "reason": selection.reason, **found}
    for name, values in found.items():
        if name in corpus.table:
            raise IntegrationError(f"{corpus.name} has a column {name!r}: give the score another name")
        if values.shape != (len(corpus),):
            raise IntegrationError(f"{name} has shape {values.shape} for {len(corpus):,} rows: give one value each")
    return corpus.table.assign(**found)
