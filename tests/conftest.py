"""A project home of its own for tests of the study's machinery."""

import pytest

from nli_lib import paths

FOLDERS = {
    "RUNS": "data/runs",
    "EXPORTS": "data/exports",
    "RESULTS": "data/results",
    "NOTEBOOKS": "notebooks",
    "BOOK": "book",
}


def place_home(folder, monkeypatch):
    """Make `folder` an empty project and the project's home, for child processes too."""
    monkeypatch.setattr(paths, "HOME", folder)
    for name, place in FOLDERS.items():
        (folder / place).mkdir(parents=True)
        monkeypatch.setattr(paths, name, folder / place)
    monkeypatch.setenv("NLI_HOME", str(folder))
    monkeypatch.delenv("NLI_DATA", raising=False)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty project in a temporary folder: results, runs, notebooks and book, for child processes too."""
    place_home(tmp_path, monkeypatch)
    return tmp_path
