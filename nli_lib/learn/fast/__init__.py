"""What makes training and prediction fast on a CPU, behind one door: `speed_up` puts it in, `restore` takes it out.

    vocabulary   only the word pieces that occur are trained
    dropout      masks cut from fast random bits
    attention    batched products made for sentences instead of a kernel made for long texts
    layers       a layer of BERT or Llama written out as one differentiable step (`bert`, `llama`); the last one of BERT
                 for its first token alone where that is enough

Each is exact, or equal in distribution, to what it stands in for; each leaves alone what it does not fit. On a GPU only
the vocabulary is cut. What each is worth: `python benchmarks/fine_tuning.py --parts`.
"""

from collections.abc import Callable, Iterable
from types import SimpleNamespace

import torch
from transformers import PreTrainedModel

from nli_lib.learn.fast import attention, dropout, layers, vocabulary


def speed_up(
    model: PreTrainedModel, tokens: Iterable = (), probe: Callable[[], torch.Tensor] | None = None
) -> list[str]:
    """Make `model` fast on the device where it lies, in place; returns in words what is special about it.

    tokens  all `Tokens` that the model will be trained on or scored with meanwhile
    probe   gives a tensor of all numbers that come of one forward pass as it will be trained; without one the model
            is only made fast for prediction, and `restore` is not needed
    """
    bits = dropout.RandomBits()
    on_cpu, notes = model.device.type == "cpu", []
    model.fast = SimpleNamespace(bits=bits, whole=None)
    if probe is not None:
        ids = torch.unique(torch.cat([each.vocabulary for each in tokens])).to(model.device)
        model.fast.whole, note = vocabulary.compact(model, ids)
        notes.append(note)
        if on_cpu:
            dropout.install(model, bits)
    if on_cpu:
        notes += attention.install(model, bits)
    if on_cpu and probe is not None:
        notes += layers.install(model, bits, probe)
    return notes


def reseed(model: PreTrainedModel, *seed: int) -> None:
    """Start the dropout's random bits again at the stream named by `seed`."""
    model.fast.bits.reseed(*seed)


def restore(model: PreTrainedModel, decay_product: float) -> None:
    """Give a trained `model` its own layers and whole vocabulary back, with the trained weights.

    decay_product  what all steps multiplied a decayed weight without gradients by; so are the word pieces left out
    """
    layers.release(model)
    vocabulary.restore(model, model.fast.whole, decay_product)
