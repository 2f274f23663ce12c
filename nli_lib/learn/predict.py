"""predict and embed: what a trained run, or any ready model, says about a corpus."""

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, PreTrainedModel

from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.labels import LABELS, head_columns
from nli_lib.learn.encode import encode, sorted_batches
from nli_lib.learn.fast import speed_up
from nli_lib.learn.fit import Run
from nli_lib.learn.model import exact_output, find_model, load_tokenizer, pick_device, takes_bf16
from nli_lib.spec import RunSpec
from nli_lib.store import StoreError, atomic, reading


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


def embed(model: Run | str, corpus: Corpus, *, batch_size: int = 64) -> np.ndarray:
    """Vectors (N, D) float32 of the N examples: the first token in the last hidden layer of a run's or a ready model's
    encoder, which is WANLI's neighbour space."""
    return _outputs(model, corpus, "cls", batch_size)


def _outputs(model: Run | str, corpus: Corpus, what: str, batch_size: int) -> np.ndarray:
    """ "logits" or "cls" of a run, kept in its folder, or of a ready model, with the settings of a run by default."""
    kind = AutoModelForSequenceClassification if what == "logits" else AutoModel
    if not isinstance(model, Run):
        network = kind.from_pretrained(find_model(model), dtype=torch.float32)
        return _pass(network, RunSpec(corpus="any", model=model), corpus, batch_size)
    path = model.folder / "predictions" / f"{what}-{corpus.digest[:24]}.npy"
    if not path.exists():
        if not model.store.done.all():
            raise StoreError(f"{model.folder}: the run is not finished; call fit again to end it")
        model.store.verify("model")
        with model.store.reading("model"):
            network = kind.from_pretrained(model.model, dtype=torch.float32)
        spec = model.spec.model_copy(update={"model": str(model.model)})
        with atomic(path) as draft, draft.open("wb") as file:
            np.save(file, _pass(network, spec, corpus, batch_size))
    with reading(path, "delete this file to compute it again"):
        return np.load(path)


@torch.inference_mode()
def _pass(network: PreTrainedModel, spec: RunSpec, corpus: Corpus, batch_size: int) -> np.ndarray:
    """One pass over the corpus as `spec` reads it, longest examples first: the logits of a classifier, or [CLS]."""
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
            output = network(**tokens.batch(rows))
        taken = (output.logits if "logits" in output else output.last_hidden_state[:, 0]).float().cpu().numpy()
        if result is None:
            result = np.empty((len(corpus), taken.shape[1]), np.float32)
        result[rows] = taken
    return result
