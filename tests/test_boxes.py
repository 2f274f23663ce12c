"""Box plots hold the quartiles they were given. Alone: pytest tests/test_boxes.py"""

import matplotlib as mpl
import numpy as np
import pandas as pd

from nli_lib.plots import boxes

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
    lines = [line for line in figure.axes[0].lines if line.get_marker() != "D"]
    assert max(y for line in lines for y in line.get_ydata()) <= 1


def test_labels_split_the_boxes_and_notes_stand_below():
    notes = {("overlap", "easy"): "E·N ***", ("overlap", "hard"): "E·N ns"}
    figure = boxes(table(), ["overlap", "length"], group="level", order=LEVELS, hue="label", notes=notes)
    words = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    assert words == ["easy\nE·N ***", "hard\nE·N ns"]
    assert [text.get_text() for text in figure.legends[0].texts] == ["entailment", "neutral"]
    assert figure.axes[1].get_legend() is None


def test_yes_or_no_is_drawn_as_shares():
    drawn = table().assign(negated=np.arange(400) % 4 == 0)  # every second of the easy ones
    figure = boxes(drawn.astype({"negated": float}), ["negated"], group="level", order=LEVELS)
    assert [bar.get_height() for bar in figure.axes[0].patches] == [0.5, 0.0]


def test_the_mean_is_a_diamond():
    drawn = table()
    figure = boxes(drawn, ["overlap"], group="level", order=LEVELS)
    marks = [float(line.get_ydata()[0]) for line in figure.axes[0].lines if line.get_marker() == "D"]
    assert np.allclose(marks, [drawn.loc[drawn["level"] == level, "overlap"].mean() for level in LEVELS])
