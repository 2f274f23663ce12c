"""Sampling from a generator. Alone: pytest tests/learn/test_sampling.py"""

import numpy as np
import pytest
import torch
from tiny_generator import make_language_model

from nli_lib.learn.generator import load, sample


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request, tmp_path_factory):
    return load(make_language_model(tmp_path_factory.mktemp(request.param), request.param))


def slow(model, start, end, draw, seed, max_length):
    """One draw, one token at a time, without a cache; the token is where the number falls in the cumulated p."""
    uniform, ids = np.random.default_rng([seed, draw]).random(max_length), [start]
    for at in range(1, max_length):
        with torch.inference_mode():
            p = torch.softmax(model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].double(), -1).numpy()
        token = int((np.cumsum(p) <= uniform[at]).sum())
        if token == end:
            return ids[1:]
        ids.append(token)
    return None


def as_lists(found):
    return [None if each is None else each.tolist() for each in found]


def likely_end(model, end):
    """Make the end frequent, so that draws end at different lengths and the batch shrinks."""
    with torch.no_grad():
        head = model.get_output_embeddings()
        if head.bias is None:
            head.bias = torch.nn.Parameter(torch.zeros(head.out_features))
        head.bias.zero_()
        head.bias[end] = 4.0


def test_slow_twin(model, monkeypatch):
    """In fp32: where the processor has bf16 units, the digits that are lost there move some draws."""
    monkeypatch.setattr("nli_lib.learn.generator.takes_bf16", lambda *_: False)
    likely_end(model, 0)
    found = as_lists(sample(model, 1, 0, range(20, 44), seed=7, max_length=24))
    assert found == [slow(model, 1, 0, draw, 7, 24) for draw in range(20, 44)]
    assert len({len(each) for each in found if each is not None}) > 3


def test_a_draw_is_named_by_its_number_and_seed(model):
    likely_end(model, 0)
    whole = as_lists(sample(model, 0, 0, range(30), seed=1, max_length=24))  # the start is the end, as in GPT-2
    assert whole == as_lists(sample(model, 0, 0, range(30), seed=1, max_length=24))
    assert whole[10:20] == as_lists(sample(model, 0, 0, range(10, 20), seed=1, max_length=24))
    assert whole != as_lists(sample(model, 0, 0, range(30), seed=2, max_length=24))


def test_without_an_end_in_time_there_is_none(model):
    likely_end(model, 0)
    with torch.no_grad():
        model.get_output_embeddings().bias[0] = -50.0
    assert as_lists(sample(model, 1, 0, range(5), seed=0, max_length=8)) == [None] * 5


def test_frequencies_are_the_models(model):
    """The first token of 3,000 draws against the model's own probabilities: a chi-square within five deviations."""
    likely_end(model, 0)
    with torch.no_grad():
        model.get_output_embeddings().bias[2:] = -50.0  # only two tokens are left: the end and one that goes on
    found = sample(model, 1, 0, range(3000), seed=3, max_length=3)
    p = torch.softmax(model(input_ids=torch.tensor([[1]])).logits[0, -1].double(), -1)
    ended_at_once = np.mean([each is not None and len(each) == 0 for each in found])
    assert ended_at_once == pytest.approx(float(p[0]), abs=5 * (float(p[0] * (1 - p[0])) / 3000) ** 0.5)
