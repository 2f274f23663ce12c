"""Two processes at one thing. Alone: pytest -m drill tests/drill/test_two_at_once.py"""

import time

import drilling
import pytest
import table

TWICE = ("a fit", "parts")
ONCE = ("a cross-scoring", "a generator", "a journal", "a comparison", "an audit", "two chapters", "a book")


@pytest.mark.drill
@pytest.mark.parametrize(("job", "times"), [*((job, 2) for job in TWICE), *((job, 1) for job in ONCE)])
def test_two_at_once_both_end_well_and_nothing_is_done_twice(whole, folder, job, times):
    row, expected = table.row(f"two at once: {job}"), whole(job)
    for number in range(times):
        home = whole.home(f"two {job} {number}", job)
        both, lost, before = [drilling.begin(job, home) for _ in range(2)], 0, set()
        until = time.monotonic() + 300
        while any(each.exitcode is None for each in both) and time.monotonic() < until:
            both[0].join(0.05)
            now = drilling.finished_of(home)
            lost, before = lost + len(before - now), now
            if both[0].exitcode is not None:
                both[1].join(0.05)
        for at, each in enumerate(both):
            if drilling.end(each, 1) == 2 and "is being written by another process: wait" in each.said.read_text():
                both[at] = drilling.begin(job, home)  # a journal does not wait, and says so
        faults = [fault for each in both for fault in drilling.faults_of(each)]
        faults += drilling.difference(drilling.results_of(home), expected.results)
        row.add([f"{home.name}: {each}" for each in faults], lost=lost)
    row.check()
