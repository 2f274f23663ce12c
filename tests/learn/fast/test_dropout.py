"""Dropout and attention against their definitions. Alone: pytest tests/learn/fast/test_dropout.py"""

import pytest
import torch
from torch import nn
from torch.nn import functional

from nli_lib.learn.fast import FastDropout, Mask, RandomBits, attend, attend_backward, cut, install_dropout


def fast(rate, source):
    model = nn.Sequential(nn.Dropout(rate))
    install_dropout(model, source)
    assert type(model[0]) is FastDropout
    return model[0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.45])
def test_rate_and_scale(dtype, rate):
    values = torch.ones(1000, 1000, dtype=dtype)
    layer = fast(rate, RandomBits(3)).train()
    dropped = layer(values)
    assert float((dropped == 0).float().mean()) == pytest.approx(rate, abs=0.003)  # six standard errors
    assert cut(rate, dtype)[1] == pytest.approx(rate, abs=2**-16)
    assert float(dropped.max()) == pytest.approx(1 / (1 - rate), rel=4e-3)
    rows = (dropped == 0).float().mean(0)  # each column is dropped as often as any other
    assert float(rows.std()) == pytest.approx((rate * (1 - rate) / 1000) ** 0.5, rel=0.15)


def test_exactly_the_patterns_below_the_cut_are_dropped():
    every = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(torch.bfloat16)
    mask = Mask((1,), torch.bfloat16, 0.1, RandomBits())
    mask.bits = every
    assert int((mask(torch.ones(2**16, dtype=torch.bfloat16)) == 0).sum()) == round(0.1 * 2**16)


def test_backward_uses_the_same_mask():
    values = torch.ones(64, 64, requires_grad=True)
    out = fast(0.3, RandomBits(1)).train()(values)
    out.backward(torch.full_like(out, 2.0))
    assert torch.equal(values.grad, 2 * out.detach())


def test_a_seed_repeats_and_evaluation_drops_nothing():
    source = RandomBits()
    layer, values = fast(0.2, source).train(), torch.ones(40, 40)
    source.reseed(5, 0)
    first = layer(values)
    layer(values)
    source.reseed(5, 0)
    assert torch.equal(first, layer(values))
    source.reseed(5, 1)
    assert not torch.equal(first, layer(values))
    assert layer.eval()(values) is values


def attended(inputs, look, scaling, mask, upstream):
    """The result (B, H, L, D), and its gradients for the three inputs: written out, and as autograd has them."""
    flat = [each.flatten(0, 1) for each in inputs]
    out, saved = attend(*flat, look, scaling, mask)
    written = [each.view(upstream.shape) for each in attend_backward(upstream.flatten(0, 1), saved, scaling, mask)]
    out = out.view(upstream.shape)
    return out, [*written, *torch.autograd.grad(out, inputs, upstream)]


@pytest.mark.parametrize("masked", [False, True])
def test_attention_and_its_gradients_are_pytorchs(masked):
    torch.manual_seed(0)
    inputs = [torch.randn(3, 2, 5, 4, dtype=torch.float32, requires_grad=True) for _ in range(3)]
    keys = torch.tensor([5, 3, 1])
    look = (torch.arange(5) < keys[:, None])[:, None, None, :].expand(3, 1, 5, 5) if masked else None
    upstream = torch.randn(3, 2, 5, 4)
    expected = functional.scaled_dot_product_attention(*inputs, attn_mask=look, scale=0.7)
    wanted = torch.autograd.grad(expected, inputs, upstream)
    out, found = attended(inputs, look, 0.7, None, upstream)
    torch.testing.assert_close(out, expected)
    for got, want in zip(found, [*wanted, *wanted], strict=True):
        torch.testing.assert_close(got, want)


def test_attention_dropout_is_its_definition():
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 2, 6, 4, dtype=torch.float32, requires_grad=True) for _ in range(3))
    mask = Mask((4, 6, 6), torch.float32, 0.3, RandomBits(2))
    weights = torch.softmax(0.5 * query @ key.transpose(2, 3), -1)
    expected = weights * mask(torch.ones(4, 6, 6)).view(2, 2, 6, 6) @ value
    inputs, upstream = (query, key, value), torch.randn_like(expected)
    out, found = attended(inputs, None, 0.5, mask, upstream)
    torch.testing.assert_close(out, expected)
    wanted = torch.autograd.grad(expected, inputs, upstream)
    for got, want in zip(found, [*wanted, *wanted], strict=True):
        torch.testing.assert_close(got, want)
