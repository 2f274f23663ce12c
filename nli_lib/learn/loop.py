"""The training loop's parts: a model set up to be trained fast, one step, one evaluation pass, and its state.

The loop knows neither what is learnt (`learn.objectives`) nor what makes it fast:

    batches of nearly equal length, cut from tokens encoded once           `learn.encode`
    less to compute in the model's own layers, on a CPU                    `learn.fast`
    one flat fp32 master, bf16 copies of the linear layers cast once       `learn.optimizer`
"""

import copy
import math

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.learn import fast
from nli_lib.learn.encode import Tokens, shuffled_batches, sorted_batches
from nli_lib.learn.model import exact_output, load_tokenizer, pick_device, takes_bf16
from nli_lib.learn.objectives import Arrays, Classify, Objective
from nli_lib.learn.optimizer import FlatAdamW
from nli_lib.spec import RunSpec


class TrainingError(UserError, RuntimeError):
    """The training cannot go on; the message says on which examples, and what is kept."""


class Loop:
    """Everything that one run changes, and the two passes that change or read it.

    `validation` is the corpus that early stopping watches. `notes` says in words what is special about the model.
    """

    def __init__(
        self,
        spec: RunSpec,
        corpus: Corpus,
        tokens: Tokens | None = None,
        objective: Objective | None = None,
        validation: Corpus | None = None,
    ):
        self.spec, self.device, self.objective = spec, pick_device(), objective or Classify()
        self.bf16 = takes_bf16(spec.precision, self.device)
        self.tokenizer = load_tokenizer(spec.model)
        self.arrays = self._on_device(self.objective.arrays(spec, corpus, self.tokenizer, tokens))
        self.validation, self.best = validation, {"score": -math.inf}
        watched = {} if validation is None else self.objective.arrays(spec, validation, self.tokenizer)
        self.watched = self._on_device(watched)
        self.lengths = self.arrays["tokens"].lengths
        self.width = len(corpus.classes)
        self.model, self.new = self.objective.model(spec, corpus.classes)
        self.model.to(self.device)
        self._freeze_unused()
        every = (*self.arrays.values(), *self.watched.values())
        self.notes = fast.speed_up(self.model, [each for each in every if isinstance(each, Tokens)], self._probe)
        if self.bf16:
            exact_output(self.model)
        elif spec.precision == "bf16":
            self.notes.append("this processor has no bf16 units: computed in fp32, which is faster here")
        steps_an_epoch = -(-len(corpus) // spec.batch_size)
        self.optimizer = FlatAdamW(self.model, spec, spec.epochs * steps_an_epoch, self.bf16)

    def _on_device(self, arrays: Arrays) -> Arrays:
        return {name: each.to(self.device) for name, each in arrays.items()}

    def _freeze_unused(self) -> None:
        """Parameters the loss does not reach need no gradient; AdamW without one would leave them alone too."""
        self.model.eval()
        self._forward(self.arrays, np.zeros(1, np.int64))[0].backward()
        for parameter in self.model.parameters():
            parameter.requires_grad_(parameter.grad is not None)
            parameter.grad = None

    def _probe(self) -> torch.Tensor:
        """All numbers that come of the first example, which the parts that make the model fast must not change."""
        loss, recorded = self._forward(self.arrays, np.zeros(1, np.int64))
        return torch.cat([loss[None], recorded.flatten()])

    def _forward(self, arrays: Arrays, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """The objective's loss () and what it records (B, C) of the examples `rows`."""
        at = torch.from_numpy(rows).to(self.device, non_blocking=True)
        batch = {name: each.batch(rows) if isinstance(each, Tokens) else each[at] for name, each in arrays.items()}
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            return self.objective.loss(self.model, batch)

    def start_epoch(self, epoch: int) -> list[np.ndarray]:
        """Seed everything random for `epoch` and give its batches; no random state passes from epoch to epoch."""
        self.model.train()
        fast.reseed(self.model, self.spec.seed, epoch)
        torch.manual_seed(int(np.random.SeedSequence([self.spec.seed, epoch]).generate_state(1)[0]))
        return shuffled_batches(self.lengths, self.spec.batch_size, self.spec.seed, epoch)

    def step(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """One update on the examples `rows` (B,); their mean loss () and what is recorded (B, C) before the update."""
        loss, recorded = self._forward(self.arrays, rows)
        loss.backward()
        self.optimizer.step()
        return loss.detach(), recorded.detach()

    def loss(self, rows: np.ndarray) -> torch.Tensor:
        """The mean loss () of the examples `rows` (B,) in a training pass that updates nothing."""
        return self._forward(self.arrays, rows)[0].detach()

    @torch.inference_mode()
    def evaluate(self, arrays: Arrays | None = None, batch_size: int = 64) -> tuple[float, torch.Tensor]:
        """Mean loss and what is recorded (N, C) of all examples with dropout off; of the training set by default."""
        self.model.eval()
        arrays = self.arrays if arrays is None else arrays
        lengths = arrays["tokens"].lengths
        total, recorded = 0.0, torch.empty(len(lengths), self.width)
        for rows in sorted_batches(lengths, batch_size):
            loss, part = self._forward(arrays, rows)
            total, recorded[rows] = total + float(loss) * len(rows), part.cpu()
        return total / len(lengths), recorded

    def stops_after(self, row: dict) -> bool:
        """Whether early stopping ends the training after the epoch of this log `row`, to which it adds what it saw.

        Raises `TrainingError` where the validation loss is not finite, which no epoch's can be compared with.
        """
        if self.validation is None:
            return False
        loss, recorded = self.evaluate(self.watched)
        if not math.isfinite(loss):
            raise TrainingError(
                f"the validation loss is {loss} after epoch {row['epoch']}, on {self.validation.name}/"
                f"{self.validation.split}. The epochs before are kept. Try a smaller learning_rate or precision='fp32'."
            )
        accuracy = float((recorded.numpy().argmax(1) == self.validation.labels).mean())
        row |= {"validation_loss": round(loss, 6), "validation_accuracy": round(accuracy, 6)}
        score = accuracy if self.spec.watch == "accuracy" else -loss
        if score > self.best["score"]:
            self.best = {"score": score, "epoch": row["epoch"], "weights": copy.deepcopy(self.optimizer.weights())}
        return row["epoch"] - self.best["epoch"] >= self.spec.patience

    def state_dict(self) -> dict:
        """All that a later epoch depends on; random streams are seeded anew in every epoch."""
        return {"optimizer": self.optimizer.state_dict(), "best": self.best}

    def load_state_dict(self, state: dict) -> None:
        self.best = state.get("best", self.best)
        self.optimizer.load_state_dict(state["optimizer"])

    def finish(self) -> nn.Module:
        """End the training and give the model as transformers saves it: whole vocabulary, own layers, fp32."""
        if "weights" in self.best:
            self.optimizer.load_weights(self.best["weights"])
        return _restored(self.model, self.optimizer)

    def snapshot(self) -> nn.Module:
        """A copy of the model as it is now, in the form of `finish`; the training goes on."""
        return _restored(*copy.deepcopy((self.model, self.optimizer)))


def _restored(model: PreTrainedModel, optimizer: FlatAdamW) -> nn.Module:
    optimizer.release()
    fast.restore(model, optimizer.decay_product)
    return model.requires_grad_(True).eval()
