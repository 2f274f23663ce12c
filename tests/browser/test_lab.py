"""A chapter in JupyterLab, in a real browser. Run alone: pytest tests/browser/test_lab.py"""

import json
import shutil

import pytest
from lab import run_all, serving

from nli_lib import paths

CHAPTER = "20_z_statistics"  # draws a figure that answers the pointer, and trains nothing
LONGEST = 120  # seconds that the chapter may take


@pytest.fixture
def lab(tmp_path):
    """JupyterLab on a copy of the project's notebooks and the project's store of runs; the address of the chapter."""
    shutil.copytree(paths.NOTEBOOKS, tmp_path / "notebooks")
    shutil.copytree(paths.BOOK, tmp_path / "book", ignore=shutil.ignore_patterns("_build", "chapters"))
    (tmp_path / "data").mkdir()
    for store in (paths.RUNS, paths.MODELS):
        store.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / store.name).symlink_to(store)
    with serving(tmp_path, f"notebooks/{CHAPTER}.ipynb") as address:
        yield address


@pytest.mark.slow
@pytest.mark.notebooks
def test_a_chapter_runs_in_jupyterlab(lab, browser, tmp_path):
    """Every cell runs, nothing fails, and the figure that answers the pointer is there."""
    path = tmp_path / "notebooks" / f"{CHAPTER}.ipynb"
    cells = sum(cell["cell_type"] == "code" for cell in json.loads(path.read_text())["cells"])
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    run_all(page, lab)
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    for _ in range(5 * LONGEST):
        done = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code" and c["execution_count"]]
        failed = [output for cell in done for output in cell["outputs"] if output["output_type"] == "error"]
        assert not failed, failed[0]["evalue"]
        if len(done) == cells:
            break
        page.wait_for_timeout(200)
        page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    assert len(done) == cells
    place = page.locator(".jp-OutputArea .js-plotly-plot").first
    place.scroll_into_view_if_needed()
    assert place.bounding_box()["height"] > 100
    page.close()
