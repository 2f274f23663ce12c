"""Two processes at one thing. Alone: pytest -m drill tests/drill/test_two_at_once.py"""

import time

import drilling
import pytest
import table


@pytest.mark.drill
@pytest.mark.parametrize(
    ("job", "times"),
    [
        ("a fit", 2),
        ("a cross-scoring", 1),
        ("a generator", 1),
        ("parts", 2),
        ("a journal", 2),
        ("a comparison", 1),
        ("an audit", 1),
        ("two chapters", 1),
        ("a book", 1),
    ],
)
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
        codes = [drilling.end(each) for each in both]
        faults = [
            f"{home.name}: ended with {code}: {each.said.read_text()[-1500:]}"
            for code, each in zip(codes, both, strict=True)
            if code
        ]
        faults += [f"{home.name}: {each}" for each in drilling.difference(drilling.results_of(home), expected.results)]
        row.add(faults, lost=lost)
    row.check()
