"""`nli-study debias`: what runs on a file, and what is refused. Alone: pytest tests/tools/test_debias_command.py"""

from functools import partial

import pytest
from audited import exit_code

from nli_lib import paths
from nli_lib.study import book, runner

LABELS = ("entailment", "neutral", "contradiction")


@pytest.fixture
def asked(home, monkeypatch, tmp_path):
    """Chapters that would run are listed and end well; chapter 24 leaves its datasets."""
    monkeypatch.chdir(tmp_path)
    asked = []

    def fake(names, request, jobs=1):
        asked.append((names[0], request))
        folder = paths.EXPORTS / request.study
        folder.mkdir(parents=True, exist_ok=True)
        if names[0].startswith("24"):
            (folder / "seq-z.jsonl").write_text("{}\n")
        return [runner.Outcome(names[0], "failed" if names[0] in failing else "finished")]

    failing = set()
    monkeypatch.setattr(runner, "run", fake)
    monkeypatch.setattr(book, "build", lambda request: "the book")
    return asked, failing


def write(path, rows):
    path.write_text("premise,hypothesis,label\n" + "".join(f"{row}\n" for row in rows))


call = partial(exit_code, "debias")


def test_one_command_runs_the_four_chapters_and_names_the_datasets(asked, monkeypatch, tmp_path, capsys):
    chapters, _ = asked
    write(
        tmp_path / "mine.csv",
        [f"Person {at} walks,Person {at} moves {label},{label}" for at in range(20) for label in LABELS],
    )
    assert call(monkeypatch, "mine.csv", "--scale", "smoke") == 0
    assert [name[:2] for name, _ in chapters] == ["22", "23", "24", "26"]
    assert all(request.corpus == str((tmp_path / "mine.csv").resolve()) for _, request in chapters)
    said = capsys.readouterr().out
    assert "60 pairs: entailment 20, neutral 20, contradiction 20" in said
    assert "seq-z.jsonl" in said and "the book" in said and "reads a small part of a corpus" in said


def test_a_chapter_that_fails_is_an_exit_code(asked, monkeypatch, tmp_path):
    _, failing = asked
    failing.add("23_debiased_generator")
    write(
        tmp_path / "mine.csv",
        [f"Person {at} walks,It moves {label} {at},{label}" for at in range(20) for label in LABELS],
    )
    assert call(monkeypatch, "mine.csv", "--scale", "smoke") == 1


def test_a_file_that_is_too_small_is_refused_before_anything_runs(asked, monkeypatch, tmp_path, capsys):
    chapters, _ = asked
    write(
        tmp_path / "mine.csv",
        [f"Person {at} walks,It moves {label} {at},{label}" for at in range(3) for label in LABELS],
    )
    assert call(monkeypatch, "mine.csv", "--scale", "smoke") == 2
    assert not chapters and "debiasing" in capsys.readouterr().err
