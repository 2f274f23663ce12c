"""log p of the tokens that were chosen, over a vocabulary so large that a copy of all logits in fp32 is a burden."""

import torch
from torch.autograd.function import once_differentiable

AT_ONCE = 2**21  # logits that are looked at in fp32 together: 8 MB, which a processor keeps near


class _ChosenLogP(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        total = torch.cat([part.float().logsumexp(1) for part in logits.split(_rows(logits))])
        ctx.save_for_backward(logits, chosen, total)
        return logits.gather(1, chosen[:, None])[:, 0].float() - total

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: torch.Tensor):
        """With p the probabilities and e the chosen token's unit vector: d_logits = d_log_p (e - p)."""
        logits, chosen, total = ctx.saved_tensors
        result, rows = torch.empty_like(logits), _rows(logits)
        for part, *of in zip(*(each.split(rows) for each in (result, logits, chosen, total, gradient)), strict=True):
            values, token, normaliser, factor = of
            p = (values.float() - normaliser[:, None]).exp_().mul_(-factor[:, None])
            part.copy_(p.scatter_add_(1, token[:, None], factor[:, None]))
        return result, None


def chosen_log_p(logits: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """log p, (T,) in fp32, of the token `chosen` (T,) by each row of `logits` (T, V).

    As `log_softmax(logits.float())` at these tokens, and with its gradient, rounded to the type of the logits as a cast
    would round it; but no more than `AT_ONCE` logits stand in fp32 at a time.
    """
    return _ChosenLogP.apply(logits, chosen)


def _rows(logits: torch.Tensor) -> int:
    return max(1, AT_ONCE // logits.shape[1])
