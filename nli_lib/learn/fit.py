"""fit: one training run, its training dynamics recorded, resumable after a kill at any moment.

run = fit(spec, corpus)          # trains, or returns at once when the run is there
run.logits                       # (E, N, C), memory-mapped
"""

import math
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from nli_lib.corpora.corpus import Corpus
from nli_lib.csv_files import write_csv
from nli_lib.learn.encode import Tokens
from nli_lib.learn.loop import Loop, TrainingError
from nli_lib.learn.objectives import Classify, Objective
from nli_lib.spec import RunSpec
from nli_lib.store import RunFolder, atomic, device, open_run

CHECK_EVERY = {"cpu": 1, "cuda": 50}  # steps between looks at the loss; on a GPU a look waits for the device


@dataclass(frozen=True)
class Run:
    """A finished run: N examples trained on, E epochs, C classes.

    logits  (E, N, C) float32, row i belongs to labels[i]; taken as `spec.capture` says. E is less than
            `spec.epochs` where `spec.patience` ended the training, and 1 where `spec.record` is "last"
    labels  (N,) int64 gold labels the model was trained on
    log     one row an epoch: loss and accuracy of the training pass, seconds, useful tokens a second
    model   folder of the trained model and tokenizer, in transformers' format
    models  the same of every epoch, where `spec.models` is "all"; the last is `model`
    """

    spec: RunSpec
    folder: Path

    @property
    def store(self) -> RunFolder:
        return RunFolder(self.folder)

    @property
    def logits(self) -> np.ndarray:
        logits = self.store.array("logits")
        return logits if self.spec.patience is None else logits[: len(self.store.log)]

    @property
    def labels(self) -> np.ndarray:
        return np.asarray(self.store.array("labels"))

    @property
    def log(self) -> pd.DataFrame:
        return pd.DataFrame(self.store.log)

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def models(self) -> list[Path]:
        earlier = range(self.spec.epochs - 1) if self.spec.models == "all" else ()
        return [*(self.folder / "models" / f"epoch-{epoch}" for epoch in earlier), self.model]


def fit(
    spec: RunSpec,
    corpus: Corpus,
    keep: np.ndarray | None = None,
    *,
    objective: Objective | None = None,
    tokens: Tokens | None = None,
    validation: Corpus | None = None,
) -> Run:
    """Train the encoder `spec.model` on `corpus` and record the logits (E, N, C) of every epoch.

    keep        boolean mask (N_all,) or integer positions; only those rows are trained on, and N counts them. Name the
                selection in `spec.subset`, which is part of the run's identity
    objective   what is learnt, the one that `spec.objective` names; `Classify` by default
    tokens      of the whole `corpus` where they are at hand (`encode.encode`), so that runs on parts of it share them
    validation  the examples on which early stopping watches `spec.watch`: training ends after `spec.patience` epochs
                without a better value, and the weights of the best epoch are the run's model

    The run lives in `spec.folder`. An unfinished one continues at its first epoch that is not done and ends, on one
    CPU, with the same bits as an uninterrupted one; a finished one is returned at once. Raises `StoreError`, naming the
    field, for one made from other settings, rows, labels or class names, and naming the file for a damaged one;
    `TrainingError` for a loss that is not finite; `ValueError` for arguments that do not fit each other.

    Recipe (WANLI, W1 and W23): AdamW (.9, .999, 1e-8), linear warm-up and decay, weight decay on all but biases and
    normalisation layers, gradient norm clipped, mean cross-entropy of each batch, dropout as the model's config says.
    `capture="eval"` records an evaluation pass after each epoch (WANLI and the difficulty paper), `"train"` the logits
    of the training pass itself, each before its own batch's update and with dropout on (cartography).

    Departures: batches hold rows of nearly equal length (see `encode.shuffled_batches`); under bf16 the logits
    themselves are computed in fp32, and a CPU without bf16 units computes everything in fp32; see also `learn.fast`
    and `learn.optimizer`.
    """
    objective = objective or Classify()
    if objective.name != spec.objective:
        raise ValueError(f"the spec asks for the objective {spec.objective!r}, and {objective.name!r} is given")
    if (spec.patience is None) != (validation is None):
        raise ValueError("early stopping needs both, patience in the spec and the examples validation=")
    if spec.models == "all" and spec.patience is not None:
        raise ValueError("early stopping keeps the best epoch's model: models='all' has no meaning with patience")
    if spec.record == "last" and spec.patience is not None:
        raise ValueError("early stopping may end at any epoch: record='last' has no meaning with patience")
    if validation is not None and validation.split != spec.validation:
        raise ValueError(f"the spec watches the split {spec.validation!r}, and {validation.split!r} is given")
    if keep is not None:
        corpus, tokens = corpus[keep], None if tokens is None else tokens[keep]
    if len(corpus) == 0:
        raise ValueError(f"no rows of {corpus.name}/{corpus.split} to train on: the selection keeps none")
    shape = (spec.epochs if spec.record == "every" else 1, len(corpus), len(corpus.classes))
    arrays = {"logits": (shape, "float32"), "labels": (shape[1:2], "int64")}
    settings = {**spec.model_dump(), "rows": len(corpus), "corpus_digest": corpus.digest}
    if validation is not None:
        settings["validation_digest"] = validation.digest
    with open_run(spec.folder, settings, arrays, steps=spec.epochs) as folder:
        if not folder.done.all():
            _train(spec, corpus, folder, tokens=tokens, objective=objective, validation=validation)
        elif not np.array_equal(folder.array("labels"), corpus.labels):
            folder.refuse("labels.npy is not what the corpus says")
        elif (named := folder.read_json("about.json").get("classes")) != list(corpus.classes):
            folder.refuse(f"the run was trained on the classes {named}, and the corpus has {list(corpus.classes)}")
    return Run(spec, spec.folder)


def _train(spec: RunSpec, corpus: Corpus, folder: RunFolder, **parts: object) -> None:
    labels = folder.array("labels", "r+")
    labels[:] = corpus.labels
    labels.flush()
    write_csv(folder.path / "rows.csv", pd.DataFrame({"uid": corpus.uid, "label": corpus.labels}))
    loop = Loop(spec, corpus, **parts)
    first = _resume(loop, folder)
    if first == 0:
        print(f"{spec.id}: {len(corpus):,} examples, {loop.lengths.sum():,} tokens, {loop.device}, {spec.precision}")
        print(f"{'epoch':>5} {'loss':>8} {'accuracy':>9} {'seconds':>8} {'tokens/s':>9}")
    for epoch in range(first, spec.epochs):
        row, passing = train_epoch(loop, corpus, epoch, loop.start_epoch(epoch))
        if spec.record == "every" or epoch + 1 == spec.epochs:
            logits = folder.array("logits", "r+")
            at = epoch if spec.record == "every" else 0
            logits[at] = passing if spec.capture == "train" else _evaluated(loop, corpus, epoch)
            logits.flush()
        last = loop.stops_after(row) or epoch + 1 == spec.epochs
        folder.add_log(row)
        print("{epoch:5d} {loss:8.4f} {accuracy:9.4f} {seconds:8.1f} {tokens_per_second:9,.0f}".format(**row))
        if last:
            folder.write_about(
                corpus={"name": corpus.name, "split": corpus.split, "source": corpus.source, "digest": corpus.digest},
                classes=list(corpus.classes),
                device=device(),
                tokens=int(loop.lengths.sum()),
                new_parameters=loop.new,
                notes=loop.notes,
                seconds=round(sum(each["seconds"] for each in folder.log), 2),
            )
            _save(loop, loop.finish(), folder.path / "model")
        else:
            if spec.models == "all":
                _save(loop, loop.snapshot(), Run(spec, folder.path).models[epoch])
            with atomic(folder.checkpoint) as draft, draft.open("wb") as file:
                torch.save({"epoch": epoch + 1, **loop.state_dict()}, file)
        # The bit comes last: an epoch is done only when everything needed to go on from it is on disk.
        folder.mark(spec.epochs if last else epoch + 1)
        if last:
            break
    folder.checkpoint.unlink(missing_ok=True)


def _evaluated(loop: Loop, corpus: Corpus, epoch: int) -> np.ndarray:
    """What is recorded (N, C) after `epoch` with dropout off; `TrainingError` where the loss of that pass diverged."""
    loss, recorded = loop.evaluate()
    if not math.isfinite(loss):
        rows = np.flatnonzero(~np.isfinite(recorded.numpy()).all(axis=1))[:10]
        raise _diverged(loss, f"in the evaluation pass after epoch {epoch}", corpus, rows)
    return recorded.numpy()


def _save(loop: Loop, model: torch.nn.Module, path: Path) -> None:
    with atomic(path) as draft:
        model.save_pretrained(draft)
        loop.tokenizer.save_pretrained(draft)


def _resume(loop: Loop, folder: RunFolder) -> int:
    """Load the last checkpoint; returns the first epoch to train."""
    if not folder.checkpoint.exists():
        if folder.done.any():
            folder.refuse(f"epochs are done, but {folder.checkpoint.name} is missing")
        return 0
    with folder.reading(folder.checkpoint.name):
        state = torch.load(folder.checkpoint, map_location=loop.device, weights_only=True)
        loop.load_state_dict(state)
    if state["epoch"] - folder.done.sum() not in (0, 1):  # 1: killed between the checkpoint and the bit
        folder.refuse(f"{folder.checkpoint.name} does not belong to the epochs that are done")
    folder.mark(state["epoch"])  # killed there a second time, the bits would be two behind
    print(f"{folder.path.name}: continues after epoch {state['epoch'] - 1}")
    return state["epoch"]


def train_epoch(loop: Loop, corpus: Corpus, epoch: int, batches: list[np.ndarray]) -> tuple[dict, np.ndarray]:
    """Train on the `batches` of rows of one epoch.

    Returns the epoch's log row, and the logits (N, C) of the training pass in the corpus's order, NaN where no batch
    went.
    """
    losses = torch.empty(len(batches), device=loop.device)
    passing = torch.full((len(corpus), len(corpus.classes)), torch.nan, device=loop.device)
    started = time.perf_counter()
    watched = sys.stderr.isatty() or "JPY_SESSION_NAME" in os.environ  # by somebody, not executed by a runner
    bar = tqdm(batches, desc=f"epoch {epoch}", unit="batch", mininterval=1, leave=False, disable=not watched)
    for number, rows in enumerate(bar):
        losses[number], passing[rows] = loop.step(rows)
        if number % CHECK_EVERY[loop.device.type] == 0 or number + 1 == len(batches):
            _check(losses[: number + 1], batches, corpus, epoch)
    seconds = time.perf_counter() - started
    # Each loss is taken before its own update; that of the last batch once more is what shows whether the last update
    # left weights that are worth keeping.
    if not math.isfinite(loss := float(loop.loss(batches[-1]))):
        raise _diverged(loss, f"after the last update of epoch {epoch}", corpus, batches[-1])
    passing, seen = passing.cpu().numpy(), np.concatenate(batches)
    row = {
        "epoch": epoch,
        "loss": round(float(losses.mean()), 6),
        "accuracy": round(float((passing[seen].argmax(1) == corpus.labels[seen]).mean()), 6),
        "seconds": round(seconds, 3),
        "tokens_per_second": round(float(loop.lengths[seen].sum() / seconds), 1),
    }
    return row, passing


def _check(losses: torch.Tensor, batches: list[np.ndarray], corpus: Corpus, epoch: int) -> None:
    if math.isfinite(float(losses.sum())):
        return
    step = int(torch.nonzero(~torch.isfinite(losses))[0])
    raise _diverged(float(losses[step]), f"at epoch {epoch}, step {step}", corpus, batches[step])


def _diverged(loss: float, where: str, corpus: Corpus, rows: np.ndarray) -> TrainingError:
    names = ", ".join(map(str, corpus.uid[rows]))
    return TrainingError(
        f"the loss is {loss} {where}, on the examples {names}. The epochs before "
        "are kept. Try a smaller learning_rate, precision='fp32', or look at these examples."
    )
