"""What make and .ci/setup hand on, refuse and remove, in a project of scripts. Run alone: pytest tests/test_make.py"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON = '#!/bin/sh\n[ "$3" = --version ] || printf \'%s\\n\' "$@"\n'  # says what it was asked


@pytest.fixture
def project(tmp_path):
    """Makefile, pins and .ci/setup, and what runs a command there: (output, errors)."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")

    # the tests may be run by make, which hands on what it was called with
    make = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "SCALE", "CORPUS", "SEEDS", "NLI_DATA", "CHAPTERS", "JOBS")
    environment = {name: value for name, value in os.environ.items() if name not in make}

    def call(*words):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=environment)
        return done.stdout, done.stderr

    return tmp_path, call


def environment(folder, *stages):
    """An environment of scripts in which some stages are set up."""
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o700)
    for stage in stages:
        (folder / ".venv" / f".{stage}").touch()


def test_make_hands_a_corpus_on_as_it_is_called(project):
    folder, call = project
    environment(folder, "base", "study")
    corpus, chapters = 'a "b" `touch x`;touch x ü.csv', "30 31;touch x"
    said, errors = call("make", "study", f"CORPUS={corpus}", f"CHAPTERS={chapters}")
    dial = ["--scale", "smoke", "--corpus", corpus]
    run = ["-m", "nli_lib", "run", *chapters.split(), *dial, "--jobs", "2"]
    assert said.splitlines() == [*run, "-m", "nli_lib", "book", *dial], errors
    assert not (folder / "x").exists()


@pytest.mark.parametrize(("stage", "there"), [("study", []), ("test", []), ("test", ["base"]), ("lab", ["base"])])
def test_a_stage_before_its_time_says_which_comes_first(project, stage, there):
    folder, call = project
    if there:
        environment(folder, *there)
    first = "study" if there else "base"
    fault = f"setup: error: stage {stage} comes after stage {first}, which is not there or does not run: "
    assert call(".ci/setup", stage) == ("", f"{fault}call .ci/setup {first} first\n")
    assert not (folder / ".venv" / f".{stage}").exists()


def test_an_environment_of_somebody_elses_stays(project):
    folder, call = project
    (folder / ".venv").mkdir()
    (folder / ".venv" / "mine").touch()
    assert ".venv was not made here" in call(".ci/setup", "base")[1]
    (folder / "data" / "runs").mkdir(parents=True)
    assert "call it in the folder of its Makefile" in call("make", "clean")[1]  # this folder has no library
    assert (folder / "data" / "runs").is_dir()
    (folder / "nli_lib").mkdir()
    (folder / "tests").mkdir()
    (folder / "nli_lib" / "paths.py").touch()
    call("make", "clean")
    assert (folder / ".venv" / "mine").exists() and not (folder / "data" / "runs").exists()
