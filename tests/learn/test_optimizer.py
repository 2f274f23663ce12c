"""Schedule, decay groups and the update. Alone: pytest tests/learn/test_optimizer.py"""

import pytest
import torch
from torch import nn
from transformers import get_linear_schedule_with_warmup

from nli_lib.learn.model import load_classifier
from nli_lib.learn.optimizer import FlatAdamW, decayed, linear_schedule


def test_schedule_by_hand():
    # 10 updates, a warm-up of ceil(0.15 * 10) = 2: up 0, 1/2, then down 8/8 ... 1/8
    assert [linear_schedule(step, 10, 0.15) for step in range(10)] == [0, 0.5, 1, *(n / 8 for n in range(7, 0, -1))]
    assert [linear_schedule(step, 2, 0.0) for step in range(2)] == [1, 0.5]


@pytest.mark.parametrize(("steps", "warmup"), [(100, 0.06), (7, 0.5), (1, 0.06), (33, 0.0)])
def test_schedule_is_hugging_faces(steps, warmup):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = get_linear_schedule_with_warmup(optimizer, -int(-warmup * steps // 1), steps)
    for step in range(steps):
        assert linear_schedule(step, steps, warmup) == pytest.approx(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()


def test_bias_and_layer_norm_do_not_decay(encoder):
    model, _ = load_classifier(encoder, ("entailment", "neutral", "contradiction"), 0)
    names = decayed(model)
    assert {"bert.embeddings.word_embeddings.weight", "classifier.weight"} <= names
    assert not any("LayerNorm" in name or name.endswith("bias") for name in names)
    left = {name for name, _ in model.named_parameters()} - names
    assert all("LayerNorm" in name or name.endswith("bias") for name in left)


@pytest.mark.parametrize("clip", [0.05, 100.0])
def test_updates_are_those_of_plain_adamw(make_spec, clip):
    spec = make_spec(clip=clip, weight_decay=0.3, warmup=0.2)
    torch.manual_seed(0)
    fast, plain = nn.Linear(6, 4), nn.Linear(6, 4)
    plain.load_state_dict(fast.state_dict())
    flat = FlatAdamW(fast, spec, steps=10)
    groups = [{"params": [plain.weight], "weight_decay": 0.3}, {"params": [plain.bias], "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=1e-3)
    for step in range(10):
        inputs = torch.randn(5, 6)
        for model in (fast, plain):
            model(inputs).square().sum().backward()
        flat.step()
        nn.utils.clip_grad_norm_(plain.parameters(), clip)
        for group in adamw.param_groups:
            group["lr"] = 1e-3 * linear_schedule(step, 10, 0.2)
        adamw.step()
        adamw.zero_grad()
    torch.testing.assert_close(fast.weight, plain.weight)
    torch.testing.assert_close(fast.bias, plain.bias)
    assert fast.weight.grad is None


def test_bf16_copies_follow_fp32_masters(make_spec):
    layer = nn.Linear(6, 4)
    before = layer.weight.detach().clone()
    flat = FlatAdamW(layer, make_spec(), steps=10, shadowed=set(layer.parameters()))
    assert layer.weight.dtype == torch.bfloat16
    torch.testing.assert_close(layer.weight, before.bfloat16())
    with torch.autocast("cpu", torch.bfloat16):
        layer(torch.randn(5, 6)).float().square().sum().backward()
    flat.step()
    assert flat.groups[True].master.dtype == torch.float32
    torch.testing.assert_close(layer.weight.flatten(), flat.groups[True].master.bfloat16())
    flat.release()
    assert layer.weight.dtype == torch.float32
