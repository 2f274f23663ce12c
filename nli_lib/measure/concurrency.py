"""For how long requests were under way, from when each was sent and how long it took."""

import numpy as np


def time_under_way(started: np.ndarray, seconds: np.ndarray) -> float:
    """Seconds in which at least one request was under way: how long somebody waited for answers.

    started  (N,) datetime64, when each request was sent, in any order
    seconds  (N,) float, how long each took

    What overlaps counts once, however many requests were sent at a time, and a pause between two runs does not count.
    """
    if not len(started):
        return 0.0
    order = np.argsort(started, kind="stable")
    begin = (started[order] - started.min()) / np.timedelta64(1, "s")
    end = begin + np.asarray(seconds, dtype=float)[order]
    before = np.concatenate([[-np.inf], np.maximum.accumulate(end)[:-1]])
    return float(np.clip(end - np.maximum(begin, before), 0, None).sum())
