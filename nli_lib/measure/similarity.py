"""Similarity of texts, of sets of texts and of data sets.

Two texts: `similarity` of sentence embeddings, `shared_words`. A set of texts: `self_bleu`, how much each repeats the
others. Two data sets: `otdd`, their optimal transport distance. Examples: `neighbours`, the nearest with the same
label, and `random_companions`, their control::

    self_bleu(words(texts))                                            # (N,)
    otdd(vectors, labels, others, other_labels, regularisation=0.1)    # a number

Neighbours are exact. A matrix product in single precision selects a few candidates, and their cosines are computed
again in double precision, so that ties are found and broken in the same way on every machine.

Transport, exact or regularised, is computed by POT.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.errors import UserError, packages
from nli_lib.learn.text import resolve_model
from nli_lib.measure import check_labels, check_pairs
from nli_lib.measure.features import spaced, tokenize


def similarity(premises: Sequence[str], hypotheses: Sequence[str], *, model: str = "minilm") -> NDArray[np.float64]:
    """Cosine of the sentence embeddings of premise and hypothesis, -1 to 1; high = alike.

    Notes
    -----
    Shapes: two sequences of N strings -> (N,).

    Formula: ``(u . v) / (|u| |v|)``, u and v the embeddings of the two sentences by the same encoder. Every distinct
    sentence is encoded once, in batches of similar length. `model` is an offline name, a local folder or a hub id.

    *Departures*: the paper does not name its encoder; "minilm" is all-MiniLM-L6-v2, whose training data include SNLI
    and MultiNLI pairs, so name the encoder in the figure.

    References
    ----------
    WANLI, section 4.3 and Figure 4.
    """
    with packages("sentence embeddings"):
        from sentence_transformers import SentenceTransformer  # takes seconds, and torch, to import
    pairs = check_pairs(premises, hypotheses)
    if pairs == 0:
        return np.empty(0)
    both = np.concatenate([np.asarray(premises, object), np.asarray(hypotheses, object)])
    place, distinct = pd.factorize(both)
    with packages("sentence embeddings"):
        encoder = SentenceTransformer(resolve_model(model))
    vectors = encoder.encode(list(distinct), batch_size=64, normalize_embeddings=True, show_progress_bar=False)
    first, second = vectors[place[:pairs]], vectors[place[pairs:]]  # (N, D) each
    return np.clip(np.einsum("nd,nd->n", first, second, dtype=np.float64), -1.0, 1.0)


# ---------------------------------------------------------------- concurrency


def time_under_way(started: np.ndarray, seconds: np.ndarray) -> float:
    """Seconds during which at least one request was in progress: the time spent waiting for answers.

    Overlapping requests count once, and a pause between two runs does not count.

    Parameters
    ----------
    started
        (N,) datetime64, when each request was sent, in any order
    seconds
        (N,) float, duration of each request
    """
    if not len(started):
        return 0.0
    order = np.argsort(started, kind="stable")
    begin = (started[order] - started.min()) / np.timedelta64(1, "s")
    end = begin + np.asarray(seconds, dtype=float)[order]
    before = np.concatenate([[-np.inf], np.maximum.accumulate(end)[:-1]])
    return float(np.clip(end - np.maximum(begin, before), 0, None).sum())


# ---------------------------------------------------------------- shared words


def shared_words(texts: Sequence[str], one: ArrayLike, other: ArrayLike) -> NDArray[np.float64]:
    """Jaccard index of the word sets of two texts, 0 (no word in common) to 1 (the same words); 0 where both are empty.

    texts (N,); one, other: positions of the two texts, arrays of compatible shapes, which give the shape of the result.

    Notes
    -----
    Formula: ``|A and B| / |A or B|``. Words are as in `measure.features`, each counted once in a text.

    Examples
    --------
    >>> from nli_lib.measure.similarity import shared_words
    >>> texts = ["a dog runs", "a dog sleeps", "nobody"]
    >>> shared_words(texts, [0, 0], [1, 2])
    array([0.5, 0. ])
    """
    one, other = np.broadcast_arrays(one, other)
    table = (tokenize(texts).counts() > 0).astype(np.int64)
    common = np.asarray(table[one.ravel()].multiply(table[other.ravel()]).sum(axis=1)).ravel()
    sizes = np.asarray(table.sum(axis=1)).ravel()
    either = sizes[one.ravel()] + sizes[other.ravel()] - common
    return (common / np.maximum(either, 1)).reshape(one.shape)


# ---------------------------------------------------------------- diversity


ORDER = 3  # Texygen's
EPSILON = 0.1  # NLTK's smoothing method 1: the count used if nothing matches
Inner = Literal["gaussian", "exact"]


def words(texts: Sequence[str]) -> list[list[str]]:
    """The words and punctuation marks of each text, by NLTK's tokenizer (Treebank rules), upper and lower case kept.

    Notes
    -----
    *Departures*: Texygen calls `word_tokenize`, which first splits a text into sentences with a trained model that has
    to be downloaded. Here a text is one sentence, so only its last full stop is a separate token. In texts written
    without blanks every character is a word.
    """
    with packages("words as NLTK counts them"):
        from nltk.tokenize import NLTKWordTokenizer

    return list(map(NLTKWordTokenizer().tokenize, spaced(texts, marks=r" \0 ").to_pylist()))


def self_bleu(sentences: Sequence[Sequence[str]], *, order: int = ORDER) -> NDArray[np.float64]:
    """BLEU of each sentence with all other sentences as its references, 0 to 1; high = the others say the same.

    Raises
    ------
    ValueError
        For fewer than two sentences, or an order below 1.

    Notes
    -----
    Shapes: N sentences, each a sequence of words -> (N,). Their mean is the set's Self-BLEU, which grows with N:
    compare sets of equal size only.

    Formula: b exp(mean over n = 1..order of log p_n). p_n is the share of the sentence's n-grams that occur in the
    references, each counted at most as often as in the reference that has it most often; if none occurs, .1 replaces
    the count. b is 1 for a sentence longer than the reference nearest to it in length (of two equally near, the
    shorter), else exp(1 - r / c). A sentence that shares no word with any other has 0; where there is no word, p_n
    counts one n-gram that does not occur. The same values as NLTK's `sentence_bleu` with smoothing method 1 and uniform
    weights, in time proportional to the number of words instead of the square of the number of sentences.

    *Departures*: DISCO states neither order nor sample; Texygen's order is 3. Texygen's fast path looks at the first
    500 sentences only; its slow path includes each sentence among its references, so its value is always 1. Neither is
    done here.

    References
    ----------
    Texygen (Zhu et al., 2018), as DISCO's Table 1 uses it (D9).

    Examples
    --------
    >>> from nli_lib.measure.similarity import self_bleu
    >>> sentences = [text.split() for text in ("a dog runs fast", "a dog runs home", "nobody sleeps")]
    >>> self_bleu(sentences).round(2)
    array([0.63, 0.63, 0.  ])
    """
    if len(sentences) < 2 or order < 1:
        raise ValueError(f"{len(sentences)} sentences, order {order}: two sentences and an order of 1 are needed")
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    vocabulary, tokens = np.unique([word for each in sentences for word in each], return_inverse=True)
    row, start = np.repeat(np.arange(len(lengths)), lengths), np.arange(len(tokens))
    ends, gram, logs = np.cumsum(lengths), np.zeros(len(tokens), np.int64), np.zeros(len(lengths))
    for n in range(1, order + 1):
        whole = start + n <= ends[row]  # an n-gram is an (n - 1)-gram and the next word of the same sentence
        row, start, gram = row[whole], start[whole], gram[whole]
        gram = np.unique(gram * len(vocabulary) + tokens[start + n - 1], return_inverse=True)[1]
        matched = _clipped(row, gram, len(lengths))
        if n == 1:
            shares_nothing = matched == 0
        logs += np.log(np.where(matched == 0, EPSILON, matched) / np.maximum(lengths - n + 1, 1))
    return np.where(shares_nothing, 0.0, _brevity(lengths) * np.exp(logs / order))


def _clipped(row: NDArray, gram: NDArray, sentences: int) -> NDArray[np.int64]:
    """Number of n-grams of each sentence that occur in another, (N,); row and gram (G,): every n-gram and its
    sentence."""
    if not len(gram):
        return np.zeros(sentences, np.int64)
    keys, counts = np.unique(gram * sentences + row, return_counts=True)
    gram, row = keys // sentences, keys % sentences
    order = np.lexsort((-counts, gram))  # for each n-gram, the sentence that has it most often comes first
    gram, row, counts = gram[order], row[order], counts[order]
    first = np.flatnonzero(np.r_[True, gram[1:] != gram[:-1]])
    size = np.diff(np.r_[first, len(gram)])
    second = np.where(size > 1, counts[np.minimum(first + 1, len(gram) - 1)], 0)
    most = np.repeat(counts[first], size)
    most[first] = second  # the sentence that has it most often cannot be its own reference
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
    """Optimal transport dataset distance between labelled sets A and B, 0 or more; high = far apart. Returns one value
    for each ``regularisation``, in the same shape.

    Parameters
    ----------
    regularisation
        in the units of d, half a squared distance between vectors, so its effect depends on the embedding; 0 is exact
        optimal transport, by POT
    inner
        method for W: from the classes' means and covariances, or exact

    Notes
    -----
    Shapes: vectors (N, D), labels (N,), other (M, D), other_labels (M,): whole numbers, which need not be the same in
    both sets. All examples of a set have the same weight.

    Formula: min over couplings P of sum P_ij d_ij, ``d_ij = (|x_i - x'_j|^2 + W(y_i, y'_j)) / 2``, where W is the
    squared Wasserstein distance between the two classes as sets of vectors (`class_distances`), plus e KL(P | uniform)
    for a regularisation e > 0. With ``debias`` the mean of the values of A with A and of B with B is subtracted, which
    a regularised value needs to be 0 where A is B.

    *Departures*: DISCO states neither embedding nor settings, so only the order of values can be compared with its
    table. Their solver takes a fixed number of steps from a large to the wanted regularisation; ours runs until it has
    converged. Raises `ValueError` for empty sets, vectors that are not finite or of different widths.

    References
    ----------
    Alvarez-Melis and Fusi (2020), as DISCO's Table 1 uses it (D10), with their code's defaults: Gaussian inner
    distance, p = 2, regularisation .1, debiased. Their code halves both squares, and so does ours.
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
    return np.array([sinkhorn(cost, each) if each else exact_cost(cost) for each in wanted])


def class_distances(
    vectors: ArrayLike, labels: ArrayLike, other: ArrayLike, other_labels: ArrayLike, *, inner: Inner = "gaussian"
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Squared 2-Wasserstein distances between the classes of two sets, (C, K), and each example's class, as row (N,) or
    column (M,).

    gaussian
        ``|m - m'|^2 + tr S + tr S' - 2 tr (S^1/2 S' S^1/2)^1/2``, means and covariances (over N, not N - 1) of two
        classes: the distance of two normal distributions
    exact
        of the classes as sets of points, by POT

    The trace of the root is the sum of the singular values of X X'^T / sqrt(n n'), X the centred vectors of a class, so
    no matrix root is needed; for classes of more than D examples a D x D factor of the covariance replaces X.
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


# ---------------------------------------------------------------- neighbours


PLACES = 9  # decimals of a cosine; neighbours that agree in them are equally near, which needs double precision
BLOCK = 2**25  # cosines held in memory at once
SINGLE = 2.0**-24  # rounding error in single precision: half the distance to the next number


def neighbours(
    vectors: ArrayLike, labels: ArrayLike, seeds: ArrayLike, *, k: int = 4, cap: int | None = None
) -> NDArray[np.int64]:
    """Positions of the k nearest neighbours of each seed among the examples with its label, (S, k), nearest first.

    A seed is not its own neighbour, but an exact duplicate is, at a cosine of 1. Of neighbours that are equally near,
    to `PLACES` decimals, the earlier comes first. If there are fewer than k, the rest is -1.

    Parameters
    ----------
    vectors
        (N, D), of any length, none of them zero
    labels
        (N,); seeds: positions (S,)
    cap
        number of nearest examples of *all* labels that are considered, the seed included; None considers all

    Notes
    -----
    *Departures*: the paper's code takes the 15 nearest of all labels, drops those with another label, and then drops
    seeds with fewer than four left, which the paper does not say: ``cap=15``.

    References
    ----------
    WANLI, section 2.2: k = 4, of the same label, by the cosine of the task model's first token (W4).

    Examples
    --------
    >>> from nli_lib.measure.similarity import neighbours
    >>> vectors, labels = [[1, 0], [1, 0.1], [1, 0.5], [1, 0.2]], [0, 0, 0, 1]
    >>> neighbours(vectors, labels, seeds=[0], k=2)
    array([[1, 2]])
    """
    vectors, labels = np.asarray(vectors), np.asarray(labels)
    seeds = np.asarray(seeds, dtype=np.int64)
    length = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64)) if vectors.ndim == 2 else np.zeros(1)
    if len(labels) != len(vectors) or not (np.isfinite(length).all() and length.all()):
        raise ValueError(f"vectors of shape {vectors.shape} for {len(labels)} labels: give each a finite, non-zero one")
    unit = np.multiply(vectors, 1 / length[:, None], dtype=np.float32, casting="same_kind")
    found = np.full((len(seeds), k), -1, dtype=np.int64)

    def exact(one: NDArray, other: NDArray) -> NDArray:
        product = np.einsum("cd,cd->c", *(vectors[each].astype(np.float64) for each in (one, other)))
        return (product / (length[one] * length[other])).round(PLACES)

    for label in np.unique(labels[seeds]):
        asked = np.flatnonzero(labels[seeds] == label)
        members = np.flatnonzero(labels == label) if cap is None else np.arange(len(labels))
        taken, rows = min((k + 1) if cap is None else cap, len(members)), max(1, BLOCK // len(members))
        others = unit[members]
        for start in range(0, len(asked), rows):
            part = asked[start : start + rows]
            own = seeds[part]
            row, column = _candidates(unit[own] @ others.T, taken, error=2 * (vectors.shape[1] + 4) * SINGLE)
            member = members[column]
            order = np.lexsort((column, -exact(own[row], member), row))
            row, member = row[order], member[order]
            member = member[np.arange(len(row)) - np.searchsorted(row, row) < taken].reshape(len(part), taken)
            keep = (member != own[:, None]) & (labels[member] == label)
            order = np.argsort(~keep, axis=1, kind="stable")  # neighbours that are kept come first, in their order
            kept = np.where(np.take_along_axis(keep, order, 1), np.take_along_axis(member, order, 1), -1)[:, :k]
            found[part, : kept.shape[1]] = kept
    return found


def random_companions(labels: ArrayLike, seeds: ArrayLike, *, k: int = 4, seed: int = 0) -> NDArray[np.int64]:
    """The control of `neighbours`: k random examples with each seed's label, (S, k), drawn with replacement.

    labels (N,); seeds: positions (S,). A seed is not its own companion; if no other example has its label, the row is
    -1.
    """
    labels, seeds = np.asarray(labels), np.asarray(seeds, dtype=np.int64)
    random, found = np.random.default_rng(seed), np.full((len(seeds), k), -1, dtype=np.int64)
    for label in np.unique(labels[seeds]):
        asked, members = np.flatnonzero(labels[seeds] == label), np.flatnonzero(labels == label)
        if len(members) > 1:
            place = random.integers(len(members) - 1, size=(len(asked), k))
            place += place >= np.searchsorted(members, seeds[asked])[:, None]  # skip the seed itself
            found[asked] = members[place]
    return found


def _candidates(cosines: NDArray, taken: int, error: float) -> tuple[NDArray, NDArray]:
    """Rows and columns of the entries, in single precision, that can be among the `taken` largest of their row.

    Each of the `taken` blocks of columns with the largest maxima holds a value at least as large as the smallest of
    these maxima, so no entry below that, minus the rounding `error`, can be among the `taken` largest. This costs a
    fraction of a partial sort of the row.
    """
    width = cosines.shape[1]
    largest = np.maximum.reduceat(cosines, np.arange(0, width, max(1, width // (20 * taken))), axis=1)
    border = np.partition(largest, -taken, axis=1)[:, -taken, None]
    return np.nonzero(cosines >= border - np.float32(error))


# ---------------------------------------------------------------- transport


TOLERANCE = 1e-5  # largest error of the marginals, as POT measures it; the dual value has its square
STEPS = 20_000
SHARP = 500.0  # largest ratio of cost and regularisation at which POT can do without logarithms, which are far slower


def cost_matrix(one: NDArray, other: NDArray) -> NDArray[np.float64]:
    """Squared Euclidean distances (N, M) between the rows of (N, D) and (M, D)."""
    cost = -2 * one @ other.T
    cost += (one**2).sum(axis=1)[:, None]
    cost += (other**2).sum(axis=1)[None]
    return np.maximum(cost, 0, out=cost)


def unit(vectors: NDArray) -> NDArray[np.float64]:
    """Scale the vectors (N, D) to length 1; a zero vector stays zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors, dtype=np.float64) / np.where(length > 0, length, 1)


def exact_cost(cost: NDArray) -> float:
    """The least cost of moving N points of equal weight to M points of equal weight, cost (N, M), by POT's network
    simplex."""
    with packages("exact distances of data sets"):
        import ot

    return float(ot.emd2([], [], cost, numItermax=10_000_000))  # no weights: equal ones


def sinkhorn(cost: NDArray, regularisation: float) -> float:
    """The minimum of <P, cost> + e KL(P | uniform) over couplings P of points of equal weight, by POT.

    Parameters
    ----------
    cost
        (N, M); regularisation e > 0, in its units

    Raises
    ------
    UserError
        If `STEPS` steps are not enough.
    """
    with packages("distances of data sets"):
        import ot

    method = "sinkhorn" if cost.max() <= SHARP * regularisation else "sinkhorn_log"
    how = {"method": method, "stopThr": TOLERANCE, "numItermax": STEPS, "warn": False, "log": True}
    log = ot.sinkhorn([], [], cost, regularisation, **how)[1]
    if not log["err"][-1] <= TOLERANCE:
        raise UserError(
            f"transport has not converged in {STEPS:,} steps at regularisation {regularisation:g}, for costs up to "
            f"{cost.max():g} (error {log['err'][-1]:.1e}): take a larger one, or 0 for the exact value"
        )
    return float(regularisation * sum(np.log(log[side] * len(log[side])).mean() for side in "uv"))
