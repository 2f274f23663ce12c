"""Box plots hold the quartiles they were given. Alone: pytest tests/report/test_boxes.py"""

import matplotlib as mpl
import numpy as np
import pandas as pd

from nli_lib.report.boxes import boxes

mpl.use("Agg")
LEVELS = ("easy", "hard")


def table(n=400):
    random = np.random.default_rng(0)
    level = np.array(LEVELS)[np.arange(n) % 2]
    return pd.DataFrame({"level": level, "overlap": random.random(n), "length": random.normal(size=n)}).assign(
        label=np.array(["entailment", "neutral"])[(np.arange(n) // 2) % 2]
    )


def test_a_panel_for_each_column_with_its_medians():
    drawn = table()
    figure = boxes(drawn, ["overlap", "length"], group="level", order=LEVELS)
    for axes, column in zip(figure.axes, ("overlap", "length"), strict=True):
        assert axes.get_title() == "" and axes.get_title(loc="left") == column
        heights = {round(float(y), 6) for line in axes.lines for y in line.get_ydata()}
        for level in LEVELS:
            assert round(float(drawn.loc[drawn["level"] == level, column].median()), 6) in heights


def test_points_beyond_the_whiskers_are_not_drawn():
    drawn = table()
    drawn.loc[0, "overlap"] = 1000.0
    figure = boxes(drawn, ["overlap"], group="level", order=LEVELS)
    assert max(y for line in figure.axes[0].lines for y in line.get_ydata()) <= 1


def test_labels_split_the_boxes_and_notes_stand_below():
    notes = {("overlap", "easy"): "E·N ***", ("overlap", "hard"): "E·N ns"}
    figure = boxes(table(), ["overlap", "length"], group="level", order=LEVELS, hue="label", notes=notes, across=1)
    words = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    assert words == ["easy\nE·N ***", "hard\nE·N ns"]
    assert [text.get_text() for text in figure.legends[0].texts] == ["entailment", "neutral"]
    assert figure.axes[1].get_legend() is None
