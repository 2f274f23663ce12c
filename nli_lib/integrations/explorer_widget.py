"""The explorer's page in JupyterLab: jupyter-scatter draws the points, a panel beside them shows texts, table and tags.

The panel's script makes text nodes alone, so nothing in a pair is executed.
"""

from pathlib import Path
from typing import Any

import anywidget
import jscatter
import numpy as np
import pandas as pd
import traitlets
from ipywidgets import VBox

from nli_lib.errors import UserError
from nli_lib.integrations.explorer import SHOWN, Explorer

HERE = Path(__file__).parent
SIZE = {"height": 480}
COLORS = ["#7b3294", "#c2a5cf", "#d9d9d9", "#a6dba0", "#008837"]  # hard to easy


class Panel(anywidget.AnyWidget):
    """What stands below the map. `state` is what the page shows; the page answers with messages."""

    _esm = HERE / "explorer.js"
    _css = HERE / "explorer.css"
    state = traitlets.Dict(help="point, rows, selected, tags, columns, fault").tag(sync=True)

    def __init__(self, explorer: Explorer, **options: Any):
        super().__init__(**options)
        self.explorer, self._point = explorer, None
        explorer._listeners.append(self.show)
        self.on_msg(lambda _widget, content, _buffers: self.take(content))
        self.show()

    def take(self, content: dict[str, object]) -> None:
        """Take one message of the page: act ("tag", "point") and what belongs to it."""
        try:
            match content:
                case {"act": "tag", "name": str(name)}:
                    self.explorer.tag(name)
                case {"act": "point", "position": int(position)}:
                    self.look(position)
                case _:
                    self.show("The page sent a message that means nothing. Run the cell again.")
        except UserError as error:
            self.show(str(error))

    def look(self, position: int | None) -> None:
        """Show the pair at a position; the last one stays when the pointer leaves."""
        if position is not None and 0 <= position < len(self.explorer.table):
            self._point = int(position)
            self.show()

    def show(self, fault: str = "") -> None:
        explorer = self.explorer
        rows = [explorer.point(at) for at in explorer.selected[:SHOWN].tolist()]
        columns = ["tag", "label", "premise", "hypothesis", *dict.fromkeys((explorer.x, explorer.y, explorer.color))]
        self.state = {
            "point": None if self._point is None else explorer.point(self._point),
            "rows": rows,
            "columns": list(dict.fromkeys(columns)),
            "selected": len(explorer.selected),
            "pairs": len(explorer.table),
            "tags": explorer.counts,
            "fault": fault,
        }


def page(explorer: Explorer) -> VBox:
    """The map above the panel. `.children` are the two."""
    names = list(dict.fromkeys((explorer.x, explorer.y, explorer.color)))
    drawn = explorer.table[names].reset_index(drop=True)
    if not pd.api.types.is_numeric_dtype(drawn[explorer.color]):
        drawn[explorer.color] = drawn[explorer.color].astype("category")
    elif drawn[explorer.color].nunique() <= 12:  # shares of a few epochs: a step each
        drawn[explorer.color] = drawn[explorer.color].round(3)
    scatter = jscatter.Scatter(data=drawn, x=explorer.x, y=explorer.y, color_by=explorer.color, **SIZE)
    if pd.api.types.is_numeric_dtype(drawn[explorer.color]):
        scatter.color(by=explorer.color, map=COLORS)
    scatter.axes(labels=[explorer.x, explorer.y])
    scatter.legend(True)
    scatter.tooltip(False)  # its preview would put a text into the page as markup
    plot, panel = scatter.widget, Panel(explorer)
    plot.mouse_mode = "lasso"
    plot.observe(
        lambda change: explorer.select([] if change["new"] is None else np.asarray(change["new"])), "selection"
    )
    plot.observe(lambda change: panel.look(change["new"]), "hovering")
    return VBox([plot, panel])
