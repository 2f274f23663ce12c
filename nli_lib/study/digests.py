"""Digests of the code that decides a notebook's numbers.

Of a notebook, the cells tagged `measure` count, with the cells whose names they use; of the library, every module that
they import, directly or through others. Comments, docstrings and formatting do not count.
"""

import ast
import functools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from nli_lib.spec import DEFAULTS
from nli_lib.study import manifest as records

LIBRARY = Path(__file__).resolve().parents[1]
SPEC = "nli_lib.spec"  # kept by value: the defaults of RunSpec


def _parse(source: str) -> ast.Module:
    """The syntax tree without docstrings and imports for the type checker alone; of what is no Python, its text."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ast.Module([ast.Expr(ast.Constant(source)), ast.Pass()], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
        elif isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    return tree


def _plain(node: object) -> object:
    """A syntax tree as nested lists, without empty fields: those differ between versions of Python."""
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    return [
        type(node).__name__,
        *([name, _plain(each)] for name, each in ast.iter_fields(node) if each not in (None, [])),
    ]


def digest_code(*trees: ast.Module) -> str:
    """Digest of what code does, however it is laid out and explained."""
    return records.digest_bytes(json.dumps([_plain(tree) for tree in trees]).encode())


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(the name that is bound, the module of the library) of every import in a tree, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [(alias.asname or alias.name.split(".")[0], alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = [(alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names]
            found = [(name, module if _file(module) else node.module) for name, module in inner]
        else:
            continue
        yield from ((name, module) for name, module in found if module.split(".")[0] == "nli_lib")


def _file(module: str) -> Path | None:
    stem = LIBRARY.parent.joinpath(*module.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


@functools.lru_cache(maxsize=1024)
def _read(path: Path, modified: int) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """(digest of the code, modules that it imports, words in it that may name a data file beside it) of a module."""
    tree = _parse(path.read_text(encoding="utf-8"))
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    named = [word for word in sorted(words) if re.fullmatch(r"[\w-]+\.(?!py$)\w+", word)]
    return digest_code(tree), tuple(sorted({module for _, module in _imports(tree)})), tuple(named)


def digest_module(name: str) -> str | None:
    """Digest of a module's code, and of the data files beside it that it names (word lists, prompts); None if gone."""
    path = _file(name)
    if path is None or name == SPEC:
        return path and "by value"
    digest, _, named = _read(path, path.stat().st_mtime_ns)
    near = (path.parent / word for word in named)
    beside = [file for file in near if file.is_file() and "study" not in path.parts]  # there kept by value
    return records.digest_bytes("".join([digest, *map(records.digest_file, beside)]).encode()) if beside else digest


def dependences(roots: Iterable[str]) -> dict[str, str]:
    """Digest of every module of the library that `roots` import, themselves included, directly or through others."""
    found, open_ = {}, list(roots)
    while open_:
        name = open_.pop()
        path = _file(name)
        if name in found or path is None:
            continue
        found[name] = digest_module(name)
        open_ += _read(path, path.stat().st_mtime_ns)[1]
    return dict(sorted(found.items()))


def _code_cells(notebook: Path) -> list[tuple[set[str], ast.Module]]:
    """(tags, code) of a notebook's code cells; lines for IPython alone (%, !) are left out."""
    return [
        (set(cell["metadata"].get("tags", [])), _parse(re.sub(r"(?m)^\s*[%!?].*$", "", cell["source"])))
        for cell in records.cells(notebook)
        if cell["cell_type"] == "code"
    ]


def _names(tree: ast.AST, context: type) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def _measuring(cells: list[tuple[set[str], ast.Module]]) -> list[ast.Module]:
    """The cells tagged `measure`, and of the others those that last bound a name which a measuring cell uses."""
    # parameters count by their values, and how the study begins decides no number
    bound = [set() if "parameters" in tags else _names(tree, ast.Store) - {"study"} for tags, tree in cells]
    chosen = {place for place, (tags, _) in enumerate(cells) if "measure" in tags}
    waiting = list(chosen)
    while waiting:
        place = waiting.pop()
        for name in _names(cells[place][1], ast.Load) - bound[place]:
            last = max((other for other in range(place) if name in bound[other]), default=place)
            if last not in chosen:
                chosen.add(last)
                waiting.append(last)
    return [cells[place][1] for place in sorted(chosen)]


def code_of(notebook: Path) -> dict[str, object]:
    """The part of a record that says which code decides a notebook's numbers.

    cells     digest of the measuring cells; the others draw
    roots     modules that those cells import, or use where another cell has imported them
    modules   digests of the roots and of what they import
    defaults  the defaults of `RunSpec`
    """
    cells, roots = _cells_of(notebook, notebook.stat().st_mtime_ns) if notebook.is_file() else (digest_code(), ())
    return {"cells": cells, "roots": list(roots), "modules": dependences(roots), "defaults": DEFAULTS}


@functools.lru_cache(maxsize=1024)
def _cells_of(notebook: Path, modified: int) -> tuple[str, tuple[str, ...]]:
    cells = _code_cells(notebook)
    measuring = _measuring(cells)
    used = set().union(*(_names(tree, ast.Load) for tree in measuring))
    roots = {module for tree in measuring for _, module in _imports(tree)}
    roots |= {module for _, tree in cells for name, module in _imports(tree) if name in used}
    roots.discard("nli_lib.study")  # the notebook API: what decides numbers in it is noted where it is used
    return digest_code(*measuring), tuple(sorted(roots))
