"""A BERT layer as one differentiable step, for the encoders that are built of it: BERT, RoBERTa, XLM-R, ELECTRA, ...

Written out, a layer needs half of the tensor operations that autograd needs for transformers' modules: query, key and
value are one product, the residual stream is cast to bf16 once instead of four times, and its gradient is summed in
place. Types are those of bf16 autocast: products in bf16, residual stream and layer norms in fp32.

The layer, for a batch of B examples of L tokens, W wide, with H heads of D = W / H, where drop is dropout:

    q, k, v = x Wqkv' + b                        (BL, 3W), cut into (BH, L, D) each
    c = drop(softmax(q k' / sqrt(D))) v          (BH, L, D), back together as (BL, W)
    r1 = x + drop(c Wout' + b)                   x1 = layer_norm1(r1)
    u  = x1 Wup' + b                             a  = gelu(u)                         (BL, 4W) in most models
    r2 = x1 + drop(a Wdown' + b)                 y  = layer_norm2(r2)

The last layer is computed for the first token alone where nothing else of it is read: the other tokens enter it as keys
and values only, their own results and the gradients of those are never used.

A layer is only replaced after it has given the same output as the original on made-up input (`layers.install`).
"""

import torch
from torch import nn
from torch.nn.functional import gelu, linear

from nli_lib.learn.fast.attention import attend, attend_backward
from nli_lib.learn.fast.dropout import Mask, RandomBits

PARTS = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
PARTS += ("attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm")
BUILT_LIKE_BERT = ("BertLayer", "RobertaLayer", "XLMRobertaLayer", "ElectraLayer")  # of `PARTS`, each with its bias
ALL_THREE = [True, True, True]  # gradients of a layer norm: for its input, its weight and its bias


class _Layer(torch.autograd.Function):
    """Input and result are the residual stream (B, L, W) in fp32; `weights` are those of `FusedLayer`, in its order.

    Of a layer `first` the result is (B, 1, W): the first token is the only query.
    """

    @staticmethod
    def forward(ctx, stream: torch.Tensor, attention_mask, layer: "FusedLayer", *weights: torch.Tensor) -> torch.Tensor:
        qkv_w, qkv_b, out_w, out_b, norm1_w, norm1_b, up_w, up_b, down_w, down_b, norm2_w, norm2_b = weights
        batch, length, width = stream.shape
        heads, dtype = layer.heads, qkv_w.dtype
        masks = layer.masks(batch, length, dtype)
        stream = stream.reshape(-1, width)  # x, (BL, W)
        low = stream.to(dtype)
        # q, k, v
        if layer.first:
            query = linear(low[::length], qkv_w[:width], qkv_b[:width]).view(batch * heads, 1, -1)  # (BH, 1, D)
            qkv = query, *_by_head(linear(low, qkv_w[width:], qkv_b[width:]), batch, heads, width)
            stream = stream[::length]  # (B, W): from here on every token is a first one
            attention_mask = None if attention_mask is None else attention_mask[:, :, :1]
        else:
            qkv = _by_head(linear(low, qkv_w, qkv_b), batch, heads, width)
        # c
        context, attended = attend(*qkv, attention_mask, layer.scaling, masks[0])
        context = context.view(batch, heads, -1, width // heads).transpose(1, 2).reshape(-1, width)
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
        """The forward pass from its end to its start; d_z is the gradient of the loss for z.

        For a product z = s W' + b: d_s = d_z W, d_W = d_z' s, d_b = the sum of d_z over tokens. A residual sum hands
        its gradient to both sides, so `stream` carries the one for the residual stream down through the layer.
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
        g_context = (out @ out_w).view(batch, -1, heads, width // heads).transpose(1, 2)
        g_context = g_context.reshape(batch * heads, -1, width // heads)
        query, *others = attend_backward(g_context, attended, layer.scaling, ctx.masks[0])
        # q, k, v = x Wqkv' + b: d_x = d_r1 + d_qkv Wqkv
        if layer.first:  # the residual sum and q know the first token alone; k and v know all of them
            query, others = query.view(batch, width), _by_token(others, batch)
            entered = others @ qkv_w[width:]
            entered[::length] += query @ qkv_w[:width]
            entered = entered.float()
            entered[::length] += stream
            parts = zip(_weights(query, low[::length]), _weights(others, low), strict=True)
            g_qkv_w, g_qkv_b = (torch.cat(part) for part in parts)
        else:
            qkv = _by_token([query, *others], batch)
            entered = stream.add_((qkv @ qkv_w).float())
            g_qkv_w, g_qkv_b = _weights(qkv, low)

        attention = (g_qkv_w, g_qkv_b, g_out_w, g_out_b, g_norm1_w, g_norm1_b)
        feed_forward = (*_weights(g_up, low_middle), g_down_w, g_down_b, g_norm2_w, g_norm2_b)
        return entered.view(batch, length, width), None, None, *attention, *feed_forward


def _by_head(values: torch.Tensor, batch: int, heads: int, width: int) -> torch.Tensor:
    """(BL, KW) to (K, BH, L, D): K results of a token, cut into heads."""
    count, length = values.shape[1] // width, len(values) // batch
    cut = values.view(batch, length, count, heads, width // heads).permute(2, 0, 3, 1, 4)
    return cut.reshape(count, batch * heads, length, width // heads)


def _by_token(values: list[torch.Tensor], batch: int) -> torch.Tensor:
    """K times (BH, L, D) to (BL, KW), the way back."""
    together = torch.stack(values)
    _, _, length, depth = together.shape
    return together.view(len(values), batch, -1, length, depth).permute(1, 3, 0, 2, 4).reshape(batch * length, -1)


def _weights(output: torch.Tensor, entered: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of a product's weight and bias from that of its `output` (T, K) and from what `entered` it (T, W)."""
    return output.t() @ entered, output.sum(0)


def _residual(stream: torch.Tensor, values: torch.Tensor, mask: Mask | None, rounded: bool) -> torch.Tensor:
    """stream + dropout(values), the sum in fp32 and the scaling too, unless it is to be `rounded` as autocast does."""
    if mask is None or rounded:
        return stream + _drop(values, mask).float()
    return torch.add(stream, mask.cut(values).float(), alpha=mask.scale)


def _drop(values: torch.Tensor, mask: Mask | None) -> torch.Tensor:
    return values if mask is None else mask(values)


class FusedLayer(nn.Module):
    """Stands in for one layer of the model; holds its modules, with query, key and value joined in one.

    With `first` it gives the result of the first token alone: (B, L, W) in, (B, 1, W) out.
    """

    def __init__(self, original: nn.Module, source: RandomBits):
        super().__init__()
        query, key, value, self.out, self.norm1, self.up, self.down, self.norm2 = map(original.get_submodule, PARTS)
        self.qkv = nn.Linear(query.in_features, 3 * query.out_features)
        with torch.no_grad():
            self.qkv.weight.copy_(torch.cat([each.weight for each in (query, key, value)]))
            self.qkv.bias.copy_(torch.cat([each.bias for each in (query, key, value)]))
        attention = original.attention.self
        self.heads, self.scaling = attention.num_attention_heads, attention.attention_head_size**-0.5
        self.epsilons = self.norm1.eps, self.norm2.eps
        self.rates = attention.dropout.p, original.attention.output.dropout.p, original.output.dropout.p
        self.source, self.first = source, False
        self.aside = [original]  # in a list, so that its parameters are not this module's too

    def masks(self, batch: int, length: int, dtype: torch.dtype) -> list[Mask | None]:
        """Dropout masks of the attention weights, the attention's result and the layer's result."""
        queries = 1 if self.first else length
        attention = (batch * self.heads, queries, length)
        hidden = (batch * queries, self.out.out_features)
        rates = self.rates if self.training else (0, 0, 0)
        shapes = zip((attention, hidden, hidden), rates, strict=True)
        return [Mask(shape, dtype, rate, self.source) if rate else None for shape, rate in shapes]

    def forward(self, hidden_states: torch.Tensor, attention_mask=None, *_: object, **__: object) -> torch.Tensor:
        modules = (self.qkv, self.out, self.norm1, self.up, self.down, self.norm2)
        weights = (weight for module in modules for weight in (module.weight, module.bias))
        return _Layer.apply(hidden_states.float(), attention_mask, self, *weights)

    @torch.no_grad()
    def agrees(self) -> bool:
        """Whether this layer gives the same output as the original on made-up input, in which one text is shorter."""
        original, width = self.aside[0], self.out.out_features
        values = torch.linspace(-2, 2, 2 * 5 * width).sin().mul(3).view(2, 5, width)
        look = (torch.arange(5) < torch.tensor([[5], [3]]))[:, None, None, :].expand(2, 1, 5, 5)
        theirs = original.eval()(values, look)
        return isinstance(theirs, torch.Tensor) and torch.allclose(self(values, look), theirs, rtol=1e-4, atol=1e-4)

    @torch.no_grad()
    def release(self) -> nn.Module:
        """The original layer with the weights of this one."""
        original = self.aside[0]
        parts = [original.get_submodule(name) for name in PARTS[:3]]
        for part, weight, bias in zip(parts, self.qkv.weight.chunk(3), self.qkv.bias.chunk(3), strict=True):
            part.weight.copy_(weight)
            part.bias.copy_(bias)
        return original
