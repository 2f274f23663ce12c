"""AdamW on two flat vectors: fp32 masters of all weights, one with weight decay and one without.

In bf16 the weights of linear layers live in the model as bf16 copies of their masters, made once a step; autocast would
cast each of them in every step and cast its gradient back. Both give the same numbers: a linear layer's gradient is
computed in bf16 either way, and the masters, both Adam moments and the norm used for clipping are fp32.
"""

from __future__ import annotations

import math

import torch
from torch import nn

BETAS, EPSILON = (0.9, 0.999), 1e-8


def linear_schedule(step: int, steps: int, warmup: float) -> float:
    """Factor of the learning rate at update `step` (from 0) of `steps`, 0 to 1.

    Rises linearly from 0 over the first ceil(warmup * steps) updates, then falls linearly to 0; the first update of a
    run with warm-up has factor 0. As Hugging Face's `get_linear_schedule_with_warmup`.
    """
    rise = math.ceil(warmup * steps)
    if step < rise:
        return step / max(1, rise)
    return max(0.0, (steps - step) / max(1, steps - rise))


def decayed(model: nn.Module) -> set[str]:
    """Names of the parameters with weight decay: all but biases and those of normalisation layers."""
    names = {name for name, _ in model.named_parameters() if not name.endswith("bias")}
    for prefix, module in model.named_modules():
        if "norm" in type(module).__name__.lower():
            names -= {f"{prefix}.{name}" for name, _ in module.named_parameters(recurse=False)}
    return names


class _Group:
    """Parameters that share a decay, laid end to end in one fp32 master; those with a bf16 copy come first."""

    def __init__(self, parameters: list[nn.Parameter], shadowed: set[nn.Parameter]):
        self.parameters = sorted(parameters, key=lambda each: each not in shadowed)
        device = self.parameters[0].device
        sizes = [each.numel() for each in self.parameters]
        self.master = torch.cat([each.detach().float().flatten() for each in self.parameters])
        self.master.grad = torch.zeros_like(self.master)
        copied = sum(size for each, size in zip(self.parameters, sizes, strict=True) if each in shadowed)
        self.shadow = torch.empty(copied, dtype=torch.bfloat16, device=device)
        self.gradients = []
        views = zip(self.parameters, self.master.split(sizes), self.master.grad.split(sizes), strict=True)
        start = 0
        for parameter, weight, gradient in views:
            size = parameter.numel()
            weight = self.shadow[start : start + size] if parameter in shadowed else weight
            parameter.data = weight.view(parameter.shape)
            self.gradients.append(gradient.view(parameter.shape))
            start += size
        self.refresh()

    def gather(self) -> None:
        """Move the gradients of the backward pass into the flat fp32 one."""
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            if parameter.grad.is_sparse:
                gradient.zero_().index_add_(0, parameter.grad._indices()[0], parameter.grad._values())
            else:
                gradient.copy_(parameter.grad)
            parameter.grad = None

    def refresh(self) -> None:
        self.shadow.copy_(self.master[: len(self.shadow)])

    def release(self) -> None:
        """Give every parameter its fp32 master."""
        sizes = [each.numel() for each in self.parameters]
        for parameter, weight in zip(self.parameters, self.master.split(sizes), strict=True):
            parameter.data = weight.view(parameter.shape)


class FlatAdamW:
    """AdamW (betas .9 and .999, eps 1e-8), linear schedule, clipping, on the flat masters of a model's parameters.

    `shadowed` names the parameters that are bf16 copies in the model. Parameters that need no gradient are left alone.
    """

    def __init__(self, model: nn.Module, spec, steps: int, shadowed: set[nn.Parameter] = frozenset()):
        self.spec, self.steps, self.step_number = spec, steps, 0
        self.decay_product = 1.0  # what a decayed weight that never had a gradient has been multiplied by
        with_decay = decayed(model)
        split = {True: [], False: []}
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                split[name in with_decay].append(parameter)
        self.groups = {decay: _Group(each, shadowed) for decay, each in split.items() if each}
        settings = [
            {"params": [group.master], "weight_decay": spec.weight_decay if decay else 0.0}
            for decay, group in self.groups.items()
        ]
        self.adamw = torch.optim.AdamW(settings, lr=spec.learning_rate, betas=BETAS, eps=EPSILON, fused=True)

    def step(self) -> None:
        """One update from the gradients in the model's parameters, which are used up."""
        for group in self.groups.values():
            group.gather()
        self._clip()
        rate = self.spec.learning_rate * linear_schedule(self.step_number, self.steps, self.spec.warmup)
        for settings in self.adamw.param_groups:
            settings["lr"] = rate
        self.adamw.step()
        self.decay_product *= 1 - rate * self.spec.weight_decay
        self.step_number += 1
        for group in self.groups.values():
            group.refresh()

    def _clip(self) -> None:
        """Scale the whole gradient to norm `spec.clip` where it is longer."""
        gradients = [group.master.grad for group in self.groups.values()]
        norm = nn.utils.get_total_norm(gradients)
        factor = self.spec.clip / (norm + 1e-6)  # as torch.nn.utils.clip_grad_norm_
        if norm.device.type == "cpu" and factor >= 1:
            return  # on a GPU the comparison would wait for the device; there the factor 1 is multiplied
        for gradient in gradients:
            gradient.mul_(factor.clamp(max=1.0))

    def release(self) -> None:
        """End the training: the model's parameters are the fp32 masters again."""
        for group in self.groups.values():
            group.release()

    def state_dict(self) -> dict:
        return {
            "masters": [group.master for group in self.groups.values()],
            "adamw": self.adamw.state_dict(),
            "step": self.step_number,
            "decay_product": self.decay_product,
        }

    def load_state_dict(self, state: dict) -> None:
        for group, master in zip(self.groups.values(), state["masters"], strict=True):
            group.master.copy_(master)
            group.refresh()
        self.adamw.load_state_dict(state["adamw"])
        self.step_number, self.decay_product = state["step"], state["decay_product"]
