"""The parameters of a notebook, checked inside the notebook: a wrong type, value or name is one clear error.

papermill hands parameters over untyped and only warns about names it does not know, so the check stands in the
notebook's own second cell (`nli_lib.study.begin`) and holds for papermill, JupyterLab and the runner alike.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from nli_lib.study.dial import SCALES

# Corpora that `nli_lib.corpora.load.sources.load` knows by name; anything else in CORPUS is the path of a file.
CORPORA = [
    "planted", "snli", "mnli", "anli", "wanli", "hans", "fever", "sick",
    "cad", "breaking_nli", "med", "qnli", "rte", "wnli", "chaosnli", "disco", "stress",
]  # fmt: skip
SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".gz")
MOST_SEEDS = 20

# What a notebook may declare for a parameter of its own: a type, a (low, high) range, or a list of allowed values.
Rule = type | tuple | list

STANDARD: dict[str, Rule] = {
    "SCALE": list(SCALES),
    "CORPUS": str,
    "SEEDS": (1, MOST_SEEDS),
    "DATA_DIR": str,
    "SHOW_ONLY": bool,
}
DEFAULTS = {"SCALE": "smoke", "CORPUS": None, "SEEDS": None, "DATA_DIR": None, "SHOW_ONLY": False}
OPTIONAL = {"CORPUS", "SEEDS", "DATA_DIR"}  # None means: what the scale or the environment says

# Names that a running kernel puts beside the parameters.
KERNEL_NAMES = {"In", "Out", "exit", "quit", "open", "get_ipython", "display"}


class ParameterError(ValueError):
    """A parameter is wrong; the message names it, what was given and what is allowed. Shown without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints: the message alone. The stack would only show our own checks."""
        return [f"ParameterError: {self}"]


def wanted(rule: Rule) -> str:
    """A rule in words, for messages: what a parameter's value must be."""
    if isinstance(rule, list):
        return f"one of {', '.join(json.dumps(value) for value in rule)}"
    if isinstance(rule, tuple):
        kind = "a whole number" if isinstance(rule[0], int) else "a number"
        return f"{kind} from {rule[0]} to {rule[1]}"
    return {int: "a whole number", float: "a number", bool: "True or False", str: "text", list: "a list"}[rule]


def _adapter(rule: Rule, optional: bool) -> TypeAdapter:
    if isinstance(rule, list):
        kind: Any = Literal[tuple(rule)]
    elif isinstance(rule, tuple):
        # strict turns "3" and True away where a number belongs; a whole number is welcome where a fraction may stand
        kind = Annotated[type(rule[0]), Field(ge=rule[0], le=rule[1], strict=True)]
    else:
        kind = Annotated[rule, Field(strict=True)]
    return TypeAdapter(kind | None if optional else kind)


def _shown(value: object) -> str:
    text = json.dumps(value, default=repr) if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _close(name: str, choices: list[str]) -> str:
    near = difflib.get_close_matches(name.upper(), [choice.upper() for choice in choices], n=1, cutoff=0.6)
    match = next((choice for choice in choices if near and choice.upper() == near[0]), None)
    return f'; did you mean "{match}"?' if match else ""


def _problem(name: str, rule: Rule, value: object) -> str | None:
    """What is wrong with one value, or None."""
    optional = name in OPTIONAL
    try:
        _adapter(rule, optional).validate_python(value)
    except ValidationError:
        hint = _close(value, rule) if isinstance(rule, list) and isinstance(value, str) else ""
        return f"{name}: expected {wanted(rule)}{' or None' if optional else ''}, got {_shown(value)}{hint}"
    return None


def check_corpus(corpus: str | None, data_dir: str | None = None) -> str | None:
    """What is wrong with CORPUS, or None: it is a known name, or a file here or in the data folder."""
    if corpus is None or corpus in CORPORA:
        return None
    if corpus.endswith(SUFFIXES):
        path, folder = Path(corpus).expanduser(), data_dir or os.environ.get("NLI_DATA")
        there = path.is_file() or (folder and Path(folder, path).is_file())
        return None if there else f"CORPUS: no such file: {path} (looked from {Path.cwd()})"
    return (
        f"CORPUS: {_shown(corpus)} is neither a known corpus ({', '.join(CORPORA)}) "
        f"nor a path ending in {', '.join(SUFFIXES)}{_close(corpus, CORPORA)}"
    )


def check(values: Mapping[str, object], extra: Mapping[str, Rule] | None = None) -> dict[str, object]:
    """All parameters, defaults filled in, or one `ParameterError` that lists every problem.

    `values` are names and values as given; `extra` declares a notebook's own parameters, which must all be given.
    """
    rules = {**STANDARD, **(extra or {})}
    problems = [
        f"{name}: no such parameter{_close(name, list(rules))} (allowed: {', '.join(rules)})"
        for name in values
        if name not in rules
    ]
    unset = [name for name in extra or () if name not in values]
    problems += [f"{name}: declared, but the parameters cell does not set it" for name in unset]
    filled = {**DEFAULTS, **{name: value for name, value in values.items() if name in rules}}
    found = {name: _problem(name, rules[name], value) for name, value in filled.items()}
    problems += [problem for problem in found.values() if problem]
    if not found["CORPUS"] and (
        wrong := check_corpus(filled["CORPUS"], filled["DATA_DIR"] if not found["DATA_DIR"] else None)
    ):
        problems.append(wrong)
    if problems:
        raise ParameterError("\n".join(problems))
    return filled


def literals(namespace: Mapping[str, object]) -> dict[str, object]:
    """The parameters in a notebook's namespace: public names of plain values, not modules, functions or classes."""
    plain = (type(None), bool, int, float, str, list, tuple, dict, set)
    return {
        name: value
        for name, value in namespace.items()
        if not name.startswith("_") and name not in KERNEL_NAMES and isinstance(value, plain)
    }
