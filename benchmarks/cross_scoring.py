"""What cross-scoring costs: ten folds against as many examples trained on in one piece.

    python benchmarks/cross_scoring.py [--pairs 1000] [--folds 10] [--epochs 3] [--rounds 3] [--jobs 1 2]

Trains the offline MiniLM on planted pairs (SNLI's, where NLI_DATA has them), on all and fold by fold in alternation,
in a store of its own that is thrown away. A cross-scoring of K folds trains on K - 1 times the corpus, so the ratio to
K - 1 trainings is 1 when loading, saving and scoring cost nothing; the aim is 1.05 with one job. `--jobs 2` trains two
folds at a time, each on its share of the cores.
"""

import argparse
import contextlib
import io
import os
import shutil
import tempfile
import time

HOME = tempfile.mkdtemp(prefix="cross-scoring-")
os.environ["NLI_HOME"] = HOME

import numpy as np  # noqa: E402  NLI_HOME is read when the library is imported

from nli_lib.corpora import load  # noqa: E402
from nli_lib.learn.fit import fit  # noqa: E402
from nli_lib.learn.predict import cross_score  # noqa: E402
from nli_lib.select.selection import folds  # noqa: E402
from nli_lib.store import RunSpec  # noqa: E402
from nli_lib.study.dial import recipes  # noqa: E402


def timed(work):
    started = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        work()
    return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("pairs", 1000), ("folds", 10), ("epochs", 3), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    asked = parser.parse_args()
    name, split = ("snli", "validation") if os.environ.get("NLI_DATA") else ("planted", "train")
    corpus = load(name, split, limit=asked.pairs)
    fold = folds(corpus.labels, groups=corpus.premise, count=asked.folds)
    place = {"corpus": name, "split": split, "model": "minilm", "learning_rate": 1e-4}
    recipe = {**recipes()["consensus"], "epochs": asked.epochs, **place}
    seconds = {"one training": []} | {f"{asked.folds} folds, {jobs} at a time": [] for jobs in asked.jobs}
    for seed in range(asked.rounds):
        spec = RunSpec(**recipe, seed=seed)
        seconds["one training"].append(timed(lambda spec=spec: fit(spec, corpus)))
        for jobs in asked.jobs:
            own = spec.model_copy(update={"limit": jobs})  # a run of its own in the store
            way = f"{asked.folds} folds, {jobs} at a time"
            seconds[way].append(timed(lambda spec=own, jobs=jobs: cross_score(spec, corpus, fold, jobs=jobs)))
    one = np.array(seconds["one training"])
    print(f"{len(corpus):,} pairs of {name}, {asked.epochs} epochs, {asked.rounds} rounds, {os.cpu_count()} cores")
    print(f"{'':24} {'seconds':>9} {'ratio to ' + str(asked.folds - 1) + ' trainings':>26}")
    for way, taken in seconds.items():
        ratio = np.array(taken) / one / (1 if way == "one training" else asked.folds - 1)
        print(f"{way:24} {np.median(taken):9.1f} {np.median(ratio):12.3f} ({ratio.min():.3f} to {ratio.max():.3f})")


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(HOME, ignore_errors=True)
