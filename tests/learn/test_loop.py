"""The fast loop against a slow twin. Alone: pytest tests/learn/test_loop.py"""

import numpy as np
import pytest
import torch
from tiny_words import make_corpus
from torch import nn
from torch.nn import functional
from transformers import AutoConfig

from nli_lib.learn import fast as layers
from nli_lib.learn import fit
from nli_lib.learn.fit import Loop, decayed, rate_factor
from nli_lib.learn.model import load_classifier, load_tokenizer


def without_dropout(monkeypatch):
    def load(name, classes, seed):
        model, new = load_classifier(name, classes, seed)
        for each in model.modules():
            if isinstance(each, nn.Dropout):
                each.p = 0.0
        return model, new

    monkeypatch.setattr(fit, "load_classifier", load)


def slow_twin(spec, corpus, batches, precision="fp32"):
    """The definition: transformers' model as it is, the tokenizer's padding, per-parameter AdamW."""
    model, _ = load_classifier(spec.model, corpus.classes, spec.seed)
    tokenizer = load_tokenizer(spec.model)
    with_decay = decayed(model)
    groups = [{"params": [], "weight_decay": decay} for decay in (spec.weight_decay, 0.0)]
    for name, parameter in model.named_parameters():
        groups[name not in with_decay]["params"].append(parameter)
    adamw = torch.optim.AdamW(groups, lr=spec.learning_rate)
    model.eval()  # dropout off
    losses = []
    for step, rows in enumerate(batches):
        inputs = tokenizer([corpus.premise[i] for i in rows], [corpus.hypothesis[i] for i in rows],
                           padding=True, truncation=True, max_length=spec.max_length, return_tensors="pt")  # fmt: skip
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            logits = model(**inputs).logits
        loss = functional.cross_entropy(logits.float(), torch.tensor(corpus.labels[rows]))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), spec.clip)
        for group in adamw.param_groups:
            group["lr"] = spec.learning_rate * rate_factor(spec, step, spec.epochs * len(batches))
        adamw.step()
        adamw.zero_grad()
        losses.append(float(loss.detach()))
    return model, losses


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 2e-5), ("bf16", 2e-2)])
def test_an_epoch_equals_the_slow_twins(make_spec, corpus, monkeypatch, precision, tolerance):
    without_dropout(monkeypatch)
    spec = make_spec(precision=precision, weight_decay=0.1, warmup=0.1)
    loop = Loop(spec, corpus)
    batches = loop.start_epoch(0)
    losses = [float(loop.step(rows)[0]) for rows in batches]
    twin, expected = slow_twin(spec, corpus, batches, precision)
    assert losses == pytest.approx(expected, rel=tolerance)
    model, theirs = loop.finish(), dict(twin.named_parameters())
    assert {name for name, _ in model.named_parameters()} == set(theirs)
    for name, weight in model.named_parameters():
        # AdamW moves a weight by lr whatever its gradient's size, so a bf16 rounding near zero can cost 2 lr a step.
        torch.testing.assert_close(weight, theirs[name], rtol=1e-3, atol=1e-4 if precision == "fp32" else 8e-3)


def test_compact_vocabulary_trains_the_same_weights(make_spec, corpus, monkeypatch):
    spec = make_spec(weight_decay=0.5, learning_rate=1e-2)
    trained = []
    for cut in (True, False):
        if not cut:
            monkeypatch.setattr(layers, "compact", lambda model, ids: (None, "whole"))
        loop = Loop(spec, corpus)
        for rows in loop.start_epoch(0):
            loop.step(rows)
        trained.append(loop.finish().get_input_embeddings().weight.detach().clone())
    seen = loop.arrays["tokens"].vocabulary
    unseen = torch.ones(len(trained[0]), dtype=torch.bool).index_fill_(0, seen, False)
    assert unseen.sum() == 22  # twenty unused words, [UNK] and [MASK]
    torch.testing.assert_close(trained[0][seen], trained[1][seen], rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(trained[0][unseen], trained[1][unseen], rtol=1e-6, atol=0)
    start = load_classifier(spec.model, corpus.classes, 0)[0].get_input_embeddings().weight
    assert (trained[0][unseen].abs() < start[unseen].abs() * 0.99).all()  # they did decay


def test_padding_and_no_mask_give_the_same_logits(make_spec, corpus):
    loop = Loop(make_spec(), corpus)
    together = loop.evaluate(batch_size=50)[1]
    alone = loop.evaluate(batch_size=1)[1]
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


def test_one_seed_repeats_and_another_differs(make_spec, corpus):
    def losses(seed):
        loop = Loop(make_spec(seed=seed), corpus)
        return [float(loop.step(rows)[0]) for rows in loop.start_epoch(0)]

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


def test_logits_of_the_output_layer_are_fp32(make_spec, corpus):
    loop = Loop(make_spec(precision="bf16"), corpus)
    _, logits = loop.evaluate()
    assert not torch.equal(logits, logits.bfloat16().float())


def test_a_head_for_other_classes_is_refused(make_spec, encoder, tmp_path, corpus):
    model, new = load_classifier(encoder, ("contradiction", "entailment", "neutral"), 0)
    assert new == ["classifier.bias", "classifier.weight"]
    model.save_pretrained(tmp_path)
    assert AutoConfig.from_pretrained(tmp_path).id2label[0] == "contradiction"
    with pytest.raises(ValueError, match="has a head for"):
        load_classifier(str(tmp_path), corpus.classes, 0)
    kept, new = load_classifier(str(tmp_path), ("contradiction", "entailment", "neutral"), 5)
    assert new == []
    assert torch.equal(kept.classifier.weight, model.classifier.weight)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_loop_learns_on_a_gpu(make_spec):
    corpus = make_corpus(400)
    # with 8 epochs some seeds stay at an accuracy of .58, on a CPU as well
    loop = Loop(make_spec(precision="bf16", epochs=20, batch_size=16), corpus)
    for epoch in range(20):
        losses = [loop.step(rows)[0] for rows in loop.start_epoch(epoch)]
    assert torch.stack(losses).mean() < 0.9
    assert np.mean(loop.evaluate()[1].numpy().argmax(1) == corpus.labels) > 0.6
    assert loop.finish().dtype == torch.float32


def test_the_last_layer_is_computed_for_the_first_token_where_only_that_is_read(make_spec, corpus):
    loop = Loop(make_spec(), corpus)
    assert any("first token" in note for note in loop.notes)
    loop.model.eval()
    rows = np.arange(len(corpus))
    with torch.inference_mode():
        _, fast = loop._forward(loop.arrays, rows)
    own = loop.finish()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=loop.bf16):
        plain = own(**loop.arrays["tokens"].batch(rows)).logits.float()
    torch.testing.assert_close(fast, plain, rtol=2e-2, atol=2e-2)


def test_a_head_that_reads_all_tokens_keeps_the_whole_last_layer(make_spec, corpus):
    model, _ = load_classifier(make_spec().model, corpus.classes, 0)

    class Mean(nn.Module):
        def forward(self, states):
            return states.mean(dim=1)

    model.bert.pooler = Mean()
    inputs = {"input_ids": torch.tensor([[2, 7, 8, 3]])}
    last = model.eval().bert.encoder.layer[-1]
    assert not layers._only_first_token_counts(last, lambda: model(**inputs).logits)
