"""Imports point down the house's list, and torch stays in its room. Run alone: pytest tests/test_imports.py"""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import without

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(path for package in ("nli_lib", "nli_tools") for path in (ROOT / package).rglob("*.py"))

# Higher may import lower (a larger number), never the other way round.
ROOMS = ["tools", "study", "beside", "generate", "select", "measure", "learn", "corpora", "ground"]
# modules beside the rooms: estimates, tables, claims, words, figures
BESIDE = {"agreement", "claims", "compare", "evaluate", "ledger", "names", "plots", "stats"}
GROUND, HEAVY = {"errors", "paths", "store", "tables"}, {"torch", "transformers", "accelerate"}


def room(name: str) -> str:
    """The room of a dotted module name."""
    if name.split(".")[0] == "nli_tools":
        return "tools"
    part = name.split(".")[1] if "." in name else ""
    if part in ROOMS or part in BESIDE:
        return "beside" if part in BESIDE else part
    return "ground" if part in GROUND or not part else "study"


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, top_level: bool = False, typed: bool = True) -> set[str]:
    """Every module that a file imports, as dotted names; only those outside functions when `top_level`, without those
    for the type checker alone unless `typed`."""
    tree, inside = ast.parse(path.read_text(encoding="utf-8")), set()
    for node in ast.walk(tree):
        if not typed and isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            inside |= set(ast.walk(node))
    if top_level:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inside |= set(ast.walk(node))
    found = set()
    for node in ast.walk(tree):
        if node in inside:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_imports_point_down(path):
    own = ROOMS.index(room(dotted(path)))
    for name in imports(path):
        if name.split(".")[0] in ("nli_lib", "nli_tools") and name != "nli_lib":
            assert ROOMS.index(room(name)) >= own, f"{dotted(path)} ({ROOMS[own]}) imports {name} ({room(name)})"


def test_no_two_modules_need_each_other():
    """Imports inside functions count too."""
    names = {dotted(path) for path in MODULES if path.name != "__init__.py"}
    needs = {dotted(path): (imports(path, typed=False) & names) - {dotted(path)} for path in MODULES}
    graphlib.TopologicalSorter(needs).prepare()  # raises CycleError, which names them


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_torch_stays_in_learn(path):
    roots = {name.split(".")[0] for name in imports(path)}
    if room(dotted(path)) != "learn":
        assert not roots & HEAVY, f"{dotted(path)} imports {roots & HEAVY}; only learn/ may"
    if dotted(path) not in ("nli_lib.measure.similarity", "nli_lib.learn.text"):
        assert "sentence_transformers" not in roots
    else:
        assert not any(name.startswith("sentence_transformers") for name in imports(path, top_level=True))


@pytest.mark.slow
def test_everything_outside_learn_imports_without_torch():
    names = [dotted(p) for p in MODULES if room(dotted(p)) != "learn" and p.name != "__main__.py"]
    code = without(*HEAVY, "sentence_transformers", "datasets")
    code += f"import importlib\nfor name in {names!r}:\n    importlib.import_module(name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.returncode, done.stderr


@pytest.mark.parametrize(("entrance", "heavy"), [
    ("from nli_lib.study import begin", ("torch", "transformers", "datasets", "sklearn", "matplotlib", "nbformat")),
    ("import nli_lib.study.runner", ("torch", "pandas", "scipy", "pyarrow"))], ids=[
    "a notebook begins without what trains or draws", "the runner starts without what notebooks need"])  # fmt: skip
def test_an_entrance_loads_little(entrance, heavy):
    code = f"import sys\n{entrance}\nprint([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
