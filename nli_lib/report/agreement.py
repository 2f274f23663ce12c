"""How well two annotators agree: Cohen's kappa with an interval over the items."""

import numpy as np
import pandas as pd

from nli_lib.generate.annotations import untouched
from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import percentile_interval

RESAMPLES = 2000


def kappa(annotations: pd.DataFrame, *, seed: int = 0) -> Estimate:
    """Kappa over the items that both annotators neither revised nor discarded, 2,000 resamples of the items.

    -1 to 1: 1 where they always agree, 0 where they agree as often as labels drawn at random from their own shares
    would, and below 0 where less often: (a - e) / (1 - e), with a the share of items with equal labels and e the sum of
    the squared shares of the labels. NaN without items, and where all labels are one.
    Source: WANLI, section 2.4 (W13), which reports .60. *Departures*: the paper gives no code and one order. Which
    annotator is called the first is arbitrary, so both orders are counted; the value is then that of Scott's pi.
    """
    codes, labels = pd.factorize(untouched(annotations).ravel())
    codes = codes.reshape(-1, 2)  # (n, 2)
    n = len(codes)
    if not n:
        return Estimate(float("nan"), float("nan"), float("nan"), 0)
    counts = np.eye(len(labels))[codes].mean(axis=1)  # (n, C) share of each label among an item's two
    equal = codes[:, 0] == codes[:, 1]
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n  # (R, n)
    weights = np.vstack([np.full(n, 1 / n), drawn])
    observed, expected = weights @ equal, ((weights @ counts) ** 2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        value, *draws = (observed - expected) / (1 - expected)
    draws = np.array(draws)[np.isfinite(draws)]
    return percentile_interval(value, draws if len(draws) else [np.nan], n=n)
