"""sentence_vectors: texts as vectors, by an encoder that was trained to make them comparable."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from transformers import AutoModel

from nli_lib.learn.encode import encode, sorted_batches
from nli_lib.learn.fast import speed_up
from nli_lib.learn.model import exact_output, find_model, load_tokenizer, pick_device

LONGEST = 256  # word pieces, as all-MiniLM-L6-v2 was released


@torch.inference_mode()
def sentence_vectors(texts: Sequence[str], *, model: str = "minilm", batch_size: int = 64) -> np.ndarray:
    """Vectors (N, D) float32 of length 1: the mean of a text's word pieces in the last layer, in single precision.

    `model` is an offline name, a local folder or a hub id. The pooling is that of sentence-transformers for the
    all-MiniLM models, with the same vectors; each distinct text is encoded once.
    """
    place, distinct = pd.factorize(np.asarray(texts, dtype=object))
    if not len(distinct):
        raise ValueError("no texts to make vectors of")
    device, network = pick_device(), AutoModel.from_pretrained(find_model(model), dtype=torch.float32)
    network.to(device).eval()
    exact_output(network)
    speed_up(network)
    tokens = encode(list(distinct), None, load_tokenizer(model), LONGEST).to(device)
    found = np.empty((len(distinct), network.config.hidden_size), np.float32)
    for rows in sorted_batches(tokens.lengths, batch_size):
        states = network(**tokens.batch(rows)).last_hidden_state  # (B, L, D)
        lengths = torch.from_numpy(tokens.lengths[rows]).to(device)
        inside = torch.arange(states.shape[1], device=device) < lengths[:, None]
        means = (states * inside[..., None]).sum(dim=1) / lengths[:, None]
        found[rows] = torch.nn.functional.normalize(means, dim=1).cpu().numpy()
    return found[place]
