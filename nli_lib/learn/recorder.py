"""RecordLogits: a callback that records training dynamics in Hugging Face's `Trainer`::

    recorder = RecordLogits(train_dataset, column="uid")
    Trainer(..., train_dataset=train_dataset, callbacks=[recorder]).train()
    recorder.logits, recorder.labels, recorder.uid      # (E, N, C), (N,), (N,): what every measure takes

A wrapped dataset and collator add to each batch the positions of its rows, so shuffling, grouping by length, padding,
workers, several processes and resumption cannot mix rows up. The model never sees the positions, and no random number
is drawn: the training is the same with and without the callback.
"""

import itertools
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from torch import nn
from torch.utils.data import IterableDataset, Subset
from transformers import TrainerCallback

from nli_lib.errors import TrainingError
from nli_lib.store import atomic, reading

ITERATED = "the dataset can only be iterated, so its rows have no positions"


class Numbered(Subset):
    """A dataset that returns items with their positions."""

    def __getitems__(self, positions: list[int]) -> list[tuple[int, Any]]:
        return list(zip(positions, super().__getitems__(positions), strict=True))

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self).get("dataset"), name)  # none yet, while a worker unpickles this object


@dataclass(frozen=True)
class Collate:
    """A collator that adds the positions of the rows to the batch, if the batch is of these rows.

    Attributes
    ----------
    collate
        the collator that this one wraps
    key
        name of the positions in a batch
    column
        the column that identifies a row, with its value at each position (positions,)
    labels
        names that labels may have in a batch or a row, with the label at each position (positions,)
    """

    collate: Any
    key: str
    column: str
    names: np.ndarray
    labels: Sequence[str]
    gold: np.ndarray

    def __call__(self, items: list[tuple[int, Any]]) -> Any:
        positions, rows = np.array([position for position, _ in items]), [row for _, row in items]
        # before the collator, which may remove things from the rows
        named, *given = (_values(rows, name) for name in (self.column, *self.labels))
        batch = self.collate(rows)
        if not isinstance(batch, Mapping):
            raise TrainingError(f"the data collator makes a {type(batch).__name__}: it must make a dict of arguments")
        given = [*(_array(batch.get(name)) for name in self.labels), *given]
        given = next((each for each in given if _whole(each) and each.shape == positions.shape), None)
        said = []
        if named is not None:
            said.append((self.column, named.astype(str), self.names[positions].astype(str)))
        if given is not None:  # below 0: ignored in training
            said.append(("label", np.where(given < 0, self.gold[positions], given), self.gold[positions]))
        if not said:
            order = "whether its rows are in the order of the recorder's dataset cannot be seen"
            warnings.warn(f"the Trainer's batches have neither labels nor {self.column}: {order}", stacklevel=2)
        for what, here, there in said:
            if len(differ := np.flatnonzero(here != there)):
                at, row = differ[0], positions[differ[0]]
                mine, known = f"{what} {here[at].item()!r}", f"{self.column} {self.names[row].item()!r}"
                raise TrainingError(
                    f"row {row} of the Trainer's dataset has {mine}, and row {row} of the recorder's, {known}, has "
                    f"{there[at].item()!r}: give the recorder the dataset that the Trainer has, in the same order, and "
                    "a data collator that keeps the order of the rows"
                )
        batch[self.key] = torch.from_numpy(positions)
        return batch


def _array(values: Any) -> np.ndarray | None:
    """Convert a tensor, an array or a number to an array; None for anything else."""
    if torch.is_tensor(values):
        return values.detach().cpu().numpy()
    return np.asarray(values) if isinstance(values, np.ndarray | np.generic | int | float | str) else None


def _values(rows: Sequence[Any], name: str) -> np.ndarray | None:
    """The column of this name; None if a row does not have it, or has more than one value in it."""
    cells = [_array(row.get(name)) if isinstance(row, Mapping) else None for row in rows]
    return np.array(cells) if all(cell is not None and cell.ndim == 0 for cell in cells) else None


def _whole(values: np.ndarray | None) -> bool:
    """True if the values are whole numbers, as class labels are."""
    return values is not None and values.dtype.kind in "iufb" and not (values % 1).any()


def iterated(dataset: Any) -> bool:
    """True if a dataset can only be iterated, so that its rows have no positions."""
    return isinstance(dataset, IterableDataset) or not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"))


def column_of(dataset: Any, *names: str) -> np.ndarray:
    """The values of the first of these columns that the dataset has, regardless of its format or transform."""
    if iterated(dataset):
        raise TrainingError(f"{ITERATED}: give the recorder one that is read whole, without streaming")
    if hasattr(dataset, "with_format"):
        dataset = dataset.with_format(None)
    by_column = isinstance(dataset, Mapping) or hasattr(dataset, "columns") or hasattr(dataset, "column_names")
    if by_column:
        known = list(getattr(dataset, "column_names", getattr(dataset, "columns", dataset)))
    else:
        dataset = [dataset[at] for at in range(len(dataset))]
        known = list(dataset[0]) if dataset and isinstance(dataset[0], Mapping) else []
    found = next((name for name in names if name in known), None)
    if found is None:
        has = ", ".join(map(str, known)) or "none"
        raise TrainingError(f"the dataset has no column {' or '.join(names)}; it has {has}")
    return np.array(list(dataset[found][:]) if by_column else [row[found] for row in dataset])


# ---------------------------------------------------------------- recorder


FILE = "nli_logits.npz"  # in each of the Trainer's checkpoints
LABELS = ("label", "labels", "gold")
GIVEN = ("labels", "label", "label_ids")  # names that the training labels may have in a batch or its rows
NUMBERS = itertools.count()  # a key for each recorder: two may record one training, or one may have been interrupted


class RecordLogits(TrainerCallback):
    """Record the logits of every row in every epoch; pass it to `Trainer(callbacks=[...])`.

    After the training, on every process: `logits` (E, N, C) float32, only epochs in which every row was seen; `labels`
    (N,) int64; `uid` (N,), the values of the column in the order of their first appearance; `left_out`, a text.

    Attributes
    ----------
    dataset
        the Trainer's training data, in the same order: a `datasets.Dataset`, a DataFrame, a `Corpus.table`, or a
        sequence of dicts. Only its columns `column` and `label` are read, so it may be a version with columns that
        tokenization removed from the Trainer's dataset
    column
        the column that identifies a row, text or whole numbers. Rows with the same value are one row: its logits are
        those of its first batch in the epoch
    label
        the column of gold labels, whole numbers from 0; "": "label", "labels" or "gold"
    capture
        "train" for the logits of the training pass, with dropout on and before the batch's update (cartography), at
        almost no cost; "eval" for a pass over the rows after each epoch with dropout off (WANLI, test-set difficulty),
        which costs about a third of the training
    checkpoints
        the folder of the Trainer's checkpoints, if that is not its `output_dir`. Each checkpoint contains the
        recordings so far, and a resumed training continues from there, on any number of processes

    Raises
    ------
    TrainingError
        At the start, if the dataset has another length, can only be iterated, or has rows in no batch; at the first
        batch with labels or names that do not match its rows, which means a different order; after the first step, if
        the loss keeps the positions from the model. If batches have neither labels nor names, it warns.

    Notes
    -----
    *Departures*: if several processes repeat rows to fill their last batch, the first logits count. Models compiled by
    `torch.compile` have not been tested.
    """

    def __init__(
        self, dataset: Any, column: str, *, label: str = "", capture: str = "train", checkpoints: str | Path = ""
    ):
        if capture not in ("train", "eval"):
            raise TrainingError(f'capture="{capture}" is neither "train" nor "eval"')
        self.column, self.capture, self.checkpoints = column, capture, checkpoints
        self.key = f"nli_positions_{next(NUMBERS)}"  # name of the positions of its rows in a batch
        names = (label,) if label else LABELS
        values, gold, self._labels = column_of(dataset, column), column_of(dataset, *names), (*GIVEN, *names)
        if gold.dtype.kind not in "iu" or (gold < 0).any():
            raise TrainingError("labels are whole numbers from 0: leave rows without a gold label (-1) out first")
        if values.ndim != 1 or values.dtype.kind not in "iuUS":
            held = f"{values.dtype} of shape {values.shape}"
            raise TrainingError(f"the column that names a row holds {held}: text or whole numbers")
        self._row, uid = pd.factorize(values)  # (positions,): the row at each position
        self.uid = np.asarray(uid, values.dtype)  # (N,)
        self._gold = gold.astype(np.int64)
        self.labels = np.zeros(len(self.uid), np.int64)
        self.labels[self._row] = self._gold
        for name in values[self.labels[self._row] != self._gold].tolist():
            raise TrainingError(f"{column} {name!r} names rows with different labels: use a unique column")
        self._hooks: list[Any] = []
        self._local = threading.local()  # one forward pass per thread under nn.DataParallel
        self._clear()

    def _clear(self) -> None:
        self._epochs: list[np.ndarray] = []  # (N, C) each
        self._now: np.ndarray | None = None  # (N, C) of the current epoch
        self._parts: list[tuple[torch.Tensor, ...]] = []  # of this process, since the last gathering

    # ---------------------------------------------------------------- results

    @property
    def logits(self) -> np.ndarray:
        """Logits (E, N, C) float32 of every epoch in which every row was seen."""
        whole = [epoch for epoch in self._epochs if not np.isnan(epoch).all(axis=1).any()]
        if not whole:
            raise TrainingError(f"no epoch is complete. {self.left_out}".strip())
        return np.stack(whole)

    @property
    def left_out(self) -> str:
        """A text that names the epochs missing from `logits`, with the reason; "" if there are none."""
        missing = [int(np.isnan(epoch).all(axis=1).sum()) for epoch in self._epochs]
        total = len(self.uid)
        told = [f"epoch {at}: {rows:,} of {total:,} rows not seen" for at, rows in enumerate(missing) if rows]
        return f"Left out: {', '.join(told)}." if told else ""

    def save(self, path: str | Path) -> None:
        """Write logits, labels, uid and capture to an npz file, on the first process only.

        `nli_tools.read_dynamics` reads it without torch.
        """
        if PartialState().is_main_process:
            _write(Path(path), logits=self.logits, labels=self.labels, uid=self.uid, capture=self.capture)

    # ---------------------------------------------------------------- the Trainer's events

    def on_train_begin(self, args, state, control, model=None, train_dataloader=None, **_):
        loader = getattr(train_dataloader, "base_dataloader", train_dataloader)
        dataset = loader.dataset
        if iterated(dataset):
            raise TrainingError(f"{ITERATED}: give the Trainer one that is read whole, without streaming")
        if len(dataset) != len(self._row):
            rows = f"trains on {len(dataset):,} rows and the recorder was given {len(self._row):,}"
            raise TrainingError(f"the Trainer {rows}: give it the dataset that the Trainer has")
        sampler = getattr(loader.batch_sampler, "batch_sampler", loader.batch_sampler)
        if self.capture == "train" and getattr(sampler, "drop_last", False):
            raise TrainingError("dataloader_drop_last=True leaves rows out of every epoch: set it to False")
        self._release()
        self._clear()
        if state.global_step:
            self._load(self._checkpoint(args, state))
        # The loader is the Trainer's; its class allows a new collate_fn, but no new dataset after construction.
        object.__setattr__(loader, "dataset", Numbered(dataset, range(len(dataset))))
        names = self.uid[self._row]
        loader.collate_fn = Collate(loader.collate_fn, self.key, self.column, names, self._labels, self._gold)
        self._loader, self._batch_size = loader, args.per_device_eval_batch_size
        before = model.register_forward_pre_hook(self._before, with_kwargs=True)
        self._hooks = [before, model.register_forward_hook(self._after)]

    def on_epoch_begin(self, args, state, control, model=None, **_):
        # A checkpoint at an epoch's last step is written before the event for the end of the epoch.
        for _ in range(len(self._epochs), int(state.epoch or 0)):
            self._close(model)

    def on_step_end(self, args, state, control, **_):
        if self.capture == "train" and self._now is None and not self._parts:
            cure = 'let it give the whole batch, model(**inputs), or record with capture="eval"'
            lost = f"without {self.key}, which says which rows they are of"
            raise TrainingError(f"the loss gives the model chosen arguments, {lost}: {cure}")

    def on_epoch_end(self, args, state, control, model=None, **_):
        self._close(model)

    def on_save(self, args, state, control, **_):
        self._gather()
        if state.is_world_process_zero:
            now = np.empty((0, 0), np.float32) if self._now is None else self._now
            epochs = np.stack(self._epochs) if self._epochs else np.empty((0, *now.shape), np.float32)
            _write(self._checkpoint(args, state), epochs=epochs, now=now, uid=self.uid)

    def on_train_end(self, args, state, control, **_):
        self._release()

    # ---------------------------------------------------------------- one forward pass

    def _before(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        """Remove the positions from the model's inputs."""
        positions = kwargs.pop(self.key, None)
        wanted = positions is not None and module.training == (self.capture == "train")
        self._local.batch = (positions, kwargs.get("labels") is not None) if wanted else None

    def _after(self, module: nn.Module, args: tuple, output: Any) -> None:
        """Keep the logits on their device, so that no step waits for it."""
        if self._local.batch is None:
            return
        positions, labelled = self._local.batch
        if isinstance(output, tuple):
            logits = output[int(labelled)]  # after the loss
        else:
            logits = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
        if logits is None:
            raise TrainingError(f"the model's output has no logits: it is a {type(output).__name__}")
        if logits.ndim != 2 or len(logits) != len(positions):
            shapes = f"shape {tuple(logits.shape)} for {len(positions)} rows"
            raise TrainingError(f"the model's logits have {shapes}: (rows, classes) is needed")
        self._parts.append((positions, logits.detach().float().clone()))

    # ---------------------------------------------------------------- one epoch

    def _close(self, model: nn.Module) -> None:
        """End the current epoch and begin another."""
        if self.capture == "eval":
            self._evaluate(model)
        self._gather()
        if self._now is None:  # no rows seen: early stopping before the first step
            return
        self._epochs.append(self._now)
        self._now = None

    @torch.inference_mode()
    def _evaluate(self, model: nn.Module) -> None:
        """Run the model on this process's share of the positions, with dropout off."""
        training, state = model.training, PartialState()
        share = np.arange(state.process_index, len(self._row), state.num_processes)
        device = next(model.parameters()).device
        model.eval()
        for start in range(0, len(share), self._batch_size):
            rows = share[start : start + self._batch_size].tolist()
            batch = self._loader.collate_fn(self._loader.dataset.__getitems__(rows))
            model(**{name: value.to(device) if torch.is_tensor(value) else value for name, value in batch.items()})
        model.train(training)

    def _gather(self) -> None:
        """Collect what the processes recorded since the last gathering; the first logits of a row in the epoch
        count."""
        told = gather_object([(step, *(each.cpu().numpy() for each in part)) for step, part in enumerate(self._parts)])
        self._parts = []
        if not told:
            return
        # processes in turn within a step
        _, positions, logits = zip(*sorted(told, key=itemgetter(0)), strict=True)
        rows, first = np.unique(self._row[np.concatenate(positions)], return_index=True)
        if self._now is None:
            self._now = np.full((len(self.uid), logits[0].shape[1]), np.nan, np.float32)
        new = np.isnan(self._now[rows]).all(axis=1)
        self._now[rows[new]] = np.concatenate(logits)[first[new]]

    # ---------------------------------------------------------------- files

    def _checkpoint(self, args: Any, state: Any) -> Path:
        return Path(self.checkpoints or args.output_dir, f"checkpoint-{state.global_step}", FILE)

    def _load(self, path: Path) -> None:
        cure = "resume from an earlier checkpoint, or train from the start"
        if not path.is_file():
            raise TrainingError(f"{path} is missing, so the epochs before it are not recorded: {cure}")
        with reading(path, cure), np.load(path) as stored:
            stored = dict(stored)
        if not np.array_equal(stored["uid"], self.uid):
            raise TrainingError(f"{path}: the rows recorded there have other values of {self.column}: {cure}")
        self._epochs = list(stored["epochs"])
        self._now = stored["now"] if stored["now"].size else None

    def _release(self) -> None:
        for hook in self._hooks:
            hook.remove()


def _write(path: Path, **arrays: Any) -> None:
    with atomic(path) as draft, draft.open("wb") as file:  # an open file, because numpy may extend a file's name
        np.savez(file, **arrays)
