"""An encoder of another family for machines without a hub: the lower layers of a language model that a package ships.

SmolLM2-135M reads from left to right, was trained to predict the next word, and has byte-level word pieces, rotary
positions and gated layers; the MiniLM beside it is a BERT, distilled and then tuned on sentence pairs. They share
neither text, nor tokenizer, nor objective, nor a single weight.
"""

from pathlib import Path

import torch
from filelock import FileLock
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig, AutoModel, AutoTokenizer

from nli_lib.store import atomic

END = "<|endoftext|>"  # what SmolLM2 saw between two documents; here it ends each text, and the last one is read


def lower_layers(weights: Path, layers: int, target: Path) -> Path:
    """Write the lowest `layers` layers of the model in the GGUF file `weights` to `target`, in transformers' format.

    Made once; `target` is whole or absent. The tokenizer closes each text with `END`, so that a pair is told apart and
    a classifier, which reads the last token of a decoder, reads one that has seen everything.

    *Departures*: the file's weights are quantised (four bits and an offset); they are taken as fp32 and trained on as
    such. The last layer norm is the whole model's, made for the output of its last layer.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    source = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    with FileLock(f"{target}.lock"):  # another process may be making it
        if target.is_dir():
            return target
        with atomic(target) as draft:
            whole = AutoModel.from_pretrained(**source, dtype=torch.float32).state_dict()
            config = AutoConfig.from_pretrained(**source, num_hidden_layers=layers, use_cache=False)
            lower = AutoModel.from_config(config, dtype=torch.float32)
            lower.load_state_dict({name: whole[name] for name in lower.state_dict()})
            lower.save_pretrained(draft)
            tokenizer = AutoTokenizer.from_pretrained(**source)
            ends = [(END, tokenizer.convert_tokens_to_ids(END))]
            tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
                single=f"$A {END}", pair=f"$A {END} $B {END}", special_tokens=ends
            )
            tokenizer.save_pretrained(draft)
    return target
