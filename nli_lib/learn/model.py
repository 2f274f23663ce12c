"""Encoders with a classification head: loaded from a local folder, a hub id or an offline name, always in fp32.

The lower layers of a language model that a package ships serve as an encoder of a second family on machines without a
hub. SmolLM2-135M reads from left to right, was trained to predict the next word, and has byte-level word pieces, rotary
positions and gated layers; MiniLM is a BERT, distilled and then tuned on sentence pairs. They share no training text,
tokenizer, objective or weight.
"""

import functools
from pathlib import Path

import torch
import transformers
from tokenizers.processors import TemplateProcessing
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from nli_lib.errors import TrainingError
from nli_lib.learn.text import LOWER_LAYERS, OFFLINE_MODELS, once, resolve_model
from nli_lib.paths import MODELS

END = "<|endoftext|>"  # separates documents in SmolLM2's training; here it ends each text, and the last one is read


def lower_layers(weights: Path, layers: int, target: Path) -> Path:
    """Write the lowest `layers` layers of the model in the GGUF file `weights` to `target`, in transformers' format.

    Written once; `target` is complete or absent. The tokenizer ends each text with `END`, which separates the texts of
    a pair, and the last token, which a classifier on a decoder reads, has seen everything.

    Notes
    -----
    *Departures*: the file's weights are quantised (four bits and an offset); they are converted to fp32 and trained
    further in it. The last layer norm is the whole model's, trained on the output of its last layer.
    """
    source = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}

    def write(draft: Path) -> None:
        part_of(transformers.AutoModel, source, num_hidden_layers=layers, use_cache=False).save_pretrained(draft)
        tokenizer = transformers.AutoTokenizer.from_pretrained(**source)
        ends = [(END, tokenizer.convert_tokens_to_ids(END))]
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single=f"$A {END}", pair=f"$A {END} $B {END}", special_tokens=ends
        )
        tokenizer.save_pretrained(draft)

    return once(target, write)


def part_of(kind: type, source: dict[str, str], **changes: object) -> PreTrainedModel:
    """Make a model of `kind` in fp32 from the weights in `source` that a config with these `changes` has.

    A model read from a quantised file cannot be saved, so its weights are copied into a new one.
    """
    whole = kind.from_pretrained(**source, dtype=torch.float32).state_dict()
    config = transformers.AutoConfig.from_pretrained(**source, **changes)
    model = kind.from_config(config, dtype=torch.float32)
    model.load_state_dict({name: whole[name] for name in model.state_dict()})
    return model


# ---------------------------------------------------------------- model


# A run's about.json has what transformers' load reports and progress bars would say.
logging.set_verbosity_error()
logging.disable_progress_bar()


def find_model(name: str) -> str:
    """The local folder or hub id of the encoder `name`; a part of a language model is made at its first use."""
    path = resolve_model(name)
    if name not in LOWER_LAYERS:
        return path
    return str(lower_layers(Path(path), LOWER_LAYERS[name], MODELS / name))


def load_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """The tokenizer of the model `name`, loaded once. Raises `TrainingError`."""
    try:
        return _tokenizer(find_model(name))
    except (OSError, ValueError) as error:
        offline, why = ", ".join(OFFLINE_MODELS), str(error).partition("\n")[0]
        cure = f"Name one that a package ships ({offline}), a folder that save_pretrained wrote, or a hub id"
        raise TrainingError(f"model {name!r}: {why} {cure} that can be reached.") from None


@functools.lru_cache(maxsize=8)
def _tokenizer(path: str) -> PreTrainedTokenizerBase:
    return transformers.AutoTokenizer.from_pretrained(path)


def load_classifier(name: str, classes: tuple[str, ...], seed: int) -> tuple[PreTrainedModel, list[str]]:
    """Load the encoder `name` with a head for `classes`; return it with the names of the new parameters.

    Parameters that are not in the checkpoint (usually the head) are initialised from `seed`. A checkpoint with a head
    for the same class names in the same order keeps it, so a run can continue from another run's model; any other head
    is an error, because its outputs would silently change their meaning.
    """
    path = find_model(name)
    named = {"num_labels": len(classes), "id2label": dict(enumerate(classes))}
    named |= {"label2id": {label: index for index, label in enumerate(classes)}}
    torch.manual_seed(seed)
    own = transformers.AutoConfig.from_pretrained(path)
    given = {**named, "dtype": torch.float32, "ignore_mismatched_sizes": True, "output_loading_info": True}
    model, loading = transformers.AutoModelForSequenceClassification.from_pretrained(path, **given)
    new = sorted(set(loading["missing_keys"]) | {key for key, *_ in loading["mismatched_keys"]})
    head = {key for key, _ in model.named_parameters() if not key.startswith(f"{model.base_model_prefix}.")}
    if head and head.isdisjoint(new) and own.id2label != named["id2label"]:
        cure = "give the encoder without that head"
        heads = f"has a head for {list(own.id2label.values())}, this corpus has {list(classes)}"
        raise TrainingError(f"model {name!r} {heads}; {cure}")
    return model, new


def is_decoder(config: transformers.PreTrainedConfig) -> bool:
    """True if a model reads from left to right: transformers has it as a causal language model, not as a masked one."""
    kind = type(config)
    return kind in transformers.MODEL_FOR_CAUSAL_LM_MAPPING and kind not in transformers.MODEL_FOR_MASKED_LM_MAPPING


def text_vector(model: PreTrainedModel, hidden: torch.Tensor, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """The vector of each text (B, W) from the last hidden states of all tokens (B, L, W) and the inputs: the first
    token's, or for a decoder, in which the first token has seen nothing, the last token's."""
    if not is_decoder(model.config):
        return hidden[:, 0]
    mask = inputs.get("attention_mask")
    last = mask.sum(1) - 1 if mask is not None else hidden.new_full((len(hidden),), hidden.shape[1] - 1).long()
    return hidden[torch.arange(len(hidden), device=hidden.device), last]


def pick_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@functools.cache
def takes_bf16(precision: str) -> bool:
    """True if a model of this `precision` is computed in bf16 on this machine.

    A CPU without bf16 units (AMX, AVX512-BF16, ARM's BF16) emulates such numbers, many times slower than fp32, so it
    computes a "bf16" model in fp32.
    """
    units = (has for name, has in torch.cpu.get_capabilities().items() if "bf16" in name)
    return precision == "bf16" and (pick_device().type != "cpu" or any(has is True for has in units))


class ExactLinear(nn.Linear):
    """A linear layer that is computed in fp32 under autocast too."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        with torch.autocast(values.device.type, enabled=False):
            return super().forward(values.float())


def exact_output(model: PreTrainedModel) -> None:
    """Compute the layers that produce the logits, outside the encoder, in fp32.

    In bf16 a logit of 3 is only known to 0.016, too little for confidence, variability and margins, and the layer costs
    nothing.
    """
    encoder = set(model.base_model.modules())
    for module in model.modules():
        last = type(module) is nn.Linear and module.out_features == model.config.num_labels
        if last and module not in encoder:
            module.__class__ = ExactLinear
