"""The drill's table, its folder, and that it is run by its own name alone: pytest -m drill tests/drill"""

import os
import shutil
import tempfile
from pathlib import Path

import drilling
import pytest
import table


def pytest_collection_modifyitems(config, items):
    """What takes minutes is left to `make drill`."""
    if "drill" not in config.getoption("markexpr"):
        left = [item for item in items if item.get_closest_marker("drill")]
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=left)


def pytest_terminal_summary(terminalreporter):
    if table.ROWS:
        terminalreporter.section("drill")
        for line in table.lines():
            terminalreporter.write_line(line)


def pytest_sessionfinish(session):
    if any(row.well != row.tried or row.lost for row in table.ROWS):
        session.exitstatus = 1


@pytest.fixture(scope="session")
def folder():
    """A folder for all homes, open to other users, and the models and corpora that they share."""
    folder = Path(tempfile.mkdtemp(prefix="drill-"))
    folder.chmod(0o755)
    here = Path(__file__).parent
    before = dict(os.environ)
    search = [str(here), str(here.parent), str(here.parents[1]), os.environ.get("PYTHONPATH", "")]
    os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, search)), OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    os.environ.pop("NLI_DATA", None)
    os.environ[drilling.SHARED] = str(folder / "shared")
    (folder / "shared" / "said").mkdir(parents=True)
    (folder / "shared" / "said").chmod(0o777)
    try:
        assert drilling.end(drilling.begin("prepare", folder)) == 0
        yield folder
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def whole(folder):
    """job -> (its results, its seconds, the seams that it has) when nothing disturbs it; each is done once."""
    return drilling.Whole(folder)
