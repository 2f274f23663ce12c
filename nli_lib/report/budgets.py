"""Arms of a comparison beside their random twins: differences, ranks, what could be detected, and what a point costs.

    right = {("z-filter", ARM): {"SNLI test": (S, N) bool}, ("z-filter", TWIN): {...}, ("base", ARM): ...}
    premises = {"SNLI test": (N,)}; groups = {"in distribution": ["SNLI test"]}; sizes = {"SNLI test": 9824}
    detectable_table(right, premises, groups, sizes, trainings=[3, 5], family=90)   # before any other arm is trained
    against_twins(right, premises, groups, sizes)      # arm minus twin, over trainings and premises, p and Holm's p
    ranks(scores(right, groups, sizes))                # places of the arms, each with the places it may really have

The contract: ``right`` holds, for each arm of `select.arms` and its twin, which pairs of each test set each of S
trainings gets right. The s-th training of an arm and of its twin belong together: the same seed, candidates and start.
S can differ between arms, not between an arm and its twin; S = 1 gives intervals over premises alone, and no ranks.
``groups`` names the test sets that are averaged, ``sizes`` what each weighs in the second of the two averages, `PLAIN`
and `WEIGHTED`. Differences are accuracies in 0-1: above zero, the arm is the better. All tables are tidy and hold no
text.
"""

import functools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats
from statsmodels.stats.multitest import multipletests

from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import LEVEL
from nli_lib.report.mixtures import Right
from nli_lib.report.students import PLAIN, WEIGHTED, average
from nli_lib.select.arms import ARM
from nli_lib.select.selection import TWIN

POWER = 0.8
BASE = "base"
Arms = Mapping[tuple[str, str], Right]
Groups = Mapping[str, Sequence[str]]
Sizes = Mapping[str, float]


def against_twins(
    right: Arms, premises: Mapping[str, ArrayLike], groups: Groups, sizes: Sizes, *, resamples: int = 200
) -> pd.DataFrame:
    """Every arm minus its twin: `differences` of those that have one."""
    pairs = {name: ((name, ARM), (name, TWIN)) for name, which in right if which == ARM and (name, TWIN) in right}
    return differences(right, pairs, premises, groups, sizes, resamples=resamples)


def above_base(
    right: Arms, premises: Mapping[str, ArrayLike], groups: Groups, sizes: Sizes, *, resamples: int = 200
) -> pd.DataFrame:
    """Every arm minus the base: `differences` over the trainings that both have."""
    pairs = {name: ((name, ARM), (BASE, ARM)) for name, which in right if which == ARM and name != BASE}
    return differences(right, pairs, premises, groups, sizes, resamples=resamples)


def differences(
    right: Arms,
    pairs: Mapping[str, tuple[tuple[str, str], tuple[str, str]]],
    premises: Mapping[str, ArrayLike],
    groups: Groups,
    sizes: Sizes,
    *,
    resamples: int = 200,
) -> pd.DataFrame:
    """Mean accuracy of one minus that of another, one row for each of ``pairs``, group and average.

    Columns: arm, group, average, those of `Estimate` (over trainings and premises: `report.trainings.with_trainings`),
    p (two-sided: the level at which that interval ends at zero) and "p, Holm", corrected for all arms and groups of the
    same average. A group without a test set has no row.
    """
    rows = []
    for arm, (one, other) in pairs.items():
        count = min(len(next(iter(right[key].values()))) for key in (one, other))
        both = [{title: answers[:count] for title, answers in right[key].items()} for key in (one, other)]
        for group, titles in groups.items():
            for name, weights in _weights(titles, sizes).items():
                found = average(both[0], premises, titles, weights, other=both[1], resamples=resamples)
                single = _means(both[0], titles, weights) - _means(both[1], titles, weights)
                row = {"arm": arm, "group": group, "average": name, **found._asdict()}
                rows.append(row | {"p": p_value(found, single)})
    table = pd.DataFrame(rows, columns=["arm", "group", "average", *Estimate._fields, "p"])
    table["p, Holm"] = np.nan
    for _, part in table.groupby("average"):
        known = part.index[part["p"].notna()]
        if len(known):
            table.loc[known, "p, Holm"] = multipletests(part.loc[known, "p"], method="holm")[1]
    return table


def across_bases(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The comparisons that several base corpora have in common, from title -> `against_twins` of each: plain means,
    without the base's own.

    Columns: arm, group, base (the title), value, low, high, and apart: with how many bases the interval leaves zero
    out, negative where it does so on different sides. Of each comparison a row a base, in the order of the tables.
    """
    keep = ["arm", "group", "value", "low", "high"]
    plain = {base: each.loc[(each["average"] == PLAIN) & (each["arm"] != BASE), keep] for base, each in tables.items()}
    every = pd.concat(plain, names=["base"]).reset_index("base").reset_index(drop=True)
    side = (every["low"] > 0).astype(int) - (every["high"] < 0)
    by = [every["arm"], every["group"]]
    count, total = (each.groupby(by).transform("sum") for each in (side.abs(), side))
    every["apart"] = count.where(total.abs() == count, -count)
    return every[side.groupby(by).transform("size") == len(tables)].reset_index(drop=True)


def scores(right: Arms, groups: Groups, sizes: Sizes) -> pd.DataFrame:
    """Every single training: columns arm, which (`ARM` or `TWIN`), group, average, training, value."""
    rows = []
    for (arm, which), answers in right.items():
        for group, titles in groups.items():
            for name, weights in _weights(titles, sizes).items():
                place = {"arm": arm, "which": which, "group": group, "average": name}
                values = _means(answers, titles, weights)
                rows += [{**place, "training": at, "value": value} for at, value in enumerate(values)]
    return pd.DataFrame(rows, columns=["arm", "which", "group", "average", "training", "value"])


def _weights(titles: Sequence[str], sizes: Sizes) -> dict[str, NDArray[np.float64]]:
    """The two averages of test sets, each with weights (D,) that add up to 1; none where there is no test set."""
    if not titles:
        return {}
    whole = np.array([float(sizes[title]) for title in titles])
    return {PLAIN: np.full(len(titles), 1 / len(titles)), WEIGHTED: whole / whole.sum()}


def _means(answers: Right, titles: Sequence[str], weights: NDArray) -> NDArray[np.float64]:
    """(S,) the average of each training."""
    return np.average([answers[title].mean(axis=1) for title in titles], axis=0, weights=weights)


# ---------------------------------------------------------------- chance


def errors(found: Estimate, single: ArrayLike) -> tuple[float, float]:
    """Standard errors of a mean over S trainings: of the trainings, and of the premises, from the `Estimate` that
    `report.trainings` made of the S values ``single``; 0 of the trainings where there is one."""
    values, seeds = np.asarray(single, dtype=float), len(np.asarray(single))
    trainings = float(values.std(ddof=1) / np.sqrt(seeds)) if seeds > 1 else 0.0
    part = stats.t.ppf((1 + LEVEL) / 2, seeds - 1) * trainings if seeds > 1 else 0.0
    rest = max((found.high - found.value) ** 2 - part**2, 0.0)
    return trainings, float(np.sqrt(rest) / stats.norm.ppf((1 + LEVEL) / 2))


def half_width(trainings: float, premises: float, seeds: int, *, alpha: float = 1 - LEVEL) -> float:
    """Half of an interval: both errors in quadrature, Student's factor for the one, the normal one for the other."""
    factor = stats.t.isf(alpha / 2, seeds - 1) if seeds > 1 else 0.0
    return float(np.hypot(factor * trainings, stats.norm.isf(alpha / 2) * premises))


def p_value(found: Estimate, single: ArrayLike) -> float:
    """Two-sided p of "no difference": the level at which the interval of ``found`` ends at zero, so that p < .05 just
    where the 95% interval leaves zero out. NaN where nothing varies and the difference is not 0."""
    trainings, premises = errors(found, single)
    seeds, size = len(np.asarray(single)), abs(found.value)
    if size == 0:
        return 1.0
    if not trainings + premises > 0:
        return float("nan")

    def reach(logarithm: float) -> float:  # of p, so that small ones are found as exactly as large ones
        return half_width(trainings, premises, seeds, alpha=np.exp(logarithm)) - size

    least = np.log(1e-300)
    return float(np.exp(optimize.brentq(reach, least, 0.0))) if reach(least) > 0 else 0.0


def smallest_detectable(
    spread: float, trainings: int, *, premises: float = 0.0, family: int = 1, power: float = POWER
) -> float:
    """The smallest true difference that is found significant with the probability ``power``; NaN with one training.

    spread    standard deviation of the difference from training to training
    premises  its standard error from the test pairs, which more trainings do not lower
    family    comparisons that are made at once: the level is .05 / family, what Holm asks of the smallest p

    Half of the interval at that level, and as many standard errors more as the power asks for.
    """
    if trainings < 2:
        return float("nan")
    error = spread / np.sqrt(trainings)
    half = half_width(error, premises, trainings, alpha=(1 - LEVEL) / family)
    return float(half + stats.norm.ppf(power) * np.hypot(error, premises))


def detectable_words(trainings: int) -> str:
    """One sentence, to be said before a run: what so many trainings can detect, in units of how much they differ."""
    if trainings < 2:
        return "With one training, no difference between trainings can be judged."
    size = smallest_detectable(1.0, trainings)
    return (
        f"With {trainings} trainings, a difference is found with a probability of {POWER:g} when it is {size:.1f} "
        "times as large as its standard deviation from training to training; a smaller one may well be missed."
    )


def detectable_table(
    right: Arms,
    premises: Mapping[str, ArrayLike],
    groups: Groups,
    sizes: Sizes,
    *,
    trainings: Sequence[int],
    family: int,
    resamples: int = 200,
) -> pd.DataFrame:
    """What a comparison can detect, from the base and its twin alone: two draws of one corpus, truly 0 apart.

    trainings  numbers of trainings of an arm; family: comparisons of one average that are to be made
    Columns: group, average, spread (standard deviation of the difference over the trainings of the base), premises (its
    standard error from the test pairs), base trainings, trainings, alone and "of all" (`smallest_detectable` for one
    comparison, and for one of the family). One training of the base has no spread: NaN. A twin of the base shares no
    pair with it, so that the spread of an arm that shares its start with its twin should be smaller.
    """
    pair = {key: right[key] for key in ((BASE, ARM), (BASE, TWIN))}
    null = against_twins(pair, premises, groups, sizes, resamples=resamples)
    single = scores(pair, groups, sizes).pivot(
        index=["group", "average"], columns=["training", "which"], values="value"
    )
    rows = []
    for row in null.to_dict("records"):
        values = single.loc[(row["group"], row["average"])]
        gaps = (values.xs(ARM, level="which") - values.xs(TWIN, level="which")).to_numpy()
        _, sampling = errors(Estimate(*(row[name] for name in Estimate._fields)), gaps)
        spread = float(gaps.std(ddof=1)) if len(gaps) > 1 else float("nan")
        facts = {"group": row["group"], "average": row["average"], "spread": spread, "premises": sampling}
        for count in trainings:
            limits = (smallest_detectable(spread, count, premises=sampling, family=each) for each in (1, family))
            numbers = dict(zip(("alone", "of all"), limits, strict=True))
            rows.append({**facts, "base trainings": len(gaps), "trainings": count, **numbers})
    names = ["group", "average", "spread", "premises", "base trainings", "trainings", "alone", "of all"]
    return pd.DataFrame(rows, columns=names)


# ---------------------------------------------------------------- ranks


def ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Places of the arms in every group and average, 1 the best, with the places that chance leaves open.

    table  `scores`; twins are left out, and trainings that some arm has not
    Columns: group, average, arm, value (mean over the trainings), rank (equal values share the best place), best and
    worst (the places that the arm may have), trainings.

    Two arms differ for certain where their means lie further apart than Tukey's honestly significant difference: the
    95% point of the studentised range of K means with the residual variance of arms and trainings, in which the draw
    of candidates that all arms of a training share is taken out. An arm comes after those that are certainly better and
    before those that are certainly worse; all these places hold at once with 95%, on these test pairs. Source: Klein,
    Wright and Wieczorek (2020), "A joint confidence region for an overall ranking of populations"; the differences are
    Tukey's. With one training, or one arm, nothing is certain.
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


def certainly_above(values: ArrayLike, *, level: float = LEVEL) -> NDArray[np.bool_]:
    """(K, K) bool: where the mean of row i of ``values`` (K arms, S trainings) lies above that of row j by more than
    Tukey's honestly significant difference. Equal values in all trainings are never apart."""
    values = np.asarray(values, dtype=float)
    arms, trainings = values.shape
    mean = values.mean(axis=1)
    freedom = (arms - 1) * (trainings - 1)
    if freedom < 1:
        return np.zeros((arms, arms), dtype=bool)
    residual = values - mean[:, None] - values.mean(axis=0) + values.mean()
    error = np.sqrt((residual**2).sum() / freedom / trainings)
    return mean[:, None] - mean > _studentized(level, arms, freedom) * error


@functools.cache
def _studentized(level: float, arms: int, freedom: int) -> float:
    """The point of the studentised range, whose integral takes a tenth of a second."""
    return float(stats.studentized_range.ppf(level, arms, freedom))


# ---------------------------------------------------------------- cost


def price_of_a_point(gains: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """What each point above the base cost, beyond what the base cost.

    gains  `above_base`; costs: arm, and one column for each kind of cost, with a row for the base
    Columns: arm, group, average, value, low, high, and for each kind the cost beyond the base's for one point (0.01) of
    ``value``: below zero where the arm is cheaper, NaN where the arm gains nothing, since no price buys a loss.
    """
    kinds = [name for name in costs.columns if name != "arm"]
    extra = costs.set_index("arm")[kinds].astype(float)
    extra = extra - extra.loc[BASE]
    points = (100 * gains["value"]).where(gains["value"] > 0)
    prices = extra.reindex(gains["arm"]).set_axis(gains.index).div(points, axis=0)
    return gains[["arm", "group", "average", "value", "low", "high"]].join(prices)
