"""The generator's objectives. Alone: pytest tests/learn/test_generator.py"""

import math
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_generator import make_language_model
from tiny_words import make_corpus

from nli_lib.learn.encode import Tokens, frame, sequences
from nli_lib.learn.fit import Loop, TrainingError, fit
from nli_lib.learn.generator import (
    SUREST,
    Debias,
    Generate,
    GeneratorError,
    compile_layers,
    load,
    train,
    unlikelihood,
)
from nli_lib.learn.model import load_tokenizer
from nli_lib.measure.features import tokenize
from nli_lib.measure.giveaways import flagged_words
from nli_lib.store import RunFolder, RunSpec


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {kind: make_language_model(tmp_path_factory.mktemp(kind), kind) for kind in ("gpt2", "llama")}


@pytest.fixture
def make(folders):
    def make(objective, kind="gpt2", **changes):
        settings = {"corpus": "tiny", "model": folders[kind], "epochs": 3, "batch_size": 8, "learning_rate": 1e-3}
        settings |= {"precision": "fp32", "max_length": 64, "schedule": "constant", "warmup": 0.0, "clip": None}
        return RunSpec(objective=objective.name, **{**settings, **changes})

    return make


@pytest.fixture
def corpus():
    return make_corpus(24)


def no_mask(corpus):
    words = [len(tokenize(side).ids) for side in (corpus.premise, corpus.hypothesis)]
    return [np.zeros(n, bool) for n in words]


def batch_of(objective, spec, corpus, rows):
    arrays = objective.arrays(spec, corpus, load_tokenizer(spec.model))
    return {name: each.batch(rows) if isinstance(each, Tokens) else each[rows] for name, each in arrays.items()}


def slow_log_p(model, ids):
    """log p of each token after the first, one sequence, one softmax at a time."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0].double()
    return [float(torch.log_softmax(logits[at], -1)[ids[at + 1]]) for at in range(len(ids) - 1)]


def slow_parts(spec, corpus, at, label):
    """(ids, where the hypothesis is) of one pair under a label, laid out by hand."""
    tokenizer = load_tokenizer(spec.model)
    around = frame(corpus.classes, tokenizer)
    p, h = (tokenizer(side[at], add_special_tokens=False)["input_ids"] for side in (corpus.premise, corpus.hypothesis))
    before = [around.start, *p, *around.labels[label]]
    return [*before, *h, around.end], range(len(before), len(before) + len(h))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("wrong", ["one", "both"])
def test_loss_and_record_against_a_slow_twin(make, corpus, kind, wrong):
    """In evaluation: the mean (one) or the sum (both) over the wrong labels."""
    objective = Generate(0.5, wrong)
    spec = make(objective, kind)
    model, new = objective.model(spec, corpus.classes)
    assert new == []
    rows = np.array([0, 5, 7, 11])
    loss, recorded = objective.loss(model.eval(), batch_of(objective, spec, corpus, rows))
    total = 0.0
    for row, at in enumerate(rows):
        gold = corpus.labels[at]
        for label in range(3):
            ids, hypothesis = slow_parts(spec, corpus, at, label)
            log_p = slow_log_p(model, ids)
            spoken = sum(log_p[t - 1] for t in [*hypothesis, len(ids) - 1])
            assert float(recorded[row, label]) == pytest.approx(spoken, abs=1e-3)
            if label == gold:
                total -= sum(log_p)
            else:
                share = 0.5 if wrong == "one" else 1.0
                total -= 0.5 * share * sum(math.log(1 - math.exp(log_p[t - 1])) for t in hypothesis)
    assert float(loss) == pytest.approx(total / len(rows), rel=1e-5)


def test_in_training_one_wrong_label_is_drawn_uniformly(make, corpus):
    objective = Generate(1.0)
    spec = make(objective, "llama")  # no dropout
    model, _ = objective.model(spec, corpus.classes)
    model.train()
    rows = np.arange(24)
    batch, gold = batch_of(objective, spec, corpus, rows), corpus.labels
    torch.manual_seed(0)
    drawn = [torch.isfinite(objective.loss(model, batch)[1]) for _ in range(40)]
    counts = torch.stack(drawn).sum(0)  # (24, 3) how often each label was computed
    assert all(each.sum(1).eq(2).all() for each in drawn)  # the right one and one wrong one
    assert counts[torch.arange(24), torch.tensor(gold)].eq(40).all()
    others = torch.stack([counts[torch.arange(24), (torch.tensor(gold) + step) % 3] for step in (1, 2)]).sum(1)
    assert abs(int(others[0]) - int(others[1])) < 4 * math.sqrt(40 * 24)  # four standard deviations


def test_without_unlikelihood_the_loss_is_that_of_a_language_model(make, corpus):
    """transformers' own loss, a mean over tokens, times the tokens."""
    objective = Generate(0.0)
    spec = make(objective)
    model, _ = objective.model(spec, corpus.classes)
    tokens = sequences(corpus, load_tokenizer(spec.model), 64)
    for at in range(3):
        ids = tokens[np.array([at])].columns["input_ids"][None]
        theirs = float(model(input_ids=ids, labels=ids).loss) * (ids.shape[1] - 1)
        ours, _ = objective.loss(model.eval(), batch_of(objective, spec, corpus, np.array([at])))
        assert float(ours) == pytest.approx(theirs, rel=1e-5)


def test_a_pair_does_not_depend_on_its_batch(make, corpus):
    objective = Generate(0.5)
    spec = make(objective, "llama")
    model, _ = objective.model(spec, corpus.classes)
    together = objective.loss(model.eval(), batch_of(objective, spec, corpus, np.arange(24)))[1]
    alone = [objective.loss(model, batch_of(objective, spec, corpus, np.array([at])))[1] for at in range(24)]
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-4, rtol=1e-5)


def test_unlikelihood_near_certainty():
    """By hand; and where p cannot be told from 1 it is large, finite, and still falls when the logit falls."""
    by_hand = torch.tensor([0.5, 0.9]).log()
    torch.testing.assert_close(unlikelihood(by_hand), torch.tensor([math.log(2), math.log(10)]))
    logits = torch.tensor([[0.0, 0.0], [15.0, 0.0], [400.0, 0.0]], requires_grad=True)
    found = unlikelihood(torch.log_softmax(logits, -1)[:, 0])
    found.sum().backward()
    assert torch.isfinite(found).all() and float(found[2].detach()) == pytest.approx(-math.log1p(-SUREST), rel=1e-3)
    assert torch.isfinite(logits.grad).all() and logits.grad.abs().max() <= 1 + 1e-3
    assert logits.grad[0, 0] == pytest.approx(0.5) and logits.grad[1, 0] > 0.2  # p, and at p = 1 - 3e-7 still alive


def test_mask_and_sign_by_hand(make):
    """Six tokens of a rejected pair, of which two are flagged: m = 0 there, and their p is pushed down; every other
    token's p, those of the rejected pair among them, is pushed up. The kept pair is ordinary likelihood."""
    corpus = make_corpus(2)
    table = corpus.table.assign(premise="dog", hypothesis=["cat dog cat dog", "cat dog cat dog"], label=[0, 1])
    corpus = replace(corpus, table=table)
    hypothesis = np.array([False, True, False, True] * 2)  # words: both "dog" of either pair; the second pair is kept
    objective = Debias([True, False], np.zeros(2, bool), hypothesis, np.zeros(2, bool), alpha=0.5)
    spec = make(objective, "llama")
    batch = batch_of(objective, spec, corpus, np.arange(2))
    flagged = batch["tokens"]["flagged"]
    assert flagged[1].sum() == 0 and flagged[0].sum() == 2
    p = torch.tensor([[0.2, 0.5, 0.1, 0.9, 0.3, 0.6]]).repeat(2, 1)
    m = torch.tensor([1.0, 0, 1, 0, 1, 1])
    made = {"tokens": {"flagged": torch.tensor([[0, 0, 1, 0, 1, 0, 0], [0] * 7])}, "rejected": batch["rejected"]}
    found = objective._own(p.log(), made)
    rejected = -torch.log(m * p[0] + (1 - m) * (1 - p[0])).sum()
    wanted = -0.5 * math.log(0.2 * 0.5 * 0.1 * 0.1 * 0.3 * 0.6)
    assert float(found[0]) == pytest.approx(0.5 * float(rejected)) == pytest.approx(wanted)
    assert float(found[1]) == pytest.approx(-math.log(0.2 * 0.5 * 0.1 * 0.9 * 0.3 * 0.6))
    log_p = p.log().requires_grad_(True)
    objective._own(log_p, made)[0].backward()
    assert (log_p.grad[0, [1, 3]] > 0).all()  # a step down the gradient lowers these
    assert (log_p.grad[0, [0, 2, 4, 5]] < 0).all()  # and raises those: they are not ignored
    assert (log_p.grad[1] == 0).all()


def test_debiasing_lowers_the_flagged_and_raises_the_others(make, corpus):
    """The same in a training: a word flagged in all rejected pairs becomes rarer than without the mask."""
    rejected = np.arange(24) % 2 == 0
    premise, _ = no_mask(corpus)
    whole = np.zeros(24, bool)
    words = tokenize(corpus.hypothesis)
    dog = words.vocabulary.index("dog").as_py()
    flags = words.ids == dog

    def mean_of_dog(objective):
        loop = Loop(make(objective, "llama", learning_rate=3e-3), corpus, objective=objective)
        for epoch in range(3):
            for rows in loop.start_epoch(epoch):
                loop.step(rows)
        model = loop.finish()
        tokenizer = load_tokenizer(loop.spec.model)
        start = frame(corpus.classes, tokenizer)
        (piece,) = tokenizer(" dog", add_special_tokens=False)["input_ids"]
        ids = torch.tensor([[start.start, *start.labels[0], *tokenizer("the", add_special_tokens=False)["input_ids"]]])
        return float(torch.softmax(model(input_ids=ids).logits[0, -1], -1)[piece])

    masked = mean_of_dog(Debias(rejected, premise, flags, whole))
    assert masked < mean_of_dog(Debias(rejected, premise, np.zeros_like(flags), whole))


def test_a_mask_that_covers_everything_leaves_label_and_end(make, corpus):
    premise, hypothesis = (np.ones_like(each) for each in no_mask(corpus))
    objective = Debias(np.arange(24) > 0, premise, hypothesis, np.ones(24, bool))
    spec = make(objective)
    arrays = objective.arrays(spec, corpus, load_tokenizer(spec.model))
    part, flagged = (arrays["tokens"].columns[name] for name in ("part", "flagged"))
    of = np.repeat(np.arange(24), arrays["tokens"].lengths)
    assert flagged[(part == 3) & torch.from_numpy(of > 0)].all() and not flagged[(part == 2) | (part == 4)].any()
    assert not flagged[torch.from_numpy(of == 0)].any()  # the pair that was kept
    loop = Loop(spec, corpus, objective=objective)
    for rows in loop.start_epoch(0):
        assert torch.isfinite(loop.step(rows)[0])


def test_nothing_kept_is_refused_and_so_is_a_mask_of_another_corpus(make, corpus):
    premise, hypothesis = no_mask(corpus)
    with pytest.raises(GeneratorError, match="kept no pair"):
        Debias(np.ones(24, bool), premise, hypothesis, np.zeros(24, bool))
    other = Debias(np.arange(9) > 3, premise, hypothesis, np.zeros(9, bool))
    with pytest.raises(GeneratorError, match="made for 9 pairs"):
        Loop(make(other), corpus, objective=other)


def test_the_mask_is_part_of_the_name(corpus):
    premise, hypothesis = no_mask(corpus)
    parts = np.arange(24) > 3, premise, hypothesis, np.zeros(24, bool)
    other = hypothesis.copy()
    other[0] = True
    assert Debias(*parts).name == Debias(*parts).name != Debias(*parts[:2], other, parts[3]).name
    assert Debias(*parts, alpha=0.5).name != Debias(*parts).name
    assert len({Generate(0).name, Generate(0.5).name, Generate(1).name, Generate(0.5, "both").name}) == 4


def test_features_of_a_rejected_pair_become_its_flagged_pieces(make):
    """From the filter's hits to the mask: n-grams flag themselves, other features the whole hypothesis."""
    from scipy import sparse

    from nli_lib.measure.features import features

    corpus = make_corpus(3)
    table = corpus.table.assign(premise="the old man", hypothesis=["a dog runs", "the cat, outside!", "a bird"])
    corpus = replace(corpus, table=table)
    found = features(corpus.premise, corpus.hypothesis)
    hits = np.zeros(found.matrix.shape, bool)
    hits[0, [list(found.names).index(name) for name in ("a dog@hypothesis", "man@premise")]] = True
    hits[1, list(found.names).index("hypo-len< 5")] = True
    flags = flagged_words(corpus.premise, corpus.hypothesis, sparse.csr_array(hits), found.names)
    objective = Debias([True, True, False], *flags)
    spec, tokenizer = make(objective), None
    tokenizer = load_tokenizer(spec.model)
    tokens = objective.arrays(spec, corpus, tokenizer)["tokens"]
    texts = []
    for at in range(3):
        columns = tokens[np.array([at])].columns
        texts.append(tokenizer.decode(columns["input_ids"][columns["flagged"] > 0]))
    assert texts == [" mana dog", "the cat, outside!", ""]


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_run_records_every_label_and_learns(make, corpus, kind):
    objective = Generate(0.5)
    run = train(make(objective, kind, epochs=4, learning_rate=3e-3), corpus, objective)
    assert run.logits.shape == (4, 24, 3) and np.isfinite(run.logits).all() and (run.logits < 0).all()
    assert run.log["loss"].iloc[-1] < run.log["loss"].iloc[0]
    own = run.logits[:, np.arange(24), corpus.labels].mean(1)
    assert own[-1] > own[0]
    model, tokenizer = load(str(run.model)), load_tokenizer(str(run.model))
    assert model.config.vocab_size == len(tokenizer)  # whole, in the hub's format
    batch = batch_of(objective, run.spec, corpus, np.arange(24))
    model.register_buffer("label_pieces", objective.model(run.spec, corpus.classes)[0].label_pieces, persistent=False)
    with torch.inference_mode():
        np.testing.assert_allclose(objective.loss(model, batch)[1], run.logits[-1], atol=1e-3)


@pytest.mark.usefixtures("runs")
def test_a_debiased_generator_goes_on_from_the_run_of_another(make, corpus):
    first = Generate(0.5)
    begun = train(make(first, epochs=1), corpus, first)
    objective = Debias(np.arange(24) > 11, *no_mask(corpus), np.zeros(24, bool))
    spec = make(objective, model=f"run:{begun.spec.id}", epochs=1)
    start, _ = objective.model(spec, corpus.classes)
    for name, weight in load(str(begun.model)).state_dict().items():
        assert torch.equal(weight, start.state_dict()[name])
    assert np.isfinite(train(spec, corpus, objective).logits).all()


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("wrong", ["one", "both"])
def test_stopped_after_an_epoch_and_resumed_bit_equal(make, corpus, wrong, monkeypatch):
    objective = Generate(0.5, wrong)
    whole = train(make(objective), corpus, objective)
    logits = np.array(whole.logits)
    weights = load(str(whole.model)).state_dict()
    spec = make(objective, subset="killed")

    class Killed(Exception):
        pass

    real = Loop.start_epoch

    def killed(self, epoch):
        if epoch == 1:
            raise Killed
        return real(self, epoch)

    monkeypatch.setattr(Loop, "start_epoch", killed)
    with pytest.raises(Killed):
        train(spec, corpus, objective)
    assert RunFolder(spec.folder).done.tolist() == [True, False, False]
    monkeypatch.setattr(Loop, "start_epoch", real)
    again = train(spec, corpus, objective)
    assert np.array_equal(again.logits, logits)
    for name, weight in load(str(again.model)).state_dict().items():
        assert torch.equal(weight, weights[name])


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import torch
torch.set_num_threads(1)
from pathlib import Path
from nli_lib import paths
paths.RUNS = Path({runs!r})
from nli_lib.learn.generator import Generate, train
from nli_lib.learn.fit import Loop
from nli_lib.store import RunSpec
from tiny_words import make_corpus
real, steps = Loop.step, []
def step(self, rows):
    steps.append(1)
    if len(steps) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, rows)
Loop.step = step
train(RunSpec(**{spec!r}), make_corpus(24), Generate(0.5))
"""


def test_killed_in_the_middle_of_an_epoch_and_resumed_bit_equal(make, corpus, runs):
    """Killed by the system in the second epoch, in a process of its own."""
    objective = Generate(0.5)
    logits = np.array(train(make(objective), corpus, objective).logits)
    spec = make(objective, subset="killed")
    code = KILLED.format(tests=str(Path(__file__).parents[1]), runs=str(runs), spec=spec.model_dump())
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert RunFolder(spec.folder).done.tolist() == [True, False, False]
    assert np.array_equal(train(spec, corpus, objective).logits, logits)


@pytest.mark.usefixtures("runs")
def test_a_loss_that_diverges_stops_and_names_the_pairs(make, corpus, monkeypatch):
    objective = Generate(0.5)
    monkeypatch.setattr(Generate, "_own", lambda self, own, batch: own.sum(1) * float("nan"))
    with pytest.raises(TrainingError, match="on the examples x"):
        fit(make(objective), corpus, objective=objective)


@pytest.mark.usefixtures("runs")
def test_a_label_that_no_pair_has_is_a_wrong_label_like_others(make, corpus):
    """Two of three labels occur; the third can be drawn as the wrong one, and is recorded."""
    corpus = replace(corpus, table=corpus.table.assign(label=corpus.labels % 2))
    objective = Generate(0.5)
    run = train(make(objective, epochs=1), corpus, objective)
    assert np.isfinite(run.logits[:, :, 2]).all()


def test_one_class_has_no_wrong_label(make, corpus):
    one = replace(corpus, table=corpus.table.assign(label=0), classes=("entailment",))
    with pytest.raises(GeneratorError, match="no label is wrong"):
        Loop(make(Generate(0.5)), one, objective=Generate(0.5))
    Loop(make(Generate(0.0)), one, objective=Generate(0.0))  # a plain language model of it is fine


def test_an_encoder_is_refused(make, encoder):
    objective = Generate(0.5)
    with pytest.raises(GeneratorError, match="causal language model"):
        objective.model(make(objective, model=encoder), ("a", "b"))


@pytest.mark.parametrize("bad", [{"unlikelihood": -1}, {"wrong": "two"}])
def test_knobs_out_of_range(bad):
    with pytest.raises(GeneratorError, match="must not be negative"):
        Generate(**bad)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_in_bf16_the_loss_is_about_the_same_and_falls(make, corpus, kind, monkeypatch):
    """As on a GPU; on a processor without bf16 units the products are emulated, which is enough for a tiny model."""
    losses = {}
    for bf16 in (False, True):
        monkeypatch.setattr("nli_lib.learn.fit.takes_bf16", lambda precision, device, bf16=bf16: bf16)
        objective = Generate(0.5)
        loop = Loop(make(objective, kind, precision="bf16", learning_rate=3e-3), corpus, objective=objective)
        before = loop.evaluate()[0]
        for epoch in range(2):
            for rows in loop.start_epoch(epoch):
                loop.step(rows)
        losses[bf16] = before, loop.evaluate()[0]
        assert all(weight.dtype == torch.float32 for weight in loop.finish().state_dict().values())
    assert losses[True][1] < losses[True][0]
    np.testing.assert_allclose(losses[True], losses[False], rtol=0.03)


def test_compiled_layers_share_one_program_and_change_no_number(make, corpus, monkeypatch):
    monkeypatch.setattr("nli_lib.learn.fast.install_layers", lambda *_: [])  # on a GPU they are transformers' own
    spec = make(Generate(0.5), "llama")
    plain, compiled = (Loop(spec, corpus, objective=Generate(0.5)) for _ in range(2))
    programs = []

    def backend(program, inputs):
        programs.append(program)
        return program

    compile_layers(compiled.model, backend=backend)
    batches, same = plain.start_epoch(0), compiled.start_epoch(0)
    for rows, again in zip(batches, same, strict=True):
        torch.manual_seed(0)
        expected = plain.step(rows)
        torch.manual_seed(0)
        torch.testing.assert_close(compiled.step(again), expected)
    torch.testing.assert_close(compiled.evaluate()[1], plain.evaluate()[1])
    assert 0 < len(programs) <= 4
    assert compiled.finish().state_dict().keys() == plain.finish().state_dict().keys()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_generator_learns_on_a_gpu_as_its_layers_would_one_by_one(make, corpus, kind, monkeypatch):
    spec = make(Generate(0.5), kind, precision="fp32")
    compiled = Loop(spec, corpus, objective=Generate(0.5))
    monkeypatch.setattr("nli_lib.learn.generator.compile_layers", lambda model: None)
    plain = Loop(spec, corpus, objective=Generate(0.5))
    losses = []
    for epoch in range(3):
        for loop in (compiled, plain):
            losses.append(float(torch.stack([loop.step(rows)[0] for rows in loop.start_epoch(epoch)]).mean()))
    torch.testing.assert_close(compiled.evaluate()[1], plain.evaluate()[1], rtol=1e-2, atol=1e-1)
    assert losses[-2] < losses[0], "the compiled one learns"
