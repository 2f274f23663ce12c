"""What makes training fast, each part against its definition or transformers' own, gradients too.

Alone: pytest tests/learn/test_fast.py"""

import pytest
import torch
from torch import nn
from torch.nn import functional

from nli_lib.learn import fast
from nli_lib.learn.encode import encode
from nli_lib.learn.fast import FusedBertLayer, FusedLlamaLayer, Mask, RandomBits
from nli_lib.learn.generator import load
from nli_lib.learn.model import load_classifier, load_tokenizer

OWN = "layers stay transformers' own: "


# ---------------------------------------------------------------- dropout and attention


def dropout(rate, source):
    model = nn.Sequential(nn.Dropout(rate))
    fast.install_dropout(model, source)
    assert type(model[0]) is fast.FastDropout
    return model[0].train()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.45])
def test_rate_and_scale(dtype, rate):
    dropped = dropout(rate, RandomBits(3))(torch.ones(1000, 1000, dtype=dtype))
    assert float((dropped == 0).float().mean()) == pytest.approx(rate, abs=0.003)  # six standard errors
    assert fast.cut(rate, dtype)[1] == pytest.approx(rate, abs=2**-16)
    assert float(dropped.max()) == pytest.approx(1 / (1 - rate), rel=4e-3)
    rows = (dropped == 0).float().mean(0)  # each column is dropped as often as any other
    assert float(rows.std()) == pytest.approx((rate * (1 - rate) / 1000) ** 0.5, rel=0.15)


def test_exactly_the_patterns_below_the_cut_are_dropped():
    mask = Mask((1,), torch.bfloat16, 0.1, RandomBits())
    mask.bits = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(torch.bfloat16)  # every pattern
    assert int((mask(torch.ones(2**16, dtype=torch.bfloat16)) == 0).sum()) == round(0.1 * 2**16)


def test_backward_uses_the_same_mask():
    values = torch.ones(64, 64, requires_grad=True)
    out = dropout(0.3, RandomBits(1))(values)
    out.backward(torch.full_like(out, 2.0))
    assert torch.equal(values.grad, 2 * out.detach())


def test_a_seed_repeats_and_evaluation_drops_nothing():
    source = RandomBits()
    layer, values = dropout(0.2, source), torch.ones(40, 40)
    source.reseed(5, 0)
    first = layer(values)
    layer(values)
    source.reseed(5, 0)
    assert torch.equal(first, layer(values))
    source.reseed(5, 1)
    assert not torch.equal(first, layer(values)) and layer.eval()(values) is values


@pytest.mark.parametrize("case", ["plain", "masked", "dropout"])
def test_attention_and_its_gradients_are_pytorchs(case):
    """Gradients written out, and as autograd has them. With dropout against the definition."""
    torch.manual_seed(0)
    inputs = [torch.randn(3, 2, 5, 4, dtype=torch.float32, requires_grad=True) for _ in range(3)]
    upstream, look, mask = torch.randn(3, 2, 5, 4), None, None
    if case == "dropout":
        mask = Mask((6, 5, 5), torch.float32, 0.3, RandomBits(2))
        weights = torch.softmax(0.7 * inputs[0] @ inputs[1].transpose(2, 3), -1)
        expected = weights * mask(torch.ones(6, 5, 5)).view(3, 2, 5, 5) @ inputs[2]
    else:
        if case == "masked":
            look = (torch.arange(5) < torch.tensor([5, 3, 1])[:, None])[:, None, None, :].expand(3, 1, 5, 5)
        expected = functional.scaled_dot_product_attention(*inputs, attn_mask=look, scale=0.7)
    wanted = torch.autograd.grad(expected, inputs, upstream)
    out, saved = fast.attend(*(each.flatten(0, 1) for each in inputs), look, 0.7, mask)
    written = fast.attend_backward(upstream.flatten(0, 1), saved, 0.7, mask)
    torch.testing.assert_close(out.view(upstream.shape), expected)
    found = [*(each.view(upstream.shape) for each in written)]
    found += torch.autograd.grad(out.view(upstream.shape), inputs, upstream)
    torch.testing.assert_close(found, [*wanted, *wanted])


# ---------------------------------------------------------------- layers


def turn(length, depth=8):
    angle = torch.arange(length)[:, None] * torch.linspace(1.5, 0.2, depth // 2)
    return tuple(torch.cat([part, part], dim=1)[None] for part in (angle.cos(), angle.sin()))


def given(kind, length):
    return {"position_embeddings": turn(length)} if kind is FusedLlamaLayer else {}


@pytest.fixture(scope="module")
def folders(encoder, language_models):
    return {FusedBertLayer: encoder, FusedLlamaLayer: language_models["llama"]}


@pytest.fixture
def make(folders):
    """A tiny model whose biases and norms are not at their starting values, so that none of them could be forgotten."""

    def make(kind):
        classes = ("entailment", "neutral", "contradiction")
        model = load(folders[kind]) if kind is FusedLlamaLayer else load_classifier(folders[kind], classes, 0)[0]
        torch.manual_seed(2)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
        return model.eval(), model.model.layers if kind is FusedLlamaLayer else model.bert.encoder.layer

    return make


def probe():
    return torch.zeros(1)


BOTH = pytest.mark.parametrize("kind", [FusedBertLayer, FusedLlamaLayer])
FIRST = pytest.mark.parametrize(("kind", "first"), [
    (FusedBertLayer, False), (FusedBertLayer, True), (FusedLlamaLayer, False)])  # fmt: skip


@FIRST
@pytest.mark.parametrize("masked", [False, True])
def test_output_and_every_gradient_are_the_original_layers(make, kind, first, masked):
    original = make(kind)[1][0]
    fused = kind(original, RandomBits()).eval()
    fused.first = first
    values, ours_in = (torch.randn(3, 6, 32, generator=torch.manual_seed(0)).requires_grad_() for _ in range(2))
    look = (torch.arange(6) < torch.tensor([[6], [4], [1]]))[:, None, None, :].expand(3, 1, 6, 6) if masked else None
    if masked and kind is FusedLlamaLayer:
        look = look.tril()
    theirs = original(values, attention_mask=look, **given(kind, 6))
    ours = fused(ours_in, attention_mask=look, **given(kind, 6))
    theirs = theirs[:, :1] if first else theirs
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    upstream, own, wanted = torch.randn_like(theirs), [], []
    (by_input, *_) = torch.autograd.grad(theirs, [values], upstream, retain_graph=True)
    for name, path in fused.parts.items():
        parts = [original.get_submodule(each) for each in ([path] if isinstance(path, str) else path)]
        for weight, joined in fused.get_submodule(name).named_parameters():
            theirs_of = [part.get_parameter(weight) for part in parts]
            assert torch.equal(torch.cat(theirs_of), joined)
            own.append(joined)
            wanted.append(torch.cat(torch.autograd.grad(theirs, theirs_of, upstream, retain_graph=True)))
    got = torch.autograd.grad(ours, [ours_in, *own], upstream)
    assert len(own) == len(list(fused.parameters()))
    torch.testing.assert_close(list(got), [by_input, *wanted], rtol=1e-3, atol=1e-4)


@FIRST
def test_a_mask_of_dropout_is_its_own_derivative_through_the_layer(make, kind, first):
    """With the bits drawn again the layer repeats, so differences of its output give its gradient with dropout on."""
    source = RandomBits()
    fused = kind(make(kind)[1][0], source).train()
    fused.rates, fused.first = (0.3,) * len(fused.rates), first
    values, direction = torch.randn(2, 5, 32), torch.randn(2, 5, 32)

    def out(step):
        source.reseed(7)
        return fused(values + step * direction, **given(kind, 5))

    values.requires_grad_()
    upstream = torch.randn(2, 1 if first else 5, 32)
    (gradient,) = torch.autograd.grad(out(0.0), values, upstream)
    slope = ((out(1e-2) - out(-1e-2)) * upstream).sum() / 2e-2
    assert float((gradient * direction).sum()) == pytest.approx(float(slope.detach()), rel=2e-2)
    assert not torch.equal(out(0.0), fused.eval()(values, **given(kind, 5)))


def test_places_of_their_own_for_each_text(make):
    original = make(FusedLlamaLayer)[1][0]
    turns = tuple(torch.cat([part[:, :5], part[:, 3:8]]) for part in turn(8))
    values, fused = torch.randn(2, 5, 32), FusedLlamaLayer(original, RandomBits()).eval()
    assert (fused.heads, fused.groups) == (4, 2)
    ours, theirs = (layer(values, position_embeddings=turns) for layer in (fused, original))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_no_token_sees_a_later_one(make):
    fused = FusedLlamaLayer(make(FusedLlamaLayer)[1][0], RandomBits()).eval()
    values = torch.randn(1, 6, 32)
    other = values.clone()
    other[:, 4:] += 1
    before, after = (fused(each, position_embeddings=turn(6)) for each in (values, other))
    assert torch.equal(before[:, :4], after[:, :4]) and not torch.allclose(before[:, 4:], after[:, 4:])


@BOTH
def test_the_whole_model_is_the_same_and_gets_its_trained_weights_back(make, folders, kind):
    model, layers = make(kind)
    ids = {"input_ids": torch.tensor([[2, 5, 6, 7], [2, 8, 9, 3]])}
    before = model(**ids).logits
    words = "a the dog cat bird man child sleeps"
    notes = fast.speed_up(model, [encode([words], None, load_tokenizer(folders[kind]), 32)], probe)
    assert not any(OWN in note for note in notes) and all(isinstance(layer, kind) for layer in layers)
    torch.testing.assert_close(model(**ids).logits, before, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        for layer in layers:
            for scale, weight in enumerate(layer.parameters(), 2):
                weight.mul_(1 + 0.1 * scale)
    trained = model(**ids).logits
    fast.restore(model, 1.0)
    assert not any(isinstance(each, kind) for each in model.modules())
    torch.testing.assert_close(model(**ids).logits, trained, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kind", "what", "said"), [
    (FusedBertLayer, "activation", "written out they give another output"),
    (FusedLlamaLayer, "activation", "written out they give another output"),
    (FusedLlamaLayer, "bias", "written out they give another output"),
    (FusedBertLayer, "class", "not built like BERT's or Llama's")])  # fmt: skip
def test_a_layer_that_computes_something_else_is_left_alone(make, kind, what, said):
    model, layers = make(kind)
    for layer in layers:
        if what == "bias":  # of zero: the output is the same, and it would not be trained
            layer.mlp.up_proj.bias = nn.Parameter(torch.zeros(64))
        elif what == "class":
            layer.__class__ = type("OtherLayer", (type(layer),), {})
        elif kind is FusedBertLayer:
            layer.intermediate.intermediate_act_fn = nn.ReLU()
        else:
            layer.mlp.act_fn = nn.ReLU()
    source = RandomBits()
    fast.install_attention(model, source)
    assert fast.install_layers(model, source, probe) == [OWN + said]
    assert not any(isinstance(each, FusedBertLayer | FusedLlamaLayer) for each in model.modules())
