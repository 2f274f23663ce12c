"""Rows that carry their positions: a dataset and a collator around another's, so that a batch knows its rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from nli_lib.errors import UserError

POSITIONS = "nli_positions"  # key under which a batch carries the positions of its rows


class RecorderError(UserError, RuntimeError):
    """Logits cannot be recorded; the message names the column, the row or the file, and what to do."""


class Numbered:
    """A dataset whose items come with their positions."""

    def __init__(self, rows: Any):
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, position: int) -> tuple[int, Any]:
        return position, self.rows[position]

    def __getitems__(self, positions: list[int]) -> list[tuple[int, Any]]:
        many = getattr(self.rows, "__getitems__", None)
        return list(zip(positions, many(positions) if many else map(self.rows.__getitem__, positions), strict=True))

    def __getattr__(self, name: str) -> Any:
        if name == "rows":  # asked for before it is set, while a worker unpickles this object
            raise AttributeError(name)
        return getattr(self.rows, name)


class Collate:
    """A collator that adds the positions to the batch."""

    def __init__(self, collate: Any):
        self.collate = collate

    def __call__(self, items: list[tuple[int, Any]]) -> Any:
        batch = self.collate([item for _, item in items])
        if not isinstance(batch, Mapping):
            raise RecorderError(f"the data collator makes a {type(batch).__name__}: it must make a dict of arguments")
        batch[POSITIONS] = torch.tensor([position for position, _ in items])
        return batch


def column_of(dataset: Any, *names: str) -> np.ndarray:
    """The values of the first of these columns that the dataset has."""
    if hasattr(dataset, "column_names"):
        known = list(dataset.column_names)
    elif hasattr(dataset, "columns") or isinstance(dataset, Mapping):
        known = list(getattr(dataset, "columns", dataset))
    else:
        dataset = list(dataset) if isinstance(dataset, Sequence) else [dataset[at] for at in range(len(dataset))]
        known = list(dataset[0]) if dataset and isinstance(dataset[0], Mapping) else []
    found = next((name for name in names if name in known), None)
    if found is None:
        raise RecorderError(
            f"the dataset has no column {' or '.join(names)}; it has {', '.join(map(str, known)) or 'none'}"
        )
    return np.array([row[found] for row in dataset] if isinstance(dataset, list) else list(dataset[found][:]))


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values (N,) in the order of their first appearance, and for each position the row it stands for."""
    if values.ndim != 1 or values.dtype.kind not in "iuUS":
        raise RecorderError(
            f"the column that names a row holds {values.dtype} of shape {values.shape}: text or whole numbers"
        )
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return values[first[order]], rank[inverse]
