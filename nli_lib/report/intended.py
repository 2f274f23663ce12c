"""How often generated pairs have the label that was asked for, as trained models see it, beside pairs by people."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.stats import Estimate, gaps_between, means_of, over_trainings

GENERATED, DEALT, WRITTEN = "generated pairs", "random twin: labels dealt out", "pairs by people"


class Judged(NamedTuple):
    """N pairs and what T trainings say of them, none of which was trained on them.

    predicted  (T, N) int, the label that each predicts; labels: (N,) int, those that were asked for, or people's
    groups     (N,) what is drawn together, such as the premise
    """

    predicted: NDArray[np.int64]
    labels: NDArray[np.int64]
    groups: NDArray

    @property
    def right(self) -> NDArray[np.bool_]:
        return self.predicted == self.labels

    def dealt_out(self, seed: int = 0) -> "Judged":
        """The random twin: the same labels, dealt out to the pairs at random."""
        return self._replace(labels=np.random.default_rng(seed).permutation(self.labels))


def intended_table(parts: Mapping[str, Judged], classes: Sequence[str]) -> pd.DataFrame:
    """The share of pairs of which a training predicts the label that they have: columns title (the label), condition
    (the key of ``parts``) and those of Estimate. A label that no pair of a part has is left out."""
    rows = []
    for at, title in enumerate(classes):
        for condition, judged in parts.items():
            if (judged.labels == at).any():
                of_label = np.where(judged.labels == at, judged.right, np.nan)
                found = over_trainings(means_of(of_label), len(judged.labels), groups=judged.groups)
                rows.append({"title": title, "condition": condition, **found._asdict()})
    return pd.DataFrame(rows, columns=["title", "condition", *Estimate._fields])


def further_behind(generated: Judged, written: Judged, at: int) -> Estimate:
    """How much further label ``at`` lies behind the other labels among generated pairs than among written ones.

    Of either kind, the share of predicted labels that are right, at label ``at`` minus at all others; the difference of
    the two, over trainings and groups. Below 0 where the label is harder to ask for than the models' own weakness at it
    explains. Both are judged by the same trainings in the same order; n counts the groups of both.

    Source: WANLI, appendix C.4. *Departures*: there people judge, and nothing is set beside.
    Raises `ValueError` where one kind has no pair of label ``at``, or none of another: see `comparable`.
    """
    size = len(generated.labels)
    right, labels = np.hstack([generated.right, written.right]), np.concatenate([generated.labels, written.labels])
    groups = np.concatenate([pd.factorize(generated.groups)[0], -1 - pd.factorize(written.groups)[0]])
    first = np.arange(len(labels)) < size
    (one, other), (real, rest) = (
        [np.broadcast_to(part & chosen, right.shape) for chosen in (labels == at, labels != at)]
        for part in (first, ~first)
    )
    behind, behind_by_people = gaps_between(right, one, other), gaps_between(right, real, rest)
    return over_trainings(lambda rows: behind(rows) - behind_by_people(rows), len(labels), groups=groups)


def comparable(generated: Judged, written: Judged, at: int) -> bool:
    """Whether both kinds have pairs of label ``at`` and of others, and a training has judged them."""
    return all(len(each.predicted) and np.unique(each.labels == at).size == 2 for each in (generated, written))
