"""Names of tables as a reader knows them. Run alone: pytest tests/test_names.py"""

import matplotlib.text
import pandas as pd
import pytest

from nli_lib.claims import paper_table
from nli_lib.learn.text import HUB_MODELS, OFFLINE_MODELS
from nli_lib.names import name_of, printed_name
from nli_lib.plots import interval_plot


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("mnli", "MultiNLI"),
        ("snli validation_matched", "SNLI validation_matched"),
        ("mine validation", "mine validation"),
        ("max_variability", "max variability"),
        ("not_entailment", "not entailment"),
        ("smollm2-6", "SmolLM2 (6 layers)"),
        ("disco, 2022 code", "DISCO, 2022 code"),
        ("mine_1.csv", "mine_1.csv"),
        ("hans up, mnli down", "hans up, mnli down"),
        (3, 3),
        (None, None),
    ],
)
def test_a_name_is_that_of_the_prose(recorded, shown):
    assert name_of(recorded) == shown


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("subset-add-human-cad", "subset + Human-CAD"),
        ("wanli-add-disco", "WANLI + DISCO"),
        ("snli-own-split", "SNLI own split"),
        ("easy-multinli-deberta", "easy MultiNLI DeBERTa"),
        ("seq-z-matched", "Seq-Z matched"),
        ("snli-hard-sd", "SNLI-hard standard deviation"),
        ("mnli-hard-mm", "MultiNLI hard mismatched"),
        ("out-of-domain", "out of domain"),
        ("li-li", "LI-LI"),
        ("", ""),
    ],
)
def test_a_row_of_a_papers_table_is_in_words(key, shown):
    assert printed_name(key) == shown


@pytest.mark.parametrize("table", ["Table 1", "Table 3", "Table 4"])
def test_rows_that_differ_are_shown_differently(table):
    rows = paper_table("difficulty", table).index
    assert len({printed_name(row) for row in rows}) == len(rows)


def test_every_encoder_of_the_study_has_a_name_of_its_own():
    keys = [*OFFLINE_MODELS, *HUB_MODELS]
    assert not {name_of(key) for key in keys} & set(keys)


def test_a_figure_shows_them():
    table = pd.DataFrame({"title": ["snli test", "hans"], "condition": ["minilm", "aum"], "accuracy": [0.5, 0.6]})
    figure = interval_plot(table)
    texts = {text.get_text() for text in figure.findobj(matplotlib.text.Text)}
    assert {"SNLI test", "HANS", "MiniLM", "AUM"} <= texts
