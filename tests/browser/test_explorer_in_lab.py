"""The data map to explore, in JupyterLab in a real browser. Run alone: pytest tests/browser/test_explorer_in_lab.py"""

import json

import numpy as np
import pandas as pd
import pytest
from lab import run_all, serving, write_notebook
from scipy.spatial import Delaunay

PAIRS = 3_000
SCRIPT = "<img src=x onerror=document.title='executed'> <script>document.title='executed'</script> =1+1"
MAKE = f"""
import json, numpy as np, pandas as pd
from nli_lib.corpora import Corpus
from nli_tools import explore
random = np.random.default_rng(0)
table = pd.DataFrame({{"uid": [f"p{{at}}" for at in range({PAIRS})], "hypothesis": "It is so.",
                      "premise": [{SCRIPT!r} + f" {{at}}" for at in range({PAIRS})],
                      "label": random.integers(0, 3, {PAIRS}), "corpus": "mine", "split": "train"}})
corpus = Corpus(table, "mine", "train")
explorer = explore(random.normal(size=(5, {PAIRS}, 3)), corpus)
explorer.table.to_csv("table.csv", index=False)
"""
WRITE = """
if explorer.counts:
    np.save("dropped.npy", ~explorer.selection("odd one").keep)
    explorer.save("tags.csv")
"""


@pytest.mark.slow
@pytest.mark.notebooks
def test_points_answer_and_a_lasso_becomes_a_selection(webgl, tmp_path):
    pytest.importorskip("jscatter", reason="jupyter-scatter is not installed (extra: lab)")
    write_notebook(tmp_path / "explore.ipynb", MAKE, "explorer", WRITE)
    with serving(tmp_path, "explore.ipynb") as address:
        page = webgl.new_page(viewport={"width": 1300, "height": 1000})
        run_all(page, address)
        root = page.locator(".nli-explorer")
        root.wait_for(timeout=240_000)
        canvas = page.locator(".jp-OutputArea-output canvas").first
        canvas.wait_for(timeout=120_000)
        canvas.scroll_into_view_if_needed()
        page.wait_for_timeout(2_000)
        box = canvas.bounding_box()
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        table = pd.read_csv(tmp_path / "table.csv").set_index("uid")

        # a point answers with its text, its label and its scores
        for at in np.linspace(-0.2, 0.2, 60):
            page.mouse.move(middle[0] + at * box["width"], middle[1] + at * box["height"] / 2)
            page.wait_for_timeout(50)
            if page.locator(".nli-explorer-uid").count():
                break
        page.locator(".nli-explorer-uid").wait_for(timeout=10_000)
        shown = table.loc[page.locator(".nli-explorer-uid").text_content()]
        assert page.locator(".nli-explorer-premise").text_content() == f"premise {shown['premise']}"
        scores = page.locator(".nli-explorer-scores").text_content()
        assert f"label: {shown['label']}" in scores and f"confidence: {shown['confidence']:.3g}" in scores

        # a lasso becomes a table, a tag and a selection
        angles = np.linspace(0, 1.9 * np.pi, 24)  # let go where it began, it would be a click
        ring = [(middle[0] + 110 * np.cos(a), middle[1] + 90 * np.sin(a)) for a in angles]
        page.mouse.move(*ring[0])
        page.mouse.down()
        for place in ring:
            page.mouse.move(*place)
            page.wait_for_timeout(30)
        page.mouse.up()
        page.wait_for_function("+document.querySelector('.nli-explorer').dataset.selected > 100", timeout=30_000)
        count = int(root.get_attribute("data-selected"))
        assert page.locator(".nli-explorer-table tr").count() == 101  # with the head
        told = page.locator(".nli-explorer-count").text_content()
        assert f"{count:,} of {PAIRS:,} selected, the first 100 below" in told
        listed = page.locator(".nli-explorer-table tr").nth(1).locator("td").nth(2).text_content()
        assert listed.startswith(SCRIPT)
        page.locator(".nli-explorer-tag").fill("odd one")
        page.locator(".nli-explorer-give").click()
        page.wait_for_function("document.querySelector('.nli-explorer-tags').textContent.includes('odd one')")
        page.locator(".jp-Notebook .jp-CodeCell").nth(2).locator(".jp-InputArea-editor").click()
        page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell')")
        for _ in range(60):
            if (tmp_path / "tags.csv").exists():
                break
            page.wait_for_timeout(500)
        dropped = np.load(tmp_path / "dropped.npy")
        assert dropped.sum() == count
        assert "executed" not in page.title()
        page.close()
    # the ring is convex: what lies between selected points is selected
    place = table[["variability", "confidence"]].to_numpy()
    assert (Delaunay(place[dropped]).find_simplex(place[~dropped]) < 0).all()
    tags = pd.read_csv(tmp_path / "tags.csv")
    assert tags["uid"].tolist() == table.index[dropped].tolist() and set(tags["tag"]) == {"odd one"}
    assert json.dumps(tags["premise"].iloc[0]).startswith(json.dumps(SCRIPT)[:-1])
