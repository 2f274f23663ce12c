"""The review as a widget of JupyterLab: one pair at a time, its two texts to revise in place, a key for each answer.

    review_widget("mine.csv", "data/review", "anna")            # or, of pairs that lie in memory:
    ReviewWidget(Review(pairs, folder, "anna"))

1 entailment, 2 neutral, 3 contradiction, d discard, u undo, r revise, Esc out of a text. Keys answer only while the
widget has the focus and no text is being typed. What is on disk is what counts: the widget shows the next pair when the
answer has been written, and a page that is loaded again, or a kernel that is started again, shows the first pair
without an answer. The script builds the page from text nodes and text fields alone, so nothing in a pair is executed.
"""

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from nli_lib.corpora import load
from nli_lib.errors import UserError
from nli_lib.generate.review import Review, ReviewError, pairs

HERE = Path(__file__).parent


class ReviewWidget(anywidget.AnyWidget):
    """A review to look at and answer. `state` is what the page shows; the page answers with messages."""

    _esm = HERE / "widget.js"
    _css = HERE / "widget.css"
    state = traitlets.Dict(help="pair, done, pairs, annotator, fault, and turn, which counts the answers taken").tag(
        sync=True
    )

    def __init__(self, review: Review, **options: Any):
        super().__init__(**options)
        self.review = review
        self._turn = 0
        self._show()
        self.on_msg(lambda _widget, content, _buffers: self.take(content))

    def take(self, content: dict[str, str]) -> None:
        """Take one message of the page: act ("label", "discard" or "undo") and what belongs to it; show what follows.

        What cannot be taken, the page says in words, and the pair stays.
        """
        try:
            match content:
                case {"act": "label", "item": item, "label": label, "premise": premise, "hypothesis": hypothesis}:
                    self.review.label(item, label, premise=premise, hypothesis=hypothesis)
                case {"act": "discard", "item": item}:
                    self.review.discard(item)
                case {"act": "undo"}:
                    self.review.undo()
                case _:
                    raise ReviewError("the page sent a message that means nothing. Load the page again.")
        except (UserError, OSError) as error:
            self._show(fault=f"Not written: {error}")
        else:
            self._show()

    def _show(self, fault: str = "") -> None:
        done, count = self.review.progress
        self._turn += 1
        named = {"annotator": self.review.annotator, "turn": self._turn, "fault": fault}
        self.state = {"pair": self.review.pair, "done": done, "pairs": count, **named}


def review_widget(corpus: str, folder: str, annotator: str, seed: int = 0, **where: object) -> ReviewWidget:
    """The widget of one annotator's review of a file, which is loaded with ``where``; its answers lie in ``folder``."""
    return ReviewWidget(Review(pairs(load(corpus, **where)), Path(folder), annotator, seed=seed))
