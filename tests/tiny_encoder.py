"""A tiny BERT with random weights that knows the words it is given: its training takes a blink."""

from pathlib import Path

import torch
from transformers import BertConfig, BertModel, BertTokenizerFast


def write_encoder(folder: Path, words, *, width: int = 32) -> str:
    """Write encoder and tokenizer into a folder; its path, as `RunSpec.model` takes it."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").write_text("\n".join(entries), encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(1)
    sizes = {"hidden_size": width, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 2 * width}
    BertModel(BertConfig(vocab_size=len(entries), max_position_embeddings=300, **sizes)).save_pretrained(folder)
    return str(folder)
