"""Schedule, decay groups and the update. Alone: pytest tests/learn/test_optimizer.py"""

import math

import pytest
import torch
import transformers
from torch import nn

from nli_lib.learn.fit import FlatAdamW, decayed, rate_factor
from nli_lib.learn.model import load_classifier


def test_schedule_by_hand(make_spec):
    # 10 updates, a warm-up of ceil(0.15 * 10) = 2: up 0, 1/2, then down 8/8 ... 1/8
    spec = make_spec(warmup=0.15)
    assert [rate_factor(spec, step, 10) for step in range(10)] == [0, 0.5, 1, *(n / 8 for n in range(7, 0, -1))]
    assert [rate_factor(make_spec(warmup=0.0), step, 2) for step in range(2)] == [1, 0.5]
    constant = make_spec(schedule="constant", warmup_steps=4)
    assert [rate_factor(constant, step, 8) for step in range(8)] == [0, 0.25, 0.5, 0.75, 1, 1, 1, 1]


@pytest.mark.parametrize("schedule", ["linear", "constant"])
@pytest.mark.parametrize(("steps", "warmup"), [(100, 0.06), (7, 0.5), (1, 0.06), (33, 0.0)])
def test_schedule_is_hugging_faces(make_spec, schedule, steps, warmup):
    optimizer, rise = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0), -int(-warmup * steps // 1)
    if schedule == "linear":
        theirs, spec = transformers.get_linear_schedule_with_warmup(optimizer, rise, steps), make_spec(warmup=warmup)
    else:
        theirs = transformers.get_constant_schedule_with_warmup(optimizer, rise)
        spec = make_spec(schedule="constant", warmup_steps=rise)
    for step in range(steps):
        assert rate_factor(spec, step, steps) == pytest.approx(theirs.get_last_lr()[0])
        optimizer.step()
        theirs.step()


def test_bias_and_layer_norm_do_not_decay(encoder):
    model, _ = load_classifier(encoder, ("entailment", "neutral", "contradiction"), 0)
    names = decayed(model)
    assert {"bert.embeddings.word_embeddings.weight", "classifier.weight"} <= names
    assert not any("LayerNorm" in name or name.endswith("bias") for name in names)
    left = {name for name, _ in model.named_parameters()} - names
    assert all("LayerNorm" in name or name.endswith("bias") for name in left)


@pytest.mark.parametrize(("clip", "epsilon"), [(0.05, 1e-8), (100.0, 1e-8), (None, 1e-2)])
def test_updates_are_those_of_plain_adamw(make_spec, clip, epsilon):
    spec = make_spec(clip=clip, epsilon=epsilon, weight_decay=0.3, warmup=0.2)
    torch.manual_seed(0)
    fast, plain = nn.Linear(6, 4), nn.Linear(6, 4)
    plain.load_state_dict(fast.state_dict())
    flat = FlatAdamW(fast, spec, steps=10)
    groups = [{"params": [plain.weight], "weight_decay": 0.3}, {"params": [plain.bias], "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=1e-3, eps=epsilon)
    for step in range(10):
        inputs = torch.randn(5, 6)
        for model in (fast, plain):
            model(inputs).square().sum().backward()
        flat.step()
        nn.utils.clip_grad_norm_(plain.parameters(), clip or math.inf)
        for group in adamw.param_groups:
            group["lr"] = 1e-3 * rate_factor(spec, step, 10)
        adamw.step()
        adamw.zero_grad()
    torch.testing.assert_close(fast.weight, plain.weight)
    torch.testing.assert_close(fast.bias, plain.bias)
    assert fast.weight.grad is None


def test_bf16_copies_follow_fp32_masters(make_spec):
    layer = nn.Linear(6, 4)
    before = layer.weight.detach().clone()
    flat = FlatAdamW(layer, make_spec(), steps=10, bf16=True)
    assert layer.weight.dtype == torch.bfloat16
    torch.testing.assert_close(layer.weight, before.bfloat16())
    with torch.autocast("cpu", torch.bfloat16):
        layer(torch.randn(5, 6)).float().square().sum().backward()
    flat.step()
    assert flat.groups[0].master.dtype == torch.float32
    torch.testing.assert_close(layer.weight.flatten(), flat.groups[0].master.bfloat16())
    flat.release()
    assert layer.weight.dtype == torch.float32
