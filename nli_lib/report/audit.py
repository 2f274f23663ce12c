"""What an audit measures of a corpus: repeated pairs, leakage, the hypothesis alone, features, the z-filter.

found = audit(corpus, test)          every number of the page, each with interval and unit
values = comparable(corpus)          the numbers that are compared between corpora, of one size, without intervals

No network is trained. z here compares a label's share among the pairs of a feature with its share in the corpus
(`z_over_shares`), so that an unequal label balance does not make every frequent word stand out; the z-filter compares
with one over the number of labels, as its paper does.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.corpus import SIDES, Corpus
from nli_lib.measure.artifacts import Features, side_of, z_statistics, z_threshold
from nli_lib.measure.chance import OFTEN, shuffled_labels
from nli_lib.measure.shards import features_in_shards
from nli_lib.measure.tokens import ASCII_PUNCTUATION
from nli_lib.measure.used_columns import cross_fitted
from nli_lib.report.clustered import OVER, clustered_mean, clustered_share
from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import mean_and_range, resample_counts
from nli_lib.select.zfilter import Filtered, z_filter

FEATURES_OF = 1_000_000  # pairs; of a larger corpus, features and z-filter are those of a sample of whole premises
HYPOTHESES_OF = 50_000  # pairs on which the hypothesis-only model is cross-fitted, at most
LARGE = 100_000  # pairs from where on fewer copies and orders are computed
COPIES, ORDERS = (50, 20), (5, 3)  # up to LARGE pairs, and beyond
FOLDS, TOP, K = 5, 20, 20
FAMILY = r"(?<=[<>]) .*|(?<=len-ratio) .*"  # what tells nested features of one family apart

PAIRS, SHARE, POINTS, Z, CELLS = "pairs", "share", "share, difference", "standard errors", "share of n-grams and labels"
COUNTED, MIDDLE = "counted, nothing drawn", "premises, by normal approximation"

Stage = Callable[[str], AbstractContextManager]


class Figure(NamedTuple):
    """One number of an audit: the estimate with its interval, and its unit."""

    estimate: Estimate
    unit: str = SHARE

    def as_json(self) -> dict[str, object]:
        """Plain values; an end that is not known is None."""
        value, low, high, n, _, over = self.estimate
        ends = {"value": value, "low": low, "high": high}
        plain = {name: float(end) if np.isfinite(end) else None for name, end in ends.items()}
        return {**plain, "unit": self.unit, "n": int(n), "over": over}


class Audit(NamedTuple):
    """figures: name -> Figure; top: features of each label, best first (`top_table`); reasons: features by which the
    z-filter drops most (`Filtered.by_feature`); kept: what the filter keeps of `featured`, the pairs whose features
    were counted; notes: what was measured on a part only, in words."""

    figures: dict[str, Figure]
    top: pd.DataFrame
    reasons: pd.DataFrame
    kept: Filtered
    featured: NDArray[np.int64]
    notes: list[str]


def audit(corpus: Corpus, test: Corpus | None = None, *, seed: int = 0, stage: Stage = nullcontext) -> Audit:
    """Everything that the page shows of one corpus, and of a test file what the corpus holds of it.

    stage(name) is entered before each of the steps `STAGES`, for a display of progress.
    """
    classes, notes = corpus.classes, []
    with stage("repeated pairs"):
        found = _counted(corpus) | repeated(corpus)
        if test is not None:
            found |= leakage(corpus, test)
    with stage("hypothesis alone"):
        part = sample_premises(corpus, HYPOTHESES_OF, seed)
        if len(part) < len(corpus):
            notes.append(
                f"The hypothesis-only model is fitted to {len(part):,} of {len(corpus):,} pairs, drawn at random by "
                "premise."
            )
        found |= hypothesis_alone(corpus[part] if len(part) < len(corpus) else corpus, seed)
    with stage("features"):
        rows = sample_premises(corpus, FEATURES_OF, seed)
        if len(rows) < len(corpus):
            notes.append(
                f"Features and z-filter are those of {len(rows):,} of {len(corpus):,} pairs, drawn at random by "
                "premise."
            )
        part = corpus[rows] if len(rows) < len(corpus) else corpus
        table = features_in_shards(part.premise, part.hypothesis)
        counts = z_statistics(table.matrix, part.labels, len(classes)).counts
        top = top_table(table, counts, part)
        found["highest z"] = _highest(top, len(part))
    with stage("chance"):
        found |= features_alone(table, counts, part, seed)
    with stage("z-filter"):
        orders = ORDERS[len(part) > LARGE]
        filters = [_filtered(table, part, order) for order in range(seed, seed + orders)]
        kept, dropped = filters[0], [1 - each.keep.mean() for each in filters]
        found["dropped"] = Figure(mean_and_range(np.array(dropped), n=len(part), over=f"{orders} orders, range"))
        for label, name in enumerate(classes):
            own = [1 - each.keep[part.labels == label].mean() for each in filters]
            size = int((part.labels == label).sum())
            found[f"dropped: {name}"] = Figure(mean_and_range(np.array(own), n=size, over=f"{orders} orders, range"))
        reasons = kept.by_feature(table.names, most=TOP)
    return Audit(found, top, reasons, kept, rows, notes)


def comparable(corpus: Corpus, *, seed: int = 0) -> dict[str, float]:
    """The numbers by which an audit compares corpora of one size, by the name they have in `Audit.figures`."""
    found = repeated(corpus) | hypothesis_alone(corpus, seed)
    table = features_in_shards(corpus.premise, corpus.hypothesis)
    counts = z_statistics(table.matrix, corpus.labels, len(corpus.classes)).counts
    z, often = z_over_shares(counts), counts.sum(axis=1) >= OFTEN
    values = {name: figure.estimate.value for name, figure in found.items()}
    values["highest z"] = float(z[often].max(initial=-np.inf))
    values["above"] = _above(z, often & (side_of(table.names) == "hypothesis"))
    values["dropped"] = 1 - float(_filtered(table, corpus, seed).keep.mean())
    return {name: value if np.isfinite(value) else float("nan") for name, value in values.items()}


# ---------------------------------------------------------------- the corpus itself


def sample_premises(corpus: Corpus, most: int, seed: int = 0) -> NDArray[np.int64]:
    """Positions of ``most`` pairs, ascending, whole premises in random order (the last may be cut); all where fewer."""
    if len(corpus) <= most:
        return np.arange(len(corpus))
    code = pd.factorize(corpus.premise)[0]
    turn = np.random.default_rng(seed).permutation(code.max() + 1)[code]
    return np.sort(np.argsort(turn, kind="stable")[:most])


def _counted(corpus: Corpus) -> dict[str, Figure]:
    counts = {PAIRS: len(corpus), "premises": len(pd.unique(corpus.premise)), "rows read": corpus.rows_read}
    counts |= {f"skipped: {reason}": count for reason, count in corpus.skipped.items()}
    units = {PAIRS: PAIRS, "premises": "premises"}
    found = {name: Figure(exact(count, corpus.rows_read), units.get(name, "rows")) for name, count in counts.items()}
    if corpus.rows_read:
        left = np.arange(corpus.rows_read) < sum(corpus.skipped.values())
        found["skipped"] = Figure(clustered_share(left, np.arange(len(left)))._replace(over="rows"))
    for label, name in enumerate(corpus.classes):
        found[f"label: {name}"] = Figure(clustered_share(corpus.labels == label, corpus.premise))
    return found


def repeated(corpus: Corpus) -> dict[str, Figure]:
    """What stands in a corpus more than once; letter case, ASCII punctuation and blanks do not count.

    majority      the most frequent label
    duplicates    pairs that repeat an earlier one
    conflicts     pairs that stand there with more than one label, all of them counted
    hypotheses    hypotheses that repeat an earlier one
    """
    pair, hypothesis = _keys(corpus)
    code = pd.factorize(pair)[0]
    classes = len(corpus.classes)
    seen = np.bincount(code * classes + corpus.labels, minlength=(code.max() + 1) * classes).reshape(-1, classes) > 0
    flags = {
        "majority": corpus.labels == np.bincount(corpus.labels).argmax(),
        "duplicates": pd.Series(code).duplicated().to_numpy(),
        "conflicts": (seen.sum(axis=1) > 1)[code],
        "hypotheses": pd.Series(hypothesis).duplicated().to_numpy(),
    }
    groups = pd.factorize(corpus.premise)[0]
    return {name: Figure(clustered_share(flag, groups)) for name, flag in flags.items()}


def leakage(corpus: Corpus, test: Corpus) -> dict[str, Figure]:
    """Shares of a test set's pairs whose pair, premise or hypothesis stands anywhere in the corpus; compared as in
    `repeated`."""
    (own, own_hypothesis), (pair, hypothesis) = _keys(corpus), _keys(test)
    premises = _folded(corpus.premise), _folded(test.premise)
    flags = {
        "leaked pairs": np.isin(pair, own),
        "leaked premises": np.isin(premises[1], premises[0]),
        "leaked hypotheses": np.isin(hypothesis, own_hypothesis),
    }
    return {name: Figure(clustered_share(flag, test.premise)) for name, flag in flags.items()}


def _keys(corpus: Corpus) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Hashes (N,) of the folded pairs and of the folded hypotheses; 64 bits, so that millions do not collide."""
    premise, hypothesis = (_folded(getattr(corpus, side)) for side in SIDES)
    return premise * np.uint64(0x9E3779B97F4A7C15) + hypothesis, hypothesis


def _folded(texts: ArrayLike) -> NDArray[np.uint64]:
    column = pc.utf8_lower(pa.array(texts, type=pa.large_string()))
    column = pc.replace_substring_regex(column, ASCII_PUNCTUATION, "")
    column = pc.utf8_trim_whitespace(pc.replace_substring_regex(column, r"\s+", " "))
    return pd.util.hash_array(column.to_numpy(zero_copy_only=False), categorize=False)


def exact(count: float, n: int) -> Estimate:
    """A count: its interval is itself."""
    return Estimate(float(count), float(count), float(count), int(n), over=COUNTED)


# ---------------------------------------------------------------- the hypothesis alone, features


def hypothesis_alone(corpus: Corpus, seed: int = 0) -> dict[str, Figure]:
    """Cross-fitted accuracy of n-grams of the hypothesis, and how far it lies above the most frequent label.

    No premise is fitted on and predicted, where there are as many premises as folds. NaN where a class is too small.
    """
    counts, premises = np.bincount(corpus.labels, minlength=len(corpus.classes)), pd.factorize(corpus.premise)[0]
    folds = int(min(FOLDS, counts[counts > 0].min()))
    if folds < 2 or (counts > 0).sum() < 2:
        missing = Estimate(np.nan, np.nan, np.nan, len(corpus))
        return {"hypothesis only": Figure(missing), "gain": Figure(missing, POINTS)}
    groups = premises if premises.max() + 1 >= folds else None
    guess = cross_fitted(
        corpus.hypothesis, corpus.labels, n_classes=len(counts), folds=folds, groups=groups, seed=seed
    ).argmax(axis=1)
    right, most = guess == corpus.labels, corpus.labels == counts.argmax()
    gain = clustered_mean(right.astype(float) - most, premises)
    return {"hypothesis only": Figure(clustered_share(right, premises)), "gain": Figure(gain, POINTS)}


def z_over_shares(counts: ArrayLike) -> NDArray[np.float64]:
    """z (V, C) from counts by label (V, C) that include the null feature's: how far a label's share among the pairs of
    a feature lies above its share in the corpus, in standard errors; -inf where a feature never occurs.

    Formula: (count - n s) / sqrt(n s (1 - s)), s the share of the label, from the feature that every pair has.
    *Departures*: Gardner et al. (2021) and the z-filter paper take one over the number of labels for s.
    """
    counts = np.asarray(counts, dtype=np.float64)
    n = counts.sum(axis=1, keepdims=True)
    s = counts[n.argmax()] / n.max()
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (counts - n * s) / np.sqrt(n * s * (1 - s))
    return np.where(np.isfinite(z), z, -np.inf)


def _above(z: NDArray, columns: NDArray[np.bool_]) -> float:
    return float((z[columns] > z_threshold(0.01)).mean()) if columns.any() else float("nan")


def features_alone(table: Features, counts: NDArray, corpus: Corpus, seed: int = 0) -> dict[str, Figure]:
    """How far features stand out, and how far they do in copies whose labels are shuffled within each premise.

    highest z         of features that 20 pairs have; its interval is that of the one feature, which was picked
    above, by chance  share of (hypothesis n-gram, label) above the uncorrected .01 line, and in the shuffled copies
    detectable        number of (feature, label) above the line with Bonferroni's correction
    """
    z, often = z_over_shares(counts), counts.sum(axis=1) >= OFTEN
    columns = often & (side_of(table.names) == "hypothesis")
    n, classes, copies = len(corpus), len(corpus.classes), COPIES[len(corpus) > LARGE]
    premises = pd.factorize(corpus.premise)[0]
    # the null feature stays, by which z knows the shares of the labels
    shown = np.flatnonzero(columns | (table.names == "null"))
    part, chosen = table.matrix[:, shown], columns[shown]

    def share(labels: NDArray, weights: NDArray | None = None) -> float:
        return _above(z_over_shares(z_statistics(part, labels, classes, weights).counts), chosen)

    value = _above(z, columns)
    chance = np.array([share(shuffled_labels(corpus.labels, premises, seed=each)) for each in range(copies)])
    drawn = [share(corpus.labels, w) for w in resample_counts(n, groups=premises, resamples=copies, seed=seed)]
    half = 1.96 * float(np.std(drawn, ddof=1))
    middle = float(chance.mean()), *np.quantile(chance, [0.025, 0.975])
    line = z_threshold(0.01, tests=z.size)
    return {
        "above": Figure(Estimate(value, value - half, value + half, n, over=MIDDLE), CELLS),
        "by chance": Figure(Estimate(*map(float, middle), n, over=f"{copies} shuffled copies"), CELLS),
        "detectable": Figure(exact((z[often] > line).sum(), n), "features and labels"),
        "line": Figure(exact(line, n), Z),
    }


def top_table(table: Features, counts: NDArray, corpus: Corpus, *, most: int = TOP) -> pd.DataFrame:
    """The features of highest z for each label: label (name), rank, feature, n, share with low and high over premises,
    base (the label's share in the corpus), z with z_low and z_high, z_paper (over one over the number of labels).

    Of nested features, such as the lengths below 5 and below 6, the one of highest z; of those that 20 pairs have.
    """
    z, n, classes = z_over_shares(counts), counts.sum(axis=1), len(corpus.classes)
    family = pd.Series(table.names).str.replace(FAMILY, "", regex=True).to_numpy(dtype=object)
    base, premises, rows = counts[n.argmax()] / n.max(), pd.factorize(corpus.premise)[0], []
    columns = table.matrix.tocsc()
    ranked = np.flatnonzero((n >= OFTEN) & (table.names != "null"))
    for label, name in enumerate(corpus.classes):
        # more than are shown, since families are thinned out; of equal z the more frequent one, then by name
        near = ranked[np.argsort(-z[ranked, label], kind="stable")[: 10 * most]]
        near = near[np.lexsort((table.names[near].astype(str), -n[near], -z[near, label]))]
        near = near[z[near, label] > 0]
        near = near[~pd.Series(family[near]).duplicated().to_numpy()][:most]
        for rank, column in enumerate(near, 1):
            fires = columns.indices[columns.indptr[column] : columns.indptr[column + 1]]
            share = clustered_share(corpus.labels[fires] == label, premises[fires])
            ends = np.array([share.low, share.high, share.value])
            scale = np.sqrt(n[column] / (base[label] * (1 - base[label])))
            low, high, _ = (ends - base[label]) * scale
            chance = 1 / classes
            paper = (share.value - chance) * np.sqrt(n[column] / (chance * (1 - chance)))
            rows.append((
                name, rank, table.names[column], int(n[column]), share.value, share.low, share.high, base[label],
                z[column, label], low, high, paper, int(fires[0]),
            ))  # fmt: skip
    names = [
        "label",
        "rank",
        "feature",
        "n",
        "share",
        "low",
        "high",
        "base",
        "z",
        "z_low",
        "z_high",
        "z_paper",
        "first",
    ]
    return pd.DataFrame(rows, columns=names)


def _highest(top: pd.DataFrame, n: int) -> Figure:
    """The highest z of any feature and label, with the interval of that feature, which was picked for it."""
    if top.empty:
        return Figure(Estimate(np.nan, np.nan, np.nan, n), Z)
    best = top.loc[top["z"].idxmax()]
    return Figure(Estimate(*best[["z", "z_low", "z_high"]].astype(float), n, over=OVER), Z)


def _filtered(table: Features, corpus: Corpus, order: int) -> Filtered:
    return z_filter(table.matrix, corpus.labels, names=table.names, k=K, seed=order, n_classes=len(corpus.classes))
