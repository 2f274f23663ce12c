"""RecordLogits: training dynamics of a training that Hugging Face's `Trainer` does, recorded by a callback.

    recorder = RecordLogits(train_dataset, column="uid")
    Trainer(..., train_dataset=train_dataset, callbacks=[recorder]).train()
    recorder.logits, recorder.labels, recorder.uid      # (E, N, C), (N,), (N,): what every measure takes

A batch carries the positions of its rows, so shuffling, grouping by length, padding, workers, several processes and
resumption cannot mix rows up. The model never sees the positions, and no random number is drawn: the training is the
same with and without the callback.
"""

import itertools
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import distributed, nn
from transformers import TrainerCallback

from nli_lib.learn.numbered import ITERATED, Collate, Numbered, RecorderError, column_of, distinct, iterated
from nli_lib.store import atomic, reading

FILE = "nli_logits.npz"  # in each of the Trainer's checkpoints
LABELS = ("label", "labels", "gold")
GIVEN = ("labels", "label", "label_ids")  # what a batch or its rows may call the labels that are trained on
NUMBERS = itertools.count()  # a key for each recorder: two may record one training, one may have been interrupted


class RecordLogits(TrainerCallback):
    """Record the logits of every row in every epoch; give it to `Trainer(callbacks=[...])`.

    dataset      what the Trainer trains on, in the same order: a `datasets.Dataset`, a DataFrame, a `Corpus.table`, or
                 a sequence of dicts. Only its columns `column` and `label` are read. It may still hold columns that the
                 Trainer's own dataset has lost to a tokenizer
    column       the column that names a row, text or whole numbers. Rows of the same value are one row: its logits are
                 those of its first batch in the epoch
    label        the column of gold labels, whole numbers from 0; None: "label", "labels" or "gold"
    capture      "train" for the logits of the training pass itself, with dropout on and before the batch's update
                 (cartography), at next to no cost; "eval" for a pass over the rows after each epoch with dropout off
                 (WANLI, test-set difficulty), which costs about a third of the training
    checkpoints  the folder in which the Trainer's checkpoints lie, where that is not its `output_dir`. Each holds what
                 was recorded up to it, and a resumed training goes on from there, on any number of processes

    After the training, on every process: `logits` (E, N, C) float32, only epochs in which every row was seen; `labels`
    (N,) int64; `uid` (N,), the values of the column in the order of their first appearance; `left_out`, in words.

    Raises `RecorderError` at the start for a dataset of another length, one that can only be iterated, or batches that
    leave rows out; at the first batch whose labels or names are not those of its rows, which means another order, and
    after the first step of a loss that keeps the positions from the model. Where batches have neither labels nor names
    it warns.

    *Departures*: of the rows that several processes repeat to fill their last batch the first logits count. Models
    that `torch.compile` has compiled have not been tried.
    """

    def __init__(
        self,
        dataset: Any,
        column: str,
        *,
        label: str | None = None,
        capture: Literal["train", "eval"] = "train",
        checkpoints: str | Path | None = None,
    ):
        if capture not in ("train", "eval"):
            raise RecorderError(f'capture="{capture}" is neither "train" nor "eval"')
        self.column, self.capture, self.checkpoints = column, capture, checkpoints
        self.key = f"nli_positions_{next(NUMBERS)}"  # under which a batch carries the positions of its rows
        values, gold = column_of(dataset, column), column_of(dataset, *([label] if label else LABELS))
        self._labels = (*GIVEN, *([label] if label else LABELS))
        if gold.dtype.kind not in "iu" or (gold < 0).any():
            raise RecorderError("labels are whole numbers from 0: leave rows without a gold label (-1) out first")
        self.uid, self._row = distinct(values)  # (N,), and (positions,): which row stands at a position
        self._gold = gold.astype(np.int64)
        self.labels = np.zeros(len(self.uid), np.int64)
        self.labels[self._row] = self._gold
        clash = np.flatnonzero(self.labels[self._row] != self._gold)
        if clash.size:
            raise RecorderError(
                f"{column} {values[clash[0]].item()!r} names rows with different labels: use a unique column"
            )
        self._hooks: list[Any] = []
        self._local = threading.local()  # one forward pass a thread under nn.DataParallel
        self._clear()

    def _clear(self) -> None:
        self._epochs: list[np.ndarray] = []  # (N, C) each
        self._now: np.ndarray | None = None  # (N, C) of the epoch under way
        self._seen = np.zeros(len(self.uid), bool)
        self._parts: list[tuple[torch.Tensor, ...]] = []  # of this process, since the last look

    # ---------------------------------------------------------------- what was recorded

    @property
    def logits(self) -> np.ndarray:
        """(E, N, C) float32: every epoch in which every row was seen."""
        whole = [epoch for epoch in self._epochs if not np.isnan(epoch).all(axis=1).any()]
        if not whole:
            raise RecorderError(f"no epoch is complete. {self.left_out}".strip())
        return np.stack(whole)

    @property
    def left_out(self) -> str:
        """Which epochs are not in `logits`, and why; "" where all are."""
        missing = {at: int(np.isnan(epoch).all(axis=1).sum()) for at, epoch in enumerate(self._epochs)}
        missing = {at: rows for at, rows in missing.items() if rows}
        told = ", ".join(f"epoch {at}: {rows:,} of {len(self.uid):,} rows not seen" for at, rows in missing.items())
        return f"Left out: {told}." if missing else ""

    def save(self, path: str | Path) -> None:
        """Write logits, labels, uid and capture to an npz file, on the first process alone.

        `nli_lib.integrations.read_dynamics` reads it where there is no torch.
        """
        if _rank() == 0:
            _write(Path(path), logits=self.logits, labels=self.labels, uid=self.uid, capture=self.capture)

    # ---------------------------------------------------------------- the Trainer's events

    def on_train_begin(self, args, state, control, model=None, train_dataloader=None, **_):
        loader = getattr(train_dataloader, "base_dataloader", train_dataloader)
        self._check(loader)
        self._release()
        self._clear()
        if state.global_step:
            self._load(self._checkpoint(args, state))
        # The loader is the Trainer's own; its class allows a new collate_fn, and no new dataset after construction.
        object.__setattr__(loader, "dataset", Numbered(loader.dataset))
        names = self.uid[self._row]
        loader.collate_fn = Collate(loader.collate_fn, self.key, self.column, names, self._labels, self._gold)
        self._loader, self._batch_size = loader, args.per_device_eval_batch_size
        self._hooks = [
            model.register_forward_pre_hook(self._before, with_kwargs=True),
            model.register_forward_hook(self._after),
        ]

    def on_epoch_begin(self, args, state, control, model=None, **_):
        # A checkpoint of an epoch's last step is written before the epoch is told to have ended.
        for _ in range(len(self._epochs), int(state.epoch or 0)):
            self._close(model)

    def on_step_end(self, args, state, control, **_):
        if self.capture == "train" and self._now is None and not self._parts:
            raise RecorderError(
                f"the loss gives the model chosen arguments, without {self.key}, which says which rows they are of: "
                'let it give the whole batch, model(**inputs), or record with capture="eval"'
            )

    def on_epoch_end(self, args, state, control, model=None, **_):
        self._close(model)

    def on_save(self, args, state, control, **_):
        self._gather()
        if _rank() == 0:
            now = np.empty((0, 0), np.float32) if self._now is None else self._now
            epochs = np.stack(self._epochs) if self._epochs else np.empty((0, *now.shape), np.float32)
            _write(self._checkpoint(args, state), epochs=epochs, now=now, seen=self._seen, uid=self.uid)

    def on_train_end(self, args, state, control, **_):
        self._release()

    # ---------------------------------------------------------------- one forward pass

    def _before(self, module: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """Take the positions out of what the model is given."""
        self._local.batch = None
        if self.key not in kwargs:
            return None
        kwargs = dict(kwargs)
        positions = kwargs.pop(self.key)
        if module.training == (self.capture == "train"):
            self._local.batch = positions, kwargs.get("labels") is not None
        return args, kwargs

    def _after(self, module: nn.Module, args: tuple, output: Any) -> None:
        """Keep the logits where they were computed: no step waits for a device."""
        if (batch := getattr(self._local, "batch", None)) is None:
            return
        self._local.batch = None
        positions, labelled = batch
        logits = _logits(output, labelled)
        if logits.ndim != 2 or len(logits) != len(positions):
            shape = tuple(logits.shape)
            raise RecorderError(
                f"the model's logits have shape {shape} for {len(positions)} rows: (rows, classes) is needed"
            )
        self._parts.append((positions, logits.detach().float().clone()))

    # ---------------------------------------------------------------- one epoch

    def _close(self, model: nn.Module) -> None:
        """End the epoch under way and begin another."""
        if self.capture == "eval":
            self._evaluate(model)
        self._gather()
        if self._now is None:  # nothing was seen: early stopping before the first step
            return
        self._epochs.append(self._now)
        self._now, self._seen = None, np.zeros_like(self._seen)

    @torch.inference_mode()
    def _evaluate(self, model: nn.Module) -> None:
        """Show the model this process's share of the positions, with dropout off."""
        training, share = model.training, np.arange(_rank(), len(self._row), _world())
        device = next(model.parameters()).device
        model.eval()
        for start in range(0, len(share), self._batch_size):
            rows = share[start : start + self._batch_size].tolist()
            batch = self._loader.collate_fn(self._loader.dataset.__getitems__(rows))
            model(**{name: value.to(device) if torch.is_tensor(value) else value for name, value in batch.items()})
        model.train(training)

    def _gather(self) -> None:
        """Bring together what the processes saw since the last look; the first logits of a row in the epoch count."""
        told: list[Any] = [None]
        if self._parts:
            steps = np.repeat(np.arange(len(self._parts)), [len(part[0]) for part in self._parts])
            columns = zip(*self._parts, strict=True)
            told = [[*(torch.cat([part.cpu() for part in each]).numpy() for each in columns), steps]]
            self._parts = []
        if _world() > 1:
            everybody: list[Any] = [None] * _world()
            distributed.all_gather_object(everybody, told[0])
            told = everybody
        told = [each for each in told if each is not None]
        if not told:
            return
        positions, logits, steps = map(np.concatenate, zip(*told, strict=True))
        order = np.argsort(steps, kind="stable")  # processes in turn within a step
        rows, first = np.unique(self._row[positions[order]], return_index=True)
        if self._now is None:
            self._now = np.full((len(self.uid), logits.shape[1]), np.nan, np.float32)
        new = ~self._seen[rows]
        self._now[rows[new]] = logits[order[first[new]]]
        self._seen[rows] = True

    # ---------------------------------------------------------------- around it

    def _check(self, loader: Any) -> None:
        dataset = loader.dataset
        if iterated(dataset):
            raise RecorderError(f"{ITERATED}: give the Trainer one that is read whole, without streaming")
        if len(dataset) != len(self._row):
            raise RecorderError(
                f"the Trainer trains on {len(dataset):,} rows and the recorder was given {len(self._row):,}: "
                "give it the dataset that the Trainer has"
            )
        sampler = getattr(loader.batch_sampler, "batch_sampler", loader.batch_sampler)
        if self.capture == "train" and getattr(sampler, "drop_last", False):
            raise RecorderError("dataloader_drop_last=True leaves rows out of every epoch: set it to False")

    def _checkpoint(self, args: Any, state: Any) -> Path:
        return Path(self.checkpoints or args.output_dir, f"checkpoint-{state.global_step}", FILE)

    def _load(self, path: Path) -> None:
        cure = "resume from an earlier checkpoint, or train from the start"
        if not path.is_file():
            raise RecorderError(f"{path} is missing, so the epochs before it are not recorded: {cure}")
        with reading(path, cure), np.load(path) as stored:
            stored = dict(stored)
        if not np.array_equal(stored["uid"], self.uid):
            raise RecorderError(f"{path}: the rows recorded there have other values of {self.column}: {cure}")
        self._epochs, self._seen = list(stored["epochs"]), stored["seen"]
        self._now = stored["now"] if stored["now"].size else None

    def _release(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []


def _logits(output: Any, labelled: bool) -> torch.Tensor:
    if isinstance(output, tuple):
        return output[int(labelled)]
    logits = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
    if logits is None:
        raise RecorderError(f"the model's output has no logits: it is a {type(output).__name__}")
    return logits


def _write(path: Path, **arrays: Any) -> None:
    with atomic(path) as draft, draft.open("wb") as file:  # a file: for a name, numpy may add to it
        np.savez(file, **arrays)


def _world() -> int:
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def _rank() -> int:
    return distributed.get_rank() if _world() > 1 else 0
