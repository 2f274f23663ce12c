"""How far scores of the same pairs agree, which of them are one thing under two names, and in which order to draw them.

table = agreement(scores, premises)          # scores: name -> (S, N), a row a training
names, groups = drawing_order(table), same_things(table)
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata

from nli_lib.measure.pair_scores import VOTES
from nli_lib.report.estimate import Estimate
from nli_lib.report.premises import drawn_rows
from nli_lib.report.trainings import with_trainings

SAME = 0.95  # two scores are one thing under two names where the whole interval of |rho| lies above; fixed beforehand
FEW = 20  # pairs that two scores must share

Floats = NDArray[np.float64]


def agreement(scores: Mapping[str, ArrayLike], premises: ArrayLike, *, resamples: int = 200) -> pd.DataFrame:
    """Spearman correlation of every two scores within one training, with an interval over trainings and premises.

    scores    name -> (S, N), a row a training, NaN where a pair, or in a whole row a training, is not known
    premises  (N,), anything that is equal where the premise is

    Columns: one, other, value, and the rest of `Estimate`; n counts the premises of the pairs that both know. The value
    is the mean over the trainings that both know; where none of the two changes with the training, the interval is over
    premises alone. Its ends are kept within -1 and 1. A row whose two names are equal says how far the score agrees
    with itself in another training: the mean over every two trainings, low and high the smallest and the largest of
    them, 1 for a score that no training changes; with one training there is no such row. Scores that share fewer than
    `FEW` pairs, or are constant on them, have no row. The votes of all trainings (`VOTES`) are one number: their rows
    say nothing of other voters.
    """
    names, values = list(scores), np.stack([np.asarray(each, dtype=float) for each in scores.values()])  # (K, S, N)
    premises = pd.factorize(np.asarray(premises))[0]
    by_training = np.stack([rank_correlations(each) for each in values.swapaxes(0, 1)])  # (S, K, K)
    draws = np.stack([_mean_over_trainings(values[..., rows]) for rows in drawn_rows(premises, resamples=resamples)])
    known = np.isfinite(values).any(axis=1)
    fixed = (np.isnan(values) | (values == values[:, :1])).all(axis=(1, 2))
    rows = [_itself(name, of) for name, of in zip(names, values, strict=True) if name != VOTES]
    for i, j in zip(*np.triu_indices(len(names), 1), strict=True):
        found = by_training[:, i, j][np.isfinite(by_training[:, i, j])]
        if len(found):
            found = found[:1] if fixed[i] and fixed[j] else found
            n = len(np.unique(premises[known[i] & known[j]]))
            drawn = draws[:, i, j]
            found = with_trainings(found.mean(), drawn[np.isfinite(drawn)], found, n=n, units="premises")
            found = found._replace(low=max(found.low, -1.0), high=min(found.high, 1.0))
            rows.append((names[i], names[j], *found))
    return pd.DataFrame([row for row in rows if row], columns=["one", "other", *Estimate._fields])


def rank_correlations(values: ArrayLike) -> Floats:
    """Spearman correlation of every two of K scores, (K, N) -> (K, K), over the pairs that both know (not NaN).

    NaN where fewer than `FEW` pairs are shared or one of the two is constant on them.
    """
    values = np.asarray(values, dtype=float)
    rho = np.full((len(values), len(values)), np.nan)
    patterns, of = np.unique(np.isfinite(values), axis=0, return_inverse=True)
    of = of.ravel()
    for p, q in zip(*np.triu_indices(len(patterns)), strict=True):
        shared, members = patterns[p] & patterns[q], np.flatnonzero((of == p) | (of == q))
        if shared.sum() >= FEW:
            ranks = rankdata(values[np.ix_(members, shared)], axis=1)
            ranks -= ranks.mean(axis=1, keepdims=True)
            size = np.sqrt((ranks**2).sum(axis=1))
            with np.errstate(invalid="ignore", divide="ignore"):
                found = ranks @ ranks.T / np.outer(size, size)
            pairs = (of[members][:, None] == p) & (of[members] == q) | (of[members][:, None] == q) & (of[members] == p)
            rho[np.ix_(members, members)] = np.where(pairs, found, rho[np.ix_(members, members)])
    return rho


def estimate_of(table: pd.DataFrame, one: str, other: str) -> Estimate | None:
    """The row of two scores, whichever comes first; None where there is none."""
    found = table[table[["one", "other"]].isin([one, other]).all(axis=1) & (table["one"] != table["other"])]
    return Estimate(*found[list(Estimate._fields)].iloc[0]) if len(found) else None


def square(table: pd.DataFrame, column: str = "value", names: Sequence[str] | None = None) -> pd.DataFrame:
    """A column of `agreement` as a symmetric square, a row and a column for each of ``names`` (all); NaN: no row."""
    both = pd.concat([table, table.rename(columns={"one": "other", "other": "one"})]).drop_duplicates(["one", "other"])
    names = list(names) if names is not None else list(pd.unique(table[["one", "other"]].to_numpy().ravel()))
    return both.pivot(index="one", columns="other", values=column).reindex(index=names, columns=names)


def drawing_order(table: pd.DataFrame) -> list[str]:
    """The scores so that those which agree stand beside each other: average linkage on 1 - |rho|, its leaves ordered so
    that neighbours are as near as they can be. What has no correlation counts as none. The same for any order of rows.
    """
    names = sorted(set(table["one"]) | set(table["other"]))
    if len(names) < 3:
        return names
    tree = linkage(_distances(square(table, names=names)), method="average", optimal_ordering=True)
    return [names[at] for at in leaves_list(tree)]


def same_things(table: pd.DataFrame, line: float = SAME) -> list[list[str]]:
    """The scores in groups of which every two are one thing under two names, a score of its own being a group of one.

    Two are one thing where the whole interval of their |rho| lies at or above ``line``: complete linkage on the end of
    the interval that lies nearer to 0. Groups in the order of their first names, names in alphabetical order.
    """
    names = sorted(set(table["one"]) | set(table["other"]))
    if len(names) < 2:
        return [[name] for name in names]
    low, high = (square(table, end, names) for end in ("low", "high"))
    nearer = np.maximum(low, -high).clip(lower=0)
    of = fcluster(linkage(_distances(nearer), method="complete"), t=1 - line + 1e-12, criterion="distance")
    return sorted([name for name, group in zip(names, of, strict=True) if group == each] for each in set(of))


def _distances(rho: pd.DataFrame) -> Floats:
    distance = 1 - np.abs(rho.fillna(0).to_numpy())
    np.fill_diagonal(distance, 0)
    return squareform(distance.clip(0), checks=False)


def _mean_over_trainings(values: Floats) -> Floats:
    found = np.stack([rank_correlations(each) for each in values.swapaxes(0, 1)])
    count = np.isfinite(found).sum(axis=0)
    return np.where(count > 0, np.nansum(found, axis=0) / np.maximum(count, 1), np.nan)


def _itself(name: str, values: Floats) -> tuple | None:
    """The row of one score (S, N) with itself."""
    trained = values[np.isfinite(values).any(axis=1)]
    if len(trained) < 2:
        return None
    same = (np.isnan(trained) | (trained == trained[:1])).all()
    rho = np.array([1.0]) if same else rank_correlations(trained)[np.triu_indices(len(trained), 1)]
    rho = rho[np.isfinite(rho)]
    ends = (rho.mean(), rho.min(), rho.max()) if len(rho) else ()
    n = int(np.isfinite(trained).any(axis=0).sum())
    return (name, name, *ends, n, len(trained), "every two trainings") if ends else None
