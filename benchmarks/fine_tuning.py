"""Useful tokens a second of `fit`'s training loop and of Hugging Face's Trainer, in alternation on this machine.

    python benchmarks/fine_tuning.py                        # SNLI validation from NLI_DATA, or the planted corpus
    python benchmarks/fine_tuning.py --accuracy             # three seeds of both: does the speed cost accuracy?
    python benchmarks/fine_tuning.py --parts                # what each part of `learn.fast` and the optimizer is worth
    python benchmarks/fine_tuning.py --against FOLDER       # this checkout beside another one of the project

All train the same model on the same rows with the same batch size, recipe and precision; a useful token is a word piece
of an example, padding counts nothing. The Trainers, both with dynamic padding and fused AdamW:

    default   rows in random order
    best      rows grouped by length (`train_sampling_strategy="group_by_length"`); --workers N adds loader processes

One round runs each for `--steps` steps, a third of an epoch of SNLI's development set, after a few that are not timed:
in its first forty or so a process still grows its memory, which costs as much as a fifth of a step. Ratios are taken
within a round, so that what else the machine does strikes both sides. The share of the matrix rate compares the
operations of useful tokens, each 6 * (weights of the layers that every token passes) + 12 * layers * width * length,
with the product of two matrices of 2048 x 2048 in the same precision, timed in the same round.

`--parts` trains the whole loop and the loop without one part in turn, on the same batches, and gives the time without
over the time with the part. `--against` hands the same rows to a process of each checkout, in turn. Where other
processes want the cores too, `--clock cpu` with OMP_NUM_THREADS=1 counts this process's time alone, and many short
rounds (`--rounds 9 --steps 10`) give a median that a busy minute does not move.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import torch
from torch import nn
from transformers import DataCollatorWithPadding, Trainer, TrainerCallback, TrainingArguments

from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.sources import load
from nli_lib.learn import encode, fast, fit as training
from nli_lib.learn.fit import Loop, fit, train_epoch
from nli_lib.learn.model import load_classifier, load_tokenizer, pick_device
from nli_lib.learn.predict import predict
from nli_lib.store import RunSpec

UNTIMED = 3


class Clock(TrainerCallback):
    """Seconds of a Trainer's steps after the first `UNTIMED`."""

    def __init__(self, steps: int):
        self.steps, self.seconds = steps, 0.0

    def on_step_end(self, arguments, state, control, **_):
        if state.global_step == UNTIMED:
            _settle()
            self.started = time.perf_counter()
        elif state.global_step == UNTIMED + self.steps:
            _settle()
            self.seconds = time.perf_counter() - self.started


class CountingCollator(DataCollatorWithPadding):
    """Pads a batch to its longest row, and remembers how many real tokens it holds."""

    def __call__(self, rows):
        batch = super().__call__(rows)
        self.tokens = [*getattr(self, "tokens", ()), int(batch["attention_mask"].sum())]
        return batch


class Rows(torch.utils.data.Dataset):
    """Encoded once, padded by the collator."""

    def __init__(self, corpus: Corpus, spec: RunSpec):
        texts, others = corpus.texts(spec.view)
        encoded = load_tokenizer(spec.model)(texts, others, truncation=True, max_length=spec.max_length)
        names = list(encoded)
        columns = zip(*(encoded[name] for name in names), corpus.labels.tolist(), strict=True)
        self.rows = [dict(zip([*names, "labels"], values, strict=True)) for values in columns]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: int) -> dict:
        return self.rows[at]


def trainer(
    spec: RunSpec, corpus: Corpus, rows: Rows, folder: str, *, grouped: bool, workers: int, steps: int = -1
) -> Trainer:
    """Hugging Face's Trainer with the recipe of `spec`."""
    model, _ = load_classifier(spec.model, corpus.classes, spec.seed)
    arguments = TrainingArguments(
        output_dir=folder,
        seed=spec.seed,
        max_steps=steps,
        num_train_epochs=spec.epochs,
        per_device_train_batch_size=spec.batch_size,
        learning_rate=spec.learning_rate,
        weight_decay=spec.weight_decay,
        warmup_steps=spec.warmup,
        max_grad_norm=spec.clip,
        use_cpu=not torch.cuda.is_available(),
        bf16=spec.precision == "bf16",
        optim="adamw_torch_fused",
        train_sampling_strategy="group_by_length" if grouped else "random",
        dataloader_num_workers=workers,
        dataloader_pin_memory=torch.cuda.is_available(),
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    collator = CountingCollator(load_tokenizer(spec.model))
    return Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collator)


def trainer_speed(spec: RunSpec, corpus: Corpus, rows: Rows, steps: int, *, grouped: bool, workers: int) -> float:
    clock = Clock(steps)
    with tempfile.TemporaryDirectory() as folder:
        run = trainer(spec, corpus, rows, folder, grouped=grouped, workers=workers, steps=steps + UNTIMED)
        run.add_callback(clock)
        run.train()
    if workers:  # loader processes count for themselves, so take the corpus's mean
        tokens = steps * spec.batch_size * float(np.mean([len(row["input_ids"]) for row in rows.rows]))
    else:
        tokens = sum(run.data_collator.tokens[UNTIMED : UNTIMED + steps])
    return tokens / clock.seconds


def fit_speed(loop: Loop, corpus: Corpus, epoch: int, steps: int) -> float:
    batches = loop.start_epoch(epoch)[: steps + UNTIMED]
    for rows in batches[:UNTIMED]:
        loop.step(rows)
    _settle()
    return train_epoch(loop, corpus, epoch, batches[UNTIMED:])[0]["tokens_per_second"]


def matrix_rate(precision: str, size: int = 2048, repeats: int = 12) -> float:
    """Operations a second of one square matrix product, the median of `repeats`."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    left, right = (torch.randn(size, size, device=pick_device()).to(dtype) for _ in range(2))
    seconds = []
    for _ in range(repeats):
        _settle()
        started = time.perf_counter()
        left @ right.T
        _settle()
        seconds.append(time.perf_counter() - started)
    return 2 * size**3 / float(np.median(seconds[2:]))


def operations(loop: Loop) -> float:
    """Operations of the forward and backward pass for one useful token, on the corpus's average."""
    config = loop.model.config
    layers = sum(
        each.weight.numel()
        for name, each in loop.model.base_model.named_modules()
        if isinstance(each, nn.Linear) and "pooler" not in name
    )
    length = float((loop.lengths.astype(float) ** 2).sum() / loop.lengths.sum())  # as a token sees it
    return 6 * layers + 12 * config.num_hidden_layers * config.hidden_size * length


def capture_cost(loop: Loop, corpus: Corpus, epoch: int, steps: int) -> float:
    """Time of a step that records its logits over that of one that does not, in turn; the epoch's write included."""
    passing = torch.empty(len(corpus), len(corpus.classes), device=loop.device)
    seconds = {True: [], False: []}
    for number, rows in enumerate(loop.start_epoch(epoch)[: 2 * steps]):
        started = time.perf_counter()
        _, logits = loop.step(rows)
        if number % 2 == 0:
            passing[rows] = logits
        _settle()
        seconds[number % 2 == 0].append((time.perf_counter() - started) / loop.lengths[rows].sum())
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        array = np.lib.format.open_memmap(Path(folder) / "logits.npy", "w+", np.float32, passing.shape)
        array[:] = passing.cpu().numpy()
        array.flush()
        write = (time.perf_counter() - started) / loop.lengths.sum()
    return float((np.median(seconds[True]) + write) / np.median(seconds[False]))


def compare_speed(spec: RunSpec, corpus: Corpus, rounds: int, steps: int, workers: int) -> None:
    rows, loop = Rows(corpus, spec), Loop(spec, corpus)
    print(*loop.notes, sep="\n")
    table = []
    for number in range(rounds):
        row = {"matrix": matrix_rate(spec.precision)}
        row["default"] = trainer_speed(spec, corpus, rows, steps, grouped=False, workers=0)
        row["fit"] = fit_speed(loop, corpus, number, steps)
        row["best"] = trainer_speed(spec, corpus, rows, steps, grouped=True, workers=workers)
        table.append(row)
        print(f"round {number}: " + ", ".join(f"{name} {row[name]:,.0f}" for name in ("default", "best", "fit")))
    table = pd.DataFrame(table)
    work = operations(loop)
    results = {
        "Trainer, default, tokens/s": table["default"],
        "Trainer, best, tokens/s": table["best"],
        "fit, tokens/s": table["fit"],
        "fit / Trainer default": table["fit"] / table["default"],
        "fit / Trainer best": table["fit"] / table["best"],
        "matrix rate, GFLOP/s": table["matrix"] / 1e9,
        "share of it, Trainer best": table["best"] * work / table["matrix"],
        "share of it, fit": table["fit"] * work / table["matrix"],
        'cost of capture="train"': pd.Series([capture_cost(loop, corpus, 99, 2 * steps)]),
    }
    print(f"\n{work / 1e6:.1f} million operations a token; {rounds} rounds of {steps} steps")
    print(f"{'':32}{'min':>10}{'median':>10}{'max':>10}")
    for name, values in results.items():
        shown = [f"{value:10,.0f}" if value > 50 else f"{value:10.3f}" for value in values.quantile([0, 0.5, 1])]
        print(f"{name:32}{''.join(shown)}")


class PlainMask(fast.Mask):
    """A mask from PyTorch's own random numbers."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, rate: float, source: object):
        self.bits = torch.empty(shape, dtype=dtype).bernoulli_(1 - rate)
        self.threshold, self.scale = 0.5, 1 / (1 - rate)


class PlainAdamW:
    """PyTorch's fused AdamW on the model's own fp32 parameters, each clipped and stepped through by itself."""

    def __init__(self, model: nn.Module, spec: RunSpec, steps: int, bf16: bool):
        self.spec, self.steps, self.number = spec, steps, 0
        decayed, trained = (
            training.decayed(model),
            [each for each in model.named_parameters() if each[1].requires_grad],
        )
        groups = [
            {"params": [each for name, each in trained if (name in decayed) == decay], "weight_decay": weight_decay}
            for decay, weight_decay in ((True, spec.weight_decay), (False, 0.0))
        ]
        self.parameters = [each for _, each in trained]
        self.adamw = torch.optim.AdamW(groups, lr=spec.learning_rate, fused=True)

    def step(self) -> None:
        for each in self.parameters:
            each.grad = each.grad.to_dense() if each.grad.is_sparse else each.grad
        nn.utils.clip_grad_norm_(self.parameters, self.spec.clip)
        for group in self.adamw.param_groups:
            group["lr"] = self.spec.learning_rate * training.rate_factor(self.spec, self.number, self.steps)
        self.adamw.step()
        self.adamw.zero_grad()
        self.number += 1


def casting_forward(layer: fast.FusedBertLayer, hidden_states: torch.Tensor, attention_mask=None, *_, **__):
    """A written-out layer whose weights are fp32 parameters, cast in every step as autocast would."""
    modules = (layer.qkv, layer.out, layer.norm1, layer.up, layer.down, layer.norm2)
    dtype = torch.bfloat16 if torch.is_autocast_enabled("cpu") else torch.float32
    kinds = (torch.float32 if isinstance(each, nn.LayerNorm) else dtype for each in modules)
    weights = (part.to(kind) for each, kind in zip(modules, kinds, strict=True) for part in (each.weight, each.bias))
    return fast._BertLayer.apply(hidden_states.float(), attention_mask, layer, *weights)


def without(*changes: tuple[object, str, object]) -> contextlib.ExitStack:
    """A context in which each (module, name) is replaced by something plain."""
    stack = contextlib.ExitStack()
    for where, name, plain in changes:
        stack.enter_context(mock.patch.object(where, name, plain))
    return stack


NO_LAYERS = (fast, "install_layers", lambda *_: [])
CASTING = (fast.FusedBertLayer, "forward", casting_forward)
PARTS = {
    "vocabulary": [(fast, "compact", lambda *_: (None, "whole"))],
    "dropout": [(fast, "Mask", PlainMask)],
    "layers": [NO_LAYERS],
    "layers: first token of the last": [(fast, "_only_first_token_counts", lambda *_: False)],
    "layers and attention": [NO_LAYERS, (fast, "install_attention", lambda *_: [])],
    "optimizer: flat masters, bf16 copies": [(training, "FlatAdamW", PlainAdamW), CASTING],
    "optimizer: bf16 copies alone": [(training, "only_in_linear_layers", lambda _: set()), CASTING],
    "batches of nearly equal length": [(encode, "MEGABATCH", 1)],
}


def compare_parts(spec: RunSpec, corpus: Corpus, rounds: int, steps: int, clock: str) -> None:
    """Time of a training step without one part over that of the whole loop, on the same batches, in turn."""
    now = {"cpu": time.process_time, "wall": time.perf_counter}[clock]
    ways = {"": [], **PARTS}
    loops, seconds = {}, []
    for name, changes in ways.items():
        with without(*changes):
            loops[name] = Loop(spec, corpus)
    for number in range(rounds + 1):
        took = {}
        for name in np.roll(list(ways), number):
            with without(*ways[name]):
                batches = loops[name].start_epoch(number)[:steps]
                tokens = sum(loops[name].lengths[rows].sum() for rows in batches)
                started = now()
                for rows in batches:
                    loops[name].step(rows)
                _settle()
                took[name] = (now() - started) / tokens
        seconds.append(took)
    table = pd.DataFrame(seconds[1:])  # the first round makes room in memory
    print(f"all parts: {1 / table[''].median():,.0f} useful tokens a second; {rounds} rounds of {steps} steps")
    print(f"time without a part / with all\n{'':40}{'min':>8}{'median':>8}{'max':>8}")
    for name in PARTS:
        ratios = (table[name] / table[""]).quantile([0, 0.5, 1])
        print(f"{name:40}" + "".join(f"{each:8.3f}" for each in ratios))


WORKER = """
import sys, time
import pandas as pd
from nli_lib.corpora.corpus import Corpus
from nli_lib.learn.fit import Loop
from nli_lib.store import RunSpec
table = pd.read_csv(sys.argv[1], keep_default_na=False)
loop = Loop(RunSpec.model_validate_json(sys.argv[2]), Corpus(table, "rows", "train"))
now = {"cpu": time.process_time, "wall": time.perf_counter}[sys.argv[4]]
for line in sys.stdin:
    batches = loop.start_epoch(int(line))[: int(sys.argv[3])]
    started = now()
    for rows in batches:
        loss, _ = loop.step(rows)
    float(loss)
    print(sum(loop.lengths[rows].sum() for rows in batches) / (now() - started), flush=True)
"""


def compare_checkouts(spec: RunSpec, corpus: Corpus, rounds: int, steps: int, clock: str, other: Path) -> None:
    """Useful tokens a second of this checkout's loop over those of another's, in turn, on the same rows."""
    fields = {"model": spec.model, "precision": spec.precision, "learning_rate": spec.learning_rate, "corpus": "rows"}
    settings = RunSpec(**fields).model_dump_json(include=set(fields))  # what both know
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        columns = ["uid", "premise", "hypothesis", "label", "corpus", "split"]
        corpus.table[columns].to_csv(Path(folder) / "rows.csv", index=False)
        command = [sys.executable, "-c", WORKER, str(Path(folder) / "rows.csv"), settings, str(steps), clock]
        workers = {}
        for name, checkout in (("this", Path(__file__).parents[1]), ("other", other)):
            there = {**os.environ, "PYTHONPATH": str(checkout.resolve()), "NLI_HOME": folder}
            workers[name] = stack.enter_context(
                subprocess.Popen(
                    command, env=there, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
                )
            )
        speeds = []
        for number in range(rounds + 1):
            row = {}
            for name in ("this", "other") if number % 2 else ("other", "this"):
                print(number, file=workers[name].stdin, flush=True)
                row[name] = float(workers[name].stdout.readline())
            speeds.append(row)
        for worker in workers.values():
            worker.stdin.close()
    table = pd.DataFrame(speeds[1:])
    low, middle, high = (table["this"] / table["other"]).quantile([0, 0.5, 1])
    print(f"useful tokens a second: this {table['this'].median():,.0f}, {other} {table['other'].median():,.0f}")
    print(f"this / other: median {middle:.3f} ({low:.3f} to {high:.3f}), {rounds} rounds of {steps} steps")


def compare_accuracy(spec: RunSpec, corpus: Corpus, test: Corpus, seeds: int) -> None:
    """Train both with every seed, each from the same start, and score the same held-out rows."""
    rows, scores = Rows(corpus, spec), []
    for seed in range(seeds):
        seeded = spec.model_copy(update={"seed": seed})
        with tempfile.TemporaryDirectory() as folder:
            run = trainer(seeded, corpus, rows, folder, grouped=True, workers=0)
            run.train()
            run.save_model(folder)
            load_tokenizer(spec.model).save_pretrained(folder)
            theirs = predict(folder, test, precision=spec.precision)
        ours = predict(fit(seeded, corpus), test)
        scores.append([float((each.argmax(1) == test.labels).mean()) for each in (theirs, ours)])
        print(f"seed {seed}: Trainer {scores[-1][0]:.4f}, fit {scores[-1][1]:.4f}")
    mean, spread = np.mean(scores, 0), np.std(scores, 0, ddof=1) if seeds > 1 else np.full(2, np.nan)
    print(f"\n{len(corpus):,} pairs, {spec.epochs} epochs; accuracy on {len(test):,} others, {seeds} seeds")
    for name, middle, width in zip(("Trainer", "fit"), mean, spread, strict=True):
        print(f"{name:8} mean {middle:.4f}, standard deviation {width:.4f}")


def _settle() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--workers", type=int, default=0, help="loader processes of the Trainer at its best")
    parser.add_argument("--precision", default="bf16", choices=("bf16", "fp32"))
    parser.add_argument("--accuracy", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another checkout of this project")
    parser.add_argument("--clock", default="wall", choices=("wall", "cpu"))
    given = parser.parse_args()
    name = "snli" if os.environ.get("NLI_DATA") else "planted"
    split = "validation" if name == "snli" else "train"
    corpus = load(name, split, limit=given.limit or (None if name == "snli" else 5000))
    spec = RunSpec(corpus=name, split=split, limit=given.limit, model=given.model, precision=given.precision,
                   epochs=given.epochs, learning_rate=1e-4, subset="benchmark", capture="train")  # fmt: skip
    print(f"{corpus}, {given.model}, {given.precision}, {pick_device()}, {torch.get_num_threads()} threads")
    if given.accuracy:
        compare_accuracy(spec, corpus, load(name, "test"), given.seeds)
    elif given.parts:
        compare_parts(spec, corpus, given.rounds, given.steps, given.clock)
    elif given.against:
        compare_checkouts(spec, corpus, given.rounds, given.steps, given.clock, given.against)
    else:
        compare_speed(spec, corpus, given.rounds, given.steps, given.workers)


if __name__ == "__main__":
    main()
