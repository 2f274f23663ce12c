"""Each chapter's verdict follows its tables, in each of its outcomes. Alone: pytest tests/chapters/test_answers.py"""

import functools
import re
from pathlib import Path

import cells
import pytest
import yaml

from nli_lib import paths, stats
from nli_lib.stats import Estimate
from nli_lib.study import book

CASES = yaml.safe_load(Path(__file__).with_name("answers.yaml").read_text(encoding="utf-8"))
CASES = [(name, each) for name, cases in CASES.items() for each in cases]


@functools.cache
def recorded(name, scale="small"):
    """The verdict and the first sentence that a chapter draws from the tables as they were recorded."""
    with pytest.MonkeyPatch.context() as patch:
        return cells.answered(name, None, patch, scale=scale)


@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name[:2]}-{case['verdict']}" for name, case in CASES])
def test_the_verdict_follows_the_tables(name, case, tmp_path, monkeypatch):
    scale, changes = case.get("scale", "small"), case.get("change")
    if not (paths.RESULTS / scale / f"{name}.json").is_file():
        pytest.skip(f"the chapter was not run at scale {scale} here")
    made_up = changes and cells.answered(name, tmp_path, monkeypatch, changes, scale)
    verdict, text = made_up or recorded(name, scale)
    assert verdict == case["verdict"], text


NAMES = sorted(path.stem for path in cells.NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("name", NAMES)
def test_each_of_two_exercises_has_a_solution_that_runs(name, monkeypatch):
    said = "\n".join(cells.code(name, kind="markdown"))
    exercises = said[said.index("## Exercises") : said.index("## Limitations")]
    assert re.findall(r"(?m)^\*\*(\d)\.\*\*", exercises) == ["1", "2"]
    solutions = re.findall(r"<details>.*?```python\n(.*?)```.*?</details>", exercises, re.DOTALL)
    scale = "small" if (paths.RESULTS / "small" / f"{name}.json").is_file() else "smoke"
    for solution in solutions if (paths.RESULTS / scale / f"{name}.json").is_file() else ():
        assert len(solution.splitlines()) <= 8 and cells.solved(name, solution, monkeypatch, scale) is not None
    assert len(solutions) == 2


FOUND = {
    "WANLI": "10_data_map", "Debiased generation": "21_z_filter", "Consensus cleaning": "32_which_labels_are_wrong",
    "DISCO": "42_quality", "Test-set difficulty": "51_levels", "All five": "61_equal_budgets",
}  # fmt: skip


def test_the_readme_says_what_the_chapters_say():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    lines = []
    for about, name in FOUND.items():
        verdict, text = recorded(name)
        text = re.sub(r"\\([^\w\s])", r"\1", text)  # escaped for Markdown
        lines.append(f"- {about}: *{book.question_of(name)}* **{verdict}.** {text} (chapter {name[:2]})")
    wanted = "<!-- found -->\n" + "\n".join(lines) + "\n<!-- /found -->"
    assert wanted in readme, f"README.md needs these lines:\n{wanted}"


@pytest.mark.parametrize(("value", "low", "high", "margin", "said"), [
    (0.3, 0.2, 0.4, 0.2, "Yes"), (0.15, 0.1, 0.2, 0.2, "Barely"), (0.05, -0.05, 0.15, 0.2, "No"),
    (0.1, -0.1, 0.3, 0.2, "Open"), (-0.3, -0.4, -0.2, 0.0, "No"), (0.1, -0.1, 0.3, 0.0, "Open"),
    (0.1, float("nan"), float("nan"), 0.0, "Open")])  # fmt: skip
def test_an_interval_gives_a_verdict(value, low, high, margin, said):
    assert stats.verdict(Estimate(value, low, high, 100), margin=margin) == said


@pytest.mark.parametrize(("parts", "said"), [
    ("Yes Yes", "Yes"), ("No No", "No"), ("Yes No", "Partly"), ("Barely Open", "Partly"),
    ("No Open", "Open")])  # fmt: skip
def test_the_verdicts_of_parts_make_one(parts, said):
    assert stats.together(parts.split()) == said
