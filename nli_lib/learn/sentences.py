"""Vectors of single texts: the mean of an encoder's last hidden states over the tokens."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel

from nli_lib.learn.model import find_model, load_tokenizer, pick_device

LONGEST = 256  # word pieces; longer texts are cut


def sentence_vectors(texts: Sequence[str], *, model: str = "minilm", batch_size: int = 64) -> NDArray[np.float32]:
    """(N, D) one vector a text, of any length, dropout off.

    model  offline name, hub id or local folder of an encoder that averages its tokens, as sentence encoders do
    Every distinct text is encoded once, in batches of like length.
    """
    place, distinct = _factorized(texts)
    if not len(distinct):
        return np.empty((0, 0), dtype=np.float32)
    tokenizer, device = load_tokenizer(model), pick_device()
    network = AutoModel.from_pretrained(find_model(model), dtype=torch.float32).to(device).eval()
    order = np.argsort([len(text) for text in distinct], kind="stable")
    found = None
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        batch = tokenizer(
            [distinct[row] for row in rows], padding=True, truncation=True, max_length=LONGEST, return_tensors="pt"
        ).to(device)
        with torch.inference_mode():
            hidden = network(**batch).last_hidden_state
        mask = batch["attention_mask"][:, :, None].to(hidden.dtype)
        means = ((hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)).cpu().numpy()
        found = np.empty((len(distinct), means.shape[1]), dtype=np.float32) if found is None else found
        found[rows] = means
    return found[place]


def _factorized(texts: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    known = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    return np.array([known[text] for text in texts], dtype=np.int64), list(known)
