"""The dial: what a scale means for each part of the study."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Scale(BaseModel):
    """One setting of the dial: which corpus, how much of it, which encoder, how many seeds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    corpus: str
    train_split: str
    test_split: str
    limit: int | None = Field(description="training pairs; None takes all")
    suite_limit: int | None = Field(description="pairs of each evaluation set; None takes all")
    compared: dict[str, str] = Field(description="corpora set beside each other as in WANLI, each with its split")
    compared_limit: int | None = Field(description="pairs of each compared corpus that a model is trained on")
    characterised: dict[str, tuple[str, str]] = Field(
        description="corpora sorted by difficulty as in the difficulty paper: the split that is sorted, and the one to train on"
    )
    characterised_limit: int | None = Field(description="pairs of each of those splits; None takes all")
    encoders: tuple[str, str] = Field(description="two encoders of different families, set beside each other")
    encoders_limit: int | None = Field(description="pairs that each of the two is trained on; None takes all")
    cleaned_limit: int | None = Field(description="training pairs that are searched for label errors; None takes all")
    cleaner: dict[str, str | float] = Field(
        {}, description="encoder and learning rate of the consensus cleaning paper, if not the scale's"
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
