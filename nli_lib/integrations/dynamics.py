"""Dynamics: the logits of a training that somebody else did, with the names of its rows; an npz file of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.store import atomic, reading


class IntegrationError(UserError, ValueError):
    """What another tool gave or wants does not fit; the message names the file, row or field, and what to do."""


@dataclass(frozen=True, eq=False)
class Dynamics:
    """N rows over E epochs.

    logits   (E, N, C), NaN where a row was not recorded in an epoch; the measures refuse those, `whole` leaves them out
    labels   (N,) gold labels, indices into the last axis of `logits`
    uid      (N,) the names of the rows, text or whole numbers
    capture  "train" for logits of the training pass, "eval" for those of a pass after each epoch, "" where the source
             does not say. The two give different maps
    """

    logits: np.ndarray
    labels: np.ndarray
    uid: np.ndarray
    capture: str = ""

    def __post_init__(self) -> None:
        shape = self.logits.shape
        if len(shape) != 3 or self.labels.shape != shape[1:2] or self.uid.shape != shape[1:2]:
            told = f"logits {shape}, labels {self.labels.shape}, uid {self.uid.shape}"
            raise IntegrationError(f"{told}: logits (epochs, rows, classes) with a label and a name for each row")
        names, counts = np.unique(self.uid, return_counts=True)
        if (counts > 1).any():
            name = names[counts > 1][0].item()
            raise IntegrationError(f"uid {name!r} names more than one row: each name stands once")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: np.ndarray | Sequence[int]) -> Dynamics:
        """The rows named by a boolean mask (N,) or by positions."""
        return replace(self, logits=self.logits[:, rows], labels=self.labels[rows], uid=self.uid[rows])

    @property
    def missing(self) -> np.ndarray:
        """(N,) bool: rows that some epoch lacks."""
        return np.isnan(self.logits).any(axis=(0, 2))

    def whole(self) -> Dynamics:
        """The rows that every epoch has."""
        return self[~self.missing]

    def of(self, corpus: Corpus) -> Dynamics:
        """The rows in the order of a corpus, found by uid (compared as text), so that they stand beside it by position.

        Raises `IntegrationError` where the corpus has rows that were not recorded, or other labels; rows that the
        corpus does not have are left out.
        """
        at = pd.Index(self.uid.astype(str)).get_indexer(corpus.uid.astype(str))  # -1: not there
        if (at < 0).any():
            first = corpus.uid[np.argmax(at < 0)]
            raise IntegrationError(
                f"{(at < 0).sum():,} of {len(corpus):,} rows of {corpus.name} were not recorded, the first {first!r}: "
                "give the corpus that was trained on, or the part of it that was"
            )
        wrong = np.flatnonzero(self.labels[at] != corpus.labels)
        if wrong.size:
            raise IntegrationError(
                f"row {corpus.uid[wrong[0]]!r} was recorded with label {self.labels[at[wrong[0]]]}, and {corpus.name} "
                f"says {corpus.labels[wrong[0]]} ({wrong.size:,} such rows): labels must mean {corpus.classes} in both"
            )
        return self[at]

    def save(self, path: str | Path) -> None:
        """Write an npz file that `read_dynamics` reads, and `numpy.load` without pickle."""
        with atomic(Path(path)) as draft, draft.open("wb") as file:
            np.savez(file, logits=self.logits, labels=self.labels, uid=self.uid, capture=self.capture)


def read_dynamics(path: str | Path) -> Dynamics:
    """What `RecordLogits.save` or `Dynamics.save` wrote: an npz file of logits, labels, uid and capture."""
    with reading(Path(path), "give the npz file that `save` wrote"), np.load(path, allow_pickle=False) as stored:
        return Dynamics(stored["logits"], stored["labels"], stored["uid"], str(stored["capture"]))


def dynamics_of(run: object, labels: ArrayLike | None = None, uid: ArrayLike | None = None) -> Dynamics:
    """A run, a recorder or logits (E, N, C) as `Dynamics`; rows without names are numbered."""
    if isinstance(run, Dynamics):
        return run
    logits = np.asarray(getattr(run, "logits", run))
    gold = np.asarray(getattr(run, "labels", None) if labels is None else labels)
    names = getattr(run, "uid", None) if uid is None else uid
    names = np.arange(logits.shape[1] if logits.ndim == 3 else 0) if names is None else np.asarray(names)
    if names.dtype == object:
        names = names.astype(str)
    told = getattr(run, "capture", "") or getattr(getattr(run, "spec", None), "capture", "")
    return Dynamics(logits, gold, names, str(told))
