"""Tiny notebooks for tests of the machinery: written in a line each, in a project home of their own."""

import time
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from nli_lib import paths

PARAMETERS = 'SCALE = "smoke"\nCORPUS = None\nSEEDS = None\nDATA_DIR = None'


def write_notebook(folder: Path, name: str, *cells: str, parameters: str = PARAMETERS, finish: bool = True) -> Path:
    """A notebook that begins, holds `cells`, and finishes. A cell that starts with "#| measure" is tagged so."""
    begin = f'from nli_lib.study import begin\nstudy = begin("{name}", globals())'
    sources = [begin, *cells, *(["study.finish()"] if finish else [])]
    notebook = new_notebook(cells=[new_markdown_cell(f"# {name}"), new_code_cell(parameters)])
    notebook.cells[1].metadata["tags"] = ["parameters"]
    for source in sources:
        tags = ["measure"] if source.startswith("#| measure") else []
        notebook.cells.append(new_code_cell(source, metadata={"tags": tags}))
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = folder / f"{name}.ipynb"
    nbformat.write(notebook, path)
    return path


def run_cells(path: Path) -> None:
    """Run a tiny notebook in this process."""
    names = {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            exec(cell.source, names)


SAVE = """#| measure
import pandas as pd
study.save(pd.DataFrame({"x": [1, 2]}), "scores")"""
SHOW = 'study.say("There are {n} rows.", n=len(study.table("scores")))'


def wait_until(true, seconds: float = 40) -> None:
    """Ask ten times a second."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)


def without(*packages: str) -> str:
    """The beginning of a program that finds none of these packages, installed or not."""
    return f"""import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


FOLDERS = {
    "RUNS": "data/runs", "EXPORTS": "data/exports", "RESULTS": "data/results", "NOTEBOOKS": "notebooks",
    "BOOK": "book"}  # fmt: skip


def place_home(folder, monkeypatch):
    """Make `folder` an empty project and the project's home, for child processes too."""
    monkeypatch.setattr(paths, "HOME", folder)
    for name, place in FOLDERS.items():
        (folder / place).mkdir(parents=True)
        monkeypatch.setattr(paths, name, folder / place)
    monkeypatch.setenv("NLI_HOME", str(folder))
    monkeypatch.delenv("NLI_DATA", raising=False)
