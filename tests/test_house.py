"""The house does not grow: lines of code (no blanks, comments, docstrings) and files may only become fewer.

Whoever makes them fewer lowers the numbers. Alone: pytest tests/test_house.py"""

import ast
import io
import subprocess
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MOST = {"nli_lib": (10_796, 54), "nli_tools": (2_978, 13), "tests": (17_864, 116)}  # lines of code, files
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def lines_of_code(source):
    """The lines that hold code: a string over several lines counts as so many, a docstring as none."""
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            docstrings |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    held = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            held |= set(range(token.start[0], token.end[0] + 1))
    return len(held - docstrings)


@pytest.mark.parametrize("folder", MOST)
def test_it_does_not_grow(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    found = sum(lines_of_code(path.read_text(encoding="utf-8")) for path in files), len(files)
    assert found[0] <= MOST[folder][0] and found[1] <= MOST[folder][1], f"{folder}: {found}, lines of code and files"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")
def test_no_link_is_tracked():
    """A link points to a place on one machine; a fresh clone would have it dangling."""
    tracked = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert tracked and not [line for line in tracked.splitlines() if line.startswith("120000")]


def test_what_counts():
    held = ["X = (", "    1,", "    2,  # two", ")", "def f():", '    return """a', 'b"""']
    others = ['"""A module."""', "# why", "", '    """Says."""']
    lines = [others[0], others[1], *held[:2], others[2], *held[2:5], others[3], *held[5:], ""]
    assert lines_of_code("\n".join(lines)) == len(held)
