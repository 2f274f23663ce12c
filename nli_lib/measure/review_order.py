"""The order in which a person reviews suspect labels, learnt anew from the decisions made so far.

A model's strongest contradictions of labels can be systematic errors of its own, and of one kind: what it calls neutral
may mostly be wrong labels, and what it calls a contradiction hardly ever. The reviewer's first decisions say something
about that which no score of the model does; chapter 35 measures how much.

    rest = next_suspects(gap, kind, decided)       # the undecided ones, the most suspect first
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

EVERY = 20  # decisions after which the order is learnt anew


def next_suspects(gap: ArrayLike, kind: ArrayLike, decided: ArrayLike) -> NDArray[np.int64]:
    """Positions of the labels that nobody has decided on, (M,), the most suspect first.

    gap      (N,) in logits, see `consensus.logit_gap`: the order before anything is known, which also settles ties
    kind     (N,), see `consensus.mismatch`, or any other names of groups
    decided  (N,) 1 where the label was found wrong, 0 where it was found right, NaN where nobody has decided

    Until both answers have been given there is nothing to learn, and the order is that of the gap. From then on it is
    that of the probability of a wrong label by a logistic regression on the decisions so far. Its features are an
    indicator of each kind and the gap, standardised; there is no intercept, and the L2 penalty has weight 1. So a kind
    that nobody has seen counts as even, and comes before one that was mostly right. The weight of the gap is at least
    0: a reviewer who begins at the top knows wide gaps alone, and a slope that falls there, carried on to the narrowest
    ones, would turn the list upside down.
    Source: ours.
    """
    gap, kind, decided = np.asarray(gap, dtype=float), np.asarray(kind), np.asarray(decided, dtype=float)
    if not len(gap) == len(kind) == len(decided):
        raise ValueError(f"{len(gap)} gaps, {len(kind)} kinds, {len(decided)} decisions")
    known = np.isfinite(decided)
    if not np.isin(decided[known], (0, 1)).all():
        raise ValueError("a decision is 1 (wrong), 0 (right) or NaN (none yet)")
    learnt = np.zeros(len(gap))
    if len(np.unique(decided[known])) == 2:
        learnt = _wrong_label_probability(gap, kind, decided, known)
    order = np.lexsort((-gap, -learnt))
    return order[~known[order]]


def _wrong_label_probability(gap: NDArray, kind: NDArray, decided: NDArray, known: NDArray) -> NDArray[np.float64]:
    """As `next_suspects` learns it, (N,), from the rows that are known, (N,) bool."""
    names, at = np.unique(kind, return_inverse=True)
    scaled = StandardScaler().fit(gap[known, None]).transform(gap[:, None])
    features = np.column_stack([np.eye(len(names))[at], scaled])
    model = LogisticRegression(fit_intercept=False, solver="newton-cholesky")
    model.fit(features[known], decided[known])
    if model.coef_[0, -1] < 0:  # of the weights that are allowed 0 is the best one then
        features = features[:, :-1]
        model.fit(features[known], decided[known])
    return model.predict_proba(features)[:, 1]


def review_in_turn(
    gap: ArrayLike, kind: ArrayLike, wrong: ArrayLike, *, upto: int, every: int = EVERY
) -> NDArray[np.int64]:
    """The first ``upto`` labels that a reviewer sees when the order is learnt anew after every ``every`` decisions.

    gap (N,) and kind (N,) as `next_suspects` takes them; wrong (N,) bool, what the reviewer will say of each label. The
    decisions of a batch are known when the next batch is chosen. Returns positions (upto,).
    """
    wrong = np.asarray(wrong, dtype=float)
    if not 0 <= upto <= len(wrong):
        raise ValueError(f"upto={upto} of {len(wrong)} labels")
    decided, seen = np.full(len(wrong), np.nan), np.empty(0, dtype=int)
    while len(seen) < upto:
        batch = next_suspects(gap, kind, decided)[: min(every, upto - len(seen))]
        decided[batch] = wrong[batch]
        seen = np.concatenate([seen, batch])
    return seen
