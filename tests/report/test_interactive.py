"""Figures that answer the pointer. Alone: pytest tests/report/test_interactive.py"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nli_lib import plots
from nli_lib.measure.features import first_pairs
from nli_lib.plots import COLOURS, SAMPLE, interactive_competency, interactive_map


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


def test_competency_tells_counts_and_draws_the_lines_of_significance():
    table = pd.DataFrame(
        {"feature": ["nobody<b>", "a"], "label": ["contradiction", "neutral"], "n": [4, 40], "p": [1.0, 0.5]}
    )
    figure = interactive_competency(table.assign(**{"such as": ["Nobody <i>moves</i>.", None]}), tests=2, p0=1 / 3)
    text = told(figure)[4, 1.0]
    assert "nobody&lt;b&gt;" in text and "100% [51%, 100%]" in text and "<b>z</b>: 2.83" in text
    assert "Nobody &lt;i&gt;moves" in text and "such as" not in told(figure)[40, 0.5]
    loose, strict = (trace for trace in figure.data if trace.mode == "lines")
    assert loose.y[-9:] == pytest.approx(1 / 3 + 2.3263 * np.sqrt(2 / 9 / loose.x[-9:]), abs=1e-4)
    assert strict.y[-1] == pytest.approx(1 / 3 + 2.5758 * np.sqrt(2 / 9 / strict.x[-1]), abs=1e-4)
    colours = {trace.name: trace.marker.color for trace in figure.data if trace.mode == "markers"}
    assert colours == {name: COLOURS[name] for name in ("contradiction", "neutral")}


def test_of_too_many_points_a_part_is_drawn_and_the_title_says_so(points, monkeypatch):
    monkeypatch.setattr(plots, "MOST", 2)
    figure = a_map(points, title="Map")
    assert len(told(figure)) == 2
    assert figure.layout.title.text == "Map (2 of 3 points)"


def test_an_empty_table_draws_an_empty_figure(points):
    assert not told(a_map(points.iloc[:0]))
    assert not told(interactive_map(points.iloc[:0], "variability", "confidence", color="label", hover=[]))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 4))), max_size=12))
def test_first_pairs_are_those_of_a_search(pairs):
    dense = np.array([[at in held for at in range(5)] for _, held in pairs], bool).reshape(-1, 5)
    labels = np.array([label for label, _ in pairs], dtype=int)
    found = first_pairs(sparse.csr_array(dense), labels, n_classes=3)
    for feature in range(5):
        for label in range(3):
            expected = [i for i in range(len(pairs)) if dense[i, feature] and labels[i] == label]
            assert found[feature, label] == (expected or [-1])[0]
