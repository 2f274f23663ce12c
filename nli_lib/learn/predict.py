"""Predictions of a trained run, or of any ready model, for a corpus::

    predict(run, corpus), embed(run, corpus)           # logits (N, C), vectors (N, D)
    fold = folds(corpus.labels, groups=corpus.premise, seed=0)
    cross_score(spec, corpus, fold)                    # (N, C), each example by a model not trained on it

`stored` finds a run of another chapter by the spec that the chapter recorded, and `cross_predict` applies the models of
the folds to other texts. With `ClassifyOthers` a run records a model's predictions for pairs that it does not learn
from, after every epoch.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import joblib
import numpy as np
import torch
from numpy.typing import ArrayLike
from pydantic import ValidationError
from torch.nn import functional
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, PreTrainedModel

from nli_lib.corpora.corpus import LABELS, Corpus, head_columns
from nli_lib.learn.encode import Tokens, encode, sorted_batches
from nli_lib.learn.fast import speed_up
from nli_lib.learn.fit import Arrays, Classify, Run, fit
from nli_lib.learn.model import exact_output, find_model, load_tokenizer, pick_device, takes_bf16, text_vector
from nli_lib.store import RUN, RunFolder, RunSpec, StoreError, alone, reading, write_array


def predict(model: Run | str, corpus: Corpus, *, batch_size: int = 64) -> np.ndarray:
    """Logits (N, C) float32 of a finished run or a ready NLI model for the N examples of `corpus`, dropout off.

    A run predicts the classes it was trained on, with its view, length and precision, and keeps the predictions in its
    folder, so a second call costs nothing. A ready model is given by offline name, hub id or local folder and reads the
    pair; its outputs are put into the order of `LABELS` by the *names* in its config, and a model with LABEL_0 names is
    refused.

    Raises
    ------
    StoreError
        If a run is unfinished or damaged; `ValueError` for a corpus without examples.
    """
    if isinstance(model, Run):
        return _outputs(model, corpus, "logits", batch_size)
    columns = head_columns(AutoConfig.from_pretrained(find_model(model)).label2id, LABELS)
    return _outputs(model, corpus, "logits", batch_size)[:, columns]


def predict_epochs(run: Run, corpus: Corpus, *, batch_size: int = 64) -> np.ndarray:
    """Logits (E, N, C) float32 of the models after each epoch of a run with `models="all"` in its spec, dropout off.

    For examples that the run was not trained on; `run.logits` has those of its training examples. Kept like those of
    `predict`.

    Raises
    ------
    ValueError
        If the run kept only its last model; also what `predict` raises.

    References
    ----------
    WANLI, section 2.3 (W9), which computes the predictions of each saved epoch afterwards.
    """
    if run.spec.models != "all":
        raise ValueError(f"{run.spec.id} kept its last model alone: train it with models='all' in its spec")
    return np.stack([_outputs(run, corpus, "logits", batch_size, epoch=epoch) for epoch in range(run.spec.epochs)])


def embed(model: Run | str, corpus: Corpus, *, batch_size: int = 64) -> np.ndarray:
    """Vectors (N, D) float32 of the N examples: the first token in the last hidden layer of the encoder of a run or a
    ready model, the space of WANLI's neighbours.

    Notes
    -----
    *Departures*: for a decoder, which reads from left to right, the last token, because its first has seen nothing
    else.
    """
    return _outputs(model, corpus, "cls", batch_size)


def _outputs(model: Run | str, corpus: Corpus, what: str, batch_size: int, epoch: int = -1) -> np.ndarray:
    """Outputs, "logits" or "cls", of a run, kept in its folder, or of a ready model, with the default settings of a
    run."""
    kind = AutoModelForSequenceClassification if what == "logits" else AutoModel
    if not isinstance(model, Run):
        network = kind.from_pretrained(find_model(model), dtype=torch.float32)
        return _pass(network, RunSpec(corpus="any", model=model), corpus, batch_size)
    weights = model.models[epoch]
    earlier = "" if weights == model.model else f"-{weights.name}"
    path = model.folder / "predictions" / f"{what}{earlier}-{corpus.digest[:24]}.npy"
    if not path.exists():
        if not model.store.done.all():
            raise StoreError(f"{model.folder}: the run is not finished; call fit again to end it")
        with alone(model.folder, "this run"):
            if not path.exists():  # another process may have made it
                model.store.verify("models" if earlier else "model")
                with model.store.reading(str(weights.relative_to(model.folder))):
                    network = kind.from_pretrained(weights, dtype=torch.float32)
                spec = model.spec.model_copy(update={"model": str(weights)})
                write_array(path, _pass(network, spec, corpus, batch_size))
    with reading(path, "delete this file to compute it again"):
        return np.load(path)


def _pass(network: PreTrainedModel, spec: RunSpec, corpus: Corpus, batch_size: int) -> np.ndarray:
    """A classifier's logits, or the vectors of `embed`, for the corpus as `spec` reads it."""
    if len(corpus) == 0:
        raise ValueError(f"{corpus.name}/{corpus.split} has no examples to look at")

    def read(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        output = network(**inputs)
        return output.logits if "logits" in output else text_vector(network, output.last_hidden_state, inputs)

    tokens = encode(*corpus.texts(spec.view), load_tokenizer(spec.model), spec.max_length)
    return one_pass(network, tokens, spec.precision, read, batch_size)


@torch.inference_mode()
def one_pass(
    network: PreTrainedModel, tokens: Tokens, precision: str, read: Callable[[dict], torch.Tensor], batch_size: int
) -> np.ndarray:
    """The results of `read` for each batch of inputs, (N, K) float32, with `network` in evaluation mode; longest
    batches first."""
    device = pick_device()
    network.to(device).eval()
    exact_output(network)
    speed_up(network)
    tokens, bf16 = tokens.to(device), takes_bf16(precision)
    result = np.empty((0, network.config.num_labels), np.float32)
    for rows in sorted_batches(tokens.lengths, batch_size):
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            taken = read(tokens.batch(rows)).float().cpu().numpy()
        if len(result) == 0:
            result = np.empty((len(tokens), taken.shape[1]), np.float32)
        result[rows] = taken
    return result


# ---------------------------------------------------------------- stored


def finished(spec: RunSpec) -> bool:
    """True if the run is in the store and trained to its end. Raises `StoreError` if that cannot be read."""
    return (spec.folder / "done.npy").exists() and bool(RunFolder(spec.folder).done.all())


def stored(settings: str) -> Run:
    """Return the finished run with these settings (JSON of `RunSpec`); nothing is trained.

    Raises
    ------
    StoreError
        If the run is not in the store or not finished, naming the run; if a file is damaged, naming the file.
    """
    try:
        spec = RunSpec.model_validate_json(settings, strict=False)
    except ValidationError as error:
        raise StoreError(f"the settings of a run cannot be read: {error.errors()[0]['msg']}") from None
    if not finished(spec):
        raise StoreError(f"{spec.id} is not in {spec.folder.parent}, or not finished: run the chapter that trains it")
    run = Run(spec, spec.folder)
    run.store.verify("arrays")
    return run


# ---------------------------------------------------------------- cross


ON_A_GPU = 4  # trainings of a small encoder that keep one GPU busy


def cross_score(
    spec: RunSpec, corpus: Corpus, fold: ArrayLike, *, reuse_model_for: int = 1, jobs: int | None = None
) -> np.ndarray:
    """Logits (N, C) float32 of each example, from the model trained on all folds except the example's.

    The corpus is tokenised once. Each fold is a run in the store, so a kill costs only the unfinished epoch of the
    current fold. With several jobs, if only this process is killed, the others finish their folds; the next call waits
    for them.

    Parameters
    ----------
    fold
        (N,) fold of each example, 0 and up, as drawn by `select.selection.folds`
    reuse_model_for
        1: every fold starts from the pretrained encoder, as it should. More reproduces an error of the paper: the model
        of one fold is trained further for the next, over that many folds in a row, so it has seen the examples it
        scores
    jobs
        folds trained at a time, each in a separate process with its share of the cores; by default one for each core
        that torch uses, and `ON_A_GPU` on a GPU

    Raises
    ------
    ValueError
        If the folds do not fit the corpus, or no example has some fold number.

    Notes
    -----
    *Departures*: the accuracies of the paper's Table 2 rise by two points with each fold and start again at the sixth;
    `reuse_model_for=5` reproduces this, fresh models do not.

    References
    ----------
    The consensus cleaning paper, section 2 (E5).
    """
    fold = np.asarray(fold)
    found = np.unique(fold)
    if fold.shape != (len(corpus),) or len(found) < 2 or not np.array_equal(found, np.arange(len(found))):
        held = f"fold has shape {fold.shape} and holds {found.tolist()}"
        cure = "from 0 up, two folds or more and none of them empty"
        raise ValueError(f"{held}: number the folds of the {len(corpus)} examples {cure}")
    count = len(found)
    tokens = encode(*corpus.texts(spec.view), load_tokenizer(spec.model), spec.max_length)
    chains = [range(start, min(start + reuse_model_for, count)) for start in range(0, count, reuse_model_for)]
    jobs = min(jobs or (ON_A_GPU if pick_device().type == "cuda" else torch.get_num_threads()), len(chains))
    work = (joblib.delayed(_score_chain)(spec, corpus, fold, each, tokens) for each in chains)
    logits, begun = np.empty((len(corpus), len(corpus.classes)), np.float32), time.monotonic()
    # joblib does not change OMP_NUM_THREADS: without this, each process would use all the threads that are set here
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


def _score_chain(spec: RunSpec, corpus: Corpus, fold: np.ndarray, folds: Sequence[int], tokens: Tokens) -> list:
    """(fold, its logits) for the folds of a chain, in order; each starts from the previous one's model."""
    scored = []
    for at, run_spec in zip(folds, fold_specs(spec, fold, folds), strict=True):
        run = fit(run_spec, corpus, fold != at, tokens=tokens)
        scored.append((at, predict(run, corpus[fold == at])))
    return scored


def fold_specs(spec: RunSpec, fold: np.ndarray, folds: Sequence[int]) -> Iterator[RunSpec]:
    """The spec of each fold's run; in a chain all but the first start from the model of the run before.

    A spec for a part of a corpus keeps the part's name, because another part may fall into the same folds.
    """
    drawn = hashlib.sha256(np.asarray(fold, np.int64).tobytes()).hexdigest()[:8]
    part = "" if spec.subset == "all" else f"{spec.subset}, "
    for at in folds:
        spec = spec.model_copy(update={"subset": f"{part}without fold {at} of {int(fold.max()) + 1}, {drawn}"})
        yield spec
        spec = spec.model_copy(update={"model": f"{RUN}{spec.id}"})


# ---------------------------------------------------------------- reuse


def cross_predict(spec: RunSpec, fold: ArrayLike, others: Corpus, of: ArrayLike) -> np.ndarray:
    """Logits (K, C) float32 of texts that belong to pairs of a cross-scored corpus, such as their revisions.

    Each text is scored by the model that was not trained on its pair. fold (N,) and spec: the arguments of the call of
    `learn.predict.cross_score`; of (K,): the pair to which each of the K texts of ``others`` belongs. Raises
    `StoreError` if there was no such call.
    """
    fold, of = np.asarray(fold), np.asarray(of, dtype=int)
    if len(of) != len(others):
        raise ValueError(f"{len(of)} pairs for {len(others)} texts: say of each which pair it belongs to")
    logits = np.empty((len(others), len(others.classes)), np.float32)
    for at in np.unique(fold[of]):
        here = fold[of] == at
        run = stored(next(fold_specs(spec, fold, [int(at)])).model_dump_json())
        logits[here] = predict(run, others[here])
    return logits


# ---------------------------------------------------------------- held out


class ClassifyOthers(Classify):
    """Objective: the gold label of each example that is not held out; for held-out examples only the logits are
    recorded.

    held_out (N,) bool, in the order of the corpus. A run records the logits of the examples in its corpus, epoch by
    epoch; for any others it has only its last model. So the held-out examples are part of the corpus, but their loss
    has weight 0: their texts and labels change no weight of the model. They take up places in the batches, which hold
    that many fewer training examples.
    """

    def __init__(self, held_out: ArrayLike):
        self.held_out = np.asarray(held_out, dtype=bool)
        self.name = f"classify all but {hashlib.sha256(self.held_out.tobytes()).hexdigest()[:8]}"

    def arrays(self, spec: RunSpec, corpus: Corpus, tokens: Tokens | None = None) -> Arrays:
        if len(self.held_out) != len(corpus):
            raise ValueError(f"held_out has {len(self.held_out)} entries for {len(corpus)} examples")
        learnt = torch.tensor(~self.held_out, dtype=torch.float32)
        return {**super().arrays(spec, corpus, tokens), "learnt": learnt}

    def loss(self, model: PreTrainedModel, batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
        """The mean loss over the batch's training examples, 0 if it has none.

        The pass after an epoch computes only the held-out examples, which takes a few seconds; the others get NaN.
        """
        learnt = batch["learnt"]
        if torch.is_inference_mode_enabled():
            held_out = learnt == 0
            recorded = torch.full((len(learnt), model.config.num_labels), torch.nan, device=learnt.device)
            if held_out.any():
                inputs = {name: column[held_out] for name, column in batch["tokens"].items()}
                recorded[held_out] = model(**inputs).logits.float()
            return learnt.new_zeros(()), recorded
        logits = model(**batch["tokens"]).logits.float()
        each = functional.cross_entropy(logits, batch["labels"], reduction="none")
        return (each * learnt).sum() / learnt.sum().clamp(min=1), logits
