"""What a run is: every setting that decides the numbers of one training, and the readable id that follows from them.

Two runs with equal specs on equal data are the same run, and the store (`nli_lib.store`) finds the finished one by its
id. Nothing here computes.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from nli_lib import paths

View = Literal["pair", "hypothesis", "premise"]


class RunSpec(BaseModel):
    """Every setting that decides the numbers of one training run.

    The defaults are the recipe of WANLI (its Tables 4 and 5): RoBERTa-large, 5 epochs, learning rate 1e-5, batch
    32, weight decay 0.1 (none on bias and LayerNorm), linear decay after a warm-up of 6 % of the steps, gradients
    clipped at norm 1, at most 128 word pieces. `capture` says when the logits of an epoch are recorded: "eval", in
    an evaluation pass after the epoch (WANLI and the difficulty paper), or "train", in the training pass itself with dropout on
    (cartography).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    corpus: str = Field(description="name of a corpus, or the path of a user's own file")
    split: str = "train"
    limit: int | None = Field(None, ge=1, description="seeded sample of so many rows; None takes all")
    subset: str = Field("all", description="name of the selection that was kept; part of the run's identity")
    view: View = "pair"
    model: str = Field("roberta-large", description="offline name, hub id or local folder of an encoder")
    epochs: int = Field(5, ge=1)
    batch_size: int = Field(32, ge=1)
    learning_rate: float = Field(1e-5, gt=0)
    warmup: float = Field(0.06, ge=0, lt=1, description="share of all steps")
    weight_decay: float = Field(0.1, ge=0)
    clip: float = Field(1.0, gt=0, description="largest gradient norm")
    max_length: int = Field(128, ge=8)
    precision: Literal["bf16", "fp32"] = "bf16"
    capture: Literal["eval", "train"] = "eval"
    seed: int = Field(0, ge=0)

    @property
    def id(self) -> str:
        """A name a person can read in a folder listing, ending in a digest of every field."""
        words = (
            Path(self.corpus).name,
            self.split,
            str(self.limit or "all"),
            self.subset,
            self.view,
            Path(self.model).name,
            self.capture,
            f"s{self.seed}",
            hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:8],
        )
        return re.sub(r"[^\w.=-]+", "-", "_".join(words))

    @property
    def folder(self) -> Path:
        return paths.RUNS / self.id
