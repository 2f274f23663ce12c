"""How a notebook's end is told: finished, failed, killed, stopped. Run alone: pytest tests/study/test_schedule.py"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock
from nbformat.v4 import new_code_cell, new_markdown_cell
from tiny import SAVE, SHOW, run_cells, wait_until, write_notebook

from nli_lib import paths
from nli_lib.errors import StudyError
from nli_lib.store import now
from nli_lib.study import runner, standing
from nli_lib.study.runner import Request

ROOT = Path(__file__).parents[2]


def states(outcomes):
    return {outcome.notebook: outcome.state for outcome in outcomes}


def state_of(name):
    return standing.end_state(standing.read(name, "smoke"))[0]


@pytest.fixture
def temporary(monkeypatch):
    """A folder for temporary files of its own, its name short enough for a socket's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)  # where it is remembered
        yield Path(folder)


@pytest.mark.slow
def test_every_end_is_told_apart_in_parallel(home, temporary, monkeypatch):
    """Five notebooks, four at a time: none clashes with another, none is called finished that is not, and one that
    reads another's table waits for it."""

    def few(workers, *given, make=runner._Workers.__init__):
        """The server without torch, its slowest import, which no notebook here needs."""
        make(workers, *given)
        workers.command[-1] = workers.command[-1].replace("import serve", "import WARM, serve; del WARM[2:5], WARM[3:]")

    monkeypatch.setattr(runner._Workers, "__init__", few)
    kill, reads = "os.kill(os.getpid(), 9)", 'study.table("scores", "1_fine")'
    (home / "notebooks" / "order.yaml").write_text("1_fine: []\n2_error: [1_fine]\n")
    ends = {
        "1_fine": ((SAVE, SHOW), "finished", ""),
        "2_error": ((SAVE, f"{reads}\n1 / 0", SHOW), "failed", f"4 of 6: {reads}\nZeroDivisionError: division by zero"),
        "3_killed": (("import os", kill, SAVE), "killed", f"by signal 9 (Killed), in code cell 4 of 6: {kill}"),
        "4_exit": (("import os\nos._exit(3)",), "killed", "exited with code 3"),
        "5_unfinished": ((), "incomplete", "study.finish() did not"),
    }
    for name, (cells, *_) in ends.items():
        write_notebook(home / "notebooks", name, *cells, finish=bool(cells))
    assert states(runner.run([], Request(), jobs=4)) == {name: state for name, (_, state, _) in ends.items()}
    assert all(reason in standing.read(name, "smoke")["reason"] for name, (*_, reason) in ends.items())
    assert not list(temporary.rglob("kernel-*"))


def test_what_stands_is_skipped_and_what_does_not_says_why(home, capsys):
    folder = home / "notebooks"
    run_cells(write_notebook(folder, "1_first", SAVE))
    run_cells(write_notebook(folder, "2_second", SAVE, '#| measure\nstudy.table("scores", notebook="1_first")'))
    assert not any(outcome.ran for outcome in runner.run([], Request()))
    assert "1_first: finished, still valid" in capsys.readouterr().out
    assert runner.stale("1_first", Request(seeds=1)) == ["SEEDS: None then, 1 now"]
    assert runner.stale("1_first", Request(corpus="planted")) == []  # the scale's own, by its name
    write_notebook(folder, "1_first", SAVE, "#| measure\nmore = 1")
    assert runner.stale("1_first", Request()) == ["the code of its measuring cells changed"]
    record = standing.read("2_second", "smoke")
    standing.write({**record, "definitions": {**record["definitions"], "atomic": "other"}})
    assert "atomic is missing" in runner.stale("2_second", Request())


@pytest.fixture
def process(home):
    """A runner whose notebook has begun to sleep."""
    write_notebook(home / "notebooks", "1_slow", "import time\nprint('here')\ntime.sleep(120)")
    process = subprocess.Popen([sys.executable, "-m", "nli_lib", "run"], stdout=subprocess.PIPE, text=True)
    output = home / "data" / "runs" / "notebooks" / "smoke" / "1_slow.log"
    wait_until(lambda: output.is_file() and "here" in output.read_text(), 90)
    return process


@pytest.mark.slow
def test_sigterm_to_the_runner_is_recorded(process):
    assert state_of("1_slow") == "running"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM and "the same command continues" in process.stdout.read()
    assert state_of("1_slow") == "stopped"


@pytest.mark.skipif(sys.platform != "linux", reason="a runner's death takes its notebooks along on Linux only")
@pytest.mark.slow
def test_a_killed_runner_leaves_no_finished_record(process):
    process.kill()
    process.wait()
    wait_until(lambda: state_of("1_slow") in ("stopped", "interrupted"))


@pytest.mark.slow
def test_a_killed_server_of_processes_is_replaced(home):
    """The process from which notebooks' are forked: of the first notebook it is the kernel's parent's parent."""
    kill = "os.kill(int(open(f'/proc/{os.getppid()}/stat').read().split()[3]), 9)\nimport time\ntime.sleep(60)"
    for name, *cells in (("1_kills", "import os", kill), ("2_fine", SAVE)):
        write_notebook(home / "notebooks", name, *cells)
    killed, fine = runner.run([], Request())
    assert (killed.state, fine.state) == ("killed", "finished") and "ended with code None" in killed.reason


def test_a_notebook_that_runs_in_jupyterlab_is_busy(home):
    write_notebook(home / "notebooks", "1_open", SAVE)
    standing.write({"notebook": "1_open", "study": "smoke", "state": "running", "pid": os.getpid(), "started": now()})
    (busy,) = runner.run([], Request())
    assert (busy.state, busy.ran) == ("busy", False)


def test_a_killed_process_that_keeps_its_number_runs_nothing(home):
    """A parent that does not ask how its processes ended, such as the first one of many containers, keeps them."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert standing.end_state({"state": "running", "pid": process.pid, "started": now()})[0] == "interrupted"
    process.wait()


def test_a_second_runner_waits_and_finds_the_notebook_done(home, monkeypatch):
    write_notebook(home / "notebooks", "1_fine", SAVE)
    first = FileLock(paths.RUNS / "notebooks" / "smoke" / ".1_fine.lock", thread_local=False)
    Path(first.lock_file).parent.mkdir(parents=True)
    first.acquire()
    reasons, said = iter([["never run"], []]), []
    monkeypatch.setattr(runner, "stale", lambda *_: next(reasons))
    # the first one ends when the second says that it waits
    monkeypatch.setattr(runner, "print", lambda text, **_: said.append(text) or first.release(), raising=False)
    (outcome,) = runner.run([], Request())
    assert (outcome.state, outcome.ran) == ("finished", False)
    assert said == ["1_fine: another process is running it; waiting", "1_fine: finished, still valid"]


def test_memory_and_kill_are_told_apart():
    given = (-9, 4, 5), (-9, None, None), (None, 4, 5)
    assert [runner.verdict_on_death(*each)[0] for each in given] == ["out of memory", "killed", "killed"]
    assert runner.verdict_on_death(-9, 4, 4) == ("killed", "the kernel was killed by signal 9 (Killed)")
    assert runner.verdict_on_death(-11, 4, 5) == ("killed", "the kernel was killed by signal 11 (Segmentation fault)")


def test_the_kernels_death_by_memory_is_told(home, monkeypatch):
    """The whole worker in this process, with a counter that rises as it does when memory runs out."""
    write_notebook(home / "notebooks", "1_big", "import os, signal", "os.kill(os.getpid(), signal.SIGKILL)")
    counts = iter([4, 5])
    monkeypatch.setattr(runner, "oom_kills", lambda: next(counts))
    runner.executed("1_big", "smoke").parent.mkdir(parents=True)
    assert runner.run_job("1_big", "smoke", {}, "t")[0] == "out of memory"


def test_unknown_and_wrong_parameters_stop_before_anything_starts(home):
    write_notebook(home / "notebooks", "1_fine", SAVE)
    for names, request, told in (
        ([], Request(others={"SEDS": 2}), "1_fine has no parameter SEDS; it has only the usual ones"),
        ([], Request(scale="smal"), 'did you mean "small"'),
        ([], Request(others={"CORPUS": "small"}), "-p CORPUS: use --corpus"),
        ([], Request(others={"DATA_DIR": "small"}), "-p DATA_DIR: use --data-dir"),
        (["9"], Request(), "no notebook '9'.*there are: 1_fine"),
    ):
        with pytest.raises((StudyError, StudyError), match=told):
            runner.run(names, request)
    assert standing.read("1_fine", "smoke")["state"] == "never run"


@pytest.mark.slow
def test_plain_papermill_is_as_strict(home):
    papermill = pytest.importorskip("papermill")
    given = write_notebook(home / "notebooks", "1_fine", SAVE), home / "executed.ipynb"
    told = ["SCALE: Input should be 'lab', 'smoke', 'small' or 'full', got \"smal\""]
    told += ['SEEDS: Input should be a valid integer, got "two"', 'SEDS: no such parameter; did you mean "SEEDS"?']
    with pytest.raises(papermill.PapermillExecutionError) as failed:
        papermill.execute_notebook(*given, {"SCALE": "smal", "SEEDS": "two", "SEDS": 2}, progress_bar=False)
    assert [each for each in told if each not in str(failed.value)] == []
    papermill.execute_notebook(*given, {"SCALE": "smoke"}, progress_bar=False)
    assert state_of("1_fine") == "finished"


def test_a_full_disk_is_one_error(home, monkeypatch):
    async def full(name, request, threads):
        raise OSError(28, "No space left on device", name)

    for name in ("1_fine", "2_fine"):
        write_notebook(home / "notebooks", name, SAVE)
    monkeypatch.setattr(runner, "_run_or_skip", full)
    with pytest.raises(OSError, match="No space left on device"):
        runner.run([], Request(), jobs=2)


def test_order_is_declared_once(home, monkeypatch):
    folder = home / "notebooks"
    with monkeypatch.context() as patch, pytest.raises(StudyError, match="no folder notebooks: unset NLI_HOME"):
        patch.setattr(paths, "NOTEBOOKS", home / "elsewhere")
        runner.order()
    for name in ("a", "b", "z"):
        write_notebook(folder, name)
    (folder / "order.yaml").write_text("z: all\na: []\nabsent: []\n")
    assert runner.order() == {"z": ["a", "b"], "a": [], "b": []}
    wrong = dict.fromkeys(("a: [", "- a", "a: 3"), "is not a valid order of notebooks")
    wrong |= {"a: [nowhere]": "nowhere", "a: [b]\nb: [a]": "notebooks wait for each other: (a, b, a|b, a, b)"}
    for text, told in wrong.items():
        (folder / "order.yaml").write_text(text)
        with pytest.raises(StudyError, match=f"order.yaml.*{told}"):
            runner.order()


@pytest.mark.parametrize("cell", ["SCALE, SEEDS = 1, None", "SCALE = str('smoke')", "SCALE: str = 'smoke'", "!ls"])
def test_parameters_that_cannot_be_read_are_one_message(home, cell):
    write_notebook(home / "notebooks", "10_a", parameters=cell)
    with pytest.raises(StudyError, match="10_a: the cell tagged `parameters` sets one parameter per line"):
        runner.declared_parameters("10_a")


def test_snakemake_is_told_when_a_notebook_has_to_run_and_nothing_is_deleted(home):
    write_notebook(home / "notebooks", "1_fine", SAVE)

    def told():
        path = Path(runner.write_reasons("1_fine", Request()))
        return json.loads(path.read_text()), path.stat().st_mtime_ns

    first = told()
    assert first[0] == [None, "never run"] and told() == first
    record = {"notebook": "1_fine", "study": "smoke", "state": "failed", "token": "t", "parameters": {"SCALE": "smoke"}}
    standing.write(record)
    then = told()
    assert then[0] == ["t", "failed"]
    standing.write({**record, "state": "finished", **standing.code_of(home / "notebooks" / "1_fine.ipynb")})
    assert told() == then  # it stands: the file stays older than the run


@pytest.mark.slow
def test_snakemake_hands_a_corpus_on_as_it_is_called(home):
    pytest.importorskip("snakemake", reason="pip install -e '.[lab]'")
    write_notebook(home / "notebooks", "1_fine", SAVE)
    shutil.copy(ROOT / "notebooks" / "61_equal_budgets.ipynb", home / "notebooks")
    corpus = home / 'Prüf\'ung {1} "b" $(touch x);touch x.csv'
    corpus.write_text("premise,hypothesis,label\n")
    asked = [sys.executable, "-m", "snakemake", "-s", ROOT / "Snakefile", "-d", home, "-n", "-p", "--config"]
    done = subprocess.run([*asked, f"corpus={corpus}"], cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    python = shlex.quote(sys.executable)
    commands = [shlex.split(line[line.index(python) :]) for line in done.stdout.splitlines() if python in line]
    assert {words[2] for words in commands} == {"nli_lib", "nli_lib.study.budgets"}
    assert {tuple(words[-2:]) for words in commands} == {("--corpus", str(corpus))}


def test_progress_names_the_section(capsys):
    cells = [new_markdown_cell("# Title\n\n## Measure, then draw"), *map(new_code_cell, ("import numpy", "x = 1"))]
    progress = runner._Progress(cells)
    for number, each in enumerate(cells):
        progress(each, number)
    said = [f"Measure, then draw (cell {at} of 2, {done}% done)" for at, done in ((1, 0), (2, 50))]
    assert capsys.readouterr().out.splitlines() == said


HOLDER = """
from nli_lib.study.runner import socket_folder
with socket_folder() as folder:
    print(folder, flush=True)
    input()
"""


def test_socket_folders_of_killed_processes_are_removed_and_nothing_else(temporary):
    words = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    killed, alive = (subprocess.Popen([sys.executable, "-c", HOLDER], **words) for _ in range(2))
    left, held = (Path(each.stdout.readline().strip()) for each in (killed, alive))
    killed.kill()
    killed.wait()
    own = left.parent
    assert (own.parent, own.stat().st_mode & 0o777) == (temporary, 0o700)
    foreign = [temporary / "nli-2024-project" / "corpus.txt", own / "1234-mine" / "corpus.txt"]
    for file in foreign:
        file.parent.mkdir()
        file.write_text("Somebody's own.")
    (own / "elsewhere").symlink_to(foreign[0].parent)
    with runner.socket_folder() as used, runner.socket_folder() as other:
        assert {Path(used).parent, Path(other).parent} == {own} and used != other
        assert not left.exists() and held.is_dir() and all(file.is_file() for file in foreign)
    alive.communicate("")
    assert not Path(used).exists() and not held.exists() and (own / "elsewhere").is_symlink()


@pytest.mark.parametrize("planted", ["symlink", "file", "open to others", "another user's"])
def test_sockets_never_go_into_what_is_not_ours(temporary, monkeypatch, planted):
    user = os.getuid() + (planted == "another user's")
    monkeypatch.setattr(os, "getuid", lambda: user)
    place = temporary / f"nli-study-{user}"
    if planted == "file":
        place.touch()
    elif planted == "symlink":
        place.symlink_to(temporary / "elsewhere")
        (temporary / "elsewhere").mkdir(mode=0o700)
    else:
        place.mkdir()
        place.chmod(0o770 if planted == "open to others" else 0o700)
    before = sorted(temporary.rglob("*"))
    with pytest.raises(StudyError, match=f"{place.name} is not a private folder of yours"), runner.socket_folder():
        pass
    assert sorted(temporary.rglob("*")) == before


def test_a_sockets_path_stays_short_whatever_tmpdir_says(temporary, monkeypatch):
    long = temporary / ("long" * 20)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with runner.socket_folder() as folder:
        assert len(f"{folder}/kernel-5") <= 103
    assert not list(long.iterdir())


def test_the_command_that_is_told_runs_as_it_is_told():
    asked = Request("small", "my data/mine.csv", data_dir="/my corpora", columns={"label": "gold label"})
    given = ["--corpus", "my data/mine.csv", "--data-dir", "/my corpora", "--columns", "label=gold label"]
    words = ["nli-study", "run", "10_data_map", "--scale", "small", *given]
    assert shlex.split(asked.command("10_data_map")) == words


def test_a_turned_knob_runs_beside_what_stands(home, monkeypatch):
    source = 'study = begin("10_scores", globals(), knobs={"DEPTH": "epochs"})'
    monkeypatch.setattr(standing, "cells", lambda _: [{"cell_type": "code", "tags": {"begin"}, "source": source}])
    asked = {"DEPTH": 2}, {"DEPTH": None, "OTHER": 1}, {}
    studies = [runner.study_of("10_scores", Request(others=others)) for others in asked]
    assert studies == ["smoke+depth=2", "smoke", "smoke"]
