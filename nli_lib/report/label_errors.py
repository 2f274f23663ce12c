"""What the suspicion of a label is worth: shares of wrong labels, the threshold, agreement of seeds, lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score

from nli_lib.measure.consensus import judge, suspects, threshold_rule
from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import percentile_interval, with_wilson

EDGES = (0, 1, 2, 3, 4, 5)  # intervals of the gap in the consensus cleaning paper's Figure 2
NONE = 6.0  # stands for "no threshold" where a number is needed


def error_shares(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Share of wrong labels in each group, with its Wilson interval: the columns of `by`, n, wrong, share, low, high.

    table  one row an example: the columns of `by`, wrong (bool) and, where several trainings judged the same examples,
           seed; then n and wrong are the mean of one training, rounded: pooled, an example would count several times

    Groups come in the order of their first rows; the seeds are counted in each value of the first column of `by`.
    """
    by = list(by)
    seeds = table.groupby(by[0])["seed"].transform("nunique") if "seed" in table else 1
    groups = table.assign(seeds=seeds).groupby(by, sort=False, observed=True)
    counted = groups.agg(n=("wrong", "size"), wrong=("wrong", "sum"), seeds=("seeds", "first")).reset_index()
    counted[["n", "wrong"]] = counted[["n", "wrong"]].div(counted.pop("seeds"), axis=0).round().astype(int)
    return with_wilson(counted[counted["n"] > 0], "wrong", value="share")


def threshold_estimate(
    gap: ArrayLike, wrong: ArrayLike, *, edges: Sequence[float] = EDGES, resamples: int = 1000, seed: int = 0
) -> tuple[Estimate, float]:
    """`threshold_rule` with a percentile interval over the mismatches, and the share of resamples without a threshold.

    gap (N,), wrong (N,) bool. `NONE` stands for no threshold, in the estimate as in the resamples.
    """
    gap, wrong = np.asarray(gap, dtype=float), np.asarray(wrong, dtype=bool)
    rows = np.random.default_rng(seed).integers(len(gap), size=(resamples, len(gap)))
    value, *draws = (
        NONE if (edge := threshold_rule(gap[at], wrong[at], edges)) is None else edge for at in (slice(None), *rows)
    )
    return percentile_interval(value, np.array(draws), n=len(gap)), float(np.mean(np.array(draws) == NONE))


def climb(by_fold: pd.DataFrame, *, sessions: int = 2, resamples: int = 2000, seed: int = 0) -> Estimate:
    """By how much accuracy rises from a fold to the next: the slope in each session of folds, averaged over sessions.

    by_fold: fold (0 and up), n, correct. The interval redraws the pairs of each fold. Fresh models have no reason to
    climb; one that is trained on from fold to fold has seen what it scores, and does (`learn.cross.cross_score`).
    """
    fold, n, correct = (by_fold[column].to_numpy() for column in ("fold", "n", "correct"))
    session = fold // -(-(fold.max() + 1) // sessions)
    parts = [np.flatnonzero(session == each) for each in np.unique(session)]
    draws = np.random.default_rng(seed).binomial(n, correct / n, size=(resamples, len(n)))
    value, *slopes = (
        np.mean([np.polyfit(fold[part], row[part] / n[part], 1)[0] for part in parts if len(part) > 1])
        for row in (correct, *draws)
    )
    return percentile_interval(value, np.array(slopes), n=int(n.sum()))


def overlaps(lists: pd.DataFrame, seeds: Sequence[int], pool: int) -> pd.DataFrame:
    """How far the lists of each two seeds agree: first, second (seeds), overlap, and chance.

    lists    seed, position: the examples that each of `seeds` lists
    overlap  examples that both list, as a share of those that either does, 0 to 1
    chance   the same for two random lists as long, drawn from `pool` examples
    """
    listed = pd.crosstab(lists["position"], lists["seed"]).reindex(columns=list(seeds), fill_value=0).to_numpy()
    one, other = np.triu_indices(len(seeds), k=1)
    size, both = listed.sum(axis=0), (listed.T @ listed)[one, other]
    total, expected = size[one] + size[other], size[one] * size[other] / max(1, pool)
    names = np.asarray(seeds)
    table = {"first": names[one], "second": names[other], "overlap": both / np.maximum(1, total - both)}
    return pd.DataFrame({**table, "chance": expected / np.maximum(1, total - expected)})


def list_quality(people: pd.DataFrame, logits: Mapping[int, ArrayLike], *, threshold: float) -> pd.DataFrame:
    """The pruned pairs of each seed, judged by people: seed, truth, n, wrong, "by gap", "by votes".

    people: `corpora.people.references` with a column votes, how many seeds prune the pair; logits: seed -> (N, C).
    "by gap" and "by votes" are areas under the ROC curve: the probability that a wrong label of the list has the larger
    gap (is pruned by more seeds) than a right one; ties count half, 0.5 is chance, NaN where all labels are alike.
    """
    rows = []
    for truth, part in people.groupby("truth"):
        for seed, scores in logits.items():
            pruned = suspects(np.asarray(scores)[part["position"]], part["label"], threshold=threshold)
            named = judge(scores, part)[pruned]
            mixed = named["wrong"].nunique() == 2
            areas = {
                name: roc_auc_score(named["wrong"], named[column]) if mixed else np.nan
                for name, column in (("by gap", "gap"), ("by votes", "votes"))
            }
            rows.append({"seed": seed, "truth": truth, "n": len(named), "wrong": int(named["wrong"].sum()), **areas})
    return pd.DataFrame(rows, columns=["seed", "truth", "n", "wrong", "by gap", "by votes"])


def set_quality(sets: Mapping[str, ArrayLike], wrong: ArrayLike) -> pd.DataFrame:
    """How many of the labels that each set holds are wrong, one row a set: set, n, precision, chance, recall.

    sets: name -> (N,) bool; wrong (N,) bool. chance is the precision of a random set: the share of wrong labels.
    """
    wrong = np.asarray(wrong, dtype=bool)
    rows = []
    for name, chosen in sets.items():
        caught, n = int((np.asarray(chosen, dtype=bool) & wrong).sum()), int(np.sum(chosen))
        shares = {"precision": caught / n if n else np.nan, "chance": wrong.mean(), "recall": caught / wrong.sum()}
        rows.append({"set": name, "n": n, **shares})
    return pd.DataFrame(rows)
