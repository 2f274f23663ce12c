"""predict and embed: what a trained run, or any ready model, says about a corpus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from transformers import AutoModel, AutoModelForSequenceClassification, PreTrainedModel

from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.labels import LABELS, head_columns
from nli_lib.learn.encode import encode, sorted_batches
from nli_lib.learn.fast import attention, products
from nli_lib.learn.fast.dropout import RandomBits
from nli_lib.learn.fit import Run
from nli_lib.learn.loop import pick_device
from nli_lib.learn.model import exact_output, find_model, load_tokenizer, quiet
from nli_lib.spec import View
from nli_lib.store import atomic

Pooling = Literal["cls", "pooled"]


def predict(
    model: Run | str,
    corpus: Corpus,
    *,
    batch_size: int = 64,
    view: View = "pair",
    max_length: int = 128,
    precision: str = "bf16",
) -> np.ndarray:
    """Logits (N, C) float32 of a finished run or a ready NLI model for the N examples of `corpus`, dropout off.

    A run predicts its own classes (`run.classes`) with its own view, length and precision, and keeps the answer in its
    folder, so asking again costs nothing. A ready model is named by offline name, hub id or local folder; its outputs
    are put into the order of `LABELS` by the *names* in its config, and a model with LABEL_0 names is refused.
    """
    if isinstance(model, Run):
        spec = model.spec
        classify = _loader(AutoModelForSequenceClassification, str(model.model))
        settings = (batch_size, spec.view, spec.max_length, spec.precision)
        return _cached(model, corpus, "logits", lambda: _logits(classify(), str(model.model), corpus, *settings))
    network = _loader(AutoModelForSequenceClassification, find_model(model))()
    columns = head_columns(network.config.label2id, LABELS)
    return _logits(network, model, corpus, batch_size, view, max_length, precision)[:, columns]


def embed(
    model: Run | str,
    corpus: Corpus,
    pooling: Pooling = "cls",
    *,
    batch_size: int = 64,
    view: View = "pair",
    max_length: int = 128,
    precision: str = "bf16",
) -> np.ndarray:
    """Vectors (N, D) float32 of the N examples in the last hidden layer of a run's or a ready model's encoder.

    pooling  "cls" takes the first token (WANLI's neighbour space), "pooled" the mean over all real tokens
    """
    if pooling not in ("cls", "pooled"):
        raise ValueError(f'pooling={pooling!r} is neither "cls" nor "pooled"')
    if isinstance(model, Run):
        spec = model.spec
        encoder = _loader(AutoModel, str(model.model))
        settings = (batch_size, spec.view, spec.max_length, spec.precision)
        return _cached(
            model, corpus, pooling, lambda: _vectors(encoder(), str(model.model), corpus, pooling, *settings)
        )
    encoder = _loader(AutoModel, find_model(model))()
    return _vectors(encoder, model, corpus, pooling, batch_size, view, max_length, precision)


def _loader(kind: type, path: str) -> Callable[[], PreTrainedModel]:
    def load() -> PreTrainedModel:
        with quiet():
            return kind.from_pretrained(path, dtype=torch.float32).to(pick_device()).eval()

    return load


def _cached(run: Run, corpus: Corpus, what: str, compute: Callable[[], np.ndarray]) -> np.ndarray:
    path = Path(run.folder) / "predictions" / f"{what}-{corpus.digest[:24]}.npy"
    if not path.exists():
        if not run.store.done.all():
            raise RuntimeError(f"{run.folder}: the run is not finished; call fit again to end it")
        with atomic(path) as draft, draft.open("wb") as file:
            np.save(file, compute())
    return np.load(path)


def _logits(network: PreTrainedModel, name: str, corpus: Corpus, *settings: object) -> np.ndarray:
    exact_output(network)
    return _pass(network, name, corpus, lambda output, mask: output.logits, *settings)


def _vectors(network: PreTrainedModel, name: str, corpus: Corpus, pooling: Pooling, *settings: object) -> np.ndarray:
    def first(output, mask):
        return output.last_hidden_state[:, 0]

    def mean(output, mask):
        hidden = output.last_hidden_state.float()
        if mask is None:
            return hidden.mean(1)
        return (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)

    return _pass(network, name, corpus, first if pooling == "cls" else mean, *settings)


@torch.inference_mode()
def _pass(
    network: PreTrainedModel,
    name: str,
    corpus: Corpus,
    take: Callable,
    batch_size: int,
    view: View,
    max_length: int,
    precision: str,
) -> np.ndarray:
    """One pass over the corpus, longest examples first; `take(output, mask)` gives a batch's rows (B, D)."""
    device = network.device
    if device.type == "cpu":
        attention.install(network, RandomBits())
        if precision == "bf16":
            products.install(network)
    tokens = encode(*corpus.texts(view), load_tokenizer(name), max_length)
    lengths, tokens = tokens.lengths, tokens.to(device)
    result = None
    for rows in sorted_batches(lengths, batch_size):
        inputs = tokens.batch(rows)
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            taken = take(network(**inputs), inputs.get("attention_mask")).float().cpu().numpy()
        if result is None:
            result = np.empty((len(corpus), taken.shape[1]), np.float32)
        result[rows] = taken
    if result is None:
        raise ValueError(f"{corpus.name}/{corpus.split} has no examples to look at")
    return result
