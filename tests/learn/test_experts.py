"""Product of experts, debiased focal loss and a fixed expert. Alone: pytest tests/learn/test_experts.py"""

import json
import math
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_models import go_through
from tiny_words import WORDS, corpus_from
from torch.nn import functional

from nli_lib.learn import experts as module
from nli_lib.learn.encode import encode
from nli_lib.learn.experts import HEAD, DebiasedFocal, Ensemble, ProductOfExperts, expert_logits, others, product
from nli_lib.learn.fit import Classify, Loop, fit
from nli_lib.learn.model import load_tokenizer
from nli_lib.learn.predict import predict

P, B = [0.4, 0.4, 0.2], [0.7, 0.2, 0.1]  # the fidelity notes' worked case: main head and bias head


def logs(*rows):
    return torch.tensor(rows).log()


def slow_loss(logits, expert, labels, beta, gamma):
    """The definition, example by example, in Python floats."""
    total = 0.0
    for z, y, label in zip(logits.tolist(), expert.tolist(), labels.tolist(), strict=True):
        p, b = ([math.exp(each) / sum(map(math.exp, row)) for each in row] for row in (z, y))
        both = [pi * bi**beta for pi, bi in zip(p, b, strict=True)]
        total += -math.log(both[label] / sum(both)) - gamma * math.log(b[label])
    return total / len(labels)


def made(rows=6, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits, expert = (torch.randn(rows, classes, generator=generator) * 2 for _ in range(2))
    return logits, expert, torch.randint(classes, (rows,), generator=generator)


def test_the_worked_product():
    torch.testing.assert_close(product(logs(P), logs(B), 2).exp()[0], torch.tensor([0.915888, 0.074766, 0.009346]))


def test_bounds_of_the_product():
    logits, expert, _ = made()
    log_p = functional.log_softmax(logits, -1)
    torch.testing.assert_close(product(logits, expert, 0), log_p)  # beta 0: the bias head does not count
    torch.testing.assert_close(product(logits, torch.full_like(expert, 7.0), 2), log_p)  # nor does one that is unsure
    torch.testing.assert_close(product(logits, logits, 1), functional.log_softmax(2 * logits, -1))
    torch.testing.assert_close(product(logits + 5, expert - 3, 2), product(logits, expert, 2))


def test_a_class_that_the_bias_head_excludes_gives_no_nan():
    expert = torch.tensor([[300.0, 0.0, 0.0]], requires_grad=True)  # exp underflows: log(softmax) would be -inf
    logits = torch.tensor([[-200.0, 0.0, 200.0]], requires_grad=True)
    both = product(logits, expert, 2)
    assert torch.isfinite(both).all()
    both[0, 1].backward()
    assert torch.isfinite(expert.grad).all() and torch.isfinite(logits.grad).all()


@pytest.mark.parametrize(("beta", "gamma"), [(0.05, 1), (1, 0.4), (2, 0)])
def test_the_loss_is_the_definition(beta, gamma):
    logits, expert, labels = made(classes=3)
    objective = ProductOfExperts(beta, gamma)
    loss = objective.combine(logits, expert, labels) + gamma * functional.cross_entropy(expert, labels)
    assert float(loss) == pytest.approx(slow_loss(logits, expert, labels, beta, gamma), rel=1e-5)


def test_the_focal_weight_by_hand():
    labels = torch.tensor([0, 1, 2])
    expected = torch.tensor([0.3**2, 0.8**2, 0.9**2])
    torch.testing.assert_close(module.focal_weight(logs(B, B, B), labels, 2), expected)
    torch.testing.assert_close(module.focal_weight(logs(B, B, B), labels, 0), torch.ones(3))
    by_hand = -(expected * torch.tensor(P).log()).mean()
    torch.testing.assert_close(DebiasedFocal(2).combine(logs(P, P, P), logs(B, B, B), labels), by_hand)


def test_a_bias_head_that_is_sure_leaves_a_weight_above_zero():
    sure = torch.tensor([[20.0, 0.0, 0.0]], dtype=torch.float32)  # 1 - b rounds to 0
    assert 0 < float(module.focal_weight(sure, torch.tensor([0]), 1)) < 1e-8


def gradients(make_spec, corpus, objective, **changes):
    """Gradients by parameter of one loss on eight examples with dropout off, and the model."""
    loop = Loop(make_spec(objective=objective.name, **changes), corpus, objective=objective)
    loop.model.eval()
    with torch.no_grad():  # away from the start, where a small head passes hardly any gradient on
        for name, each in loop.model.named_parameters():
            if name.startswith(HEAD) and each.dim() > 1:
                each.copy_(torch.linspace(-2, 2, each.numel()).sin().view_as(each) / each.shape[1] ** 0.5)
    loss, _ = loop.forward(np.arange(8))
    loss.backward()
    return {name: each.grad.clone() for name, each in loop.model.named_parameters() if each.grad is not None}, loop


@pytest.mark.parametrize("kind", [ProductOfExperts, DebiasedFocal])
def test_the_common_loss_reaches_the_bias_head_unless_it_is_detached(make_spec, corpus, kind):
    """With gamma 0 the bias head has no term of its own: what moves it is the product."""
    reached, _ = gradients(make_spec, corpus, kind(gamma=0))
    last = f"{HEAD}.7.weight"
    assert float(reached[last].abs().sum()) > 1e-4
    stopped, _ = gradients(make_spec, corpus, kind(gamma=0, detached=True))
    assert all(float(each.abs().sum()) == 0 for name, each in stopped.items() if name.startswith(HEAD))
    assert float(stopped["classifier.weight"].abs().sum()) > 1e-4


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_encoder_learns_nothing_from_the_bias_heads_loss(make_spec, corpus, precision):
    """Its gradients do not depend on gamma, and without a product they are those of a classifier: it reads the
    hypothesis without a gradient, and that must not cost the pair its own."""
    pairs = [(ProductOfExperts(0.8, 0), ProductOfExperts(0.8, 50)), (Classify(), ProductOfExperts(0, 1))]
    for one, other in pairs:
        (none, loop), (much, _) = (gradients(make_spec, corpus, each, precision=precision) for each in (one, other))
        shared = [name for name in none if not name.startswith(HEAD)]
        assert len(shared) >= len(list(loop.model.base_model.named_parameters())) - 2
        for name in shared:
            torch.testing.assert_close(none[name].to_dense(), much[name].to_dense(), msg=name)
        if one.name != "classify":
            assert not torch.allclose(none[f"{HEAD}.7.weight"], much[f"{HEAD}.7.weight"])


@pytest.mark.usefixtures("runs")
def test_the_main_head_alone_predicts_and_the_bias_head_comes_back_whole(make_spec, corpus):
    objective = ProductOfExperts(1.0, 1.0)
    spec = make_spec(objective=objective.name)
    run = fit(spec, corpus, objective=objective)
    np.testing.assert_allclose(predict(run, corpus), run.logits[-1], atol=1e-5)  # what was recorded is the main head
    assert f"{HEAD}.7.weight" in run.store.read_json("about.json")["new_parameters"]

    loop = Loop(spec, corpus, objective=objective)  # the same training, with the bias head asked in the loop
    go_through(loop, spec.epochs)
    model = loop.finish()

    batch = encode(*corpus.texts("hypothesis"), load_tokenizer(spec.model), 32).batch(np.arange(len(corpus)))
    with torch.inference_mode():
        expected = model.get_submodule(HEAD)(module.pooled(model, batch)).numpy()
    np.testing.assert_allclose(expert_logits(run, corpus.hypothesis), expected, atol=1e-5)


def test_the_bias_head_narrows_to_the_classes_with_tanh_between_its_layers():
    heads = []
    for seed in (0, 0, 1):
        model = torch.nn.Module()
        model.config = SimpleNamespace(hidden_size=64, num_labels=3, hidden_dropout_prob=0.25, initializer_range=0.1)
        names = module.add_head(model, seed)
        heads.append(model.get_submodule(HEAD))
    assert [type(each).__name__ for each in heads[0]] == ["Dropout", *["Linear", "Tanh"] * 3, "Linear"]
    assert [tuple(each.weight.shape) for each in heads[0] if hasattr(each, "weight")] == [
        (64, 64), (32, 64), (16, 32), (3, 16),
    ]  # fmt: skip
    assert heads[0][0].p == 0.25 and float(heads[0][1].weight.detach().std()) == pytest.approx(0.1, rel=0.1)
    assert names == [f"{HEAD}.{at}.{part}" for at in (1, 3, 5, 7) for part in ("weight", "bias")]
    first, again, other = (head[7].weight for head in heads)
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_the_control_is_dealt_its_hypotheses_by_the_runs_seed(make_spec, corpus):
    objective = ProductOfExperts(reads="another")
    for seed in (0, 1):
        spec = make_spec(objective=objective.name, seed=seed)
        tokenizer = load_tokenizer(spec.model)
        given = objective.arrays(spec, corpus)["hypothesis"]
        dealt = encode(list(corpus.hypothesis[others(corpus.labels, seed=seed)]), None, tokenizer, 32)
        assert torch.equal(given.columns["input_ids"], dealt.columns["input_ids"])


@pytest.mark.parametrize("counts", [(200, 200, 200), (300, 50, 7), (40, 0, 60), (1, 1, 1)])
def test_hypotheses_of_others_say_nothing_about_the_label(counts):
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], counts))
    given = [others(labels, seed=seed) for seed in range(20)]
    assert all(sorted(each) == list(range(len(labels))) for each in given)
    expected = np.outer(counts, counts) / len(labels)
    for each in given:
        table = np.zeros((3, 3))
        np.add.at(table, (labels, labels[each]), 1)
        assert np.abs(table - expected).max() <= 2
    assert len({each.tobytes() for each in given}) > 1 and np.array_equal(others(labels, seed=3), given[3])
    assert np.mean([(each == np.arange(len(labels))).mean() for each in given]) < 0.05 or len(labels) < 10


@pytest.mark.usefixtures("runs")
def test_the_bias_head_finds_what_the_hypothesis_gives_away_and_not_from_another(make_spec, encoder, tmp_path):
    corpus = corpus_from([(f"the {word}", word, at % 3) for at, word in enumerate(WORDS[:18])] * 6)
    wide = shutil.copytree(encoder, tmp_path / "wide")  # so few steps move a head this narrow only from a larger start
    config = json.loads((wide / "config.json").read_text())
    (wide / "config.json").write_text(json.dumps({**config, "initializer_range": 0.2}))
    settings, right = {"model": str(wide), "epochs": 6, "learning_rate": 3e-3}, {}
    for reads in ("own", "another"):
        objective = ProductOfExperts(1.0, 1.0, reads=reads)
        run = fit(make_spec(objective=objective.name, **settings), corpus, objective=objective)
        right[reads] = (expert_logits(run, corpus.hypothesis).argmax(1) == corpus.labels).mean()
    assert right["own"] > 0.8 and right["another"] < 0.5


@pytest.mark.usefixtures("runs")
def test_an_ensemble_with_an_expert_that_knows_nothing_is_a_classifier(make_spec, corpus):
    objective = Ensemble(np.zeros((50, 3)))
    plain = fit(make_spec(epochs=2), corpus)
    run = fit(make_spec(epochs=2, objective=objective.name), corpus, objective=objective)
    np.testing.assert_allclose(run.logits, plain.logits, atol=1e-4)
    with pytest.raises(ValueError, match="no bias head: its objective is 'classify'"):
        expert_logits(plain, corpus.hypothesis)


def test_an_expert_of_another_shape_is_refused(make_spec, corpus):
    objective = Ensemble(np.zeros((49, 3)))
    with pytest.raises(ValueError, match="shape .49, 3. for 50 examples of 3 classes"):
        Loop(make_spec(objective=objective.name), corpus, objective=objective)
    with pytest.raises(ValueError, match="finite"):
        Ensemble(np.full((50, 3), np.nan))


@pytest.mark.parametrize("knobs", [{"beta": -1}, {"gamma": -0.1}, {"reads": "premise"}])
def test_impossible_knobs_are_refused(knobs):
    with pytest.raises(ValueError, match=next(iter(knobs))):
        ProductOfExperts(**knobs)


def test_names_tell_methods_apart():
    each = [ProductOfExperts(), ProductOfExperts(1), ProductOfExperts(detached=True), ProductOfExperts(reads="another")]
    each += [ProductOfExperts(gamma=1), DebiasedFocal(), DebiasedFocal(1), DebiasedFocal(detached=True)]
    each += [Ensemble(np.zeros((2, 3))), Ensemble(np.ones((2, 3))), Ensemble(np.zeros((2, 3)), beta=2)]
    assert len({objective.name for objective in each}) == len(each)
