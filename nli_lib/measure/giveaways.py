"""Which words of a text a model goes by: its prediction with each word beside that without it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.metrics import roc_auc_score

from nli_lib.measure.check import check_scored
from nli_lib.measure.tokens import joined, spaced


def without_each_word(texts: Sequence[str]) -> pd.DataFrame:
    """Every text once for each of its words, with that word left out: columns row (of `texts`), word, text.

    Words are what white space parts, or `measure.tokens.spaced`; they are named in lower case without punctuation at
    their ends. A text of one word leaves an empty one.
    """
    words = [text.split() for text in spaced(list(map(str, texts)), marks=r" \0 ").to_pylist()]
    left = [
        (row, each[at], " ".join(each[:at] + each[at + 1 :]))
        for row, each in enumerate(words)
        for at in range(len(each))
    ]
    table = pd.DataFrame(left, columns=["row", "word", "text"])
    table["text"] = joined(table["text"])
    table["word"] = table["word"].astype(str).str.lower().str.strip("\"'.,;:!?()")
    return table


def word_evidence(whole: ArrayLike, without: ArrayLike, table: pd.DataFrame, *, min_count: int = 1) -> pd.DataFrame:
    """How far each word speaks for each class: mean over its occurrences of log p(class | text) - log p(class | text
    without it). Above 0: the word raises the class.

    whole    (N, C) logits of the N texts; without (M, C) those of the M texts of ``table``, which is
             `without_each_word` of the texts
    Returns one row for each word that ``min_count`` or more texts have: word, n (texts), and a column for each class, 0
    to C - 1. Evidence of a word that stands twice in a text is averaged over both places.
    """
    whole, without = (log_softmax(np.asarray(each, dtype=float), axis=1) for each in (whole, without))
    if len(without) != len(table) or whole.shape[1] != without.shape[1]:
        raise ValueError(
            f"{without.shape} logits for {len(table)} texts without a word, and {whole.shape} for the whole"
        )
    gain = whole[table["row"].to_numpy()] - without
    classes = list(range(whole.shape[1]))
    by_word = pd.DataFrame(gain, columns=classes).assign(row=table["row"].to_numpy()).groupby(table["word"].to_numpy())
    found = by_word[classes].mean().assign(n=by_word["row"].nunique())
    found = found[found["n"] >= min_count].rename_axis("word").reset_index()
    return found[["word", "n", *classes]]


def words_found(evidence: pd.DataFrame, planted: dict[int, set[str]]) -> pd.DataFrame:
    """How well the evidence for a class tells its planted words from all others: area under the ROC curve, 0 to 1, .5
    for chance.

    evidence  of `word_evidence`; planted: class -> its words. Columns: label, planted (how many of its words occur),
    words, area, gain (mean evidence of the planted words minus that of the others, in nats). The area does not see how
    large the evidence is: a head that knows nothing can rank the words by a hair. No row for a class none, or nothing
    but, of whose words occurs.
    """
    rows = []
    for label, words in planted.items():
        here = evidence["word"].isin(words).to_numpy()
        if here.any() and not here.all():
            gain = evidence.loc[here, label].mean() - evidence.loc[~here, label].mean()
            rows.append((label, int(here.sum()), len(here), roc_auc_score(here, evidence[label]), gain))
    return pd.DataFrame(rows, columns=["label", "planted", "words", "area", "gain"])


def hard_part(probabilities: ArrayLike, labels: ArrayLike) -> NDArray[np.bool_]:
    """(N,) bool: the pairs whose label a model of the hypothesis alone gets wrong, as SNLI-hard was made.

    probabilities (N, C) of that model, which has not seen the pairs. Source: Gururangan et al. (2018), with fastText.
    """
    check_scored(np.asarray(probabilities), np.asarray(labels), epochs=False)
    return np.asarray(probabilities).argmax(axis=1) != np.asarray(labels)
