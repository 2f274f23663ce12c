"""A share of wrong labels where only some of the listed pairs were judged: what is verified, and what may be at most.

ChaosNLI asked its hundred annotators about pairs on which SNLI's five had split three to two. A list of suspects also
holds pairs that had four or five of five for the gold label and that nobody asked about again.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import wilson

FEW = 0.6  # of five votes for the gold label: three, the fewest that make one
MOST = 5 / 6  # see `bounds`
COLUMNS = ("n", "judged", "wrong", "open", "clear", "of judged", "verified", "low", "high", "all")


def bounds(n: int, wrong: int, clear: int, unknown: int = 0) -> tuple[Estimate, float]:
    """The share of wrong labels among n listed pairs, and the high end if nothing were assumed.

    wrong    judged by the hundred, and wrong
    clear    not judged, with four or five of five votes for the gold label; unknown: not judged, with three or no votes

    value    wrong / n: what is verified, none of the unjudged taken for wrong; low: the low end of its Wilson interval
    high     the smaller of two numbers. All unjudged taken for wrong: the high end of the Wilson interval of
             (wrong + unknown + clear) / n. And 1 + 5/6 times that of (wrong + unknown) / n, which the five votes give.
             A label is wrong if at most half of all people would give it. One of the five votes is the author's. Of
             the four others at least three give the gold label with a probability of at most 5/16, exactly two with
             6/16, and the ratio falls with the share of people: so among wrong labels whose author agrees, "four or
             five of five" is at most 5/6 as frequent as "three of five" (1/4 where the author does not). The wrong
             ones of three votes are counted, those of more are then at most 5/6 as many.

    That assumes that the five are drawn from the same people as the hundred, and that a list which no annotator's vote
    on its own pairs has entered prefers none of the votes.
    """
    if min(n - wrong - clear - unknown, wrong, clear, unknown) < 0:
        raise ValueError(f"of {n} pairs {wrong} wrong, {clear} clear and {unknown} unknown: more than there are")
    verified = wilson(wrong, n)
    at_most, everything = wilson(wrong + unknown, n).high, wilson(wrong + unknown + clear, n).high
    return verified._replace(high=min(everything, (1 + MOST) * at_most)), everything


def judged_part(lists: Mapping[str, ArrayLike], judged: pd.DataFrame, agreement: pd.DataFrame) -> pd.DataFrame:
    """What the hundred say of each list of pairs, and what that bounds: one row a list that has pairs.

    lists      name -> (N,) bool; judged: position and wrong, the pairs that the hundred judged
    agreement  position and agreement, the share of the five who gave the gold label; pairs may be missing
    Columns: list, n, judged, wrong, open (three of five votes or none at hand, not judged), clear (four or five, not
    judged), "of judged" (wrong / judged), verified (wrong / n), low, high (`bounds`) and all (the high end if every
    unjudged pair were wrong).
    """
    rows = []
    for name, listed in lists.items():
        listed = np.asarray(listed, dtype=bool)
        if not listed.any():
            continue
        verdicts = pd.Series(judged["wrong"].to_numpy(dtype=bool), judged["position"])
        votes = pd.Series(agreement["agreement"].to_numpy(dtype=float), agreement["position"])
        places = np.flatnonzero(listed)
        asked = verdicts[verdicts.index.isin(places)]
        rest = votes.reindex(np.setdiff1d(places, asked.index))
        clear = int((rest > FEW + 1e-9).sum())
        share, most = bounds(len(places), int(asked.sum()), clear, len(rest) - clear)
        counts = (len(places), len(asked), int(asked.sum()), len(rest) - clear, clear)
        rows.append((name, *counts, asked.mean() if len(asked) else np.nan, *share[:3], most))
    return pd.DataFrame(rows, columns=["list", *COLUMNS])


def over_lists(table: pd.DataFrame) -> Estimate:
    """One estimate of the lists of several trainings (`judged_part`): the mean of what is verified, between the lowest
    low and the highest high end; n is the length of the shortest list."""
    ends = table["verified"].mean(), table["low"].min(), table["high"].max()
    return Estimate(*map(float, ends), int(table["n"].min()), len(table), "pairs and trainings")
