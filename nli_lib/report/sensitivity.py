"""Several trainings on pairs of an original and its revision: sensitivity, accuracy of pairs, sensitive and wrong.

values[title, condition] = pair_values(before, after, pairs)        # measure -> (S, K)
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.corpora.counterfactuals import Counterfactuals, directions
from nli_lib.measure.counterfactual import outcomes, sensitivity
from nli_lib.stats import Estimate, means_of, over_trainings

SENSITIVITY, ACCURACY, WRONG = "sensitivity", "accuracy of pairs", "sensitive and wrong"
RIGHT = "changed, 2 right"
Key = tuple[str, str]  # title of a set of pairs, training set
Values = Mapping[Key, Mapping[str, NDArray]]


def pair_values(original: NDArray, revised: NDArray, pairs: Counterfactuals) -> dict[str, NDArray[np.float64]]:
    """What S trainings do with K pairs, (S, K) for each of `SENSITIVITY`, `ACCURACY` and `WRONG`.

    original, revised  logits (S, K, C) of the two texts of each pair
    `WRONG` is 1 where the prediction changes and not both texts are right.
    """
    found = np.stack([outcomes(*both, pairs.old_labels, pairs.revised.labels) for both in _each(original, revised)])
    right, changed = found == RIGHT, np.char.startswith(found.astype(str), "changed")
    return {
        SENSITIVITY: np.stack([sensitivity(*both) for both in _each(original, revised)]),
        ACCURACY: right.astype(float),
        WRONG: (changed & ~right).astype(float),
    }


def _each(original: NDArray, revised: NDArray) -> list[tuple[NDArray, NDArray]]:
    return list(zip(original, revised, strict=True))


def gap(one: NDArray, other: NDArray, origin: NDArray, *, resamples: int = 500) -> Estimate:
    """The mean of ``one`` (S, K) minus that of ``other``, training by training, over trainings and originals; n counts
    the originals. origin (K,): which original each pair has."""
    first, second = means_of(one), means_of(other)

    def statistic(rows: NDArray) -> NDArray:
        return first(rows) - second(rows)

    return over_trainings(statistic, one.shape[1], groups=origin, resamples=resamples)


def sensitivity_table(
    values: Values, sets: Mapping[str, Counterfactuals], *, baseline: str | None = None
) -> pd.DataFrame:
    """Mean of each measure by set of pairs and training set: columns set, measure, condition and those of Estimate.

    baseline  a training set: how far the others lie above it instead, without a row of its own
    """
    rows = []
    for (title, condition), measures in values.items():
        if condition == baseline:
            continue
        for name, each in measures.items():
            other = values[title, baseline][name] if baseline else np.zeros_like(each)
            rows.append(
                {"set": title, "measure": name, "condition": condition} | gap(each, other, sets[title].origin)._asdict()
            )
    return pd.DataFrame(rows, columns=["set", "measure", "condition", *Estimate._fields])


def outcome_table(logits: Mapping[Key, tuple[NDArray, NDArray]], sets: Mapping[str, Counterfactuals]) -> pd.DataFrame:
    """Share of each of the outcomes, mean over trainings: columns set, condition, outcome, value."""
    rows = []
    for (title, condition), both in logits.items():
        gold = sets[title].old_labels, sets[title].revised.labels
        found = np.concatenate([outcomes(*each, *gold) for each in _each(*both)])
        shares = pd.Series(found).value_counts(normalize=True).sort_index()
        rows += [(title, condition, name, share) for name, share in shares.items()]
    return pd.DataFrame(rows, columns=["set", "condition", "outcome", "value"])


def by_direction(values: Values, sets: Mapping[str, Counterfactuals]) -> pd.DataFrame:
    """Mean of `SENSITIVITY` and `ACCURACY` by direction: columns set, direction, measure, condition, pairs, value."""
    rows = []
    for (title, condition), measures in values.items():
        for direction in directions():
            here = sets[title].direction == direction
            for name in (SENSITIVITY, ACCURACY):
                if here.any():
                    value = measures[name][:, here].mean()
                    rows.append((title, direction, name, condition, int(here.sum()), value))
    return pd.DataFrame(rows, columns=["set", "direction", "measure", "condition", "pairs", "value"])
