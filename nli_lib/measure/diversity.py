"""How varied a set of texts is, and how far a data set lies from another.

self_bleu(words(texts))                                       (N,) each sentence's BLEU against all others
otdd(vectors, labels, others, other_labels, regularisation=0.1)  optimal transport dataset distance
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nli_lib.errors import packages
from nli_lib.measure.check import check_labels
from nli_lib.measure.tokens import spaced
from nli_lib.measure.transport import cost_matrix, exact_cost, sinkhorn

ORDER = 3  # Texygen's
EPSILON = 0.1  # NLTK's smoothing method 1: the count that takes the place of no match
Inner = Literal["gaussian", "exact"]


def words(texts: Sequence[str]) -> list[list[str]]:
    """The words and punctuation marks of each text, by NLTK's tokenizer (Treebank rules), upper and lower case kept.

    *Departures*: Texygen calls `word_tokenize`, which first splits a text into sentences with a trained model that has
    to be downloaded. Here a text is one sentence, so that only its last full stop stands alone. Of texts written
    without blanks every character is a word.
    """
    with packages("words as NLTK counts them"):
        from nltk.tokenize import NLTKWordTokenizer

    tokenizer = NLTKWordTokenizer()
    return [tokenizer.tokenize(text) for text in spaced(texts, marks=r" \0 ").to_pylist()]


def self_bleu(sentences: Sequence[Sequence[str]], *, order: int = ORDER) -> NDArray[np.float64]:
    """BLEU of each sentence with all other sentences as its references, 0 to 1; high = the others say the same.

    Shapes: N sentences, each a sequence of words -> (N,). Their mean is the set's Self-BLEU, which grows with N:
    compare sets of equal size only.
    Formula: b exp(mean over n = 1..order of log p_n). p_n is the share of the sentence's n-grams that occur in the
    references, each counted at most as often as in the one reference that has it most often; where none occurs, .1
    stands for the count. b is 1 for a sentence longer than the reference nearest to it in length (of two equally near,
    the shorter), else exp(1 - r / c). A sentence that shares no word with any other has 0; where there is no word, p_n
    counts one n-gram that does not occur. The same values as NLTK's `sentence_bleu` with smoothing method 1 and uniform
    weights, in time proportional to the number of words instead of the square of the number of sentences.
    Source: Texygen (Zhu et al., 2018), as DISCO's Table 1 uses it (D9). *Departures*: DISCO states neither order nor
    sample; Texygen's order is 3. Texygen's fast path looks at the first 500 sentences alone; its slow path has each
    sentence among its own references, which makes its value 1 whatever the set is. Neither is done here.

    Raises `ValueError` for fewer than two sentences, or an order below 1.
    """
    if len(sentences) < 2 or order < 1:
        raise ValueError(f"{len(sentences)} sentences, order {order}: two sentences and an order of 1 are needed")
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    vocabulary, tokens = np.unique([word for each in sentences for word in each], return_inverse=True)
    row, start = np.repeat(np.arange(len(lengths)), lengths), np.arange(len(tokens))
    ends, gram, logs = np.cumsum(lengths), np.zeros(len(tokens), np.int64), np.zeros(len(lengths))
    for n in range(1, order + 1):
        whole = start + n <= ends[row]  # an n-gram is an (n - 1)-gram and the word after it in the same sentence
        row, start, gram = row[whole], start[whole], gram[whole]
        gram = np.unique(gram * len(vocabulary) + tokens[start + n - 1], return_inverse=True)[1]
        matched = _clipped(row, gram, len(lengths))
        if n == 1:
            shares_nothing = matched == 0
        logs += np.log(np.where(matched == 0, EPSILON, matched) / np.maximum(lengths - n + 1, 1))
    value = _brevity(lengths) * np.exp(logs / order)
    return np.where(shares_nothing, 0.0, value)


def _clipped(row: NDArray, gram: NDArray, sentences: int) -> NDArray[np.int64]:
    """How many n-grams of each sentence occur in another, (N,); row and gram (G,): every n-gram and its sentence."""
    if not len(gram):
        return np.zeros(sentences, np.int64)
    keys, counts = np.unique(gram * sentences + row, return_counts=True)
    gram, row = keys // sentences, keys % sentences
    order = np.lexsort((-counts, gram))  # of each n-gram first the sentence that has it most often
    gram, row, counts = gram[order], row[order], counts[order]
    first = np.flatnonzero(np.r_[True, gram[1:] != gram[:-1]])
    size = np.diff(np.r_[first, len(gram)])
    second = np.where(size > 1, counts[np.minimum(first + 1, len(gram) - 1)], 0)
    most = np.repeat(counts[first], size)
    most[first] = second  # the sentence that has most is no reference of its own
    return np.bincount(row, np.minimum(counts, most), minlength=sentences).astype(np.int64)


def _brevity(lengths: NDArray) -> NDArray[np.float64]:
    """The brevity penalty of each sentence, (N,), against the other sentence nearest to it in length."""
    ordered, at, times = np.unique(lengths, return_inverse=True, return_counts=True)
    shorter, longer = np.r_[-1, ordered[:-1]], np.r_[ordered[1:], -1]
    upward = (shorter < 0) | ((longer >= 0) & (longer - ordered < ordered - shorter))
    nearest = np.where(times > 1, ordered, np.where(upward, longer, shorter))[at]
    with np.errstate(divide="ignore", invalid="ignore"):
        penalty = np.exp(1 - nearest / lengths)
    return np.where(lengths > nearest, 1.0, np.where(lengths == 0, 0.0, penalty))


def otdd(
    vectors: ArrayLike,
    labels: ArrayLike,
    other: ArrayLike,
    other_labels: ArrayLike,
    *,
    regularisation: float | Sequence[float] = 0.1,
    inner: Inner = "gaussian",
    debias: bool = True,
) -> NDArray[np.float64]:
    """Optimal transport dataset distance between labelled sets A and B, 0 or more; high = far apart. One value for each
    ``regularisation``, in its shape.

    Shapes: vectors (N, D), labels (N,), other (M, D), other_labels (M,): whole numbers, which need not be the same in
    both sets. The examples of a set weigh the same.
    Formula: min over couplings P of sum P_ij d_ij, d_ij = (|x_i - x'_j|^2 + W(y_i, y'_j)) / 2, where W is the squared
    Wasserstein distance between the two classes as sets of vectors (`class_distances`), and for a regularisation e > 0
    of that plus e KL(P | uniform). With ``debias`` the mean of the values of A with A and of B with B is subtracted,
    which a regularised value needs to be 0 where A is B.

    regularisation  in the units of d, that is of half a squared distance between vectors: what it does depends on the
                    embedding. 0 is exact optimal transport, by POT
    inner           how W is computed: from the classes' means and covariances, or exactly

    Source: Alvarez-Melis and Fusi (2020), as DISCO's Table 1 uses it (D10), with their code's defaults: Gaussian inner
    distance, p = 2, regularisation .1, debiased. Their code halves both squares, and so is done here. *Departures*:
    DISCO states neither embedding nor settings, so that only an order of values can be compared with its table. Their
    solver takes a fixed number of steps from a large to the wanted regularisation, here it goes on until it has
    converged. Raises `ValueError` for empty sets, vectors that are not finite or of different widths.
    """
    vectors, other = _vectors(vectors), _vectors(other)
    labels, other_labels = check_labels(labels, len(vectors)), check_labels(other_labels, len(other))
    if vectors.shape[1] != other.shape[1]:
        raise ValueError(f"vectors of width {vectors.shape[1]} and {other.shape[1]}: embed both with the same encoder")
    wanted = np.atleast_1d(np.asarray(regularisation, dtype=float))
    if not (np.isfinite(wanted) & (wanted >= 0)).all():
        raise ValueError(f"regularisation={regularisation}: finite numbers from 0 up are needed")
    sides = [(vectors, labels), (other, other_labels)]
    values = _values(*sides, wanted, inner)
    if debias and wanted.any():
        own = [_values(side, side, np.where(wanted > 0, wanted, wanted.max()), inner) for side in sides]
        values = np.where(wanted > 0, values - np.mean(own, axis=0), values)
    return values.reshape(np.shape(regularisation))


def _values(one: tuple, two: tuple, wanted: NDArray, inner: Inner) -> NDArray[np.float64]:
    """Transport costs without correction, one for each regularisation."""
    (vectors, labels), (other, other_labels) = one, two
    between, at, other_at = class_distances(vectors, labels, other, other_labels, inner=inner)
    cost = cost_matrix(vectors, other)
    cost += between[at[:, None], other_at[None]]
    cost /= 2
    values, state = np.empty(len(wanted)), None
    for place in np.argsort(-wanted):  # from smooth to sharp, each from where the last one ended
        if wanted[place] == 0:
            values[place] = exact_cost(cost)
        else:
            values[place], state = sinkhorn(cost, wanted[place], start=state, symmetric=one is two)
    return values


def class_distances(
    vectors: ArrayLike, labels: ArrayLike, other: ArrayLike, other_labels: ArrayLike, *, inner: Inner = "gaussian"
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Squared 2-Wasserstein distances between the classes of two sets, (C, K), and the class of each example, as its
    row (N,) and column (M,).

    gaussian  |m - m'|^2 + tr S + tr S' - 2 tr (S^1/2 S' S^1/2)^1/2, means and covariances (over N, not N - 1) of two
              classes: the distance of two normal distributions
    exact     of the classes as sets of points, by POT

    The trace of the root is the sum of the singular values of X X'^T / sqrt(n n'), X the centred vectors of a class, so
    that no matrix root is taken; for classes of more than D examples X is replaced by a D x D factor of its covariance.
    """
    vectors, other = _vectors(vectors), _vectors(other)
    (classes, at), (others, other_at) = (np.unique(each, return_inverse=True) for each in (labels, other_labels))
    one = [vectors[at == place] for place in range(len(classes))]
    two = [other[other_at == place] for place in range(len(others))]
    if inner == "exact":
        found = [[exact_cost(cost_matrix(a, b)) for b in two] for a in one]
    elif inner == "gaussian":
        first, second = [_factor(each) for each in one], [_factor(each) for each in two]
        found = [[_bures(a, b) for b in second] for a in first]
    else:
        raise ValueError(f"inner={inner!r} is not one of gaussian, exact")
    return np.array(found), at, other_at


def _factor(points: NDArray) -> tuple[NDArray, NDArray, float]:
    """Mean (D,), a factor F with F^T F the covariance, and the covariance's trace, of a class (n, D)."""
    mean = points.mean(axis=0)
    centred = (points - mean) / np.sqrt(len(points))
    factor = centred if len(points) <= points.shape[1] else np.linalg.qr(centred, mode="r")
    return mean, factor, float((centred**2).sum())


def _bures(one: tuple, other: tuple) -> float:
    (mean, factor, trace), (other_mean, other_factor, other_trace) = one, other
    shared = np.linalg.svd(factor @ other_factor.T, compute_uv=False).sum()
    return max(float(((mean - other_mean) ** 2).sum() + trace + other_trace - 2 * shared), 0.0)


def _vectors(vectors: ArrayLike) -> NDArray[np.float64]:
    found = np.asarray(vectors, dtype=np.float64)
    if found.ndim != 2 or not found.size or not np.isfinite(found).all():
        raise ValueError(f"vectors have shape {found.shape}: finite ones (examples >= 1, dimensions >= 1) are needed")
    return found
