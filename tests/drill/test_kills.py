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
    faults = [f"{home.name}: ended with {code}: {process.said.read_text()[-1500:]}"] if code else []
    faults += [f"{home.name}: {each}" for each in drilling.difference(drilling.results_of(home), expected.results)]
    row.add(faults, tried=max(kills, 1), lost=lost)


@pytest.mark.drill
@pytest.mark.parametrize(
    ("job", "chains", "at_seams"),
    [
        ("a fit", 8, True),
        ("a fit", 4, False),
        ("a cross-scoring", 5, True),
        ("a cross-scoring", 3, False),
        ("a generator", 5, True),
        ("a generator", 3, False),
        ("parts", 3, True),
        ("parts", 2, False),
        ("a journal", 5, False),
        ("an audit", 2, True),
        ("a comparison", 1, True),
        ("a comparison", 1, False),
    ],
)
def test_killed_it_continues(whole, folder, job, chains, at_seams):
    row = table.row(f"killed {'between two steps' if at_seams else 'at any moment'}: {job}")
    draw = random.Random(f"{SEED} {job} {at_seams}")
    for number in range(chains):
        home = whole.home(f"{job} {at_seams} {number}", job)
        chain(row, whole, home, job, [draw.random() for _ in range(4)], at_seams=at_seams)
    row.check()


@pytest.mark.drill
@pytest.mark.parametrize(("job", "chains"), [("two chapters", 1), ("a book", 1)])
def test_a_notebook_or_book_continues(whole, folder, job, chains):
    row = table.row(f"killed at any moment: {job}")
    draw = random.Random(f"{SEED} {job}")
    for number in range(chains):
        home = whole.home(f"{job} {number}", job)
        chain(row, whole, home, job, [draw.random() for _ in range(3)], at_seams=False)
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
