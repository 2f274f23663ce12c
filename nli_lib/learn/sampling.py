"""Sampling whole sequences from a generator, many at a time, each draw from random numbers of its own."""

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from nli_lib.learn.model import pick_device, takes_bf16


@torch.no_grad()  # under inference_mode autocast would make its bf16 copies of the weights anew at every token
def sample(
    model: PreTrainedModel, start: int, end: int, draws: Sequence[int], *, seed: int, max_length: int = 128
) -> list[np.ndarray | None]:
    """The ids between start and end of one sequence for each number in `draws`; None where no end came in time.

    Each token is drawn from the model's whole distribution (temperature 1, nothing cut off), by the place at which a
    number of the draw's own, from `seed` and its number, falls in the cumulated probabilities. So a draw does not
    depend on which others are drawn with it, but for the last digits of the model's arithmetic, which differ between
    batches of different size; the same `draws` together give the same ids.

    Source: the paper on debiased generation, section 2.2.1: "randomly sample". *Departures*: it states no temperature.
    """
    device = pick_device()
    model.to(device).eval()
    bf16 = takes_bf16("bf16", device)
    uniform = np.stack([np.random.default_rng([seed, draw]).random(max_length) for draw in draws])
    uniform = torch.from_numpy(uniform).to(device)
    drawn = torch.full((len(draws), max_length), end, device=device)
    drawn[:, 0] = start
    going = torch.arange(len(draws), device=device)  # the rows that the cache holds, in its order
    cache = None
    # entered once, for autocast keeps those copies until it is left
    with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
        for at in range(1, max_length):
            found = model(input_ids=drawn[going, at - 1 : at], past_key_values=cache, use_cache=True)
            cache = found.past_key_values
            cumulated = found.logits[:, -1].softmax(-1, dtype=torch.float32).cumsum(-1, dtype=torch.float64)
            wanted = uniform[going, at, None] * cumulated[:, -1:]
            token = torch.searchsorted(cumulated, wanted, right=True)[:, 0].clamp(max=cumulated.shape[1] - 1)
            ended = drawn[going, at - 1] == end if at > 1 else torch.zeros_like(going, dtype=torch.bool)
            drawn[going, at] = torch.where(ended, end, token)
            alive = drawn[going, at] != end
            left = int(alive.sum())
            if left == 0:
                break
            if left <= len(going) // 2 and hasattr(cache, "batch_select_indices"):
                cache.batch_select_indices(torch.nonzero(alive)[:, 0])
                going = going[alive]
    drawn = drawn.cpu().numpy()[:, 1:]
    ends = (drawn == end).argmax(1)
    finished = (drawn == end).any(1)
    return [row[:stop] if done else None for row, stop, done in zip(drawn, ends, finished, strict=True)]
