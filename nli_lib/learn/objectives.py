"""What is learnt: an objective says what a batch holds, which heads the model has and how a loss comes of them.

The training loop knows none of it. `Classify` is the first objective; others fit the same three methods:

    product of experts     `arrays` adds the hypothesis alone as further `Tokens`; `model` adds a bias head to the
                           encoder; `loss` sends both texts through the one encoder, multiplies the two predictions and
                           records the logits of the main head alone
    debiased focal loss    the same arrays and heads; `loss` weights each example by what the bias head knows
    causal language model  `arrays` makes premise, label and hypothesis one text, whose columns say what each token is;
                           `model` loads a language model; `loss` sums the likelihood of some tokens and the
                           unlikelihood of others, those under a wrong label, and records a score for each class

An objective has no state of its own beside its knobs; `name` holds those too, for it is part of a run's identity
(`RunSpec.objective`).
"""

from typing import Protocol

import torch
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from nli_lib.corpora.corpus import Corpus
from nli_lib.learn.encode import Tokens, encode
from nli_lib.learn.model import load_classifier
from nli_lib.spec import RunSpec

Arrays = dict[str, Tokens | torch.Tensor]


class Objective(Protocol):
    """What is learnt from N examples of C classes."""

    name: str

    def arrays(
        self, spec: RunSpec, corpus: Corpus, tokenizer: PreTrainedTokenizerBase, tokens: Tokens | None = None
    ) -> Arrays:
        """Everything that a batch takes rows of: `Tokens` of N examples, and tensors (N, ...).

        Those under "tokens" decide the batches, whose rows are of nearly equal length, and are counted as useful ones.
        `tokens` are the corpus's in the spec's view, where they are at hand.
        """

    def model(self, spec: RunSpec, classes: tuple[str, ...]) -> tuple[PreTrainedModel, list[str]]:
        """The model with all its heads in fp32, and the names of the parameters that no checkpoint brought.

        Parameters that the loss does not reach are left as they are.
        """

    def loss(self, model: PreTrainedModel, batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
        """The mean loss () of a batch and what is recorded of its examples (B, C), both in fp32.

        `batch` holds under each name of `arrays` its rows: of `Tokens` the model's inputs, padded (B, L). Called under
        autocast, in training as in evaluation; it must not mix examples, which share no batch from epoch to epoch.
        """


class Classify:
    """The gold label of each example: mean cross-entropy over the logits of one head, which are recorded."""

    name = "classify"

    def arrays(
        self, spec: RunSpec, corpus: Corpus, tokenizer: PreTrainedTokenizerBase, tokens: Tokens | None = None
    ) -> Arrays:
        if tokens is None:
            tokens = encode(*corpus.texts(spec.view), tokenizer, spec.max_length)
        return {"tokens": tokens, "labels": torch.tensor(corpus.labels)}

    def model(self, spec: RunSpec, classes: tuple[str, ...]) -> tuple[PreTrainedModel, list[str]]:
        return load_classifier(spec.model, classes, spec.seed)

    def loss(self, model: PreTrainedModel, batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
        logits = model(**batch["tokens"]).logits.float()
        return functional.cross_entropy(logits, batch["labels"]), logits
