"""The training loop's parts: a model set up to be trained fast, one step, one evaluation pass, and its state.

What makes it fast on a CPU, each part exact or equal in distribution to the plain loop it replaces:

    batches of nearly equal length, cut from tokens encoded once           `encode`
    only the word pieces that occur are trained                            `vocabulary`
    dropout from fast random bits, attention made for sentences            `dropout`, `attention`
    a BERT layer written out as one differentiable step                    `layers`
    one flat fp32 master, bf16 copies of the linear layers cast once       `optimizer`
    bf16 products taken in fp32 where the processor cannot                 `products`
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from nli_lib.corpora.corpus import Corpus
from nli_lib.learn.encode import Tokens, encode, shuffled_batches, sorted_batches
from nli_lib.learn.fast import attention, dropout, layers, products, vocabulary
from nli_lib.learn.model import ExactLinear, exact_output, load_classifier, load_tokenizer
from nli_lib.learn.optimizer import FlatAdamW
from nli_lib.spec import RunSpec


def pick_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Loop:
    """Everything that one run changes, and the two passes that change or read it.

    `notes` says in words which of the fast parts the model takes and which it does not.
    """

    def __init__(self, spec: RunSpec, corpus: Corpus, device: torch.device | None = None, tokens: Tokens | None = None):
        self.spec, self.device = spec, device or pick_device()
        self.bf16 = spec.precision == "bf16"
        self.tokenizer = load_tokenizer(spec.model)
        if tokens is None:
            tokens = encode(*corpus.texts(spec.view), self.tokenizer, spec.max_length)
        self.lengths = tokens.lengths
        self.tokens = tokens.to(self.device)
        self.labels = torch.tensor(corpus.labels).to(self.device)
        self.model, self.new = load_classifier(spec.model, corpus.classes, spec.seed)
        self.model.to(self.device)
        self._freeze_unused()
        self.steps_an_epoch = -(-len(corpus) // spec.batch_size)
        self.whole, note = vocabulary.compact(self.model, tokens.vocabulary.to(self.device))
        self.notes = [note]
        self.bits = dropout.RandomBits()
        if self.device.type == "cpu":
            for part in (dropout, attention, layers):
                self.notes += part.install(self.model, self.bits)
        if self.bf16:
            exact_output(self.model)
            if self.device.type == "cpu":
                self.notes += products.install(self.model)
        self.optimizer = FlatAdamW(self.model, spec, spec.epochs * self.steps_an_epoch, self._shadowed())

    def _freeze_unused(self) -> None:
        """Parameters the loss does not reach need no gradient; AdamW without one would leave them alone too."""
        self.model.eval()
        self._loss(self._logits(np.zeros(1, np.int64)), self.labels[:1]).backward()
        for parameter in self.model.parameters():
            parameter.requires_grad_(parameter.grad is not None)
            parameter.grad = None

    def _shadowed(self) -> set[nn.Parameter]:
        """The parameters that only linear layers use: in bf16 autocast they enter every product as bf16."""
        if not self.bf16:
            return set()
        linear, other = set(), set()
        for module in self.model.modules():
            mine = linear if type(module) in (nn.Linear, products.WideLinear) else other
            mine.update(module.parameters(recurse=False))
        return linear - other

    def _logits(self, rows: np.ndarray) -> torch.Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            return self.model(**self.tokens.batch(rows)).logits.float()

    @staticmethod
    def _loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(logits, labels)

    def start_epoch(self, epoch: int) -> list[np.ndarray]:
        """Seed everything random for `epoch` and give its batches; nothing random is carried from epoch to epoch."""
        self.model.train()
        self.bits.reseed(self.spec.seed, epoch)
        torch.manual_seed(int(np.random.SeedSequence([self.spec.seed, epoch]).generate_state(1)[0]))
        return shuffled_batches(self.lengths, self.spec.batch_size, self.spec.seed, epoch)

    def step(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """One update on the examples `rows` (B,); returns their mean loss () and logits (B, C) before the update."""
        logits = self._logits(rows)
        at = torch.from_numpy(rows).to(self.device, non_blocking=True)
        loss = self._loss(logits, self.labels[at])
        loss.backward()
        self.optimizer.step()
        return loss.detach(), logits.detach()

    @torch.inference_mode()
    def evaluate(self, batch_size: int = 64) -> torch.Tensor:
        """Logits (N, C) of all examples with dropout off."""
        self.model.eval()
        logits = torch.empty(len(self.labels), self.model.config.num_labels)
        for rows in sorted_batches(self.lengths, batch_size):
            logits[rows] = self._logits(rows).cpu()
        return logits

    def state_dict(self) -> dict:
        """All that a later epoch depends on; random streams are seeded anew in every epoch."""
        buffers = {name: buffer for name, buffer in self.model.named_buffers() if buffer.is_floating_point()}
        return {"optimizer": self.optimizer.state_dict(), "buffers": buffers}

    def load_state_dict(self, state: dict) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        for name, buffer in self.model.named_buffers():
            if name in state["buffers"]:
                buffer.copy_(state["buffers"][name])

    def finish(self) -> nn.Module:
        """End the training and give the model as transformers knows it: whole vocabulary, fp32, its own dropout."""
        self.optimizer.release()
        layers.release(self.model)
        vocabulary.restore(self.model, self.whole, self.optimizer.decay_product)
        self.model.requires_grad_(True)
        products.release(self.model)
        for module in self.model.modules():
            if isinstance(module, ExactLinear):
                module.__class__ = nn.Linear
        return self.model.eval()
