"""The library in twenty lines, as README.md shows it, runs on fewer pairs. Run alone: pytest tests/test_readme.py"""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"


def test_each_figure_of_the_readme_is_there():
    figures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert len(figures) == 5 and all((README.parent / figure).is_file() for figure in figures)


@pytest.mark.slow
def test_the_twenty_lines_run(home, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 20 and "limit=2000" in code and "epochs=3" in code
    for much, few in {"limit=2000": "limit=60", "limit=1000": "limit=30", "epochs=3": "epochs=1"}.items():
        code = code.replace(much, few)
    exec(code, {})
    said = set(re.findall(r"^(.*) Estimate\(value=", capsys.readouterr().out, re.MULTILINE))
    assert {"ambiguous", "random twin"} <= said
