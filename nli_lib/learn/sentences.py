"""Sentences and pairs as a frozen sentence encoder has them: no training, no gradient."""

import time
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.errors import packages
from nli_lib.learn.encoders import resolve_model

CHUNK = 4_096  # sentences between two words on progress


def sentence_vectors(
    texts: Sequence[str], *, model: str = "minilm", say: Callable[[str], None] | None = None
) -> NDArray[np.float32]:
    """One vector a text, (N, D), as the encoder's own pooling makes it; equal texts have equal vectors.

    model  offline name, hub id or local folder, as sentence-transformers reads it
    Every distinct text is encoded once, the longest first; `say` is told how far it is, with the time that is left.
    Raises `PackageError` where the encoder is not installed.
    """
    with packages("sentence embeddings"):
        from sentence_transformers import SentenceTransformer  # takes seconds, and torch, to import

        encoder = SentenceTransformer(resolve_model(model))
    place, distinct = pd.factorize(np.asarray(texts, object))
    sizes = np.array([len(text) for text in distinct], dtype=int)
    order = np.argsort(-sizes, kind="stable")
    vectors, begun = np.zeros((len(distinct), encoder.get_embedding_dimension()), np.float32), time.monotonic()
    letters = np.cumsum(sizes[order])
    for start in range(0, len(order), CHUNK):
        rows = order[start : start + CHUNK]
        vectors[rows] = encoder.encode([distinct[at] for at in rows], batch_size=64, show_progress_bar=False)
        done = start + len(rows)
        if say:
            left = (time.monotonic() - begun) * (letters[-1] / letters[done - 1] - 1)
            say(f"{done:,} of {len(order):,} sentences encoded; about {left:,.0f} s left")
    return vectors[place]


def pair_vectors(
    premises: Sequence[str],
    hypotheses: Sequence[str],
    *,
    model: str = "minilm",
    say: Callable[[str], None] | None = None,
) -> NDArray[np.float32]:
    """Both sentences of N pairs and how they differ, (N, 4 D): u, v, |u - v| and u * v, u and v of unit length.

    Source: the features of InferSent (Conneau et al., 2017). "minilm" was tuned on pairs of SNLI and MultiNLI, though
    not to predict their labels.
    """
    both = np.concatenate([np.asarray(premises, object), np.asarray(hypotheses, object)])
    vectors = sentence_vectors(both, model=model, say=say)
    u, v = np.split(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 2)
    return np.hstack([u, v, np.abs(u - v), u * v])
