"""log p of chosen tokens. Alone: pytest tests/learn/test_likelihood.py"""

import math

import pytest
import torch

from nli_lib.learn import generator
from nli_lib.learn.generator import chosen_log_p


def test_by_hand():
    logits = torch.tensor([[0.0, 0.0, 0.0, 0.0], [math.log(3), 0.0, -torch.inf, -torch.inf]])
    found = chosen_log_p(logits, torch.tensor([2, 0]))
    torch.testing.assert_close(found, torch.tensor([math.log(1 / 4), math.log(3 / 4)]))


@pytest.mark.parametrize("rows", [1, 2, 7, 100])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_value_and_gradient_against_log_softmax(monkeypatch, rows, kind):
    """However many rows are taken at a time."""
    monkeypatch.setattr(generator, "AT_ONCE", 11 * rows)
    logits, theirs = ((10 * torch.randn(7, 11, generator=torch.manual_seed(1))).to(kind) for _ in range(2))
    logits.requires_grad_()
    theirs.requires_grad_()
    chosen, upstream = torch.randint(0, 11, (7,)), torch.randn(7)
    ours = chosen_log_p(logits, chosen)
    slow = torch.log_softmax(theirs.float(), -1)[torch.arange(7), chosen]
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, slow, rtol=1e-5, atol=1e-5)
    ours.backward(upstream)
    slow.backward(upstream)
    assert logits.grad.dtype == kind
    exact = {"rtol": 1e-5, "atol": 1e-6} if kind == torch.float32 else {"rtol": 8e-3, "atol": 1e-6}
    torch.testing.assert_close(logits.grad, theirs.grad, **exact)


def test_no_tokens():
    logits = torch.empty(0, 5, requires_grad=True)
    found = chosen_log_p(logits, torch.empty(0, dtype=torch.long))
    found.sum().backward()
    assert found.shape == (0,) and logits.grad.shape == (0, 5)


def test_never_above_zero_and_finite_for_sure_tokens():
    logits = torch.tensor([[400.0, 0.0], [-400.0, 0.0]], requires_grad=True)
    found = chosen_log_p(logits, torch.tensor([0, 0]))
    found.sum().backward()
    assert (found <= 0).all() and torch.isfinite(found).all() and torch.isfinite(logits.grad).all()
