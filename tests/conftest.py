"""A project home of its own for tests of the study's machinery."""

import gc
import itertools
import os

import hypothesis
import pytest
from tiny import place_home

# a busy machine is no reason to fail
hypothesis.settings.register_profile("study", deadline=None)
hypothesis.settings.load_profile("study")


gc.disable()  # until all libraries are imported, which takes a quarter less then


def pytest_collection_finish():
    gc.enable()
    gc.freeze()  # nor does a worker take apart at its end what was imported


def pytest_collection_modifyitems(items):
    """The slow tests first, so that all workers end together; those that read real data where there are any.

    Each worker begins with a share of them: whole modules, whose fixtures are made once."""
    shares = [[] for _ in range(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1)))]
    slow = [item for item in items if item.get_closest_marker("slow")]
    for _, group in itertools.groupby(slow, key=lambda item: item.path):
        min(shares, key=len).extend(group)
    quick = [item for item in items if not item.get_closest_marker("slow")]
    for share in shares[:-1]:  # xdist gives each worker as many
        count = max(0, len(items) // len(shares) - len(share))
        share += quick[:count]
        del quick[:count]
    items[:] = [*itertools.chain(*shares), *quick]
    for item in items if not os.environ.get("NLI_DATA") else ():
        if item.get_closest_marker("realdata"):
            item.add_marker(pytest.mark.skip(reason="NLI_DATA is not set: the real corpora are not read"))


@pytest.fixture(autouse=True, scope="module")
def frozen():
    """What torch and the other libraries have made so far stays, and no collection of garbage looks through it again:
    accelerate and statsmodels ask for a whole one at each training and each correction."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty project in a temporary folder: results, runs, notebooks and book, for child processes too."""
    place_home(tmp_path, monkeypatch)
    return tmp_path
