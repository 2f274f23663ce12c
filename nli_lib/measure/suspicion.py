"""How suspect a label is to models that never saw its pair, where one pair may carry several labels.

Declared before any of it was compared with known errors: the orders of `suspicion`, and of the combinations of
`combine`. Everywhere a high number is suspect.
"""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from scipy.stats import rankdata

from nli_lib.measure.check import check_scored
from nli_lib.measure.consensus import logit_gap, self_confidence
from nli_lib.measure.dynamics import confidence, margin, variability

Floats = NDArray[np.float64]

MODELS = "models together"
FIVE = "models and MultiNLI's five labels"
COUNTS = "label counts, then models"
VOTES = "votes of the trainings"
MEMBERS = ("low p(label)", "low confidence (data map)", "low margin (AUM)")  # what the models are put together from


def suspicion(logits: ArrayLike, labels: ArrayLike) -> dict[str, Floats]:
    """The orders of review that one training gives K labels, name -> (K,).

    logits (E, K, C), recorded after each of E epochs in which the labels' pairs were not learnt from; a pair with two
    labels has two rows. labels (K,).

    low p(label)               minus the probability of the label after the last epoch, cleanlab's "self-confidence"
    low normalised margin      the largest other probability minus that of the label, cleanlab's second order
    gap                        `logit_gap` after the last epoch: 0 where the model predicts the label
    low confidence (data map)  minus the mean probability of the label over the epochs
    low margin (AUM)           minus the mean margin over the epochs
    variability (data map)     spread of the label's probability over the epochs

    Sources: `measure.consensus`, `measure.dynamics`. *Departures*: data maps and AUM are made for the pairs that a
    model is trained on. Here they are taken on pairs held out, where they say how early and how surely the model's
    opinion was formed, not how a label was learnt.
    """
    scores, gold = check_scored(logits, labels)
    last = scores[-1]
    return {
        "low p(label)": -self_confidence(last, gold),
        "low normalised margin": -margin(softmax(last, axis=-1)[None], gold),
        "gap": logit_gap(last, gold),
        "low confidence (data map)": -confidence(scores, gold),
        "low margin (AUM)": -margin(scores, gold),
        "variability (data map)": variability(scores, gold),
    }


def combine(scores: pd.DataFrame, *, count: ArrayLike, five: ArrayLike) -> dict[str, Floats]:
    """The combinations, of the orders of one training: name -> (K,). Those of several trainings are the means of these.

    scores  the columns of `suspicion`, K rows; count (K,): how many annotators gave the label; five (K,): share of the
            corpus's own annotators who gave it, 0 to 1

    `VOTES`   1 where the model predicts another label; the mean over trainings is their vote
    `MODELS`  the mean rank, 0 to 1, in the three orders of `MEMBERS`: the end of training, and all of it in two ways
    `FIVE`    the mean of that and of the share of the five who did not give the label, half and half: what anybody
              has who takes a label of MultiNLI's development set
    `COUNTS`  the label that fewest annotators gave first, and among equals the order of `MODELS`: VariErr's own
              "rerank". The counts are of the first round; they are no judgment of the label, but they are the
              annotation whose errors are sought, so this order is shown apart
    """
    ranks = rankdata(scores[list(MEMBERS)], axis=0) / len(scores)
    models = ranks.mean(axis=1)
    return {
        VOTES: (scores["gap"].to_numpy() > 0).astype(float),
        MODELS: models,
        FIVE: (models + 1 - np.asarray(five, dtype=float)) / 2,
        COUNTS: models - 2 * np.asarray(count, dtype=float),
    }
