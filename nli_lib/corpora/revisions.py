"""Revisions of a corpus's own pairs: which texts of a set of counterfactuals began as one of them."""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.corpora.corpus import Corpus, NotAtHandError
from nli_lib.corpora.counterfactuals import Counterfactuals, load_pairs


def revisions_of(
    corpus: Corpus, name: str, split: str, *, data_dir: str | Path | None = None, originals: int = 500
) -> tuple[Corpus, NDArray[np.int64]] | None:
    """The K revisions of pairs of ``corpus`` and the place (K,) in it of the pair that each revises; None without any.

    name, split, originals  of the set, as `corpora.counterfactuals.load_pairs` takes them; a set that is not at hand
                            has no revisions
    """
    try:
        return matched(corpus, load_pairs(name, split, data_dir, originals=originals))
    except NotAtHandError:
        return None


def matched(corpus: Corpus, pairs: Counterfactuals) -> tuple[Corpus, NDArray[np.int64]] | None:
    """The same for a set that is loaded. An original is a pair of the corpus where both texts are equal, but for upper
    and lower case and white space at the ends; of equal pairs of the corpus it is the first."""
    place = pd.Series(np.arange(len(corpus)), _texts(corpus))
    place = place[~place.index.duplicated()]
    of = place.reindex(_texts(pairs.original)).to_numpy()[pairs.origin]
    known = np.isfinite(of)
    return (pairs.revised[known], of[known].astype(int)) if known.any() else None


def _texts(corpus: Corpus) -> pd.Index:
    sides = [pd.Series(side, dtype=str).str.strip().str.lower() for side in (corpus.premise, corpus.hypothesis)]
    return pd.Index(sides[0] + "\t" + sides[1])
