"""On a disk that is too small, and then large enough. Alone: pytest -m drill tests/drill/test_full_disk.py"""

import contextlib
import random
import shutil
import subprocess

import drilling
import pytest
import table

from nli_lib.store import RunFolder

SEED = 20262
ENOUGH = 256 * 2**20


def readable(home):
    """What of a home's runs and answers cannot be read."""
    for path in (home / "data").rglob("done.npy"):
        run = RunFolder(path.parent)
        if len(run.log) < run.done.sum():
            return [f"{path}: {run.done.sum()} epochs are done, and {len(run.log)} are logged"]
    drilling.finished_of(home)
    return []


def told(code, said):
    """What is wrong with the end of a job that could not write: none, or one clear message, and no traceback."""
    clear = ("o space left" in said or "too large" in said) and "Traceback" not in said
    return [] if code == 0 or (code in (1, 2) and clear) else [f"ended with {code}, and said: {said[-1500:]}"]


def size_of(home):
    files = [path for path in (home / "data").rglob("*") if path.is_file()]
    return sum(-(-path.stat().st_size // 4096) * 4096 + 4096 for path in files)


@contextlib.contextmanager
def small_disk(home, size):
    """A disk of so many bytes at the home's data, and the function that makes it large."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "drill", str(home / "data")]
    if not shutil.which("mount") or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here: run the drill as root")
    try:
        yield lambda: subprocess.run(["mount", "-o", f"remount,size={ENOUGH}", str(home / "data")], check=True)
    finally:
        subprocess.run(["umount", "-l", str(home / "data")], check=True)


TIMES = {"a fit": 10, "a generator": 5, "parts": 4, "a comparison": 2, "an audit": 3, "a journal": 4, "a chapter": 2}


@pytest.mark.drill
@pytest.mark.parametrize(("job", "times"), TIMES.items())
def test_on_a_full_disk_one_error_and_then_the_same_bytes(whole, folder, job, times):
    row, expected = table.row(f"full disk: {job}"), whole(job)
    draw, size = random.Random(f"{SEED} {job}"), size_of(folder / f"whole {job}")
    for number in range(times):
        home = whole.home(f"full {job} {number}", job)
        room = 4096 * round(size * (number + draw.random()) / times / 4096 + 3)
        with small_disk(home, room) as enlarge:
            process = drilling.begin(job, home)
            code = drilling.end(process)
            drilling.wait_for_kernels(home)
            print(f"{home.name}: a disk of {room:,} bytes, ended with {code}")
            faults = told(code, process.said.read_text()) + readable(home)
            before = drilling.finished_of(home)
            enlarge()
            faults += drilling.faults_of(drilling.begin(job, home))
            faults += drilling.difference(drilling.results_of(home), expected.results)
            row.add([f"{home.name}: {each}" for each in faults], lost=len(before - drilling.finished_of(home)))
    row.check()


@pytest.mark.drill
@pytest.mark.parametrize("job", ["a fit", "a generator", "a journal", "an audit"])
def test_where_files_may_not_grow_it_is_the_same(whole, folder, job):
    row, expected = table.row(f"largest file (ulimit -f): {job}"), whole(job)
    sizes = {path.stat().st_size for path in (folder / f"whole {job}" / "data").rglob("*") if path.is_file()} - {0}
    for number, size in enumerate(sorted(sizes)[-4:]):
        home = whole.home(f"cut {job} {number}", job)
        process = drilling.begin(job, home, largest=size - 1)
        faults = told(drilling.end(process), process.said.read_text()) + readable(home)
        if process.exitcode == 0:
            faults.append(f"a file of {size} bytes could be written in spite of a limit")
        faults += drilling.faults_of(drilling.begin(job, home))
        row.add(faults + drilling.difference(drilling.results_of(home), expected.results))
    row.check()
