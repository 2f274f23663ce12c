"""Shares whose pairs come in groups: a Wilson interval for as many pairs as the groups are worth.

The hypotheses of one premise are not independent of each other. A bootstrap of premises says what that costs; here it
follows from one sum over the groups, so that millions of pairs take a second.
"""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import LEVEL

OVER = "premises"


def clustered_share(flags: ArrayLike, groups: ArrayLike) -> Estimate:
    """The share of True among ``flags`` (N,), with an interval over the groups (N,), for example premises.

    Formula: the variance of a ratio of totals of G groups, v = G / (G - 1) sum_g (sum_i (y_i - p))^2 / N^2, makes the
    design effect d = v / (p (1 - p) / N), 1 at least; the interval is Wilson's for N / d pairs. Where all flags are
    equal nothing can be said about d, and each group counts as one pair. n counts the pairs.
    Source: Korn and Graubard (1998), with Wilson's interval in place of Clopper and Pearson's.
    """
    y, codes = np.asarray(flags, dtype=float), pd.factorize(np.asarray(groups))[0]
    if not len(y) or len(y) != len(codes):
        raise ValueError(f"{len(y)} flags of {len(codes)} pairs: give one for each pair")
    n, count, p = len(y), int(codes.max()) + 1, float(y.mean())
    mixed = 0 < p < 1 and count > 1
    worth = n / max(1.0, _variance(y, p, codes) / (p * (1 - p) / n)) if mixed else count
    low, high = proportion_confint(p * worth, worth, alpha=1 - LEVEL, method="wilson")
    # rounding must not leave the ends beyond what is possible
    return Estimate(p, 0.0 if p == 0 else float(low), 1.0 if p == 1 else float(high), n, over=OVER)


def clustered_mean(values: ArrayLike, groups: ArrayLike) -> Estimate:
    """The mean of ``values`` (N,) with a normal interval over the groups (N,), by the same variance.

    For a difference of two shares of the same pairs. With one group there is no spread to estimate: both ends are NaN.
    """
    y, codes = np.asarray(values, dtype=float), pd.factorize(np.asarray(groups))[0]
    if not len(y) or len(y) != len(codes):
        raise ValueError(f"{len(y)} values of {len(codes)} pairs: give one for each pair")
    mean = float(y.mean())
    half = float("nan")
    if codes.max() > 0:
        half = float(stats.norm.isf((1 - LEVEL) / 2) * np.sqrt(_variance(y, mean, codes)))
    return Estimate(mean, mean - half, mean + half, len(y), over=OVER)


def clustered_area(scores: ArrayLike, labels: ArrayLike, folds: ArrayLike, groups: ArrayLike) -> Estimate:
    """The cross-fitted area under the ROC curve of one label against the rest, mean over the labels that occur.

    0 to 1; .5 is chance, whatever the shares of the labels are. Of two pairs, one with the label and one without: how
    often the former has the higher score. The interval is over the groups (N,).

    scores (N, C), labels (N,) from 0 to C - 1, folds (N,): the models that gave the scores. Pairs of one fold alone are
    compared, since models of different folds have learnt different shares of the labels; a fold without the label, or
    with nothing else, is left out.
    Formula: of a label, each of its pairs has the share of the others that it beats (ties count half), each other pair
    the share that beats it; deviations from their means add up to the variance, group by group (DeLong et al. 1988, for
    groups Obuchowski 1997). The interval is sqrt(1 + F / (F - 1)) times as wide as for F models without a pair in
    common (Nadeau and Bengio 2003), or else pairs of which nothing can be learnt would have one above .5 four times too
    often. Where the scores tell no two pairs apart both ends are NaN. n counts the pairs.
    """
    scores, labels, folds = np.asarray(scores), np.asarray(labels), np.asarray(folds)
    parts = []  # a label's area, and what each pair adds to N times its deviation
    for label in np.unique(labels):
        wins, apart = np.full(len(labels), np.nan), np.zeros(len(labels))
        for fold in np.unique(folds):
            own, rest = (np.flatnonzero((folds == fold) & each) for each in (labels == label, labels != label))
            if len(own) and len(rest):
                ranks = stats.rankdata(scores[np.concatenate([own, rest]), label])
                wins[own] = (ranks[: len(own)] - stats.rankdata(scores[own, label])) / len(rest)
                lost = 1 - (ranks[len(own) :] - stats.rankdata(scores[rest, label])) / len(own)
                apart[rest] = (lost - lost.mean()) * len(own) / len(rest)
        used = ~np.isnan(wins)
        area = wins[used].mean() if used.any() else np.nan
        apart[used] = wins[used] - area
        parts.append((area, apart * len(labels) / max(used.sum(), 1)))
    area, apart = (np.mean(each, axis=0) for each in zip(*parts, strict=True))
    found, count = clustered_mean(area + apart, groups), len(np.unique(folds))
    half = (found.high - found.low) / 2 * np.sqrt(1 + count / max(count - 1, 1))
    if half == 0 and np.isclose(area, 0.5):
        half = np.nan
    low, high = np.clip([area - half, area + half], 0, 1)
    return found._replace(value=float(area), low=float(low), high=float(high))


def _variance(y: np.ndarray, mean: float, codes: np.ndarray) -> float:
    totals = np.bincount(codes, y - mean)
    return float((totals**2).sum() / len(y) ** 2 * len(totals) / (len(totals) - 1))
