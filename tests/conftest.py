"""A project home of its own for tests of the study's machinery."""

import pytest

from nli_lib import paths


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty project in a temporary folder: results, runs, notebooks and book, for child processes too."""
    folders = {
        "RUNS": "data/runs",
        "EXPORTS": "data/exports",
        "RESULTS": "data/results",
        "NOTEBOOKS": "notebooks",
        "BOOK": "book",
    }
    monkeypatch.setattr(paths, "HOME", tmp_path)
    for name, folder in folders.items():
        (tmp_path / folder).mkdir(parents=True)
        monkeypatch.setattr(paths, name, tmp_path / folder)
    monkeypatch.setenv("NLI_HOME", str(tmp_path))
    monkeypatch.delenv("NLI_DATA", raising=False)
    return tmp_path
