"""Intervals for which whole premises are drawn: the hypotheses of one premise are not independent of each other.

mean_over_premises(right, corpus.premise)              a mean of pairs, such as an accuracy
for rows in drawn_rows(corpus.premise): ...            any other statistic, computed on corpus rows drawn anew
for rows in half_samples(corpus.premise): ...          one that a repeated pair would falsify
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import percentile_interval, resample_counts

OVER = "premises"


def mean_over_premises(
    values: ArrayLike,
    premises: ArrayLike,
    *,
    other: tuple[ArrayLike, ArrayLike] | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """The mean of ``values`` with its percentile interval over premises, or how far it lies above that of ``other``.

    values (N,), premises (N,), anything that is equal where the premise is; other: values and premises of another
    corpus, drawn on their own. n counts the premises, of the corpus that has fewer. Where each premise has one pair
    this is the bootstrap of the pairs.
    """
    samples = [(values, premises)] + ([] if other is None else [other])
    means, draws, sizes = [], [], []
    for place, (flags, groups) in enumerate(samples):
        flags, codes = np.asarray(flags, dtype=float), pd.factorize(np.asarray(groups))[0]
        if not len(flags) or len(flags) != len(codes) or not np.isfinite(flags).all():
            raise ValueError(f"{len(flags)} values of {len(codes)} pairs: give a finite one for each pair")
        counts = resample_counts(len(flags), groups=codes, resamples=resamples, seed=seed + place)
        means.append(flags.mean())
        draws.append(np.array([each @ flags / each.sum() for each in counts]))
        sizes.append(int(codes.max()) + 1)
    value, drawn = (each[0] - (each[1] if len(each) > 1 else 0) for each in (means, draws))
    return percentile_interval(value, drawn, n=min(sizes), over=OVER)


def drawn_rows(premises: ArrayLike, *, resamples: int = 500, seed: int = 0) -> Iterator[NDArray[np.int64]]:
    """The rows (M,) of one resample of whole premises (N,) after the other; a row comes as often as it is drawn."""
    codes = pd.factorize(np.asarray(premises))[0]
    for counts in resample_counts(len(codes), groups=codes, resamples=resamples, seed=seed):
        yield np.repeat(np.arange(len(codes)), counts)


def half_samples(premises: ArrayLike, *, resamples: int = 200, seed: int = 0) -> Iterator[NDArray[np.int64]]:
    """The rows (M,) of one random half of the premises (N,) after the other, none drawn twice.

    For a statistic that a repeated pair would falsify, such as what a filter keeps. Over such halves a mean varies as
    much as over samples of all premises: Shao and Wu (1989), delete-d jackknife with half of the premises deleted. The
    level is that of a smaller corpus: see `centred_interval`.
    """
    codes, unique = pd.factorize(np.asarray(premises))
    generator = np.random.default_rng(seed)
    for _ in range(resamples):
        drawn = np.zeros(len(unique), dtype=bool)
        drawn[generator.permutation(len(unique))[: len(unique) // 2]] = True
        yield np.flatnonzero(drawn[codes])


def centred_interval(value: float, draws: ArrayLike, *, n: int) -> Estimate:
    """``value`` with the middle 95% of ``draws`` (R,), all moved by one number so that their mean is ``value``.

    For a count above a line, or a share: it rises in every resample, because a feature that lies below the line has
    its chance variation drawn a second time, on top of that of the corpus. The spread of the draws is an answer to how
    far the count would move in another sample; their level is not.
    """
    draws = np.asarray(draws, dtype=float)
    return percentile_interval(value, draws + (value - draws.mean()), n=n, over=OVER)
