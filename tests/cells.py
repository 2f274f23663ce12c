"""Cells without a kernel: what a notebook defines, and its measuring cells run on a corpus of a test's own."""

import ast
import functools
import json
import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest

from nli_lib import paths, stats
from nli_lib.study import standing
from nli_lib.study.notebook import DRAW, fill
from nli_lib.tables import find_table, read_table, write_csv

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
CODE_OF = functools.cache(standing.code_of)


def code_once(notebook: Path, uses=()) -> dict[str, object]:
    """`standing.code_of` of a notebook and a library that no test changes."""
    return CODE_OF(notebook, tuple(uses))


def code(name: str, *tags: str, kind: str = "code") -> list[str]:
    """The code cells of a notebook in order, those with one of `tags`, or all of them; lines for IPython left out."""
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    chosen = [cell for cell in cells if cell["cell_type"] == kind]
    chosen = [cell for cell in chosen if not tags or set(tags) & set(cell["metadata"].get("tags", []))]
    return [re.sub(r"(?m)^\s*[%!?].*$", "", "".join(cell["source"])) for cell in chosen]


def functions(name: str, **given: object) -> SimpleNamespace:
    """What a notebook's cells define: their imports, functions and constants in capitals. Nothing else is run.

    given  names that a function takes from its notebook, such as a `study`
    """
    return SimpleNamespace(**_public(_defined(name, given)))


def ran(name: str, *ids: str, **given: object) -> SimpleNamespace:
    """The names that these cells leave, run in turn after all that the notebook defines; `.tables`: what they save.

    ids    of cells; those that go on with a long one, "id-2", run with it
    given  names that the cells take from those before them; a `study` of its own needs no `save`
    """
    given = {"study": SimpleNamespace(), **given}
    namespace = _defined(name, given)
    namespace.update(given)  # a cell may import a name that another then binds anew
    tables: dict[str, object] = {}
    namespace["study"].save = lambda table, part: tables.update({part: table})
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = {cell["id"]: "".join(cell["source"]) for cell in cells}
    for id in (each for asked in ids for each in sources if re.fullmatch(rf"{re.escape(asked)}(-\d)?", each)):
        exec(compile(sources[id], f"{name}, {id}", "exec"), namespace)  # a long cell goes on in "id-2"
    return SimpleNamespace(**_public(namespace) | {"tables": tables})


def _defined(name: str, given: dict[str, object]) -> dict[str, object]:
    namespace = dict(given)
    for source in code(name):
        for node in ast.parse(source).body:
            targets = [one for each in getattr(node, "targets", []) for one in getattr(each, "elts", [each])]
            constant = (
                isinstance(node, ast.Assign) and targets and all(getattr(each, "id", "").isupper() for each in targets)
            )
            if constant or isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef):
                exec(compile(ast.Module([node], []), name, "exec"), namespace)
    return namespace


def _public(namespace: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in namespace.items() if not key.startswith("__")}


def measured(name: str, folder: Path, monkeypatch, *, corpus=None, **parameters: object) -> SimpleNamespace:
    """Run the measuring cells of a notebook at scale smoke, with its results in `folder`; the names that they leave.

    corpus      stands in for what `study.corpus` reads
    parameters  in place of the notebook's own
    `.study.table(part)` is a table that was written.
    """
    for place in ("RESULTS", "EXPORTS", "RUNS"):
        monkeypatch.setattr(paths, place, folder / place.lower())
    monkeypatch.setattr(standing, "code_of", code_once)
    namespace = {"__name__": name}
    for source in code(name, "parameters"):
        exec(source, namespace)
    namespace.update(parameters)
    for source in code(name, "begin"):
        exec(source, namespace)
    if corpus is not None:
        monkeypatch.setattr(namespace["study"], "corpus", lambda *_, **__: corpus)
    for source in code(name, "measure"):
        exec(compile(source, name, "exec"), namespace)
    return SimpleNamespace(**_public(namespace))


class _AnsweredError(Exception):
    """The chapter has given its answer: (verdict, text)."""


def recorded(name: str, scale: str, monkeypatch) -> dict[str, object]:
    """What a notebook's first cells give where its page is drawn from the tables of `scale`; nothing is shown."""
    monkeypatch.setenv(DRAW, "1")
    monkeypatch.setattr(standing, "code_of", code_once)
    namespace = {"__name__": name, "display": lambda *_, **__: None}
    for source in (*code(name, "parameters"), f"SCALE = {scale!r}", *code(name, "begin")):
        exec(source, namespace)
    namespace["study"].say, namespace["study"].show = fill_only, lambda *_, **__: None
    return namespace


def answered(name: str, folder: Path, monkeypatch, changes=(), scale="small") -> tuple[str, str]:
    """The verdict and the first sentence that a chapter draws from the tables of `scale`, some of them made up.

    changes: each with "table" of this chapter or "chapter.table", "set" (column -> value) and, for some rows, "where"
    Of made-up tables nobody reads the intervals' last digits, and a tenth of the resamples is enough.
    """
    if changes:
        left_out = shutil.ignore_patterns("*.parts")
        shutil.copytree(paths.RESULTS / scale, folder / scale, ignore=left_out, copy_function=os.link)
        monkeypatch.setattr(paths, "RESULTS", folder)
        monkeypatch.setattr(stats, "over_trainings", functools.partial(stats.over_trainings, resamples=50))
    for change in changes:
        stem = change["table"] if "." in change["table"] else f"{name}.{change['table']}"
        path = find_table(folder / scale / stem)
        table = read_table(path)
        rows = table.query(change["where"]).index if "where" in change else table.index
        assert len(rows), f"{stem}: no row is {change['where']}"
        for column, value in change["set"].items():
            table[column] = table[column].astype(object) if column in table else None
            table.loc[rows, column] = value
        path.unlink()  # it is the recorded one
        write_csv(path.with_suffix(".csv"), table.infer_objects())
    namespace = recorded(name, scale, monkeypatch)

    def answer(verdict, template, **values):
        raise _AnsweredError(verdict, fill(template, values))

    namespace["study"].answer = answer
    with pytest.raises(_AnsweredError) as found:
        for source in drawing(name, "study.answer("):
            exec(compile(source, name, "exec"), namespace)
    plt.close("all")
    return found.value.args


def fill_only(template, **values):
    fill(template, values)


def drawing(name: str, only: str, *more: str) -> list[str]:
    """Of the cells that draw a chapter's page, and of `more` code, what has `only` in it and what that needs."""
    left_out = set(code(name, "measure", "parameters", "begin", "finish"))
    sources, needed, kept = [*(source for source in code(name) if source not in left_out), *more], set(), []
    trees = [ast.parse(source) for source in sources]
    for tree, source in zip(reversed(trees), reversed(sources), strict=True):
        named = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        bound = {node.id for node in named if isinstance(node.ctx, ast.Store)}
        bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        if only in source or bound & needed:
            needed |= {node.id for node in named} | set(re.findall(r"@(\w+)", source))  # those in a query
            needed -= bound if source in more else set()
            kept.insert(0, source)
    imports = [node for tree in trees for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return [*map(ast.unparse, imports), *kept]


def solved(name: str, solution: str, monkeypatch, scale: str) -> object:
    """What the solution of an exercise shows: the value of its last line."""
    namespace = recorded(name, scale, monkeypatch)
    namespace["study"].answer = lambda *_, **__: None
    *cells, last = drawing(name, solution, solution)
    for source in cells:
        exec(compile(source, name, "exec"), namespace)
    plt.close("all")
    *lines, shown = ast.parse(last).body
    exec(compile(ast.Module(lines, []), name, "exec"), namespace)
    return eval(compile(ast.Expression(shown.value), name, "eval"), namespace)
