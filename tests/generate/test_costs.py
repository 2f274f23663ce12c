"""What answers cost. Run alone: pytest tests/generate/test_costs.py"""

import numpy as np
import pytest

from nli_lib.generate.journal import Answer
from nli_lib.generate.llm import Budget
from nli_lib.generate.pairs import cost_lines, cost_table


def answer(key, **more):
    fields = {"text": "x", "finish": "stop", "served": "m", "prompt_tokens": 100, "completion_tokens": 50}
    started = {"api": "completions", "started": "2026-01-01", "seconds": 4.0}
    return Answer(key=key, **{**fields, **started, **more})


def test_what_answers_cost():
    later = {"started": "2026-01-01T00:00:02.5+00:00", "text": None, "served": ""}
    answers = [answer("a"), answer("b", finish="length"), answer("c", seconds=3.5, **later)]
    (row,) = cost_table(answers, Budget(price=(2.0, 10.0))).to_dict("records")
    assert (row["answers"], row["failed"], row["served"]) == (3, 1, "m")
    assert (row["prompt_tokens"], row["completion_tokens"], row["seconds"]) == (300, 150, 6.0)
    assert row["tokens_per_second"] == 25 and row["money"] == pytest.approx((600 + 1500) / 1e6, abs=1e-4)
    assert row["cut_off"] == pytest.approx(1 / 3, abs=1e-4) and "estimated" not in row
    vain = answer("a", text=None, completion_tokens=7, estimated=True)  # paid for, and asked again
    (more,) = cost_table([vain, *answers], Budget(price=(2.0, 10.0))).to_dict("records")
    assert (more["answers"], more["failed"], more["seconds"], more["estimated"]) == (3, 1, 6.0, 1)
    assert (more["prompt_tokens"], more["completion_tokens"]) == (400, 157) and more["money"] > row["money"]


def test_a_batch_has_no_speed_and_costs_are_told_in_lines():
    answers = [answer(key, seconds=0.0, served="smollm2") for key in "ab"]
    cost = cost_table(answers, Budget(price=(0.0, 0.0))).iloc[0]
    assert cost["seconds"] == 0 and np.isnan(cost["tokens_per_second"])
    assert cost_lines(cost)["value"].to_dict() == {
        "served": "smollm2", "answers": "2", "failed": "0", "prompt tokens": "200", "completion tokens": "100",
        "seconds": "0", "money": "0.00", "cut off": "0.0%",
    }  # fmt: skip
