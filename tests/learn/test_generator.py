"""The generator's objectives, its likelihood and its samples. Alone: pytest tests/learn/test_generator.py"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from tiny_models import go_through
from tiny_words import make_corpus

from nli_lib.errors import TrainingError
from nli_lib.learn import generator as module
from nli_lib.learn.encode import Tokens, frame
from nli_lib.learn.fit import Loop
from nli_lib.learn.generator import Debias, Generate, chosen_log_p, load, sample, train, unlikelihood
from nli_lib.learn.model import load_tokenizer
from nli_lib.measure.features import features, tokenize
from nli_lib.measure.giveaways import flagged_words

KINDS = pytest.mark.parametrize("kind", ["gpt2", "llama"])
WRONG = pytest.mark.parametrize("wrong", ["one", "both"])


@pytest.fixture
def make(make_spec, language_models):
    def make(objective, kind="gpt2", **changes):
        settings = {"model": language_models[kind], "max_length": 64, "schedule": "constant", "warmup": 0.0}
        return make_spec(objective=objective.name, **{**settings, "clip": None, **changes})

    return make


@pytest.fixture
def asked(make):
    """An objective's model in evaluation, and what asks it for (loss, record) of some rows of a corpus."""

    def asked(objective, corpus, kind="gpt2"):
        spec = make(objective, kind)
        model, new = objective.model(spec, corpus.classes)
        assert new == []
        arrays = objective.arrays(spec, corpus)

        def ask(rows):
            batch = {
                name: each.batch(rows) if isinstance(each, Tokens) else each[rows] for name, each in arrays.items()
            }
            return objective.loss(model, batch)

        return model.eval(), ask

    return asked


@pytest.fixture
def corpus():
    return make_corpus(24)


def no_mask(corpus):
    return [np.zeros(len(tokenize(side).ids), bool) for side in (corpus.premise, corpus.hypothesis)]


def slow_log_p(model, ids):
    """log p of each token after the first, one sequence, one softmax at a time."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0].double()
    return [float(torch.log_softmax(logits[at], -1)[ids[at + 1]]) for at in range(len(ids) - 1)]


def slow_parts(tokenizer, corpus, at, label):
    """(ids, where the hypothesis is) of one pair under a label, laid out by hand."""
    around = frame(corpus.classes, tokenizer)
    p, h = (tokenizer(side[at], add_special_tokens=False)["input_ids"] for side in (corpus.premise, corpus.hypothesis))
    before = [around.start, *p, *around.labels[label]]
    return [*before, *h, around.end], range(len(before), len(before) + len(h))


@KINDS
@WRONG
def test_loss_and_record_against_a_slow_twin(asked, language_models, corpus, kind, wrong):
    """In evaluation: the mean (one) or the sum (both) over the wrong labels."""
    model, ask = asked(Generate(0.5, wrong), corpus, kind)
    tokenizer, rows, total = load_tokenizer(language_models[kind]), np.array([0, 5, 7, 11]), 0.0
    loss, recorded = ask(rows)
    for row, at in enumerate(rows):
        for label in range(3):
            ids, hypothesis = slow_parts(tokenizer, corpus, at, label)
            log_p = slow_log_p(model, ids)
            spoken = sum(log_p[t - 1] for t in [*hypothesis, len(ids) - 1])
            assert float(recorded[row, label]) == pytest.approx(spoken, abs=1e-3)
            if label == corpus.labels[at]:
                total -= sum(log_p)
            else:
                share = 0.5 if wrong == "one" else 1.0
                total -= 0.5 * share * sum(math.log(1 - math.exp(log_p[t - 1])) for t in hypothesis)
    assert float(loss.detach()) == pytest.approx(total / len(rows), rel=1e-5)


def test_in_training_one_wrong_label_is_drawn_uniformly(asked, corpus):
    model, ask = asked(Generate(1.0), corpus, "llama")  # no dropout
    model.train()
    gold, every = torch.tensor(corpus.labels), torch.arange(24)
    torch.manual_seed(0)
    drawn = [torch.isfinite(ask(np.arange(24))[1]) for _ in range(40)]
    counts = torch.stack(drawn).sum(0)  # (24, 3) how often each label was computed
    assert all(each.sum(1).eq(2).all() for each in drawn)  # the right one and one wrong one
    assert counts[every, gold].eq(40).all()
    others = [int(counts[every, (gold + step) % 3].sum()) for step in (1, 2)]
    assert abs(others[0] - others[1]) < 4 * math.sqrt(40 * 24)  # four standard deviations


def test_without_unlikelihood_the_loss_is_that_of_a_language_model(asked, language_models, corpus):
    """transformers' own loss, a mean over tokens, times the tokens."""
    model, ask = asked(Generate(0.0), corpus)
    tokenizer = load_tokenizer(language_models["gpt2"])
    for at in range(3):
        ids = torch.tensor([slow_parts(tokenizer, corpus, at, corpus.labels[at])[0]])
        theirs = float(model(input_ids=ids, labels=ids).loss) * (ids.shape[1] - 1)
        assert float(ask(np.array([at]))[0]) == pytest.approx(theirs, rel=1e-5)


def test_a_pair_does_not_depend_on_its_batch(asked, corpus):
    _, ask = asked(Generate(0.5), corpus, "llama")
    alone = [ask(np.array([at]))[1] for at in range(24)]
    torch.testing.assert_close(ask(np.arange(24))[1], torch.cat(alone), atol=1e-4, rtol=1e-5)


def test_unlikelihood_near_certainty():
    """By hand; and where p cannot be told from 1 it is large, finite, and still falls when the logit falls."""
    by_hand = torch.tensor([0.5, 0.9]).log()
    torch.testing.assert_close(unlikelihood(by_hand), torch.tensor([math.log(2), math.log(10)]))
    logits = torch.tensor([[0.0, 0.0], [15.0, 0.0], [400.0, 0.0]], requires_grad=True)
    found = unlikelihood(torch.log_softmax(logits, -1)[:, 0])
    found.sum().backward()
    most = -math.log1p(-module.SUREST)
    assert torch.isfinite(found).all() and float(found[2].detach()) == pytest.approx(most, rel=1e-3)
    assert torch.isfinite(logits.grad).all() and logits.grad.abs().max() <= 1 + 1e-3
    assert logits.grad[0, 0] == pytest.approx(0.5) and logits.grad[1, 0] > 0.2  # p, and at p = 1 - 3e-7 still alive


# ---------------------------------------------------------------- log p of the chosen tokens


@pytest.mark.parametrize(("logits", "chosen", "expected"), [
    ([[0.0, 0, 0, 0], [math.log(3), 0, -math.inf, -math.inf]], [2, 0], [math.log(1 / 4), math.log(3 / 4)]),
    # sure ones: finite, never above zero
    ([[400.0, 0.0], [-400.0, 0.0]], [0, 0], [0.0, -400.0])])  # fmt: skip
def test_log_p_by_hand(logits, chosen, expected):
    logits = torch.tensor(logits, requires_grad=True)
    found = chosen_log_p(logits, torch.tensor(chosen))
    found.sum().backward()
    torch.testing.assert_close(found, torch.tensor(expected))
    assert (found <= 0).all() and torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("rows", [1, 2, 7, 100])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("tokens", [0, 7])
def test_log_p_and_its_gradient_against_log_softmax(monkeypatch, rows, kind, tokens):
    """However many rows are taken at a time."""
    monkeypatch.setattr(module, "AT_ONCE", 11 * rows)
    logits, theirs = (
        (10 * torch.randn(tokens, 11, generator=torch.manual_seed(1))).to(kind).requires_grad_() for _ in range(2)
    )
    chosen, upstream = torch.randint(0, 11, (tokens,)), torch.randn(tokens)
    ours = chosen_log_p(logits, chosen)
    slow = torch.log_softmax(theirs.float(), -1)[torch.arange(tokens), chosen]
    torch.testing.assert_close(ours, slow, rtol=1e-5, atol=1e-5)
    ours.backward(upstream)
    slow.backward(upstream)
    assert ours.dtype == torch.float32 and logits.grad.dtype == kind
    torch.testing.assert_close(logits.grad, theirs.grad, rtol=1e-5 if kind == torch.float32 else 8e-3, atol=1e-6)


# ---------------------------------------------------------------- debiasing


def test_mask_and_sign_by_hand(make):
    """Six tokens of a rejected pair, of which two are flagged: m = 0 there, and their p is pushed down; every other
    token's p, those of the rejected pair among them, is pushed up. The kept pair is ordinary likelihood."""
    table = make_corpus(2).table.assign(premise="dog", hypothesis=["cat dog cat dog"] * 2, label=[0, 1])
    hypothesis = np.array([False, True, False, True] * 2)  # words: both "dog" of either pair; the second pair is kept
    objective = Debias([True, False], np.zeros(2, bool), hypothesis, np.zeros(2, bool), alpha=0.5)
    arrays = objective.arrays(make(objective, "llama"), replace(make_corpus(2), table=table))
    flagged = arrays["tokens"].batch(np.arange(2))["flagged"]
    assert flagged[1].sum() == 0 and flagged[0].sum() == 2
    p = torch.tensor([[0.2, 0.5, 0.1, 0.9, 0.3, 0.6]]).repeat(2, 1)
    m = torch.tensor([1.0, 0, 1, 0, 1, 1])
    made = {"tokens": {"flagged": torch.tensor([[0, 0, 1, 0, 1, 0, 0], [0] * 7])}, "rejected": arrays["rejected"]}
    log_p = p.log().requires_grad_(True)
    found = objective._own(log_p, made)
    rejected = -torch.log(m * p[0] + (1 - m) * (1 - p[0])).sum()
    wanted = -0.5 * math.log(0.2 * 0.5 * 0.1 * 0.1 * 0.3 * 0.6)
    assert float(found[0].detach()) == pytest.approx(0.5 * float(rejected)) == pytest.approx(wanted)
    assert float(found[1].detach()) == pytest.approx(-math.log(0.2 * 0.5 * 0.1 * 0.9 * 0.3 * 0.6))
    found[0].backward()
    assert (log_p.grad[0, [1, 3]] > 0).all()  # a step down the gradient lowers these
    assert (log_p.grad[0, [0, 2, 4, 5]] < 0).all()  # and raises those: they are not ignored
    assert (log_p.grad[1] == 0).all()


def test_debiasing_lowers_the_flagged_and_raises_the_others(make, corpus):
    """The same in a training: a word flagged in all rejected pairs becomes rarer than without the mask."""
    rejected, whole = np.arange(24) % 2 == 0, np.zeros(24, bool)
    premise, unflagged = no_mask(corpus)
    words = tokenize(corpus.hypothesis)
    flags = words.ids == words.vocabulary.index("dog").as_py()

    def mean_of_dog(flags):
        objective = Debias(rejected, premise, flags, whole)
        loop = Loop(make(objective, "llama", learning_rate=3e-3), corpus, objective=objective)
        go_through(loop, epochs=3)
        tokenizer = load_tokenizer(loop.spec.model)
        around = frame(corpus.classes, tokenizer)
        (piece,), the = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (" dog", "the"))
        ids = torch.tensor([[around.start, *around.labels[0], *the]])
        return float(torch.softmax(loop.finish()(input_ids=ids).logits[0, -1], -1)[piece])

    assert mean_of_dog(flags) < mean_of_dog(unflagged)


def test_a_mask_that_covers_everything_leaves_label_and_end(make, corpus):
    premise, hypothesis = (np.ones_like(each) for each in no_mask(corpus))
    objective = Debias(np.arange(24) > 0, premise, hypothesis, np.ones(24, bool))
    loop = Loop(make(objective), corpus, objective=objective)
    part, flagged = (loop.arrays["tokens"].columns[name] for name in ("part", "flagged"))
    of = torch.from_numpy(np.repeat(np.arange(24), loop.lengths))
    assert flagged[(part == 3) & (of > 0)].all() and not flagged[(part == 2) | (part == 4)].any()
    assert not flagged[of == 0].any()  # the pair that was kept
    for rows in loop.start_epoch(0):
        assert torch.isfinite(loop.step(rows)[0])


def test_names_tell_masks_and_settings_apart(corpus):
    premise, hypothesis = no_mask(corpus)
    parts = np.arange(24) > 3, premise, hypothesis, np.zeros(24, bool)
    other = np.arange(len(hypothesis)) == 0
    assert Debias(*parts).name == Debias(*parts).name != Debias(*parts[:2], other, parts[3]).name
    assert Debias(*parts, alpha=0.5).name != Debias(*parts).name
    assert len({Generate(0).name, Generate(0.5).name, Generate(1).name, Generate(0.5, "both").name}) == 4


def test_features_of_a_rejected_pair_become_its_flagged_pieces(make):
    """From the filter's hits to the mask: n-grams flag themselves, other features the whole hypothesis."""
    hypotheses = ["a dog runs", "the cat, outside!", "a bird"]
    corpus = make_corpus(3)
    corpus = replace(corpus, table=corpus.table.assign(premise="the old man", hypothesis=hypotheses))
    found = features(corpus.premise, corpus.hypothesis)
    hits = np.zeros(found.matrix.shape, bool)
    hits[0, [list(found.names).index(name) for name in ("a dog@hypothesis", "man@premise")]] = True
    hits[1, list(found.names).index("hypo-len< 5")] = True
    flags = flagged_words(corpus.premise, corpus.hypothesis, sparse.csr_array(hits), found.names)
    objective = Debias([True, True, False], *flags)
    spec = make(objective)
    every = [objective.arrays(spec, corpus)["tokens"][np.array([at])].columns for at in range(3)]
    flagged = [columns["input_ids"][columns["flagged"] > 0] for columns in every]
    assert load_tokenizer(spec.model).batch_decode(flagged) == [" mana dog", "the cat, outside!", ""]


# ---------------------------------------------------------------- runs


@pytest.mark.usefixtures("runs")
@KINDS
def test_a_run_records_every_label_and_learns(make, asked, corpus, kind):
    """The third label is no pair's: it is a wrong label like the others."""
    corpus, objective = replace(corpus, table=corpus.table.assign(label=corpus.labels % 2)), Generate(0.5)
    run = train(make(objective, kind, epochs=4, learning_rate=3e-3), corpus, objective)
    assert run.logits.shape == (4, 24, 3) and np.isfinite(run.logits).all() and (run.logits < 0).all()
    assert run.log["loss"].iloc[-1] < run.log["loss"].iloc[0]
    own = run.logits[:, np.arange(24), corpus.labels].mean(1)
    assert own[-1] > own[0]
    stored = load(str(run.model))
    assert stored.config.vocab_size == len(load_tokenizer(str(run.model)))  # whole, in the hub's format
    model, ask = asked(objective, corpus, kind)
    model.load_state_dict(stored.state_dict())
    with torch.inference_mode():
        np.testing.assert_allclose(ask(np.arange(24))[1], run.logits[-1], atol=1e-3)


@pytest.mark.usefixtures("runs")
def test_a_debiased_generator_goes_on_from_the_run_of_another(make, corpus):
    first = Generate(0.5)
    begun = train(make(first, epochs=1), corpus, first)
    objective = Debias(np.arange(24) > 11, *no_mask(corpus), np.zeros(24, bool))
    spec = make(objective, model=f"run:{begun.spec.id}", epochs=1)
    start, _ = objective.model(spec, corpus.classes)
    weights = load(str(begun.model)).state_dict()
    assert all(torch.equal(weight, start.state_dict()[name]) for name, weight in weights.items())
    assert np.isfinite(train(spec, corpus, objective).logits).all()


@KINDS
def test_in_bf16_the_loss_is_about_the_same_and_falls(make, corpus, kind, monkeypatch):
    """As on a GPU; on a processor without bf16 units the products are emulated, which is enough for a tiny model."""
    losses, objective = {}, Generate(0.5)
    for bf16 in (False, True):
        monkeypatch.setattr("nli_lib.learn.fit.takes_bf16", lambda precision, bf16=bf16: bf16)
        loop = Loop(make(objective, kind, precision="bf16", learning_rate=3e-3), corpus, objective=objective)
        before = loop.evaluate()[0]
        go_through(loop, epochs=2)
        losses[bf16] = before, loop.evaluate()[0]
        assert all(weight.dtype == torch.float32 for weight in loop.finish().state_dict().values())
    assert losses[True][1] < losses[True][0]
    np.testing.assert_allclose(losses[True], losses[False], rtol=0.03)


def test_compiled_layers_share_one_program_and_change_no_number(make, corpus, monkeypatch):
    monkeypatch.setattr("nli_lib.learn.fast.install_layers", lambda *_: [])  # on a GPU they are transformers' own
    spec, programs = make(Generate(0.5), "llama"), []
    plain, compiled = (Loop(spec, corpus, objective=Generate(0.5)) for _ in range(2))
    module.compile_layers(compiled.model, backend=lambda program, inputs: programs.append(program) or program)
    for rows, again in zip(plain.start_epoch(0), compiled.start_epoch(0), strict=True):
        torch.manual_seed(0)
        expected = plain.step(rows)
        torch.manual_seed(0)
        torch.testing.assert_close(compiled.step(again), expected)
    torch.testing.assert_close(compiled.evaluate()[1], plain.evaluate()[1])
    assert 0 < len(programs) <= 4 and compiled.finish().state_dict().keys() == plain.finish().state_dict().keys()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@KINDS
def test_a_generator_learns_on_a_gpu_as_its_layers_would_one_by_one(make, corpus, kind, monkeypatch):
    spec, losses = make(Generate(0.5), kind, precision="fp32"), []
    compiled = Loop(spec, corpus, objective=Generate(0.5))
    monkeypatch.setattr(module, "compile_layers", lambda model: None)
    plain = Loop(spec, corpus, objective=Generate(0.5))
    for epoch in range(3):
        for loop in (compiled, plain):
            losses.append(float(torch.stack([loop.step(rows)[0] for rows in loop.start_epoch(epoch)]).mean()))
    torch.testing.assert_close(compiled.evaluate()[1], plain.evaluate()[1], rtol=1e-2, atol=1e-1)
    assert losses[-2] < losses[0], "the compiled one learns"


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("bad", [{"unlikelihood": -1}, {"wrong": "two"}])
def test_knobs_out_of_range(bad):
    with pytest.raises(TrainingError, match="must not be negative"):
        Generate(**bad)


def test_corpora_masks_and_models_that_do_not_fit_are_refused(make, corpus, encoder):
    premise, hypothesis = no_mask(corpus)
    with pytest.raises(TrainingError, match="kept no pair"):
        Debias(np.ones(24, bool), premise, hypothesis, np.zeros(24, bool))
    other = Debias(np.arange(9) > 3, premise, hypothesis, np.zeros(9, bool))
    with pytest.raises(TrainingError, match="made for 9 pairs"):
        Loop(make(other), corpus, objective=other)
    one = replace(corpus, table=corpus.table.assign(label=0), classes=("entailment",))
    with pytest.raises(TrainingError, match="no label is wrong"):
        Loop(make(Generate(0.5)), one, objective=Generate(0.5))
    Loop(make(Generate(0.0)), one, objective=Generate(0.0))  # a plain language model of it is fine
    with pytest.raises(TrainingError, match="causal language model"):
        Generate(0.5).model(make(Generate(0.5), model=encoder), ("a", "b"))


# ---------------------------------------------------------------- sampling


@pytest.fixture(params=["gpt2", "llama"])
def drawn(request, language_models):
    """A model whose output layer has a bias: the end is frequent, so that draws end at different lengths and the batch
    shrinks; and what draws from it, as lists."""
    model = load(language_models[request.param])
    head = model.get_output_embeddings()
    head.bias = torch.nn.Parameter(torch.zeros(head.out_features).index_fill_(0, torch.tensor(0), 4.0), False)

    def drawn(start, draws, seed, max_length=24):
        found = sample(model, start, 0, draws, seed=seed, max_length=max_length)
        return [None if each is None else each.tolist() for each in found]

    return model, drawn


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


def test_samples_against_a_slow_twin(drawn, monkeypatch):
    """In fp32: where the processor has bf16 units, the digits that are lost there move some draws."""
    monkeypatch.setattr(module, "takes_bf16", lambda *_: False)
    model, draw = drawn
    found = draw(1, range(20, 44), seed=7)
    assert found == [slow(model, 1, 0, number, 7, 24) for number in range(20, 44)]
    assert len({len(each) for each in found if each is not None}) > 3


def test_a_draw_is_named_by_its_number_and_seed(drawn):
    _, draw = drawn
    whole = draw(0, range(30), seed=1)  # the start is the end, as in GPT-2
    assert whole == draw(0, range(30), seed=1) != draw(0, range(30), seed=2)
    assert whole[10:20] == draw(0, range(10, 20), seed=1)


def test_without_an_end_in_time_there_is_none(drawn):
    model, draw = drawn
    model.get_output_embeddings().bias[0] = -50.0
    assert draw(1, range(5), seed=0, max_length=8) == [None] * 5


def test_frequencies_are_the_models(drawn):
    """The first token of 3,000 draws against the model's own probabilities, within five standard errors."""
    model, draw = drawn
    model.get_output_embeddings().bias[2:] = -50.0  # only two tokens are left: the end and one that goes on
    p = float(torch.softmax(model(input_ids=torch.tensor([[1]])).logits[0, -1].double(), -1)[0])
    ended_at_once = np.mean([each == [] for each in draw(1, range(3000), seed=3, max_length=3)])
    assert ended_at_once == pytest.approx(p, abs=5 * (p * (1 - p) / 3000) ** 0.5)
