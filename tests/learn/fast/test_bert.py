"""A BERT layer written out against transformers' own, gradients too. Alone: pytest tests/learn/fast/test_bert.py"""

import pytest
import torch
from torch import nn

from nli_lib.learn import fast as attention
from nli_lib.learn.encode import encode
from nli_lib.learn.fast import RandomBits, restore, speed_up
from nli_lib.learn.model import load_classifier, load_tokenizer

LABELS = ("entailment", "neutral", "contradiction")


@pytest.fixture
def model(encoder):
    """A tiny BERT whose biases and norms are not at their starting values, so that none of them could be forgotten."""
    model, _ = load_classifier(encoder, LABELS, 0)
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model.eval()


def probe():
    return torch.zeros(1)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("first_only", [False, True])
def test_output_and_every_gradient_are_the_original_layers(model, masked, first_only):
    original = model.bert.encoder.layer[0]
    fused = attention.FusedBertLayer(original, RandomBits()).eval()
    fused.first = first_only
    values, fast = (torch.randn(3, 6, 32, generator=torch.manual_seed(0)).requires_grad_() for _ in range(2))
    look = (torch.arange(6) < torch.tensor([[6], [4], [1]]))[:, None, None, :].expand(3, 1, 6, 6) if masked else None
    theirs, ours = original(values, look), fused(fast, look)
    theirs = theirs[:, :1] if first_only else theirs
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    upstream = torch.randn_like(theirs)
    joined = ("query", "key", "value")
    own = [original.get_submodule(f"attention.self.{name}") for name in joined]
    pairs = zip(own, fused.qkv.weight.chunk(3), fused.qkv.bias.chunk(3), strict=True)
    assert all(torch.equal(part.weight, weight) and torch.equal(part.bias, bias) for part, weight, bias in pairs)
    shared = [weight for name in attention.PARTS[3:] for weight in original.get_submodule(name).parameters()]
    expected = torch.autograd.grad(
        theirs, [values, *(w for part in own for w in (part.weight, part.bias)), *shared], upstream
    )
    got = torch.autograd.grad(ours, [fast, fused.qkv.weight, fused.qkv.bias, *shared], upstream)
    wanted = [expected[0], torch.cat(expected[1:7:2]), torch.cat(expected[2:7:2]), *expected[7:]]
    for mine, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("first_only", [False, True])
def test_a_mask_of_dropout_is_its_own_derivative_through_the_layer(model, first_only):
    """With the bits drawn again the layer repeats, so differences of its output give its gradient with dropout on."""
    source = RandomBits()
    fused = attention.FusedBertLayer(model.bert.encoder.layer[0], source).train()
    fused.rates, fused.first = (0.3, 0.3, 0.3), first_only
    values, direction = torch.randn(2, 5, 32), torch.randn(2, 5, 32)

    def out(step):
        source.reseed(7)
        return fused(values + step * direction, None)

    values.requires_grad_()
    upstream = torch.randn(2, 1 if first_only else 5, 32)
    (gradient,) = torch.autograd.grad(out(0.0), values, upstream)
    slope = ((out(1e-2) - out(-1e-2)) * upstream).sum() / 2e-2
    assert float((gradient * direction).sum()) == pytest.approx(float(slope.detach()), rel=2e-2)
    assert not torch.equal(out(0.0), fused.eval()(values, None))


def test_restore_gives_back_the_trained_weights(model, encoder):
    speed_up(model, [encode(["a dog"], None, load_tokenizer(encoder), 32)], probe)
    fused = model.bert.encoder.layer[0]
    assert isinstance(fused, attention.FusedBertLayer)
    with torch.no_grad():
        fused.qkv.weight.fill_(0.25)
        fused.up.weight.fill_(0.5)
    restore(model, 1.0)
    layer = model.bert.encoder.layer[0]
    assert float(layer.attention.self.key.weight[0, 0]) == 0.25
    assert float(layer.intermediate.dense.weight[0, 0]) == 0.5


def test_a_layer_that_computes_something_else_is_left_alone(model):
    source = RandomBits()
    for layer in model.bert.encoder.layer:
        layer.intermediate.intermediate_act_fn = nn.ReLU()
    attention.install_attention(model, source)
    assert attention.install_layers(model, source, probe) == [
        "layers stay transformers' own: written out they give another output"
    ]
    assert not any(isinstance(each, attention.FusedBertLayer) for each in model.modules())


def test_a_model_of_other_parts_is_left_alone(model):
    for layer in model.bert.encoder.layer:
        layer.__class__ = type("OtherLayer", (type(layer),), {})
    attention.install_attention(model, RandomBits())
    assert attention.install_layers(model, RandomBits(), probe) == [
        "layers stay transformers' own: not built like BERT's or Llama's"
    ]
