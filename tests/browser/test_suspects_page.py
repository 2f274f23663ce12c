"""The page of suspects from disk and in JupyterLab. Run alone: pytest tests/browser/test_suspects_page.py"""

import csv
import io
import json
import time

import nbformat
import numpy as np
import pandas as pd
import pytest
from lab import serving

from nli_lib.measure.consensus import next_suspects
from nli_tools.suspects import read_decisions, read_page, reorder, worklist, write_page

CLASSES = ("entailment", "neutral", "contradiction")
SUSPECTS = 40
SCRIPT = "<script>document.title='executed'</script><img src=x onerror=document.title='executed'> </script><!--"
FORMULA = '=HYPERLINK("http://example.org","a")'
# one a suspect: keep, fix to the class that is not the label (1 to 3), ambiguous
KEYS = "kfakkfafkkaffkkkafkf"


def suspects():
    """40 suspects of four kinds; what stands in them must stay text."""
    random = np.random.default_rng(0)
    gap = np.sort(random.gamma(2, 1.5, SUSPECTS).round(4))[::-1]
    predicted, gold = random.integers(0, 3, SUSPECTS), np.zeros(SUSPECTS, int)
    gold = (predicted + random.integers(1, 3, SUSPECTS)) % 3
    table = pd.DataFrame(
        {"rank": range(1, SUSPECTS + 1), "uid": [f"=u{at}" if at % 7 == 0 else f"u{at}" for at in range(SUSPECTS)]}
    )
    table["premise"] = [f'{SCRIPT} {at}\r\nsecond line, "quoted"' for at in range(SUSPECTS)]
    table["hypothesis"] = FORMULA
    table["gold"], table["predicted"] = np.array(CLASSES)[gold], np.array(CLASSES)[predicted]
    table["kind"] = [f"P{p}G{g}" for p, g in zip(predicted, gold, strict=True)]
    return table.assign(gap=gap, p_gold=0.1)


@pytest.fixture
def page_file(tmp_path):
    made = worklist(
        suspects(), classes=CLASSES, title="Suspect labels of <b>mine</b>.csv", said=["Said."], warning="Not better."
    )
    return write_page(tmp_path / "suspects.html", made)


def press(page, key, row):
    """Decide on the shown suspect by key; what was pressed, as the csv must say it."""
    if key != "f":
        page.locator(".nli-worklist").press(key)
        return {"k": ("keep", ""), "a": ("ambiguous", "")}[key]
    number = next(at for at, name in enumerate(CLASSES) if name != row["gold"])
    page.locator(".nli-worklist").press(str(number + 1))
    return "fix", CLASSES[number]


def wait_for(page, done):
    page.locator(f".nli-worklist[data-done='{done}']").wait_for()  # the page's policy forbids what evaluates words


def exported(page):
    with page.expect_download() as download:
        page.locator(".nli-worklist").press("e")
    assert download.value.suggested_filename == "decisions.csv"
    return download.value.path().read_bytes().decode()


def work(page, rows, reload):
    """Twenty decisions by key with a note, an undo and a reload among them; [(uid, decision, fix_to)] as pressed."""
    pressed, root = [], page.locator(".nli-worklist")
    for done, key in enumerate(KEYS):
        if done == 9:
            reload()
            wait_for(page, done)
        uid = root.get_attribute("data-uid")
        if done == 4:  # a wrong key, taken back; the same suspect is shown again
            root.press("a")
            wait_for(page, done + 1)
            root.press("u")
            wait_for(page, done)
            assert root.get_attribute("data-uid") == uid
        if done == 6:  # keys in a note are letters
            root.press("n")
            page.keyboard.type('=kau1 see "him"')
            wait_for(page, done)
            page.keyboard.press("Escape")
        pressed.append((uid, *press(page, key, rows.loc[uid])))
        wait_for(page, done + 1)
    return pressed


def check_csv(text, pressed, rows, tmp_path):
    """What left the page is what was pressed, in that order, and no cell of it is a formula."""
    cells = list(csv.reader(io.StringIO(text)))
    assert not [value for row in cells for value in row if value[:1] in ("=", "+", "-", "@", "\t", "\r")]
    path = tmp_path / "exported.csv"
    path.write_text(text, newline="")
    found = read_decisions(path, CLASSES)
    assert list(zip(found.index, found["decision"], found["fix_to"], strict=True)) == pressed
    assert found["note"].tolist() == ["" if at != 6 else '=kau1 see "him"' for at in range(len(pressed))]
    table = pd.read_csv(path, keep_default_na=False)
    assert table["premise"].tolist() == [rows.loc[uid, "premise"] for uid, *_ in pressed]
    assert table["hypothesis"].tolist() == ["'" + FORMULA] * len(pressed)
    return path


def learnt_order(rows, pressed):
    """The order that the library learns from the same decisions."""
    code = {uid: {"fix": 1.0, "keep": 0.0}.get(decision, np.nan) for uid, decision, _ in pressed}
    told = rows.index.map(code).to_numpy(dtype=float)
    order = next_suspects(rows["gap"], rows["kind"], told)
    decided = set(code)
    return [uid for uid in rows.index[order] if uid not in decided]


def queue(page):
    """The uids that wait, in the order of the page."""
    return page.locator(".nli-next tr[data-uid]").evaluate_all("lines => lines.map((line) => line.dataset.uid)")


def test_what_is_pressed_is_what_leaves_the_page(page_file, browser, tmp_path):
    """From disk, without a network: twenty keys, a reload in the middle, the export, and the order learnt anew."""
    rows = suspects().set_index("uid")
    context = browser.new_context(accept_downloads=True)
    page, asked, said = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(page_file.as_uri())
    wait_for(page, 0)
    title = page.title()
    assert title == "Suspect labels of <b>mine</b>.csv" == page.locator("h1").inner_text()
    assert page.locator(".nli-warning").inner_text() == "Not better."
    pressed = work(page, rows, page.reload)
    assert page.title() == title and page.locator("img").count() == 0 and said == []
    assert SCRIPT in page.locator(".nli-premise").first.inner_text()
    assert page.locator(".nli-hypothesis").first.inner_text() == FORMULA
    path = check_csv(exported(page), pressed, rows, tmp_path)

    root = page.locator(".nli-worklist")
    assert root.get_attribute("data-ask") == "true"  # twenty decisions: the page offers to learn
    root.press("l")
    expected = learnt_order(rows, pressed)
    assert expected != [uid for uid in rows.index if uid in set(expected)]  # it is another order
    assert queue(page) == expected[:12]
    page.reload()
    wait_for(page, len(pressed))
    assert queue(page) == expected[:12]  # and a reload keeps it
    assert {url for url in asked if not url.startswith(("file:", "blob:"))} == set()

    # --decided puts the list into the same order, and a page made of that begins there
    folder = tmp_path / "list"
    folder.mkdir()
    suspects().to_json(folder / "suspects.jsonl", orient="records", lines=True)
    reorder(folder, read_decisions(path))
    again = pd.read_json(folder / "suspects.jsonl", lines=True)
    assert again["uid"].tolist()[: len(expected)] == expected
    context.close()


def test_a_csv_goes_into_a_fresh_page(page_file, browser, tmp_path):
    """What one page exports another reads: the same decisions, the same queue; a wrong file is refused in words."""
    rows = suspects().set_index("uid")
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    page.goto(page_file.as_uri())
    wait_for(page, 0)
    pressed = work(page, rows, page.reload)
    page.locator(".nli-worklist").press("l")
    text, waiting = exported(page), queue(page)
    context.close()
    path = tmp_path / "decisions.csv"
    path.write_text(text, newline="")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("uid,decision\nu1,keep\nu2,fixx\n")
    context = browser.new_context(accept_downloads=True)  # a fresh profile: nothing is kept in it
    page = context.new_page()
    page.goto(page_file.as_uri())
    wait_for(page, 0)
    page.locator(".nli-file").set_input_files(wrong)
    page.locator(".nli-fault", has_text='row 3, decision "fixx"').wait_for()
    wait_for(page, 0)
    page.locator(".nli-file").set_input_files(path)
    wait_for(page, len(pressed))
    assert exported(page) == text and queue(page) == waiting
    context.close()


def test_two_windows_and_a_page_that_is_made_anew(page_file, browser):
    """A second window loses nothing of the first; what --decided put into a page comes before what was kept earlier."""
    context = browser.new_context()
    one, other = context.new_page(), context.new_page()
    for page in (one, other):
        page.goto(page_file.as_uri())
        wait_for(page, 0)
    one.bring_to_front()
    one.locator(".nli-worklist").press("k")
    wait_for(one, 1)
    other.bring_to_front()  # told by the browser
    wait_for(other, 1)
    other.locator(".nli-worklist").press("a")
    wait_for(other, 2)
    one.bring_to_front()
    wait_for(one, 2)
    one.reload()
    wait_for(one, 2)
    first, second, third = suspects()["uid"][:3]
    decisions = {first: ("fix", "neutral", "in a spreadsheet"), third: ("keep", "", "")}
    table = suspects().set_index("uid")
    table.loc[list(decisions), ["decision", "fix_to", "note"]] = list(decisions.values())
    time.sleep(1.1)  # the page is of a later second
    more = {"classes": CLASSES, "title": "Suspect labels of <b>mine</b>.csv"}
    write_page(page_file, worklist(table.reset_index(), **more))
    one.reload()
    wait_for(one, 3)
    cells = one.locator(".nli-decided tr[data-uid]").evaluate_all(
        "lines => lines.map((line) => [line.dataset.uid, line.cells[0].textContent, line.cells[1].textContent])"
    )
    assert {uid: rest for uid, *rest in cells} == {
        first: ["fix to neutral", "in a spreadsheet"], second: ["ambiguous", ""], third: ["keep", ""],
    }  # fmt: skip
    one.locator(".nli-worklist").press("u")  # the last decision of the page is taken back, and stays so
    wait_for(one, 2)
    one.reload()
    wait_for(one, 2)
    context.close()


def test_the_page_says_when_the_browser_keeps_nothing(page_file, browser):
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script("Storage.prototype.setItem = () => { throw new Error('no room') }")
    page.goto(page_file.as_uri())
    wait_for(page, 0)
    page.locator(".nli-worklist").press("k")
    wait_for(page, 1)
    assert "Not kept: no room. Export the decisions" in page.locator(".nli-fault").inner_text()
    context.close()


@pytest.mark.slow
@pytest.mark.notebooks
def test_the_same_list_in_jupyterlab(page_file, browser, tmp_path):
    """Twenty decisions by key in the widget, the page loaded again in the middle; the file is the page's csv."""
    rows = suspects().set_index("uid")
    code = f"from nli_tools.explorer import suspects_widget\n\nsuspects_widget({str(tmp_path)!r})"
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code, id="list")], metadata={"kernelspec": kernel})
    nbformat.write(book, tmp_path / "list.ipynb")
    with serving(tmp_path, "list.ipynb") as address:
        context = browser.new_context(accept_downloads=True, viewport={"width": 1300, "height": 900})
        page = context.new_page()
        page.goto(address)
        page.wait_for_function(
            "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel", timeout=60_000
        )
        page.locator(".jp-Notebook .jp-Cell").last.wait_for()
        page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
        wait_for(page, 0)

        def reload():
            page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
            page.reload()

        pressed = work(page, rows, reload)
        assert page.title() != "executed" and page.locator(".nli-worklist img").count() == 0
        assert page.locator(".jp-Notebook .jp-Cell").count() == 1  # the keys were not JupyterLab's
        text = exported(page)
        sent = list(csv.reader(io.StringIO(text)))
        for _ in range(100):  # the kernel writes a moment after the page has counted
            written = list(csv.reader(io.StringIO((tmp_path / "decisions.csv").read_bytes().decode())))
            if len(written) == len(sent):
                break
            page.wait_for_timeout(100)
        context.close()
    assert written == sent
    check_csv(text, pressed, rows, tmp_path)
    assert json.dumps(read_page(page_file)["rows"])  # the page is as it was
