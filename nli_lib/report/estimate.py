"""A number with the interval that belongs to it, and what was drawn to get it."""

from typing import NamedTuple


class Estimate(NamedTuple):
    """One estimated number: what every statistic of the report returns, and what a claim is judged by.

    value      the estimate; low, high: the ends of its interval (95% unless said otherwise), NaN where there is none
    n          how many examples it rests on; seeds: how many trainings
    over       what the interval ranges over, that is what would be drawn anew: "pairs", "premises", "trainings",
               "premises and trainings"
    """

    value: float
    low: float
    high: float
    n: int
    seeds: int = 1
    over: str = "pairs"
