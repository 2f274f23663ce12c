"""A project home of its own for tests of the study's machinery."""

import pytest
from tiny import place_home


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty project in a temporary folder: results, runs, notebooks and book, for child processes too."""
    place_home(tmp_path, monkeypatch)
    return tmp_path
