"""Attention for short sequences on a CPU, registered so that any model on transformers' attention interface takes it.

PyTorch's own CPU attention has no fast path with dropout and works in fp32 there; on sentences its blocked kernel is
slow without dropout too. Here six batched products and a softmax do the work of both passes. A layer of `layers` calls
`attend` and `attend_backward`; elsewhere autograd follows `attend` itself.
"""

import torch
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from nli_lib.learn.fast.dropout import LARGEST_RATE, Mask, RandomBits

NAME = "short_sequences"  # under which `attention` stands in transformers' registry
EXTRAS = ("position_bias", "softcap", "cache", "s_aux")  # what other models ask for; theirs is transformers' function


def attend(query, key, value, attention_mask, scaling: float, mask: Mask | None) -> tuple[torch.Tensor, tuple]:
    """dropout(softmax(scaling * query key')) value, and what its backward pass needs; all of them are (BH, L, D).

    There may be fewer queries than keys. attention_mask (B, 1, Q, L) is True where a key may be looked at. Products are
    taken in the type of the inputs, the softmax in fp32.
    """
    scores = (query @ key.transpose(1, 2)).float().mul_(scaling)  # (BH, Q, L)
    if attention_mask is not None:
        hidden = torch.where(attention_mask, 0.0, torch.finfo(torch.float32).min)
        scores.view(len(hidden), -1, *scores.shape[1:]).add_(hidden)
    weights = torch.softmax(scores, dim=-1)
    kept = weights.to(value.dtype)
    kept = kept if mask is None else mask(kept)
    return kept @ value, (query, key, value, weights, kept)


def attend_backward(gradient: torch.Tensor, saved: tuple, scaling: float, mask: Mask | None) -> list[torch.Tensor]:
    """Gradients for query, key and value, each of its shape, from the one for the context."""
    query, key, value, weights, kept = saved
    for_kept = gradient @ value.transpose(1, 2)
    for_kept = for_kept if mask is None else mask(for_kept)
    for_scores = torch._softmax_backward_data(for_kept.float(), weights, -1, torch.float32)
    for_scores = for_scores.mul_(scaling).to(query.dtype)
    return [for_scores @ key, for_scores.transpose(1, 2) @ query, kept.transpose(1, 2) @ gradient]


def attention(module, query, key, value, attention_mask, dropout: float = 0.0, scaling: float | None = None, **others):
    """softmax(scaling * query key') value with dropout on the probabilities; (B, H, L, D) in, (B, L, H, D) out.

    A model that asks for more than this (grouped heads, position bias, causal order) gets transformers' own function.

    Departures: in bf16 the scores before the softmax are rounded to bf16, as in transformers' "eager" attention under
    autocast.
    """
    extra = any(others.get(name) is not None for name in EXTRAS)
    causal = getattr(module, "is_causal", True)
    if extra or causal or not query.shape == key.shape == value.shape or dropout > LARGEST_RATE:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, **others)
    if torch.is_autocast_enabled("cpu"):
        lower = torch.get_autocast_dtype("cpu")
        query, key, value = query.to(lower), key.to(lower), value.to(lower)
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    shape = batch, heads, length, _ = query.shape
    mask = Mask((batch * heads, length, length), query.dtype, dropout, module.random_bits) if dropout else None
    flat = (each.reshape(-1, *shape[2:]) for each in (query, key, value))
    context, _ = attend(*flat, attention_mask, scaling, mask)
    return context.view(shape).transpose(1, 2).contiguous(), None


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
