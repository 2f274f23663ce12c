"""predict, predict_epochs and embed: what a trained run, or any ready model, says about a corpus."""

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, PreTrainedModel

from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.labels import LABELS, head_columns
from nli_lib.learn.encode import encode, sorted_batches
from nli_lib.learn.fast import speed_up
from nli_lib.learn.fit import Run
from nli_lib.learn.model import (
    exact_output,
    find_model,
    is_decoder,
    last_token,
    load_tokenizer,
    pick_device,
    takes_bf16,
)
from nli_lib.spec import RunSpec
from nli_lib.store import StoreError, alone, reading, write_array


def predict(model: Run | str, corpus: Corpus, *, batch_size: int = 64) -> np.ndarray:
    """Logits (N, C) float32 of a finished run or a ready NLI model for the N examples of `corpus`, dropout off.

    A run predicts the classes it was trained on, with its own view, length and precision, and keeps the answer in its
    folder, so asking again costs nothing. A ready model is named by offline name, hub id or local folder and reads the
    pair; its outputs are put into the order of `LABELS` by the *names* in its config, and a model with LABEL_0 names is
    refused.

    Raises `StoreError` for a run that is unfinished or damaged, `ValueError` for a corpus without examples.
    """
    if isinstance(model, Run):
        return _outputs(model, corpus, "logits", batch_size)
    columns = head_columns(AutoConfig.from_pretrained(find_model(model)).label2id, LABELS)
    return _outputs(model, corpus, "logits", batch_size)[:, columns]


def predict_epochs(run: Run, corpus: Corpus, *, batch_size: int = 64) -> np.ndarray:
    """Logits (E, N, C) float32 of the models after each epoch of a run whose spec has `models="all"`, dropout off.

    For examples that the run was not trained on; those of its own are in `run.logits`. Kept as those of `predict`.
    Source: WANLI, section 2.3 (W9), which computes the predictions of each saved epoch in retrospect.
    Raises `ValueError` for a run that kept its last model alone, and what `predict` raises.
    """
    if run.spec.models != "all":
        raise ValueError(f"{run.spec.id} kept its last model alone: train it with models='all' in its spec")
    epochs = [_outputs(run, corpus, "logits", batch_size, epoch=epoch) for epoch in range(run.spec.epochs)]
    return np.stack(epochs)


def embed(model: Run | str, corpus: Corpus, *, batch_size: int = 64) -> np.ndarray:
    """Vectors (N, D) float32 of the N examples: the first token in the last hidden layer of a run's or a ready model's
    encoder, which is WANLI's neighbour space.

    *Departures*: of a decoder, which reads from left to right, the last token; its first has seen nothing else.
    """
    return _outputs(model, corpus, "cls", batch_size)


def _outputs(model: Run | str, corpus: Corpus, what: str, batch_size: int, epoch: int = -1) -> np.ndarray:
    """ "logits" or "cls" of a run, kept in its folder, or of a ready model, with the settings of a run by default."""
    kind = AutoModelForSequenceClassification if what == "logits" else AutoModel
    if not isinstance(model, Run):
        network = kind.from_pretrained(find_model(model), dtype=torch.float32)
        return _pass(network, RunSpec(corpus="any", model=model), corpus, batch_size)
    weights = model.models[epoch]
    earlier = "" if weights == model.model else f"-{weights.name}"
    path = model.folder / "predictions" / f"{what}{earlier}-{corpus.digest[:24]}.npy"
    if not path.exists():
        if not model.store.done.all():
            raise StoreError(f"{model.folder}: the run is not finished; call fit again to end it")
        with alone(model.folder, "this run"):
            if not path.exists():  # another process may have made it
                model.store.verify("models" if earlier else "model")
                with model.store.reading(str(weights.relative_to(model.folder))):
                    network = kind.from_pretrained(weights, dtype=torch.float32)
                spec = model.spec.model_copy(update={"model": str(weights)})
                write_array(path, _pass(network, spec, corpus, batch_size))
    with reading(path, "delete this file to compute it again"):
        return np.load(path)


@torch.inference_mode()
def _pass(network: PreTrainedModel, spec: RunSpec, corpus: Corpus, batch_size: int) -> np.ndarray:
    """One pass over the corpus as `spec` reads it, longest first: a classifier's logits, or the vectors of `embed`."""
    if len(corpus) == 0:
        raise ValueError(f"{corpus.name}/{corpus.split} has no examples to look at")
    device = pick_device()
    network.to(device).eval()
    exact_output(network)
    speed_up(network)
    bf16 = takes_bf16(spec.precision, device)
    tokens = encode(*corpus.texts(spec.view), load_tokenizer(spec.model), spec.max_length).to(device)
    result = None
    for rows in sorted_batches(tokens.lengths, batch_size):
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            output = network(**(inputs := tokens.batch(rows)))
        if "logits" in output:
            taken = output.logits
        elif is_decoder(network.config):
            taken = last_token(output.last_hidden_state, inputs)
        else:
            taken = output.last_hidden_state[:, 0]
        taken = taken.float().cpu().numpy()
        if result is None:
            result = np.empty((len(corpus), taken.shape[1]), np.float32)
        result[rows] = taken
    return result
