"""What scores say of an outside truth: each by itself, and on top of a data map's confidence.

alone = follows(scores, truth, premises)      # rank correlation, or how often a yes has the higher score than a no
more = adds(scores, truth, premises)          # variance explained out of sample, with confidence and without the score
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from nli_lib.measure.pair_scores import CONFIDENCE
from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import spearman
from nli_lib.report.style import TWIN
from nli_lib.report.trainings import Statistic, means_of, over_trainings

ANOTHER, LABEL = "another training's confidence", "the label alone"
CONTROLS = (ANOTHER, LABEL, TWIN)
FOLDS = 5
LEAST = 100  # judgments that a regression is fitted to
EACH = 10  # of them yes, and so many no, where the truth is yes or no
KNOTS = 5
PENALTY = 0.01  # scikit-learn's alpha, and one over its C: enough to keep knots without labels quiet

CORRELATION, AREA = "rank correlation", "area under the ROC curve"

Floats = NDArray[np.float64]


def follows(
    scores: Mapping[str, ArrayLike], truth: ArrayLike, premises: ArrayLike, *, resamples: int = 200
) -> pd.DataFrame:
    """How each score orders M judged labels, with an interval over trainings and premises.

    Columns: score, measure (`CORRELATION` or `AREA`), and `Estimate`.

    scores (S, M) as `measure.pair_scores` has them; truth (M,). A graded truth: Spearman's correlation, -1 to 1. One of
    0 and 1: the probability that a 1 has the higher score than a 0, ties counting half, 0 to 1 (area under the ROC
    curve), .5 where the score says nothing. Over the labels and trainings whose score is known; a score that is
    constant there, or known of fewer than `LEAST`, has no row. One more row is a random twin.
    """
    truth, premises = np.asarray(truth, dtype=float), np.asarray(premises)
    rows, measure = [], AREA if np.isin(truth, (0, 1)).all() else CORRELATION
    for name, values, known in _usable(_with_controls(scores), truth):
        same = (values == values[:1]).all()  # no training changes it: the interval is over premises alone
        statistic = ordering(values[:1] if same else values, truth[known])
        found = over_trainings(statistic, known.sum(), groups=premises[known], resamples=resamples)
        rows.append((name, measure, *found))
    return pd.DataFrame(rows, columns=["score", "measure", *Estimate._fields])


def adds(
    scores: Mapping[str, ArrayLike],
    truth: ArrayLike,
    premises: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    base: str = CONFIDENCE,
    resamples: int = 200,
    seed: int = 0,
) -> tuple[pd.DataFrame, dict[str, Floats]]:
    """What each score adds to ``base`` out of sample: a table, and the gains that it is the mean of.

    Columns: score; alone and base, the shares of the truth's variance that the score and the base explain by themselves
    on the labels that have both; then `Estimate` of the gain, the share that both explain minus base. Negative where
    the score is not worth the regression that it costs. The gains (S, M), name -> one a training and label, NaN where
    not known: their mean is the value, and two scores are compared by the difference of theirs.

    Method: within each training, the truth is predicted in `FOLDS` folds that split no premise, by a ridge regression
    (graded truth) or a logistic one (of 0 and 1), on cubic splines of the ranks with `KNOTS` knots, so that a score
    does not gain by bending confidence. Explained is 1 - sum (y - p)^2 / sum (y - mean)^2. Gains are those of squared
    errors; the interval covers trainings and premises, not other folds. The controls stand among the scores
    (`CONTROLS`): a random twin; the base of another training, which is what less noise alone can lend; and, where
    labels (M,) are given, the label on trial itself, for a score that differs between the labels says which it is.
    """
    truth, premises = np.asarray(truth, dtype=float), pd.factorize(np.asarray(premises))[0]
    rows, gains, bases = [], {}, {}
    for name, values, known in _usable(_with_controls(scores, base, labels), truth, base):
        y, of = truth[known], premises[known]
        both = zip(values, np.asarray(scores[base], dtype=float)[: len(values), known], strict=True)
        errors = []
        for training, (score, first) in enumerate(both):
            key = training, known.tobytes()
            if key not in bases:
                bases[key] = (y - out_of_fold(first[:, None], y, of, seed=seed)) ** 2
            inputs = [score[:, None], np.stack([first, score], axis=1)]
            errors.append([bases[key], *((y - out_of_fold(each, y, of, seed=seed)) ** 2 for each in inputs)])
        first, alone, together = np.swapaxes(np.array(errors), 0, 1) / np.var(y)  # (S, M) each
        estimate = over_trainings(means_of(first - together), len(y), groups=of, resamples=resamples)
        rows.append((name, 1 - alone.mean(), 1 - first.mean(), *estimate))
        gains[name] = np.full((len(values), len(truth)), np.nan)
        gains[name][:, known] = first - together
    return pd.DataFrame(rows, columns=["score", "alone", "base", *Estimate._fields]), gains


def gain_of(tables: Mapping[object, pd.DataFrame], key: object, score: str) -> Estimate | None:
    """The gain of a score in one of several tables of `adds`; None where there is no such table, or no such row."""
    found = tables[key] if key in tables else pd.DataFrame(columns=["score", *Estimate._fields])
    found = found.loc[found["score"] == score, list(Estimate._fields)]
    return Estimate(*found.iloc[0]) if len(found) else None


def out_of_fold(inputs: ArrayLike, truth: ArrayLike, groups: ArrayLike, *, seed: int = 0) -> Floats:
    """Predictions (M,) of a truth (M,) from inputs (M, D), each label's by a regression that saw none of its group.

    groups (M,), such as premises. See `adds` for the regression.
    """
    truth = np.asarray(truth, dtype=float)
    ranks = rankdata(inputs, axis=0) / len(truth)
    yes_or_no = np.isin(truth, (0, 1)).all()
    found = np.empty(len(truth))
    for train, held_out in GroupKFold(FOLDS, shuffle=True, random_state=seed).split(ranks, truth, groups):
        splines = SplineTransformer(n_knots=KNOTS, include_bias=False)
        regression = LogisticRegression(C=1 / PENALTY, max_iter=500) if yes_or_no else Ridge(PENALTY)
        model = make_pipeline(splines, regression).fit(ranks[train], truth[train])
        found[held_out] = model.predict_proba(ranks[held_out])[:, 1] if yes_or_no else model.predict(ranks[held_out])
    return found


def ordering(scores: ArrayLike, truth: ArrayLike) -> Statistic:
    """For `over_trainings`: how scores (S, M) order a truth (M,), as `follows` says; NaN without two kinds of truth."""
    scores, truth = np.asarray(scores, dtype=float), np.asarray(truth, dtype=float)
    if not np.isin(truth, (0, 1)).all():
        return lambda rows: spearman(scores[:, rows], truth[rows])

    def area(rows: NDArray) -> Floats:
        yes, ranks = truth[rows] == 1, rankdata(scores[:, rows], axis=1)
        if yes.all() or not yes.any():
            return np.full(len(scores), np.nan)
        return (ranks[:, yes].mean(axis=1) - (yes.sum() + 1) / 2) / (~yes).sum()

    return area


def _with_controls(
    scores: Mapping[str, ArrayLike], base: str | None = None, labels: ArrayLike | None = None
) -> dict[str, Floats]:
    """The scores (S, M), a random twin, the base of the training after each, where there are several, and the label."""
    found = {name: np.asarray(each, dtype=float) for name, each in scores.items()}
    shape = next(iter(found.values())).shape
    found[TWIN] = np.random.default_rng(60).random(shape)
    if base and shape[0] > 1:
        trained = np.isfinite(found[base]).any(axis=1)
        found[ANOTHER] = np.full(shape, np.nan)
        found[ANOTHER][trained] = np.roll(found[base][trained], 1, axis=0)
    if labels is not None:
        found[LABEL] = np.tile(np.asarray(labels, dtype=float), (shape[0], 1))
    return found


def _usable(
    scores: Mapping[str, Floats], truth: Floats, base: str | None = None
) -> Iterator[tuple[str, Floats, NDArray[np.bool_]]]:
    """(name, values of the trainings that know it, which labels are known) of the scores that can be judged."""
    yes_or_no = np.isin(truth, (0, 1)).all()
    for name, values in scores.items():
        trained = values[np.isfinite(values).any(axis=1)]
        known = np.isfinite(trained).all(axis=0)
        if base:
            known &= np.isfinite(scores[base][: len(trained)]).all(axis=0)
        y = truth[known]
        enough = len(y) >= LEAST and (not yes_or_no or min((y == 1).sum(), (y == 0).sum()) >= EACH)
        told = len(trained) and name != base and enough and np.ptp(y) > 0 and np.ptp(trained[:, known], axis=1).all()
        if told:
            yield name, trained[:, known], known
