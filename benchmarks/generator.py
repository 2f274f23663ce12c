"""What a generator's steps and samples cost, as ratios within one run on this machine.

    python benchmarks/generator.py                                  # the model of scale smoke, planted pairs
    python benchmarks/generator.py --model smollm2 --steps 6        # all of SmolLM2-135M
    python benchmarks/generator.py --model gpt2-large --corpus snli # on a GPU, with the hub
    python benchmarks/generator.py --random gpt2-large --memory     # on a GPU, without: the peak of a training alone

Four ratios. All train the same model on the same sequences, `--batch` of them a step, in the same precision and with
the same recipe; a token is a word piece of a sequence, padding counts nothing.

    unlikelihood  time of a step with likelihood and the unlikelihood of one wrong label, over that of a step with
                  likelihood alone, on the same rows
    debiasing     the same of the debiasing objective, half of the pairs rejected, half of their words marked
    Trainer       tokens a second of the loop, likelihood alone, over those of Hugging Face's Trainer at its best: rows
                  grouped by length, padded by the collator, fused AdamW. On a GPU the loop compiles the model's layers;
                  the Trainer has them as they are, as by default
    sampling      tokens a second of samples drawn `--at-once` together, over those of `transformers.generate` for one
                  sequence at a time with its cache, temperature 1 and nothing cut off

Rounds run all sides in turn, so that what else the machine does strikes each; the ratio is the median over `--rounds`,
after a first round that is not counted: in it a GPU compiles, and a process grows its memory.
With `--clock cpu` and OMP_NUM_THREADS=1 the process's own time counts, for a machine that others use too.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from itertools import pairwise

import numpy as np
import pandas as pd
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.sources import load as load_corpus
from nli_lib.learn.encode import frame, sequences
from nli_lib.learn.fit import Loop
from nli_lib.learn.generator import Debias, Generate, language_model, load, sample
from nli_lib.learn.model import find_model, load_tokenizer, pick_device, takes_bf16
from nli_lib.measure.features import tokenize
from nli_lib.store import RunSpec

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
SHAPES = {"gpt2": (768, 12, 12), "gpt2-large": (1280, 36, 20)}  # width, layers, heads
RECIPE = {"schedule": "constant", "warmup": 0.0, "weight_decay": 0.0, "epsilon": 1e-6, "clip": None, "epochs": 100}


class Rows(torch.utils.data.Dataset):
    """The sequences, as the Trainer's collator takes them."""

    def __init__(self, ids: list[list[int]]):
        self.rows = [{"input_ids": row, "length": len(row)} for row in ids]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: int) -> dict:
        return self.rows[at]


class Collator:
    """Pads a batch to its longest row, and counts real tokens."""

    def __init__(self, pad: int):
        self.pad, self.tokens = pad, []

    def __call__(self, rows: list[dict]) -> dict[str, torch.Tensor]:
        lengths = [len(row["input_ids"]) for row in rows]
        self.tokens.append(sum(lengths))
        ids = torch.full((len(rows), max(lengths)), self.pad)
        for at, row in enumerate(rows):
            ids[at, : lengths[at]] = torch.tensor(row["input_ids"])
        mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        return {"input_ids": ids, "attention_mask": mask.long(), "labels": ids.masked_fill(~mask, -100)}


def random_model(name: str, folder: str) -> str:
    """The folder, with a model in the shape of a hub's model and SmolLM2's tokenizer, for a machine without the hub."""
    width, layers, heads = SHAPES[name]
    GPT2LMHeadModel(GPT2Config(n_embd=width, n_layer=layers, n_head=heads)).save_pretrained(folder)
    load_tokenizer(language_model("smollm2")).save_pretrained(folder)
    return folder


def settle() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(clock: str, work) -> float:
    settle()
    started = CLOCKS[clock]()
    work()
    settle()
    return CLOCKS[clock]() - started


def objectives(corpus: Corpus) -> dict[str, Generate]:
    random = np.random.default_rng(0)
    words = [random.random(len(tokenize(side).ids)) < 0.5 for side in (corpus.premise, corpus.hypothesis)]
    rejected = random.random(len(corpus)) < 0.5
    return {
        "likelihood": Generate(0.0),
        "unlikelihood": Generate(0.5),
        "debiasing": Debias(rejected, *words, np.zeros(len(corpus), bool)),
    }


def steps_of(loop: Loop, steps: int, epoch: int) -> list[np.ndarray]:
    batches = [rows for rows in loop.start_epoch(epoch) if len(rows) == loop.spec.batch_size]
    return batches[:steps]


class Clocked(Trainer):
    """A Trainer that knows the time from the end of its first step to its end: loading a batch is part of a step."""

    clock = "wall"

    def training_step(self, *given, **more):
        if self.state.global_step == 1 and not hasattr(self, "started"):
            settle()
            self.started, self.first = CLOCKS[self.clock](), len(self.data_collator.tokens)
        return super().training_step(*given, **more)


def trainer_speed(spec: RunSpec, rows: Rows, pad: int, steps: int, clock: str) -> float:
    """Tokens a second of Hugging Face's Trainer, the first step left out."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=steps + 1,
            per_device_train_batch_size=spec.batch_size,
            learning_rate=spec.learning_rate,
            lr_scheduler_type="constant",
            weight_decay=0.0,
            adam_epsilon=spec.epsilon,
            max_grad_norm=0.0,
            optim="adamw_torch_fused",
            train_sampling_strategy="group_by_length",
            use_cpu=not torch.cuda.is_available(),
            bf16=takes_bf16(spec.precision),
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
        )
        run = Clocked(
            model=load(find_model(spec.model)), args=arguments, train_dataset=rows, data_collator=Collator(pad)
        )
        run.clock = clock
        run.train()
        settle()
        seconds = CLOCKS[clock]() - run.started
    return sum(run.data_collator.tokens[run.first - 1 : run.first - 1 + steps]) / seconds


def one_by_one(model, start: int, end: int, count: int, length: int) -> int:
    """Tokens that `transformers.generate` draws, one sequence at a time."""
    ids, drawn = torch.tensor([[start]], device=model.device), 0
    how = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "eos_token_id": end, "pad_token_id": end}
    for at in range(count):
        torch.manual_seed(at)
        found = model.generate(ids, attention_mask=torch.ones_like(ids), max_length=length, **how)
        drawn += found.shape[1] - 1
    return drawn


def print_peaks() -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{'peak memory of the process, GiB':32} {peak:10.2f}")
    if torch.cuda.is_available():
        print(f"{'peak memory of the GPU, GiB':32} {torch.cuda.max_memory_allocated() / 2**30:10.2f}")


def train_alone(title: str, spec: RunSpec, corpus: Corpus, objective: Generate, steps: int) -> None:
    """A few steps on the longest pairs, and what they needed at most."""
    loop = Loop(spec, corpus, objective=objective)
    longest = np.argsort(-loop.lengths, kind="stable")[: spec.batch_size]
    loop.start_epoch(0)
    loop.step(longest)
    seconds = timed("wall", lambda: [loop.step(longest) for _ in range(steps)])
    tokens = int(loop.lengths[longest].sum())
    print(f"{title}, {spec.objective}, {pick_device()}: batches of {spec.batch_size} pairs, {tokens:,} tokens")
    print(f"{'seconds a step':32} {seconds / steps:10.3f}")
    print_peaks()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-2")
    parser.add_argument("--corpus", default="planted")
    parser.add_argument("--split", default="train")
    parser.add_argument("--pairs", type=int, default=600)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--length", type=int, default=64, help="tokens of a sample at most")
    parser.add_argument("--alone", type=int, default=4, help="samples drawn one at a time in a round")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument(
        "--trained", type=int, default=0, help="steps before sampling, so that samples end as real ones"
    )
    parser.add_argument("--random", choices=SHAPES, help="this model's shape, random weights; no --model")
    parser.add_argument("--memory", action="store_true", help="only train with unlikelihood; print the peak")
    given = parser.parse_args()

    corpus = load_corpus(given.corpus, given.split, limit=given.pairs)
    folder = tempfile.TemporaryDirectory()  # three gigabytes of GPT-2 large, removed at the end
    name = random_model(given.random, folder.name) if given.random else language_model(given.model)
    every = objectives(corpus)
    specs = {
        key: RunSpec(corpus=given.corpus, model=name, objective=each.name, batch_size=given.batch, **RECIPE)
        for key, each in every.items()
    }
    if given.memory:
        train_alone(given.random or name, specs["unlikelihood"], corpus, every["unlikelihood"], given.steps)
        return
    tokenizer = load_tokenizer(name)
    tokens = sequences(corpus, tokenizer, 128)
    bounds = tokens.offsets.tolist()
    ids = tokens.columns["input_ids"].tolist()
    rows = Rows([ids[start:stop] for start, stop in pairwise(bounds)])
    around = frame(corpus.classes, tokenizer)
    loops = {key: Loop(specs[key], corpus, objective=each) for key, each in every.items()}
    model = load(find_model(name)).to(pick_device())
    found = []
    for turn in range(given.rounds + 1):
        seconds = {}
        for key, loop in loops.items():
            batches = steps_of(loop, given.steps + 1, turn)
            loop.step(batches[0])
            seconds[key] = timed(given.clock, lambda loop=loop, batches=batches: [loop.step(at) for at in batches[1:]])
        length = sum(int(loops["likelihood"].lengths[at].sum()) for at in batches[1:])
        ours = length / seconds["likelihood"]
        theirs = trainer_speed(specs["likelihood"], rows, around.end, given.steps, given.clock)
        row = {f"{key} / likelihood": seconds[key] / seconds["likelihood"] for key in ("unlikelihood", "debiasing")}
        row |= {"tokens a second": ours, "Trainer's": theirs, "loop / Trainer": ours / theirs}
        if given.trained and turn == 0:
            for at in range(given.trained):
                loops["likelihood"].step(steps_of(loops["likelihood"], 1, 100 + at)[0])
            model.load_state_dict(loops["likelihood"].snapshot().state_dict())
        drawn = [0]
        alone = timed(
            given.clock,
            lambda drawn=drawn: drawn.append(one_by_one(model, around.start, around.end, given.alone, given.length)),
        )
        row["one at a time"] = drawn[-1] / alone
        for size in given.at_once:
            made = []
            work = timed(
                given.clock,
                lambda made=made, size=size, turn=turn: made.extend(
                    sample(model, around.start, around.end, range(size), seed=turn, max_length=given.length)
                ),
            )
            count = sum(given.length - 1 if each is None else len(each) + 1 for each in made)
            row[f"{size} at once / one at a time"] = count / work / row["one at a time"]
        if turn > 0:
            found.append(row)
        print(f"round {turn}: " + ", ".join(f"{key} {value:,.2f}" for key, value in row.items()), flush=True)
    table = pd.DataFrame(found)
    title = given.random or given.model
    print(f"\n{title}, {given.corpus}, {pick_device()}, median (least, largest) of {given.rounds} rounds")
    for key, values in table.items():
        print(f"{key:32} {values.median():10,.2f}  ({values.min():,.2f}, {values.max():,.2f})")
    print_peaks()


if __name__ == "__main__":
    main()
