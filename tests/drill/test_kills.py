"""Killed at random moments, each time started again. Alone: pytest -m drill tests/drill/test_kills.py"""

import random
import signal

import drilling
import pytest
import table

SEED = 20261


def chain(row, whole, home, job, moments, *, at_seams):
    """Kill a job at each of some moments (shares of its length), then let it end: what became of it."""
    expected = whole(job)
    kills, lost, before = 0, 0, set()
    for share in [*moments, None]:
        seam = max(1, round(share * expected.seams)) if at_seams and share is not None else None
        process = drilling.begin(job, home, seam=seam)
        timed = share is not None and not at_seams
        code = drilling.end(process, *([share * expected.seconds] if timed else []))
        drilling.wait_for_kernels(home)
        now = drilling.finished_of(home)
        lost, before = lost + len(before - now), now
        if code != -signal.SIGKILL:
            break
        where = f"at seam {seam}" if at_seams else f"after {share * expected.seconds:.2f} s"
        print(f"{home.name}: killed {where}, {len(now)} pieces are finished")
        kills += 1
    faults = drilling.faults_of(process) + drilling.difference(drilling.results_of(home), expected.results)
    row.add([f"{home.name}: {each}" for each in faults], tried=max(kills, 1), lost=lost)


TIMES = {  # how often between two steps, and at any moment
    "a fit": (8, 4), "a cross-scoring": (5, 3), "a generator": (5, 3), "parts": (3, 2), "a journal": (0, 5),
    "an audit": (2, 0), "a comparison": (1, 1), "two chapters": (0, 1), "a book": (0, 1),
}  # fmt: skip


@pytest.mark.drill
@pytest.mark.parametrize(
    ("job", "chains", "at_seams"), [(job, n, not at) for job, both in TIMES.items() for at, n in enumerate(both) if n]
)
def test_killed_it_continues(whole, folder, job, chains, at_seams):
    row = table.row(f"killed {'between two steps' if at_seams else 'at any moment'}: {job}")
    draw = random.Random(f"{SEED} {job} {at_seams}")
    for number in range(chains):
        home = whole.home(f"{job} {at_seams} {number}", job)
        moments = 3 if job in ("two chapters", "a book") else 4
        chain(row, whole, home, job, [draw.random() for _ in range(moments)], at_seams=at_seams)
    row.check()


@pytest.mark.slow
def test_a_fit_continues(whole, folder):
    """The small part of the drill that every test run has."""
    row = table.row("killed between two steps: a fit, in short")
    draw = random.Random(SEED)
    for number in range(2):
        home = whole.home(f"short {number}", "a fit")
        chain(row, whole, home, "a fit", [draw.random() for _ in range(3)], at_seams=True)
    row.check()
