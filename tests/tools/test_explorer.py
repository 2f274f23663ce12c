"""The state of an exploration, without a page. Run alone: pytest tests/tools/test_explorer.py"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from nli_lib.corpora.planted import make_split
from nli_lib.measure import dynamics
from nli_tools import explore
from nli_tools.exchange import Dynamics, IntegrationError

CORPUS = make_split("train", 60)
LOGITS = np.random.default_rng(0).normal(size=(4, 60, 3))


@pytest.fixture
def explorer():
    return explore(LOGITS, CORPUS)


def test_runs_arrays_and_recordings_give_the_same_map(explorer):
    order = np.random.default_rng(1).permutation(60)
    recorded = Dynamics(LOGITS[:, order], CORPUS.labels[order], CORPUS.uid[order].astype(str), "train")
    run = SimpleNamespace(logits=LOGITS, labels=CORPUS.labels)
    for given in (recorded, run):
        pd.testing.assert_frame_equal(explore(given, CORPUS).table, explorer.table)
    np.testing.assert_array_equal(explorer.table["confidence"], dynamics.confidence(LOGITS, CORPUS.labels))
    assert explorer.table["premise"].tolist() == CORPUS.premise.tolist()


def test_scores_of_ones_own_are_drawn():
    explorer = explore(None, CORPUS, scores={"a": np.arange(60), "b": np.ones(60)}, x="a", y="b", color="label")
    assert explorer.point(7)["a"] == "7"


def test_what_does_not_fit_the_corpus():
    with pytest.raises(IntegrationError, match=r"shape \(4, 59, 3\): \(epochs, 60, 3\) is needed"):
        explore(LOGITS[:, :59], CORPUS)
    with pytest.raises(IntegrationError, match="other labels"):
        explore(SimpleNamespace(logits=LOGITS, labels=(CORPUS.labels + 1) % 3), CORPUS)
    with pytest.raises(IntegrationError, match=r"a has shape \(2,\)"):
        explore(LOGITS, CORPUS, scores={"a": [1, 2]})
    with pytest.raises(IntegrationError, match="a score may not be called label"):
        explore(LOGITS, CORPUS, scores={"label": np.ones(60)})
    with pytest.raises(IntegrationError, match="there is no variability to draw"):
        explore(None, CORPUS, scores={"a": np.ones(60)})


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
    with pytest.raises(IntegrationError, match="no pair is tagged 'other'; tags are wrong label"):
        explorer.selection("other")


def test_tags_are_saved_and_taken_again(explorer, tmp_path):
    explorer.select([1, 2])
    explorer.tag("=cmd()")
    explorer.save(tmp_path / "tags.csv")
    assert "'=cmd()" in (tmp_path / "tags.csv").read_text()  # a spreadsheet does not run it
    again = explore(LOGITS, CORPUS)
    again.load(tmp_path / "tags.csv")
    assert again.tags.tolist() == explorer.tags.tolist()
    with pytest.raises(IntegrationError, match="is not in the corpus"):
        explore(LOGITS[:, 10:], CORPUS[10:]).load(tmp_path / "tags.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(IntegrationError, match="no columns uid and tag"):
        again.load(tmp_path / "other.csv")


def test_positions_outside_and_long_tags(explorer):
    for outside, named in (([60], 60), ([-1, 3], -1), ([3, 60], 60)):
        with pytest.raises(IntegrationError, match=rf"position {named} is outside 0\.\.59"):
            explorer.select(outside)
    with pytest.raises(IntegrationError, match="use up to 60"):
        explorer.tag("x" * 61)


def test_the_page_says_what_the_state_is(explorer):
    pytest.importorskip("jscatter", reason="jupyter-scatter is not installed (extra: lab)")
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
    assert "use up to 60" in panel.state["fault"] and explorer.counts == {"odd": 2}
    panel.take({"act": "run", "code": "1"})
    assert "means nothing" in panel.state["fault"]


def test_a_large_lasso_lists_its_first_pairs():
    pytest.importorskip("jscatter", reason="jupyter-scatter is not installed (extra: lab)")
    corpus = make_split("train", 300)
    explorer = explore(np.random.default_rng(0).normal(size=(2, 300, 3)), corpus)
    panel = explorer.widget.children[1]
    explorer.select(np.arange(250))
    assert panel.state["selected"] == 250 and len(panel.state["rows"]) == 100
