"""Clues to a label that need no understanding of the pair: one half of the input, a bias head, single words.

A linear model of the n-grams of the hypothesis (or the premise) alone needs no network: hashed uni- and bigrams and
multinomial logistic regression, deterministic for a seed. The label leaks if such a model is right more often than
chance, which is one over the number of classes if the labels are balanced (`balanced_sample`). `bias_evidence` measures
how much a bias head knows about the labels, in nats, and so whether its part in a product of experts is neutral.
`flagged_words` maps the features of a pair back to the words of its two texts.

A linear model of both texts, of the words of the hypothesis and their overlap with the premise::

    features = pair_ngrams(corpus.premise, corpus.hypothesis)           # sparse (N, F)
    probabilities = out_of_fold(features, corpus.labels, fold)          # (N, C), each by a model that never saw the row

100,000 pairs take minutes on two cores, without torch or an encoder. Such a model knows less than a trained encoder;
`benchmarks/suspects.py` measures how much worse its list of suspects is.

Notes
-----
*Departures*: WANLI uses fastText and states no settings.

References
----------
Gururangan et al. 2018; WANLI, section 4.1.
"""

import string
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import log_softmax, rel_entr, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold

from nli_lib.corpora.corpus import Corpus
from nli_lib.measure import check_labels, check_scored, class_count
from nli_lib.measure.features import (
    SIDES,
    Features,
    Texts,
    features_in_shards,
    join,
    ngrams_of,
    prediction,
    side_of,
    spaced,
    tokenize_pairs,
)

# ---------------------------------------------------------------- partial input


BUCKETS = 2**18  # few collisions among the million n-grams of a large corpus, and memory known in advance
PENALTY = 3.0  # scikit-learn's C; 1 to 10 give the same accuracy within half a point
PASSES = 20  # over the texts, then stop: more passes only overfit
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _plain(text: str) -> str:
    """Prepare a text that went through `spaced`, so that its words are as in `measure.features`: lower case, no ASCII
    punctuation, split on white space."""
    return text.lower().translate(_NO_PUNCTUATION)


# Uni- and bigrams of each text hashed into `BUCKETS` columns, rows of unit length.
_WORDS = {"preprocessor": _plain, "tokenizer": str.split, "token_pattern": None}
NGRAMS = HashingVectorizer(**_WORDS, ngram_range=(1, 2), n_features=BUCKETS, alternate_sign=False)


def _ngrams(texts: Sequence[str]) -> sparse.csr_matrix:
    return NGRAMS.transform(spaced(texts).to_pylist())


def partial_input_predictions(
    texts: Sequence[str], labels: ArrayLike, tests: Mapping[str, Sequence[str]], *, n_classes: int | None = None
) -> dict[str, NDArray[np.float64]]:
    """Probability of each label for the texts of each test set, (M, C), from one model fitted on all of `texts`.

    Notes
    -----
    Shapes: N texts, labels (N,); `tests` maps names to test sets. `n_classes` is by default the number of labels that
    occur.
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
    """Probability of each label for each text, (N, C), from a model fitted without that text's fold (`draw_folds`);
    rows sum to 1.

    Examples
    --------
    >>> from nli_lib.measure.giveaways import cross_fitted
    >>> hypotheses, labels = ["Nobody sleeps.", "A dog runs."] * 10, [2, 0] * 10
    >>> cross_fitted(hypotheses, labels, n_classes=3, folds=2).argmax(axis=1)[:4]
    array([2, 0, 2, 0])
    """
    gold = check_labels(labels, len(texts), n_classes)
    n_classes = class_count(gold, n_classes=n_classes)
    fold = draw_folds(gold, folds=folds, groups=groups, seed=seed)
    matrix, probabilities = _ngrams(texts), np.zeros((len(gold), n_classes))
    matrix = matrix[:, np.unique(matrix.indices)]  # the solver visits every column, used or not, in every pass
    for number in range(folds):
        train, held_out = fold != number, fold == number
        probabilities[held_out] = _fit_predict(matrix[train], gold[train], matrix[held_out], n_classes, seed)
    return probabilities


def joint_features(corpus: Corpus, pairs: pd.DataFrame) -> tuple[Features, np.ndarray]:
    """Features (N + M, V) and labels of a corpus's N pairs followed by M sampled ones: those of
    `measure.features.features` and a hypothesis-only prediction.

    The prediction comes from n-grams: cross-fitted for the pairs of the corpus; for sampled pairs, from a model of all
    pairs of the corpus, which has seen no sampled one.
    """
    classes, gold, texts = len(corpus.classes), corpus.labels, corpus.hypothesis
    own = cross_fitted(texts, gold, n_classes=classes, groups=corpus.premise)
    others = np.empty((0, classes))
    if len(pairs):
        others = partial_input_predictions(texts, gold, {"samples": pairs["hypothesis"]}, n_classes=classes)["samples"]
    guesses = np.concatenate([own, others]).argmax(1)
    sides = [np.concatenate([getattr(corpus, side), pairs[side].to_numpy(object)]) for side in SIDES]
    table = join(features_in_shards(*sides), prediction(guesses, n_classes=classes))
    return table, np.concatenate([gold, pairs["label"].to_numpy(np.int64)])


def draw_folds(
    labels: NDArray[np.int64], *, folds: int = 5, groups: ArrayLike | None = None, seed: int = 0
) -> NDArray[np.int64]:
    """Draw the fold of each text, (N,) from 0 to folds - 1, with the seed.

    Folds keep the label shares or, with `groups`, split no group and draw the groups at random, so that label shares
    are kept on average. Raises `ValueError` if a label that occurs has fewer texts than there are folds.
    """
    occur, counts = np.unique(labels, return_counts=True)
    if not 2 <= folds <= counts.min():
        few = f"label {occur[counts.argmin()]} has {counts.min()} texts"
        raise ValueError(f"folds={folds}, but {few}: choose between 2 and that number")
    splitter, fold = StratifiedKFold if groups is None else GroupKFold, np.empty(len(labels), np.int64)
    splits = splitter(folds, shuffle=True, random_state=seed).split(labels, labels, groups)
    for number, (_, held_out) in enumerate(splits):
        fold[held_out] = number
    return fold


def balanced_sample(labels: ArrayLike, *, per_label: int | None = None, seed: int = 0) -> NDArray[np.int64]:
    """Positions of equally many examples of each label that occurs, drawn without replacement, in ascending order.

    Examples
    --------
    >>> from nli_lib.measure.giveaways import balanced_sample
    >>> balanced_sample([0, 0, 0, 0, 1, 1, 2], seed=0)
    array([3, 5, 6])
    """
    gold = np.asarray(labels)
    pools = [np.flatnonzero(gold == label) for label in np.unique(gold)]
    size, rng = per_label or min(map(len, pools)), np.random.default_rng(seed)
    return np.sort(np.concatenate([rng.choice(pool, size, replace=False) for pool in pools]))


def _fit_predict(matrix, labels: NDArray[np.int64], test, n_classes: int, seed: int) -> NDArray[np.float64]:
    """Probabilities (M, C) of the test rows; a label absent from the training rows has probability 0."""
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


# ---------------------------------------------------------------- bias evidence


def bias_evidence(logits: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """The information that a prediction b of N examples carries beyond the label frequencies, and its strength; in
    nats.

    logits (N, C) of the bias head, labels (N,).

    evidence
        mean log b(label) minus mean log m(label), m the mean prediction of b: above 0, b knows something about these
        labels; at or below 0, nothing. At most log C
    moves
        mean Kullback-Leibler divergence of b from its mean prediction, 0 and up: how much b varies between examples,
        right or wrong
    leans
        Kullback-Leibler divergence of the mean prediction from the uniform one, 0 and up: a constant preference for
        some labels

    A neutral control has 0 in all three. In the product b is raised to beta, so all three count beta times.
    """
    given = np.asarray(logits, dtype=float)
    gold = check_scored(given, labels, epochs=False)[1]
    log_b = log_softmax(given, axis=1)
    mean = softmax(given, axis=1).mean(axis=0)
    return {
        "evidence": float((log_b[np.arange(len(gold)), gold] - np.log(mean[gold])).mean()),
        "moves": float(rel_entr(np.exp(log_b), mean).sum(axis=1).mean()),
        "leans": float(rel_entr(mean, 1 / len(mean)).sum()),
    }


# ---------------------------------------------------------------- biased words


class Flagged(NamedTuple):
    """Words that contribute to features: `premise` and `hypothesis` hold a boolean for each word of all those texts,
    concatenated, as split by `measure.features.tokenize`; `whole` (N,) marks pairs with a feature that is no n-gram and
    so concerns every token of the hypothesis."""

    premise: NDArray[np.bool_]
    hypothesis: NDArray[np.bool_]
    whole: NDArray[np.bool_]


def flagged_words(premises: Texts, hypotheses: Texts, fires: sparse.sparray, names: ArrayLike) -> Flagged:
    """Flag the words of N pairs that contribute to their features: `fires` (N, V) says which pair has which, `names`
    (V,) names them.

    An n-gram flags each of its occurrences on its side, and every other feature (length, overlap, a prediction) flags
    the whole hypothesis: see `Flagged`. Features that a pair does not have flag nothing in it.

    References
    ----------
    The paper on debiased generation, section 4.1, where flagged tokens have the mask m = 0.
    """
    texts = tokenize_pairs(premises, hypotheses)
    count, vocabulary = len(premises), texts[0].vocabulary
    names, (row, column) = np.asarray(names, dtype=object), sparse.csr_array(fires).nonzero()
    if fires.shape != (count, len(names)):
        raise ValueError(f"fires has shape {fires.shape} for {count} pairs and {len(names)} features")
    side, width = side_of(names), len(vocabulary) + 1
    # word numbers of each n-gram, (V, 2); the second is -1 for a single word, both for no n-gram
    bare = pd.Series(names, dtype=object).str.replace(r"@(premise|hypothesis)$", "", regex=True)
    parts = bare.str.split(" ", n=1, expand=True).reindex(columns=[0, 1])
    ids = [pc.index_in(pa.array(parts[at], pa.large_string(), from_pandas=True), vocabulary) for at in (0, 1)]
    grams = np.column_stack([np.asarray(pc.fill_null(each, -1)) for each in ids]).astype(np.int64)

    def key(at: NDArray, first: NDArray, second: NDArray) -> NDArray[np.int64]:
        return (at * width + first) * width + second + 1

    found = {}
    for name, text in zip(SIDES, texts, strict=True):
        here = side[column] == name
        asked = key(row[here], *grams[column[here]].T)
        found[name] = flagged = np.isin(key(text.rows, text.ids, np.int64(-1)), asked)
        pair = np.isin(key(text.rows[:-1], text.ids[:-1], text.ids[1:]), asked) & (text.rows[1:] == text.rows[:-1])
        flagged[:-1] |= pair
        flagged[1:] |= pair
    whole = np.zeros(count, bool)
    whole[row[side[column] == ""]] = True
    return Flagged(found["premise"], found["hypothesis"], whole)


# ---------------------------------------------------------------- pair ngrams


SHARES = (0.01, 0.2, 0.35, 0.5, 0.65, 0.8, 0.99)  # limits of bins: share of the hypothesis' words in the premise
LONGEST = 20  # hypotheses with at least this many words count as equally long
# scikit-learn's C; .03 to .3 give SNLI dev an accuracy of .644 to .664 and the same average precision
PAIR_PENALTY = 0.1
PAIR_PASSES = 60  # of the solver, then stop: more passes only overfit
RARE = 2  # smallest number of pairs with a word on one side: a word that occurs once cannot be both learnt and scored


def pair_ngrams(premises: Texts, hypotheses: Texts) -> sparse.csr_array:
    """Features of each pair as a sparse matrix (N, F) of 0 and 1.

    They are the words and bigrams of its hypothesis; the words of the hypothesis that are not in the premise; the words
    of the premise that are not in the hypothesis; the share of the hypothesis' words that the premise has, in the bins
    of `SHARES`; and the number of words of the hypothesis, up to `LONGEST`. Words are as in `tokenize`. Features of
    fewer than `RARE` pairs are left out.

    References
    ----------
    Ours. Chosen on SNLI dev, see LOG.md: combining every word of the premise with every word of the hypothesis took ten
    times as long and found no more.
    """
    premise, hypothesis = tokenize_pairs(premises, hypotheses)
    has, said = ((side.counts() > 0).astype(np.float32) for side in (premise, hypothesis))
    shared = said.multiply(has)
    lengths = np.diff(said.indptr)
    share = np.asarray(shared.sum(axis=1)).ravel() / np.maximum(lengths, 1)
    parts = [said, ngrams_of(hypothesis, "hypothesis", 2).matrix, said - shared, has - shared]
    parts.append(sparse.eye_array(len(SHARES) + 1, format="csr")[np.digitize(share, SHARES)])
    parts.append(sparse.eye_array(LONGEST + 1, format="csr")[np.minimum(hypothesis.lengths, LONGEST)])
    table = sparse.csr_array(sparse.hstack(parts, format="csr", dtype=np.float32))
    table.eliminate_zeros()
    return table[:, np.bincount(table.indices, minlength=table.shape[1]) >= RARE]


def out_of_fold(
    features: sparse.csr_array | NDArray[np.float32], labels: ArrayLike, fold: ArrayLike, *, say: Callable | None = None
) -> NDArray[np.float64]:
    """Probability of each label by a model that was not trained on the row, (N, C); rows sum to 1.

    Notes
    -----
    Shapes: features (N, F), of 0 and 1 or vectors of unit length; labels (N,) from 0 to C - 1; fold (N,) as
    `select.selection.folds` draws them. One multinomial logistic regression for each fold, with an L2 penalty of weight
    1 / `PAIR_PENALTY`; `say` is called after each fold, with the remaining time. C is the highest label that occurs,
    plus 1: later classes have no column. Deterministic.
    """
    fold = np.asarray(fold)
    gold = check_labels(labels, features.shape[0])
    probabilities, begun = np.zeros((len(gold), int(gold.max()) + 1)), time.monotonic()
    numbers = np.unique(fold)
    for done, number in enumerate(numbers, 1):
        here = fold == number
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # stopping after PAIR_PASSES is intended
            model = LogisticRegression(C=PAIR_PENALTY, max_iter=PAIR_PASSES).fit(features[~here], gold[~here])
        probabilities[np.ix_(here, model.classes_)] = model.predict_proba(features[here])
        if say:
            right = (probabilities[here].argmax(axis=1) == gold[here]).mean()
            left = (time.monotonic() - begun) / done * (len(numbers) - done)
            say(f"fold {done} of {len(numbers)}: accuracy {right:.4f}; about {left:,.0f} s left")
    return probabilities
