"""A chapter, a data map and a review in JupyterLab, in a browser. Run alone: pytest tests/browser/test_in_lab.py"""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from lab import run_all, save, serving, write_notebook
from scipy.spatial import Delaunay
from tiny import wait_until

from nli_lib import paths
from nli_lib.generate.review import annotations
from nli_lib.study.runner import Request
from nli_tools import review

pytestmark = [pytest.mark.slow, pytest.mark.notebooks]
CHAPTER = "20_z_statistics"  # draws a figure that answers the pointer, and trains nothing


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A copy of the project's notebooks, with the project's store of runs."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copytree(paths.NOTEBOOKS, folder / "notebooks")
    shutil.copytree(paths.BOOK, folder / "book", ignore=shutil.ignore_patterns("_build", "chapters"))
    (folder / "data").mkdir()
    for store in (paths.RUNS, paths.MODELS):
        store.mkdir(parents=True, exist_ok=True)
        (folder / "data" / store.name).symlink_to(store)
    return folder


@pytest.fixture(scope="module")
def address_of(home):
    """One JupyterLab for all tests; the address of a notebook."""
    with serving(home) as address_of:
        yield address_of


def test_a_chapter_runs_in_jupyterlab(address_of, home, browser):
    """Every cell runs, nothing fails, and the figure that answers the pointer is there."""
    path = home / "notebooks" / f"{CHAPTER}.ipynb"
    cells = sum(cell["cell_type"] == "code" for cell in json.loads(path.read_text())["cells"])
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    run_all(page, address_of(path))

    def done():
        save(page)
        ran = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code" and c["execution_count"]]
        failed = [output["evalue"] for cell in ran for output in cell["outputs"] if output["output_type"] == "error"]
        assert not failed, failed
        return len(ran) == cells

    wait_until(done, 120)
    place = page.locator(".jp-OutputArea .js-plotly-plot").first
    place.scroll_into_view_if_needed()
    assert place.bounding_box()["height"] > 100
    page.close()


# ---------------------------------------------------------------- data map


POINTS = 3_000
SCRIPT = "<img src=x onerror=document.title='executed'> <script>document.title='executed'</script> =1+1"
MAKE = f"""
import numpy as np
from nli_lib.corpora.planted import make_split
from nli_tools import explore
corpus = make_split("train", {POINTS})
corpus.table["premise"] = [{SCRIPT!r} + f" {{at}}" for at in range({POINTS})]
explorer = explore(np.random.default_rng(0).normal(size=(5, {POINTS}, 3)), corpus)
explorer.table.to_csv("table.csv", index=False)
"""
WRITE = """
if explorer.counts:
    np.save("dropped.npy", ~explorer.selection("odd one").keep)
    explorer.save("tags.csv")
"""


@pytest.mark.drill
def test_points_answer_and_a_lasso_becomes_a_selection(address_of, home, webgl):
    write_notebook(home / "explore.ipynb", MAKE, "explorer", WRITE)
    page = webgl.new_page(viewport={"width": 1300, "height": 1000})
    run_all(page, address_of(home / "explore.ipynb"))
    root = page.locator(".nli-explorer")
    root.wait_for(timeout=240_000)
    canvas = page.locator(".jp-OutputArea-output canvas").first
    canvas.wait_for(timeout=120_000)
    canvas.scroll_into_view_if_needed()
    page.wait_for_timeout(2_000)
    box = canvas.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    table = pd.read_csv(home / "table.csv").set_index("uid")

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
    assert f"{count:,} of {POINTS:,} selected, the first 100 below" in told
    listed = page.locator(".nli-explorer-table tr").nth(1).locator("td").nth(2).text_content()
    assert listed.startswith(SCRIPT)
    page.locator(".nli-explorer-tag").fill("odd one")
    page.locator(".nli-explorer-give").click()
    page.wait_for_function("document.querySelector('.nli-explorer-tags').textContent.includes('odd one')")
    page.locator(".jp-Notebook .jp-CodeCell").nth(2).locator(".jp-InputArea-editor").click()
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell')")
    wait_until((home / "tags.csv").exists)
    dropped = np.load(home / "dropped.npy")
    assert dropped.sum() == count and "executed" not in page.title()
    page.close()
    # the ring is convex: what lies between selected points is selected
    place = table[["variability", "confidence"]].to_numpy()
    assert (Delaunay(place[dropped]).find_simplex(place[~dropped]) < 0).all()
    tags = pd.read_csv(home / "tags.csv")
    assert tags["uid"].tolist() == table.index[dropped].tolist() and set(tags["tag"]) == {"odd one"}
    assert json.dumps(tags["premise"].iloc[0]).startswith(json.dumps(SCRIPT)[:-1])


# ---------------------------------------------------------------- review


PAIRS = 12
LABELS = {"1": "entailment", "2": "neutral", "3": "contradiction", "d": ""}
KEYS = "1231d23122d1"  # one a pair


def wait_for(page, done):
    shown = f"document.querySelector('.nli-review-progress')?.textContent.includes(' {done} of {PAIRS} ')"
    page.wait_for_function(f"{shown} && document.querySelector('.nli-review').dataset.turn !== ''")


def test_what_is_pressed_is_what_is_on_disk(address_of, home, browser, tmp_path, monkeypatch):
    """Twelve pairs by key, one of them revised, one answer undone, and the page loaded again in the middle."""
    at, path = range(PAIRS), str(tmp_path / "pairs.jsonl")
    texts = {"premise": [f"{SCRIPT} {each}" for each in at], "hypothesis": [f"It is {each}\r\nor so." for each in at]}
    table = pd.DataFrame({"uid": [f"p{each}" for each in at], **texts, "label": "neutral"})
    table.to_json(path, orient="records", lines=True)
    monkeypatch.setattr(paths, "EXPORTS", home / "exports")
    notebook = review.write_notebook(Request(scale="small", corpus=path), "anna", seed=1)
    folder = notebook.parent
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    run_all(page, address_of(notebook))
    cells = page.locator(".jp-Notebook .jp-Cell")
    wait_for(page, 0)
    root, pressed, revised = page.locator(".nli-review"), [], None
    for done, key in enumerate(KEYS):
        if done == 9:
            save(page)
            page.reload()
            wait_for(page, done)  # the kernel still has the widget, and no cell is run again
        shown = page.locator(".nli-review-premise").input_value()
        if done == 4:  # the wrong key, taken back
            root.press("3")
            wait_for(page, done + 1)
            root.press("u")
            wait_for(page, done)
            assert page.locator(".nli-review-premise").input_value() == shown
        if done == 5:  # keys in a text are letters
            root.press("r")
            page.keyboard.press("End")
            page.keyboard.type(" d123u")
            revised = page.locator(".nli-review-premise").input_value()
            page.wait_for_timeout(200)
            wait_for(page, done)
            page.keyboard.press("Escape")
        root.press(key)
        wait_for(page, done + 1)
        pressed.append((shown, key))
    assert page.title() != "executed" and page.locator(".nli-review img").count() == 0
    assert cells.count() == 2  # d twice would delete a cell of the notebook, 1 to 3 make headings of it
    assert "all done" in page.locator(".nli-review-progress").inner_text()
    page.close()
    found, expected = annotations(folder), [premise for premise, _ in pressed]
    assert found["premise"].tolist() == expected
    assert found["label"].fillna("").tolist() == [LABELS[key] for _, key in pressed]
    assert found["discarded"].tolist() == [key == "d" for _, key in pressed]
    expected[5] += " d123u"
    assert revised == expected[5] and found["revised_premise"].tolist() == expected
    assert found["revised_hypothesis"].tolist() == found["hypothesis"].tolist()  # line ends are no revision
    acts = [json.loads(line)["act"] for line in (folder / "answers.anna.jsonl").read_text().splitlines()]
    assert len(acts) == PAIRS + 2 and acts[4:7] == ["label", "undo", "discard"]
