"""How many requests were under way at a time, from when each was sent and how long it took."""

import numpy as np


def under_way(started: np.ndarray, seconds: np.ndarray) -> float:
    """Requests under way at a time, the mean over the time in which at least one was; at least 1.

    started  (N,) datetime64, when each request was sent, in any order
    seconds  (N,) float, how long each took

    The sum of `seconds` divided by this is the time in which somebody waited for an answer: pauses between two runs
    are left out. 1 where no request took any time.
    """
    if not np.any(seconds):
        return 1.0
    order = np.argsort(started, kind="stable")
    took = np.asarray(seconds, dtype=float)[order]
    begin = (started[order] - started.min()) / np.timedelta64(1, "s")
    end = begin + took
    before = np.concatenate([[-np.inf], np.maximum.accumulate(end)[:-1]])
    busy = np.clip(end - np.maximum(begin, before), 0, None).sum()
    return float(took.sum() / busy)
