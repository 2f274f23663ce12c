"""Surface features of a pair, and how strongly each predicts the label: the z-statistics of the z-filter paper.

Every lexical measure uses the words defined here, which are computed for many texts at once, as integers. A token is a
part of a text after lower-casing, deleting ASCII punctuation (inside words too: "there's" becomes "theres") and
splitting on white space. The z-filter paper names no tokenizer; this rule reproduces every feature that it shows. The
work is done on columns by Arrow, without a Python loop over texts or tokens. Chinese, Japanese, Thai and some other
languages put no blanks between words: there a token is a character (`spaced`), bigrams are pairs of characters and
lengths count characters.

`features` returns a sparse matrix with a name for each column; `features_in_shards` returns the same for millions of
pairs, with memory that grows only with the number of nonzero entries. `z_statistics` counts the features against the
labels, `top_features` ranks them, and `z_threshold` and `share_at_z` give the point from which a correlation is
detectable. `Ranking` keeps the features most correlated with each label while counts grow batch by batch. To see what z
would be by chance, and how much it varies between samples of premises::

    shuffled = (z_statistics(matrix, shuffled_labels(labels, premises, seed=seed)) for seed in range(200))
    resampled = (z_statistics(matrix, labels, weights=each) for each in resample_counts(len(labels), groups=premises))

Copies come one at a time, so memory holds the features and one table of counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, stats

from nli_lib.measure import check_labels, check_pairs, class_count

ASCII_PUNCTUATION = r"[!-/:-@\[-`{-~]"  # the 32 characters of string.punctuation, as four ranges
# scripts of East Asia, and those that Unicode breaks into lines by dictionary only; Korean has blanks, so it is not
# listed
SCRIPTS = ("Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")
SCRIPTS += ("Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet")
# a character with its marks; the long vowel of Japanese belongs to no script
CHARACTER = "[" + "".join(rf"\p{{{script}}}" for script in SCRIPTS) + r"\x{30FC}]\p{M}*"
UNSPACED = 0.01  # smallest share of texts without blanks at which a corpus counts as having them
IN_WORD = r"[^\s\p{Z}]"
Texts = Sequence[str]


@dataclass(frozen=True)
class Words:
    """Words of N texts: text i is `ids[offsets[i]:offsets[i + 1]]`, indices into the sorted `vocabulary`."""

    ids: NDArray[np.int64]  # (T,)
    offsets: NDArray[np.int64]  # (N + 1,)
    vocabulary: pa.Array  # (W,) strings

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each text, (N,)."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Index of the text that each token belongs to, (T,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)

    def counts(self) -> sparse.csr_array:
        """Count of each word in each text, sparse (N, W) int64 with sorted columns."""
        shape = (len(self.offsets) - 1, len(self.vocabulary))
        # Copies, because summing duplicates rewrites both index arrays in place.
        parts = np.ones(len(self.ids), np.int64), self.ids.copy(), self.offsets.copy()
        table = sparse.csr_array(parts, shape=shape)
        table.sum_duplicates()
        return table

    def split(self, texts: int) -> tuple["Words", "Words"]:
        """The first `texts` texts and the rest, with one vocabulary."""
        cut = self.offsets[texts]
        return (
            Words(self.ids[:cut], self.offsets[: texts + 1], self.vocabulary),
            Words(self.ids[cut:], self.offsets[texts:] - cut, self.vocabulary),
        )


def tokenize(texts: Texts) -> "Words":
    """Split every text into words. The vocabulary is sorted, so it does not depend on the order of the texts.

    Texts are split first, then each distinct raw word is cleaned once; neither step adds or removes white space.

    Examples
    --------
    >>> from nli_lib.measure.features import tokenize
    >>> words = tokenize(["There's a dog!", "A cat."])
    >>> words.vocabulary.to_pylist(), words.lengths.tolist()
    (['a', 'cat', 'dog', 'theres'], [3, 2])
    """
    # Trimmed first: Arrow misses white space of several bytes at the very end of a column.
    parts = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(spaced(texts)))
    raw = pc.list_flatten(parts).dictionary_encode()
    cleaned = pc.replace_substring_regex(pc.utf8_lower(raw.dictionary), ASCII_PUNCTUATION, "")
    vocabulary = pc.unique(cleaned)
    vocabulary = vocabulary.filter(pc.not_equal(vocabulary, ""))
    vocabulary = vocabulary.take(pc.array_sort_indices(vocabulary))
    word_of = np.asarray(pc.fill_null(pc.index_in(cleaned, vocabulary), -1)).astype(np.int64)  # -1: nothing was left
    ids = word_of[np.asarray(raw.indices)]
    ends = np.concatenate([[0], np.cumsum(ids >= 0)])  # tokens kept among the first t raw words
    raw_offsets = np.concatenate([[0], np.cumsum(np.asarray(pc.list_value_length(parts)))]).astype(np.int64)
    return Words(ids[ids >= 0], ends[raw_offsets], vocabulary)


def tokenize_pairs(premises: Texts, hypotheses: Texts) -> tuple[Words, Words]:
    """Split premises and hypotheses into words, with one vocabulary."""
    pairs = check_pairs(premises, hypotheses)
    return tokenize(np.concatenate([np.asarray(premises, object), np.asarray(hypotheses, object)])).split(pairs)


def unspaced(texts: Texts | pa.Array) -> NDArray[np.bool_]:
    """Mark the texts that are written without blanks between words, (N,) bool: at least half of the parts between
    blanks contain a character of `SCRIPTS`, and none is Korean. An English text that quotes a Chinese name is not
    marked."""
    column = _strings(texts)
    # few English texts contain more than ASCII, so this check costs little
    found, rows = np.zeros(len(column), bool), np.flatnonzero(~np.asarray(pc.string_is_ascii(column)))
    for pattern, wanted in ((CHARACTER, True), (r"\p{Hangul}", False)):
        rows = rows[np.asarray(pc.match_substring_regex(column.take(rows), pattern)) == wanted]
    part = column.take(rows)
    words, theirs = (pc.count_substring_regex(part, f"{IN_WORD}{each}") for each in ("+", f"*{CHARACTER}{IN_WORD}*"))
    found[rows] = 2 * np.asarray(theirs) >= np.asarray(words)
    return found


def spaced(texts: Texts | pa.Array, *, marks: str = " ") -> pa.Array:
    """Put blanks between the characters of texts that are `unspaced`, and return all texts as a column; other texts do
    not change.

    marks  replaces punctuation in the `unspaced` texts; r" \\0 " keeps it, as separate words
    """
    column = _strings(texts)
    if not (rows := unspaced(column)).any():
        return column
    part = column.filter(pa.array(rows))
    # the last two are a blank and a mark of zero width, which Khmer puts between words
    for pattern, other in ((r"[\p{P}\x{200B}\x{FEFF}]", marks), (CHARACTER, r" \0 "), (r"[\s\p{Z}]+", " ")):
        part = pc.replace_substring_regex(part, pattern, other)
    return pc.replace_with_mask(column, pa.array(rows), pc.utf8_trim_whitespace(part))


def joined(texts: Texts) -> list[str]:
    """Remove the blanks that `spaced` put between characters, so that people can read the texts."""
    column = pa.array(texts, pa.large_string())
    for _ in range(2):  # because the second character may be the first of the next two
        column = pc.replace_substring_regex(column, f"({CHARACTER}) ({CHARACTER})", r"\1\2")
    return column.to_pylist()


def _strings(texts: Texts | pa.Array) -> pa.Array:
    """Return the texts as an Arrow column; raise an error that names the first value that is not a string."""
    if isinstance(texts, pa.Array):
        return texts
    values = np.asarray(texts, dtype=object)
    if pd.api.types.infer_dtype(values, skipna=False) not in ("string", "empty"):
        row, bad = next((i, text) for i, text in enumerate(values) if not isinstance(text, str))
        raise ValueError(f"text at position {row} is {bad!r}, not a string: drop or repair it first")
    return pa.array(values, type=pa.large_string())


# ---------------------------------------------------------------- artifacts


SIDES = ("premise", "hypothesis")
SHORTER_THAN = (3, 4, 5, 6, 7, 8, 10, 12)  # hypo-len< 5 is the paper's own
LONGER_THAN = (8, 10, 12, 15, 20)
RATIO_EDGES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, np.inf)
PREDICTION = "hypo-only-pred="  # the paper's name, with the class
OVERLAP_ABOVE = (0.5, 0.6, 0.7, 0.8, 0.9)  # lex-overlap> 0.8, > 0.9 and full-lex-overlap are the paper's own


class Features(NamedTuple):
    """Features of pairs: `matrix` (N, V) sparse uint8, 1 where a pair has a feature; `names` (V,) strings."""

    matrix: sparse.csr_array
    names: NDArray[np.object_]


class ZStatistics(NamedTuple):
    """`z` (V, C) signed, nan where a feature never occurs; `n` (V,) pairs it fires on; `counts` (V, C) by label."""

    z: NDArray[np.float64]
    n: NDArray[np.int64]
    counts: NDArray[np.int64]


def features(premises: Texts, hypotheses: Texts, *, ngrams: Sequence[int] = (1, 2), shape: bool = True) -> Features:
    """Task-independent features of every pair, as a set: a feature fires once, no matter how often its words occur.

    Notes
    -----
    Shapes: two sequences of N strings -> matrix (N, V), names (V,). V grows with the text, memory with the number of
    nonzero entries.
    Features: every unigram and bigram with its side ("word@hypothesis", "two words@premise"); with `shape` also
    "hypo-len< k" and "hypo-len> k" (tokens, strict), "len-ratio [a, b)" (hypothesis tokens / premise tokens),
    "lex-overlap> t" and "full-lex-overlap" (share of hypothesis tokens that occur in the premise; strict, so an overlap
    of 1 fires them all), and "null", which fires on every pair and so shows a shift of the label shares. Columns do not
    depend on the order of the pairs.

    *Departures*: the paper gives no tokenizer (see the module) and no grid of lengths, ratios and overlaps beyond the
    five names in Table 12, and does not say whether overlap counts types or tokens: we use the constants above, and
    tokens. An empty hypothesis has overlap 0; a pair with an empty premise fires "len-ratio no-premise". The only
    feature that needs a model, a prediction from the hypothesis, comes from `prediction`.

    References
    ----------
    The z-filter paper, section 3.1 and Tables 8 and 12.

    Examples
    --------
    >>> from nli_lib.measure.features import features
    >>> found = features(["A dog runs."], ["Nobody runs."], ngrams=(1,), shape=False)
    >>> found.names.tolist()
    ['a@premise', 'dog@premise', 'runs@premise', 'nobody@hypothesis', 'runs@hypothesis']
    """
    sides = tokenize_pairs(premises, hypotheses)
    blocks = [ngrams_of(words, side, n) for side, words in zip(SIDES, sides, strict=True) for n in ngrams]
    return join(*blocks, _shape_block(*sides)) if shape else join(*blocks)


def prediction(predicted: ArrayLike, *, n_classes: int) -> Features:
    """A model's predicted class as features, one for each class: "hypo-only-pred=0", "=1", "=2".

    predicted (N,) in 0..n_classes-1, such as the argmax of a model that reads the hypothesis alone.

    References
    ----------
    The z-filter paper, section 3.1 and Table 12, where BERT was trained on the same pairs that it predicts. With
    `measure.giveaways.cross_fitted` the prediction does not depend on the pair's label.
    """
    names = [f"{PREDICTION}{label}" for label in range(n_classes)]
    fires = np.asarray(predicted)[:, None] == np.arange(n_classes)  # (N, C)
    return Features(sparse.csr_array(fires.astype(np.uint8)), np.array(names, dtype=object))


def join(*parts: Features) -> Features:
    """Join several tables of features of the same pairs, side by side."""
    matrix = sparse.hstack([part.matrix for part in parts], format="csr", dtype=np.uint8)
    return Features(matrix, np.concatenate([part.names for part in parts]))


def side_of(names: ArrayLike) -> NDArray[np.object_]:
    """The text that each feature is about, from its name (V,): "premise", "hypothesis", or "" for both.

    The names end in "@premise" or "@hypothesis", which no word does, because the tokenizer deletes punctuation.
    """
    column = pd.Series(names, dtype=object)
    return column.str.extract(f"@({'|'.join(SIDES)})$", expand=False).fillna("").to_numpy(dtype=object)


def z_statistics(
    matrix: sparse.sparray | ArrayLike, labels: ArrayLike, n_classes: int | None = None, weights: NDArray | None = None
) -> ZStatistics:
    """Distance of each feature's label shares from chance, in standard errors; high = the feature predicts the label.

    Notes
    -----
    Shapes: matrix (N, V) (any nonzero entry fires), labels (N,) -> z (V, C), n (V,), counts (V, C). With weights (N,),
    whole numbers, pair i counts weights[i] times: a resample (`stats.resample_counts`).

    Formula: z = (counts / n - p0) / sqrt(p0 (1 - p0) / n); sign kept; nan where n = 0. p0 = 1 / n_classes, by default 1
    / the number of labels that occur (see `measure.class_count`): 1/2 in a corpus of two. A feature seen once has z =
    sqrt(2) for its label when there are three classes, 1 when there are two.

    References
    ----------
    Gardner et al. 2021; the z-filter paper, section 3.1, equation 2; WANLI section 4.2. p0 is fixed, as in both papers:
    the label shares of the corpus play no part, but the "null" feature shows them.

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.measure.features import z_statistics
    >>> fires = np.array([[1, 1, 1, 1, 0, 0]]).T  # one feature, in four of six pairs
    >>> z_statistics(fires, labels=[2, 2, 2, 0, 1, 0]).z.round(2)
    array([[-0.35, -1.41,  1.77]])
    """
    present = binary(matrix)
    gold = check_labels(labels, present.shape[0], n_classes)
    classes = class_count(gold, n_classes=n_classes)
    firing = np.diff(present.indptr)
    cells = present.indices.astype(np.int64) * classes  # one cell for each (feature, label)
    cells += np.repeat(gold, firing)
    weights = None if weights is None else np.repeat(weights, firing)
    return z_from_counts(np.bincount(cells, weights, minlength=present.shape[1] * classes).reshape(-1, classes))


def z_from_counts(counts: ArrayLike) -> ZStatistics:
    """The z-statistics of features from their counts by label (V, C)."""
    counts = np.asarray(counts, dtype=np.int64)
    n, p0 = counts.sum(axis=1), 1.0 / counts.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (counts / n[:, None] - p0) / np.sqrt(p0 * (1 - p0) / n[:, None])
    z[n == 0] = np.nan
    return ZStatistics(z, n, counts)


def z_order(counts: ArrayLike) -> NDArray[np.float64]:
    """Sort keys that order features by z and tie exactly where z ties, (V, C) from counts by label (V, C).

    Notes
    -----
    Formula: sign(d) d^2 / n with d = C count - n; z is its signed root over sqrt(C - 1). d and n are whole numbers and
    the only division is rounded correctly, so equal fractions are equal: with three classes, 3 of 3 has the same z as 8
    of 12, but not if z is computed in floating point. -inf where n = 0. Exact up to forty million pairs.
    """
    counts = np.asarray(counts, dtype=np.int64)
    n = counts.sum(axis=1, keepdims=True)
    d = counts.shape[1] * counts - n
    return np.divide(d * np.abs(d), n, out=np.full(counts.shape, -np.inf), where=n > 0)


def highest_z(statistics: ZStatistics, *, min_count: int = 1) -> float:
    """The highest z, for any label, of the features that occur at least `min_count` times; nan if there are none."""
    z = statistics.z[statistics.n >= max(min_count, 1)]
    return float(z.max()) if z.size else float("nan")


def top_features(statistics: ZStatistics, names: ArrayLike, *, k: int = 20, min_count: int = 1) -> pd.DataFrame:
    """The k features with the highest z for each label, best first; ties go to higher n, then to the order of the
    names.

    Ties are exact (`z_order`). Returns the columns label, rank (from 1), name, column (of the matrix), z, n and share
    (of the label among the n pairs).

    Notes
    -----
    *Departures*: the paper states neither a tie rule nor a minimum count; `min_count` leaves rarer features out.

    References
    ----------
    The z-filter paper, Table 8 (k = 20, no significance threshold).

    Examples
    --------
    >>> from nli_lib.measure.features import features, top_features, z_statistics
    >>> hypotheses = ["Nobody runs.", "Nobody sits.", "It runs.", "It sits."]
    >>> found = features(["A dog."] * 4, hypotheses, ngrams=(1,), shape=False)
    >>> statistics = z_statistics(found.matrix, labels=[1, 1, 0, 0])
    >>> top_features(statistics, found.names, k=1)[["label", "name", "z", "n"]]
       label               name         z  n
    0      0      it@hypothesis  1.414214  2
    1      1  nobody@hypothesis  1.414214  2
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


def top_in_sets(
    table: Features, labels: ArrayLike, sets: Mapping[str, np.ndarray], classes: Sequence[str], *, k: int = 20
) -> pd.DataFrame:
    """`top_features` of each set of pairs, a mask (N,) by name, with the names of the labels.

    Two more columns: pairs (name of the set) and line, the z that is significant at .01 with Bonferroni's correction
    over all features and labels.
    """
    labels, tables = np.asarray(labels), []
    line = z_threshold(0.01, tests=len(table.names) * len(classes))
    for name, rows in sets.items():
        found = z_statistics(table.matrix[np.flatnonzero(rows)], labels[rows], len(classes))
        best = top_features(found, table.names, k=k).drop(columns="column")
        tables.append(best.assign(label=np.asarray(classes, dtype=object)[best["label"]], pairs=name, line=line))
    return pd.concat(tables, ignore_index=True)


def label_shares(counted: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """A table for a competency plot, one row for each label and feature: the other columns, label, count, n, p (share)
    and z.

    counted: one row for each feature, with its count under each of `classes` (columns) and any other columns. Labels
    come in the order of `classes`, each with all features in the order of the table.
    """
    stats, others = z_from_counts(counted[list(classes)]), [c for c in counted if c not in classes]
    long = counted.melt(id_vars=others, value_vars=list(classes), var_name="label", value_name="count")
    n = np.tile(stats.n, len(classes))
    return long.assign(n=n, p=long["count"] / n, z=stats.z.T.ravel())


def best_columns(order: NDArray, n: NDArray, names: NDArray | None, candidates: NDArray, k: int) -> NDArray[np.int64]:
    """The k of the `candidates` (column numbers) with the highest z, best first; ties go to higher n, then to the name.

    order (V,) as returned by `z_order`, -inf for a feature that is not ranked; without names ties go to the lower
    column.
    """
    candidates = candidates[order[candidates] > -np.inf]
    if len(candidates) > k:
        cut = np.partition(order[candidates], -k)[-k]
        above, level = candidates[order[candidates] > cut], candidates[order[candidates] == cut]
        missing = k - len(above)
        if len(level) > missing:  # of many that tie in z, those with the highest n, and all that tie with these
            level = level[n[level] >= np.partition(n[level], -missing)[-missing]]
        candidates = np.concatenate([above, level])
    last = candidates if names is None else names[candidates].astype(str)
    return candidates[np.lexsort((last, -n[candidates], -order[candidates]))][:k]


def z_threshold(alpha: float = 0.01, tests: int = 1) -> float:
    """The z above which a feature is detectable at one-sided level alpha, Bonferroni-corrected for `tests` features.

    Examples
    --------
    >>> from nli_lib.measure.features import z_threshold
    >>> print(f"{z_threshold(0.01):.2f} for one feature, {z_threshold(0.01, tests=30_000):.2f} for thirty thousand")
    2.33 for one feature, 4.97 for thirty thousand
    """
    return float(stats.norm.isf(alpha / tests))


def share_at_z(n: ArrayLike, z: float, p0: float) -> NDArray[np.float64]:
    """The label share at which a feature that occurs n times reaches z: a line of equal z in a competency plot.

    Notes
    -----
    Shapes: n (any) -> the same shape. Formula: p0 + z sqrt(p0 (1 - p0) / n). Source: WANLI, Figure 3.

    Examples
    --------
    >>> from nli_lib.measure.features import share_at_z
    >>> share_at_z([20, 200, 2000], z=4.5, p0=1 / 3).round(2)
    array([0.81, 0.48, 0.38])
    """
    return p0 + z * np.sqrt(p0 * (1 - p0) / np.asarray(n, dtype=np.float64))


def ngrams_of(tokens: Words, side: str, n: int) -> Features:
    """The unigrams (n = 1) or bigrams (n = 2) of each text, named after the side.

    A bigram's code, first * W + second, sorts as its words do.
    """
    codes, rows = tokens.ids, tokens.rows
    width = max(len(tokens.vocabulary), 1)
    if n == 2:
        inside = rows[1:] == rows[:-1]
        codes, rows = (tokens.ids[:-1] * width + tokens.ids[1:])[inside], rows[1:][inside]
    columns, found = pd.factorize(codes, sort=True)
    words = tokens.vocabulary.to_numpy(zero_copy_only=False)
    names = words[found % width] + f"@{side}"
    if n == 2:
        names = words[found // width] + " " + names
    texts = len(tokens.offsets) - 1
    matrix = sparse.csr_array((np.ones(len(rows), np.uint8), (rows, columns)), shape=(texts, len(found)))
    matrix.data[:] = 1  # repeated words of a text were summed
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
    """Convert the matrix so that every stored entry is a feature that fires; copy it only if it has to change."""
    present = sparse.csr_array(matrix)
    if not present.has_canonical_format:
        present = present.copy()
        present.sum_duplicates()
    return present if present.data.all() else sparse.csr_array(present != 0)


# ---------------------------------------------------------------- shards


SIZE = 250_000  # pairs in a shard: about 1 GB while it is processed


def features_in_shards(premises: Texts, hypotheses: Texts, *, size: int = SIZE) -> Features:
    """The same as `features`, with the columns in the order in which the shards produce them."""
    pairs = check_pairs(premises, hypotheses)
    vocabulary, parts = pa.array([], pa.large_string()), []
    for start in range(0, max(pairs, 1), size):
        shard = features(premises[start : start + size], hypotheses[start : start + size])
        names = pa.array(shard.names, pa.large_string())
        new = names.filter(pc.invert(pc.is_in(names, vocabulary)))
        vocabulary = pa.concat_arrays([vocabulary, new])
        column = np.asarray(pc.index_in(names, vocabulary))
        parts.append((shard.matrix.data, column[shard.matrix.indices], shard.matrix.indptr))
    width = len(vocabulary)
    matrix = sparse.vstack([sparse.csr_array(part, shape=(len(part[-1]) - 1, width)) for part in parts], format="csr")
    matrix.sort_indices()
    return Features(matrix, vocabulary.to_numpy(zero_copy_only=False))


# ---------------------------------------------------------------- ranking


SPARE = 8  # a label's pool starts with SPARE x k features and is cut back when it has grown SPARE times larger


class Ranking:
    """The k features with the highest z for each label, exact, on counts that `add` updates.

    Features are compared by `z_order`, so ties of z are exact. An update changes few features, and only these are
    ordered again. For each label a *pool* holds every feature that reaches its floor, and the k best are taken from it.
    A pool that falls below k is rebuilt from all features.

    Attributes
    ----------
    counts
        initial counts (V, C) by label; the array is reused, not copied
    names
        (V,) strings that break ties, or None
    """

    def __init__(self, counts: ArrayLike, names: ArrayLike | None = None, *, k: int = 20, min_count: int = 1):
        self.counts = np.asarray(counts, dtype=np.int64)
        self.names = None if names is None else np.asarray(names, dtype=object)
        self.k, self.min_count = k, max(min_count, 1)
        self.n = self.counts.sum(axis=1)
        self.order = self._order(slice(None)).T.copy()  # (C, V), -inf where a feature is not ranked
        self.floor = np.full(len(self.order), -np.inf)
        self.pools = [np.empty(0, np.int64)] * len(self.order)
        for label in range(len(self.order)):
            self._fill(label, np.arange(self.order.shape[1]))

    def add(self, columns: NDArray, labels: NDArray) -> None:
        """Count feature `columns[i]` once more for `labels[i]`; both (T,)."""
        cells = columns.astype(np.int64) * len(self.order) + labels
        np.add.at(self.counts.reshape(-1), cells, 1)  # much faster than with two indices
        touched = pd.unique(columns)
        self.n[touched] = self.counts[touched].sum(axis=1)
        self.order[:, touched] = self._order(touched).T
        for label, order in enumerate(self.order):
            pool = np.union1d(self.pools[label], touched[order[touched] >= self.floor[label]])
            self.pools[label] = pool = pool[order[pool] >= self.floor[label]]
            if len(pool) < self.k and self.floor[label] > -np.inf:
                self._fill(label, np.arange(len(order)))
            elif len(pool) > SPARE * SPARE * self.k:
                self._fill(label, pool)

    def best(self) -> list[NDArray[np.int64]]:
        """The columns of the k best features of each label, best first; fewer than k if fewer have been seen."""
        pools = zip(self.order, self.pools, strict=True)
        return [best_columns(order, self.n, self.names, pool, self.k) for order, pool in pools]

    def _order(self, columns: NDArray | slice) -> NDArray[np.float64]:
        order = z_order(self.counts[columns])
        order[self.n[columns] < self.min_count] = -np.inf
        return order

    def _fill(self, label: int, candidates: NDArray) -> None:
        """Fill the pool with the candidates that rank no lower than the (SPARE k)-th, ties with it included."""
        order, size = self.order[label], SPARE * self.k
        ranked = candidates[order[candidates] > -np.inf]
        self.floor[label] = np.partition(order[ranked], -size)[-size] if len(ranked) > size else -np.inf
        self.pools[label] = ranked[order[ranked] >= self.floor[label]]


# ---------------------------------------------------------------- chance


OVERLAP = ("lex-overlap>", "full-lex-overlap")
OFTEN = 20  # pairs that have a feature


def shuffled_labels(labels: ArrayLike, groups: ArrayLike, *, seed: int = 0) -> NDArray[np.int64]:
    """Shuffle the labels (N,) within each group; examples that are alone in their group are shuffled among themselves.

    With premises as `groups` (N,) this removes every association between a text and its label and keeps the design of
    the corpus, in which one premise has a hypothesis of each label.

    Examples
    --------
    >>> from nli_lib.measure.features import shuffled_labels
    >>> shuffled_labels([0, 1, 2, 0, 1, 2], ["A dog."] * 3 + ["A cat."] * 3, seed=1)
    array([2, 0, 1, 1, 2, 0])
    """
    labels = np.asarray(labels)
    group = pd.factorize(np.asarray(groups))[0]
    alone = np.bincount(group)[group] == 1
    group[alone] = -1
    before = np.argsort(group, kind="stable")
    after = np.lexsort((np.random.default_rng(seed).random(len(labels)), group))
    shuffled = np.empty_like(labels)
    shuffled[before] = labels[after]
    return shuffled
