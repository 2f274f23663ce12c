"""What an installed library brings along. Run alone: pytest tests/study/test_carried.py"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from tiny import without

from nli_lib import paths
from nli_lib.errors import StudyError
from nli_lib.store import write_json
from nli_lib.study import runner
from nli_lib.study.cli import WITHOUT_NOTEBOOKS
from nli_tools.commands import app

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A library that carries one notebook and one page, and an empty home."""
    folder, home = tmp_path / "library" / "carried", tmp_path / "home"
    texts = {"notebooks/10_a.ipynb": "{}", "book/index.md": "# Book", "data/results/small/t.csv": "x"}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(runner, "FOLDER", folder)
    for name, place in (("HOME", home), ("NOTEBOOKS", home / "notebooks"), ("BOOK", home / "book")):
        monkeypatch.setattr(paths, name, place)
    return home


def test_an_empty_home_is_filled_once(installed, capsys):
    runner.unpack()
    files = {path.relative_to(installed).as_posix() for path in installed.rglob("*") if path.is_file()}
    stamp = f"notebooks/{runner.STAMP}"
    assert files == {"notebooks/10_a.ipynb", "book/index.md", "data/results/small/t.csv", stamp}
    assert str(installed) in capsys.readouterr().out
    (installed / "notebooks/10_a.ipynb").write_text("changed")
    runner.unpack()
    assert (installed / "notebooks/10_a.ipynb").read_text() == "changed" and not capsys.readouterr().out


def test_what_was_cut_short_is_finished(installed, monkeypatch):
    def one(*given):
        shutil.copyfile(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(runner, "shutil", SimpleNamespace(copyfile=one))
        runner.unpack()
    assert not (installed / "notebooks/10_a.ipynb").exists()
    runner.unpack()
    assert all((installed / name).is_file() for name in ("notebooks/10_a.ipynb", "book/index.md"))
    assert (installed / "notebooks" / runner.STAMP).read_text() == f"{runner.version()}\n"


def test_another_version_is_refused_and_nothing_is_overwritten(installed):
    runner.unpack()
    stamp = installed / "notebooks" / runner.STAMP
    stamp.write_text("0.0.1\n")
    with pytest.raises(StudyError, match="are those of version 0.0.1"):
        runner.unpack()
    assert stamp.read_text() == "0.0.1\n"


def test_a_clone_is_read_from_an_empty_home_and_written_nowhere_else(installed, monkeypatch, capsys):
    def files():
        return {path: path.read_text() for path in clone.rglob("*") if path.is_file()}

    clone, index = runner.FOLDER, installed / "book/index.md"
    monkeypatch.setattr(runner, "FOLDER", clone / "none")
    monkeypatch.setattr(runner, "CLONE", clone)
    (clone / "book" / "chapters").mkdir()
    (clone / "book" / "chapters" / "10_a.md").write_text("made by a run")
    (clone / "constraints.txt").touch()
    before = files()
    runner.unpack()
    assert runner.order() == {"10_a": []}
    assert str(clone) in capsys.readouterr().out and not (installed / "book" / "chapters").exists()
    write_json(installed / "data/results/small/t.csv", "of this home")
    index.unlink()
    index.symlink_to(clone / "as it was called before")
    runner.unpack()
    assert index.read_text() == "# Book" and not capsys.readouterr().out
    assert "of this home" in (installed / "data/results/small/t.csv").read_text() and files() == before


@pytest.mark.parametrize("carries", [True, False])
@pytest.mark.parametrize("own", ["notebooks", "book"])
def test_a_home_that_somebody_made_is_left_alone(installed, monkeypatch, own, carries):
    if not carries:
        monkeypatch.setattr(runner, "FOLDER", installed / "none")
    (installed / own).mkdir(parents=True)
    runner.unpack()
    assert not list((installed / own).iterdir()) and [path.name for path in installed.iterdir()] == [own]


def test_a_relative_home_is_the_same_in_every_folder(tmp_path):
    said = "import os, nli_lib; print(os.environ['NLI_HOME'])"
    where = {**os.environ, "NLI_HOME": "h", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", said], cwd=tmp_path, env=where, capture_output=True, text=True)
    assert done.stdout.strip() == str(tmp_path / "h"), done.stderr


def test_a_clone_carries_nothing():
    assert not runner.FOLDER.exists()
    assert {"audit", "card"} <= set(WITHOUT_NOTEBOOKS) and app.registered_callback is not None


@pytest.mark.slow
def test_the_wheel_audits_in_an_empty_folder_without_torch(tmp_path):
    """Built from this clone, unpacked elsewhere, with torch and the packages of the extras out of reach."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone: which files belong to it is not known")
    pytest.importorskip("setuptools", minversion="77", reason="a wheel cannot be built")
    source, built, library, here = (tmp_path / name for name in ("source", "built", "library", "here"))
    listed = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, capture_output=True, text=True, check=True).stdout.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    build = "import sys, setuptools.build_meta as backend; backend.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, built], cwd=source, capture_output=True, check=True)
    (wheel,) = map(zipfile.ZipFile, built.glob("*.whl"))
    assert not [name for name in wheel.namelist() if ".data/" in name]  # so that unpacked it is installed
    wheel.extractall(library)
    here.mkdir()
    kinds = [("He", "entailment"), ("Nobody", "neutral")]
    rows = [f"A man {at // 3} walks,{kinds[at % 3 > 0][0]} is {at},{kinds[at % 2][1]}" for at in range(90)]
    (here / "mine.csv").write_text("\n".join(["premise,hypothesis,label", *rows]))
    code = without("torch", "transformers", "datasets", "sentence_transformers", "openai")
    code += f"""from nli_tools.commands import main
assert sys.modules["nli_lib"].__file__.startswith({str(library)!r})
main()"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NLI_")}
    environment |= {"PYTHONPATH": str(library)}

    def call(*words):
        asked = [sys.executable, "-c", code, *words]
        done = subprocess.run(asked, cwd=here, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    call("audit", "mine.csv")
    assert {path.name for path in here.rglob("*") if path.is_file()} == {"mine.csv", "audit.html", "audit.json"}
    said = call("status", "--scale", "small")
    assert "20_z_statistics" in said and "20_z_statistics          never run" not in said
    for name in ("notebooks/20_z_statistics.ipynb", "book/_toc.yml", "data/results/small/20_z_statistics.json"):
        assert (here / name).read_bytes() == (ROOT / name).read_bytes()
