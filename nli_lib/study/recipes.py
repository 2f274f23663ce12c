"""The papers' training recipes (`recipes.yaml`) and how one becomes the spec of a run."""

import functools
from pathlib import Path
from typing import Any

import yaml

from nli_lib.spec import RunSpec

FILE = Path(__file__).with_name("recipes.yaml")


@functools.lru_cache
def recipes() -> dict[str, dict[str, Any]]:
    """Every paper's recipe by the paper's key: fields of `RunSpec` and their values."""
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def run_spec(paper: str, dial: Any, **fields: object) -> RunSpec:
    """The spec of a run by a paper's recipe.

    `fields` come before the recipe; encoder, epochs and learning rate that neither names are the dial's, the paper's
    own section first.
    """
    chosen = {**recipes()[paper], **fields}
    for name in ("model", "epochs", "learning_rate"):
        if name not in chosen:
            chosen[name] = getattr(getattr(dial, paper, None), name, None) or getattr(dial, name)
    return RunSpec(**chosen)
