"""Figures that answer the pointer. Alone: pytest tests/test_interactive.py"""

import pandas as pd
import pytest

from nli_lib import plots
from nli_lib.plots import SAMPLE, interactive_map


@pytest.fixture
def points():
    rows = {
        "position": [7, 1, 4],
        "variability": [0.1, 0.4, 0.3],
        "confidence": [0.2, 0.5, 0.9],
        "correctness": [0, 0.5, 1.0],
        "label": ["neutral", "entailment", "neutral"],
        "premise": ["A dog <i>runs</i>. " + "word " * 40, None, None],
        "hypothesis": ["It & others move.", None, None],
    }
    return pd.DataFrame(rows)


def a_map(points, **options):
    hover = [*SAMPLE, "confidence", "variability", "correctness", "position"]
    return interactive_map(points, "variability", "confidence", color="correctness", hover=hover, **options)


def told(figure):
    """All points of a figure: (x, y) -> what the pointer is told there."""
    traces = [trace for trace in figure.data if trace.customdata is not None]
    return {(x, y): text for t in traces for x, y, (text,) in zip(t.x, t.y, t.customdata, strict=True)}


def test_a_point_says_its_texts_label_and_scores_and_leaves_out_what_is_missing(points):
    figure = a_map(points)
    assert all(trace.type == "scattergl" for trace in figure.data)
    first, second = told(figure)[0.1, 0.2], told(figure)[0.4, 0.5]
    assert first.startswith("<b>label</b>: neutral<br><b>premise</b>: A dog")
    for line in ("<b>confidence</b>: 0.2", "<b>variability</b>: 0.1", "<b>correctness</b>: 0", "<b>pair</b>: 7"):
        assert line in first
    assert "premise" not in second and "nan" not in second.lower() and "None" not in second


def test_tags_of_a_corpus_are_text_and_long_texts_are_broken(points):
    text = told(a_map(points))[0.1, 0.2]
    assert "&lt;i&gt;runs&lt;/i&gt;" in text and "It &amp; others" in text and "<i>" not in text
    assert max(len(line) for line in text.split("<br>")) < 120


def test_words_have_a_colour_each_and_points_tell_what_is_recorded(points):
    rows = points.assign(kind=["P1G0", "P1G0", "P0G1"], gap=[1, 2, 3.0], predicted="contradiction", votes=[3, 1, 2])
    look = {"color": "kind", "hover": ["predicted", "votes", "wrong"]}
    figure = interactive_map(rows, "gap", "confidence", **look)
    assert {trace.name for trace in figure.data} == {"P1G0", "P0G1"}
    text = told(figure)[3.0, 0.9]
    assert "<b>the model says</b>: contradiction" in text and "<b>seeds that prune it</b>: 2" in text
    assert "wrong" not in text
    judged = interactive_map(rows.assign(wrong=[True, None, None]), "gap", "confidence", **look)
    assert "<b>wrong by people</b>: True" in told(judged)[1.0, 0.2]


def test_of_too_many_points_a_part_is_drawn_and_the_title_says_so(points, monkeypatch):
    monkeypatch.setattr(plots, "MOST", 2)
    figure = a_map(points, title="Map")
    assert len(told(figure)) == 2
    assert figure.layout.title.text == "Map (2 of 3 points)"


def test_an_empty_table_draws_an_empty_figure(points):
    assert not told(a_map(points.iloc[:0]))
    assert not told(interactive_map(points.iloc[:0], "variability", "confidence", color="label", hover=[]))
