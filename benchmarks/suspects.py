"""`nli-study suspects --fast` against trained models: how many of the first suspects are wrong, and what a list costs.

    python benchmarks/suspects.py --train 2000 --embeddings FOLDER       # precision; --train 0 trains nothing
    python benchmarks/suspects.py --precision no --sizes 10000 100000    # seconds and peak memory

Precision is the share of wrong labels among the first 50 and 100 in the order of the list, that of the gap, beside the
share among all of them, which a random order has. Three truths:

- ChaosNLI: labels of SNLI dev that a hundred people overrule. Trained: the recorded scores of chapters 31 and 32.
- VariErr: labels whose own annotators take them back. Trained: the recorded scores of chapter 34, each of three
  trainings by itself; the fast model leaves the judged premises out, as they did.
- Planted flips: a tenth of the labels of `--train` pairs of SNLI dev, replaced. Trained: MiniLM here, on `--folds`
  folds, by the recipe of the command; what is trained is kept in the store, so that a second run costs seconds.
  `--scored 1` trains the first model alone and compares on the pairs of its fold.

The interval of a difference redraws premises (pairs, in VariErr) and keeps the trainings. `--embeddings` adds what
`--fast --embeddings` does, the same linear model on frozen sentence embeddings; they are kept in the folder it names.
"""

import argparse
import contextlib
import hashlib
import io
import os
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from nli_lib import paths
from nli_lib.agreement import average_precision, precision_at
from nli_lib.corpora import load
from nli_lib.corpora.corpus import Corpus, concat
from nli_lib.measure.consensus import logit_gap
from nli_lib.measure.giveaways import out_of_fold, pair_ngrams
from nli_lib.select.selection import folds
from nli_tools import suspects

KS, FOLDS, RESAMPLES = (50, 100), 5, 500
REAL = [("snli", "validation"), ("snli", "test"), ("snli", "train"), ("mnli", "validation_matched"), ("mnli", "train")]


def recorded(name: str) -> pd.DataFrame:
    return pd.read_csv(paths.HOME / "data" / "results" / "small" / f"{name}.csv")


def gap_of(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return logit_gap(np.log(np.maximum(probabilities, suspects.FLOOR)), labels)


def embedded(corpus: Corpus, folder: Path) -> np.ndarray:
    """(N, 4 D) float32: both sentences of each pair as a frozen encoder has them, and how they differ."""
    from nli_lib.learn.text import pair_vectors

    texts = chr(0).join(np.concatenate([corpus.premise, corpus.hypothesis]))
    path = folder / f"{hashlib.sha256(texts.encode()).hexdigest()[:16]}.npy"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        np.save(path, pair_vectors(corpus.premise, corpus.hypothesis))
    return np.load(path)


def ways(corpus: Corpus, given: argparse.Namespace) -> dict[str, object]:
    """Features of the corpus by the name of the way they are made, the seconds that took printed."""
    found = {}
    makers = {"fast": lambda: pair_ngrams(corpus.premise, corpus.hypothesis)}
    makers |= {"embeddings": lambda: embedded(corpus, given.embeddings)} if given.embeddings else {}
    for name, make in makers.items():
        begun = time.perf_counter()
        found[name] = make()
        print(f"   {name}: features of {len(corpus):,} pairs in {time.perf_counter() - begun:.1f} s", flush=True)
    return found


def compare(title: str, scores: dict[str, list[np.ndarray]], wrong: np.ndarray, units: np.ndarray) -> None:
    """Print the mean precision of the trainings of each way, and how far it lies from the trained one's."""
    print(f"{title}: {wrong.sum():,} of {len(wrong):,} labels are wrong ({wrong.mean():.3f})")
    number, random = pd.factorize(units)[0], np.random.default_rng(0)
    rows_of = pd.Series(np.arange(len(number))).groupby(number).agg(list).tolist()
    draws = [np.concatenate([rows_of[at] for at in random.integers(len(rows_of), size=len(rows_of))])
             for _ in range(RESAMPLES)]  # fmt: skip
    drawn = {}
    for name, each in scores.items():
        values = [np.mean([precision_at(score, wrong, k) for score in each]) for k in KS]
        area = np.mean([average_precision(score, wrong) for score in each])
        drawn[name] = np.array([[np.mean([precision_at(score[rows], wrong[rows], k) for score in each]) for k in KS]
                                for rows in draws])  # fmt: skip
        line = f"   {name:12} first 50 {values[0]:.2f}, first 100 {values[1]:.2f}, average precision {area:.3f}"
        if name != "trained" and "trained" in drawn:
            low, high = np.percentile(drawn[name] - drawn["trained"], [2.5, 97.5], axis=0)
            base = [np.mean([precision_at(score, wrong, k) for score in scores["trained"]]) for k in KS]
            less = [f"{v - b:+.2f} [{a:+.2f}, {z:+.2f}]" for v, b, a, z in zip(values, base, low, high, strict=True)]
            line += f"; minus trained {', '.join(less)}"
        print(line, flush=True)


def chaosnli(given: argparse.Namespace) -> None:
    corpus, scored = load("snli", "validation"), recorded("31_cross_scoring.scored")
    people = recorded("32_which_labels_are_wrong.people").query("truth == 'hundred'")
    assert (scored["label"].to_numpy() == corpus.labels).all(), "the records are of another corpus"
    at, wrong = people["position"].to_numpy(dtype=int), people["wrong"].to_numpy(dtype=bool)
    fold = folds(corpus.labels, groups=corpus.premise, count=FOLDS)
    scores = {"trained": [scored["gap"].to_numpy()[at]]}
    for name, features in ways(corpus, given).items():
        scores[name] = [gap_of(out_of_fold(features, corpus.labels, fold), corpus.labels)[at]]
    compare("ChaosNLI on SNLI dev", scores, wrong, corpus.premise[at])


def varierr(given: argparse.Namespace) -> None:
    corpus, items = load("mnli", "validation_matched"), recorded("34_known_errors.items")
    each = recorded("34_known_errors.scores")
    at = pd.Index(corpus.uid).get_indexer(items["pair"])
    labels = items["label"].to_numpy()
    scores = {"trained": [part.set_index("key")["gap"][items["key"]].to_numpy() for _, part in each.groupby("seed")]}
    judged = np.isin(np.arange(len(corpus)), at)
    # one fold: the judged pairs; the other pairs of their premises are in none
    used = judged | ~pd.Series(corpus.premise).isin(corpus.premise[judged]).to_numpy()
    for name, features in ways(corpus, given).items():
        both = out_of_fold(features[used], corpus.labels[used], judged[used].astype(int))
        place = np.cumsum(used) - 1
        scores[name] = [gap_of(both[place[at]], labels)]
    compare("VariErr", scores, items["error"].to_numpy(dtype=bool), items["pair"].to_numpy())


def flips(given: argparse.Namespace) -> None:
    from nli_lib.learn.fit import fit
    from nli_lib.learn.predict import fold_specs, predict
    from nli_lib.store import RunSpec
    from nli_lib.study.dial import recipes

    corpus, random = load("snli", "validation", limit=given.train), np.random.default_rng(0)
    flipped = random.random(len(corpus)) < 0.1
    labels = np.where(flipped, (corpus.labels + random.integers(1, 3, len(corpus))) % 3, corpus.labels)
    corpus = replace(corpus, table=corpus.table.assign(label=labels), name="snli-flipped")
    fold = folds(corpus.labels, groups=corpus.premise, count=given.folds)
    recipe = {**recipes()["consensus"], "learning_rate": 1e-4, "model": "minilm"}  # that of scale small
    spec = RunSpec(**recipe, corpus="snli-flipped", split="validation", limit=given.train, seed=0)
    begun, logits = time.process_time(), np.zeros((len(corpus), len(corpus.classes)))
    numbers = range(min(given.scored or given.folds, given.folds))
    for at, own in zip(numbers, fold_specs(spec, fold, numbers), strict=True):
        logits[fold == at] = predict(fit(own, corpus, fold != at), corpus[fold == at])
    print(f"   trained in {time.process_time() - begun:.0f} s of processor time")
    here = np.isin(fold, list(numbers))
    scores = {"trained": [logit_gap(logits, labels)[here]]}
    right = {"trained": (logits.argmax(axis=1) == labels)[here]}
    for name, features in ways(corpus, given).items():
        probabilities = out_of_fold(features, labels, fold)
        scores[name] = [gap_of(probabilities, labels)[here]]
        right[name] = (probabilities.argmax(axis=1) == labels)[here]
    print("   accuracy:", ", ".join(f"{name} {each.mean():.3f}" for name, each in right.items()))
    title = f"planted flips in {here.sum():,} of {len(corpus):,} pairs of SNLI dev"
    compare(title, scores, flipped[here], corpus.premise[here])


def costs(sizes: list[int]) -> None:
    parts = [load(name, split) for name, split in REAL] if os.environ.get("NLI_DATA") else [load("planted", limit=2000)]
    whole = concat(parts, name="real")
    print(f"{'pairs':>9} {'wall s':>8} {'CPU s':>8} {'list, page: CPU s':>18} {'peak GB':>9} {'accuracy':>9}")
    for size in sorted(sizes):
        rows = np.resize(np.random.default_rng(0).permutation(len(whole)), size)
        table = whole.table.iloc[rows].assign(uid=[f"r{at}" for at in range(size)])
        corpus = Corpus(table, "real", "train")
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            begun, cpu = time.perf_counter(), time.process_time()
            how = suspects.score(corpus, Path(folder), suspects.Asked(folds=FOLDS, fast=True))
            suspects.finish(Path(folder), "real", how=how)
            wall, spent = time.perf_counter() - begun, time.process_time() - cpu
            task, again = suspects.learnt(Path(folder)), time.process_time()
            suspects.finish(Path(folder), "real", how=how)
            listed = time.process_time() - again
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{size:9,d} {wall:8.1f} {spent:8.1f} {listed:18.1f} {peak:9.2f} {task.accuracy.value:9.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", choices=("yes", "no"), default="yes")
    parser.add_argument("--train", type=int, default=2000, help="pairs that flips are planted in; 0: none")
    parser.add_argument("--folds", type=int, default=FOLDS, help="of the models that are trained on them")
    parser.add_argument("--scored", type=int, help="how many of the folds are scored; default: all")
    parser.add_argument(
        "--embeddings", type=Path, help="compare with frozen sentence embeddings, too, and keep them in this folder"
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help="pairs whose list is timed")
    given = parser.parse_args()
    if given.precision == "yes":
        if given.train:
            flips(given)
        chaosnli(given)
        varierr(given)
    if given.sizes:
        costs(given.sizes)


if __name__ == "__main__":
    main()
