"""What a run is: every setting that decides the numbers of one training, and the readable id that follows from them.

Two runs with equal specs on equal data are the same run, and the store (`nli_lib.store`) finds the finished one by its
id. Nothing here computes.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from nli_lib import paths

View = Literal["pair", "hypothesis", "premise"]
LONGEST_ID = 200  # bytes; file systems take names of 255, and drafts and locks add to ours
RUN = "run:"  # `model="run:<id>"` starts from the model of another run in the store, wherever the store lies


class RunSpec(BaseModel):
    """Every setting that decides the numbers of one training run.

    The defaults are the recipe of WANLI (its Tables 4 and 5): RoBERTa-large, 5 epochs, learning rate 1e-5, batch 32,
    weight decay 0.1 (none on bias and LayerNorm), linear decay after a warm-up of 6% of the steps, gradients clipped
    at norm 1, at most 128 word pieces. `study.dial` holds what the other papers change.

    The id depends only on the fields that differ from their defaults, so a new field changes no id as long as its
    default is what was done before. A default must therefore never change.

    Raises
    ------
    ValueError
        (pydantic's `ValidationError`) naming the field for unknown, mistyped and impossible settings.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    corpus: str = Field(description="name of a corpus, or the path of a user's own file")
    content: str | None = Field(None, description="digest of a user's own file: a corrected file is another corpus")
    split: str = "train"
    limit: int | None = Field(None, ge=1, description="seeded sample of so many rows; None takes all")
    subset: str = Field("all", description="name of the selection that was kept; part of the run's identity")
    view: View = "pair"
    model: str = Field("roberta-large", description='offline name, hub id, local folder or "run:<id>" of an encoder')
    objective: str = Field("classify", description="name of what is learnt, see `learn.fit`")
    epochs: int = Field(5, ge=1, description="at most so many where `patience` is given")
    batch_size: int = Field(32, ge=1)
    learning_rate: float = Field(1e-5, gt=0)
    schedule: Literal["linear", "constant"] = Field("linear", description="after the warm-up: down to 0, or as it is")
    warmup: float = Field(0.06, ge=0, lt=1, description="share of all steps")
    warmup_steps: int | None = Field(None, ge=0, description="warm-up in steps; replaces the share `warmup`")
    weight_decay: float = Field(0.1, ge=0)
    epsilon: float = Field(1e-8, gt=0, description="AdamW's epsilon")
    clip: float | None = Field(1.0, gt=0, description="largest gradient norm; None clips nothing")
    patience: int | None = Field(None, ge=1, description="stop after so many epochs without a better `watch`")
    watch: Literal["accuracy", "loss"] = Field("accuracy", description="what `patience` watches on `validation`")
    validation: str = Field("validation", description="name of the split that `patience` watches")
    max_length: int = Field(128, ge=8, description="word pieces; longer examples are cut")
    precision: Literal["bf16", "fp32"] = "bf16"
    capture: Literal["eval", "train"] = Field(
        "eval",
        description='when the logits of an epoch are recorded: "eval", in an evaluation pass after the epoch (WANLI '
        'and the difficulty paper), or "train", in the training pass itself with dropout on (cartography)',
    )
    record: Literal["every", "last"] = Field("every", description="of which epochs the logits are recorded")
    seed: int = Field(0, ge=0)
    models: Literal["last", "all"] = Field(
        "last", description='"all" keeps the model of every epoch, for `learn.predict.predict_epochs`'
    )

    @property
    def id(self) -> str:
        """A name a person can read in a folder listing, ending in a digest of every field that is not at its default.

        At most `LONGEST_ID` bytes: the readable part is cut where it is longer.
        """
        model = "model" if self.model.startswith(RUN) else Path(self.model).name
        words = (Path(self.corpus).name, self.split, str(self.limit or "all"), self.subset, self.view, model)
        readable = re.sub(r"[^\w.=-]+", "-", "_".join((*words, self.capture, f"s{self.seed}")))
        settings = json.dumps(self.model_dump(exclude_defaults=True), sort_keys=True)
        digest = hashlib.sha256(settings.encode()).hexdigest()[:8]
        return f"{readable.encode()[: LONGEST_ID - 9].decode(errors='ignore')}_{digest}"

    @property
    def folder(self) -> Path:
        return paths.RUNS / self.id


DEFAULTS = {name: field.get_default() for name, field in RunSpec.model_fields.items() if not field.is_required()}
