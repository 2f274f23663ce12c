"""A review in JupyterLab, in a real browser. Run alone: pytest tests/browser/test_review_page.py"""

import json

import pandas as pd
import pytest
from lab import run_all, serving

from nli_lib.generate.review import annotations
from nli_lib.study.runner import Request
from nli_tools import review

PAIRS = 20
LABELS = {"1": "entailment", "2": "neutral", "3": "contradiction", "d": ""}
KEYS = "1231d23122311d23132d"  # one a pair
SCRIPT = "<img src=x onerror=document.title='executed'> =1+1"


@pytest.fixture
def file(tmp_path):
    texts = {"premise": [f"{SCRIPT} {at}" for at in range(PAIRS)], "label": "neutral"}
    texts["hypothesis"] = [f"It is {at}\r\nor so." for at in range(PAIRS)]
    path = tmp_path / "pairs.jsonl"
    pd.DataFrame({"uid": [f"p{at}" for at in range(PAIRS)], **texts}).to_json(path, orient="records", lines=True)
    return path


def wait_for(page, done):
    page.wait_for_function(
        f"document.querySelector('.nli-review-progress')?.textContent.includes(' {done} of {PAIRS} ')"
        " && document.querySelector('.nli-review').dataset.turn !== ''"
    )


@pytest.mark.slow
@pytest.mark.notebooks
def test_what_is_pressed_is_what_is_on_disk(file, browser, tmp_path, monkeypatch):
    """Twenty pairs by key, one of them revised, one answer undone, and the page loaded again in the middle."""
    monkeypatch.setattr(review.paths, "EXPORTS", tmp_path / "exports")
    notebook = review.write_notebook(Request(scale="small", corpus=str(file)), "anna", seed=1)
    folder = notebook.parent
    with serving(tmp_path, notebook.relative_to(tmp_path)) as address:
        page = browser.new_page(viewport={"width": 1300, "height": 900})
        run_all(page, address)
        cells = page.locator(".jp-Notebook .jp-Cell")
        wait_for(page, 0)
        root, pressed, revised = page.locator(".nli-review"), [], None
        for done, key in enumerate(KEYS):
            if done == 9:
                page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
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
