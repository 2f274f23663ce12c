"""Numbers by level of difficulty, each beside its control: a random set of as many pairs with the same labels."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from nli_lib.measure.difficulty import LEVELS
from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import bootstrap_interval, share
from nli_lib.select.selection import Selection

CONTROL = "random twin"


def level_means(table: pd.DataFrame, scores: Sequence[str], *, by: str = "corpus") -> pd.DataFrame:
    """Mean of each score in each level and in the level's random twin, with its interval over the pairs.

    table   one row a pair: the columns ``by``, level (0 easy, 1 ambiguous, 2 hard), gold (its label) and ``scores``

    Columns: ``by``, level (its name), score, condition ("level" or "random twin"), value, low, high, n. A score of
    zeros and ones gets Wilson's interval, any other a bootstrap. A level without pairs has no row.
    """
    rows = []
    for group, part in table.groupby(by, sort=False):
        for place, name in enumerate(LEVELS):
            level = Selection.where(part["level"].to_numpy() == place, dropped="another level")
            twin = level.random_twin(part["gold"].to_numpy())
            for condition, chosen in (("level", level), (CONTROL, twin)):
                for score in scores:
                    values = part[score].to_numpy(dtype=float)[chosen.keep]
                    if len(values):
                        interval = share if np.isin(values, (0, 1)).all() else bootstrap_interval
                        rows.append((group, name, score, condition, *interval(values)[:4]))
    return pd.DataFrame(rows, columns=[by, "level", "score", "condition", "value", "low", "high", "n"])


def level_gap(table: pd.DataFrame, score: str, easier: str, harder: str) -> Estimate:
    """Mean of a score in one level minus its mean in another; the two levels are resampled on their own."""
    first, second = (
        table.loc[table["level"] == LEVELS.index(name), score].to_numpy(dtype=float) for name in (easier, harder)
    )
    return bootstrap_interval(first, other=second)
