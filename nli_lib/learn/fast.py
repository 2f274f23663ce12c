"""Faster training and prediction on a CPU: `speed_up` installs the parts below, `restore` removes them::

    vocabulary   only the word pieces that occur are trained
    dropout      masks from fast random bits
    attention    batched products suited to sentences instead of a kernel for long texts
    layers       a layer of BERT or Llama written out as one differentiable step; BERT's last one for its first
                 token only, if that is enough

Each equals, exactly or in distribution, what it replaces, and leaves alone whatever it does not fit. On a GPU only the
vocabulary is cut. `python benchmarks/fine_tuning.py --parts` measures the gain of each.

*Vocabulary*. A word piece that does not occur in the training corpus has a zero gradient in every step, so both Adam
moments of its embedding stay zero and AdamW only multiplies the row by (1 - lr_t * weight_decay). Those rows are left
out of the training (30,522 rows of 384 become a few thousand, without a large dense gradient to clear, clip and step
through) and are multiplied by the product of those factors at the end.

*Dropout*. On a CPU, PyTorch draws the mask with a sequential Mersenne twister, one number for each element; in a small
encoder that is a seventh of a training step. Here it comes from raw bits of SFC64, sixteen (bf16) or thirty-two (fp32)
for each element, at a tenth of the cost.

*Attention*. On a CPU, PyTorch's attention has no fast path with dropout and then works in fp32; on sentences its
blocked kernel is slow without dropout too. Here six batched products and a softmax do the work of both passes. It is
registered so that any model on transformers' attention interface can use it; autograd then follows `attend`, while a
written-out layer calls `attend_backward` directly.

*Layers*. Written out, a layer needs half of the tensor operations that autograd needs for transformers' modules: query,
key and value are one product, the residual stream is cast to bf16 once instead of four times, and its gradient is
summed in place. Types are as in bf16 autocast: products in bf16; residual stream, norms and rotation in fp32. A layer
is replaced only if it gives the same output as the original on made-up input.

A layer of BERT (RoBERTa, XLM-R, ELECTRA), for a batch of B examples of L tokens, W wide, with H heads of D = W / H,
where drop is dropout::

    q, k, v = x Wqkv' + b                        (BL, 3W), cut into (BH, L, D) each
    c = drop(softmax(q k' / sqrt(D))) v          (BH, L, D), back together as (BL, W)
    r1 = x + drop(c Wout' + b)                   x1 = layer_norm1(r1)
    u  = x1 Wup' + b                             a  = gelu(u)                         (BL, 4W) in most models
    r2 = x1 + drop(a Wdown' + b)                 y  = layer_norm2(r2)

If only the first token of the last layer is read, only that token is computed: the other tokens enter the layer as keys
and values, and their results and gradients are never used.

A layer of Llama (SmolLM), with H heads of D numbers in G groups that share key and value, which are not copied::

    n1 = x / rms(x)                              q, k, v = (n1 w1) Wqkv'               (BL, (H + 2G) D)
    q, k rotated by their place                  (BG, HL/G, D) and (BG, L, D)
    c  = drop(softmax(q k' / sqrt(D))) v         no token sees a later one; back together as (BL, HD)
    r  = x + c Wout'                             n2 = r / rms(r)
    g, u = (n2 w2) Wgu'                          (BL, I) each
    y  = r + (silu(g) u) Wdown'

Notes
-----
*Departures*: an element is dropped with probability round(p * 2**16) / 2**16 (p = 0.1 becomes 0.100006), and kept
elements are scaled by exactly its complement; PyTorch's bf16 kernel rounds that scale to bf16, 0.16% too low at p =
0.1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.functional import gelu, linear, silu
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

WIDTH = {torch.bfloat16: (16, torch.int16, 0x7F80), torch.float32: (32, torch.int32, 0x7F800000)}
LARGEST_RATE = 0.49  # above it there are not enough negative bit patterns, see `cut`


class RandomBits:
    """A seeded stream of raw random bits, viewed as floats."""

    def __init__(self, seed: int = 0):
        self.reseed(seed)

    def reseed(self, *seed: int) -> None:
        """Restart at the stream named by `seed`, independently of earlier draws."""
        self._random = np.random.Generator(np.random.SFC64(seed))

    def draw(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Draw uniform bit patterns of `dtype`: every pattern is equally likely, infinities and NaN included."""
        count = math.prod(shape)
        words = -(-count * WIDTH[dtype][0] // 64)
        bits = self._random.integers(0, 2**64 - 1, words, dtype=np.uint64, endpoint=True)
        return torch.from_numpy(bits.view(np.uint8)).view(dtype)[:count].view(shape)


@functools.cache
def cut(rate: float, dtype: torch.dtype) -> tuple[float, float]:
    """Return the float `c` such that a uniform bit pattern is <= c with probability `rate`, and the exact probability.

    Negative floats grow in magnitude with their bit pattern up to minus infinity, so counting patterns down from minus
    infinity gives the cut. NaN compares false and counts as kept.
    """
    width, integer, infinity = WIDTH[dtype]
    count = round(rate * 2**width)
    pattern = infinity + 1 - count - 2 ** (width - 1)  # sign bit set, as a signed integer
    return float(torch.tensor([pattern], dtype=integer).view(dtype)), count / 2**width


class Mask:
    """One dropout mask: zeroes each element with probability `rate` and scales the others by 1 / (1 - rate).

    The same mask is its own derivative: the backward pass applies it to the gradient.
    """

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, rate: float, source: RandomBits):
        self.bits = source.draw(shape, dtype)
        self.threshold, exact = cut(rate, dtype)
        self.scale = 1 / (1 - exact)

    def cut(self, values: torch.Tensor) -> torch.Tensor:
        """Set the dropped elements to zero without scaling the others; one vectorised kernel."""
        return torch.ops.aten.threshold_backward(values, self.bits, self.threshold)

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        return self.cut(values).mul_(self.scale)


class FastDropout(nn.Dropout):
    """Replacement for `nn.Dropout` on a CPU; other devices, types and rates use PyTorch's kernel."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        fits = values.device.type == "cpu" and values.dtype in WIDTH and 0 < self.p <= LARGEST_RATE
        mask = Mask(values.shape, values.dtype, self.p, self.source) if fits and self.training else None
        return super().forward(values) if mask is None else mask(values)


def install_dropout(model: PreTrainedModel, source: RandomBits) -> None:
    """Turn every `nn.Dropout` of `model` into a `FastDropout`; other classes of dropout are left alone."""
    for module in model.modules():
        if type(module) is nn.Dropout:
            module.__class__, module.source = FastDropout, source


# ---------------------------------------------------------------- attention


NAME = "short_sequences"  # name of `attention` in transformers' registry
EXTRAS = ("position_bias", "softcap", "cache", "s_aux")  # other models pass these, and get transformers' function


def attend(query, key, value, attention_mask, scaling: float, mask: Mask | None) -> tuple[torch.Tensor, tuple]:
    """Return dropout(softmax(scaling * query key')) value and the inputs of its backward pass; all arrays are (BH, L,
    D).

    There may be fewer queries than keys. attention_mask (B, 1, Q, L) is True where a query may see a key. Products are
    computed in the type of the inputs, the softmax in fp32.
    """
    scores = (query @ key.transpose(1, 2)).float().mul_(scaling)  # (BH, Q, L)
    if attention_mask is not None:
        hidden = torch.where(attention_mask, 0.0, torch.finfo(torch.float32).min)
        scores.view(len(hidden), -1, *scores.shape[1:]).add_(hidden)
    weights = torch.softmax(scores, dim=-1)
    kept = _drop(weights.to(value.dtype), mask)
    return kept @ value, (query, key, value, weights, kept)


def attend_backward(gradient: torch.Tensor, saved: tuple, scaling: float, mask: Mask | None) -> list[torch.Tensor]:
    """Gradients for query, key and value, in their shapes, from the gradient for the context."""
    query, key, value, weights, kept = saved
    for_kept = _drop(gradient @ value.transpose(1, 2), mask)
    for_scores = torch._softmax_backward_data(for_kept.float(), weights, -1, torch.float32)
    for_scores = for_scores.mul_(scaling).to(query.dtype)
    return [for_scores @ key, for_scores.transpose(1, 2) @ query, kept.transpose(1, 2) @ gradient]


def attention(module, query, key, value, attention_mask, dropout: float = 0.0, scaling: float | None = None, **others):
    """softmax(scaling * query key') value with dropout on the probabilities; (B, H, L, D) in, (B, L, H, D) out.

    A model that needs more (grouped heads, position bias, causal order) gets transformers' function.

    Notes
    -----
    *Departures*: in bf16 the scores before the softmax are rounded to bf16, as in transformers' "eager" attention under
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


def install_attention(model: PreTrainedModel, source: RandomBits) -> list[str]:
    """Let `model` use `attention`; if it cannot, return a description of what it keeps."""
    if model.config._attn_implementation != "sdpa":
        return [f"attention stays {model.config._attn_implementation!r}"]
    model.set_attn_implementation(NAME)
    for module in model.modules():
        module.random_bits = source
    return []


# ---------------------------------------------------------------- vocabulary


class CompactEmbedding(nn.Module):
    """Replacement for an embedding of which only the rows `ids` occur; inputs and outputs are the same.

    An id outside `ids` raises `IndexError`; it never returns a wrong row.
    """

    def __init__(self, whole: nn.Embedding, ids: torch.Tensor):
        super().__init__()
        lookup = torch.full((whole.num_embeddings,), -1, device=ids.device)
        lookup[ids] = torch.arange(len(ids), device=ids.device)
        self.register_buffer("lookup", lookup, persistent=False)
        self.register_buffer("ids", ids, persistent=False)
        self.weight = nn.Parameter(whole.weight.detach()[ids].clone())
        padding = -1 if whole.padding_idx is None else int(lookup[whole.padding_idx])
        self.padding_idx = None if padding < 0 else padding

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        # A sparse gradient has only the rows of this batch; a dense one would be cleared and summed in every step. A
        # GPU keeps the dense one, because it adds rows in no fixed order.
        sparse = self.weight.device.type == "cpu"
        return functional.embedding(self.lookup[input_ids], self.weight, self.padding_idx, sparse=sparse)


def compact(model: PreTrainedModel, ids: torch.Tensor) -> tuple[nn.Embedding | None, str]:
    """Cut `model`'s word embedding to the rows `ids`; return the whole embedding and a description.

    Returns None if the table cannot be cut, because it is no plain embedding or shares its weights with another layer.
    """
    whole = model.get_input_embeddings()
    if type(whole) is not nn.Embedding or whole.max_norm is not None or whole.scale_grad_by_freq or whole.sparse:
        return None, f"word embedding stays whole: {type(whole).__name__} is not a plain embedding"
    users = [name for name, each in model.named_parameters(remove_duplicate=False) if each is whole.weight]
    if len(users) > 1:
        return None, f"word embedding stays whole: shared by {', '.join(users)}"
    model.set_input_embeddings(CompactEmbedding(whole, ids))
    return whole, f"{len(ids):,} of {whole.num_embeddings:,} word pieces occur and are trained"


# ---------------------------------------------------------------- a layer written out


class _WrittenOut(nn.Module):
    """Replacement for one layer of a model; holds its modules, joined into one if they have the same input.

    `parts` maps names here to a module of the original, or to several with outputs side by side. A training checkpoint
    holds the weights in this order.
    """

    def __init__(self, original: nn.Module, source: RandomBits, parts: dict[str, str | tuple[str, ...]]):
        super().__init__()
        for name, path in parts.items():
            one = isinstance(path, str)
            module = original.get_submodule(path) if one else _joined(list(map(original.get_submodule, path)))
            self.add_module(name, module)
        self.parts, self.source = parts, source
        self.aside = [original]  # in a list, so that its parameters do not become this module's

    def mask(self, shape: tuple[int, ...], dtype: torch.dtype, rate: float) -> Mask | None:
        return Mask(shape, dtype, rate, self.source) if rate and self.training else None

    @torch.no_grad()
    def agrees(self, **given: object) -> bool:
        """True if this layer gives the same output as the original on made-up input, in which one text is shorter."""
        original, width = self.aside[0].eval(), self.out.out_features
        values = torch.linspace(-2, 2, 2 * 5 * width).sin().mul(3).view(2, 5, width)
        look = (torch.arange(5) < torch.tensor([[5], [3]]))[:, None, None, :].expand(2, 1, 5, 5)
        for mask in (None, look.tril() if given else look):
            theirs, ours = (layer(values, attention_mask=mask, **given) for layer in (original, self))
            if not isinstance(theirs, torch.Tensor) or not torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4):
                return False
        return True

    @torch.no_grad()
    def release(self) -> nn.Module:
        """Return the original layer with the weights of this one."""
        for name, path in self.parts.items():
            parts = [] if isinstance(path, str) else list(map(self.aside[0].get_submodule, path))
            for kind, joined in self.get_submodule(name).named_parameters() if parts else ():
                for part, values in zip(parts, joined.split([each.out_features for each in parts]), strict=True):
                    part.get_parameter(kind).copy_(values)
        return self.aside[0]


@torch.no_grad()
def _joined(parts: list[nn.Linear]) -> nn.Linear:
    """Join linear layers into one with the outputs of `parts`, one after the other; it has a bias if all of them do."""
    bias = all(part.bias is not None for part in parts)
    joined = nn.Linear(parts[0].in_features, sum(part.out_features for part in parts), bias=bias)
    for kind, values in joined.named_parameters():
        values.copy_(torch.cat([part.get_parameter(kind) for part in parts]))
    return joined


# ---------------------------------------------------------------- bert


BERT = {"out": "attention.output.dense", "norm1": "attention.output.LayerNorm", "up": "intermediate.dense"}
BERT |= {"down": "output.dense", "norm2": "output.LayerNorm"}
BERT |= {"qkv": ("attention.self.query", "attention.self.key", "attention.self.value")}
ALL_THREE = [True, True, True]  # gradients of a layer norm: for input, weight and bias


class _BertLayer(torch.autograd.Function):
    """Input and result are the residual stream (B, L, W) in fp32; `weights` are those of `FusedBertLayer`, in its
    order.

    With `first` the result is (B, 1, W): the first token is the only query.
    """

    @staticmethod
    def forward(ctx, stream: torch.Tensor, attention_mask, layer: FusedBertLayer, *weights: torch.Tensor):
        qkv_w, qkv_b, out_w, out_b, norm1_w, norm1_b, up_w, up_b, down_w, down_b, norm2_w, norm2_b = weights
        batch, length, width = stream.shape
        heads, dtype = layer.heads, qkv_w.dtype
        queries = 1 if layer.first else length
        shapes = (batch * heads, queries, length), *[(batch * queries, width)] * 2
        # for the attention weights, the attention's result and the layer's result
        masks = [layer.mask(shape, dtype, rate) for shape, rate in zip(shapes, layer.rates, strict=True)]
        stream = stream.reshape(-1, width)  # x, (BL, W)
        low = stream.to(dtype)
        # q, k, v
        if layer.first:
            query = linear(low[::length], qkv_w[:width], qkv_b[:width]).view(batch * heads, 1, -1)  # (BH, 1, D)
            qkv = query, *_by_head(linear(low, qkv_w[width:], qkv_b[width:]), batch, heads, width)
            stream = stream[::length]  # (B, W): from here on only the first tokens
            attention_mask = None if attention_mask is None else attention_mask[:, :, :1]
        else:
            qkv = _by_head(linear(low, qkv_w, qkv_b), batch, heads, width)
        # c
        context, attended = attend(*qkv, attention_mask, layer.scaling, masks[0])
        context = _by_token(context, batch, heads, queries)
        # r1, x1
        inner = _residual(stream, linear(context, out_w, out_b), masks[1], layer.first)
        middle, mean1, rstd1 = torch.native_layer_norm(inner, [width], norm1_w, norm1_b, layer.epsilons[0])
        # u, a
        low_middle = middle.to(dtype)
        up = linear(low_middle, up_w, up_b)
        active = gelu(up)
        # r2, y
        outer = _residual(middle, linear(active, down_w, down_b), masks[2], layer.first)
        result, mean2, rstd2 = torch.native_layer_norm(outer, [width], norm2_w, norm2_b, layer.epsilons[1])
        saved = (low, context, inner, mean1, rstd1, low_middle, up, active, outer, mean2, rstd2)
        ctx.save_for_backward(*saved, *attended, *weights)
        ctx.layer, ctx.masks, ctx.shape = layer, masks, (batch, length, width)
        return result.view(batch, -1, width)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor):
        """The forward pass in reverse; d_z is the gradient of the loss for z.

        For a product z = s W' + b: d_s = d_z W, d_W = d_z' s, d_b = the sum of d_z over tokens. A residual sum passes
        its gradient to both sides, so `stream` carries the residual stream's gradient back through the layer.
        """
        low, context, inner, mean1, rstd1, low_middle, up, active, outer, mean2, rstd2, *rest = ctx.saved_tensors
        attended, weights = rest[:5], rest[5:]
        qkv_w, _, out_w, _, norm1_w, norm1_b, up_w, _, down_w, _, norm2_w, norm2_b = weights
        (batch, length, width), layer = ctx.shape, ctx.layer
        dtype, heads = low.dtype, layer.heads

        # y = layer_norm2(r2): stream = d_r2
        stream, g_norm2_w, g_norm2_b = torch.ops.aten.native_layer_norm_backward(
            gradient.reshape(-1, width), outer, [width], mean2, rstd2, norm2_w, norm2_b, ALL_THREE
        )
        # r2 = x1 + drop(a Wdown' + b): the mask is its own derivative
        down = _drop(stream.to(dtype), ctx.masks[2])
        g_down_w, g_down_b = _weights(down, active)  # at once: `down` may share memory with `stream`, which changes
        # a = gelu(u), u = x1 Wup' + b: d_x1 = d_r2 + d_u Wup
        g_up = torch.ops.aten.gelu_backward(down @ down_w, up)
        stream += (g_up @ up_w).float()  # cast first: adding bf16 to fp32 in one call is twice as slow
        # x1 = layer_norm1(r1): stream = d_r1
        stream, g_norm1_w, g_norm1_b = torch.ops.aten.native_layer_norm_backward(
            stream, inner, [width], mean1, rstd1, norm1_w, norm1_b, ALL_THREE
        )
        # r1 = x + drop(c Wout' + b)
        out = _drop(stream.to(dtype), ctx.masks[1])
        g_out_w, g_out_b = _weights(out, context)  # as above
        # c: d_q, d_k and d_v, each (BH, L, D)
        (g_context,) = _by_head(out @ out_w, batch, heads, width)
        query, *others = attend_backward(g_context, attended, layer.scaling, ctx.masks[0])
        # q, k, v = x Wqkv' + b: d_x = d_r1 + d_qkv Wqkv
        if layer.first:  # the residual sum and q have only the first token; k and v have all of them
            query = query.view(batch, width)
            others = torch.cat([_by_token(each, batch, heads, length) for each in others], dim=1)
            entered = others @ qkv_w[width:]
            entered[::length] += query @ qkv_w[:width]
            entered = entered.float()
            entered[::length] += stream
            parts = zip(_weights(query, low[::length]), _weights(others, low), strict=True)
            g_qkv_w, g_qkv_b = (torch.cat(part) for part in parts)
        else:
            qkv = torch.cat([_by_token(each, batch, heads, length) for each in (query, *others)], dim=1)
            entered = stream.add_((qkv @ qkv_w).float())
            g_qkv_w, g_qkv_b = _weights(qkv, low)

        attention = (g_qkv_w, g_qkv_b, g_out_w, g_out_b, g_norm1_w, g_norm1_b)
        feed_forward = (*_weights(g_up, low_middle), g_down_w, g_down_b, g_norm2_w, g_norm2_b)
        return entered.view(batch, length, width), None, None, *attention, *feed_forward


def _by_head(values: torch.Tensor, batch: int, heads: int, width: int) -> torch.Tensor:
    """Reshape (BL, KW) to (K, BH, L, D): K results of a token, cut into heads."""
    count, length = values.shape[1] // width, len(values) // batch
    cut = values.view(batch, length, count, heads, width // heads).permute(2, 0, 3, 1, 4)
    return cut.reshape(count, batch * heads, length, width // heads)


def _by_token(values: torch.Tensor, batch: int, groups: int, length: int) -> torch.Tensor:
    """Reshape (BG, HL/G, D) to (BL, HD): a token's heads, side by side."""
    cut = values.view(batch, groups, -1, length, values.shape[-1]).permute(0, 3, 1, 2, 4)
    return cut.reshape(batch * length, -1)


def _weights(output: torch.Tensor, entered: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of a product's weight and bias, from the gradient of its `output` (T, K) and its input, `entered` (T,
    W)."""
    return output.t() @ entered, output.sum(0)


def _residual(stream: torch.Tensor, values: torch.Tensor, mask: Mask | None, rounded: bool) -> torch.Tensor:
    """stream + dropout(values), with sum and scaling in fp32, unless it is `rounded` as autocast does."""
    if mask is None or rounded:
        return stream + _drop(values, mask).float()
    return torch.add(stream, mask.cut(values).float(), alpha=mask.scale)


def _drop(values: torch.Tensor, mask: Mask | None) -> torch.Tensor:
    return values if mask is None else mask(values)


class FusedBertLayer(_WrittenOut):
    """Replacement for a layer of BERT. With `first` it returns only the first token: (B, L, W) in, (B, 1, W) out."""

    def __init__(self, original: nn.Module, source: RandomBits):
        super().__init__(original, source, BERT)
        attention = original.attention.self
        self.heads, self.scaling = attention.num_attention_heads, attention.attention_head_size**-0.5
        self.epsilons = self.norm1.eps, self.norm2.eps
        self.rates = attention.dropout.p, original.attention.output.dropout.p, original.output.dropout.p
        self.first = False

    def forward(self, hidden_states: torch.Tensor, attention_mask=None, *_: object, **__: object) -> torch.Tensor:
        modules = (self.qkv, self.out, self.norm1, self.up, self.down, self.norm2)
        weights = (weight for module in modules for weight in (module.weight, module.bias))
        return _BertLayer.apply(hidden_states.float(), attention_mask, self, *weights)


# ---------------------------------------------------------------- llama


LLAMA = {"qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")}
LLAMA |= {"gate_up": ("mlp.gate_proj", "mlp.up_proj"), "out": "self_attn.o_proj", "down": "mlp.down_proj"}
LLAMA |= {"norm1": "input_layernorm", "norm2": "post_attention_layernorm"}


class _LlamaLayer(torch.autograd.Function):
    """Input and result are the residual stream (B, L, W) in fp32; `weights` are those of `FusedLlamaLayer`, in its
    order.

    turn
        cosine and signed sine of each position, (B, L, 1, D) or (1, L, 1, D); see `_rotated`
    look
        (B, 1, L, L), True where a token may be seen
    """

    @staticmethod
    def forward(ctx, stream: torch.Tensor, turn: tuple, look: torch.Tensor, layer: FusedLlamaLayer, *weights):
        qkv_w, out_w, gate_up_w, down_w, norm1_w, norm2_w = weights
        batch, length, width = stream.shape
        dtype, groups, depth, shared = qkv_w.dtype, layer.groups, layer.depth, layer.heads // layer.groups
        stream = stream.reshape(-1, width)  # x, (BL, W)
        # n1; q, k, v
        normed1, rms1 = _normed(stream, layer.epsilons[0])
        low1 = (normed1 * norm1_w).to(dtype)
        qkv = linear(low1, qkv_w).view(batch, length, -1, depth)
        turned = _rotated(qkv[:, :, :-groups].float(), turn).to(qkv.dtype)
        query = turned[:, :, :-groups].view(batch, length, groups, shared, depth).permute(0, 2, 3, 1, 4)
        key, value = (each.transpose(1, 2) for each in (turned[:, :, -groups:], qkv[:, :, -groups:]))
        query, key, value = (each.reshape(batch * groups, -1, depth) for each in (query, key, value))
        # c
        mask = layer.mask((*query.shape[:2], length), dtype, layer.rates[0])
        context, attended = attend(query, key, value, look.repeat(1, 1, shared, 1), layer.scaling, mask)
        context = _by_token(context, batch, groups, length)
        # r, n2
        middle = stream + linear(context, out_w).float()
        normed2, rms2 = _normed(middle, layer.epsilons[1])
        low2 = (normed2 * norm2_w).to(dtype)
        # g, u, y
        gate_up = linear(low2, gate_up_w)
        gate, up = gate_up.chunk(2, dim=1)
        opened = silu(gate)
        active = opened * up
        result = middle + linear(active, down_w).float()
        saved = (normed1, rms1, low1, context, normed2, rms2, low2, gate_up, opened, active)
        ctx.save_for_backward(*saved, *turn, *attended, *weights)
        ctx.layer, ctx.mask, ctx.shape = layer, mask, (batch, length, width)
        return result.view(batch, length, width)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor):
        """The forward pass in reverse, as for BERT; `stream` is the residual stream's gradient."""
        normed1, rms1, low1, context, normed2, rms2, low2, gate_up, opened, active, *rest = ctx.saved_tensors
        turn, attended, weights = rest[:2], rest[2:7], rest[7:]
        qkv_w, out_w, gate_up_w, down_w, norm1_w, norm2_w = weights
        (batch, length, width), layer = ctx.shape, ctx.layer
        groups, depth, dtype = layer.groups, layer.depth, low1.dtype
        stream = gradient.reshape(-1, width)

        # y = r + a Wdown', a = silu(g) u
        down = stream.to(dtype)
        g_down_w = down.t() @ active
        g_active = down @ down_w
        gate, up = gate_up.chunk(2, dim=1)
        g_gate_up = torch.empty_like(gate_up)
        for_gate, for_up = g_gate_up.chunk(2, dim=1)
        torch.mul(g_active, opened, out=for_up)
        for_gate.copy_(torch.ops.aten.silu_backward(g_active.mul_(up), gate))
        # g, u = (n2 w2) Wgu', n2 = r / rms(r)
        g_gate_up_w = g_gate_up.t() @ low2
        back, g_norm2_w = _normed_backward((g_gate_up @ gate_up_w).float(), normed2, rms2, norm2_w)
        stream = back.add_(stream)
        # r = x + c Wout'
        out = stream.to(dtype)
        g_out_w = out.t() @ context
        g_context = (out @ out_w).view(batch, length, groups, -1, depth).permute(0, 2, 3, 1, 4)
        g_context = g_context.reshape(batch * groups, -1, depth)
        # c; d_q, d_k and d_v
        query, key, value = attend_backward(g_context, attended, layer.scaling, ctx.mask)
        query = _by_token(query, batch, groups, length).view(batch, length, -1, depth)
        key, value = (each.view(batch, groups, length, depth).transpose(1, 2) for each in (key, value))
        turned = _rotated(torch.cat([query, key], dim=2).float(), (turn[0], -turn[1])).to(dtype)  # the way back
        qkv = torch.cat([turned, value], dim=2).view(batch * length, -1)
        # q, k, v = (n1 w1) Wqkv', n1 = x / rms(x)
        g_qkv_w = qkv.t() @ low1
        back, g_norm1_w = _normed_backward((qkv @ qkv_w).float(), normed1, rms1, norm1_w)
        entered = back.add_(stream).view(batch, length, width)
        return entered, None, None, None, g_qkv_w, g_out_w, g_gate_up_w, g_down_w, g_norm1_w, g_norm2_w


def _normed(values: torch.Tensor, epsilon: float) -> tuple[torch.Tensor, torch.Tensor]:
    """values (T, W) over the root of their mean square, and the factor, (T, 1)."""
    factor = torch.rsqrt(values.square().mean(1, keepdim=True) + epsilon)
    return values * factor, factor


def _normed_backward(gradient: torch.Tensor, normed: torch.Tensor, factor: torch.Tensor, weight: torch.Tensor):
    """Gradients of `_normed(values) * weight` for values and weight; `gradient` is overwritten.

    With n = x f: d_x = f (d_n - n mean(d_n n)), where d_n is the gradient times the weight.
    """
    for_weight = torch.linalg.vecdot(gradient, normed, dim=0)
    for_normed = gradient.mul_(weight)
    along = torch.linalg.vecdot(for_normed, normed, dim=1)[:, None] / normed.shape[1]
    return torch.addcmul(for_normed, normed, along, value=-1).mul_(factor), for_weight


def _rotated(values: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Rotate each pair (i, i + D/2) of the D numbers (B, L, K, D) by its angle; with -sine, rotate it back."""
    cosine, sine = turn
    return torch.addcmul(values * cosine, values.roll(values.shape[-1] // 2, -1), sine)


class FusedLlamaLayer(_WrittenOut):
    """Replacement for a layer of Llama."""

    def __init__(self, original: nn.Module, source: RandomBits):
        super().__init__(original, source, LLAMA)
        attention = original.self_attn
        self.depth, self.scaling = attention.head_dim, attention.scaling
        self.heads = attention.q_proj.out_features // self.depth
        self.groups = self.heads // attention.num_key_value_groups
        self.epsilons = self.norm1.variance_epsilon, self.norm2.variance_epsilon
        self.rates = (attention.attention_dropout,)

    def forward(self, hidden_states: torch.Tensor, attention_mask=None, position_embeddings: tuple = (), **_: object):
        length = hidden_states.shape[1]
        if attention_mask is None:
            attention_mask = torch.ones(1, 1, length, length, dtype=torch.bool).tril()
        cosine, sine = (each[:, :, None].float() for each in position_embeddings)
        sign = torch.ones(self.depth).index_fill_(0, torch.arange(self.depth // 2), -1)
        weights = (each.weight for each in (self.qkv, self.out, self.gate_up, self.down, self.norm1, self.norm2))
        look = attention_mask.expand(len(hidden_states), -1, -1, -1)
        return _LlamaLayer.apply(hidden_states.float(), (cosine, sine * sign), look, self, *weights)

    def agrees(self) -> bool:
        """The same test as for any layer, and none of its parts has a bias."""
        if any(part.bias is not None for part in self.aside[0].modules() if isinstance(part, nn.Linear)):
            return False
        angle = torch.arange(5)[:, None] * torch.linspace(1, 0.1, self.depth // 2)
        turn = tuple(torch.cat([part, part], dim=1)[None] for part in (angle.cos(), angle.sin()))
        return super().agrees(position_embeddings=turn)


# ---------------------------------------------------------------- layers


KINDS = dict.fromkeys(("BertLayer", "RobertaLayer", "XLMRobertaLayer", "ElectraLayer"), FusedBertLayer)
KINDS |= {"LlamaDecoderLayer": FusedLlamaLayer}


def install_layers(model: PreTrainedModel, source: RandomBits, probe: Callable[[], torch.Tensor]) -> list[str]:
    """Replace `model`'s layers by written-out ones that give the same output; return a description of the exceptions.

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
    fused[-1].first = isinstance(fused[-1], FusedBertLayer) and _only_first_token_counts(stack[-1], probe)
    for at, layer in enumerate(fused):
        stack[at] = layer
    return ["the last layer is computed for the first token, which alone the head reads"] if fused[-1].first else []


@torch.no_grad()
def _only_first_token_counts(last: nn.Module, probe: Callable[[], torch.Tensor]) -> bool:
    """True if the probe does not change by a bit when the last layer's results for the other tokens are perturbed."""
    whole = probe()
    hook = last.register_forward_hook(lambda _, __, output: torch.cat([output[:, :1], output[:, 1:] * -7 + 3], dim=1))
    perturbed = probe()
    hook.remove()
    return torch.equal(whole, perturbed)


# ---------------------------------------------------------------- fast


def speed_up(model: PreTrainedModel, tokens: Iterable = (), probe: Callable | None = None, *, written_out=True) -> list:
    """Make `model` fast on its device, in place; return a description of what was done.

    Parameters
    ----------
    tokens
        all `Tokens` that the model will be trained on or scored with until `restore`
    probe
        returns a tensor of all numbers that result from one forward pass in training; without it the model is made fast
        for prediction only, and `restore` is not needed
    written_out
        False: only the vocabulary is cut, as on a GPU
    """
    bits, notes = RandomBits(), []
    model.fast = SimpleNamespace(bits=bits, whole=None)
    if probe is not None:
        ids = torch.unique(torch.cat([each.vocabulary for each in tokens])).to(model.device)
        model.fast.whole, note = compact(model, ids)
        notes.append(note)
    if model.device.type == "cpu" and written_out:
        notes += install_attention(model, bits)
        if probe is not None:
            install_dropout(model, bits)
            notes += install_layers(model, bits, probe)
    return notes


@torch.no_grad()
def restore(model: PreTrainedModel, decay_product: float) -> None:
    """Give a trained `model` its original layers and whole vocabulary back, with the trained weights.

    Parameters
    ----------
    decay_product
        the factor by which all steps multiplied a decayed weight without gradients; word pieces that were left out are
        multiplied by it
    """
    for stack in [each for each in model.modules() if isinstance(each, nn.ModuleList)]:
        for at, layer in enumerate(stack):
            if isinstance(layer, _WrittenOut):
                stack[at] = layer.release()
    if (whole := model.fast.whole) is not None:
        part = model.get_input_embeddings()
        whole.weight.mul_(decay_product)
        whole.weight[part.ids] = part.weight.to(whole.weight.dtype)
        model.set_input_embeddings(whole)
