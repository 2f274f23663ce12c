"""Which surface features of a pair give its label away: the features of the z-filter paper and their z-statistics.

`features` gives a sparse matrix with a name for each column, `z_statistics` counts it against the labels,
`top_features` ranks, `z_threshold` and `share_at_z` say from where on a correlation is detectable.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, stats

from nli_lib.measure.check import check_labels, check_pairs, class_count
from nli_lib.measure.tokens import Words, tokenize

SIDES = ("premise", "hypothesis")
SHORTER_THAN = (3, 4, 5, 6, 7, 8, 10, 12)  # hypo-len< 5 is the paper's own
LONGER_THAN = (8, 10, 12, 15, 20)
RATIO_EDGES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, np.inf)
PREDICTION = "hypo-only-pred="  # the paper's name, with the class
OVERLAP_ABOVE = (0.5, 0.6, 0.7, 0.8, 0.9)  # lex-overlap> 0.8, > 0.9 and full-lex-overlap are the paper's own


class Features(NamedTuple):
    """Which feature fires on which pair: `matrix` (N, V) sparse uint8 of ones, `names` (V,) strings."""

    matrix: sparse.csr_array
    names: NDArray[np.object_]


class ZStatistics(NamedTuple):
    """`z` (V, C) signed, nan where a feature never occurs; `n` (V,) pairs it fires on; `counts` (V, C) by label."""

    z: NDArray[np.float64]
    n: NDArray[np.int64]
    counts: NDArray[np.int64]


def features(
    premises: Sequence[str], hypotheses: Sequence[str], *, ngrams: Sequence[int] = (1, 2), shape: bool = True
) -> Features:
    """Task-independent features of every pair, as a set: a feature fires once however often its words occur.

    Shapes: two sequences of N strings -> matrix (N, V), names (V,). V grows with the text, memory with the ones.
    Features: every unigram and bigram with its side ("word@hypothesis", "two words@premise"); with `shape` also
    "hypo-len< k" and "hypo-len> k" (tokens, strict), "len-ratio [a, b)" (hypothesis tokens / premise tokens),
    "lex-overlap> t" and "full-lex-overlap" (share of hypothesis tokens that occur in the premise; strict, so an overlap
    of 1 fires them all), and "null", which fires on every pair and shows a drift of the label mix.
    Columns do not depend on the order of the pairs.
    Source: the z-filter paper, section 3.1 and Tables 8 and 12.
    *Departures*: the paper gives no tokenizer (see `tokens`), no grid of lengths, ratios and overlaps beyond the five
    names in Table 12, and does not say whether overlap counts types or tokens: we take the constants above, and tokens.
    An empty hypothesis has overlap 0; a pair with an empty premise fires "len-ratio no-premise". The one feature that
    needs a model, a prediction from the hypothesis, is made by `prediction`.
    """
    pairs = check_pairs(premises, hypotheses)
    words = tokenize(np.concatenate([np.asarray(premises, object), np.asarray(hypotheses, object)]))
    by_side = dict(zip(SIDES, words.split(pairs), strict=True))
    blocks = [_ngram_block(by_side[side], side, n) for side in SIDES for n in ngrams]
    if shape:
        blocks.append(_shape_block(by_side["premise"], by_side["hypothesis"]))
    return join(*blocks)


def prediction(predicted: ArrayLike, *, n_classes: int) -> Features:
    """The class that a model predicts, as one feature for each: "hypo-only-pred=0", "=1", "=2".

    predicted (N,) in 0..n_classes-1, such as the argmax of a model that reads the hypothesis alone.
    Source: the z-filter paper, section 3.1 and Table 12, where BERT was trained on the very pairs that it predicts.
    With `measure.partial_input.cross_fitted` the prediction is one that the pair's own label had no part in.
    """
    names = [f"{PREDICTION}{label}" for label in range(n_classes)]
    fires = np.asarray(predicted)[:, None] == np.arange(n_classes)  # (N, C)
    return Features(sparse.csr_array(fires.astype(np.uint8)), np.array(names, dtype=object))


def join(*parts: Features) -> Features:
    """The features of several tables about the same pairs, side by side."""
    matrix = sparse.hstack([part.matrix for part in parts], format="csr", dtype=np.uint8)
    return Features(matrix, np.concatenate([part.names for part in parts]))


def pair_words(premises: Sequence[str], hypotheses: Sequence[str]) -> Features:
    """Which word occurs in which pair, on either side: matrix (N, V), names (V,) bare words (WANLI, Figure 3)."""
    both = [f"{premise} {hypothesis}" for premise, hypothesis in zip(premises, hypotheses, strict=True)]
    return _ngram_block(tokenize(both), "", 1)


def side_of(names: ArrayLike) -> NDArray[np.object_]:
    """The text that features are about, by their names (V,): "premise", "hypothesis", or "" where they are about both.

    Read off the ending "@premise" or "@hypothesis", which no word has, because the tokenizer deletes punctuation.
    """
    column = pd.Series(names, dtype=object)
    return column.str.extract(f"@({'|'.join(SIDES)})$", expand=False).fillna("").to_numpy(dtype=object)


def z_statistics(
    matrix: sparse.sparray | ArrayLike, labels: ArrayLike, n_classes: int | None = None, weights: NDArray | None = None
) -> ZStatistics:
    """How far each feature's label shares are from chance, in standard errors; high = the feature gives the label away.

    Shapes: matrix (N, V) (any nonzero entry fires), labels (N,) -> z (V, C), n (V,), counts (V, C). With
    weights (N,), whole numbers, pair i counts weights[i] times: a resample (`report.inference.resample_counts`).
    Formula: z = (counts / n - p0) / sqrt(p0 (1 - p0) / n); sign kept; nan where n = 0. p0 = 1 / n_classes, by default
    1 / the number of labels that occur (see `check.class_count`): 1/2 in a corpus of two.
    A feature seen once has z = sqrt(2) for its label when there are three classes, 1 when there are two.
    Source: Gardner et al. 2021; the z-filter paper, section 3.1, equation 2; WANLI section 4.2.
    p0 is fixed, as in both papers: the share of a label in the corpus does not enter, the "null" feature watches it.
    """
    present = binary(matrix)
    gold = check_labels(labels, present.shape[0], n_classes)
    classes = class_count(gold, n_classes=n_classes)
    firing = np.diff(present.indptr)
    cells = present.indices.astype(np.int64) * classes  # one cell a (feature, label)
    cells += np.repeat(gold, firing)
    weights = None if weights is None else np.repeat(weights, firing)
    return z_from_counts(np.bincount(cells, weights, minlength=present.shape[1] * classes).reshape(-1, classes))


def z_from_counts(counts: ArrayLike) -> ZStatistics:
    """The z-statistics of features whose counts by label (V, C) are known."""
    counts = np.asarray(counts, dtype=np.int64)
    n, p0 = counts.sum(axis=1), 1.0 / counts.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (counts / n[:, None] - p0) / np.sqrt(p0 * (1 - p0) / n[:, None])
    z[n == 0] = np.nan
    return ZStatistics(z, n, counts)


def z_order(counts: ArrayLike) -> NDArray[np.float64]:
    """Numbers that order features by z, and tie exactly where z ties, (V, C) from counts by label (V, C).

    Formula: sign(d) d^2 / n with d = C count - n; z is its signed root over sqrt(C - 1). d and n are whole numbers and
    the one division is rounded correctly, so equal fractions are equal: of three classes, 3 among 3 has the z of 8
    among 12, which z computed in floating point denies. -inf where n = 0. Exact up to forty million pairs.
    """
    counts = np.asarray(counts, dtype=np.int64)
    n = counts.sum(axis=1, keepdims=True)
    d = counts.shape[1] * counts - n
    return np.divide(d * np.abs(d), n, out=np.full(counts.shape, -np.inf), where=n > 0)


def highest_z(statistics: ZStatistics, *, min_count: int = 1) -> float:
    """The highest z of any feature, seen at least `min_count` times, for any label; nan where none is seen so often."""
    z = statistics.z[statistics.n >= max(min_count, 1)]
    return float(z.max()) if z.size else float("nan")


def first_pairs(
    matrix: sparse.sparray | ArrayLike, labels: ArrayLike, n_classes: int | None = None
) -> NDArray[np.int64]:
    """The first pair of each label in which each feature fires: positions (V, C), -1 where there is none.

    Shapes: matrix (N, V), labels (N,). For an example beside each feature.
    """
    present = binary(matrix)
    gold = check_labels(labels, present.shape[0], n_classes)
    first = np.full((present.shape[1], class_count(gold, n_classes=n_classes)), -1)
    rows = np.repeat(np.arange(len(gold)), np.diff(present.indptr))[::-1]
    first[present.indices[::-1], gold[rows]] = rows  # from the last pair to the first, which so has the last word
    return first


def top_features(statistics: ZStatistics, names: ArrayLike, *, k: int = 20, min_count: int = 1) -> pd.DataFrame:
    """The k features with the highest z for each label, best first; ties go to higher n, then to the name's order.

    Ties are exact (`z_order`).
    Returns columns label, rank (from 1), name, column (of the matrix), z, n, share (of the label among the n pairs).
    Source: the z-filter paper, Table 8 (k = 20, no significance threshold).
    *Departures*: the paper states neither a tie rule nor a minimum count; `min_count` leaves rarer features out.
    """
    names = np.asarray(names, dtype=object)
    ranked, order, tables = np.flatnonzero(statistics.n >= max(min_count, 1)), z_order(statistics.counts), []
    for label in range(statistics.z.shape[1]):
        best = best_columns(order[:, label], statistics.n, names, ranked, k)
        n = statistics.n[best]
        columns = {"label": label, "rank": np.arange(1, len(best) + 1), "name": names[best], "column": best}
        columns |= {"z": statistics.z[best, label], "n": n, "share": statistics.counts[best, label] / n}
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def label_shares(counted: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """One row a label and feature, as a competency plot takes it: the other columns, label, count, n, p (share) and z.

    counted: one row a feature, with its count under each of `classes` (columns) and any other columns. Labels come in
    the order of `classes`, each with all features in the order of the table.
    """
    stats, others = z_from_counts(counted[list(classes)]), [c for c in counted if c not in classes]
    long = counted.melt(id_vars=others, value_vars=list(classes), var_name="label", value_name="count")
    n = np.tile(stats.n, len(classes))
    return long.assign(n=n, p=long["count"] / n, z=stats.z.T.ravel())


def best_columns(order: NDArray, n: NDArray, names: NDArray | None, candidates: NDArray, k: int) -> NDArray[np.int64]:
    """The k of the `candidates` (column numbers) with the highest z, best first; ties go to higher n, then to the name.

    order (V,) as `z_order` gives it, -inf for a feature that is not ranked; without names ties go to the lower column.
    """
    candidates = candidates[order[candidates] > -np.inf]
    if len(candidates) > k:
        cut = np.partition(order[candidates], -k)[-k]
        above, level = candidates[order[candidates] > cut], candidates[order[candidates] == cut]
        missing = k - len(above)
        if len(level) > missing:  # of the many that tie, those with the highest n, and all that tie with these
            level = level[n[level] >= np.partition(n[level], -missing)[-missing]]
        candidates = np.concatenate([above, level])
    last = candidates if names is None else names[candidates].astype(str)
    return candidates[np.lexsort((last, -n[candidates], -order[candidates]))][:k]


def z_threshold(alpha: float = 0.01, tests: int = 1) -> float:
    """The z above which a feature is detectable at one-sided level alpha, Bonferroni-corrected for `tests` features."""
    return float(stats.norm.isf(alpha / tests))


def share_at_z(n: ArrayLike, z: float, p0: float) -> NDArray[np.float64]:
    """The label share at which a feature seen n times reaches z: a curve of equal z in a competency plot.

    Shapes: n (any) -> the same shape. Formula: p0 + z sqrt(p0 (1 - p0) / n). Source: WANLI, Figure 3.
    """
    return p0 + z * np.sqrt(p0 * (1 - p0) / np.asarray(n, dtype=np.float64))


def _ngram_block(tokens: Words, side: str, n: int) -> Features:
    """Unigrams (n = 1) or bigrams (n = 2) of one side, or with side "" bare words.

    A bigram's code, first * W + second, sorts as its words do.
    """
    codes, rows = tokens.ids, tokens.rows
    width = max(len(tokens.vocabulary), 1)
    if n == 2:
        inside = rows[1:] == rows[:-1]
        codes, rows = (tokens.ids[:-1] * width + tokens.ids[1:])[inside], rows[1:][inside]
    columns, found = pd.factorize(codes, sort=True)
    words = tokens.vocabulary.to_numpy(zero_copy_only=False)
    names = words[found % width] + (f"@{side}" if side else "")
    if n == 2:
        names = words[found // width] + " " + names
    texts = len(tokens.offsets) - 1
    matrix = sparse.csr_array((np.ones(len(rows), np.uint8), (rows, columns)), shape=(texts, len(found)))
    matrix.data[:] = 1  # a word that a text repeats has been summed up
    return Features(matrix, names)


def _shape_block(premise: Words, hypothesis: Words) -> Features:
    """Length, length ratio, lexical overlap and the null feature. Few columns, so they are made dense, then sparse."""
    length, premise_length = hypothesis.lengths, premise.lengths
    ratio = np.divide(length, premise_length, out=np.full(len(length), np.nan), where=premise_length > 0)
    shared = hypothesis.counts().multiply(premise.counts() > 0).sum(axis=1)
    overlap = np.divide(shared, length, out=np.zeros(len(length)), where=length > 0)
    columns = {f"hypo-len< {k}": length < k for k in SHORTER_THAN}
    columns |= {f"hypo-len> {k}": length > k for k in LONGER_THAN}
    bins = pairwise(RATIO_EDGES)
    columns |= {f"len-ratio [{low:g}, {high:g})": (ratio >= low) & (ratio < high) for low, high in bins}
    columns["len-ratio no-premise"] = premise_length == 0
    columns |= {f"lex-overlap> {t:g}": overlap > t for t in OVERLAP_ABOVE}
    columns["full-lex-overlap"] = (length > 0) & (shared == length)
    columns["null"] = np.ones(len(length), bool)
    matrix = sparse.csr_array(np.column_stack(list(columns.values())).astype(np.uint8))
    return Features(matrix, np.array(list(columns), dtype=object))


def binary(matrix: sparse.sparray | ArrayLike) -> sparse.csr_array:
    """The matrix in a form where every stored entry is one firing feature; copied only when it must change."""
    present = sparse.csr_array(matrix)
    if not present.has_canonical_format:
        present = present.copy()
        present.sum_duplicates()
    return present if present.data.all() else sparse.csr_array(present != 0)
