"""JupyterLab on a folder, for the tests that drive it in a browser."""

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from nli_lib import paths

UPDATES = "check_for_updates_class=jupyterlab.NeverCheckForUpdate"
QUIET = [f"--LabApp.{it}" for it in ("expose_app_in_browser=True", "news_url=", UPDATES, "extension_manager=readonly")]


def write_notebook(path, *sources):
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    cells = [new_code_cell(source) for source in sources]
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


def run_all(page, address):
    """Open a notebook and run all its cells; a command of JupyterLab ends when the last cell does."""
    page.goto(address)
    page.wait_for_function("window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel", timeout=120_000)
    page.locator(".jp-Notebook .jp-Cell").last.wait_for()
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")


def save(page):
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")


@contextlib.contextmanager
def serving(folder):
    """JupyterLab with NLI_HOME in ``folder``, its settings too; gives the address of a notebook below it."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed (make lab)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tracker = folder / "settings" / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    tracker.parent.mkdir(parents=True)
    tracker.write_text('{"windowingMode": "none"}')  # every cell is in the page, seen or not
    token, home = secrets.token_hex(16), str(folder)
    words = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    words += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={home}", *QUIET]
    library = f"{paths.HOME}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    folders = {name: str(folder / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    folders["JUPYTERLAB_SETTINGS_DIR"] = folders["JUPYTERLAB_WORKSPACES_DIR"] = str(folder / "settings")
    with (folder / "lab.log").open("w") as log:
        environment = {**os.environ, **folders, "NLI_HOME": home, "PYTHONPATH": library}
        server = subprocess.Popen(words, stdout=log, stderr=log, env=environment, cwd=home)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            assert server.poll() is None, (folder / "lab.log").read_text()[-2_000:]
            try:
                urllib.request.urlopen(f"{address}/api?token={token}", timeout=2)
                break
            except OSError:
                time.sleep(0.5)
        yield lambda notebook: f"{address}/lab/tree/{notebook.relative_to(folder)}?token={token}&reset"
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:  # it waits for kernels, and on a slow machine for long
            server.kill()
            server.wait()
