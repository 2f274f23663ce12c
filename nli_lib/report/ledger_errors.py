"""How often the ledger's rules would give a wrong verdict: claims with known answers, simulated at recorded spreads."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

from nli_lib.claims import PLACES, Region, widened
from nli_lib.plots import COLOURS, SMALL, drawing

DISTANCES = (-2.0, -1.0, -0.5, -0.1, 0.1, 0.5, 1.0, 2.0)  # of the truth from the border, in half-widths of the interval
STUDIES = 200  # simulated for each claim and distance
Z = stats.norm.ppf(0.975)


class Spread(NamedTuple):
    """What makes a recorded statistic vary: standard deviations over pairs and over trainings, number of trainings."""

    pairs: float
    trainings: float
    seeds: int


def spread(low: float, high: float, seeds: int, over: str) -> Spread:
    """The spread that a recorded 95% interval stands for.

    An interval over trainings is Student's t, one over pairs (premises, words) is normal. Of one over both, the record
    does not say which part is whose: half of its square goes to each.
    """
    half = (high - low) / 2
    trained = "trainings" in over and seeds > 1
    both = trained and over != "trainings"
    part = half / np.sqrt(2) if both else half
    of_trainings = part * np.sqrt(seeds) / stats.t.ppf(0.975, seeds - 1) if trained else 0.0
    return Spread(part / Z if both or not trained else 0.0, of_trainings, seeds)


def simulated(truth: float, spread: Spread, studies: int, seed: int = 0) -> tuple[NDArray, NDArray, NDArray]:
    """(value, low, high), (studies,) each, of studies that draw pairs and trainings anew around a true value.

    Pairs move all trainings of a study together. The interval is that of `stats.with_trainings`; its part
    over pairs is taken as known, its part over trainings is estimated from the drawn ones, as it is in a real study.
    """
    generator = np.random.default_rng(seed)
    drawn = truth + spread.pairs * generator.standard_normal((studies, 1))
    drawn = drawn + spread.trainings * generator.standard_normal((studies, spread.seeds))
    half = np.full(studies, Z * spread.pairs)
    if spread.trainings:
        error = drawn.std(axis=1, ddof=1) / np.sqrt(spread.seeds)
        half = np.hypot(half, stats.t.ppf(0.975, spread.seeds - 1) * error)
    value = drawn.mean(axis=1)
    return value, value - half, value + half


def true_value(region: Region, half: float, distance: float) -> float:
    """The value that lies ``distance`` half-widths inside the region (outside where negative), from its lower border.

    Of a region with two borders, at most the middle; of one that is open below, from its upper border.
    """
    low, high = region.values.left, region.values.right
    if np.isinf(low):
        return high - distance * half
    return low + min(distance * half, (high - low) / 2)


def error_rates(
    table: pd.DataFrame, *, distances: Sequence[float] = DISTANCES, studies: int = STUDIES, seed: int = 0
) -> pd.DataFrame:
    """Shares of the verdicts that claims with a known answer would get.

    table     a ledger (`claims.ledger`); each claim that has an interval is simulated with its spread and region
    distance  how far the truth lies inside the confirming values, in half-widths of the claim's interval; a claim is
              true where it is positive and false where it is negative
    level     0.95, or 0.99 by the widened interval

    Columns level, distance, verdict, share, claims, studies.
    """
    rows = []
    known = table[(table["high"] > table["low"]) & np.isfinite(table["high"] - table["low"])]
    for at, row in enumerate(known.itertuples()):
        noise, half = spread(row.low, row.high, int(row.seeds), row.over), (row.high - row.low) / 2
        region, unit = _region(row), {"value": 0.0, "low": -1.0, "high": 1.0, "seeds": row.seeds, "over": row.over}
        wider = widened(unit)
        for distance in distances:
            truth = true_value(region, half, distance)
            value, low, high = simulated(truth, noise, studies, seed + at)
            for level, by in ((0.95, 1.0), (0.99, wider["high"])):
                found = verdicts(region, value - by * (value - low), value + by * (high - value))
                rows += [(level, distance, name, (found == name).mean()) for name in PLACES.values()]
    columns = ["level", "distance", "verdict", "share"]
    shares = pd.DataFrame(rows, columns=columns).groupby(columns[:3], sort=False, as_index=False).mean()
    return shares.assign(claims=len(known), studies=studies)


def verdicts(region: Region, low: NDArray, high: NDArray) -> NDArray[np.str_]:
    """The verdict of each interval, (M,): `Region.place` and `PLACES` for arrays."""
    values = region.values
    inside = (low >= values.left) & (high <= values.right) if values.closed == "both" else None
    if inside is None:
        inside = (low > values.left) & (high < values.right)
    apart = (high < values.left) | (low > values.right)
    apart |= (values.closed != "both") & ((high == values.left) | (low == values.right))
    return np.select([inside, apart], [PLACES["inside"], PLACES["outside"]], PLACES["across the border of"])


def error_bars(rates: pd.DataFrame, *, title: str = "") -> Figure:
    """Verdicts at the level of 95% by the distance of the truth from the border, one stacked bar a distance."""
    wide = rates[rates["level"] == 0.95].pivot(index="distance", columns="verdict", values="share")
    wide = wide.reindex(columns=list(PLACES.values()))
    wide.index = [f"{'true' if at > 0 else 'false'}, by {abs(at):g}" for at in wide.index]
    with drawing(height=1 + 0.34 * max(1, len(wide))) as (figure, axes):
        left = np.zeros(len(wide))
        for verdict in wide:
            bars = axes.barh(wide.index, wide[verdict], left=left, color=COLOURS[verdict], label=verdict)
            words = [f"{share:.0%}" if share >= 0.03 else "" for share in wide[verdict]]
            axes.bar_label(bars, words, label_type="center", color="white", fontsize=SMALL)
            left += wide[verdict].to_numpy()
        axes.set(xlim=(0, 1), xlabel="share of simulated studies", title=title)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _region(row: object) -> Region:
    """The confirming values of a ledger's row, whose infinite ends are open."""
    if np.isinf(row.region_low):
        return Region(below=row.region_high)
    return (
        Region(above=row.region_low) if np.isinf(row.region_high) else Region(between=(row.region_low, row.region_high))
    )
