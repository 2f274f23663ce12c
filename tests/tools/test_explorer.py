"""The state of an exploration, without a browser. Run alone: pytest tests/tools/test_explorer.py"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from audited import refused

from nli_lib.corpora.planted import make_split
from nli_lib.measure import dynamics
from nli_tools import explore
from nli_tools.exchange import Dynamics

CORPUS = make_split("train", 60)
LOGITS = np.random.default_rng(0).normal(size=(4, 60, 3))


@pytest.fixture
def explorer():
    return explore(LOGITS, CORPUS)


def test_runs_arrays_and_recordings_give_the_same_map(explorer):
    order = np.random.default_rng(1).permutation(60)
    recorded = Dynamics(LOGITS[:, order], CORPUS.labels[order], CORPUS.uid[order].astype(str), "train")
    for given in (recorded, SimpleNamespace(logits=LOGITS, labels=CORPUS.labels)):
        pd.testing.assert_frame_equal(explore(given, CORPUS).table, explorer.table)
    np.testing.assert_array_equal(explorer.table["confidence"], dynamics.confidence(LOGITS, CORPUS.labels))
    assert explorer.table["premise"].tolist() == CORPUS.premise.tolist()
    own = explore(None, CORPUS, scores={"a": np.arange(60), "b": np.ones(60)}, x="a", y="b", color="label")
    assert own.point(7)["a"] == "7"


MISFITS = [
    (LOGITS[:, :59], {}, r"shape \(4, 59, 3\): \(epochs, 60, 3\) is needed"),
    (SimpleNamespace(logits=LOGITS, labels=(CORPUS.labels + 1) % 3), {}, "other labels"),
    (LOGITS, {"a": [1, 2]}, r"a has shape \(2,\)"),
    (LOGITS, {"label": np.ones(60)}, "a score cannot be called label"),
    (None, {"a": np.ones(60)}, "there is no variability to draw")]  # fmt: skip


@pytest.mark.parametrize(("given", "scores", "said"), MISFITS)
def test_what_does_not_fit_the_corpus(given, scores, said):
    refused(said, explore, given, CORPUS, scores=scores)


def test_tags_and_the_selections_they_make(explorer):
    explorer.select([5, 3, 3, 9])
    assert explorer.selected.tolist() == [3, 5, 9] and explorer.tag("  wrong   label ") == 3
    explorer.select(np.arange(60) == 9)
    explorer.tag("other")
    assert explorer.counts == {"other": 1, "wrong label": 2}
    dropped, kept = explorer.selection("wrong label"), explorer.selection("wrong label", keep=True)
    assert np.flatnonzero(~dropped.keep).tolist() == [3, 5] == np.flatnonzero(kept.keep).tolist()
    assert dropped.reason[3] == "tagged wrong label" and kept.reason[0] == "not tagged wrong label"
    assert np.flatnonzero(~explorer.selection().keep).tolist() == [9]
    assert explorer.frame("wrong label")["position"].tolist() == [3, 5]
    assert dropped.random_twin(CORPUS.labels).size == 58
    explorer.tag("")
    assert explorer.counts == {"wrong label": 2}
    refused("no pair is tagged 'other'; tags are wrong label", explorer.selection, "other")
    for outside, named in (([60], 60), ([-1, 3], -1), ([3, 60], 60)):
        refused(rf"position {named} is outside 0\.\.59", explorer.select, outside)
    refused("use at most 60", explorer.tag, "x" * 61)


def test_tags_are_saved_and_taken_again(explorer, tmp_path):
    explorer.select([1, 2])
    explorer.tag("=cmd()")
    path = explorer.save(tmp_path / "tags.csv")
    assert "'=cmd()" in path.read_text()  # a spreadsheet does not run it
    again = explore(LOGITS, CORPUS)
    again.load(path)
    assert again.tags.tolist() == explorer.tags.tolist()
    refused("is not in the corpus", explore(LOGITS[:, 10:], CORPUS[10:]).load, path)
    path.write_text("a,b\n1,2\n")
    refused("no columns uid and tag", again.load, path)


def test_the_page_says_what_the_state_is(explorer):
    plot, panel = explorer.widget.children
    plot.selection = np.array([4, 2])
    assert explorer.selected.tolist() == [2, 4] and panel.state["selected"] == 2
    assert [row["premise"] for row in panel.state["rows"]] == CORPUS.premise[[2, 4]].tolist()
    panel.take({"act": "tag", "name": "odd"})
    assert panel.state["tags"] == {"odd": 2} and explorer.selection("odd").size == 58
    plot.hovering = 7
    assert panel.state["point"]["hypothesis"] == CORPUS.hypothesis[7]
    plot.hovering = None
    assert panel.state["point"]["position"] == 7
    panel.take({"act": "tag", "name": "x" * 61})
    assert "use at most 60" in panel.state["fault"] and explorer.counts == {"odd": 2}
    panel.take({"act": "run", "code": "1"})
    assert "unknown message" in panel.state["fault"]
    plot.selection = None
    assert panel.state["selected"] == 0
    # of a large lasso the first pairs are listed
    explorer = explore(np.random.default_rng(0).normal(size=(2, 300, 3)), make_split("train", 300))
    panel = explorer.widget.children[1]
    explorer.select(np.arange(250))
    assert panel.state["selected"] == 250 and len(panel.state["rows"]) == 100
