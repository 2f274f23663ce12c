"""What a selection step answers: which examples are kept, and for each one why.

A selection stands beside its corpus by position, so ``corpus[selection.keep]`` is the kept part and
``corpus[~selection.keep]`` with ``selection.reason[~selection.keep]`` is what the step dropped. Every
selection has a control one call away: ``random_twin``, of the same size and label balance.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

KEPT = "kept"


@dataclass(frozen=True, eq=False)
class Selection:
    """keep (N,) bool, True for a kept example; reason (N,) str, why it was kept or dropped."""

    keep: np.ndarray
    reason: np.ndarray

    def __post_init__(self) -> None:
        if self.keep.dtype != bool or self.keep.ndim != 1:
            raise ValueError(f"keep must be a boolean array (N,), not {self.keep.dtype} of shape {self.keep.shape}")
        if self.reason.shape != self.keep.shape:
            raise ValueError(
                f"reasons have shape {self.reason.shape} for {len(self)} examples: give one reason an example"
            )

    def __len__(self) -> int:
        return len(self.keep)

    @property
    def size(self) -> int:
        """Number of examples kept."""
        return int(self.keep.sum())

    @property
    def digest(self) -> str:
        """Eight hex digits that tell this choice of examples from another, for the name of a run."""
        return hashlib.sha256(np.packbits(self.keep).tobytes() + len(self).to_bytes(8, "little")).hexdigest()[:8]

    @classmethod
    def all(cls, n: int) -> "Selection":
        """Keep all ``n`` examples: the baseline of every comparison."""
        return cls(np.ones(n, dtype=bool), np.full(n, KEPT, dtype=object))

    @classmethod
    def where(cls, keep: np.ndarray, dropped: str, kept: str = KEPT) -> "Selection":
        """Keep where ``keep`` (N,) is True, with one reason for the kept and one for the dropped."""
        return cls(keep, np.where(keep, kept, dropped).astype(object))

    def overlap(self, other: "Selection") -> float:
        """Jaccard index of the kept examples, 0 to 1: those that both keep among those that either keeps."""
        return float((self.keep & other.keep).sum() / (self.keep | other.keep).sum())

    def random_twin(self, labels: np.ndarray, seed: int = 0) -> "Selection":
        """The control: a uniform random selection that keeps as many examples of every label as this one.

        labels (N,). Depends on the labels, the number kept of each and the seed, on nothing else.
        """
        labels = np.asarray(labels)
        if labels.shape != self.keep.shape:
            raise ValueError(f"labels have shape {labels.shape}, the selection {self.keep.shape}")
        generator = np.random.default_rng(seed)
        keep = np.zeros(len(self), dtype=bool)
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            wanted = int(self.keep[members].sum())
            keep[generator.choice(members, size=wanted, replace=False)] = True
        return Selection.where(keep, dropped="not drawn", kept="drawn")


def top(scores: np.ndarray, *, fraction: float, name: str = "top") -> "Selection":
    """Keep the ``fraction`` (0-1) of the examples with the highest scores (N,); of equals the earlier position.

    ``name`` is the reason given. *Departures*: int(fraction * N) examples, as cartography's log says; its code takes
    one more.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction is {fraction}, it must lie between 0 and 1")
    if np.isnan(scores).any():
        raise ValueError(f"scores are NaN, the first at position {np.isnan(scores).argmax()}: they have no rank")
    keep = np.zeros(len(scores), dtype=bool)
    keep[np.argsort(-np.asarray(scores, dtype=float), kind="stable")[: int(fraction * len(scores))]] = True
    return Selection.where(keep, dropped=f"not in the {name}", kept=name)


def bottom(scores: np.ndarray, *, fraction: float) -> "Selection":
    """Keep the ``fraction`` of the examples with the lowest scores (N,); of equals the earlier position. See `top`."""
    return top(-np.asarray(scores, dtype=float), fraction=fraction, name="bottom")
