"""The figure that answers the pointer. Alone: pytest tests/report/test_explore.py"""

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nli_lib.corpora.corpus import Corpus
from nli_lib.measure.artifacts import features, z_statistics
from nli_lib.report.explore import ExploreError, competency, examples


@pytest.fixture
def corpus():
    rows = {
        "uid": list("abcde"),
        "premise": ["A dog <i>runs</i>.", "A cat sits.", "A man sleeps.", "Rain falls.", "word " * 100],
        "hypothesis": ["nobody runs", "nobody sits", "nobody sleeps", "it rains", "nobody reads"],
        "label": [2, 2, 2, 0, 2],
    }
    return Corpus(pd.DataFrame(rows).assign(corpus="mine", split="train"), "mine", "train")


def drawn(corpus, **options):
    """The figure of a corpus's hypothesis words, made as chapter 20 makes it."""
    table = features(corpus.premise, corpus.hypothesis)
    counts = z_statistics(table.matrix, corpus.labels).counts
    wide = pd.DataFrame(counts, columns=corpus.classes).assign(feature=table.names)
    long = wide.melt(id_vars="feature", value_vars=list(corpus.classes), var_name="label", value_name="count")
    long["n"] = long.groupby("feature")["count"].transform("sum")
    long["p"] = long["count"] / long["n"]
    quoted = examples(table.matrix, corpus.labels).swapaxes(0, 1).reshape(len(long), -1)
    return competency(long[long["n"] > 0], corpus, quoted[long["n"] > 0], **options)


def told(figure):
    return {(trace.name, text.split("</b>")[0][3:]): text for trace in figure.data for text in trace.text or ()}


def test_a_point_tells_its_feature_its_counts_and_three_pairs(corpus):
    text = told(drawn(corpus))["contradiction", "nobody@hypothesis"]
    assert "contradiction in 100% [51%, 100%] of 4 pairs" in text  # Wilson: n / (n + 1.96^2)
    assert "z = 2.8" in text  # (1 - 1/3) / sqrt(2/9 / 4)
    assert text.count("→") == 3
    assert "A cat sits.<br>&nbsp;&nbsp;→ nobody sits" in text
    assert "nobody reads" not in text  # the fourth


def test_tags_of_the_corpus_are_text(corpus):
    texts = "".join(told(drawn(corpus)).values())
    assert "<i>" not in texts
    assert "&lt;i&gt;" in texts


def test_a_label_under_which_a_feature_never_fires_quotes_nothing(corpus):
    text = told(drawn(corpus))["entailment", "nobody@hypothesis"]
    assert "in 0% [0%, 49%] of 4 pairs" in text
    assert "→" not in text


def test_only_the_highest_points_are_drawn_and_the_title_says_so(corpus):
    figure = drawn(corpus, most=2)
    assert len(told(figure)) == 2
    assert "2 of " in figure.layout.title.text
    assert " of " not in drawn(corpus).layout.title.text


def test_lines_of_significance_are_those_of_the_still_figure(corpus):
    loose, strict = (trace for trace in drawn(corpus, alpha=0.01, tests=2).data if trace.mode == "lines")
    at = np.asarray(loose.x)
    assert np.asarray(loose.y) == pytest.approx(1 / 3 + 2.3263 * np.sqrt(2 / 9 / at), abs=1e-4)
    assert strict.y[-1] == pytest.approx(1 / 3 + 2.5758 * np.sqrt(2 / 9 / strict.x[-1]), abs=1e-4)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 4))), max_size=12))
def test_examples_are_those_of_a_search(pairs):
    dense = np.array([[at in held for at in range(5)] for _, held in pairs], bool).reshape(-1, 5)
    labels = np.array([label for label, _ in pairs], dtype=int)
    found = examples(sparse.csr_array(dense), labels)
    for feature in range(5):
        for label in range(3):
            expected = [i for i in range(len(pairs)) if dense[i, feature] and labels[i] == label][:3]
            assert found[feature, label].tolist() == expected + [-1] * (3 - len(expected))


def test_without_plotly_the_message_says_how_to_get_it(corpus, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ExploreError, match=r"pip install .* plotly"):
        drawn(corpus)
