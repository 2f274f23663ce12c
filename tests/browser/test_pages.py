"""Every page of the built book in a real browser. Run alone: pytest tests/browser/test_pages.py"""

import html
import json
import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest
import yaml

from nli_lib import paths
from nli_lib.claims import RECORD, ledger, read_claims
from nli_lib.ledger import ledger_table
from nli_lib.store import alone
from nli_lib.study import book
from nli_lib.study.notebook import NOTICES
from nli_lib.study.runner import Request

driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra: test)")
pytestmark = [pytest.mark.slow, pytest.mark.notebooks]
LAPTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
NO_CAPTION = "all => all.filter(each => !each.alt || each.alt.startsWith('Figure in the')).map(each => each.alt)"
MOST = 60  # words of an answer
LOCAL = ("file:", "data:", "blob:")
heard = {}  # window -> what the page that it shows has reported

SCRIPTS = yaml.safe_load(Path(__file__).with_name("scripts.yaml").read_text(encoding="utf-8"))
ANSWERS = "() => [...document.querySelectorAll('.hoverlayer .hovertext')].some(each => each.textContent.trim())"
THEME = "theme => document.documentElement.dataset.theme = theme"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The smoke study's book: the project's own if it is one, brought up to date, else one built once beside it."""
    own = book.site(Request())
    said = own.chapters / "words.json"
    if said.is_file() and json.loads(said.read_bytes())["announcement"] == NOTICES["smoke"].capitalize():
        book.build(own.request)
        return own
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"  # of all workers
    built = book.Site(Request(), folder / "book", folder / "built")
    with alone(folder, "the book"):
        if not (done := folder / "done").exists():
            shutil.copytree(paths.BOOK, built.source, ignore=shutil.ignore_patterns("_build"))
            book.build(built.request, built)
            done.touch()
    return built


def listen(page):
    """Have what a page reports gathered in `heard`. One window shows all pages: its scripts are compiled once."""
    heard[page] = []

    def told(text, *, wrong=True):
        if wrong:
            heard[page].append(text)

    page.on("console", lambda message: told(f"console: {message.text}", wrong=message.type == "error"))
    page.on("pageerror", lambda error: told(f"script: {error}"))
    page.on("request", lambda asked: told(f"asks for {asked.url}", wrong=not asked.url.startswith(LOCAL)))
    page.on("dialog", lambda dialog: (told(f"a live script: {dialog.message}"), dialog.dismiss()))


def problems(page, file):
    """What is wrong with one page, in words."""
    found = heard[page] = []
    page.set_viewport_size(LAPTOP)
    page.goto(file.as_uri())
    if page.locator(".tag_answer").count():
        if (words := len(page.evaluate(SCRIPTS["said"]).split())) > MOST:
            found.append(f"the answer has {words} words")
        if page.locator(".verdict").first.bounding_box()["y"] > LAPTOP["height"] / 2:
            found.append("the verdict is not beside the question")
        figures = page.locator(".tag_answer img, .tag_answer .interactive").all()
        ends = [box["y"] + box["height"] for box in (each.bounding_box() for each in figures[:1])]
        if not ends or ends[0] > LAPTOP["height"]:
            found.append(f"the figure of the answer ends {ends} px down")
    for theme in ("dark", "light"):
        page.evaluate(THEME, theme)
        if faint := page.evaluate(SCRIPTS["faint"]):
            found.append(f"faint in {theme}: {faint}")
    for place in page.locator(".interactive").all():
        place.scroll_into_view_if_needed()
        page.wait_for_function("place => place._fullData", arg=place.element_handle())
        page.mouse.move(*place.evaluate(SCRIPTS["point"]))
        try:
            page.wait_for_function(ANSWERS, timeout=5_000)
        except driver.TimeoutError:
            found.append("an interactive figure does not answer the pointer")
    if figures := page.eval_on_selector_all("article img", NO_CAPTION):
        found.append(f"figures without a caption: {figures}")
    page.set_viewport_size(PHONE)
    if page.locator(".term").count():
        page.locator(".term").first.focus()
        if page.evaluate("getComputedStyle(document.activeElement, '::after').content") == "none":
            found.append("a term does not explain itself")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")  # drawn anew
    if (width := page.evaluate("document.documentElement.scrollWidth")) > PHONE["width"]:
        found.append(f"{width} px wide on a phone")
    return found


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.drill)])
def test_pages(site, browser, every):
    """The first chapter of each part and one in six of the others; in `make drill` all, and one in six of the
    reference's modules, which one template makes."""
    first = {name.split("/")[-1][0]: name for name in reversed(site.pages) if name.startswith("chapters/")}
    modules = [name for name in site.pages if name.startswith("reference/")]
    found, page = {}, browser.new_page()
    listen(page)
    for name in sorted({*site.pages} - {*modules} | {*modules[::6]} if every else {*site.pages[::6], *first.values()}):
        found[name] = problems(page, site.first.parent / f"{name}.html")
        if (site.source / f"{name}.ipynb").is_file() and not page.locator(".tag_answer").count():
            found[name].append("the chapter has no answer")
    assert not any(found.values()), {name: said for name, said in found.items() if said}


def test_every_link_has_its_target(site):
    """Links between the pages, to tables and to rows of the ledger; those to other sites are not followed."""
    root = site.first.parent
    text = {root / f"{name}.html": (root / f"{name}.html").read_text(encoding="utf-8") for name in site.pages}
    ids = {page: set(re.findall(r'\bid="([^"]+)"', each)) for page, each in text.items()}
    lost, rows = [], 0
    for page, each in text.items():
        for link in set(re.findall(r'<a\b[^>]*\bhref="([^"]+)"', each)):
            path, _, place = unquote(html.unescape(link)).partition("#")
            if ":" in path:
                continue
            target = (page.parent / path).resolve() if path else page
            if not target.is_file() or (place and target in ids and place not in ids[target]):
                lost.append((page.name, link))
            rows += page == root / "index.html" and "63_claims.html#" in link
    assert not lost
    assert rows >= 5, "the front page leads to the rows of the ledger"


def test_the_ledger_is_filtered_and_sorted(site, browser):
    page = browser.new_page(viewport=LAPTOP)
    page.goto((site.first.parent / "chapters" / "63_claims.html").as_uri())
    rows = page.locator(".ledger tr[data-verdict]:visible")
    everything = rows.count()
    page.locator(".ledger select[data-by=paper]").select_option("WANLI")
    assert 0 < rows.count() < everything and page.locator(".ledger tr.paper:visible").count() == 1
    assert page.locator(".ledger output").inner_text() == f"{rows.count()} claims"
    page.locator(".ledger thead button", has_text="Claim").click()
    claims = page.locator(".ledger tr:visible td:nth-child(2)").all_inner_texts()
    order = "texts => texts.sort((a, b) => a.localeCompare(b, undefined, {numeric: true}))"  # a reader's alphabet
    assert claims == page.evaluate(order, claims)
    page.set_viewport_size(PHONE)
    box = page.locator(".ledger tr[data-verdict]:visible td").first.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"], "the verdict is on the screen"


def test_what_was_not_judged_is_folded_away_until_a_link_asks_for_it(browser, tmp_path):
    claims, held = read_claims()[:2], (0.5, 0.4, 0.6, 10**6, 5, "trainings", "")
    recorded = pd.DataFrame([(claims[0].id, *held)], columns=RECORD)
    table = ledger(claims, recorded.assign(corpora=";".join(claims[0].evidence)), "full")
    (tmp_path / "ledger.html").write_text(ledger_table(table).data, encoding="utf-8")
    page = browser.new_page()
    for place, seen in (("", [True, False]), (f"#{claims[1].id}", [True, True])):
        page.goto(f"{(tmp_path / 'ledger.html').as_uri()}{place}")
        assert [page.locator(f".ledger tr[id='{each.id}']").is_visible() for each in claims] == seen
