"""How much a bias head says about the labels, in nats: whether what it adds to a product of experts is neutral."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, rel_entr, softmax

from nli_lib.measure.check import check_scored


def bias_evidence(logits: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """What a prediction b of N examples says, beyond the label frequencies, and how much it says at all; nats.

    logits (N, C) of the bias head, labels (N,).

    evidence  mean log b(label) minus that of b's own mean prediction: above 0, b knows something of these labels; at or
              below 0 nothing. At most log C
    moves     mean Kullback-Leibler divergence of b from its mean prediction, 0 and up: how far b moves from example to
              example, whether it is right or not
    leans     that of the mean prediction from the uniform one: a standing preference for some labels

    A control is neutral where all three are 0. In the product b is raised to beta, so that all count beta times.
    """
    given = np.asarray(logits, dtype=float)
    gold = check_scored(given, labels, epochs=False)[1]
    log_b = log_softmax(given, axis=1)
    mean = softmax(given, axis=1).mean(axis=0)
    return {
        "evidence": float((log_b[np.arange(len(gold)), gold] - np.log(mean[gold])).mean()),
        "moves": float(rel_entr(np.exp(log_b), mean).sum(axis=1).mean()),
        "leans": float(rel_entr(mean, 1 / len(mean)).sum()),
    }
