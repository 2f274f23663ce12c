"""Rows that carry their positions: a dataset and a collator around another's, so that a batch knows its rows."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset

from nli_lib.errors import UserError

ITERATED = "the dataset can only be iterated, so its rows have no positions"


class RecorderError(UserError, RuntimeError):
    """Logits cannot be recorded; the message names the column, the row or the file, and what to do."""

    def __init__(self, message: str):
        # torch makes an error of a loader's worker anew, from its whole traceback; what was said is the end of it
        super().__init__(message.rpartition(f"{type(self).__name__}: ")[2].strip())


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


@dataclass(frozen=True)
class Collate:
    """A collator that adds the positions of the rows to the batch, if the batch is of these rows.

    collate  the collator around which this one stands
    key      under which a batch carries the positions
    column   the column that names a row, with the name at each position (positions,)
    labels   where labels may stand in a batch or a row, with the label at each position (positions,)
    """

    collate: Any
    key: str
    column: str
    names: np.ndarray
    labels: Sequence[str]
    gold: np.ndarray

    def __call__(self, items: list[tuple[int, Any]]) -> Any:
        positions, rows = np.array([position for position, _ in items]), [row for _, row in items]
        # before the collator, which may take what it needs out of the rows
        named, *given = (_values(rows, name) for name in (self.column, *self.labels))
        batch = self.collate(rows)
        if not isinstance(batch, Mapping):
            raise RecorderError(f"the data collator makes a {type(batch).__name__}: it must make a dict of arguments")
        given = [*(_array(batch.get(name)) for name in self.labels), *given]
        given = next((each for each in given if _whole(each) and each.shape == positions.shape), None)
        if named is not None:
            self._same(self.column, named.astype(str), self.names[positions].astype(str), positions)
        if given is not None:  # below 0: not to be learnt
            self._same("label", np.where(given < 0, self.gold[positions], given), self.gold[positions], positions)
        elif named is None:
            warnings.warn(
                f"the Trainer's batches have neither labels nor {self.column}: whether its rows are in the order of "
                "the recorder's dataset cannot be seen",
                stacklevel=2,
            )
        batch[self.key] = torch.from_numpy(positions)
        return batch

    def _same(self, what: str, given: np.ndarray, expected: np.ndarray, positions: np.ndarray) -> None:
        if (differ := given != expected).any():
            at = int(np.argmax(differ))
            row = positions[at]
            raise RecorderError(
                f"row {row} of the Trainer's dataset has {what} {given[at].item()!r}, and row {row} of the recorder's, "
                f"{self.column} {self.names[row].item()!r}, has {expected[at].item()!r}: "
                "give the recorder the dataset that the Trainer has, in the same order, and a data collator that keeps "
                "the order of the rows"
            )


def _array(values: Any) -> np.ndarray | None:
    """A tensor, an array or a number as an array; None for anything else."""
    if torch.is_tensor(values):
        return values.detach().cpu().numpy()
    return np.asarray(values) if isinstance(values, np.ndarray | np.generic | int | float | str) else None


def _values(rows: Sequence[Any], name: str) -> np.ndarray | None:
    """The column of this name, None where a row has none, or holds there more than one value."""
    cells = [_array(row.get(name)) if isinstance(row, Mapping) else None for row in rows]
    return np.array(cells) if all(cell is not None and cell.ndim == 0 for cell in cells) else None


def _whole(values: np.ndarray | None) -> bool:
    """Whether these are whole numbers, as labels of classes are."""
    return values is not None and values.dtype.kind in "iufb" and not (values % 1).any()


def iterated(dataset: Any) -> bool:
    """Whether a dataset can only be iterated, so that its rows have no positions."""
    return isinstance(dataset, IterableDataset) or not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"))


def column_of(dataset: Any, *names: str) -> np.ndarray:
    """The values of the first of these columns that the dataset has, whatever format or transform it shows them in."""
    if iterated(dataset):
        raise RecorderError(f"{ITERATED}: give the recorder one that is read whole, without streaming")
    if hasattr(dataset, "column_names"):
        dataset = dataset.with_format(None) if hasattr(dataset, "with_format") else dataset
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
