"""Shows a plotly figure so that JupyterLab and the book each draw it in their own way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PLOTLY = "application/vnd.plotly.v1+json"
CONFIG = {"responsive": True, "displaylogo": False}


def show_interactive(figure: Figure) -> None:
    """Display a figure that answers the pointer.

    Only its data go into the notebook: JupyterLab draws them with plotly's extension, which comes with plotly, and the
    book with the one copy of plotly's script that all its pages share. `figure.show()` would store 4 MB of script.
    """
    from IPython.display import display

    display({PLOTLY: json.loads(figure.to_json()) | {"config": CONFIG}, "text/plain": "interactive figure"}, raw=True)
