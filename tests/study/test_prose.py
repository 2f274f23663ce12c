"""Prose is filled whole or not at all. Alone: pytest tests/study/test_prose.py"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from IPython.display import Markdown

from nli_lib.study import StudyError
from nli_lib.study.notebook import fill


def test_say_fills_and_refuses_gaps():
    assert fill("{share:.1%} of {n:,}", {"share": 0.25, "n": 9842}) == "25.0% of 9,842"
    text = "<script>\n[x](javascript:1) {download}`/etc/passwd`"
    assert fill("*{text}*", {"text": text}) == (r"*\<script\> \[x\]\(javascript\:1\) \{download\}\`\/etc\/passwd\`*")
    assert fill("{rows}", {"rows": Markdown("- *one*\n- two")}) == "- *one*\n- two"
    for template, values, said in (
        ("{n}", {"m": 1}, r"no value for n \(given: m\)"),
        ("{n}", {"n": math.nan}, "n is nan"),
        ("{n}", {"n": np.float32("inf")}, "n is inf"),
        ("{n}", {"n": None}, "n is None"),
        ("{n:.1%}", {"n": "x"}, "cannot be filled"),
    ):
        with pytest.raises(StudyError, match=said):
            fill(template, values)


def test_zero_has_no_sign():
    numbers = {"a": -0.04, "b": -0.5, "c": 0.004}
    assert fill("{a:+.1f} points [{b:+.1f}, {c:+.0%}], x-0", numbers) == "0.0 points [-0.5, 0%], x-0"


def test_a_field_reaches_into_a_value_and_is_checked_there():
    rho = SimpleNamespace(value=0.31, low=math.nan, n=1514)
    values = {"rho": rho, "row": {"word": "<b>"}}
    assert fill("{rho.value:.2f} of {rho.n:,} {row[word]}", values) == "0.31 of 1,514 \\<b\\>"
    with pytest.raises(StudyError, match="rho.low is nan"):
        fill("{rho.low:.2f}", {"rho": rho})
