"""bf16 products in fp32 against their definition. Alone: pytest tests/learn/test_products.py"""

import pytest
import torch
from torch import nn

from nli_lib.learn.fast import products
from nli_lib.learn.loop import Loop

ULP = 2.0**-8  # the relative distance of neighbouring bf16 numbers


@pytest.fixture(params=[True, False], ids=["bf16 units", "no bf16 units"])
def units(request, monkeypatch):
    monkeypatch.setattr(products, "bf16_units", lambda: request.param)
    return request.param


def numbers(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, generator=torch.manual_seed(sum(shape))).to(dtype)


def near(got, exact):
    """Equal to the exact result but for the order of the sum and the rounding to bf16."""
    return torch.testing.assert_close(got.double(), exact, rtol=ULP, atol=ULP)


@pytest.mark.parametrize("shapes", [((5, 7), (7, 3)), ((4, 5, 7), (4, 7, 3))])
@pytest.mark.parametrize("autocast", [False, True])
def test_product_is_the_rounded_exact_product(units, shapes, autocast):
    left, right = (numbers(*shape) for shape in shapes)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        got = products.product(left, right)
    assert got.dtype == torch.bfloat16
    near(got, left.double() @ right.double())


def test_sums_are_not_rounded_on_the_way(units):
    # 256 + 1 + ... + 1 (256 ones): in bf16, 256 + 1 = 256; only a sum in fp32 reaches 512
    left = torch.cat([torch.tensor([256.0]), torch.ones(256)]).bfloat16()[None]
    assert float(products.product(left, torch.ones(257, 1).bfloat16())) == 512
    assert float(products.linear(left, torch.ones(1, 257).bfloat16(), torch.zeros(1).bfloat16())) == 512


def test_fp32_is_left_as_it_is(units):
    left, right = numbers(5, 7, dtype=torch.float32), numbers(7, 3, dtype=torch.float32)
    assert torch.equal(products.product(left, right), left @ right)


@pytest.mark.parametrize("autocast", [False, True])
def test_linear_with_gradients_is_the_rounded_exact_one(units, autocast):
    values, weight, bias = (numbers(*shape).requires_grad_() for shape in ((6, 7), (3, 7), (3,)))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        out = products.linear(values, weight, bias)
    upstream = numbers(6, 3)
    near(out, (values.double() @ weight.double().T + bias.double()).detach())
    for got, exact in zip(
        torch.autograd.grad(out, (values, weight, bias), upstream),
        (upstream.double() @ weight.double(), upstream.double().T @ values.double(), upstream.double().sum(0)),
        strict=True,
    ):
        assert got.dtype == torch.bfloat16
        near(got, exact.detach())


def test_a_wide_layer_is_autocasts_own(monkeypatch):
    monkeypatch.setattr(products, "bf16_units", lambda: False)
    own = nn.Linear(7, 3)
    wide = nn.Linear(7, 3)
    wide.load_state_dict(own.state_dict())
    assert len(products.install(wide)) == 1
    assert type(wide) is products.WideLinear
    results = []
    for layer in (own, wide):
        values = numbers(6, 7, dtype=torch.float32).requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            out = layer(values)
        gradients = torch.autograd.grad(out.float().square().sum(), (values, layer.weight, layer.bias))
        results.append((out, *gradients))
    for mine, theirs in zip(*results[::-1], strict=True):
        assert mine.dtype == theirs.dtype
        torch.testing.assert_close(mine, theirs, rtol=4 * ULP, atol=4 * ULP)
    products.release(wide)
    assert type(wide) is nn.Linear


def test_nothing_is_installed_where_the_processor_can(monkeypatch):
    monkeypatch.setattr(products, "bf16_units", lambda: True)
    layer = nn.Linear(2, 2)
    assert products.install(layer) == []
    assert type(layer) is nn.Linear


def test_training_goes_the_same_way_with_and_without_units(make_spec, corpus, monkeypatch):
    spec, losses = make_spec(precision="bf16"), {}
    for has in (True, False):
        monkeypatch.setattr(products, "bf16_units", lambda has=has: has)
        loop = Loop(spec, corpus, torch.device("cpu"))
        assert any("no bf16 units" in note for note in loop.notes) is not has
        losses[has] = [float(loop.step(rows)[0]) for rows in loop.start_epoch(0)]
        assert not any(type(module) is products.WideLinear for module in loop.finish().modules())
    assert losses[True] == pytest.approx(losses[False], rel=2e-2)
