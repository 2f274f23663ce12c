"""Tables are shown as text and prose is filled whole, whatever stands in a corpus: pytest tests/study/test_show.py"""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from IPython.display import Markdown

from nli_lib.errors import StudyError
from nli_lib.stats import Estimate
from nli_lib.study import notebook
from nli_lib.study.notebook import fill, show

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def shown(monkeypatch):
    """What `show` displays, as HTML."""
    found = []
    monkeypatch.setattr(notebook, "display", lambda page: found.append(page.data))
    return lambda *given, **more: (show(*given, **more), found[-1])[1]


@pytest.mark.parametrize("formats", [{}, {SCRIPT: "<{}>"}])
@pytest.mark.parametrize("index", [False, True])
def test_cells_headers_and_index_are_escaped(shown, formats, index):
    table = pd.DataFrame({SCRIPT: [SCRIPT, [SCRIPT]]}, index=pd.Index([SCRIPT, "b"], name=SCRIPT.upper()))
    page = shown(table, formats, index=index).lower()
    assert "<script" not in page and page.count("&lt;script&gt;") == 3 + 2 * index
    many = pd.MultiIndex.from_product([[SCRIPT], ["a", "<b>"]], names=[SCRIPT, "n"])
    page = shown(pd.DataFrame([[1, 2]], columns=many))
    assert "<script" not in page and "<b>" not in page


NUMBERS = pd.DataFrame({"n": [1234, 5], "x": [0.12345, np.nan], "share": [0.25, 1.0], "sure": [True, False]})
NAMES = pd.DataFrame({"corpus": ["mnli", "mine_1.csv"], "above_half": [0.5, 0.6], "snli": [1, 2], "text": "mnli"})
INSIDE = pd.DataFrame({"score": ["max_variability"], "premise": ["max_variability"], "std": [0.1]})
SIGNS = pd.DataFrame({"x": [-0.0004, 0.04], "points": [-0.04, -0.5]})
LEVELS = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_product([["share"], [0.0, 0.5]]))


@pytest.mark.parametrize(("table", "more", "expected"), [
    (NUMBERS, {"formats": {"share": "{:.1%}"}}, (">1,234<", ">0.123<", ">25.0%<", ">yes<", ">no<")),
    (NUMBERS, {"digits": 1}, (">0.1<",)), (LEVELS, {}, (">0.5<",)), (NUMBERS[:0], {}, ("(no rows)",)),
    (pd.DataFrame({0.4: [0.25], 10.0: [1.0]}), {"formats": {0.4: "{:.1%}"}}, (">0.4<", ">10<", ">25.0%<")),
    (NAMES, {}, (">MultiNLI<", ">mine_1.csv<", ">above half<", ">SNLI<", ">mnli<")),
    (NAMES.set_index("corpus"), {"index": True}, (">MultiNLI<",)),
    (INSIDE, {}, (">max variability<", ">max_variability<", ">standard deviation<")),
    # zero has no sign
    (SIGNS, {"formats": {"points": "{:+.1f}"}}, (">0.000<", ">0.0<", ">-0.5<"))])  # fmt: skip
def test_numbers_are_written_one_way_and_names_are_those_of_the_prose(shown, table, more, expected):
    before = table.copy()
    page = shown(table, **more)
    assert not [text for text in expected if text not in page] and "nan" not in page
    assert shown(table.copy(), **more) == page  # the same table makes the same page
    pd.testing.assert_frame_equal(table, before)
    with pytest.raises(KeyError, match="no column"):
        shown(NUMBERS, {"shares": "{:.1%}"})


RHO = SimpleNamespace(value=0.31, low=math.nan, n=1514)
GAP = {"value": 0.0123, "low": -0.0004, "high": 0.03}


@pytest.mark.parametrize(("template", "values", "said"), [
    ("{share:.1%} of {n:,}", {"share": 0.25, "n": 9842}, "25.0% of 9,842"),
    ("*{text}*", {"text": "<script>\n[x](javascript:1) {download}`/etc/passwd`"},
     r"*\<script\> \[x\]\(javascript\:1\) \{download\}\`\/etc\/passwd\`*"),
    ("{rows}", {"rows": Markdown("- *one*\n- two")}, "- *one*\n- two"),
    ("{a:+.1f} [{b:+.1f}, {c:+.0%}], x-0", {"a": -0.04, "b": -0.5, "c": 0.004}, "0.0 [-0.5, 0%], x-0"),
    ("{rho.value:.2f} of {rho.n:,} {row[word]}", {"rho": RHO, "row": {"word": "<b>"}}, r"0.31 of 1,514 \<b\>"),
    *(("{x:ci+.1%}", {"x": each}, "+1.2% [0.0%, +3.0%]") for each in (GAP, pd.Series(GAP), Estimate(**GAP, n=3))),
    ("{x:ci+.2f points of it}", {"x": GAP}, "+0.01 points of it [0.00, +0.03]")])  # fmt: skip
def test_prose_is_filled(template, values, said):
    assert fill(template, values) == said


@pytest.mark.parametrize(("template", "values", "said"), [
    ("{n}", {"m": 1}, r"no value for n \(given: m\)"), ("{n}", {"n": math.nan}, "n is nan"),
    ("{n}", {"n": np.float32("inf")}, "n is inf"), ("{n}", {"n": None}, "n is None"),
    ("{n:.1%}", {"n": "x"}, "cannot be filled"), ("{rho.low:.2f}", {"rho": RHO}, "rho.low is nan"),
    ("{gap:ci.2f}", {"gap": {**GAP, "low": math.nan}}, "no such number")])  # fmt: skip
def test_prose_never_shows_a_gap(template, values, said):
    with pytest.raises(StudyError, match=said):
        fill(template, values)
