"""The reference is made from the docstrings, all of them. Run alone: pytest tests/study/test_reference.py"""

import ast
import contextlib
import doctest
import importlib.util
import inspect
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import typer
from numpy.typing import ArrayLike, NDArray
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pydantic import Field
from tiny import without

ROOT = Path(__file__).resolve().parents[2]
FILES = [*(ROOT / "nli_lib").rglob("*.py"), *(ROOT / "nli_tools").glob("*.py")]
pytest.importorskip("sphinx")
from sphinx.util.inspect import stringify_signature  # noqa: E402

SPEC = importlib.util.spec_from_file_location("reference", ROOT / "book" / "_ext" / "reference.py")
reference = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(reference)


def test_every_package_and_every_module_has_its_page():
    folder, toc = ROOT / "book" / "reference", (ROOT / "book" / "_toc.yml").read_text()
    ground = {"__init__", "__main__", "errors", "paths", "store", "tables"}
    files = [path for path in FILES if path.stem not in ground]
    shown = []
    for path in folder.rglob("*.rst"):
        names = reference.of(path.read_text())
        assert f"- file: {path.relative_to(folder.parent).with_suffix('')}\n" in toc
        assert path.read_text().count("\n") == 2 + 2 * len(names), "no prose by hand"
        shown += names if path.parent != folder else []
        within = {name for each in path.with_suffix("").glob("*.rst") for name in reference.of(each.read_text())}
        assert not within or within == {name for each in names for name in reference.modules(each)}
    assert sorted(shown) == sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files)


def examples():
    """The examples of the docstrings, with no name known but those that they import."""
    for path in FILES:
        if ">>> " in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found = doctest.DocTestFinder().find(importlib.import_module(name), name, globs={})
            yield from (pytest.param(each, id=each.name) for each in found if each.examples)


@pytest.mark.parametrize("example", list(examples()))
def test_an_example_runs_in_an_empty_session(example):
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example).failed == 0


def with_all_that_they_need(requirements):
    """The distributions that pip installs for these requirements."""
    found, waiting = set(), list(requirements)
    while waiting:
        wanted = Requirement(waiting.pop())
        name = canonicalize_name(wanted.name)
        if name not in found and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
            found.add(name)
            with contextlib.suppress(metadata.PackageNotFoundError):
                waiting += metadata.requires(name) or []
    return found


def test_what_the_environment_of_the_book_lacks_is_stood_in_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    there = with_all_that_they_need(project["dependencies"] + project["optional-dependencies"]["book"])
    lines = [line for path in (ROOT / "nli_lib").rglob("*.py") for line in ast.parse(path.read_text()).body]
    modules = {line.module for line in lines if isinstance(line, ast.ImportFrom)}
    modules |= {each.name for line in lines if isinstance(line, ast.Import) for each in line.names}
    tops = {module.split(".")[0] for module in modules} - {"nli_lib"} - sys.stdlib_module_names
    owners = metadata.packages_distributions()
    lacking = {top for top in tops if not there & {canonicalize_name(owner) for owner in owners.get(top, ())}}
    assert {"torch"} <= lacking <= set(reference.ABSENT), "autodoc loses the page of a module that imports it"


def test_parameters_and_notes_are_sections_that_numpydoc_knows():
    """A parameter that a section names is one of the function's; no section is misspelt."""
    known = {"Parameters", "Attributes", "Raises", "Notes", "References", "Returns", "Yields", "Examples"}
    for path in FILES:
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for node in [node for node in nodes if isinstance(node, ast.FunctionDef)]:
            text = ast.get_docstring(node) or ""
            titles = re.findall(r"^(\w+)\n-{3,}$", text, re.MULTILINE)
            assert set(titles) <= known, f"{path}: {node.name}: {titles}"
            told = re.search(r"^Parameters\n-+\n((?:.+\n?)+)", text, re.MULTILINE)
            names = re.findall(r"^(\w.*)$", told[1], re.MULTILINE) if told else []
            given = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
            assert {name for line in names for name in line.split(", ")} <= given, f"{path}: {node.name}: {names}"


def test_types_are_those_of_the_code():
    def given(scores: ArrayLike, other: ArrayLike | None = None, *, at: NDArray[np.bool_]) -> dict[str, NDArray]: ...

    def command(scale: Annotated[str, typer.Option(help="x")], job: Annotated[str | None, typer.Option()] = None): ...

    def parameters(seeds: Annotated[int, Field(ge=1, le=20)] | None = None): ...

    def shown(function):
        made = stringify_signature(inspect.signature(function), unqualified_typehints=True)
        made = reference.signature(None, "function", "", None, None, made, "")[0]
        return re.sub(r"~[\w.]+\.", "", made)  # Sphinx shows the last part of a name and links the whole

    arrays = "(scores: ArrayLike, other: ArrayLike | None = None, *, at: NDArray[bool]) -> dict[str, NDArray]"
    assert shown(given) == arrays and shown(command) == "(scale: str, job: str | None = None)"
    assert shown(parameters) == "(seeds: int | None = None)"


def test_a_change_of_the_extension_has_every_page_read_again(tmp_path):
    """A book that was built before the change would keep its pages of the reference otherwise."""
    copy, versions = tmp_path / "reference.py", []
    for text in ("", "", "# changed"):
        copy.write_text(Path(SPEC.origin).read_text() + text)
        versions.append(runpy.run_path(str(copy))["CODE_VERSION"])
    assert versions[0] == versions[1] != versions[2]


@pytest.mark.slow
def test_pages_are_built_without_torch_and_without_a_warning(tmp_path):
    source, html = tmp_path / "source", tmp_path / "html"
    held = {"select": ["select.zfilter", "z_filter"], "learn/recorder": ['id="nli_lib.learn.recorder.RecordLogits"']}
    selection = ['id="nli_lib.select.selection.Selection"', "random_twin", "with a reason for each"]
    held |= {"select/selection": [*selection, "To begin with", "&gt;&gt;&gt;"]}
    held |= {"learn/fit": ['id="nli_lib.learn.fit.fit"', 'id="nli_lib.learn.fit.Run"'], "learn/fast": ["speed_up"]}
    held |= {"nli_tools/explorer": ['id="nli_tools.explorer.explore"']}
    toc = "".join(f"   reference/{page}\n" for page in held)
    for page in held:
        (source / "reference" / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "book" / "reference" / f"{page}.rst", source / "reference" / f"{page}.rst")
    (source / "index.rst").write_text(f"Index\n=====\n\n.. toctree::\n\n{toc}")
    path = f"sys.path.insert(0, {str(ROOT / 'book' / '_ext')!r})"
    (source / "conf.py").write_text(f"import sys\n{path}\nextensions = ['reference']\n")
    code = without("torch", "transformers", "datasets", "anywidget", "jscatter", "cleanlab")
    code += f"""from sphinx.cmd.build import main
sys.exit(main(["-q", {str(source)!r}, {str(html)!r}]))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for room, words in held.items():
        page = (html / "reference" / f"{room}.html").read_text()
        assert all(each in page for each in words)
        assert not re.search(r"_SupportsArray|_ScalarT|Alias for field|model_config| object at 0x", page)
