"""A tiny encoder with random weights that knows the words it is given: its training takes a blink."""

from pathlib import Path

import torch
import transformers

SIZES = {
    "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 300}  # fmt: skip


def write_encoder(folder: Path, words, *, family: str = "Bert", sizes: dict = SIZES, **how: object) -> str:
    """Write encoder and tokenizer (made as `how` says) into a folder; its path, as `RunSpec.model` takes it."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").write_text("\n".join(entries), encoding="utf-8")
    transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"), **how).save_pretrained(folder)
    torch.manual_seed(1)
    config = getattr(transformers, f"{family}Config")(vocab_size=len(entries), pad_token_id=0, **sizes)
    getattr(transformers, f"{family}Model")(config).save_pretrained(folder)
    return str(folder)


def go_through(loop, epochs=1):
    """Train a `Loop` for its first epochs."""
    for epoch in range(epochs):
        for rows in loop.start_epoch(epoch):
            loop.step(rows)
