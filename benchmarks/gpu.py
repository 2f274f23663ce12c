"""What share of a card's matrix rate each kind of training reaches: one script of at most eight minutes.

    python benchmarks/gpu.py                     # 8, 32 and 128 stacked trainings, a generator, RoBERTa-large's shape
    python benchmarks/gpu.py --seconds 2 --stacked 2 4 --tiny      # a CPU, to see that it runs

Trained on pairs of the planted corpus, with random weights in the shapes that no package ships. A row gives useful
tokens a second, and the share that their operations, each 6 * (weights of the layers that every token passes)
+ 12 * layers * width * length, are of the rate of one product of two matrices of 8192 x 8192, timed first. Stacked
trainings are timed after their first steps, in which their sizes are captured. The last lines compare the accuracy of
trainings alone and stacked on planted pairs, three seeds each.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from fine_tuning import matrix_rate, operations
from generator import objectives, random_model, settle
from transformers import BertConfig, BertModel

from nli_lib import paths
from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.planted import make_split
from nli_lib.learn.fit import Loop, fit
from nli_lib.learn.model import load_tokenizer, takes_bf16
from nli_lib.learn.stacked import Stack, StackedLoop, together
from nli_lib.learn.text import ONE_LAYER
from nli_lib.store import RunSpec

MINILM, ROBERTA_LARGE = "minilm", {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}


def encoder(folder: str, **sizes: int) -> str:
    """The folder, with an encoder of BERT's kind in this shape and MiniLM's tokenizer."""
    config = BertConfig(intermediate_size=4 * sizes["hidden_size"], **sizes)
    BertModel(config).save_pretrained(folder)
    load_tokenizer(MINILM).save_pretrained(folder)
    return folder


def rate_of(step: Callable[[int], int], seconds: float, untimed: int = 5) -> float:
    """Useful tokens a second of `step`, which takes a number and returns the tokens that it trained on."""
    for number in range(untimed):
        step(number)
    settle()
    started, tokens, number = time.perf_counter(), 0, untimed
    while time.perf_counter() - started < seconds:
        for _ in range(5):  # a GPU works ahead of the clock only so far
            tokens, number = tokens + step(number), number + 1
        settle()
    return tokens / (time.perf_counter() - started)


def alone(loop: Loop, seconds: float) -> float:
    batches = [rows for rows in loop.start_epoch(0) if len(rows) == loop.spec.batch_size]

    def step(number: int) -> int:
        rows = batches[number % len(batches)]
        loop.step(rows)
        return int(loop.lengths[rows].sum())

    return rate_of(step, seconds)


def stacked(specs: list[RunSpec], corpus: Corpus, seconds: float) -> float:
    loops = [StackedLoop(None, spec, corpus) for spec in specs]
    batches = [super(StackedLoop, loop).start_epoch(0)[:-1] for loop in loops]  # the last one is smaller
    stack = Stack(loops)

    def step(number: int) -> int:
        asked = {loop: (each[number % len(each)], False) for loop, each in zip(loops, batches, strict=True)}
        stack.train(asked)
        return sum(int(loop.lengths[rows].sum()) for loop, (rows, _) in asked.items())

    return rate_of(step, seconds, untimed=30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15, help="that each row is timed for")
    parser.add_argument("--stacked", type=int, nargs="*", default=[8, 32, 128])
    parser.add_argument("--tiny", action="store_true", help="small shapes and few pairs")
    given = parser.parse_args()
    began, place = time.perf_counter(), tempfile.TemporaryDirectory()
    folders = {name: str(Path(place.name) / name) for name in ("roberta-large", "gpt2-large", "gpt2")}
    corpus = make_split("train", 256 if given.tiny else 4096)
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    precision = "bf16" if takes_bf16("bf16") else "fp32"
    matrix = matrix_rate(precision, 1024 if given.tiny else 8192)
    print(f"{name}: {matrix / 1e12:,.1f} TFLOP/s in {precision}; each row {given.seconds:g} s")
    print(f"{'':44}{'tokens/s':>12}{'share':>8}{'GiB':>7}", flush=True)

    def show(title: str, tokens: float, work: float) -> None:
        peak = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else float("nan")
        print(f"{title:44}{tokens:12,.0f}{tokens * work / matrix:8.1%}{peak:7.1f}", flush=True)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    base = {"corpus": "planted", "model": MINILM, "learning_rate": 2e-5, "epochs": 100}
    specs = [RunSpec(**base, seed=seed) for seed in range(max(given.stacked, default=1))]
    loop = Loop(specs[0], corpus)
    work = operations(loop)
    show("MiniLM, one training", alone(loop, given.seconds), work)
    del loop
    for count in given.stacked:
        show(f"MiniLM, {count} stacked", stacked(specs[:count], corpus, given.seconds), work)
    shape = "gpt2" if given.tiny else "gpt2-large"
    objective = objectives(corpus)["unlikelihood"]
    settings = {"model": random_model(shape, folders[shape]), "objective": objective.name, "batch_size": 24}
    loop = Loop(RunSpec(**base | settings), corpus, objective=objective)
    weights = sum(each.numel() for each in loop.model.parameters())
    # likelihood and the unlikelihood of one wrong label are two passes over a sequence
    show(f"{shape}'s shape, generator", alone(loop, given.seconds), 12 * weights)
    del loop
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2} if given.tiny else ROBERTA_LARGE
    loop = Loop(RunSpec(**base | {"model": encoder(folders["roberta-large"], **sizes)}), corpus)
    show("RoBERTa-large's shape, one training", alone(loop, given.seconds), operations(loop))
    del loop
    show_equality(place.name, corpus[: 256 if given.tiny else 2048])
    print(f"{time.perf_counter() - began:.0f} s in all")


def show_equality(home: str, corpus: Corpus) -> None:
    """Accuracy after each of three epochs of three seeds, alone and stacked."""
    settings = {"corpus": "planted", "model": ONE_LAYER, "learning_rate": 1e-3, "epochs": 3}
    for title, train in {"alone": lambda calls: [call() for call in calls], "stacked": together}.items():
        paths.RUNS = Path(home) / title
        specs = [RunSpec(**settings, seed=seed) for seed in range(3)]
        runs = train([lambda spec=spec: fit(spec, corpus) for spec in specs])
        found = np.array([[float((each.argmax(1) == run.labels).mean()) for each in run.logits] for run in runs])
        print(
            f"{title:10} accuracy by epoch "
            + ", ".join(f"{a:.3f} ±{s:.3f}" for a, s in zip(found.mean(0), found.std(0, ddof=1), strict=True))
        )


if __name__ == "__main__":
    main()
