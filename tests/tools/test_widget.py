"""What the review's widget takes and shows, without a browser. Run alone: pytest tests/tools/test_widget.py"""

import pytest
from small_reviews import NASTY, corpus

from nli_lib.generate.review import Review, annotations, pairs


@pytest.fixture
def widget(tmp_path):
    anywidget = pytest.importorskip("nli_tools.review", reason="anywidget is not installed (make lab)")
    return anywidget.ReviewWidget(Review(pairs(corpus(NASTY)), tmp_path, "anna"))


def test_messages_are_answers(widget, tmp_path):
    first = widget.state["pair"]
    widget.take({"act": "label", "label": "neutral", **first})
    assert widget.state["done"] == 1 and widget.state["pair"]["item"] != first["item"]
    widget.take({"act": "discard", "item": widget.state["pair"]["item"]})
    widget.take({"act": "undo"})
    assert (widget.state["done"], widget.state["turn"], widget.state["fault"]) == (1, 4, "")
    while widget.state["pair"]:
        widget.take({"act": "label", "label": "entailment", **widget.state["pair"]})
    assert widget.state["done"] == widget.state["pairs"] == len(annotations(tmp_path)) == len(NASTY)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"premise": " "}, "premise must have"), ({"label": "x"}, "field label"), ({"act": "x"}, "means nothing")],
)
def test_what_cannot_be_taken_is_said_and_the_pair_stays(widget, tmp_path, changes, said):
    pair = widget.state["pair"]
    widget.take({"act": "label", "label": "neutral", **pair} | changes)
    assert said in widget.state["fault"] and widget.state["pair"] == pair and annotations(tmp_path).empty
    widget.take({"act": "discard", "item": pair["item"]})
    assert widget.state["fault"] == ""


def test_a_disk_that_refuses_is_said_and_half_an_answer_is_none(widget, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    widget.take({"act": "discard", "item": widget.state["pair"]["item"]})
    assert "Not written: [Errno 28] No space left" in widget.state["fault"] and widget.state["done"] == 0
    monkeypatch.undo()
    assert (tmp_path / "answers.anna.jsonl").read_bytes() == b""
    widget.take({"act": "label", "label": "neutral", **widget.state["pair"]})
    assert widget.state["done"] == 1 and widget.state["fault"] == ""
