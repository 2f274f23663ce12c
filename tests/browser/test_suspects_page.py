"""The page of suspects from disk and in JupyterLab. Run alone: pytest tests/browser/test_suspects_page.py"""

import csv
import io
import json
import time

import numpy as np
import pandas as pd
import pytest
from lab import run_all, save, serving, write_notebook
from tiny import wait_until
from typer.testing import CliRunner

from nli_lib import paths
from nli_lib.corpora.corpus import LABELS
from nli_lib.measure.consensus import next_suspects
from nli_tools.commands import app
from nli_tools.suspects import read_decisions, read_page, reorder, worklist, write_page

SUSPECTS = 40
SCRIPT = "<script>document.title='executed'</script><img src=x onerror=document.title='executed'> </script><!--"
FORMULA = '=HYPERLINK("http://example.org","a")'
TITLE = "Suspect labels of <b>mine</b>.csv"
NOTE = '=kau1 see "him"'
# one a suspect: keep, fix to the class that is not the label (1 to 3), ambiguous
KEYS = "kfakkfafkkaffkkkafkfkakfk"


def suspects():
    """40 suspects of four kinds by uid; what stands in them must stay text."""
    random = np.random.default_rng(0)
    gap = np.sort(random.gamma(2, 1.5, SUSPECTS).round(4))[::-1]
    predicted = random.integers(0, 3, SUSPECTS)
    gold, at = (predicted + random.integers(1, 3, SUSPECTS)) % 3, range(SUSPECTS)
    texts = {"premise": [f'{SCRIPT} {each}\r\nsecond line, "quoted"' for each in at], "hypothesis": FORMULA}
    names = {"gold": np.array(LABELS)[gold], "predicted": np.array(LABELS)[predicted]}
    names["kind"] = [f"P{p}G{g}" for p, g in zip(predicted, gold, strict=True)]
    uid = [f"=u{each}" if each % 7 == 0 else f"u{each}" for each in at]
    table = pd.DataFrame({"rank": range(1, SUSPECTS + 1), "uid": uid, **texts, **names, "gap": gap, "p_gold": 0.1})
    table = table.assign(variation=0.6, variation_by="people: neutral 3, entailment 2")
    return table.set_index("uid")


def write(path, table, **more):
    return write_page(path, worklist(table.reset_index(), classes=LABELS, title=TITLE, **more))


@pytest.fixture
def page_file(tmp_path):
    return write(tmp_path / "suspects.html", suspects(), said=["Said."], warning="Not better.")


@pytest.fixture
def fresh(browser, page_file):
    """Opens the page in a profile of its own, in which nothing is kept."""
    contexts = []

    def opened(start=""):
        contexts.append(browser.new_context(accept_downloads=True))
        page = contexts[-1].new_page()
        page.add_init_script(start)
        page.goto(page_file.as_uri())
        wait_for(page, 0)
        return page

    yield opened
    for context in contexts:
        context.close()


def press(page, key):
    page.locator(".nli-worklist").press(key)


def wait_for(page, done):
    page.locator(f".nli-worklist[data-done='{done}']").wait_for()  # the page's policy forbids what evaluates words


def reloaded(page, done):
    page.reload()
    wait_for(page, done)


def exported(page):
    with page.expect_download() as download:
        press(page, "e")
    assert download.value.suggested_filename == "decisions.csv"
    return download.value.path().read_bytes().decode()


def work(page, rows, reload):
    """25 decisions by key with a note, an undo and a reload among them; [(uid, decision, fix_to)] as pressed."""
    pressed, places, root = [], [], page.locator(".nli-worklist")
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
            page.keyboard.type(NOTE)
            wait_for(page, done)
            page.keyboard.press("Escape")
        other = next(at for at, name in enumerate(LABELS) if name != rows.loc[uid, "gold"])
        root.press(str(other + 1) if key == "f" else key)
        said = {"k": ("keep", ""), "a": ("ambiguous", ""), "f": ("fix", LABELS[other])}[key]
        pressed.append((uid, *said))
        wait_for(page, done + 1)
        places.append(page.locator(".nli-button").first.evaluate("each => each.offsetTop"))
    assert len(set(places)) == 1, "the buttons move under the hand"
    return pressed


def check_csv(text, pressed, rows, tmp_path):
    """What left the page is what was pressed, in that order, and no cell of it is a formula."""
    cells = list(csv.reader(io.StringIO(text)))
    assert not [value for row in cells for value in row if value[:1] in ("=", "+", "-", "@", "\t", "\r")]
    path = tmp_path / "exported.csv"
    path.write_text(text, newline="")
    found = read_decisions(path, LABELS)
    assert list(zip(found.index, found["decision"], found["fix_to"], strict=True)) == pressed
    assert found["note"].tolist() == [NOTE if at == 6 else "" for at in range(len(pressed))]
    table = pd.read_csv(path, keep_default_na=False)
    assert table["premise"].tolist() == [rows.loc[uid, "premise"] for uid, *_ in pressed]
    assert table["hypothesis"].tolist() == ["'" + FORMULA] * len(pressed)
    return path


def queue(page):
    """The uids that wait, in the order of the page."""
    return page.locator(".nli-next tr[data-uid]").evaluate_all("lines => lines.map((line) => line.dataset.uid)")


def test_what_is_pressed_is_what_leaves_the_page_and_goes_into_another(page_file, browser, listened, fresh, tmp_path):
    """From disk, without a network: 25 keys, a reload in the middle, the order learnt anew, the export; a fresh
    page reads that, and refuses another file in words."""
    rows = suspects()
    page = listened(browser.new_context(accept_downloads=True), page_file)
    wait_for(page, 0)
    assert page.title() == TITLE == page.locator("h1").inner_text()
    assert page.locator(".nli-warning").inner_text() == "Not better."
    assert "People split here: neutral 3, entailment 2. uid" in page.locator(".nli-facts").inner_text()
    pressed = work(page, rows, page.reload)
    assert page.title() == TITLE and page.locator("img").count() == 0
    assert SCRIPT in page.locator(".nli-premise").first.inner_text()
    assert page.locator(".nli-hypothesis").first.inner_text() == FORMULA
    path = check_csv(exported(page), pressed, rows, tmp_path)

    # the order that the library learns from the same decisions
    code = {uid: {"fix": 1.0, "keep": 0.0}.get(decision, np.nan) for uid, decision, _ in pressed}
    order = next_suspects(rows["gap"], rows["kind"], rows.index.map(code).to_numpy(dtype=float))
    expected = [uid for uid in rows.index[order] if uid not in code]
    assert expected != [uid for uid in rows.index if uid in set(expected)]  # it is another order
    assert page.locator(".nli-worklist").get_attribute("data-ask") == "true"  # it offers to learn
    press(page, "l")
    assert queue(page) == expected[:12]
    reloaded(page, len(pressed))
    assert queue(page) == expected[:12]  # and a reload keeps it

    # --decided puts the list into the same order, and a page made of that begins there
    rows.reset_index().to_json(tmp_path / "suspects.jsonl", orient="records", lines=True)
    reorder(tmp_path, read_decisions(path))
    again = pd.read_json(tmp_path / "suspects.jsonl", lines=True)
    assert again["uid"].tolist()[: len(expected)] == expected

    text, waiting, other, wrong = exported(page), queue(page), fresh(), tmp_path / "wrong.csv"
    page.context.close()
    wrong.write_text("uid,decision\nu1,keep\nu2,fixx\n")
    other.locator(".nli-file").set_input_files(wrong)
    other.locator(".nli-fault", has_text='row 3, decision "fixx"').wait_for()
    wait_for(other, 0)
    path.write_text(text, newline="")
    other.locator(".nli-file").set_input_files(path)
    wait_for(other, len(pressed))
    assert exported(other) == text and queue(other) == waiting


def test_thirty_decisions_say_how_right_the_list_of_a_file_is(home, browser, tmp_path):
    """From a csv to the first precision in one sitting; the command says the same of the decisions that the page kept,
    and begins the next page with them."""
    random, at = np.random.default_rng(0), np.arange(600)
    true = random.integers(0, 3, 600)
    label = np.where(random.random(600) < 0.35, random.integers(0, 3, 600), true)
    words = np.array(["really", "maybe", "never"])[np.where(random.random(600) < 0.2, random.integers(0, 3, 600), true)]
    table = pd.DataFrame({"premise": [f"A cat {each} sleeps" for each in at]})
    table = table.assign(hypothesis=[f"It {word} moves" for word in words], label=np.array(LABELS)[label])
    table.assign(uid=[f"n{each}" for each in at]).to_csv(tmp_path / "mine.csv", index=False)

    def asked(*words):
        done = CliRunner().invoke(app, ["suspects", str(tmp_path / "mine.csv"), "--fast", *words])
        assert done.exit_code == 0, done.output
        return done.output

    said, page = asked(), browser.new_page(accept_downloads=True)
    listed = next(paths.EXPORTS.glob("*/fast/suspects.html"))
    page.goto(listed.as_uri())
    right, root = page.locator(".nli-right"), page.locator(".nli-worklist")
    assert right.inner_text().startswith("By the prior alone: of the first 100 suspects, about ")
    assert right.inner_text() in said
    for done in range(30):
        number = int(root.get_attribute("data-uid")[1:])
        wrong = label[number] != true[number]
        root.press(str(true[number] + 1) if wrong else "k")
        wait_for(page, done + 1)
    press(page, "l")
    told = right.inner_text()
    assert told.startswith("From 30 decisions: of the first 100 suspects, about ") and "the next 50 would find" in told
    (tmp_path / "decisions.csv").write_text(exported(page), newline="")
    assert told in asked("--decided", str(tmp_path / "decisions.csv"))
    made = pd.read_csv(listed.with_suffix(".csv")).set_index("uid")
    assert made["p_wrong"].between(0, 1).all() and set(made.loc[made["decision"] == "fix", "p_wrong"]) == {1.0}
    page.goto(listed.as_uri())
    wait_for(page, 30)
    assert right.inner_text() == told
    page.close()


def test_one_direction_is_shown_alone_with_what_is_left_of_it(fresh):
    page, rows = fresh(), suspects()
    direction = (rows["gold"] + " → " + rows["predicted"]).value_counts()
    options = page.locator(".nli-direction option").all_inner_texts()
    assert options[0] == f"all directions ({len(rows)} left)" and len(options) == 1 + len(direction)
    assert {f"{name} ({count} left)" for name, count in direction.items()} == set(options[1:])
    page.locator(".nli-direction").select_option(direction.index[0])
    alone = rows[rows["gold"] + " → " + rows["predicted"] == direction.index[0]]
    assert queue(page) == alone.index[:12].tolist()
    press(page, "k")
    wait_for(page, 1)
    assert page.locator(".nli-direction option:checked").inner_text() == f"{direction.index[0]} ({len(alone) - 1} left)"
    assert not page.locator(".nli-help").is_visible()
    press(page, "?")
    assert "fix to neutral (2)" in page.locator(".nli-help").inner_text()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.locator(".nli-worklist").evaluate("each => document.documentElement.scrollWidth") <= 390


def test_two_windows_and_a_page_that_is_made_anew(page_file, fresh):
    """A second window loses nothing of the first; what --decided put into a page comes before what was kept earlier."""
    one = fresh()
    other = one.context.new_page()
    other.goto(page_file.as_uri())
    wait_for(other, 0)
    for done, (page, key) in enumerate(((one, "k"), (other, "a")), 1):
        page.bring_to_front()  # told by the browser
        wait_for(page, done - 1)
        press(page, key)
        wait_for(page, done)
    one.bring_to_front()
    wait_for(one, 2)
    reloaded(one, 2)
    table = suspects()
    first, second, third = table.index[:3]
    decisions = {first: ("fix", "neutral", "in a spreadsheet"), third: ("keep", "", "")}
    table.loc[list(decisions), ["decision", "fix_to", "note"]] = list(decisions.values())
    time.sleep(1.1)  # the page is of a later second
    write(page_file, table)
    reloaded(one, 3)
    cells = "[line.dataset.uid, line.cells[0].textContent, line.cells[1].textContent]"
    found = one.locator(".nli-decided tr[data-uid]").evaluate_all(f"lines => lines.map((line) => {cells})")
    said = {first: ["fix to neutral", "in a spreadsheet"], second: ["ambiguous", ""], third: ["keep", ""]}
    assert {uid: rest for uid, *rest in found} == said
    press(one, "u")  # the last decision of the page is taken back, and stays so
    wait_for(one, 2)
    reloaded(one, 2)


def test_the_page_says_when_the_browser_keeps_nothing(fresh):
    page = fresh("Storage.prototype.setItem = () => { throw new Error('no room') }")
    press(page, "k")
    wait_for(page, 1)
    assert "Not saved: no room. Export the decisions" in page.locator(".nli-fault").inner_text()


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.notebooks
def test_the_same_list_in_jupyterlab(page_file, browser, tmp_path):
    """25 decisions by key in the widget, the page loaded again in the middle; the file is the page's csv."""
    rows = suspects()
    code = f"from nli_tools.explorer import suspects_widget\n\nsuspects_widget({str(tmp_path)!r})"
    write_notebook(tmp_path / "list.ipynb", code)
    with serving(tmp_path) as address_of:
        page = browser.new_page(accept_downloads=True, viewport={"width": 1300, "height": 900})
        run_all(page, address_of(tmp_path / "list.ipynb"))
        wait_for(page, 0)

        def reload():
            save(page)
            page.reload()

        pressed = work(page, rows, reload)
        assert page.title() != "executed" and page.locator(".nli-worklist img").count() == 0
        assert page.locator(".jp-Notebook .jp-Cell").count() == 1  # the keys were not JupyterLab's
        text = exported(page)
        sent = list(csv.reader(io.StringIO(text)))
        # the kernel writes a moment after the page has counted
        wait_until(lambda: sent == list(csv.reader(io.StringIO((tmp_path / "decisions.csv").read_bytes().decode()))))
        page.close()
    check_csv(text, pressed, rows, tmp_path)
    assert json.dumps(read_page(page_file)["rows"])  # the page is as it was
