"""Tiny models with random weights in the hub's own formats, whose training takes a blink: encoders that know the words
they are given, and causal language models with a tokenizer that knows `WORDS`."""

from pathlib import Path

import torch
import transformers
from tiny_words import WORDS
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from tokenizers.decoders import ByteLevel
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

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


END, NAMES = "<|endoftext|>", ["entailment", "neutral", "contradiction"]


def make_tokenizer(**special):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=360, special_tokens=[END, "<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())  # fmt: skip
    tokenizer.train_from_iterator([" ".join(WORDS), *NAMES, *WORDS] * 3, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, **special)


def make_language_model(folder, kind="gpt2", *, seed=1):
    """The path of a model of two layers, 32 wide: "gpt2" (dropout 0.1, END at both ends) or "llama" (a start
    of its own, grouped attention heads)."""
    torch.manual_seed(seed)
    if kind == "gpt2":
        tokenizer = make_tokenizer()
        config = GPT2Config(vocab_size=len(tokenizer), n_positions=96, n_embd=32, n_layer=2, n_head=2, eos_token_id=0,
            bos_token_id=0)  # fmt: skip
        model = GPT2LMHeadModel(config)
    else:
        tokenizer = make_tokenizer(bos_token="<s>")
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
        config = LlamaConfig(vocab_size=len(tokenizer), intermediate_size=64, tie_word_embeddings=True, eos_token_id=0,
            bos_token_id=1, **sizes)  # fmt: skip
        model = LlamaForCausalLM(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
