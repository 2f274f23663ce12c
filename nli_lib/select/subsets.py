"""Parts of a training set by difficulty, as selections: those of Tables 5 and 6 of the difficulty paper."""

import numpy as np
from numpy.typing import ArrayLike

from nli_lib.measure.difficulty import LEVELS
from nli_lib.select.selection import Selection

QUANTILES = (0.33, 0.66)
PARTS = ("easy", "easy+ambiguous", "ambiguous", "ambiguous+hard", "easy+hard", "hard")  # levels joined


def training_subsets(level: ArrayLike, variability: ArrayLike, margin: ArrayLike) -> dict[str, Selection]:
    """The nine training sets by name, in the order of the paper's tables; "all" is the last.

    level        (N,) 0 easy, 1 ambiguous, 2 hard (`measure.difficulty.levels`)
    variability  (N,) of the pair's model: "data maps" keeps what lies above its .66 quantile
    margin       (N,) of the pair's model: "aum" keeps what lies strictly between its .33 and .66 quantiles

    Source: the difficulty paper section 4.2 and its code (H11). *Departures*: the text calls the first of these "the
    top 66% percentile"; the code keeps a third, and so do its tables.
    """
    level, variability, margin = (np.asarray(values) for values in (level, variability, margin))
    low, high = np.quantile(margin, QUANTILES)
    keeps = {
        "data maps": variability > np.quantile(variability, QUANTILES[1]),
        "aum": (margin > low) & (margin < high),
        **{name: np.isin(level, [LEVELS.index(each) for each in name.split("+")]) for name in PARTS},
    }
    subsets = {name: Selection.where(keep, dropped=f"not in {name}") for name, keep in keeps.items()}
    return {**subsets, "all": Selection.all(len(level))}
