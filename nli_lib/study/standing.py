"""What stands: whether a chapter's record still holds for the code at hand, derived from what the numbers depend on.

A record keeps the digest of the cells tagged `measure`, with the cells whose names they use, and of every module of the
library that they, and the methods of `Study` they call, import, directly or through others. Comments, docstrings and
formatting do not count. What is kept by value does not count as code: the keys of the dial and the recipes that were
read, and the defaults of `RunSpec`; so a new key or field makes nothing stale.
"""

import ast
import contextlib
import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path

from pydantic_core import to_jsonable_python

from nli_lib import paths
from nli_lib.spec import DEFAULTS
from nli_lib.store import now, revision
from nli_lib.study import manifest as records
from nli_lib.study.dial import read_scale
from nli_lib.study.recipes import recipes

LIBRARY = Path(__file__).resolve().parents[1]
SPEC = "nli_lib.spec"  # kept by value: the defaults of RunSpec
NAMED = 3  # reasons that a line names; more are counted


# ---------------------------------------------------------------- digests of code


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


# ---------------------------------------------------------------- does it still stand?


def _changes(what: str, then: Mapping, now: Mapping, said: str = ": {!r} then, {!r} now") -> list[str]:
    """What was recorded and has another value now; what is only there now does not count."""
    return [
        what.format(name) + (said.format(value, now[name]) if name in now else " is missing")
        for name, value in sorted(then.items())
        if name not in now or now[name] != value
    ]


def _dial_at(scale: str, keys: Iterable[str]) -> dict[str, object]:
    """The values that keys of the dial ("limit", "wanli.compared") have at a scale; unknown keys are left out."""
    found = {}
    for key in keys:
        with contextlib.suppress(AttributeError):
            found[key] = to_jsonable_python(attrgetter(key)(read_scale(scale)))
    return found


def _changed(what: str, then: Mapping[str, str], digest: Callable[[str], str | None]) -> list[str]:
    """The modules or files among `then` (name -> digest) that are no longer what they were."""
    now = {name: found for name in then if (found := digest(name))}
    return _changes(what, then, now, " changed")


def _result(name: str) -> str | None:
    return records.digest_file(paths.RESULTS / name)


def _changed_sources(record: Mapping) -> list[str]:
    """Tables that a run would gather now and did not then, files of the book, a user's own corpus."""
    reasons = [
        f"{name} has recorded {part} since"
        for part, then in record.get("gathered", {}).items()
        for name in records.notebooks_with(part, record["study"])
        if name not in then
    ]
    reasons += _changed("{}", record.get("declared", {}), lambda file: records.digest_file(paths.BOOK / file))
    corpus = record.get("parameters", {}).get("CORPUS")
    own = records.corpus_file(corpus)
    return reasons + ([f"the corpus file {corpus} changed"] if own and own != record.get("corpus_file") else [])


def why_stale(record: Mapping, parameters: Mapping | None = None) -> list[str]:
    """Reasons why a finished record no longer stands for the code at hand; empty when it does.

    `parameters`: the values asked for now; None compares none (a status page asks for no particular values).
    """
    reasons = []
    scale = record.get("parameters", {}).get("SCALE")
    if parameters is not None:
        then, asked = (_unnamed(each) for each in (record.get("parameters", {}), parameters))
        asked = {name: value for name, value in asked.items() if name not in records.NEUTRAL}
        reasons += _changes("{}", {name: then.get(name) for name in asked}, asked)
    if record.get("cells") != code_of(paths.NOTEBOOKS / f"{record['notebook']}.ipynb")["cells"]:
        reasons.append("the code of its measuring cells changed")
    reasons += _changed("module {}", record.get("modules", {}), digest_module)
    if scale:
        reasons += _changes("the dial's {}", record.get("dial", {}), _dial_at(scale, record.get("dial", {})))
    reasons += _changes("the recipe of {}", record.get("recipes", {}), recipes())
    if record.get("recipes"):
        reasons += _changes("RunSpec's default of {}", record.get("defaults", {}), DEFAULTS)
    reasons += _changed("{}, which it read,", record.get("inputs", {}), _result)
    reasons += _changed("{}, which it wrote,", record.get("outputs", {}), _result)
    return reasons + _changed_sources(record)


def in_short(reasons: list[str]) -> str:
    """The first reasons and the number of the others, for one line."""
    more = [f"and {len(reasons) - NAMED} more"] if len(reasons) > NAMED else []
    return "; ".join(reasons[:NAMED] + more)


def _unnamed(parameters: Mapping) -> dict:
    """The parameters, the scale's own corpus written as None also where it was asked for by name."""
    own = bool(parameters.get("SCALE")) and parameters.get("CORPUS") == read_scale(parameters["SCALE"]).corpus
    return {**parameters, **({"CORPUS": None} if own else {})}


# ---------------------------------------------------------------- confirming a record that cost hours


def confirm(scale: str, before: Path) -> dict[str, str]:
    """Write finished records at `scale` anew for the code at hand where the smoke tables show the same numbers.

    `before` holds the smoke tables of the older revision. A chapter is confirmed when this clone's run, finished and
    not stale, wrote all that they hold; its record keeps when. Columns and tables that have come since are confirmed by
    nothing. Returns what was done with every chapter, in words.
    """
    said = {}
    for path in sorted((paths.RESULTS / scale).glob("*.json")):
        record, here = records.read(path.stem, scale), records.read(path.stem, "smoke")
        if record["state"] != records.FINISHED:
            said[path.stem] = f"left: {record['state']}"
        elif not why_stale(record):
            said[path.stem] = "stands"
        elif obstacle := _obstacle(record, here, before):
            said[path.stem] = f"left: {obstacle}"
        else:
            records.write(_confirmed(record, here))
            said[path.stem] = "confirmed: the smoke tables before and after are equal"
    return said


def _tables(folder: Path, notebook: str) -> dict[str, Path]:
    """The recorded tables of a notebook, by the part that each holds."""
    return {path.name.split(".")[1]: path for path in folder.glob(f"{notebook}.*.*")}


def _obstacle(record: Mapping, here: Mapping, before: Path) -> str:
    """Why the smoke tables cannot confirm a record, or ""."""
    name = record["notebook"]
    if here["state"] != records.FINISHED or why_stale(here):
        return "its smoke run here is missing or stale"
    old, new = (_tables(folder, name) for folder in (before, paths.RESULTS / "smoke"))
    if not old:
        return "the folder has no smoke table of it"
    if differing := [part for part in old if not _equal(old[part], new.get(part))]:
        return f"the smoke tables differ: {', '.join(sorted(differing))}"
    return "; ".join(_changed("{}, which it read,", record["inputs"], _result) + _changed_sources(record))


def _equal(old: Path, new: Path | None) -> bool:
    """Whether a table holds all that it held before; columns may have come since."""
    from nli_lib.study.tables import read_table

    before = read_table(old)
    return new is not None and before.equals(read_table(new).reindex(columns=before.columns))


def _inputs(record: Mapping, here: Mapping) -> dict[str, str]:
    """What the chapter read, and what it has come to read since: at another scale that can be less."""
    names = [name.replace("smoke/", f"{record['study']}/", 1) for name in here["inputs"]]
    return {name: digest for name in [*record["inputs"], *names] if (digest := _result(name))}


def _confirmed(record: Mapping, here: Mapping) -> dict:
    tables = _tables(paths.RESULTS / record["study"], record["notebook"]).values()
    outputs = {path.relative_to(paths.RESULTS).as_posix(): records.digest_file(path) for path in tables}
    then, earlier = record["parameters"], record.get("confirmed", [])
    changed = sorted(n for n, digest in here["modules"].items() if record.get("modules", {}).get(n) != digest)
    entry = {"revision": revision(), "date": now()[:10], "modules": changed}
    code = {key: here[key] for key in ("cells", "roots", "modules", "defaults", "recipes")}
    return {
        **record,
        **code,
        "inputs": _inputs(record, here),
        "outputs": outputs,
        "dial": _dial_at(then["SCALE"], here["dial"]),
        "parameters": {name: then.get(name, default) for name, default in here["parameters"].items()},
        "confirmed": [*earlier, entry],
    }
