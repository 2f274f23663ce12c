"""A table is shown as text, whatever stands in the corpus. Run alone: pytest tests/study/test_show.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib.study import notebook
from nli_lib.study.notebook import show

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def shown(monkeypatch):
    """What `show` displays, as HTML."""
    found = []
    monkeypatch.setattr(notebook, "display", lambda page: found.append(page.data))
    return lambda *given, **more: (show(*given, **more), found[-1])[1]


@pytest.mark.parametrize("formats", [None, {SCRIPT: "<{}>"}])
@pytest.mark.parametrize("index", [False, True])
def test_cells_headers_and_index_are_escaped(shown, formats, index):
    table = pd.DataFrame({SCRIPT: [SCRIPT, [SCRIPT]]}, index=pd.Index([SCRIPT, "b"], name=SCRIPT.upper()))
    page = shown(table, formats, index=index)
    assert "<script" not in page.lower()
    assert page.lower().count("&lt;script&gt;") == 3 + 2 * index


def test_many_headers_are_escaped(shown):
    table = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_product([[SCRIPT], ["a", "<b>"]], names=[SCRIPT, "n"]))
    page = shown(table)
    assert "<script" not in page and "<b>" not in page


def test_numbers_are_written_one_way(shown):
    table = pd.DataFrame({"n": [1234, 5], "x": [0.12345, np.nan], "share": [0.25, 1.0], "sure": [True, False]})
    page = shown(table, {"share": "{:.1%}"})
    for text in (">1,234<", ">0.123<", ">25.0%<", ">yes<", ">no<"):
        assert text in page
    assert "nan" not in page
    assert ">0.1<" in shown(table, digits=1)
    with pytest.raises(KeyError, match="no column"):
        shown(table, {"shares": "{:.1%}"})


def test_a_number_as_a_header_has_no_more_digits_than_it_needs(shown):
    page = shown(pd.DataFrame({0.4: [0.25], 10.0: [1.0]}), {0.4: "{:.1%}"})
    assert ">0.4<" in page and ">10<" in page and ">25.0%<" in page
    levels = pd.MultiIndex.from_product([["share"], [0.0, 0.5]])
    assert ">0.5<" in shown(pd.DataFrame([[1, 2]], columns=levels))


def test_names_are_those_of_the_prose(shown):
    table = pd.DataFrame({"corpus": ["mnli", "mine_1.csv"], "above_half": [0.5, 0.6], "snli": [1, 2], "text": "mnli"})
    page = shown(table)
    for text in (">MultiNLI<", ">mine_1.csv<", ">above half<", ">SNLI<", ">mnli<"):
        assert text in page
    assert ">MultiNLI<" in shown(table.set_index("corpus"), index=True)
    assert list(table["corpus"]) == ["mnli", "mine_1.csv"]


def test_a_table_without_rows_says_so(shown):
    assert "(no rows)" in shown(pd.DataFrame({"n": []}))


def test_the_same_table_makes_the_same_page(shown):
    assert shown(pd.DataFrame({"n": [1]})) == shown(pd.DataFrame({"n": [1]}))


def test_names_inside_a_table_are_those_of_the_prose(shown):
    page = shown(pd.DataFrame({"score": ["max_variability"], "premise": ["max_variability"], "std": [0.1]}))
    assert page.count(">max variability<") == 1 and ">standard deviation<" in page


def test_zero_has_no_sign(shown):
    page = shown(pd.DataFrame({"x": [-0.0004, 0.04], "points": [-0.04, -0.5]}), {"points": "{:+.1f}"})
    for text in (">0.000<", ">0.0<", ">-0.5<"):
        assert text in page
