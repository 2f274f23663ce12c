"""What a command line may say: the options that several commands share, and how what was written is read.

request = request_of(scale, corpus, **form, seeds=seeds)     # checked, its paths absolute
"""

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
import yaml

from nli_lib.study.parameters import ParameterError, is_own_file
from nli_lib.study.schedule import Request

Scale = Annotated[str, typer.Option(help="the dial: smoke, small or full")]
CorpusName = Annotated[
    str | None, typer.Option("--corpus", help="a corpus by name, or a file; default: the scale's own")
]
Seeds = Annotated[int | None, typer.Option(help="how many seeds, 1 to 20; default: the scale's own")]
DataDir = Annotated[str | None, typer.Option(help="folder with the official corpus files; default: NLI_DATA")]
Columns = Annotated[
    str | None, typer.Option(help="your file's column names, as in premise=context,hypothesis=claim,label=verdict")
]
Labels = Annotated[
    str | None, typer.Option(help="your file's label names, as in 0=entailment,1=neutral,2=contradiction")
]
Encoding = Annotated[str | None, typer.Option(help="of a file that is not UTF-8, as in cp1252")]
# Where and how a user's file is read: the options of every command that `reads_a_file`.
OPTIONS = {"data_dir": DataDir, "columns": Columns, "labels": Labels, "encoding": Encoding}
YourFile = Annotated[str, typer.Argument(help="your file (csv, tsv, txt, json, jsonl, parquet), or a corpus by name")]
Model = Annotated[
    str | None, typer.Option(help="language model, as the server of OPENAI_BASE_URL calls it; default: the scale's")
]
TestFile = Annotated[
    str | None,
    typer.Option("--test", help="a test file, or a corpus by name (its test split), that should share nothing with it"),
]
Epochs = Annotated[int | None, typer.Option(min=1, max=100, help="of each training; default: the recipe's")]
Encoder = Annotated[
    str | None, typer.Option(help="encoder: an offline name, a hub id or a local folder; default: the scale's")
]


def spec_changes(epochs: int | None, encoder: str | None) -> dict[str, object]:
    """Fields of a `RunSpec` that were asked for."""
    return {name: value for name, value in {"epochs": epochs, "model": encoder}.items() if value is not None}


def named_values(option: str, pairs: list[str], value: str = "VALUE") -> dict[str, str]:
    """NAME=VALUE pairs of ``option``, each name once; ``value``: what its help calls a value."""
    split = [pair.partition("=") for pair in pairs]
    if wrong := ["".join(parts) for parts in split if not all(parts)]:
        raise ParameterError(f"{option} {wrong[0]}: write NAME={value}")
    names = [name.strip() for name, _, _ in split]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ParameterError(f"{option}: {twice[0]} is named twice")
    return {name: value.strip() for name, (_, _, value) in zip(names, split, strict=True)}


def reads_a_file(command: Callable) -> Callable:
    """A command whose parameter ``form`` is what `OPTIONS` say, which it takes in its place."""
    own = inspect.signature(command)
    rest = [each for name, each in own.parameters.items() if name != "form"]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in OPTIONS.items()
    ]

    @functools.wraps(command)
    def called(**given: object) -> None:
        command(form={name: given.pop(name) for name in OPTIONS}, **given)

    called.__signature__ = own.replace(parameters=[*rest, *options])
    called.__annotations__ = {each.name: each.annotation for each in (*rest, *options)}
    del called.__wrapped__  # whose source Sphinx would hold against this signature
    return called


def _columns(given: str | None) -> dict[str, str] | None:
    columns = named_values("--columns", given.split(",")) if given else None
    if given and len(set(columns.values())) < len(columns):
        raise ParameterError(f"--columns {given}: one column stands for two")
    return columns


def yaml_values(pairs: list[str]) -> dict[str, object]:
    """NAME=VALUE pairs, values read as YAML: 3 is a number, no is False, two is text."""
    try:
        return {name: yaml.safe_load(value) for name, value in named_values("-p", pairs).items()}
    except yaml.YAMLError:
        raise ParameterError(f"-p {' '.join(pairs)}: cannot be read as a value (YAML)") from None


def request_of(
    scale: str,
    corpus: str | None,
    *,
    data_dir: str | None = None,
    columns: str | None = None,
    labels: str | None = None,
    **more: object,
) -> Request:
    """A checked `Request`. Paths are made absolute: notebooks run in the project's folder, not in this one."""
    corpus = absolute_file(corpus)
    if os.environ.get("NLI_DATA"):
        os.environ["NLI_DATA"] = _absolute(os.environ["NLI_DATA"])
    request = Request(
        scale=scale,
        corpus=corpus,
        data_dir=_absolute(data_dir) if data_dir else None,
        columns=_columns(columns),
        labels=named_values("--labels", labels.split(",")) if labels else None,
        **more,
    )
    request.standard()  # raises ParameterError on wrong values
    return request


def absolute_file(name: str | None) -> str | None:
    """A file's path made absolute; a corpus by name, and a file that lies elsewhere, as they are."""
    return _absolute(name) if name and is_own_file(name) and Path(_absolute(name)).is_file() else name


def _absolute(path: str) -> str:
    # a link is not followed: its own name says what kind of file it is
    try:
        return os.path.normpath(Path(path).expanduser().absolute())
    except RuntimeError:
        raise ParameterError(f"{path}: there is no such user. A file of this name is ./{path}") from None
