"""What WANLI's exemplars and their neighbours have in common, beside the same of random pairs."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.corpus import Corpus
from nli_lib.measure.similarity import shared_words, similarity
from nli_lib.stats import means_of, over_trainings

NEIGHBOURS, RANDOM = "four nearest neighbours", "random twin: four random pairs"
EXEMPLARS, TWIN = "exemplars", "random twin"
WORDS, SENTENCES, ELSEWHERE = "words in common", "sentence similarity", "cosine in another training"
GROUPS = ("genre", "family")  # columns that say of what kind a pair is: MultiNLI's, the planted corpus's


def likeness(corpus: Corpus, seeds: ArrayLike, others: ArrayLike, vectors: ArrayLike | None) -> pd.DataFrame:
    """How alike each exemplar and its companions are: one row an exemplar, indexed by its position, and one column a
    measure, which is a mean over the k companions.

    seeds     positions (S,); others: positions of the companions (S, k)
    vectors   (N, D) first-token vectors of a training other than the one that chose the companions; None: no column

    `WORDS`: Jaccard index of the words of the two pairs, both texts together. `SENTENCES`: cosine of their sentence
    embeddings. `ELSEWHERE`: cosine of ``vectors``. "same genre" or "same family": share, where the corpus has such a
    column.
    """
    seeds, others = np.asarray(seeds)[:, None], np.asarray(others)
    texts = (pd.Series(corpus.premise) + " " + pd.Series(corpus.hypothesis)).to_numpy(dtype=object)
    one, other = np.broadcast_arrays(seeds, others)
    sentences = similarity(texts[one.ravel()], texts[other.ravel()]).reshape(others.shape)
    found = {WORDS: shared_words(texts, one, other), SENTENCES: sentences}
    if vectors is not None:
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        found[ELSEWHERE] = np.einsum("skd,skd->sk", unit[one], unit[other])
    for name in [name for name in GROUPS if name in corpus.table]:
        kind = pd.factorize(corpus.table[name])[0]
        found[f"same {name}"] = (kind[one] == kind[other]) & (kind[one] >= 0)
    means = {name: values.mean(axis=1) for name, values in found.items()}
    return pd.DataFrame(means, index=seeds[:, 0])


def spread(values: Sequence[pd.Series], size: int) -> NDArray[np.float64]:
    """Values of chosen pairs, one series a training indexed by position, as (T, size), NaN for the others."""
    table = np.full((len(values), size), np.nan)
    for row, series in zip(table, values, strict=True):
        row[series.index] = series
    return table


def estimate_table(parts: dict[str, Sequence[pd.DataFrame]], groups: np.ndarray) -> pd.DataFrame:
    """The mean of every column with its interval over trainings and groups: title, condition, and those of Estimate.

    parts   condition -> one table a training, indexed by position, with the same columns
    groups  (N,) of all examples, such as premises
    """
    rows = []
    for condition, tables in parts.items():
        for name in tables[0]:
            values = spread([table[name].astype(float) for table in tables], len(groups))
            found = over_trainings(means_of(values), len(groups), groups=groups)
            rows.append({"title": name, "condition": condition, **found._asdict()})
    return pd.DataFrame(rows)


def difference(one: Sequence[pd.Series], other: Sequence[pd.Series], size: int) -> Callable[[np.ndarray], np.ndarray]:
    """For `over_trainings`: mean of each training's values in ``one`` minus that in ``other``, series by position."""
    first, second = (means_of(spread(values, size)) for values in (one, other))
    return lambda rows: first(rows) - second(rows)
