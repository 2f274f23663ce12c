"""Cells without a kernel: what a notebook defines, and its measuring cells run on a corpus of a test's own."""

import ast
import json
import re
from pathlib import Path
from types import SimpleNamespace

from nli_lib import paths

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def code(name: str, *tags: str) -> list[str]:
    """The code cells of a notebook in order, those with one of `tags`, or all of them; lines for IPython left out."""
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    chosen = [cell for cell in cells if cell["cell_type"] == "code"]
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
