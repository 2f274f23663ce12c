"""What CONTRIBUTING.md and README.md show runs as it stands there. Run alone: pytest tests/test_contributing.py"""

import ast
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from nli_lib.study.dial import read_scale
from nli_lib.study.runner import Request, run

ROOT = Path(__file__).resolve().parents[1]
CONTRIBUTING, README = ROOT / "CONTRIBUTING.md", ROOT / "README.md"


def chapter():
    """The notebook that the page shows in the percent format."""
    text, cells = re.search(r"```python\n(# %%.*?)```", CONTRIBUTING.read_text(encoding="utf-8"), re.DOTALL)[1], []
    for head, body in re.findall(r"^# %%(.*)\n((?:(?!# %%).*\n)*)", text, re.MULTILINE):
        if "[markdown]" in head:
            cells.append(new_markdown_cell(re.sub(r"^# ?", "", body, flags=re.MULTILINE)))
        else:
            cells.append(new_code_cell(body, metadata={"tags": re.findall(r'"(\w+)"', head)}))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def test_it_is_ten_lines_of_code():
    code = [cell.source.splitlines() for cell in chapter().cells if cell.cell_type == "code"]
    lines = [line for cell in code for line in cell if line.strip()]
    assert len(lines) == 10 and max(map(len, lines)) <= 100, lines


def test_the_walks_name_what_is_there():
    text = CONTRIBUTING.read_text(encoding="utf-8")
    steps = re.findall(r"^ {6}([\w/]+\.py) +(?:(\w+): )?", text[: text.index("## Words")], re.MULTILINE)
    assert len(steps) >= 15
    for path, name in steps:
        file = ROOT / path if path.startswith("nli_tools") else ROOT / "nli_lib" / path
        defined = {getattr(node, "name", "") for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))}
        assert not name or name in defined, f"{path}: {name}"


@pytest.mark.slow
def test_it_runs_and_leaves_its_table(home):
    nbformat.write(chapter(), home / "notebooks" / "03_length.ipynb")
    (outcome,) = run([], Request())
    assert (outcome.notebook, outcome.state) == ("03_length", "finished"), outcome.reason
    lengths = pd.read_csv(home / "data" / "results" / "smoke" / "03_length.lengths.csv")
    assert lengths["count"].sum() == read_scale("smoke").limit


# ---------------------------------------------------------------- README


def test_each_figure_of_the_readme_is_there():
    figures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert figures and all((README.parent / figure).is_file() for figure in figures)


@pytest.mark.slow
def test_the_twenty_lines_run(home, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 20 and "limit=2000" in code and "epochs=3" in code
    for much, few in {"limit=2000": "limit=60", "limit=1000": "limit=30", "epochs=3": "epochs=1"}.items():
        code = code.replace(much, few)
    exec(code, {})
    assert {"ambiguous", "random twin"} <= set(re.findall(r"(?m)^(.*) Estimate\(value=", capsys.readouterr().out))
