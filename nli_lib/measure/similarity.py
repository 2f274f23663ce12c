"""How alike premise and hypothesis are, as a sentence encoder sees them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.errors import packages
from nli_lib.learn.encoders import resolve_model
from nli_lib.measure.check import check_pairs


def similarity(premises: Sequence[str], hypotheses: Sequence[str], *, model: str = "minilm") -> NDArray[np.float64]:
    """Cosine of the sentence embeddings of premise and hypothesis, -1 to 1; high = alike.

    Shapes: two sequences of N strings -> (N,).
    Formula: (u . v) / (|u| |v|), u and v the embeddings of the two sentences by the same encoder.
    Every distinct sentence is encoded once, in batches of sentences of like length.
    `model` is an offline name, a local folder or a hub id.
    Source: WANLI, section 4.3 and Figure 4. *Departures*: the paper does not name its encoder; "minilm" is
    all-MiniLM-L6-v2, whose training data include SNLI and MultiNLI pairs, so name the encoder beside the figure.
    """
    with packages("sentence embeddings"):
        from sentence_transformers import SentenceTransformer  # takes seconds, and torch, to import
    pairs = check_pairs(premises, hypotheses)
    if pairs == 0:
        return np.empty(0)
    both = np.concatenate([np.asarray(premises, object), np.asarray(hypotheses, object)])
    place, distinct = pd.factorize(both)
    with packages("sentence embeddings"):
        encoder = SentenceTransformer(resolve_model(model))
    vectors = encoder.encode(list(distinct), batch_size=64, normalize_embeddings=True, show_progress_bar=False)
    first, second = vectors[place[:pairs]], vectors[place[pairs:]]  # (N, D) each
    return np.clip(np.einsum("nd,nd->n", first, second, dtype=np.float64), -1.0, 1.0)
