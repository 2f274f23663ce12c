"""Training dynamics: what the logits of several epochs say about each example.

Each function takes `logits (E, N, C)`, as recorded over E epochs, and returns one number per example, `(N,)`.
p[e, i, c] is the softmax of the logits over classes, g[i] the gold label of example i. One epoch (E = 1) is allowed.

Which logits these are (taken in the training pass with dropout, or in an evaluation pass after each epoch) is not
decided here and does matter: the run's `capture` says it, and a figure should repeat it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from nli_lib.measure.check import check_logits, check_scored

if TYPE_CHECKING:
    from nli_lib.learn.fit import Run

Floats = NDArray[np.float64]

# The six scores, each with the sign after which more means harder to learn or less certain.
DOUBT = {"variability": 1, "max_variability": 1, "confidence": -1, "margin": -1, "correctness": -1, "forgetting": 1}


def confidence(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """Mean probability of the gold label over the epochs, 0 to 1; high = easy.

    Notes
    -----
    Shapes: logits (E, N, C), labels (N,) -> (N,).

    Formula: mu[i] = mean over e of p[e, i, g[i]].

    References
    ----------
    Dataset cartography (Swayamdipta et al. 2020); WANLI section 2.1, the difficulty paper equation 1.
    """
    return _gold_probabilities(logits, labels).mean(axis=0)


def variability(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """Spread of the gold label's probability over the epochs, 0 to 0.5; high = ambiguous.

    Notes
    -----
    Shapes: logits (E, N, C), labels (N,) -> (N,).

    Formula: sigma[i] = sqrt(mean over e of (p[e, i, g[i]] - mu[i])^2), the population standard deviation, so sigma <=
    sqrt(mu (1 - mu)) <= 0.5, and with odd E at most sqrt(E^2 - 1) / (2 E).

    *Departures*: equation 2 of the difficulty paper is printed without the square, which makes it 0 for every example;
    its code, like all the others, takes the population standard deviation, and so do we.

    References
    ----------
    Dataset cartography; WANLI section 2.1.
    """
    return _gold_probabilities(logits, labels).std(axis=0)


def correctness(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """Share of the epochs in which the gold label had the highest logit, 0 to 1; high = easy.

    Notes
    -----
    Shapes: logits (E, N, C), labels (N,) -> (N,).

    Formula: mean over e of [argmax over c of logits[e, i, c] = g[i]]; a tie counts for the lowest class index.

    *Departures*: cartography and WANLI report the count, which is this share times E. Never divide by the largest value
    seen, as their plots do: where no example is always right that overstates every share.

    References
    ----------
    The difficulty paper equation 3.
    """
    return _correct(*check_scored(logits, labels)).mean(axis=0)


def margin(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """Area under the margin (AUM): how far the gold logit stands above the best other one, any real; high = easy.

    Notes
    -----
    Shapes: logits (E, N, C), labels (N,) -> (N,).

    Formula: mean over e of (logits[e, i, g[i]] - max over c != g[i] of logits[e, i, c]).

    *Departures*: the difficulty paper's code finds the runner-up on probabilities, which is the same but for classes
    that the softmax has rounded to equal values; we search the logits, as the AUM package does.

    References
    ----------
    Pleiss et al. 2020; the difficulty paper uses it as average margin.
    """
    scores, gold = check_scored(logits, labels)
    others = scores.copy()  # (E, N, C)
    others[:, np.arange(len(gold)), gold] = -np.inf
    return (_at_gold(scores, gold) - others.max(axis=-1)).mean(axis=0)


def max_variability(logits: ArrayLike) -> Floats:
    """Estimated max variability: the largest spread of any label's probability, 0 to 0.5; high = ambiguous.

    Notes
    -----
    Shapes: logits (E, N, C) -> (N,). It needs no gold label, so it can be asked of unlabelled text.

    Formula: max over c of the population standard deviation over e of p[e, i, c].

    References
    ----------
    WANLI section 2.3, equation 1.
    """
    return softmax(check_logits(logits), axis=-1).std(axis=0).max(axis=-1)


def forgetting(logits: ArrayLike, labels: ArrayLike) -> NDArray[np.int64]:
    """How often an example was right in one epoch and wrong in the next, 0 to E // 2; high = hard.

    Notes
    -----
    Shapes: logits (E, N, C), labels (N,) -> (N,) integers.

    Formula: sum over e of [right at e and wrong at e + 1].

    *Departures*: cartography gives 1000 to an example that was never right. We return its true count, 0, since
    `correctness(...) == 0` names those examples.

    References
    ----------
    Toneva et al. 2019; cartography's forgetfulness.
    """
    right = _correct(*check_scored(logits, labels))  # (E, N)
    return (right[:-1] & ~right[1:]).sum(axis=0, dtype=np.int64)


def scores(logits: ArrayLike, labels: ArrayLike) -> dict[str, NDArray]:
    """All six scores by name, each (N,), for a table of examples: (E, N, C), (N,) -> {"confidence": (N,), ...}."""
    named = {each.__name__: each(logits, labels) for each in (confidence, variability, correctness, margin, forgetting)}
    return named | {"max_variability": max_variability(logits)}


def score_table(runs: Iterable[Run]) -> pd.DataFrame:
    """The six scores of every example under every run: columns position, those of `scores`, seed, corpus.

    One row an example and run, in the order of the runs; no run gives an empty table.
    """
    tables = [
        pd.DataFrame(scores(run.logits, run.labels)).assign(seed=run.spec.seed, corpus=run.spec.corpus) for run in runs
    ]
    if not tables:
        return pd.DataFrame(columns=["position", *DOUBT, "seed", "corpus"])
    return pd.concat(tables).rename_axis("position").reset_index()


def _gold_probabilities(logits: ArrayLike, labels: ArrayLike) -> Floats:
    scores, gold = check_scored(logits, labels)
    return _at_gold(softmax(scores, axis=-1), gold)  # (E, N)


def _at_gold(values: Floats, gold: NDArray[np.int64]) -> Floats:
    return values[:, np.arange(len(gold)), gold]  # (E, N, C) -> (E, N)


def _correct(scores: Floats, gold: NDArray[np.int64]) -> NDArray[np.bool_]:
    return scores.argmax(axis=-1) == gold  # (E, N)
