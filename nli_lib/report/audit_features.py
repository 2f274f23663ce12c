"""Features of an audit: how far a label's share among the pairs of a feature lies above its share in the corpus.

z here takes the share of the label in the corpus (`z_over_shares`), so that an unequal label balance does not make
every frequent word stand out.
"""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.corpus import Corpus
from nli_lib.measure.features import OFTEN, Features, shuffled_labels, side_of, z_statistics, z_threshold
from nli_lib.report.audit_figures import CELLS, Figure, Z, exact
from nli_lib.stats import OVER, Estimate, clustered_share, resample_counts

MIDDLE = "premises, by normal approximation"
TOP = 20  # features a label
FAMILY = r"(?<=[<>]) .*|(?<=len-ratio) .*"  # what tells nested features of one family apart


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


def above_share(z: NDArray, columns: NDArray[np.bool_]) -> float:
    return float((z[columns] > z_threshold(0.01)).mean()) if columns.any() else float("nan")


def beyond_chance(table: Features, counts: NDArray, corpus: Corpus, *, copies: int, seed: int = 0) -> dict[str, Figure]:
    """How far features stand out, and how far they do in copies whose labels are shuffled within each premise.

    above, by chance  share of (hypothesis n-gram, label) above the uncorrected .01 line, and in the shuffled copies
    detectable        number of (feature, label) above the line with Bonferroni's correction
    """
    z, often = z_over_shares(counts), counts.sum(axis=1) >= OFTEN
    columns = often & (side_of(table.names) == "hypothesis")
    n, classes = len(corpus), len(corpus.classes)
    premises = pd.factorize(corpus.premise)[0]
    # the null feature stays, by which z knows the shares of the labels
    shown = np.flatnonzero(columns | (table.names == "null"))
    part, chosen = table.matrix[:, shown], columns[shown]

    def share(labels: NDArray, weights: NDArray | None = None) -> float:
        return above_share(z_over_shares(z_statistics(part, labels, classes, weights).counts), chosen)

    value = above_share(z, columns)
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
    base (the label's share in the corpus), z with z_low and z_high, z_paper (over one over the number of labels), first
    (the row of the first pair that has it).

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


def highest(top: pd.DataFrame, n: int) -> Figure:
    """The highest z of any feature and label, with the interval of that feature, which was picked for it."""
    if top.empty:
        return Figure(Estimate(np.nan, np.nan, np.nan, n), Z)
    best = top.loc[top["z"].idxmax()]
    return Figure(Estimate(*best[["z", "z_low", "z_high"]].astype(float), n, over=OVER), Z)
