"""A Llama layer as one differentiable step, for the language models that are built of it: Llama, SmolLM, ...

As `bert` does it for an encoder: query, key and value are one product, so are the two halves of the feed-forward part,
keys and values are shared by their group of heads without being copied, and the residual stream's gradient is summed in
place. Types are those of bf16 autocast: products in bf16; residual stream, norms and rotation in fp32.

The layer, for a batch of B texts of L tokens, W wide, with H heads of D numbers in G groups that share key and value:

    n1 = x / rms(x)                              q, k, v = (n1 w1) Wqkv'               (BL, (H + 2G) D)
    q, k rotated by their place                  (BG, HL/G, D) and (BG, L, D)
    c  = drop(softmax(q k' / sqrt(D))) v         where no token sees a later one; back together as (BL, HD)
    r  = x + c Wout'                             n2 = r / rms(r)
    g, u = (n2 w2) Wgu'                          (BL, I) each
    y  = r + (silu(g) u) Wdown'

A layer is only replaced after it has given the same output as the original on made-up input (`layers.install`).
"""

import torch
from torch import nn
from torch.nn.functional import linear, silu

from nli_lib.learn.fast.attention import attend, attend_backward
from nli_lib.learn.fast.dropout import Mask, RandomBits

BUILT_LIKE_LLAMA = ("LlamaDecoderLayer",)
JOINED = (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), ("mlp.gate_proj", "mlp.up_proj"))
OTHERS = ("self_attn.o_proj", "mlp.down_proj", "input_layernorm", "post_attention_layernorm")


class _Layer(torch.autograd.Function):
    """Input and result are the residual stream (B, L, W) in fp32; `weights` are those of `FusedLayer`, in its order.

    turn  cosine and signed sine of each place, (B, L, 1, D) or (1, L, 1, D); see `_rotated`
    look  (B, 1, L, L), True where a token may be looked at
    """

    @staticmethod
    def forward(ctx, stream: torch.Tensor, turn: tuple, look: torch.Tensor, layer: "FusedLayer", *weights):
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
        mask = layer.mask(query, key)
        context, attended = attend(query, key, value, look.repeat(1, 1, shared, 1), layer.scaling, mask)
        context = _by_token(context, batch, length, groups)
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
        ctx.save_for_backward(
            normed1, rms1, low1, context, normed2, rms2, low2, gate_up, opened, active, *turn, *attended, *weights
        )
        ctx.layer, ctx.mask, ctx.shape = layer, mask, (batch, length, width)
        return result.view(batch, length, width)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor):
        """The forward pass from its end to its start, as in `bert`; `stream` is the residual stream's gradient."""
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
        query = _by_token(query, batch, length, groups).view(batch, length, -1, depth)
        key, value = (each.view(batch, groups, length, depth).transpose(1, 2) for each in (key, value))
        turned = _rotated(torch.cat([query, key], dim=2).float(), (turn[0], -turn[1])).to(dtype)  # the way back
        qkv = torch.cat([turned, value], dim=2).view(batch * length, -1)
        # q, k, v = (n1 w1) Wqkv', n1 = x / rms(x)
        g_qkv_w = qkv.t() @ low1
        back, g_norm1_w = _normed_backward((qkv @ qkv_w).float(), normed1, rms1, norm1_w)
        entered = back.add_(stream).view(batch, length, width)
        return entered, None, None, None, g_qkv_w, g_out_w, g_gate_up_w, g_down_w, g_norm1_w, g_norm2_w


def _normed(values: torch.Tensor, epsilon: float) -> tuple[torch.Tensor, torch.Tensor]:
    """values (T, W) over the root of their mean square, and what they were multiplied by, (T, 1)."""
    factor = torch.rsqrt(values.square().mean(1, keepdim=True) + epsilon)
    return values * factor, factor


def _normed_backward(gradient: torch.Tensor, normed: torch.Tensor, factor: torch.Tensor, weight: torch.Tensor):
    """Gradients of `_normed(values) * weight` for values and weight; `gradient` is used up.

    With n = x f: d_x = f (d_n - n mean(d_n n)), where d_n is the gradient times the weight.
    """
    for_weight = torch.linalg.vecdot(gradient, normed, dim=0)
    for_normed = gradient.mul_(weight)
    along = torch.linalg.vecdot(for_normed, normed, dim=1)[:, None] / normed.shape[1]
    return torch.addcmul(for_normed, normed, along, value=-1).mul_(factor), for_weight


def _rotated(values: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Each pair (i, i + D/2) of the D numbers (B, L, K, D) turned by an angle of its own; with -sine turned back."""
    cosine, sine = turn
    return torch.addcmul(values * cosine, values.roll(values.shape[-1] // 2, -1), sine)


def _by_token(values: torch.Tensor, batch: int, length: int, groups: int) -> torch.Tensor:
    """(BG, HL/G, D) to (BL, HD): what belongs to a token's heads, side by side."""
    depth = values.shape[-1]
    return values.view(batch, groups, -1, length, depth).permute(0, 3, 1, 2, 4).reshape(batch * length, -1)


class FusedLayer(nn.Module):
    """Stands in for one layer of the model; holds its modules, with those joined in one that have the same input."""

    def __init__(self, original: nn.Module, source: RandomBits):
        super().__init__()
        self.qkv, self.gate_up = (_joined([original.get_submodule(name) for name in names]) for names in JOINED)
        self.out, self.down, self.norm1, self.norm2 = map(original.get_submodule, OTHERS)
        attention = original.self_attn
        self.depth, self.scaling = attention.head_dim, attention.scaling
        self.heads = attention.q_proj.out_features // self.depth
        self.groups = self.heads // attention.num_key_value_groups
        self.epsilons = self.norm1.variance_epsilon, self.norm2.variance_epsilon
        self.rates, self.source = (attention.attention_dropout,), source
        self.aside = [original]  # in a list, so that its parameters are not this module's too

    def mask(self, query: torch.Tensor, key: torch.Tensor) -> Mask | None:
        """Dropout mask of the attention weights."""
        shape, rate = (*query.shape[:2], key.shape[1]), self.rates[0] if self.training else 0
        return Mask(shape, query.dtype, rate, self.source) if rate else None

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_embeddings: tuple[torch.Tensor, torch.Tensor] | None = None,
        **_: object,
    ) -> torch.Tensor:
        length = hidden_states.shape[1]
        if attention_mask is None:
            attention_mask = torch.ones(1, 1, length, length, dtype=torch.bool).tril()
        cosine, sine = (each[:, :, None].float() for each in position_embeddings)
        sign = torch.ones(self.depth).index_fill_(0, torch.arange(self.depth // 2), -1)
        weights = (each.weight for each in (self.qkv, self.out, self.gate_up, self.down, self.norm1, self.norm2))
        look = attention_mask.expand(len(hidden_states), -1, -1, -1)
        return _Layer.apply(hidden_states.float(), (cosine, sine * sign), look, self, *weights)

    @torch.no_grad()
    def agrees(self) -> bool:
        """Whether this layer gives the same output as the original on made-up input, in which one text is shorter."""
        original, width = self.aside[0], self.out.out_features
        if any(part.bias is not None for part in original.modules() if isinstance(part, nn.Linear)):
            return False
        values = torch.linspace(-2, 2, 2 * 5 * width).sin().mul(3).view(2, 5, width)
        angle = torch.arange(5)[:, None] * torch.linspace(1, 0.1, self.depth // 2)
        turn = tuple(torch.cat([part, part], dim=1)[None] for part in (angle.cos(), angle.sin()))
        look = (torch.arange(5) < torch.tensor([[5], [3]]))[:, None, None, :] & torch.ones(
            5, 5, dtype=torch.bool
        ).tril()
        for mask in (None, look):
            theirs = original.eval()(values, attention_mask=mask, position_embeddings=turn)
            ours = self(values, attention_mask=mask, position_embeddings=turn)
            if not isinstance(theirs, torch.Tensor) or not torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4):
                return False
        return True

    @torch.no_grad()
    def release(self) -> nn.Module:
        """The original layer with the weights of this one."""
        original = self.aside[0]
        for names, joined in zip(JOINED, (self.qkv, self.gate_up), strict=True):
            parts = [original.get_submodule(name) for name in names]
            sizes = [part.out_features for part in parts]
            for part, weight in zip(parts, joined.weight.split(sizes), strict=True):
                part.weight.copy_(weight)
        return original


@torch.no_grad()
def _joined(parts: list[nn.Linear]) -> nn.Linear:
    """One linear layer without bias whose outputs are those of `parts`, one after the other."""
    weight = torch.cat([part.weight for part in parts])
    joined = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    joined.weight.copy_(weight)
    return joined
