"""What is learnt, apart from the loop. Alone: pytest tests/learn/test_objectives.py"""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from nli_lib.learn.encode import encode
from nli_lib.learn.fit import Classify, Loop, fit
from nli_lib.learn.model import load_classifier, load_tokenizer


class Product(Classify):
    """A product of experts in miniature: a second head that reads the hypothesis through the same encoder."""

    name = "product"

    def arrays(self, spec, corpus, tokenizer, tokens=None):
        alone = encode(*corpus.texts("hypothesis"), tokenizer, spec.max_length)
        return {**super().arrays(spec, corpus, tokenizer, tokens), "hypothesis": alone}

    def model(self, spec, classes):
        model, new = super().model(spec, classes)
        model.bias_head = nn.Linear(model.config.hidden_size, len(classes))
        return model, [*new, "bias_head.weight", "bias_head.bias"]

    def read(self, model, inputs):
        return model.bias_head(model.base_model(**inputs).last_hidden_state[:, 0])

    def loss(self, model, batch):
        logits = model(**batch["tokens"]).logits.float()
        both = torch.log_softmax(logits, -1) + torch.log_softmax(self.read(model, batch["hypothesis"]).float(), -1)
        return functional.cross_entropy(both, batch["labels"]), logits


class MeanProduct(Product):
    """The same, but the second head reads every token."""

    name = "mean product"

    def read(self, model, inputs):
        return model.bias_head(model.base_model(**inputs).last_hidden_state.mean(1))


def test_classify_is_cross_entropy(make_spec, corpus):
    spec = make_spec()
    model, _ = load_classifier(spec.model, corpus.classes, 0)
    arrays = Classify().arrays(spec, corpus, load_tokenizer(spec.model))
    rows = np.arange(4)
    batch = {"tokens": arrays["tokens"].batch(rows), "labels": arrays["labels"][:4]}
    loss, logits = Classify().loss(model.eval(), batch)
    by_hand = -torch.log_softmax(logits, -1)[torch.arange(4), torch.tensor(corpus.labels[:4])].mean()
    torch.testing.assert_close(loss, by_hand)


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_objective_with_a_second_head_and_text_needs_nothing_of_the_loop(make_spec, corpus, precision):
    spec = make_spec(objective="product", precision=precision, epochs=2)
    run = fit(spec, corpus, objective=Product())
    assert run.logits.shape == (2, 50, 3) and np.isfinite(run.logits).all()
    assert "bias_head.weight" in run.store.read_json("about.json")["new_parameters"]
    loop = Loop(spec, corpus, objective=Product())
    before = loop.model.bias_head.weight.detach().clone()
    for rows in loop.start_epoch(0):
        loop.step(rows)
    assert not torch.equal(loop.finish().bias_head.weight, before)


def test_the_fast_parts_ask_the_objective_what_is_read(make_spec, corpus):
    """The classifier alone reads the first token only; a head over all tokens must see the whole last layer."""
    for objective, first in ((Product(), True), (MeanProduct(), False)):
        loop = Loop(make_spec(objective=objective.name), corpus, objective=objective)
        assert any("first token" in note for note in loop.notes) == first
        loop.model.eval()
        fast = loop._forward(loop.arrays, np.arange(8))
        plain, _ = objective.model(loop.spec, corpus.classes)
        plain.load_state_dict(loop.finish().state_dict())
        batch = {name: each.batch(np.arange(8)) if name != "labels" else each[:8] for name, each in loop.arrays.items()}
        torch.testing.assert_close(fast, objective.loss(plain.eval(), batch))
