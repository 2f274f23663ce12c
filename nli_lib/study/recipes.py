"""The papers' training recipes, where they differ from the defaults of `RunSpec`."""

from __future__ import annotations

# The recipe by which the difficulty paper sorts examples (its section 4 and released code, H1), where it differs from the
# defaults. Its learning rate, 1e-5 in the paper and 5e-6 in the code, is for RoBERTa-base; here the scale's is taken.
CHARACTERISE = {"epochs": 5, "weight_decay": 0.05, "clip": 1.5, "warmup": 0.2, "max_length": 256}

# The recipe of the consensus cleaning paper, which says three epochs and nothing else; the rest are the defaults of Hugging Face's
# Trainer, which its vocabulary points to (E1), but for batches of 32 instead of 8. The logits of the training itself
# are not needed, so they are taken in passing.
CLEAN = {"epochs": 3, "weight_decay": 0.0, "warmup": 0.0, "capture": "train"}
