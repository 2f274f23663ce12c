"""A Llama layer written out against transformers' own, gradients too. Alone: pytest tests/learn/fast/test_llama.py"""

import pytest
import torch
from tiny_generator import make_language_model
from torch import nn

from nli_lib.learn import fast as attention
from nli_lib.learn.encode import encode
from nli_lib.learn.fast import RandomBits, restore, speed_up
from nli_lib.learn.generator import load
from nli_lib.learn.model import load_tokenizer

NOTE = "layers stay transformers' own: written out they give another output"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_language_model(tmp_path_factory.mktemp("llama"), "llama")


@pytest.fixture
def model(folder):
    """Its norms are not at their starting values, so that none of them could be forgotten."""
    model = load(folder)
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model.eval()


def turn(length, depth=8):
    angle = torch.arange(length)[:, None] * torch.linspace(1.5, 0.2, depth // 2)
    return tuple(torch.cat([part, part], dim=1)[None] for part in (angle.cos(), angle.sin()))


def probe():
    return torch.zeros(1)


@pytest.mark.parametrize("masked", [False, True])
def test_output_and_every_gradient_are_the_original_layers(model, masked):
    original = model.model.layers[0]
    fused = attention.FusedLlamaLayer(original, RandomBits()).eval()
    assert (fused.heads, fused.groups) == (4, 2)
    values, fast = (torch.randn(3, 6, 32, generator=torch.manual_seed(0)).requires_grad_() for _ in range(2))
    causal = torch.ones(6, 6, dtype=torch.bool).tril()
    look = (torch.arange(6) < torch.tensor([[6], [4], [1]]))[:, None, None, :] & causal if masked else None
    theirs = original(values, attention_mask=look, position_embeddings=turn(6))
    ours = fused(fast, attention_mask=look, position_embeddings=turn(6))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    upstream = torch.randn_like(theirs)
    joined = [[original.get_submodule(name).weight for name in names] for names in attention.JOINED]
    for parts, together in zip(joined, (fused.qkv.weight, fused.gate_up.weight), strict=True):
        assert torch.equal(torch.cat(parts), together)
    shared = [original.get_submodule(name).weight for name in attention.OTHERS]
    expected = torch.autograd.grad(theirs, [values, *joined[0], *joined[1], *shared], upstream)
    got = torch.autograd.grad(ours, [fast, fused.qkv.weight, fused.gate_up.weight, *shared], upstream)
    wanted = [expected[0], torch.cat(expected[1:4]), torch.cat(expected[4:6]), *expected[6:]]
    for mine, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)


def test_places_of_their_own_for_each_text(model):
    original = model.model.layers[0]
    fused = attention.FusedLlamaLayer(original, RandomBits()).eval()
    turns = tuple(torch.cat([part[:, :5], part[:, 3:8]]) for part in turn(8))
    values = torch.randn(2, 5, 32)
    torch.testing.assert_close(
        fused(values, position_embeddings=turns), original(values, position_embeddings=turns), rtol=1e-4, atol=1e-5
    )


def test_no_token_sees_a_later_one(model):
    fused = attention.FusedLlamaLayer(model.model.layers[0], RandomBits()).eval()
    values = torch.randn(1, 6, 32)
    other = values.clone()
    other[:, 4:] += 1
    before, after = (fused(each, position_embeddings=turn(6)) for each in (values, other))
    assert torch.equal(before[:, :4], after[:, :4]) and not torch.allclose(before[:, 4:], after[:, 4:])


def test_a_mask_of_dropout_is_its_own_derivative_through_the_layer(model):
    """With the bits drawn again the layer repeats, so differences of its output give its gradient with dropout on."""
    source = RandomBits()
    fused = attention.FusedLlamaLayer(model.model.layers[0], source).train()
    fused.rates = (0.3,)
    values, direction = torch.randn(2, 5, 32), torch.randn(2, 5, 32)

    def out(step):
        source.reseed(7)
        return fused(values + step * direction, position_embeddings=turn(5))

    values.requires_grad_()
    upstream = torch.randn(2, 5, 32)
    (gradient,) = torch.autograd.grad(out(0.0), values, upstream)
    slope = ((out(1e-2) - out(-1e-2)) * upstream).sum() / 2e-2
    assert float((gradient * direction).sum()) == pytest.approx(float(slope.detach()), rel=2e-2)
    assert not torch.equal(out(0.0), fused.eval()(values, position_embeddings=turn(5)))


def test_the_whole_model_is_the_same_and_gets_its_trained_weights_back(model, folder):
    ids = torch.tensor([[1, 5, 6, 7], [1, 8, 9, 2]])
    before = model(input_ids=ids, use_cache=False).logits
    notes = speed_up(model, [encode(["a dog"], None, load_tokenizer(folder), 32)], probe)
    assert not any("layers" in note for note in notes)
    assert all(isinstance(layer, attention.FusedLlamaLayer) for layer in model.model.layers)
    torch.testing.assert_close(model(input_ids=ids, use_cache=False).logits, before, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.qkv.weight.mul_(1.5)
            layer.gate_up.weight.mul_(0.5)
    trained = model(input_ids=ids, use_cache=False).logits
    restore(model, 1.0)
    assert not any(isinstance(each, attention.FusedLlamaLayer) for each in model.modules())
    torch.testing.assert_close(model(input_ids=ids, use_cache=False).logits, trained, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("what", ["another activation", "a bias"])
def test_a_layer_that_computes_something_else_is_left_alone(model, what):
    source = RandomBits()
    for layer in model.model.layers:
        if what == "a bias":  # of zero: the output is the same, and it would not be trained
            layer.mlp.up_proj.bias = nn.Parameter(torch.zeros(64))
        else:
            layer.mlp.act_fn = nn.ReLU()
    attention.install_attention(model, source)
    assert attention.install_layers(model, source, probe) == [NOTE]
    assert not any(isinstance(each, attention.FusedLlamaLayer) for each in model.modules())
