"""Layers written out as one differentiable step each, in the place of transformers' own."""

from collections.abc import Callable

import torch
from torch import nn
from transformers import PreTrainedModel

from nli_lib.learn.fast import bert, llama
from nli_lib.learn.fast.attention import NAME
from nli_lib.learn.fast.dropout import LARGEST_RATE, RandomBits

KINDS = dict.fromkeys(bert.BUILT_LIKE_BERT, bert.FusedLayer) | dict.fromkeys(llama.BUILT_LIKE_LLAMA, llama.FusedLayer)


def install(model: PreTrainedModel, source: RandomBits, probe: Callable[[], torch.Tensor]) -> list[str]:
    """Replace `model`'s layers by written-out ones where those give the same output; returns in words what is special.

    `model` must be in evaluation mode on the CPU in fp32, its attention installed; `probe` as in `fast.speed_up`.
    """
    lists = [each for each in model.modules() if isinstance(each, nn.ModuleList)]
    stacks = [each for each in lists if {type(layer).__name__ for layer in each} & KINDS.keys()]
    if len(stacks) != 1 or model.config._attn_implementation != NAME:
        return ["layers stay transformers' own: not built like BERT's or Llama's"]
    (stack,) = stacks
    fused = [KINDS[type(layer).__name__](layer, source).eval() for layer in stack]
    if any(max(layer.rates) > LARGEST_RATE for layer in fused):
        return ["layers stay transformers' own: a dropout rate is too large for the fast masks"]
    if not all(layer.agrees() for layer in fused):
        return ["layers stay transformers' own: written out they give another output"]
    first = isinstance(fused[-1], bert.FusedLayer) and _only_first_token_counts(stack[-1], probe)
    for at, layer in enumerate(fused):
        stack[at] = layer
    if not first:
        return []
    fused[-1].first = True
    return ["the last layer is computed for the first token, which alone the head reads"]


def release(model: nn.Module) -> None:
    """Give `model` its own layers back, with the weights of the written-out ones."""
    for stack in [each for each in model.modules() if isinstance(each, nn.ModuleList)]:
        for at, layer in enumerate(stack):
            if isinstance(layer, bert.FusedLayer | llama.FusedLayer):
                stack[at] = layer.release()


@torch.no_grad()
def _only_first_token_counts(last: nn.Module, probe: Callable[[], torch.Tensor]) -> bool:
    """Whether the probe stays the same, to the bit, when the other tokens' results of the last layer are perturbed."""

    def perturb(_module: nn.Module, _inputs: tuple, output: torch.Tensor) -> torch.Tensor:
        return torch.cat([output[:, :1], output[:, 1:] * -7 + 3], dim=1)

    whole = probe()
    hook = last.register_forward_hook(perturb)
    perturbed = probe()
    hook.remove()
    return torch.equal(whole, perturbed)
