"""What half of the input gives away: a linear model on the n-grams of the hypothesis (or the premise) alone.

No network is needed: hashed uni- and bigrams and multinomial logistic regression, deterministic for a seed. The label
leaks where such a model is right more often than chance, which is one over the number of classes where the labels are
balanced (`balanced_sample`).
Source: Gururangan et al. 2018; WANLI, section 4.1. *Departures*: WANLI uses fastText and states no settings.
"""

import string
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold

from nli_lib.measure.check import check_labels, class_count
from nli_lib.measure.tokens import spaced

BUCKETS = 2**18  # some collisions among the million n-grams of a large corpus, memory known beforehand
PENALTY = 3.0  # scikit-learn's C; 1 to 10 give the same accuracy within half a point
PASSES = 20  # over the texts, then stop: more of them fit the training texts, not the held-out ones
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _plain(text: str) -> str:
    """Words are as in `measure.tokens`, of texts that `spaced` has seen: lower case, no ASCII punctuation, split on
    white space."""
    return text.lower().translate(_NO_PUNCTUATION)


# Uni- and bigrams of each text hashed into `BUCKETS` columns, rows of unit length.
NGRAMS = HashingVectorizer(
    preprocessor=_plain,
    tokenizer=str.split,
    token_pattern=None,
    ngram_range=(1, 2),
    n_features=BUCKETS,
    alternate_sign=False,
)


def _ngrams(texts: Sequence[str]) -> sparse.csr_matrix:
    return NGRAMS.transform(spaced(texts).to_pylist())


def partial_input_predictions(
    texts: Sequence[str], labels: ArrayLike, tests: Mapping[str, Sequence[str]], *, n_classes: int | None = None
) -> dict[str, NDArray[np.float64]]:
    """Probability of each label for the texts of each test set, (M, C), from one model fitted on all of `texts`.

    Shapes: N texts, labels (N,); `tests` names its sets. `n_classes` is by default the number of labels that occur.
    """
    gold = check_labels(labels, len(texts), n_classes)
    n_classes = class_count(gold, n_classes=n_classes)
    each = [_ngrams(test) for test in tests.values()]
    probabilities = _fit_predict(_ngrams(texts), gold, sparse.vstack(each), n_classes, seed=0)
    ends = np.cumsum([part.shape[0] for part in each])[:-1]
    return dict(zip(tests, np.split(probabilities, ends), strict=True))


def cross_fitted(
    texts: Sequence[str],
    labels: ArrayLike,
    *,
    n_classes: int | None = None,
    folds: int = 5,
    groups: ArrayLike | None = None,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Probability of each label for each text, from a model fitted without that text's fold (`draw_folds`), (N, C),
    rows sum to 1."""
    gold = check_labels(labels, len(texts), n_classes)
    n_classes = class_count(gold, n_classes=n_classes)
    fold = draw_folds(gold, folds=folds, groups=groups, seed=seed)
    matrix, probabilities = _ngrams(texts), np.zeros((len(gold), n_classes))
    matrix = matrix[:, np.unique(matrix.indices)]  # the solver goes over every column, used or not, in every pass
    for number in range(folds):
        train, held_out = fold != number, fold == number
        probabilities[held_out] = _fit_predict(matrix[train], gold[train], matrix[held_out], n_classes, seed)
    return probabilities


def draw_folds(
    labels: NDArray[np.int64], *, folds: int = 5, groups: ArrayLike | None = None, seed: int = 0
) -> NDArray[np.int64]:
    """The fold of each text, (N,) from 0 to folds - 1, drawn with the seed.

    Folds keep the label shares, or, with `groups`, split no group and draw the groups at random, so that label shares
    are kept on average. Raises `ValueError` where a label that occurs has fewer texts than there are folds.
    """
    occur, counts = np.unique(labels, return_counts=True)
    if not 2 <= folds <= counts.min():
        few = f"label {occur[counts.argmin()]} has {counts.min()} texts"
        raise ValueError(f"folds={folds}, but {few}: choose between 2 and that number")
    splitter, fold = StratifiedKFold if groups is None else GroupKFold, np.empty(len(labels), np.int64)
    for number, (_, held_out) in enumerate(
        splitter(folds, shuffle=True, random_state=seed).split(labels, labels, groups)
    ):
        fold[held_out] = number
    return fold


def balanced_sample(labels: ArrayLike, *, per_label: int | None = None, seed: int = 0) -> NDArray[np.int64]:
    """Positions of equally many examples of each label that occurs, drawn without replacement, in ascending order."""
    gold = np.asarray(labels)
    pools = [np.flatnonzero(gold == label) for label in np.unique(gold)]
    size, rng = per_label or min(map(len, pools)), np.random.default_rng(seed)
    return np.sort(np.concatenate([rng.choice(pool, size, replace=False) for pool in pools]))


def _fit_predict(matrix, labels: NDArray[np.int64], test, n_classes: int, seed: int) -> NDArray[np.float64]:
    """Probabilities (M, C) of the test rows; a label that was not seen in fitting has probability 0."""
    probabilities, seen = np.zeros((test.shape[0], n_classes)), np.unique(labels)
    if matrix.shape[1] == 0:  # texts without a word
        return probabilities + np.bincount(labels, minlength=n_classes) / len(labels)
    if len(seen) == 1:
        probabilities[:, seen[0]] = 1.0
        return probabilities
    model = LogisticRegression(C=PENALTY, solver="saga", max_iter=PASSES, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping after PASSES is intended
        model.fit(matrix, labels)
    probabilities[:, model.classes_] = model.predict_proba(test)
    return probabilities
