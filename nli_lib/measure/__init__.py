"""Checks that every measure makes of its arguments: one hypothesis for each premise, valid labels, finite logits."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def check_pairs(premises: Sequence[str], hypotheses: Sequence[str]) -> int:
    """Return the number of pairs; raise a `ValueError` unless each premise has one hypothesis."""
    if len(premises) != len(hypotheses):
        raise ValueError(f"{len(premises)} premises and {len(hypotheses)} hypotheses: give as many of each")
    return len(premises)


def check_labels(labels: ArrayLike, rows: int, n_classes: int | None = None) -> NDArray[np.int64]:
    """Return the labels (N,) as integers; raise a `ValueError` unless there is one for each of `rows` examples, each
    within 0..n_classes-1 (None: any from 0 up)."""
    gold = np.asarray(labels)
    if gold.shape != (rows,):
        raise ValueError(f"labels have shape {gold.shape} for {rows} examples: give one label each")
    if gold.size and gold.dtype.kind not in "iu":
        raise ValueError(f"labels are of type {gold.dtype}: give integer class indices")
    outside = np.flatnonzero((gold < 0) | (gold >= (np.inf if n_classes is None else n_classes)))
    if outside.size:
        end = "" if n_classes is None else n_classes - 1
        raise ValueError(
            f"label {gold[outside[0]]} at position {outside[0]} is not one of 0..{end} ({outside.size} such labels): "
            "drop examples without a gold label first"
        )
    return gold.astype(np.int64)


def class_count(*labels: NDArray[np.int64], n_classes: int | None = None) -> int:
    """The number of classes of the labels (N,): `n_classes` or, if that is None, the number of labels that occur.

    Chance is one over this number, so it is never guessed: a `ValueError` asks for `n_classes` if fewer than two labels
    occur, or if a label between two others does not.
    """
    if n_classes is not None:
        return n_classes
    occur = np.unique(np.concatenate(labels)) if labels else np.empty(0)
    if len(occur) < 2 or occur[-1] != len(occur) - 1:
        raise ValueError(f"the labels that occur are {occur.tolist()}: say how many classes there are with n_classes")
    return len(occur)


def check_logits(logits: ArrayLike, *, epochs: bool = True) -> Floats:
    """Return the logits as floats, (E, N, C) or without epochs (N, C); raise a `ValueError` that names the first bad
    value."""
    scores = np.asarray(logits, dtype=np.float64)
    wanted = "(epochs >= 1, examples, classes >= 2)" if epochs else "(examples, classes >= 2)"
    if scores.ndim != 2 + epochs or 0 in scores.shape[: int(epochs)] or scores.shape[-1] < 2:
        raise ValueError(f"logits have shape {scores.shape}: {wanted} is needed")
    bad = ~np.isfinite(scores).all(axis=-1)
    if bad.any():
        *epoch, example = np.argwhere(bad)[0]
        where = f"epoch {epoch[0]}, example {example}" if epoch else f"example {example}"
        raise ValueError(
            f"logits are not finite ({bad.sum()} rows), first at {where}: the run is unfinished or has diverged"
        )
    return scores


def check_scored(logits: ArrayLike, labels: ArrayLike, *, epochs: bool = True) -> tuple[Floats, NDArray[np.int64]]:
    """Check logits (see `check_logits`) and their labels (N,), and return both."""
    scores = check_logits(logits, epochs=epochs)
    return scores, check_labels(labels, scores.shape[-2], scores.shape[-1])
