"""cross_score: every example of a corpus scored by a model that did not train on it.

fold = folds(corpus.labels, groups=corpus.premise, seed=0)
logits = cross_score(spec, corpus, fold)          # (N, C), out of sample
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from itertools import chain

import joblib
import numpy as np
import torch
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.learn.encode import Tokens, encode
from nli_lib.learn.fit import fit
from nli_lib.learn.model import load_tokenizer, pick_device
from nli_lib.learn.predict import predict
from nli_lib.spec import RUN, RunSpec

ON_A_GPU = 4  # trainings of a small encoder that keep one GPU busy


def cross_score(
    spec: RunSpec, corpus: Corpus, fold: ArrayLike, *, reuse_model_for: int = 1, jobs: int | None = None
) -> np.ndarray:
    """Logits (N, C) float32 of each example, from the model that trained on all folds but the example's own.

    fold             (N,) fold of each example, 0 and up, as `select.selection.folds` draws them
    reuse_model_for  1: every fold starts from the encoder itself, as it must. More reproduces an error: the model of
                     one fold is trained on for the next, over so many folds in a row, and so it has seen what it scores
    jobs             folds trained at a time, each in a process of its own with its share of the cores; by default one
                     for each core that torch uses here, and `ON_A_GPU` on a GPU

    Tokenised once. Each fold is a run in the store, so that what was trained before a kill is not trained again; the
    fold at work loses the epoch at work. With several jobs a kill of this process alone lets the others finish the
    folds that they were handed; the next call waits for those.
    Raises `ValueError` on folds that do not fit the corpus, and for a fold number that no example has.
    Source: the consensus cleaning paper, section 2 (E5). *Departures*: the accuracies of its Table 2 climb by two
    points a fold and start again at the sixth, which `reuse_model_for=5` gives and fresh models do not.
    """
    fold = np.asarray(fold)
    found = np.unique(fold)
    if fold.shape != (len(corpus),) or len(found) < 2 or not np.array_equal(found, np.arange(len(found))):
        raise ValueError(
            f"fold has shape {fold.shape} and holds {found.tolist()}: number the folds of the {len(corpus)} examples "
            "from 0 up, two folds or more and none of them empty"
        )
    count = len(found)
    tokens = encode(*corpus.texts(spec.view), load_tokenizer(spec.model), spec.max_length)
    chains = [range(start, min(start + reuse_model_for, count)) for start in range(0, count, reuse_model_for)]
    jobs = min(jobs or (ON_A_GPU if pick_device().type == "cuda" else torch.get_num_threads()), len(chains))
    work = (joblib.delayed(_score_chain)(spec, corpus, fold, each, tokens) for each in chains)
    logits, begun = np.empty((len(corpus), len(corpus.classes)), np.float32), time.monotonic()
    # joblib leaves OMP_NUM_THREADS as it finds it: each process would take all the threads that are set here
    with joblib.parallel_config("loky", inner_max_num_threads=max(1, torch.get_num_threads() // jobs)):
        scored = joblib.Parallel(n_jobs=jobs, return_as="generator")(work)
        for done, (at, part) in enumerate(chain.from_iterable(scored), 1):
            here = fold == at
            logits[here] = part
            right = float((part.argmax(axis=1) == corpus.labels[here]).mean())
            said = f"fold {at}: trained on {(~here).sum():,}, scored {here.sum():,}, accuracy {right:.4f}"
            left = (time.monotonic() - begun) / done * (count - done) / 60
            print(f"{said}; {done} of {count} done, about {left:.0f} min left", flush=True)
    return logits


def _score_chain(
    spec: RunSpec, corpus: Corpus, fold: np.ndarray, folds: Sequence[int], tokens: Tokens
) -> list[tuple[int, np.ndarray]]:
    """(fold, its logits) for the folds of a chain, in order; each starts from the model of the one before."""
    scored = []
    for at, run_spec in zip(folds, fold_specs(spec, fold, folds), strict=True):
        run = fit(run_spec, corpus, fold != at, tokens=tokens)
        scored.append((at, predict(run, corpus[fold == at])))
    return scored


def fold_specs(spec: RunSpec, fold: np.ndarray, folds: Sequence[int]) -> Iterator[RunSpec]:
    """The spec of each fold's run; in a chain all but the first start from the model of the run before.

    A spec of a part of a corpus keeps the part's name: another part may fall into the same folds.
    """
    drawn = hashlib.sha256(np.asarray(fold, np.int64).tobytes()).hexdigest()[:8]
    part = "" if spec.subset == "all" else f"{spec.subset}, "
    for at in folds:
        spec = spec.model_copy(update={"subset": f"{part}without fold {at} of {int(fold.max()) + 1}, {drawn}"})
        yield spec
        spec = spec.model_copy(update={"model": f"{RUN}{spec.id}"})
