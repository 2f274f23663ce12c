"""One training run with recorded dynamics, resumable after a kill at any moment::

    run = fit(spec, corpus)  # trains, or returns at once if the run is finished
    run.logits               # (E, N, C), memory-mapped

An objective defines the contents of a batch, the heads of the model and the loss. `Classify` is the plain one; others
have the same three methods::

    product of experts     `arrays` adds the hypothesis alone as more `Tokens`; `model` adds a bias head to the
                           encoder; `loss` sends both texts through the one encoder, multiplies the two predictions and
                           records only the logits of the main head
    debiased focal loss    the same arrays and heads; `loss` weights each example by what the bias head knows
    causal language model  `arrays` makes premise, label and hypothesis one text, with columns that say what a token is;
                           `model` loads a language model; `loss` sums the likelihood of some tokens and the
                           unlikelihood of others, those under a wrong label, and records a score for each class

An objective has no state except its parameters; `name` contains them, because it is part of a run's identity
(`RunSpec.objective`).

`Loop` is independent of the objective, and of the parts that make it fast: batches of nearly equal length, cut from
tokens encoded once (`learn.encode`); cheaper layers on a CPU (`learn.fast`); and `FlatAdamW`, AdamW on two flat fp32
masters of all weights, one with weight decay and one without. In bf16 the model holds the weights of linear layers as
bf16 copies of their masters, made once in each step; autocast would cast each weight in every step and cast its
gradient back. Both give the same numbers: a linear layer's gradient is computed in bf16 either way, and the masters,
both Adam moments and the norm used for clipping are fp32.
"""

import copy
import math
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from tqdm.auto import tqdm
from transformers.trainer_pt_utils import get_parameter_names

from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import TrainingError
from nli_lib.learn import fast
from nli_lib.learn.encode import Tokens, encode, shuffled_batches, sorted_batches
from nli_lib.learn.model import exact_output, load_classifier, load_tokenizer, pick_device, takes_bf16
from nli_lib.store import RunFolder, RunSpec, atomic, device, open_run
from nli_lib.tables import write_csv

Arrays = dict[str, Tokens | torch.Tensor]


class Classify:
    """The gold label of each example: mean cross-entropy over the logits of one head, which are recorded.

    It is the plain objective; others have the same three methods. Shapes: N examples, C classes.
    """

    name = "classify"

    def arrays(self, spec: RunSpec, corpus: Corpus, tokens: Tokens | None = None) -> Arrays:
        """Everything from which a batch takes rows: `Tokens` of N examples, and tensors (N, ...).

        The `Tokens` under "tokens" decide the batches, with rows of nearly equal length, and are counted as useful
        tokens. `tokens`: those of the corpus in the spec's view, if already available.
        """
        if tokens is None:
            tokens = encode(*corpus.texts(spec.view), load_tokenizer(spec.model), spec.max_length)
        return {"tokens": tokens, "labels": torch.tensor(corpus.labels)}

    def model(self, spec: RunSpec, classes: tuple[str, ...]) -> tuple[nn.Module, list[str]]:
        """The model with all its heads in fp32, and the names of the parameters that no checkpoint provided.

        Parameters that the loss does not reach do not change.
        """
        return load_classifier(spec.model, classes, spec.seed)

    def loss(self, model: nn.Module, batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
        """The mean loss () of a batch and the numbers to record for its examples (B, C), both in fp32.

        `batch` has the batch's rows under each name of `arrays`: for `Tokens`, the model's inputs, padded (B, L).
        Called under autocast, in training and in evaluation; it must not mix examples, because batches change from
        epoch to epoch.
        """
        logits = model(**batch["tokens"]).logits.float()
        return functional.cross_entropy(logits, batch["labels"]), logits


# ---------------------------------------------------------------- optimizer


def rate_factor(spec: RunSpec, step: int, steps: int) -> float:
    """Factor of the learning rate at update `step` (from 0) of `steps`, 0 to 1.

    Rises linearly from 0 over the warm-up, `spec.warmup_steps` or ceil(spec.warmup * steps) updates, then falls
    linearly to 0 or stays 1, depending on `spec.schedule`; the first update of a run with warm-up has factor 0. Equals
    Hugging Face's `get_linear_schedule_with_warmup` and `get_constant_schedule_with_warmup`.
    """
    rise = math.ceil(spec.warmup * steps) if spec.warmup_steps is None else spec.warmup_steps
    if step < rise:
        return step / rise
    return 1.0 if spec.schedule == "constant" else max(0.0, (steps - step) / max(1, steps - rise))


def only_in_linear_layers(model: nn.Module) -> set[nn.Parameter]:
    """Parameters used only by linear layers: under bf16 autocast they enter every product as bf16."""
    linear, other = set(), set()
    for module in model.modules():
        users = linear if type(module) is nn.Linear else other
        users.update(module.parameters(recurse=False))
    return linear - other


def decayed(model: nn.Module) -> set[str]:
    """Names of the parameters with weight decay: all except biases and normalisation layers."""
    return set(get_parameter_names(model, [], [r"bias$", "norm"]))


class _Group:
    """Parameters with the same decay, concatenated in one fp32 master; those with a bf16 copy come first."""

    def __init__(self, parameters: list[nn.Parameter], copied: set[nn.Parameter]):
        self.parameters = sorted(parameters, key=lambda each: each not in copied)
        copied = [each for each in self.parameters if each in copied]
        sizes = [each.numel() for each in self.parameters]
        self.master = parameters_to_vector(self.parameters).detach()
        self.master.grad = torch.zeros_like(self.master)
        self.copies = self.master.new_empty(sum(sizes[: len(copied)]), dtype=torch.bfloat16)
        views = zip(self.master.grad.split(sizes), self.parameters, strict=True)
        self.gradients = [gradient.view_as(parameter) for gradient, parameter in views]
        self.release()
        vector_to_parameters(self.copies, copied)
        self.refresh()

    def gather(self) -> None:
        """Move the gradients of the backward pass into the flat fp32 one."""
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            if parameter.grad.is_sparse:
                gradient.zero_().index_add_(0, parameter.grad._indices()[0], parameter.grad._values())
            else:
                gradient.copy_(parameter.grad)
            parameter.grad = None

    def refresh(self) -> None:
        self.copies.copy_(self.master[: len(self.copies)])

    def release(self) -> None:
        """Give every parameter its fp32 master."""
        vector_to_parameters(self.master, self.parameters)


class FlatAdamW:
    """AdamW with the schedule and clipping of `spec`, on the flat masters of a model's parameters, over `steps`
    updates.

    With `bf16` the model holds bf16 copies of the parameters that only its linear layers use. Parameters that need no
    gradient are left alone.
    """

    def __init__(self, model: nn.Module, spec: RunSpec, steps: int, bf16: bool = False):
        self.spec, self.steps, self.step_number = spec, steps, 0
        self.decay_product = 1.0  # factor so far of a decayed weight that never had a gradient
        self.groups, settings = [], []
        copied, names = only_in_linear_layers(model) if bf16 else set(), decayed(model)
        trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
        for decay, group in ((spec.weight_decay, trained.keys() & names), (0.0, trained.keys() - names)):
            if group:
                self.groups.append(_Group([each for name, each in trained.items() if name in group], copied))
                settings.append({"params": [self.groups[-1].master], "weight_decay": decay})
        self.adamw = torch.optim.AdamW(settings, lr=spec.learning_rate, eps=spec.epsilon, fused=True)

    def step(self) -> None:
        """Update the weights from the gradients in the model's parameters, which are cleared."""
        for group in self.groups:
            group.gather()
        if self.spec.clip is not None:
            nn.utils.clip_grad_norm_([group.master for group in self.groups], self.spec.clip)
        rate = self.spec.learning_rate * rate_factor(self.spec, self.step_number, self.steps)
        for settings in self.adamw.param_groups:
            settings["lr"] = rate
        self.adamw.step()
        self.decay_product *= 1 - rate * self.spec.weight_decay
        self.step_number += 1
        for group in self.groups:
            group.refresh()

    def release(self) -> None:
        """End the training: the model's parameters are the fp32 masters again."""
        for group in self.groups:
            group.release()

    def weights(self) -> dict:
        """The trained weights, by reference."""
        return {"masters": [group.master for group in self.groups], "decay_product": self.decay_product}

    def load_weights(self, weights: dict) -> None:
        for group, master in zip(self.groups, weights["masters"], strict=True):
            group.master.copy_(master)
            group.refresh()
        self.decay_product = weights["decay_product"]

    def state_dict(self) -> dict:
        return {**self.weights(), "adamw": self.adamw.state_dict(), "step": self.step_number}

    def load_state_dict(self, state: dict) -> None:
        self.load_weights(state)
        self.adamw.load_state_dict(state["adamw"])
        self.step_number = state["step"]


# ---------------------------------------------------------------- loop


class Loop:
    """The state of one run, and the passes that change or read it.

    The arguments are those of `fit`. `notes` describes what was done to the model.
    """

    written_out = True  # a CPU's cheaper layers

    def __init__(self, spec: RunSpec, corpus: Corpus, tokens=None, objective=None, validation=None):
        self.spec, self.device, self.objective = spec, pick_device(), objective or Classify()
        self.bf16 = takes_bf16(spec.precision)
        self.arrays = self._on_device(self.objective.arrays(spec, corpus, tokens))
        self.validation, self.best = validation, {"score": -math.inf}
        self.watched = self._on_device({} if validation is None else self.objective.arrays(spec, validation))
        self.lengths = self.arrays["tokens"].lengths
        self.width = len(corpus.classes)
        self.model, self.new = self.objective.model(spec, corpus.classes)
        self.model.to(self.device)
        # Parameters that the loss does not reach need no gradient; AdamW leaves parameters without a gradient alone
        # too.
        self.model.eval()
        self.forward(np.zeros(1, np.int64))[0].backward()
        for parameter in self.model.parameters():
            parameter.requires_grad_(parameter.grad is not None)
            parameter.grad = None
        every = (*self.arrays.values(), *self.watched.values())
        tokens = [each for each in every if isinstance(each, Tokens)]
        self.notes = fast.speed_up(self.model, tokens, self._probe, written_out=self.written_out)
        if self.bf16:
            exact_output(self.model)
        elif spec.precision == "bf16":
            self.notes.append("this processor has no bf16 units: computed in fp32, which is faster here")
        steps_an_epoch = -(-len(corpus) // spec.batch_size)
        self.optimizer = FlatAdamW(self.model, spec, spec.epochs * steps_an_epoch, self.bf16)

    def _on_device(self, arrays: Arrays) -> Arrays:
        return {name: each.to(self.device) for name, each in arrays.items()}

    def _probe(self) -> torch.Tensor:
        """All outputs for the first example, which the parts that make the model fast must not change."""
        loss, recorded = self.forward(np.zeros(1, np.int64))
        return torch.cat([loss[None], recorded.flatten()])

    def forward(self, rows: np.ndarray, arrays: Arrays | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """The objective's loss () and the numbers it records (B, C) for the examples `rows`, by default training
        examples."""
        arrays = self.arrays if arrays is None else arrays
        at = torch.from_numpy(rows).to(self.device, non_blocking=True)
        batch = {name: each.batch(rows) if isinstance(each, Tokens) else each[at] for name, each in arrays.items()}
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            return self.objective.loss(self.model, batch)

    def start_epoch(self, epoch: int) -> list[np.ndarray]:
        """Seed everything random for `epoch` and return its batches; no random state carries over between epochs."""
        self.model.train()
        self.model.fast.bits.reseed(self.spec.seed, epoch)
        torch.manual_seed(int(np.random.SeedSequence([self.spec.seed, epoch]).generate_state(1)[0]))
        return shuffled_batches(self.lengths, self.spec.batch_size, self.spec.seed, epoch)

    def step(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Update once on the examples `rows` (B,); return their mean loss () and the recorded numbers (B, C) before the
        update."""
        loss, recorded = self.forward(rows)
        loss.backward()
        self.optimizer.step()
        return loss.detach(), recorded.detach()

    @torch.inference_mode()
    def evaluate(self, arrays: Arrays | None = None, batch_size: int = 64) -> tuple[float, torch.Tensor]:
        """Mean loss and recorded numbers (N, C) of all examples with dropout off; by default those of the training
        set."""
        self.model.eval()
        arrays = self.arrays if arrays is None else arrays
        lengths = arrays["tokens"].lengths
        total, recorded = 0.0, torch.empty(len(lengths), self.width)
        for rows in sorted_batches(lengths, batch_size):
            loss, part = self.forward(rows, arrays)
            total, recorded[rows] = total + float(loss) * len(rows), part.cpu()
        return total / len(lengths), recorded

    def stops_after(self, row: dict) -> bool:
        """True if early stopping ends the training after the epoch of this log `row`; the values it saw are added to
        the row.

        Raises
        ------
        TrainingError
            If the validation loss is not finite, because it cannot be compared with that of any epoch.
        """
        if self.validation is None:
            return False
        loss, recorded = self.evaluate(self.watched)
        if not math.isfinite(loss):
            where = f"after epoch {row['epoch']}, on {self.validation.name}/{self.validation.split}"
            cure = "The epochs before are kept. Try a smaller learning_rate or precision='fp32'."
            raise TrainingError(f"the validation loss is {loss} {where}. {cure}")
        accuracy = float((recorded.numpy().argmax(1) == self.validation.labels).mean())
        row |= {"validation_loss": round(loss, 6), "validation_accuracy": round(accuracy, 6)}
        score = accuracy if self.spec.watch == "accuracy" else -loss
        if score > self.best["score"]:
            self.best = {"score": score, "epoch": row["epoch"], "weights": copy.deepcopy(self.optimizer.weights())}
        return row["epoch"] - self.best["epoch"] >= self.spec.patience

    def state_dict(self) -> dict:
        """Everything that later epochs depend on; random streams are seeded again in every epoch."""
        return {"optimizer": self.optimizer.state_dict(), "best": self.best, "order": self.order}

    def load_state_dict(self, state: dict) -> None:
        if state.get("order", self.order) != self.order:
            cure = "continue it where it began, or delete its folder"
            raise TrainingError(
                f"{self.spec.id} was begun on another kind of device, with layers of another form: {cure}"
            )
        self.best = state.get("best", self.best)
        self.optimizer.load_state_dict(state["optimizer"])

    @property
    def order(self) -> list[str]:
        """Names of the trained parameters as the flat masters hold them, which depends on the form of the layers."""
        names = {each: name for name, each in self.model.named_parameters()}
        return [names[each] for group in self.optimizer.groups for each in group.parameters]

    def finish(self) -> nn.Module:
        """End the training and return the model in the form that transformers saves: whole vocabulary, original layers,
        fp32."""
        if "weights" in self.best:
            self.optimizer.load_weights(self.best["weights"])
        return _restored(self.model, self.optimizer)

    def snapshot(self) -> nn.Module:
        """Copy the current model in the form of `finish`; the training can continue."""
        return _restored(*copy.deepcopy((self.model, self.optimizer)))


def _restored(model: nn.Module, optimizer: FlatAdamW) -> nn.Module:
    optimizer.release()
    fast.restore(model, optimizer.decay_product)
    return model.requires_grad_(True).eval()


# ---------------------------------------------------------------- fit


HERE = threading.local()  # .loop: what trains in this thread in place of a `Loop`
CHECK_EVERY = {"cpu": 1, "cuda": 50}  # steps between checks of the loss; on a GPU a check waits for the device


class Run:
    """A finished run: N training examples, E epochs, C classes.

    Attributes
    ----------
    logits
        (E, N, C) float32, row i belongs to labels[i]; recorded as `spec.capture` says. E is less than `spec.epochs` if
        `spec.patience` ended the training, and 1 if `spec.record` is "last"
    labels
        (N,) int64 gold labels the model was trained on
    log
        one row for each epoch: loss and accuracy of the training pass, seconds, useful tokens per second
    model
        folder of the trained model and tokenizer, in transformers' format
    models
        the same of every epoch, if `spec.models` is "all"; the last is `model`
    """

    def __init__(self, spec: RunSpec, folder: Path):
        self.spec, self.folder, self.store, self.model = spec, folder, RunFolder(folder), folder / "model"

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
    def models(self) -> list[Path]:
        earlier = range(self.spec.epochs - 1) if self.spec.models == "all" else ()
        return [*(self.folder / "models" / f"epoch-{epoch}" for epoch in earlier), self.model]


def fit(
    spec: RunSpec, corpus: Corpus, keep: np.ndarray | None = None, *, objective=None, tokens=None, validation=None
) -> Run:
    """Train the encoder `spec.model` on `corpus` and record the logits (E, N, C) of every epoch.

    The run is stored in `spec.folder`. An unfinished run continues at its first unfinished epoch and ends, on one CPU,
    with the same bits as an uninterrupted one; a finished run is returned at once. Raises `StoreError`, naming the
    field, if the stored run has other settings, rows, labels or class names, and naming the file if it is damaged;
    `TrainingError` if the loss is not finite; `ValueError` for arguments that do not fit each other.

    Recipe (WANLI, W1 and W23): AdamW (.9, .999, 1e-8), linear warm-up and decay, weight decay on all but biases and
    normalisation layers, gradient norm clipped, mean cross-entropy of each batch, dropout from the model's config.
    `capture="eval"` records an evaluation pass after each epoch (WANLI and the difficulty paper), `"train"` the logits
    of the training pass itself, each before its own batch's update and with dropout on (cartography).

    Parameters
    ----------
    keep
        boolean mask (N_all,) or integer positions of the rows to train on, which N counts. Name the selection in
        `spec.subset`, which is part of the run's identity
    objective
        the objective that `spec.objective` names: a `Classify`, by default, or another with its methods
    tokens
        `Tokens` of the whole `corpus` (`encode.encode`), if available, so that runs on parts of it share them
    validation
        the `Corpus` on which early stopping watches `spec.watch`: training ends after `spec.patience` epochs without a
        better value, and the weights of the best epoch are the run's model

    Notes
    -----
    *Departures*: batches hold rows of nearly equal length (see `encode.shuffled_batches`); under bf16 the logits are
    computed in fp32, and a CPU without bf16 units computes everything in fp32; see also `learn.fast` and `learn.fit`.
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
    watched = {} if validation is None else {"validation_digest": validation.digest}
    settings = {**spec.model_dump(), "rows": len(corpus), "corpus_digest": corpus.digest, **watched}
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
    loop = getattr(HERE, "loop", Loop)(spec, corpus, **parts)
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
            about = {each: getattr(corpus, each) for each in ("name", "split", "source", "digest")}
            seconds = round(sum(each["seconds"] for each in folder.log), 2)
            facts = {"tokens": int(loop.lengths.sum()), "new_parameters": loop.new, "notes": loop.notes}
            folder.write_about(corpus=about, classes=list(corpus.classes), device=device(), **facts, seconds=seconds)
            _save(loop, loop.finish(), folder.path / "model")
        else:
            if spec.models == "all":
                _save(loop, loop.snapshot(), Run(spec, folder.path).models[epoch])
            with atomic(folder.checkpoint) as draft, draft.open("wb") as file:
                torch.save({"epoch": epoch + 1, **loop.state_dict()}, file)
        # The bit comes last: an epoch is done only when everything needed to continue is on disk.
        folder.mark(spec.epochs if last else epoch + 1)
        if last:
            break
    folder.checkpoint.unlink(missing_ok=True)


def _evaluated(loop: Loop, corpus: Corpus, epoch: int) -> np.ndarray:
    """The recorded numbers (N, C) after `epoch` with dropout off; raises `TrainingError` if the loss of that pass
    diverged."""
    loss, recorded = loop.evaluate()
    if not math.isfinite(loss):
        rows = np.flatnonzero(~np.isfinite(recorded.numpy()).all(axis=1))[:10]
        raise _diverged(loss, f"in the evaluation pass after epoch {epoch}", corpus, rows)
    return recorded.numpy()


def _save(loop: Loop, model: torch.nn.Module, path: Path) -> None:
    with atomic(path) as draft:
        model.save_pretrained(draft)
        load_tokenizer(loop.spec.model).save_pretrained(draft)


def _resume(loop: Loop, folder: RunFolder) -> int:
    """Load the last checkpoint; return the first epoch to train."""
    if not folder.checkpoint.exists():
        if folder.done.any():
            folder.refuse(f"epochs are done, but {folder.checkpoint.name} is missing")
        return 0
    with folder.reading(folder.checkpoint.name):
        state = torch.load(folder.checkpoint, map_location=loop.device, weights_only=True)
        loop.load_state_dict(state)
    if state["epoch"] - folder.done.sum() not in (0, 1):  # 1: killed between the checkpoint and the bit
        folder.refuse(f"{folder.checkpoint.name} does not belong to the epochs that are done")
    folder.mark(state["epoch"])  # a second kill here would leave the bits two behind
    print(f"{folder.path.name}: continues after epoch {state['epoch'] - 1}")
    return state["epoch"]


def train_epoch(loop: Loop, corpus: Corpus, epoch: int, batches: list[np.ndarray]) -> tuple[dict, np.ndarray]:
    """Train on the `batches` of rows of one epoch.

    Returns the epoch's log row, and the logits (N, C) of the training pass in the corpus's order, NaN for rows in no
    batch.
    """
    losses = torch.empty(len(batches), device=loop.device)
    passing = torch.full((len(corpus), len(corpus.classes)), torch.nan, device=loop.device)
    started = time.perf_counter()
    watched = sys.stderr.isatty() or "JPY_SESSION_NAME" in os.environ  # by a person, not executed by a runner
    bar = tqdm(batches, desc=f"epoch {epoch}", unit="batch", mininterval=1, leave=False, disable=not watched)
    for number, rows in enumerate(bar):
        losses[number], passing[rows] = loop.step(rows)
        looks = number % CHECK_EVERY[loop.device.type] == 0 or number + 1 == len(batches)
        if looks and not math.isfinite(float(losses[: number + 1].sum())):
            step = int(torch.nonzero(~torch.isfinite(losses[: number + 1]))[0])
            raise _diverged(float(losses[step]), f"at epoch {epoch}, step {step}", corpus, batches[step])
    seconds = time.perf_counter() - started
    # Each loss is computed before its update; computing the last batch's once more shows whether the last update left
    # usable weights.
    if not math.isfinite(loss := float(loop.forward(batches[-1])[0].detach())):
        raise _diverged(loss, f"after the last update of epoch {epoch}", corpus, batches[-1])
    passing, seen = passing.cpu().numpy(), np.concatenate(batches)
    right = passing[seen].argmax(1) == corpus.labels[seen]
    row = {"epoch": epoch, "loss": round(float(losses.mean()), 6), "accuracy": round(float(right.mean()), 6)}
    row |= {"seconds": round(seconds, 3), "tokens_per_second": round(float(loop.lengths[seen].sum() / seconds), 1)}
    return row, passing


def _diverged(loss: float, where: str, corpus: Corpus, rows: np.ndarray) -> TrainingError:
    names = ", ".join(map(str, corpus.uid[rows]))
    cure = "Try a smaller learning_rate, precision='fp32', or look at these examples."
    return TrainingError(f"the loss is {loss} {where}, on the examples {names}. The epochs before are kept. {cure}")
