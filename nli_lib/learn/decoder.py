"""Encoders for machines without a hub: the lower layers of what a package ships.

Those of MiniLM are the small encoder of scale smoke. Those of a language model are an encoder of another family:
SmolLM2-135M reads from left to right, was trained to predict the next word, and has byte-level word pieces, rotary
positions and gated layers; the MiniLM beside it is a BERT, distilled and then tuned on sentence pairs. They share
neither text, nor tokenizer, nor objective, nor a single weight.
"""

from pathlib import Path

import torch
from filelock import FileLock
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from nli_lib.store import atomic

END = "<|endoftext|>"  # what SmolLM2 saw between two documents; here it ends each text, and the last one is read


def lower_layers(weights: Path, layers: int, target: Path) -> Path:
    """Write the lowest `layers` layers of the model `weights` to `target`, in transformers' format.

    weights   folder of an encoder in transformers' format, or the GGUF file of a language model

    Made once; `target` is whole or absent. A language model's tokenizer closes each text with `END`, so that a pair is
    told apart and a classifier, which reads the last token of a decoder, reads one that has seen everything.

    *Departures*: a pooler or a last layer norm is the whole model's, made for the output of its last layer. A GGUF
    file's file's weights are quantised (four bits and an offset); they are taken as fp32 and trained on as such.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = _of_encoder if weights.is_dir() else _of_language_model
    with FileLock(f"{target}.lock"):  # another process may be making it
        if target.is_dir():
            return target
        lower, tokenizer = part(weights, layers)
        with atomic(target) as draft:
            lower.save_pretrained(draft)
            tokenizer.save_pretrained(draft)
    return target


def _of_encoder(folder: Path, layers: int) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    model = AutoModel.from_pretrained(folder, num_hidden_layers=layers, dtype=torch.float32)
    return model, AutoTokenizer.from_pretrained(folder)


def _of_language_model(file: Path, layers: int) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    # a model as it is read from a quantised file refuses to be saved, so its weights go into a new one
    whole = AutoModel.from_pretrained(**source, dtype=torch.float32).state_dict()
    config = AutoConfig.from_pretrained(**source, num_hidden_layers=layers, use_cache=False)
    lower = AutoModel.from_config(config, dtype=torch.float32)
    lower.load_state_dict({name: whole[name] for name in lower.state_dict()})
    tokenizer = AutoTokenizer.from_pretrained(**source)
    ends = [(END, tokenizer.convert_tokens_to_ids(END))]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"$A {END}", pair=f"$A {END} $B {END}", special_tokens=ends
    )
    return lower, tokenizer
