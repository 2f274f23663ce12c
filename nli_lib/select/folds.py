"""Folds for scoring every example by a model that did not train on it, and what leaks between them."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import GroupKFold, KFold


def folds(labels: ArrayLike, *, count: int = 10, groups: ArrayLike | None = None, seed: int = 0) -> NDArray[np.int64]:
    """Fold of each example, (N,), 0 to count - 1, drawn with the seed; folds differ in size as little as they can.

    labels (N,). With ``groups`` (N,), such as premises, no group is split: a model never scores a hypothesis of a
    premise that it trained on. Then it is the folds' numbers of groups that differ as little as they can, and a large
    group makes a large fold. Without, two examples of one premise may fall on both sides, and their label may be
    remembered rather than predicted.

    Raises `ValueError` where there are fewer examples (or groups) than folds, and where the examples outside some fold
    lack a label that stands in it, for a model cannot predict what it never saw.
    Source: the consensus cleaning paper section 2 (E5). *Departures*: the paper states neither seed nor shuffling nor
    grouping; both ways are offered.
    """
    gold = np.asarray(labels)
    if len(gold) and (gold == gold[0]).all():
        raise ValueError(f"all {len(gold)} examples have the label {gold[0]}: there is nothing to learn")
    if groups is not None:  # as numbers in their own order: scikit-learn compares texts one by one, for minutes
        groups = np.unique(np.asarray(groups), return_inverse=True)[1]
    what, have = ("examples", len(gold)) if groups is None else ("groups", int(groups.max(initial=-1)) + 1)
    if not 2 <= count <= have:
        raise ValueError(f"{count} folds cannot be made of {have} {what}: choose between 2 folds and as many as {what}")
    splitter = (KFold if groups is None else GroupKFold)(count, shuffle=True, random_state=seed)
    fold = np.empty(len(gold), dtype=np.int64)
    for at, (training, held_out) in enumerate(splitter.split(gold, groups=groups)):
        fold[held_out] = at
        if missing := sorted(set(gold[held_out].tolist()) - set(gold[training].tolist())):
            raise ValueError(
                f"label {missing[0]} occurs in fold {at} alone, so the model that scores it never sees one: "
                "ask for fewer folds, or leave that label out"
            )
    return fold


class Folding(NamedTuple):
    """One way of cross-scoring: `fold` (N,), the folds in a row that a model is reused for (`learn.cross.cross_score`),
    and `siblings` (N, C), the `sibling_labels` of random folds drawn with the same seed."""

    seed: int
    way: str
    fold: NDArray[np.int64]
    reuse_model_for: int
    siblings: NDArray[np.bool_]


def ways_of_folding(labels: ArrayLike, groups: ArrayLike, *, count: int, seeds: Iterable[int]) -> list[Folding]:
    """Ways of cross-scoring to compare: fresh models on folds of whole groups and on random folds, with every
    seed, and, with the first, one model carried through the folds in two sessions, as the consensus cleaning paper's
    numbers show."""
    ways = []
    for place, seed in enumerate(seeds):
        whole = folds(labels, groups=groups, count=count, seed=seed)
        random = folds(labels, count=count, seed=seed)
        siblings = sibling_labels(labels, groups, random)
        ways.append(Folding(seed, "fresh models, whole premises", whole, 1, siblings))
        ways.append(Folding(seed, "fresh models, random folds", random, 1, siblings))
        if place == 0:
            ways.append(Folding(seed, "carried model", whole, (count + 1) // 2, siblings))
    return ways


def sample_of_groups(labels: ArrayLike, groups: ArrayLike, size: int) -> NDArray[np.bool_]:
    """A random sample of whole groups with about ``size`` of the N examples, (N,) bool; all of them where N is less.

    The groups are counted, not the examples: where they are of very different sizes, "about" can be far off.
    """
    parts = round(len(labels) / size) if size else 0
    if parts < 2:
        return np.ones(len(labels), dtype=bool)
    return folds(labels, groups=groups, count=parts) == 0


def linked(*keys: ArrayLike) -> NDArray[np.int64]:
    """(N,) a number for each example, equal where two have a key in common or are linked through others.

    keys  each (N,), such as premises and hypotheses; a missing value (None, NaN) links nothing
    """
    at = pd.Series(np.arange(len(keys[0])))
    firsts = [at.groupby(np.asarray(key)).transform("min").fillna(at) for key in keys]  # the first with the same key
    ends = np.tile(at, len(firsts)), np.concatenate(firsts).astype(np.int64)
    graph = coo_array((np.ones(len(ends[0]), dtype=bool), ends), shape=(len(at), len(at)))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def sibling_labels(labels: ArrayLike, groups: ArrayLike, fold: ArrayLike) -> NDArray[np.bool_]:
    """(N, C): does an example of the same group, in another fold, hold label c?

    labels (N,) from 0 to C - 1, groups (N,) such as premises, fold (N,). What the model that scores an example has seen
    of its group; all false where no group is split.
    """
    gold, group = np.asarray(labels), np.asarray(groups)
    held = pd.DataFrame(np.eye(gold.max(initial=0) + 1, dtype=int)[gold])
    in_group = held.groupby(group).transform("sum")
    in_fold = held.groupby([group, np.asarray(fold)]).transform("sum")
    return (in_group > in_fold).to_numpy()
