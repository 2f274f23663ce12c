"""Pairs that are watched and never learnt from: what a model makes of them after every epoch."""

import hashlib
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from nli_lib.corpora.corpus import Corpus
from nli_lib.learn.encode import Tokens
from nli_lib.learn.fit import Run, fit
from nli_lib.learn.objectives import Arrays, Classify
from nli_lib.spec import RunSpec


class Watched(NamedTuple):
    """A finished run, and the logits (E, H, C) of the H pairs that it watched, in the corpus's order."""

    run: Run
    logits: np.ndarray


def watch(spec: RunSpec, corpus: Corpus, held_out: ArrayLike) -> Watched:
    """What a model that learns from other premises alone makes of some pairs, after each epoch.

    held_out (N,) bool, the H pairs of `corpus`. The other pairs of their premises are left out altogether. The run is
    one of the store, resumed if it was killed and found again if it is finished.
    """
    held_out = np.asarray(held_out, dtype=bool)
    keep = held_out | ~pd.Series(corpus.premise).isin(corpus.premise[held_out]).to_numpy()
    objective = ClassifyOthers(held_out[keep])
    spec = spec.model_copy(update={"subset": "other premises", "objective": objective.name})
    run = fit(spec, corpus, keep, objective=objective)
    return Watched(run, np.asarray(run.logits[:, held_out[keep]]))


class ClassifyOthers(Classify):
    """The gold label of each example that is not held out; of those that are, only the logits are recorded.

    held_out (N,) bool, in the order of the corpus. A run keeps the logits of the examples in it, epoch by epoch; for
    any other it has only its last model. So the held-out examples stand in the corpus, and their loss counts nothing:
    their texts and labels move no weight of the model. They take places in the batches, which are that much smaller.
    """

    def __init__(self, held_out: ArrayLike):
        self.held_out = np.asarray(held_out, dtype=bool)
        self.name = f"classify all but {hashlib.sha256(self.held_out.tobytes()).hexdigest()[:8]}"

    def arrays(
        self, spec: RunSpec, corpus: Corpus, tokenizer: PreTrainedTokenizerBase, tokens: Tokens | None = None
    ) -> Arrays:
        if len(self.held_out) != len(corpus):
            raise ValueError(f"held_out has {len(self.held_out)} entries for {len(corpus)} examples")
        learnt = torch.tensor(~self.held_out, dtype=torch.float32)
        return {**super().arrays(spec, corpus, tokenizer, tokens), "learnt": learnt}

    def loss(self, model: PreTrainedModel, batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
        """The mean over the batch's examples that are learnt from, 0 where it has none.

        The pass after an epoch looks at the held-out examples alone, which takes a few seconds; NaN for the others.
        """
        learnt = batch["learnt"]
        if torch.is_inference_mode_enabled():
            held_out = learnt == 0
            recorded = torch.full((len(learnt), model.config.num_labels), torch.nan, device=learnt.device)
            if held_out.any():
                inputs = {name: column[held_out] for name, column in batch["tokens"].items()}
                recorded[held_out] = model(**inputs).logits.float()
            return learnt.new_zeros(()), recorded
        logits = model(**batch["tokens"]).logits.float()
        each = functional.cross_entropy(logits, batch["labels"], reduction="none")
        return (each * learnt).sum() / learnt.sum().clamp(min=1), logits
