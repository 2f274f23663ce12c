"""A chapter in JupyterLab, in a real browser. Run alone: pytest tests/browser/test_lab.py"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from nli_lib import paths

CHAPTER = "20_z_statistics"  # draws a figure that answers the pointer, and trains nothing
LONGEST = 120  # seconds that the chapter may take
QUIET = (
    "--LabApp.expose_app_in_browser=True",
    "--LabApp.news_url=",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
)


@pytest.fixture
def lab(tmp_path):
    """JupyterLab on a copy of the project's notebooks and the project's store of runs; the address of the chapter."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed (make lab)")
    shutil.copytree(paths.NOTEBOOKS, tmp_path / "notebooks")
    shutil.copytree(paths.BOOK, tmp_path / "book", ignore=shutil.ignore_patterns("_build", "chapters"))
    (tmp_path / "data").mkdir()
    for store in (paths.RUNS, paths.MODELS):
        store.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / store.name).symlink_to(store)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tracker = tmp_path / "settings" / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    tracker.parent.mkdir(parents=True)
    tracker.write_text('{"windowingMode": "none"}')  # every cell is in the page, seen or not
    token, home = secrets.token_hex(16), str(tmp_path)
    words = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    words += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={home}", *QUIET]
    library = f"{paths.HOME}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    folders = {name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    folders["JUPYTERLAB_SETTINGS_DIR"] = folders["JUPYTERLAB_WORKSPACES_DIR"] = str(tmp_path / "settings")
    with (tmp_path / "lab.log").open("w") as log:
        environment = {**os.environ, **folders, "NLI_HOME": home, "PYTHONPATH": library}
        server = subprocess.Popen(words, stdout=log, stderr=log, env=environment, cwd=home)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            assert server.poll() is None, (tmp_path / "lab.log").read_text()[-2_000:]
            try:
                urllib.request.urlopen(f"{address}/api?token={token}", timeout=2)
                break
            except OSError:
                time.sleep(0.5)
        yield f"{address}/lab/tree/notebooks/{CHAPTER}.ipynb?token={token}&reset"
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.slow
@pytest.mark.notebooks
def test_a_chapter_runs_in_jupyterlab(lab, browser, tmp_path):
    """Every cell runs, nothing fails, and the figure that answers the pointer is there."""
    path = tmp_path / "notebooks" / f"{CHAPTER}.ipynb"
    cells = sum(cell["cell_type"] == "code" for cell in json.loads(path.read_text())["cells"])
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.goto(lab)
    page.wait_for_function("window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel", timeout=60_000)
    # a command ends when the last cell does
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    for _ in range(LONGEST):
        done = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code" and c["execution_count"]]
        failed = [output for cell in done for output in cell["outputs"] if output["output_type"] == "error"]
        assert not failed, failed[0]["evalue"]
        if len(done) == cells:
            break
        page.wait_for_timeout(1_000)
        page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    assert len(done) == cells
    place = page.locator(".jp-OutputArea .js-plotly-plot").first
    place.scroll_into_view_if_needed()
    assert place.bounding_box()["height"] > 100
    page.close()
