"""Homes of any name, closed ones, and no HOME or TMPDIR. Alone: pytest -m drill tests/drill/test_homes.py"""

import os
import subprocess
import sys
from pathlib import Path

import drilling
import pytest
import table

NOBODY = 54321  # a user without a name or a home
STRANGE = "-x ä 'one' \"two\" $HOME ;false [b] %20 #1 *"
NAMES = ["with blank", "größe-été-日本", 'it\'s "quoted"', "-dash", STRANGE, "/".join(["long" * 50] * 8)]


def tell(row, home, job, expected, **how):
    faults = drilling.faults_of(drilling.begin(job, home, **how))
    faults += drilling.difference(drilling.results_of(home), expected)
    row.add([f"{job} in {home}: {each}" for each in faults])


@pytest.mark.drill
@pytest.mark.parametrize("name", NAMES, ids=lambda name: name[:20])
def test_a_home_may_have_any_name(whole, folder, name):
    """Named as by a user who stands beside it; of the two worst the chapters and the book as well."""
    row = table.row(f"a home called {name[:50]}")
    jobs = ["a fit", "an audit", "a journal", *(["two chapters", "a book"] if name in NAMES[-2:] else [])]
    for job in jobs:
        home = whole.home(Path(job, name), job)
        tell(row, home, job, whole(job).results, env={"NLI_HOME": name}, cwd=folder / job)
    row.check()


def starts_python(user):
    try:
        return subprocess.run([sys.executable, "-c", ""], user=user, cwd="/").returncode == 0
    except PermissionError:
        return False


def states(home):
    return {str(path): path.stat().st_mtime_ns for path in home.rglob("*")}


@pytest.mark.drill
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("job", ["a fit", "a journal", "an audit", "two chapters", "a book"])
def test_a_home_that_cannot_be_written_is_one_error(whole, folder, job):
    row = table.row(f"read-only home: {job}")
    home = whole.home(f"closed {job}", job)
    before = states(home)
    process = drilling.begin(job, home, user=NOBODY)
    code, said = drilling.end(process), process.said.read_text()
    clear = code in (1, 2) and "ermission denied" in said and "Traceback" not in said
    faults = [] if clear else [f"ended with {code}, and said: {said[-1500:]}"]
    row.add(faults + ["something was written"] * (states(home) != before))
    row.check()


@pytest.mark.drill
@pytest.mark.parametrize("user", [None, NOBODY], ids=["this user", "a user without a name"])
@pytest.mark.parametrize("job", ["a fit", "an audit", "two chapters", "a book"])
def test_without_home_and_temporary_folder(whole, folder, job, user):
    if user is not None and os.getuid() != 0:
        pytest.skip("only root can become another user")
    chapters = job in ("two chapters", "a book")
    if user is not None and chapters and not starts_python(user):
        pytest.skip(f"{sys.executable} lies where another user may not start it")
    row = table.row(f"no HOME, {'as a user without a name, ' if user else ''}TMPDIR unset or with blanks: {job}")
    for number, place in enumerate((None, folder / "a b", Path("/nowhere"))):
        if chapters and number != 1:
            continue
        home = whole.home(f"bare {user} {job} {number}", job)
        (folder / "a b").mkdir(exist_ok=True)
        if user is not None:
            subprocess.run(["chown", "-R", f"{user}:{user}", str(home), str(folder / "a b")], check=True)
        env = {"HOME": None, "TMPDIR": place and str(place)}
        env |= {name: None for name in os.environ if name.startswith("XDG_") or name == "USER"}
        tell(row, home, job, whole(job).results, env=env, user=user)
    row.check()
