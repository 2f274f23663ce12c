"""The order in which a person reviews suspect labels, learnt anew from the decisions made so far.

A model's strongest contradictions of labels can be systematic errors of its own, and of one kind: what it calls neutral
may mostly be wrong labels, and what it calls a contradiction hardly ever. The reviewer's first decisions say something
about that which no score of the model does; chapter 35 measures how much.

    features = suspect_features(kind, gap)
    rest = next_suspects(gap, features, decided)       # the undecided ones, the most suspect first
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

EVERY = 20  # decisions after which the order is learnt anew


def suspect_features(kind: ArrayLike, gap: ArrayLike) -> NDArray[np.float64]:
    """What an order is learnt from, (N, K + 1): an indicator for each of the K kinds that occur, and the gap.

    kind (N,), see `consensus.mismatch`, or any other names of groups; gap (N,) in logits, see `consensus.logit_gap`.
    """
    kinds, at = np.unique(np.asarray(kind), return_inverse=True)
    return np.column_stack([np.eye(len(kinds))[at], np.asarray(gap, dtype=float)])


def next_suspects(start: ArrayLike, features: ArrayLike, decided: ArrayLike) -> NDArray[np.int64]:
    """Positions of the labels that nobody has decided on, (M,), the most suspect first.

    start     (N,) the order before anything is known, the most suspect highest; it also settles ties
    features  (N, F), see `suspect_features`
    decided   (N,) 1 where the label was found wrong, 0 where it was found right, NaN where nobody has decided

    Until both answers have been given there is nothing to learn, and the order is that of ``start``. From then on it is
    that of the probability of a wrong label by a logistic regression (L2 penalty of weight 1, features standardised)
    on the decisions so far.
    Source: ours.
    """
    start, features, decided = (np.asarray(each, dtype=float) for each in (start, features, decided))
    if not len(start) == len(features) == len(decided):
        raise ValueError(f"{len(start)} scores, {len(features)} rows of features, {len(decided)} decisions")
    known = np.isfinite(decided)
    if not np.isin(decided[known], (0, 1)).all():
        raise ValueError("a decision is 1 (wrong), 0 (right) or NaN (none yet)")
    learnt = np.zeros(len(start))
    if len(np.unique(decided[known])) == 2:
        model = make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky")).fit(
            features[known], decided[known]
        )
        learnt = model.predict_proba(features)[:, 1]
    order = np.lexsort((-start, -learnt))
    return order[~known[order]]


def review_in_turn(
    start: ArrayLike, features: ArrayLike, wrong: ArrayLike, *, upto: int, every: int = EVERY
) -> NDArray[np.int64]:
    """The first ``upto`` labels that a reviewer sees when the order is learnt anew after every ``every`` decisions.

    start (N,) and features (N, F) as `next_suspects` takes them; wrong (N,) bool, what the reviewer will say of each
    label. The decisions of a batch are known when the next batch is chosen. Returns positions (upto,).
    """
    wrong = np.asarray(wrong, dtype=float)
    if not 0 <= upto <= len(wrong):
        raise ValueError(f"upto={upto} of {len(wrong)} labels")
    decided, seen = np.full(len(wrong), np.nan), np.empty(0, dtype=int)
    while len(seen) < upto:
        batch = next_suspects(start, features, decided)[: min(every, upto - len(seen))]
        decided[batch] = wrong[batch]
        seen = np.concatenate([seen, batch])
    return seen
