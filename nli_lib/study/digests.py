"""Digests of the code that decides a notebook's numbers.

Of a notebook, the cells tagged `measure` count, with the cells whose names they use; of the library, every top-level
definition (function, class, constant) whose name they use, directly or through other definitions. Comments, docstrings
and formatting do not count, and neither does the module in which a definition stands: one that moves as it is changes
nothing.
"""

import ast
import functools
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from nli_lib.spec import DEFAULTS
from nli_lib.study import manifest as records

LIBRARY = Path(__file__).resolve().parents[1]
PACKAGE = "nli_lib"
# kept by value, or deciding no number: the defaults of RunSpec; the dial; how tables are kept on disk
SKIPPED = {"nli_lib.spec", "nli_lib.study.dial", "nli_lib.study.tables"}
# what a notebook uses through its `study`, by the name under which its record keeps that
USES = {
    "corpora": "nli_lib.corpora.load.sources:load",
    "suites": "nli_lib.corpora.suites:load_each",
    "recipes": "nli_lib.study.recipes:run_spec",
}

Place = tuple[str, str]  # a module and a name in it; "" for all of it


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
    """A syntax tree as nested lists, without empty fields, which differ between versions of Python, and without imports
    from the library."""
    if isinstance(node, list):
        return [_plain(each) for each in node if not _ours(each)]
    if not isinstance(node, ast.AST):
        return repr(node)
    return [
        type(node).__name__,
        *([name, _plain(each)] for name, each in ast.iter_fields(node) if each not in (None, [])),
    ]


def _ours(node: object) -> bool:
    """Whether a node imports from the library alone."""
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] == PACKAGE
    return isinstance(node, ast.Import) and all(alias.name.split(".")[0] == PACKAGE for alias in node.names)


def _digest(code: object) -> str:
    return records.digest_bytes(json.dumps(code).encode())


def digest_code(*trees: ast.AST) -> str:
    """Digest of what code does, however it is laid out and explained, and wherever in the library its names stand."""
    renamed = sorted((name, other) for tree in trees for name, (_, other) in _imports(tree).items() if other != name)
    return _digest([[_plain(tree) for tree in trees], [pair for pair in renamed if pair[1]]])


# ---------------------------------------------------------------- names and where they stand


def _imports(tree: ast.AST) -> dict[str, Place]:
    """The name that each import in a tree binds -> what it stands for, also inside functions."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                found[alias.asname or first] = (alias.name if alias.asname else first), ""
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                place = (whole, "") if _file(whole) else (node.module, alias.name)
                found[alias.asname or alias.name] = place
    return found


def _file(module: str) -> Path | None:
    if module.split(".")[0] != PACKAGE:
        return None
    stem = LIBRARY.parent.joinpath(*module.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


def _used(tree: ast.AST, bound: Mapping[str, Place]) -> set[Place]:
    """The names that a tree uses, as places: of what an import binds, where that stands; of another, ("", name)."""
    found, inside = set(), set()
    for node in ast.walk(tree):  # the outer attributes come first
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module, name = bound.get(node.value.id, ("", node.value.id))
            if module and not name:
                inside.add(id(node.value))
                whole = f"{module}.{node.attr}"
                found.add((whole, "") if _file(whole) else (module, node.attr))
        elif isinstance(node, ast.Name) and id(node) not in inside and isinstance(node.ctx, ast.Load):
            found.add(bound.get(node.id, ("", node.id)))
    return found


class _Module(NamedTuple):
    """What stands in a module: name -> statements that bind it, what its imports bind, and all other statements."""

    definitions: dict[str, list[ast.stmt]]
    bound: dict[str, Place]
    others: list[ast.stmt]


@functools.lru_cache(maxsize=1024)
def _read(path: Path, modified: int) -> _Module:
    tree = _parse(path.read_text(encoding="utf-8"))
    definitions, others = defaultdict(list), []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        else:
            names = []
        for name in names:
            definitions[name].append(node)
        if not names and not isinstance(node, ast.Import | ast.ImportFrom) and _runs(node):
            others.append(node)
    top = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
    return _Module(dict(definitions), _imports(top), others)


def _runs(node: ast.stmt) -> bool:
    """Whether importing a module runs the statement: not `if TYPE_CHECKING`, nor `if __name__ == "__main__"`."""
    return not (isinstance(node, ast.If) and _names(node.test, ast.Load) & {"TYPE_CHECKING", "__name__"})


@functools.lru_cache(maxsize=16384)
def _definition(path: Path, modified: int, name: str) -> tuple[str, frozenset[Place], frozenset[str]]:
    """(digest, places that it uses, words in it that may name a data file beside the module) of a definition."""
    module = _read(path, modified)
    tree = ast.Module(module.definitions[name] if name else module.others, [])
    bound = {**module.bound, **_imports(tree)}
    used = _used(tree, bound)
    external = sorted(place for place in used if place[0] and _file(place[0]) is None)
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    named = frozenset(word for word in words if re.fullmatch(r"[\w-]+\.(?!py$)\w+", word))
    return _digest([digest_code(tree), external]), frozenset(used), named


def dependences(roots: Iterable[str]) -> dict[str, str]:
    """Digest of every definition of the library that `roots` ("module:name") use, directly or through others, and
    of the data files (word lists, prompts) that they name beside them: name -> digest."""
    found, seen = defaultdict(dict), set()
    open_ = [tuple(root.split(":")) for root in roots]
    while open_:
        module, name = open_.pop()
        path = _file(module)
        if path is None or module in SKIPPED or (module, name) in seen:
            continue
        seen.add((module, name))
        modified = path.stat().st_mtime_ns
        read = _read(path, modified)
        if not name:  # all that stands there
            open_ += [(module, each) for each in read.definitions]
        elif name not in read.definitions:  # imported there, or made by the module when it is asked for
            open_.append(read.bound.get(name, (module, "")))
            continue
        for part in [part for part in {name, ""} if part or read.others]:
            digest, used, named = _definition(path, modified, part)
            found[part or "statements"][module] = digest
            open_ += [(other or module, each) for other, each in used if other or each in read.definitions]
            near = (path.parent / word for word in named if "study" not in path.parts)  # there kept by value
            for file in (each for each in near if each.is_file()):
                found[file.name][module] = records.digest_file(file)
    return {name: _one(digests) for name, digests in sorted(found.items())}


def _one(digests: Mapping[str, str]) -> str:
    """The digest of a name that stands in one or several modules."""
    different = sorted(set(digests.values()))
    return different[0][:16] if len(different) == 1 else records.digest_bytes("".join(different).encode())[:16]


# ---------------------------------------------------------------- notebooks


def _code_cells(notebook: Path) -> list[tuple[set[str], ast.Module]]:
    """(tags, code) of a notebook's code cells; lines for IPython alone (%, !) are left out."""
    return [
        (set(cell["metadata"].get("tags", [])), _parse(re.sub(r"(?m)^\s*[%!?].*$", "", cell["source"])))
        for cell in records.cells(notebook)
        if cell["cell_type"] == "code"
    ]


def _names(tree: ast.AST, context: type) -> set[str]:
    """Names that a tree loads, or those that it binds, by `def` as well."""
    made = (ast.FunctionDef, ast.ClassDef) if context is ast.Store else ()
    found = {node.name for node in ast.walk(tree) if isinstance(node, made)}
    return found | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


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


def code_of(notebook: Path, uses: Iterable[str] = ()) -> dict[str, object]:
    """The part of a record that says which code decides a notebook's numbers.

    cells        digest of the measuring cells; the others draw
    definitions  digests of what those cells use of the library, and of what that uses; of `uses` (keys of `USES`) too
    defaults     the defaults of `RunSpec`
    """
    cells, roots = _cells_of(notebook, notebook.stat().st_mtime_ns) if notebook.is_file() else (digest_code(), ())
    wanted = [*roots, *(USES[name] for name in uses)]
    return {"cells": cells, "definitions": dependences(wanted), "defaults": DEFAULTS}


@functools.lru_cache(maxsize=1024)
def _cells_of(notebook: Path, modified: int) -> tuple[str, tuple[str, ...]]:
    cells = _code_cells(notebook)
    measuring = _measuring(cells)
    bound = {}
    for _, tree in cells:
        bound |= _imports(tree)
    used = {place for tree in measuring for place in _used(tree, {**bound, **_imports(tree)})}
    used |= {place for tree in measuring for place in _imports(tree).values() if place[1]}
    # the notebook API: what decides numbers in it is noted where it is used
    roots = {f"{module}:{name}" for module, name in used if module and module != "nli_lib.study"}
    return digest_code(*measuring), tuple(sorted(roots))
