"""Every score of the bench for one list of pairs, side by side: what S trainings and the text itself say of each::

    said = Said(data_map=logits, ..., z=highest_z(table, labels, n_classes))
    scores = pair_scores(said, np.arange(N), labels, labels)  # name -> (S, N), a high number is doubtful

"Low" in a name says that the sign was turned. Each score is asked of a (pair, label), so that a label which is not the
corpus's own can be asked about as well; the level and the counterfactual sensitivity are of the pair alone.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from nli_lib.measure import check_labels, dynamics
from nli_lib.measure.consensus import INSTALL, logit_gap, self_confidence
from nli_lib.measure.counterfactual import sensitivity
from nli_lib.measure.dynamics import dynamics_features, levels
from nli_lib.measure.features import OFTEN, Features, z_statistics

Floats = NDArray[np.float64]

AUM, NGRAMS, HYPOTHESIS = "low AUM", "low n-gram probability", "low hypothesis-only confidence"
CONFIDENCE, VARIABILITY, MAXIMUM, MARGIN = "low confidence", "variability", "estimated max variability", "low margin"
CROSSED, GAP, CLEANLAB, VOTES = "low cross-scored probability", "cross-scored gap", "cleanlab's order", "votes"
LEVEL, Z, GENERATOR = "level of difficulty", "low highest z", "low generator margin"
SENSITIVITY, OTHER_LABEL = "counterfactual sensitivity", "not the gold label"


class Said(NamedTuple):
    """What is known of N pairs with C classes; a pair that something does not know has NaN there, and a part that no
    training knows has no rows (S = 0). The parts may rest on different numbers of trainings S.

    Attributes
    ----------
    data_map
        (S, E, N, C) logits of the pair, in an evaluation pass after each of E epochs; hypothesis: the same of models
        that read the hypothesis alone
    in_training
        (S, E, N, C) logits of the training pass itself
    crossed
        (S, N, C) logits of models that did not train on the pair
    generator
        (S, N, C) log-probability of the hypothesis under each label
    ngrams
        (N, C) probability of each label by the n-grams of the hypothesis, cross-fitted
    z
        (N, C) `highest_z`
    level
        (S, N) `levels_of_pairs`; sensitivity: (S, N) `sensitivity_of_pairs`
    """

    data_map: ArrayLike
    hypothesis: ArrayLike
    in_training: ArrayLike
    crossed: ArrayLike
    generator: ArrayLike
    ngrams: ArrayLike
    z: ArrayLike
    level: ArrayLike
    sensitivity: ArrayLike


def pair_scores(said: Said, rows: ArrayLike, labels: ArrayLike, gold: ArrayLike) -> dict[str, Floats]:
    """Each score of M labels on trial, name -> (S, M) for S trainings, a high number doubtful; NaN where not known.

    rows (M,) the pairs, places from 0 to N - 1, and labels (M,) the label of each that is asked about; gold (N,) the
    labels of the corpus, which the models were trained on. A score that no training knows is left out; one that fewer
    trainings know than others has NaN in the last rows; one that no training changes is the same in all.

    The data map's six, then:

    low AUM
        the mean margin, recorded in the training pass instead
    level of difficulty
        0 easy, 1 ambiguous, 2 hard, from both views (`measure.dynamics`)
    low hypothesis-only confidence
        the data map's of a model that reads the hypothesis; low n-gram probability: of a linear model that did not
        train on the pair
    low highest z
        of the features that the pair has, for the label
    low cross-scored probability
        of the label, by models that did not train on the pair
    cross-scored gap
        of its logit and the largest, of the same models
    cleanlab's order
        its label quality from them, where it is installed
    votes
        share of all trainings whose cross-scoring predicts another label: one number, which stands in the row of each
        training that cross-scored
    low generator margin
        log-probability under the label minus the largest under another
    counterfactual sensitivity
        with its own sign: nobody says which end is doubtful
    not the gold label
        1 where another label than the corpus's is on trial: what the models have been told; left out where no other is
    """
    rows, gold = np.asarray(rows, dtype=int), check_labels(gold, np.shape(said.z)[0])
    labels = check_labels(labels, len(rows), np.shape(said.z)[1])
    found = {}
    for name, (part, measure) in _OF_A_LABEL.items():
        here = [_known(measure, each[..., rows, :], labels) for each in np.asarray(getattr(said, part), dtype=float)]
        found[name] = np.array(here).reshape(-1, len(rows))
    crossed = np.asarray(said.crossed, dtype=float)[:, rows]
    if len(crossed) and _cleanlab() is not None:
        found[CLEANLAB] = np.array([_known(_low_quality, each, labels) for each in crossed])
    if len(crossed):
        others = np.where(np.isnan(crossed).any(-1), np.nan, crossed.argmax(-1) != labels)
        found[VOTES] = np.broadcast_to(others.mean(axis=0), others.shape)
    of_pairs = {LEVEL: said.level, SENSITIVITY: said.sensitivity}
    found |= {name: np.asarray(each, dtype=float)[:, rows] for name, each in of_pairs.items()}
    trainings = max([len(each) for each in found.values()] + [1])
    found = {name: _to(each, trainings) for name, each in found.items() if np.isfinite(each).any()}
    fixed = {NGRAMS: said.ngrams, Z: said.z}
    found |= {name: -np.asarray(each, dtype=float)[rows, labels] for name, each in fixed.items()}
    if (labels != gold[rows]).any():
        found[OTHER_LABEL] = (labels != gold[rows]).astype(float)
    return {name: np.broadcast_to(each, (trainings, len(rows))) for name, each in found.items()}


def highest_z(table: Features, labels: ArrayLike, n_classes: int, *, often: int = OFTEN) -> Floats:
    """The highest z of the features that a pair has, for each label, (N, C); high for its own label = given away.

    Features of fewer than `often` pairs are left out, because the pair's own label decides their z, and so is the null
    feature, which every pair has. NaN for a pair without any feature.

    Notes
    -----
    *Departures*: the filter asks for the label's top features alone.

    References
    ----------
    The z-statistics of Gardner et al. (2021) and the z-filter paper; their maximum over a pair is what its filter
    compares with the highest of the corpus.
    """
    stats = z_statistics(table.matrix, labels, n_classes)
    matrix = table.matrix.tocsr()[:, np.flatnonzero((stats.n >= often) & (table.names != "null"))]
    z = stats.z[(stats.n >= often) & (table.names != "null")]
    highest = np.full((matrix.shape[0], n_classes), np.nan)
    filled = np.diff(matrix.indptr) > 0
    if filled.any():
        highest[filled] = np.maximum.reduceat(z[matrix.indices], matrix.indptr[:-1][filled], axis=0)
    return highest


def levels_of_pairs(pair: ArrayLike, hypothesis: ArrayLike, labels: ArrayLike) -> Floats:
    """The level of each pair by each training, (S, N): `measure.dynamics.levels`, mixture seed 0; NaN where either
    view is not known. pair, hypothesis: logits (S, E, N, C) of the two views; labels (N,)."""
    found = []
    for views in zip(np.asarray(pair, dtype=float), np.asarray(hypothesis, dtype=float), strict=True):
        both, epochs = np.concatenate(views), len(views[0])
        found.append(
            _known(lambda x, y, e=epochs: levels(dynamics_features(x[:e], x[e:], y)), both, np.asarray(labels))
        )
    return np.array(found).reshape(-1, len(labels))


def sensitivity_of_pairs(before: ArrayLike, after: ArrayLike, place: ArrayLike, n: int) -> Floats:
    """Mean counterfactual sensitivity of each pair over its revisions, (S, n); NaN for a pair without any.

    Parameters
    ----------
    before, after
        logits (S, K, C) of K originals and of their revisions
    place
        (K,): which of n pairs the original is
    """
    place = np.asarray(place, dtype=int)
    count = np.bincount(place, minlength=n)
    sums = [np.bincount(place, sensitivity(*both), minlength=n) for both in zip(before, after, strict=True)]
    with np.errstate(invalid="ignore"):
        return np.array(sums).reshape(-1, n) / np.where(count > 0, count, np.nan)


def aligned(values: ArrayLike, have: ArrayLike, want: ArrayLike) -> Floats:
    """``values`` (..., M, C) of the M pairs named ``have``, put into the order of the names ``want``; NaN for a pair
    that is not among them. Names must differ."""
    place = pd.Index(np.asarray(have, dtype=object)).get_indexer(np.asarray(want, dtype=object))
    found = np.take(np.asarray(values, dtype=float), place, axis=-2)
    found[..., place < 0, :] = np.nan
    return found


def _known(measure: Callable, logits: Floats, labels: NDArray[np.int64]) -> Floats:
    """``measure`` of the pairs whose logits (..., M, C) are known, NaN for the others."""
    known = np.isfinite(logits).all(axis=tuple(each for each in range(logits.ndim) if each != logits.ndim - 2))
    values = np.full(len(labels), np.nan)
    if known.any():
        values[known] = measure(logits[..., known, :], labels[known])
    return values


def _low(measure: Callable, logits: Floats, labels: NDArray[np.int64]) -> Floats:
    return -measure(logits, labels)


def _generator_margin(log_probabilities: Floats, labels: NDArray[np.int64]) -> Floats:
    return dynamics.margin(log_probabilities[None], labels)


def _cleanlab() -> Callable | None:
    try:
        from cleanlab.rank import get_label_quality_scores
    except ModuleNotFoundError:
        return None
    return get_label_quality_scores


def _low_quality(logits: Floats, labels: NDArray[np.int64]) -> Floats:
    return -_cleanlab()(labels, softmax(logits, axis=1))


def _to(values: Floats, trainings: int) -> Floats:
    """As many rows as there are trainings: rows of NaN after those that are known."""
    return np.vstack([values, np.full((trainings - len(values), values.shape[1]), np.nan)])


_OF_A_LABEL: Mapping[str, tuple[str, Callable]] = {
    CONFIDENCE: ("data_map", partial(_low, dynamics.confidence)),
    VARIABILITY: ("data_map", dynamics.variability),
    MAXIMUM: ("data_map", lambda logits, _: dynamics.max_variability(logits)),
    "low correctness": ("data_map", partial(_low, dynamics.correctness)),
    MARGIN: ("data_map", partial(_low, dynamics.margin)),
    "forgetting": ("data_map", dynamics.forgetting),
    AUM: ("in_training", partial(_low, dynamics.margin)),
    HYPOTHESIS: ("hypothesis", partial(_low, dynamics.confidence)),
    CROSSED: ("crossed", partial(_low, self_confidence)),
    GAP: ("crossed", logit_gap),
    GENERATOR: ("generator", partial(_low, _generator_margin)),
}
SCORES = (*_OF_A_LABEL, CLEANLAB, VOTES, LEVEL, SENSITIVITY, NGRAMS, Z)
# what a score needs that is not at hand everywhere
NEEDS = {
    GENERATOR: "a generator that was trained on these pairs (chapter 22)",
    SENSITIVITY: "revisions of these pairs",
    CLEANLAB: f"cleanlab ({INSTALL})",
}
