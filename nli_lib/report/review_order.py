"""How many wrong labels a reviewer meets early, in an order that stays and in one that is learnt from the decisions."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.measure.consensus import EVERY, review_in_turn
from nli_lib.stats import Estimate, half_samples, with_trainings

FIXED, LEARNT = "order of the gap", "learnt from the decisions"
SHUFFLED, CHANCE = "learnt from shuffled decisions", "random twin: a random order"
ORDERS = (LEARNT, FIXED, SHUFFLED, CHANCE)


def precision_in_turn(
    suspects: pd.DataFrame, depths: Sequence[int], *, every: int = EVERY, seed: int = 0
) -> NDArray[np.float64]:
    """Share of wrong labels among the first labels reviewed, (len(ORDERS), len(depths)), 0 to 1.

    suspects  kind, gap and wrong (bool), one row a suspect label; depths: how many are reviewed, none above the rows

    Two controls: the same rule of learning, told the decisions of other suspects (permuted with ``seed``), and a random
    order, whose expected precision is the share of wrong labels among all suspects.
    """
    gap, wrong = suspects["gap"].to_numpy(dtype=float), suspects["wrong"].to_numpy(dtype=bool)
    kind, most = suspects["kind"].to_numpy(), max(depths)
    shuffled = np.random.default_rng(seed).permutation(wrong)
    seen = {
        LEARNT: review_in_turn(gap, kind, wrong, upto=most, every=every),
        FIXED: np.argsort(-gap, kind="stable")[:most],
        SHUFFLED: review_in_turn(gap, kind, shuffled, upto=most, every=every),
    }
    rows = [np.cumsum(wrong[seen[order]])[np.array(depths) - 1] / depths for order in ORDERS if order in seen]
    return np.array([*rows, np.full(len(depths), wrong.mean())])


def compare_orders(
    trainings: Sequence[pd.DataFrame],
    depths: Sequence[int],
    *,
    units: str = "premises",
    halves: int = 100,
    seed: int = 0,
) -> tuple[pd.DataFrame, dict[int, Estimate]]:
    """Precision of each order at each depth, and what learning gains over the order of the gap at each depth.

    trainings  the suspects of each training: `precision_in_turn`'s columns, and unit, such as the premise
    depths     those above the smallest number of suspects are left out
    units      what the column unit names; units are drawn whole

    The interval holds trainings (Student's t) and units, see `trainings.with_trainings`. A unit drawn twice would teach
    the order what it is asked next, so random halves of the units are drawn, none twice, and reviewed to half the depth
    with an order learnt twice as often: a mean varies over halves as over samples of all units.
    Suspects of two trainings need not name the same pairs, so the spread of the halves is that of one training.
    """
    depths = [depth for depth in depths if trainings and depth <= min(map(len, trainings))]
    if not depths:
        return pd.DataFrame(columns=["order", "depth", *Estimate._fields]), {}
    values = np.array([precision_in_turn(each, depths, seed=seed) for each in trainings])  # (T, orders, depths)
    drawn = np.concatenate([_of_halves(each, depths, halves, seed) for each in trainings])  # (T * R, orders, depths)
    n = min(each["unit"].nunique() for each in trainings)

    def estimate(of_training: np.ndarray, of_halves: np.ndarray) -> Estimate:
        return with_trainings(of_training.mean(), of_halves, of_training, n=n, units=units)

    rows = [
        {"order": order, "depth": depth} | estimate(values[:, row, at], drawn[:, row, at])._asdict()
        for at, depth in enumerate(depths)
        for row, order in enumerate(ORDERS)
    ]
    gain, spread = (each[:, 0] - each[:, 1] for each in (values, drawn))
    return pd.DataFrame(rows), {depth: estimate(gain[:, at], spread[:, at]) for at, depth in enumerate(depths)}


def _of_halves(suspects: pd.DataFrame, depths: Sequence[int], halves: int, seed: int) -> np.ndarray:
    """Precision in random halves of the units, (halves, orders, depths), around its mean."""
    found = []
    for number, rows in enumerate(half_samples(suspects["unit"], resamples=halves, seed=seed)):
        within = [max(1, min(depth // 2, len(rows))) for depth in depths]
        found.append(precision_in_turn(suspects.iloc[rows], within, every=EVERY // 2, seed=number))
    return np.array(found) - np.mean(found, axis=0)
