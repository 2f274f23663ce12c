"""Language models for the generator: by hub id, by folder, or one of those that are made of the packaged SmolLM2.

    spec = RunSpec(corpus="snli", model=language_model("smollm2"), ...)

A name that is made here is also entered where `learn.encoders` looks names up, so that a run can be called by it on any
machine.
"""

import json
from pathlib import Path
from typing import NamedTuple

import torch
from filelock import FileLock
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from nli_lib import paths
from nli_lib.learn.encoders import HUB_MODELS, LOWER_LAYERS, resolve_model
from nli_lib.learn.model import find_model
from nli_lib.store import atomic

PACKAGED = "smollm2-6"  # the name under which `learn.encoders` knows the package's file


class Part(NamedTuple):
    """How much of SmolLM2-135M a model has: its lowest `layers`, its first `pieces` of the vocabulary; None is all."""

    layers: int | None = None
    pieces: int | None = None


PARTS = {
    "smollm2": Part(),
    # For the scale smoke. Byte-pair encoding finds the frequent word pieces first, so the first ones write any text, in
    # more of them; the output layer over all 49,152 would cost four times what the two layers do.
    "smollm2-2": Part(layers=2, pieces=4096),
}


def language_model(name: str) -> str:
    """The name itself, when what it stands for is there: one of `PARTS` is made at its first use."""
    if name in PARTS:
        HUB_MODELS[name] = str(make(PARTS[name], paths.MODELS / name))
    return name


def make(part: Part, target: Path) -> Path:
    """Write a part of the packaged model to `target` in transformers' format, once; `target` is whole or absent.

    *Departures*: the package's weights are quantised (four bits and an offset); they are taken as fp32. A model of the
    lower layers keeps the last norm of the whole one, which was made for the output of its last layer.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):  # another process may be making it
        if target.is_dir():
            return target
        source = _source(part)
        config = AutoConfig.from_pretrained(**source)
        config.num_hidden_layers = part.layers or config.num_hidden_layers
        # a model as it is read from a quantised file refuses to be saved, so its weights go into a new one
        whole = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32).state_dict()
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        model.load_state_dict({name: whole[name] for name in model.state_dict()})
        tokenizer = AutoTokenizer.from_pretrained(**source)
        tokenizer.backend_tokenizer.post_processor = None  # what ends a text is the objective's to say
        if part.pieces is not None:
            model.resize_token_embeddings(part.pieces)
            tokenizer = first_pieces(tokenizer, part.pieces)
        with atomic(target) as draft:
            model.save_pretrained(draft)
            tokenizer.save_pretrained(draft)
    return target


def _source(part: Part) -> dict[str, str]:
    """Where the weights are read from: the lower layers that an encoder uses are read faster, if they are enough."""
    if part.layers is not None and part.layers <= LOWER_LAYERS[PACKAGED]:
        return {"pretrained_model_name_or_path": find_model(PACKAGED)}
    weights = Path(resolve_model(PACKAGED))
    return {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}


def first_pieces(tokenizer: PreTrainedTokenizerFast, count: int) -> PreTrainedTokenizerFast:
    """A byte-pair tokenizer with the first `count` ids: special tokens, bytes, and the merges learnt first.

    It is the tokenizer that the same training would have given, had it stopped at this size.
    """
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    vocabulary = {piece: at for piece, at in state["model"]["vocab"].items() if at < count}
    merges = [pair for pair in state["model"]["merges"] if "".join(pair) in vocabulary]
    state["model"] |= {"vocab": vocabulary, "merges": merges}
    cut = type(tokenizer.backend_tokenizer).from_str(json.dumps(state))
    special = {"bos_token": tokenizer.bos_token, "eos_token": tokenizer.eos_token, "pad_token": tokenizer.pad_token}
    return PreTrainedTokenizerFast(tokenizer_object=cut, **special)
