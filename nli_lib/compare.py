"""Comparison of training sets by the accuracies of several trainings of each on many test sets.

``right`` marks the pairs of a test set (N,) that each of S trainings gets right, premises (N,) the pairs that are drawn
together::

    right = {"WANLI": {"SNLI test": (S, N) bool}, "MultiNLI": ...}; premises = {"SNLI test": (N,)}
    accuracy(right["WANLI"], premises, columns(premises), other=right["MultiNLI"])   # how much better, an Estimate

Arms of a comparison are paired with their random twins::

    right = {("z-filter", ARM): {"SNLI test": (S, N) bool}, ("z-filter", TWIN): {...}, ("base", ARM): ...}
    groups = {"in distribution": ["SNLI test"]}; sizes = {"SNLI test": 9824}
    base_noise(right, premises, ["SNLI test"])         # the noise of a difference, before any other arm is trained
    against_twins(right, premises, groups, sizes)      # arm minus twin, over trainings and premises, p and Holm's p
    ranks(scores(right, groups, sizes))                # ranks of the arms, each with the ranks it may really have

The s-th training of an arm of `select.arms` and of its twin belong together: the same seed, candidates and start. S can
differ between arms, but not between an arm and its twin; S = 1 gives intervals over premises only, and no ranks.
``groups`` names the test sets that are averaged, ``sizes`` their weights in the second of the two averages, `PLAIN` and
`WEIGHTED`. Differences are accuracies in 0-1: above zero, the arm is better. All tables are tidy and contain no text.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats
from statsmodels.stats.multitest import multipletests

from nli_lib.select.arms import ARM
from nli_lib.select.selection import TWIN
from nli_lib.stats import LEVEL, POWER, Estimate, over_trainings

Right = Mapping[str, NDArray[np.bool_]]  # test set -> (S, N)
Premises = Mapping[str, ArrayLike]  # test set -> (N,), pairs with equal codes are drawn together
Columns = Mapping[str, Sequence[str]]  # column of a table -> the test sets in its unweighted mean
ANLI = "ANLI"
MEAN = "mean out of domain"


def columns(titles: Iterable[str]) -> dict[str, list[str]]:
    """Make one column for each test set, except that the rounds of ANLI share one.

    References
    ----------
    WANLI, section 3.3, with gains on ANLI as unweighted means of its three rounds (W16).
    """
    found: dict[str, list[str]] = {}
    for title in titles:
        found.setdefault(ANLI if title.startswith("ANLI R") else title, []).append(title)
    return found


def accuracy(
    right: Right,
    premises: Premises,
    columns: Columns,
    *,
    other: Right | None = None,
    weights: ArrayLike | None = None,
    resamples: int = 500,
) -> Estimate:
    """Mean accuracy in 0-1 of the trainings on one training set, or its difference from that of another.

    The interval is over trainings and premises (`stats.over_trainings`); n counts the premises of all test
    sets in the columns.

    Parameters
    ----------
    other
        the same for another training set; the s-th training of one is compared with the s-th of the other
    weights
        weights of the columns in the mean; None: all equal
    """
    titles = [title for members in columns.values() for title in members]
    base = {title: 0.0 if other is None else other[title].astype(float) for title in titles}
    every = np.concatenate([right[title] - base[title] for title in titles], axis=1)
    block = np.repeat(np.arange(len(titles)), [right[title].shape[1] for title in titles])
    groups = np.concatenate([f"{title}: " + pd.Series(premises[title]).astype(str) for title in titles])
    # (test sets, columns): weight of each test set in each column
    parts = np.stack([np.isin(titles, members) / len(members) for members in columns.values()], axis=1)

    def statistic(rows: NDArray) -> NDArray:
        chosen = every[:, rows]
        sums = np.stack([chosen[..., block[rows] == at].sum(axis=-1) for at in range(len(titles))], axis=-1)
        with np.errstate(invalid="ignore"):  # NaN if a resample has no pair of some test set
            means = sums / np.bincount(block[rows], minlength=len(titles))
        return np.average(means @ parts, axis=-1, weights=weights)

    return over_trainings(statistic, len(block), groups=groups, resamples=resamples)


def compare(
    right: Mapping[str, Right], premises: Premises, out_of_domain: Sequence[str], *, baseline: str | None = None
) -> pd.DataFrame:
    """`accuracy` of every training set on every column, and `MEAN`, its mean over the columns ``out_of_domain``.

    Columns: title, condition (the training set), and the fields of Estimate.

    Parameters
    ----------
    baseline
        a training set: the others are given as differences from it, and it has no row
    """
    each, rows = columns(premises), []
    wanted = {name: {name: members} for name, members in each.items()}
    judged = {name: each[name] for name in out_of_domain if name in each}
    wanted |= {MEAN: judged} if judged else {}
    for condition, answers in right.items():
        if condition != baseline:
            other = right[baseline] if baseline else None
            for title, part in wanted.items():
                rows.append((title, condition, *accuracy(answers, premises, part, other=other)))
    return pd.DataFrame(rows, columns=["title", "condition", *Estimate._fields])


# ---------------------------------------------------------------- averages


PLAIN, WEIGHTED = "plain mean", "weighted by size"


def average(
    right: Right,
    premises: Premises,
    titles: Sequence[str],
    weights: ArrayLike | None = None,
    *,
    other: Right | None = None,
    resamples: int = 500,
) -> Estimate:
    """Mean accuracy over test sets, or its difference from that of ``other``, with an interval over trainings and
    premises.

    weights (D,) of the titles, None: all equal.
    """
    shares = np.full(len(titles), 1 / len(titles)) if weights is None else np.asarray(weights, dtype=float)
    columns = {title: [title] for title in titles}
    return accuracy(right, premises, columns, other=other, weights=shares, resamples=resamples)


# ---------------------------------------------------------------- budgets


BASE = "base"
Arms = Mapping[tuple[str, str], Right]  # an arm's name, and `ARM` or `TWIN`
Pairs = Mapping[str, tuple[tuple[str, str], tuple[str, str]]]  # name -> one arm and another
Groups = Mapping[str, Sequence[str]]
Sizes = Mapping[str, float]


def against_twins(right: Arms, premises: Premises, groups: Groups, sizes: Sizes, **options: int) -> pd.DataFrame:
    """Every arm minus its twin, if it has one: `differences`."""
    pairs = {name: ((name, ARM), (name, TWIN)) for name, which in right if which == ARM and (name, TWIN) in right}
    return differences(right, pairs, premises, groups, sizes, **options)


def above_base(right: Arms, premises: Premises, groups: Groups, sizes: Sizes, **options: int) -> pd.DataFrame:
    """Every arm minus the base, over the trainings that both have: `differences`."""
    pairs = {name: ((name, ARM), (BASE, ARM)) for name, which in right if which == ARM and name != BASE}
    return differences(right, pairs, premises, groups, sizes, **options)


def differences(
    right: Arms, pairs: Pairs, premises: Premises, groups: Groups, sizes: Sizes, *, resamples: int = 200
) -> pd.DataFrame:
    """Mean accuracy of one arm minus that of another, one row for each of ``pairs``, group and average.

    Columns: arm, group, average, the fields of `Estimate` (over trainings and premises: `half_width`), its errors "of
    trainings" and "of premises" and the "freedom" of the first, p (two-sided: the level at which that interval ends at
    zero) and "p, Holm", corrected for all arms and groups of the same average. A group without a test set has no row.

    The variance of a difference between trainings is estimated from all pairs of a group and average together
    (`moderated`), because three trainings of one arm say little about it. If all pairs have one training, the error is
    only that of the premises.
    """
    rows = []
    for arm, (one, other) in pairs.items():
        count = min(len(next(iter(right[key].values()))) for key in (one, other))
        both = [{title: answers[:count] for title, answers in right[key].items()} for key in (one, other)]
        for group, name, titles, weights in both_averages(groups, sizes):
            found = average(both[0], premises, titles, weights, other=both[1], resamples=resamples)
            single = _means(both[0], titles, weights) - _means(both[1], titles, weights)
            rows.append((arm, group, name, *found, *errors(found, single), found.seeds - 1.0))
    each, same = ["of trainings", "of premises", "freedom"], ["group", "average"]
    table = pd.DataFrame(rows, columns=["arm", *same, *Estimate._fields, *each])
    for _, part in table.groupby(same):
        square, table.loc[part.index, each[2]] = moderated(part["seeds"] * part[each[0]] ** 2, part[each[2]])
        table.loc[part.index, each[0]] = np.sqrt(square / part["seeds"])
    half = np.array([half_width(*row) for row in table[each].itertuples(index=False)])
    table["low"], table["high"] = table["value"] - half, table["value"] + half
    table["p"] = [p_value(*row) for row in table[["value", *each]].itertuples(index=False)]
    table["p, Holm"] = np.nan
    for _, part in table.groupby("average"):
        known = part.index[part["p"].notna()]
        if len(known):
            table.loc[known, "p, Holm"] = multipletests(part.loc[known, "p"], method="holm")[1]
    return table


def moderated(variance: pd.Series, freedom: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Shrink variances (K,) with the given degrees of freedom (K,) towards a common value, the more the more alike they
    are; return them with their new degrees of freedom, at most the sum of all.

    References
    ----------
    Smyth (2004), "Linear models and empirical Bayes methods for assessing differential expression in microarray
    experiments", section 6, the moderated t.
    """
    some = (variance > 0) & (freedom > 0)
    if some.sum() < 2:
        return variance, freedom
    half = freedom[some] / 2
    logs = np.log(variance[some] * half) - special.digamma(half)
    excess = max(logs.var(ddof=1) - special.polygamma(1, half).mean(), 1e-6)
    prior = 2 * optimize.brentq(lambda each: special.polygamma(1, each) - excess, 1e-3, 1e8)
    common = np.exp(logs.mean() + special.digamma(prior / 2) - np.log(prior / 2))
    return (prior * common + freedom * variance) / (prior + freedom), np.minimum(prior + freedom, freedom.sum())


def scores(right: Arms, groups: Groups, sizes: Sizes) -> pd.DataFrame:
    """The value of every single training: columns arm, which (`ARM` or `TWIN`), group, average, training, value."""
    rows = []
    for (arm, which), answers in right.items():
        for group, name, titles, weights in both_averages(groups, sizes):
            values = _means(answers, titles, weights)
            rows += [(arm, which, group, name, at, value) for at, value in enumerate(values)]
    return pd.DataFrame(rows, columns=["arm", "which", "group", "average", "training", "value"])


def both_averages(groups: Groups, sizes: Sizes) -> list[tuple[str, str, Sequence[str], NDArray[np.float64]]]:
    """Group, average, test sets and their weights (D,), which add up to 1; groups without a test set are left out."""
    found = []
    for group, titles in groups.items():
        if titles:
            whole = np.array([float(sizes[title]) for title in titles])
            weights = {PLAIN: np.full(len(titles), 1 / len(titles)), WEIGHTED: whole / whole.sum()}
            found += [(group, name, titles, each) for name, each in weights.items()]
    return found


def _means(answers: Right, titles: Sequence[str], weights: ArrayLike | None) -> NDArray[np.float64]:
    """(S,) the average of each training."""
    return np.average([answers[title].mean(axis=1) for title in titles], axis=0, weights=weights)


# ---------------------------------------------------------------- chance


def errors(found: Estimate, single: ArrayLike) -> tuple[float, float]:
    """Standard errors of a mean over S trainings, from trainings and from premises, given the `Estimate` that `stats`
    made from the S values ``single``; the first is 0 if there is one training."""
    values, seeds = np.asarray(single, dtype=float), len(np.asarray(single))
    trainings = float(values.std(ddof=1) / np.sqrt(seeds)) if seeds > 1 else 0.0
    part = stats.t.ppf((1 + LEVEL) / 2, seeds - 1) * trainings if seeds > 1 else 0.0
    rest = max((found.high - found.value) ** 2 - part**2, 0.0)
    return trainings, float(np.sqrt(rest) / stats.norm.ppf((1 + LEVEL) / 2))


def half_width(trainings: float, premises: float, freedom: float, *, alpha: float = 1 - LEVEL) -> float:
    """Half-width of an interval: both errors in quadrature, the first with Student's factor for the given degrees of
    freedom, the second with the normal factor."""
    factor = stats.t.isf(alpha / 2, freedom) if freedom > 0 else 0.0
    return float(np.hypot(factor * trainings, stats.norm.isf(alpha / 2) * premises))


def p_value(value: float, trainings: float, premises: float, freedom: float) -> float:
    """Two-sided p of "no difference": the level at which the interval of ``value`` with these errors (`half_width`)
    ends at zero, so that p < .05 exactly if the 95% interval excludes zero. NaN if nothing varies and the value is not
    0.
    """
    size = abs(value)
    if size == 0:
        return 1.0
    if not trainings + premises > 0:
        return float("nan")

    def reach(logarithm: float) -> float:  # logarithm of p, so that small ones are as exact as large ones
        return half_width(trainings, premises, freedom, alpha=np.exp(logarithm)) - size

    least = np.log(1e-300)
    return float(np.exp(optimize.brentq(reach, least, 0.0))) if reach(least) > 0 else 0.0


def smallest_detectable(
    spread: float, trainings: int, *, premises: float = 0.0, family: int = 1, freedom: float | None = None
) -> float:
    """The smallest true difference that is significant with the probability `POWER`; NaN with one training.

    The half-width of the interval at that level, plus the number of standard errors that the power requires.

    Parameters
    ----------
    spread
        standard deviation of the difference from training to training
    premises
        standard error from the test pairs, which more trainings do not reduce
    family
        number of simultaneous comparisons: the level is .05 / family, Holm's level for the smallest p
    freedom
        degrees of freedom of the spread; None: trainings - 1

    Examples
    --------
    >>> from nli_lib.compare import smallest_detectable
    >>> [round(float(smallest_detectable(1.0, trainings)), 1) for trainings in (3, 5, 10)]  # where the spread is 1
    [3.0, 1.6, 1.0]
    """
    if trainings < 2:
        return float("nan")
    error = spread / np.sqrt(trainings)
    half = half_width(error, premises, freedom or trainings - 1, alpha=(1 - LEVEL) / family)
    return float(half + stats.norm.ppf(POWER) * np.hypot(error, premises))


def detectable_words(trainings: int) -> str:
    """One sentence to show before a run: the differences that this number of trainings can detect, in units of their
    spread."""
    if trainings < 2:
        return "With one training, no difference between trainings can be judged."
    size = smallest_detectable(1.0, trainings)
    return (
        f"With {trainings} trainings, a difference is found with a probability of {POWER:g} when it is {size:.1f} "
        "times as large as its standard deviation from training to training; a smaller one may well be missed."
    )


def base_noise(
    right: Arms, premises: Premises, titles: Sequence[str], weights: ArrayLike | None = None
) -> tuple[float, float, int]:
    """The noise of a difference of mean accuracies, from the base and its twin: its standard deviation between
    trainings (NaN with one training), its standard error from the test pairs, and the number of trainings."""
    one, twin = right[BASE, ARM], right[BASE, TWIN]
    gaps = _means(one, titles, weights) - _means(twin, titles, weights)
    found = average(one, premises, titles, weights, other=twin, resamples=200)
    return float(gaps.std(ddof=1)) if len(gaps) > 1 else float("nan"), errors(found, gaps)[1], len(gaps)


# ---------------------------------------------------------------- ranks


def ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Ranks of the arms in every group and average, 1 the best, with the ranks that chance leaves possible.

    Columns: group, average, arm, value (mean over the trainings), rank (equal values share the best rank), best and
    worst (the ranks that the arm may have), trainings.

    Two arms certainly differ if their means are further apart than Tukey's honestly significant difference: the 95%
    point of the studentised range of K means with the residual variance of arms and trainings, which excludes the draw
    of candidates that all arms of a training share. An arm comes after those that are certainly better and before those
    that are certainly worse; all these ranks hold simultaneously with 95%, on these test pairs. Source: Klein, Wright
    and Wieczorek (2020), "A joint confidence region for an overall ranking of populations"; the differences are
    Tukey's. With one training, or one arm, nothing is certain.

    Parameters
    ----------
    table
        from `scores`; twins are left out, and trainings that any arm does not have
    """
    found = []
    arms = table[table["which"] == ARM]
    for (group, name), part in arms.groupby(["group", "average"], sort=False):
        wide = part.pivot(index="arm", columns="training", values="value").loc[part["arm"].unique()].dropna(axis=1)
        mean, ahead = wide.mean(axis=1).to_numpy(), certainly_above(wide.to_numpy())
        places = {"rank": stats.rankdata(-mean, method="min"), "best": 1 + ahead.sum(axis=0)}
        places["worst"] = len(mean) - ahead.sum(axis=1)
        rows = pd.DataFrame({"arm": wide.index, "value": mean, **places, "trainings": wide.shape[1]})
        found.append(rows.assign(group=group, average=name).sort_values("rank", kind="stable"))
    names = ["group", "average", "arm", "value", "rank", "best", "worst", "trainings"]
    return pd.concat([*found, pd.DataFrame(columns=names)], ignore_index=True)[names]


def certainly_above(values: ArrayLike) -> NDArray[np.bool_]:
    """(K, K) bool: True where the mean of row i of ``values`` (K arms, S trainings) exceeds that of row j by more than
    Tukey's honestly significant difference. Arms with equal values in all trainings never differ."""
    values = np.asarray(values, dtype=float)
    arms, trainings = values.shape
    mean = values.mean(axis=1)
    freedom = (arms - 1) * (trainings - 1)
    if freedom < 1:
        return np.zeros((arms, arms), dtype=bool)
    residual = values - mean[:, None] - values.mean(axis=0) + values.mean()
    error = np.sqrt((residual**2).sum() / freedom / trainings)
    return mean[:, None] - mean > _studentized(LEVEL, arms, freedom) * error


_studentized = functools.cache(stats.studentized_range.ppf)  # its integral takes a tenth of a second
