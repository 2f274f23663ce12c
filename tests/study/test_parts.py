"""Trainings that last. Alone: pytest tests/study/test_parts.py"""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
from tiny import place_home, write_notebook
from tiny_generator import make_language_model
from tiny_words import make_corpus

from nli_lib import paths
from nli_lib.store import RunSpec, StoreError
from nli_lib.study import parts, runner
from nli_lib.study.parts import (
    Generator,
    MissingPartsError,
    Part,
    debiasing,
    decided,
    file_of,
    gather,
    ordinary,
    progress,
    read,
    written,
)
from nli_lib.study.runner import Request

CHAPTER = "22_try"


@pytest.fixture(autouse=True)
def results(home):
    return home / "data" / "results"


def part(made, seed, *, table=None, **more):
    """A part that says in `made` when it is made."""

    def make():
        made.append(seed)
        return pd.DataFrame({"x": [0.1 * seed, np.nan], "text": ["a", None]}) if table is None else table

    return Part(CHAPTER, {"recipe": {"seed": seed, **more}}, make)


def three(made):
    return {f"longer, training {seed}": part(made, seed) for seed in range(3)}


def in_a_child(action):
    """Run `action` in a forked process; the signal that ended it, 0 for none."""
    if (pid := os.fork()) == 0:
        action()
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def test_a_part_is_made_once_and_both_ways_give_the_same_bits():
    made = []
    first = gather(three(made), "smoke")
    again = gather(three(made), "smoke")
    assert made == [0, 1, 2]
    for name, table in first.items():
        pd.testing.assert_frame_equal(table, again[name], check_exact=True)
        assert table.attrs == again[name].attrs and table.attrs["seconds"] >= 0
    assert first["longer, training 2"].attrs["decides"] == {"recipe": {"seed": 2}}


def test_killed_in_the_middle_nothing_half_written_is_taken(monkeypatch):
    def killed_when_it_is_put_in_place():
        real, places = Path.replace, []
        Path.replace = lambda path, to: (
            places.append(to) or (os.kill(os.getpid(), signal.SIGKILL) if len(places) == 2 else real(path, to))
        )
        gather(three([]), "smoke")

    assert in_a_child(killed_when_it_is_put_in_place) == signal.SIGKILL
    made = []
    assert len(gather(three(made), "smoke")) == 3
    assert made == [1, 2]  # the first was whole


def test_a_full_disk_is_one_sentence_and_loses_nothing(monkeypatch):
    made, real = [], Path.write_bytes

    def full(path, data):
        real(path, data[:10])
        if len(made) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(StoreError, match=r"longer-training-1-\w{8}.parquet cannot be written \(No space left"):
            gather(three(made), "smoke")
    assert len(gather(three(made), "smoke")) == 3
    assert made == [0, 1, 1, 2]


def test_two_processes_share_the_parts_and_wait_for_the_last(monkeypatch, capsys):
    hold, release = os.pipe(), os.pipe()
    made = []

    def held():
        os.write(hold[1], b"x")
        os.read(release[0], 1)
        return pd.DataFrame({"x": [7.0]})

    wanted = three(made)
    name = "longer, training 0"
    if (child := os.fork()) == 0:
        gather({name: wanted[name]._replace(make=held)}, "smoke")
        os._exit(0)
    os.read(hold[0], 1)  # the child makes the first part

    def said(*words, **options):
        if "waiting" in words[0]:
            assert made == [1, 2]  # all that nobody else makes comes first
            os.write(release[1], b"x")

    with pytest.raises(MissingPartsError, match="1 of 3 parts are missing, longer, training 0"):
        gather(wanted, "smoke", parts.TRAIN)  # which leaves it to the other process
    monkeypatch.setattr(parts, "print", said, raising=False)
    assert gather(wanted, "smoke")[name]["x"].tolist() == [7.0]
    assert os.waitpid(child, 0)[1] == 0 and made == [1, 2]


def test_a_part_of_another_recipe_is_named_and_left_aside(capsys):
    made = []
    gather({"longer, training 1": part(made, 1)}, "smoke")
    gather({"longer, training 1": part(made, 1, epochs=9), "longer, training 10": part(made, 10)}, "smoke")
    assert made == [1, 1, 10]
    said = [line for line in capsys.readouterr().out.splitlines() if "left aside" in line]
    assert len(said) == 1 and "longer-training-1-" in said[0]
    gather({"longer, training 1": part(made, 1)}, "smoke")  # the first is still there
    assert len(made) == 3


@pytest.mark.parametrize("harm", ["cut", "a bit", "renamed"])
def test_a_damaged_part_is_named_with_its_cure(harm):
    made = []
    wanted = {"longer, training 0": part(made, 0, table=pd.DataFrame({"x": np.arange(5000) ** 2}))}
    gather(wanted, "smoke")
    path = file_of("longer, training 0", wanted["longer, training 0"], "smoke")
    data = bytearray(path.read_bytes())
    if harm == "cut":
        path.write_bytes(data[:100])
    elif harm == "a bit":
        data[200] ^= 1
        path.write_bytes(data)
    else:
        wanted = {"longer, training 0": part(made, 5)}
        path.rename(file_of("longer, training 0", wanted["longer, training 0"], "smoke"))
    with pytest.raises(StoreError, match=r"longer-training-0-\w{8}.parquet .*delete it, and it is made again"):
        gather(wanted, "smoke")
    assert made == [0]  # nothing is trained behind the user's back


def test_a_large_part_is_cut_into_files(monkeypatch):
    monkeypatch.setattr(parts, "MOST_BYTES", 20_000)
    table = pd.DataFrame({"x": np.random.default_rng(0).random(8_000)})
    wanted = {"margins": part([], 0, table=table)}
    made = gather(wanted, "smoke")["margins"]
    assert made["x"].equals(table["x"]) and gather(wanted, "smoke")["margins"].equals(made)
    path = file_of("margins", wanted["margins"], "smoke")
    pieces = parts.files_in(path)
    assert len(pieces) == 4 and max(piece.stat().st_size for piece in pieces) <= 20_000
    for lost in (pieces[1], pieces[3]):
        with pytest.raises(StoreError, match="is not what its name says"):
            lost.rename(path.with_name("aside"))
            read(path, wanted["margins"].decides)
        path.with_name("aside").rename(lost)


def test_what_decides_is_content(tmp_path):
    corpus, settings = make_corpus(12), {"model": "minilm", "seed": 1}
    first = decided(RunSpec(corpus="tiny", **settings), corpus)
    assert first == decided(RunSpec(corpus="renamed", split="test", limit=12, **settings), corpus)
    others = [
        decided(RunSpec(corpus="tiny", **settings, epochs=9), corpus),
        decided(RunSpec(corpus="tiny", **settings), corpus[::-1]),
        decided(RunSpec(corpus="tiny", **settings), corpus, tested="a digest"),
        decided(RunSpec(corpus="tiny", **settings), corpus, first),
    ]
    assert all(other != first for other in others)
    assert others[3]["recipe"]["model"] == first  # in place of the id of a run


MEASURE = """
import pandas as pd
from nli_lib.study.parts import Part
def make(seed):
    print(f"training {seed} is made")
    return pd.DataFrame({"x": [seed]})
wanted = {f"longer, training {seed}": Part("22_try", {"seed": seed}, lambda seed=seed: make(seed),
                                           lambda seed=seed: seed > 0) for seed in range(3)}
tables = study.parts(wanted)
study.save(pd.concat(tables.values()), "scores")
"""


def test_parts_alone_are_made_without_table_or_record(home, capsys):
    path = write_notebook(paths.NOTEBOOKS, CHAPTER, MEASURE, "1 / 0")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[2].metadata["tags"], notebook.cells[3].metadata["tags"] = ["begin"], ["measure", "parts"]
    nbformat.write(notebook, path)
    assert progress(CHAPTER, "smoke") == ""
    assert not runner.make_parts([], Request(), parts.TAKE)
    said = capsys.readouterr().out
    assert "training 1 is made" in said and "training 2 is made" in said and "training 0 is made" not in said
    assert "22_try: 2 of 3 parts are there; the others cost some 0.0 h, as on " in said
    path = file_of("longer, training 9", Part(CHAPTER, {"seed": 9}, None), "smoke")
    wanted = json.loads((path.parent / parts.WANTED).read_text())
    (path.parent / parts.WANTED).write_text(json.dumps({**wanted, "debiased, training 9": path.name}))
    assert progress(CHAPTER, "smoke").endswith(", besides 1 of a kind that was not timed yet")
    assert runner.make_parts([], Request())
    assert capsys.readouterr().out.count("is made") == 1
    assert [file.name for file in (home / "data" / "results" / "smoke").iterdir()] == ["22_try.parts"]
    assert progress(CHAPTER, "smoke") == "3 of 3 parts are there"


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setenv(parts.ONLY, "")


def generators(tmp_path, corpus):
    settings = {"corpus": "tiny", "batch_size": 4, "learning_rate": 1e-2, "max_length": 48, "precision": "fp32"}
    model, learnt = str(tmp_path / "model"), ordinary(0.0)
    if not (tmp_path / "model").exists():
        make_language_model(model)
    spec = RunSpec(**settings, model=model, epochs=6, objective=learnt.name, record="last", seed=3)
    first = Generator("plain, training 3", CHAPTER, spec, corpus, learnt)
    keep = np.arange(len(corpus)) > 2
    words = [sum(len(text.split()) for text in texts) for texts in (corpus.premise, corpus.hypothesis)]
    mask = [np.zeros(count, bool) for count in (*words, len(corpus))]
    debias = debiasing(keep, mask, 0.0)
    start = {"model": f"run:{spec.id}", "epochs": 1, "objective": debias.name}
    second = Generator("kept only, training 3", CHAPTER, spec.model_copy(update=start), corpus, debias, first)
    return {"plain": first, "kept only": second}


class Asking(SimpleNamespace):
    dial = SimpleNamespace(generator=SimpleNamespace(samples=40, at_once=20))

    def parts(self, wanted):
        return gather(wanted, "smoke", self.only)


def test_generators_move_to_another_machine_and_nothing_is_trained(tmp_path, monkeypatch):
    corpus = make_corpus(16)
    found = written(Asking(only=None), generators(tmp_path, corpus))
    assert found["plain"].logits.shape == (1, 16, 3) and len(found["plain"].log) == 6
    (tmp_path / "there").mkdir()
    here, there = paths.RESULTS, tmp_path / "there"
    place_home(there, monkeypatch)
    shutil.copytree(here, paths.RESULTS, dirs_exist_ok=True)
    moved = written(Asking(only=None), generators(tmp_path, corpus))
    for name, each in found.items():
        pd.testing.assert_frame_equal(each.samples, moved[name].samples, check_exact=True)
        pd.testing.assert_frame_equal(each.log, moved[name].log, check_exact=True)
        assert np.array_equal(each.logits, moved[name].logits)
    assert not list(paths.RUNS.iterdir())


def test_finished_runs_are_taken_over_without_training(tmp_path, monkeypatch, capsys):
    corpus = make_corpus(16)
    first = generators(tmp_path, corpus)["plain"]
    run = first.trained()
    with pytest.raises(MissingPartsError, match="3 of 4 parts are missing, plain, training 3, samples"):
        written(Asking(only=parts.TAKE), generators(tmp_path, corpus))  # nothing was sampled yet
    draws = {name: each.make() for name, each in first.parts(40, 20).items()}
    with pytest.raises(MissingPartsError, match="2 of 4 parts are missing, kept only"):
        written(Asking(only=parts.TAKE), generators(tmp_path, corpus))
    assert [path.name for path in paths.RUNS.iterdir() if path.is_dir()] == [run.folder.name]
    taken = written(Asking(only=None), {"plain": first})["plain"]
    assert np.array_equal(taken.logits, run.logits) and len(draws) == 2
    assert "trained first" not in capsys.readouterr().out
    shutil.rmtree(run.folder)
    written(Asking(only=None), generators(tmp_path, corpus))
    assert "kept only, training 3: the generator that it starts from is not on this machine" in capsys.readouterr().out


@pytest.mark.notebooks
@pytest.mark.slow
def test_chapter_22_comes_out_equal_from_its_parts_alone(tmp_path):
    """In a fresh home, whose store of runs stays empty."""
    tables = []
    for home in (tmp_path / "here", tmp_path / "there"):
        home.mkdir()
        for name in ("notebooks", "book"):
            (home / name).symlink_to(Path(__file__).resolve().parents[2] / name)
        if tables:
            folder = Path("data", "results", "smoke", "22_generator.parts")
            shutil.copytree(tmp_path / "here" / folder, home / folder)
        given = {**os.environ, "NLI_HOME": str(home)}
        done = subprocess.run([sys.executable, "-m", "nli_lib", "run", "22"], env=given, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        found = sorted((home / "data" / "results" / "smoke").glob("22_generator.*.csv"))
        tables.append({path.name: path.read_bytes() for path in found})
    assert len(tables[0]) > 8 and tables[0] == tables[1]
    assert not list((tmp_path / "there" / "data" / "runs").glob("*/spec.json"))
    record = json.loads((tmp_path / "there" / "data" / "results" / "smoke" / "22_generator.json").read_text())
    assert sum(".parts/" in name for name in record["inputs"]) >= 6
