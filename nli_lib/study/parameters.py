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
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, ValidationError, create_model

from nli_lib.errors import UserError
from nli_lib.study.dial import SCALES

# What a notebook may declare for a parameter of its own: a type, a (low, high) range, or a list of allowed values. With
# None among them, as in (2, 100, None), None is allowed too: the scale's own value.
Rule = type | tuple | list | UnionType

STANDARD: dict[str, Rule] = {
    "SCALE": list(SCALES),
    "CORPUS": str | None,
    "SEEDS": (1, 20, None),
    "DATA_DIR": str | None,
    "COLUMNS": dict[str, str] | None,  # of a user's own file; the command line sets it, no notebook declares it
}
DEFAULTS = {"SCALE": "smoke", "CORPUS": None, "SEEDS": None, "DATA_DIR": None, "COLUMNS": None}

# Names that a running kernel puts beside the parameters.
KERNEL_NAMES = {"In", "Out", "exit", "quit", "open", "get_ipython", "display"}


class ParameterError(UserError, ValueError):
    """A parameter is wrong; the message names it, what was given and what is allowed."""


def _without_none(rule: Rule) -> tuple[Rule, bool]:
    """A rule, and whether it allows None."""
    if isinstance(rule, UnionType):
        return next(each for each in get_args(rule) if each is not NoneType), True
    if isinstance(rule, tuple | list) and None in rule:
        return type(rule)(each for each in rule if each is not None), True
    return rule, False


def _kind(rule: Rule) -> Any:
    """A rule as a type that pydantic checks."""
    rule, optional = _without_none(rule)
    if isinstance(rule, list):
        kind: Any = Literal[tuple(rule)]
    elif isinstance(rule, tuple):
        kind = Annotated[type(rule[0]), Field(ge=rule[0], le=rule[1])]
    else:
        kind = rule
    return kind | None if optional else kind


def wanted(rule: Rule) -> str:
    """A rule in words, for messages: what a parameter's value must be."""
    rule, optional = _without_none(rule)
    if isinstance(rule, list):
        words = f"one of {', '.join(json.dumps(value) for value in rule)}"
    elif isinstance(rule, tuple):
        words = f"{'a whole number' if isinstance(rule[0], int) else 'a number'} from {rule[0]} to {rule[1]}"
    else:
        known = {int: "a whole number", float: "a number", bool: "True or False", str: "text", list: "a list"}
        words = known.get(rule, "a mapping of column names")
    return f"{words} or None" if optional else words


def _shown(value: object) -> str:
    text = json.dumps(value, default=repr) if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def close(name: object, choices: object) -> str:
    """'; did you mean "..."?' when one of `choices` is near `name`, else ""."""
    upper = {str(choice).upper(): choice for choice in choices}
    near = difflib.get_close_matches(str(name).upper(), upper, n=1, cutoff=0.6)
    return f'; did you mean "{upper[near[0]]}"?' if near else ""


def _told(error: Mapping, rules: Mapping[str, Rule]) -> str:
    """One of pydantic's errors in our words."""
    name = error["loc"][0]
    if error["type"] == "extra_forbidden":
        return f"{name}: no such parameter{close(name, rules)} (allowed: {', '.join(rules)})"
    if error["type"] == "missing":
        return f"{name}: declared, but the parameters cell does not set it"
    hint = close(error["input"], rules[name]) if isinstance(rules[name], list) else ""
    return f"{name}: expected {wanted(rules[name])}, got {_shown(error['input'])}{hint}"


def own_path(corpus: str, data_dir: str | None = None) -> Path | None:
    """Where a user's own file lies, here or in the data folder; None for a corpus by name, and where there is none."""
    path, folder = Path(corpus).expanduser(), data_dir or os.environ.get("NLI_DATA")
    places = [path, *([Path(folder, path)] if folder else [])]
    return next((place for place in places if place.is_file()), None) if is_own_file(corpus) else None


def is_own_file(corpus: str) -> bool:
    """Whether CORPUS is a user's own file and not a corpus by name: those have no ending."""
    return bool(Path(corpus).suffix)


def check_corpus(corpus: str | None, data_dir: str | None = None) -> str | None:
    """What is wrong with CORPUS, or None: it is a known name, or a file here or in the data folder."""
    if corpus is None:
        return None
    from nli_lib.corpora.load import reading, sources

    if reading.kind(Path(corpus)):
        there = own_path(corpus, data_dir)
        return None if there else f"CORPUS: no such file: {corpus} (looked from {Path.cwd()})"
    if corpus in sources.names():
        return None
    return (
        f"CORPUS: {_shown(corpus)} is neither a known corpus ({', '.join(sources.names())}) "
        f"nor a file ({', '.join(reading.SUFFIXES)}, each also with .gz){close(corpus, sources.names())}"
    )


def check(values: Mapping[str, object], extra: Mapping[str, Rule] | None = None) -> dict[str, object]:
    """All parameters, defaults filled in, or one `ParameterError` that lists every problem.

    `values` are names and values as given; `extra` declares a notebook's own parameters, which must all be given.
    """
    rules = {**STANDARD, **(extra or {})}
    fields = {name: (_kind(rule), DEFAULTS.get(name, ...)) for name, rule in rules.items()}
    model = create_model("Parameters", __config__=ConfigDict(extra="forbid", strict=True), **fields)
    try:
        model.model_validate(dict(values))
        problems = []
    except ValidationError as error:
        problems = list(dict.fromkeys(_told(each, rules) for each in error.errors()))
    filled = {**DEFAULTS, **values}
    if not any(problem.startswith(("CORPUS:", "DATA_DIR:")) for problem in problems):
        problems += filter(None, [check_corpus(filled["CORPUS"], filled["DATA_DIR"])])
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
