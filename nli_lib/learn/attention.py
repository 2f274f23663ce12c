"""Attention for short sequences on a CPU, registered so that any model on transformers' attention interface takes it.

PyTorch's own CPU attention has no fast path with dropout and works in fp32 there; on sentences its blocked kernel is
slow without dropout too. Here two batched products and one softmax do the work, with dropout from `RandomBits`.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from nli_lib.learn.dropout import LARGEST_RATE, RandomBits, drop

NAME = "short_sequences"  # under which `attention` stands in transformers' registry
EXTRAS = ("position_bias", "softcap", "cache", "s_aux")  # what other models ask for; theirs is transformers' function


def attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **others: object,
) -> tuple[torch.Tensor, None]:
    """softmax(query key' * scaling) value with dropout on the probabilities; (B, H, L, D) in, (B, L, H, D) out.

    A model that asks for more than this (grouped heads, position bias, causal order) gets transformers' own function.

    Departures: in bf16 the scores before the softmax are rounded to bf16, as in transformers' "eager" attention under
    autocast; the softmax itself is computed in fp32.
    """
    extra = any(others.get(name) is not None for name in EXTRAS)
    if extra or getattr(module, "is_causal", True) or query.shape != key.shape or dropout > LARGEST_RATE:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, **others)
    if torch.is_autocast_enabled("cpu"):
        lower = torch.get_autocast_dtype("cpu")
        query, key, value = query.to(lower), key.to(lower), value.to(lower)
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = torch.matmul(query * scaling, key.transpose(2, 3))  # (B, H, L, L)
    if attention_mask is not None:  # True where a key may be looked at
        scores = scores.masked_fill(~attention_mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(value.dtype)
    context = torch.matmul(drop(weights, dropout, module.random_bits), value)
    return context.transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, sdpa_mask)


def install(model: PreTrainedModel, source: RandomBits) -> list[str]:
    """Let `model` use `attention`; returns in words what it keeps where it cannot."""
    if model.config._attn_implementation != "sdpa":
        return [f"attention stays {model.config._attn_implementation!r}"]
    model.set_attn_implementation(NAME)
    for module in model.modules():
        module.random_bits = source
    return []
