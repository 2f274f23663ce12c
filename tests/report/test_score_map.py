"""The map of agreement. Alone: pytest tests/report/test_score_map.py"""

import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle

from nli_lib.report.score_map import score_map

COLUMNS = ["one", "other", "value", "low", "high", "n", "seeds", "over"]
ROWS = [("a", "b", 0.97), ("a", "c", -0.32), ("b", "b", 0.8), ("b", "c", 0.04)]
TABLE = pd.DataFrame([(one, other, rho, rho, rho, 9, 3, "") for one, other, rho in ROWS], columns=COLUMNS)


def drawn(axes):
    return {text.get_position(): text.get_text() for text in axes.texts}


def test_numbers_stand_where_their_scores_meet():
    axes = score_map(TABLE, ["c", "a", "b"], groups=[["a", "b"], ["c"]], title="Two of three").axes[0]
    assert drawn(axes) == {(1, 0): "−32", (0, 1): "−32", (2, 1): "97", (1, 2): "97", (2, 2): "80"}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["c  1", "a  2", "b  3"]
    assert axes.get_title(loc="left") == "Two of three"
    (frame,) = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert frame.get_xy() == (0.5, 0.5) and frame.get_width() == 2


def test_what_is_not_known_is_blank_and_a_group_that_is_apart_has_no_frame():
    axes = score_map(TABLE, ["a", "c", "b"], groups=[["a", "b"]]).axes[0]
    assert np.ma.getmaskarray(axes.images[0].get_array()).sum() == 2  # a and c with themselves
    assert not axes.patches


def test_no_scores_say_so():
    axes = score_map(TABLE.iloc[:0], []).axes[0]
    assert [text.get_text() for text in axes.texts] == ["Nothing to show for this corpus."]
