"""Dropout from fast random bits: the same distribution as the model's own, at a tenth of its cost on a CPU.

PyTorch draws a CPU's dropout mask with a sequential Mersenne twister, one number an element; in a small encoder that
is a seventh of a training step. Here it comes from raw bits of SFC64, sixteen (bf16) or thirty-two (fp32) an element.

Departures: an element is dropped with probability round(p * 2**16) / 2**16 (p = 0.1 becomes 0.100006) and the kept ones
are scaled by exactly its complement; PyTorch's bf16 kernel rounds that scale to bf16, 0.16% too low at p = 0.1.
"""

import functools
import math

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

WIDTH = {torch.bfloat16: (16, torch.int16, 0x7F80), torch.float32: (32, torch.int32, 0x7F800000)}
LARGEST_RATE = 0.49  # above it there are not enough negative bit patterns, see `cut`


class RandomBits:
    """A seeded stream of raw random bits, viewed as floats."""

    def __init__(self, seed: int = 0):
        self.reseed(seed)

    def reseed(self, *seed: int) -> None:
        """Start again at the stream named by `seed`; what was drawn before leaves no trace."""
        self._random = np.random.Generator(np.random.SFC64(seed))

    def draw(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Uniform bit patterns of `dtype`: every pattern, infinities and NaN too, is equally likely."""
        count = math.prod(shape)
        words = -(-count * WIDTH[dtype][0] // 64)
        bits = self._random.integers(0, 2**64 - 1, words, dtype=np.uint64, endpoint=True)
        return torch.from_numpy(bits.view(np.uint8)).view(dtype)[:count].view(shape)


@functools.cache
def cut(rate: float, dtype: torch.dtype) -> tuple[float, float]:
    """The float `c` such that a uniform bit pattern is <= c with probability `rate`, and that probability exactly.

    Negative floats grow in magnitude with their bit pattern up to minus infinity, so counting patterns down from minus
    infinity gives the cut. NaN compares false and counts as kept.
    """
    width, integer, infinity = WIDTH[dtype]
    count = round(rate * 2**width)
    pattern = infinity + 1 - count - 2 ** (width - 1)  # sign bit set, as a signed integer
    return float(torch.tensor([pattern], dtype=integer).view(dtype)), count / 2**width


class Mask:
    """One dropout mask: zeroes each element with probability `rate` and scales the others by 1 / (1 - rate).

    The same mask is its own derivative: the backward pass applies it to the gradient.
    """

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, rate: float, source: RandomBits):
        self.bits = source.draw(shape, dtype)
        self.threshold, exact = cut(rate, dtype)
        self.scale = 1 / (1 - exact)

    def cut(self, values: torch.Tensor) -> torch.Tensor:
        """The kept elements as they are, the dropped ones zero; one vectorised kernel."""
        return torch.ops.aten.threshold_backward(values, self.bits, self.threshold)

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        return self.cut(values).mul_(self.scale)


class FastDropout(nn.Dropout):
    """Stands in for `nn.Dropout` on a CPU; other devices, types and rates go to PyTorch's own."""

    source: RandomBits

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        fits = values.device.type == "cpu" and values.dtype in WIDTH and 0 < self.p <= LARGEST_RATE
        if not self.training or not fits:
            return super().forward(values)
        return Mask(values.shape, values.dtype, self.p, self.source)(values)


def install(model: PreTrainedModel, source: RandomBits) -> None:
    """Turn every `nn.Dropout` of `model` into a `FastDropout`; a dropout of another class stays as it is."""
    for module in model.modules():
        if type(module) is nn.Dropout:
            module.__class__, module.source = FastDropout, source
