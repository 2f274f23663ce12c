"""Products of bf16 matrices, fast on a CPU without bf16 units too.

bf16 pays where the processor multiplies such numbers itself (AMX, AVX512-BF16, ARM's BF16). Elsewhere PyTorch imitates
it, at a quarter of the speed of fp32. There the product is taken in fp32 and rounded: the product of two bf16 numbers
is exact in fp32, and a bf16 unit keeps the sum in fp32 as well, so only the order of the additions differs.
"""

from __future__ import annotations

import functools

import torch
from torch import nn
from torch.nn import functional


@functools.cache
def bf16_units() -> bool:
    """Whether this CPU multiplies bf16 numbers itself."""
    return any(has is True for name, has in torch.cpu.get_capabilities().items() if "bf16" in name)


def _imitated(values: torch.Tensor) -> bool:
    return values.dtype == torch.bfloat16 and values.device.type == "cpu" and not bf16_units()


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """left @ right, two matrices or two equally long batches of them, in the type of both."""
    if not _imitated(left):
        return left @ right
    with torch.autocast("cpu", enabled=False):
        return (left.float() @ right.float()).bfloat16()


def linear(values: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """values @ weight' + bias, in the type of all three."""
    if not _imitated(values):
        return functional.linear(values, weight, bias)
    with torch.autocast("cpu", enabled=False):
        bias = None if bias is None else bias.float()
        return functional.linear(values.float(), weight.float(), bias).bfloat16()


class WideLinear(nn.Linear):
    """A linear layer in bf16, as autocast computes it, whose product is taken in fp32 where that is faster."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        bias = None if self.bias is None else self.bias.bfloat16()
        return linear(values.bfloat16(), self.weight.bfloat16(), bias)


def install(model: nn.Module) -> list[str]:
    """Let the linear layers of `model`, which runs in bf16 on a CPU, be `WideLinear` where this CPU has no bf16 units.

    Returns in words what was done.
    """
    if bf16_units():
        return []
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = WideLinear
    return ["this CPU has no bf16 units: products of bf16 numbers are taken in fp32 and rounded"]


def release(model: nn.Module) -> None:
    """Give `model` PyTorch's linear layers back."""
    for module in model.modules():
        if type(module) is WideLinear:
            module.__class__ = nn.Linear
