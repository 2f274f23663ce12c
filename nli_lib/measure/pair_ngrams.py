"""What a linear model sees of a pair without any network: the words of the hypothesis, and how they meet the premise.

    features = pair_ngrams(corpus.premise, corpus.hypothesis)           # sparse (N, F)
    probabilities = out_of_fold(features, corpus.labels, fold)          # (N, C), each by a model that never saw the row

100,000 pairs take minutes on two cores and need neither torch nor an encoder. Such a model knows less than a trained
one; `benchmarks/suspects.py` measures what the list of suspects loses by it.
"""

import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from nli_lib.measure.check import check_labels, check_pairs
from nli_lib.measure.tokens import Words, tokenize

SHARES = (0.01, 0.2, 0.35, 0.5, 0.65, 0.8, 0.99)  # of the hypothesis' words that the premise has: limits of the bins
LONGEST = 20  # words from which on hypotheses count as equally long
PENALTY = 0.1  # scikit-learn's C; .03 to .3 give SNLI dev an accuracy of .644 to .664 and the same average precision
PASSES = 60  # of the solver, then stop: more of them fit what is trained on, and not what is scored
RARE = 2  # pairs that a word must occur in on one side: what occurs once cannot be learnt and scored


def pair_ngrams(premises: Sequence[str], hypotheses: Sequence[str]) -> sparse.csr_array:
    """Which of F features each pair has, sparse (N, F) of 0 and 1.

    The features of a pair are the words and pairs of adjacent words of its hypothesis; the words that the hypothesis
    has and the premise lacks; those that the premise has and the hypothesis lacks; which part of the hypothesis' words
    the premise has, in the bins of `SHARES`; and the number of words of the hypothesis, up to `LONGEST`. Words are
    those of `tokenize`. What occurs in fewer than `RARE` pairs is left out.
    Source: ours. Chosen on SNLI dev, see LOG.md: every word of the premise with every word of the hypothesis on top
    took ten times as long and found no more.
    """
    pairs = check_pairs(premises, hypotheses)
    words = tokenize(np.concatenate([np.asarray(premises, object), np.asarray(hypotheses, object)]))
    premise, hypothesis = words.split(pairs)
    has, said = _indicator(premise.counts()), _indicator(hypothesis.counts())
    shared = said.multiply(has)
    lengths = np.diff(said.indptr)
    share = np.asarray(shared.sum(axis=1)).ravel() / np.maximum(lengths, 1)
    parts = [said, _bigrams(hypothesis), said - shared, has - shared]
    parts += [_one_of(np.digitize(share, SHARES), len(SHARES) + 1)]
    parts += [_one_of(np.minimum(hypothesis.lengths, LONGEST), LONGEST + 1)]
    table = sparse.csr_array(sparse.hstack(parts, format="csr", dtype=np.float32))
    table.eliminate_zeros()
    return table[:, np.bincount(table.indices, minlength=table.shape[1]) >= RARE]


def out_of_fold(
    features: sparse.csr_array | NDArray[np.float32],
    labels: ArrayLike,
    fold: ArrayLike,
    *,
    say: Callable[[str], None] | None = None,
) -> NDArray[np.float64]:
    """Probability of each label by a model that was not trained on the row, (N, C); rows add up to 1.

    Shapes: features (N, F), of 0 and 1 or vectors of unit length; labels (N,) from 0 to C - 1; fold (N,) as
    `select.folds.folds` draws them. One multinomial logistic regression a fold, with an L2 penalty of weight
    1 / `PENALTY`; `say` is told of each fold, with the time that is left. C is the highest label that occurs, plus 1:
    classes after it have no column. Deterministic.
    """
    fold = np.asarray(fold)
    gold = check_labels(labels, features.shape[0])
    probabilities, begun = np.zeros((len(gold), int(gold.max()) + 1)), time.monotonic()
    numbers = np.unique(fold)
    for done, number in enumerate(numbers, 1):
        here = fold == number
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it stops after PASSES
            model = LogisticRegression(C=PENALTY, max_iter=PASSES).fit(features[~here], gold[~here])
        probabilities[np.ix_(here, model.classes_)] = model.predict_proba(features[here])
        if say:
            right = (probabilities[here].argmax(axis=1) == gold[here]).mean()
            left = (time.monotonic() - begun) / done * (len(numbers) - done)
            say(f"fold {done} of {len(numbers)}: accuracy {right:.4f}; about {left:,.0f} s left")
    return probabilities


def _indicator(counts: sparse.csr_array) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(counts.data), np.float32), counts.indices, counts.indptr), counts.shape)


def _bigrams(words: Words) -> sparse.csr_array:
    """Which pairs of adjacent words each text has, (N, B)."""
    rows = words.rows
    inside = np.flatnonzero(rows[1:] == rows[:-1])
    keys = words.ids[inside] * len(words.vocabulary) + words.ids[inside + 1]
    found, column = np.unique(keys, return_inverse=True)
    table = sparse.csr_array(
        (np.ones(len(column), np.float32), (rows[inside], column)), shape=(len(words.offsets) - 1, len(found))
    )
    table.sum_duplicates()
    return _indicator(table)


def _one_of(values: NDArray[np.int64], count: int) -> sparse.csr_array:
    """(N, count): a 1 in the column of each value."""
    ones = np.ones(len(values), np.float32)
    return sparse.csr_array((ones, (np.arange(len(values)), values)), shape=(len(values), count))
