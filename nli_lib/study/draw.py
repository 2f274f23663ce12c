"""Draws chapters for the book: executes the cells that show, from the recorded tables, and none of those that measure.

Chapters share a kernel, so that pandas, matplotlib and seaborn are imported once; `%reset` clears the names of the
chapter before. What is run and leaves a record has a process of its own instead: `nli_lib.study.execute`.
"""

import os
from collections.abc import Iterable

from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from nli_lib import paths
from nli_lib.study.execute import socket_folder
from nli_lib.study.notebook import DRAW
from nli_lib.study.schedule import Request, resolve


def draw(names: Iterable[str], request: Request) -> dict[str, tuple[NotebookNode, str]]:
    """Of each chapter its executed copy without the measuring cells, and what stopped it ("" where nothing did)."""
    copies = {name: showing(name, request) for name in names}
    whole, died = new_notebook(), ""
    whole.cells = [cell for copy in copies.values() for cell in (new_code_cell("%reset -f"), *copy.cells)]
    if copies:
        with socket_folder() as sockets:
            kernel = AsyncKernelManager(transport="ipc", ip=f"{sockets}/kernel")
            place = {"metadata": {"path": str(paths.HOME)}}
            client = NotebookClient(whole, km=kernel, timeout=None, allow_errors=True, resources=place)
            try:
                client.execute(env={**os.environ, DRAW: "1"}, cleanup_kc=True)
            except DeadKernelError as error:
                died = str(error)
    return {name: (copy, _problem(copy, died)) for name, copy in copies.items()}


def showing(name: str, request: Request) -> NotebookNode:
    """A notebook without the cells tagged `measure`, with the parameters of the request in it."""
    copy = load_notebook_node(str(paths.NOTEBOOKS / f"{name}.ipynb"))
    copy.cells = [cell for cell in copy.cells if "measure" not in cell.metadata.tags]
    return parameterize_notebook(copy, {"SCALE": request.scale, "CORPUS": resolve(name, request)["CORPUS"]})


def _problem(copy: NotebookNode, died: str) -> str:
    code = [cell for cell in copy.cells if cell.cell_type == "code" and cell.source.strip()]
    for number, cell in enumerate(code, 1):
        for output in cell.outputs:
            if output.output_type == "error":
                return f"code cell {number} of {len(code)}: {output.ename}: {output.evalue}"
        if not cell.execution_count:
            return f"code cell {number} of {len(code)} was never executed. {died}"
    return ""
