"""Pages of audit, report, compare and a HIT in a real browser. Run alone: pytest tests/browser/test_tool_pages.py"""

import csv
import json
import string
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from compared import made, whole
from small_reviews import both
from typer.testing import CliRunner

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.corpora.corpus import LABELS
from nli_lib.generate.review import annotations
from nli_tools import compare, review
from nli_tools.commands import app
from nli_tools.review import read_results, write_hits

SCRIPTS = yaml.safe_load(Path(__file__).with_name("scripts.yaml").read_text(encoding="utf-8"))
NASTY = "<script>document.title='executed'</script><img src=x onerror=\"document.title='executed'\"> =1+1"


@pytest.fixture
def pages(home, tmp_path):
    """Report and audit of planted text with markup in it, against a test file and without a training; an audit of one
    long word of two labels; a comparison."""
    table = load("planted", "train", limit=600).table[["premise", "hypothesis", "label"]]
    table["label"] = np.array(LABELS)[table["label"]]
    table["hypothesis"] += np.where(np.arange(len(table)) % 3 == 0, f" {NASTY}", "")
    long = pd.DataFrame({"premise": [f"p {at // 2}" for at in range(80)], "label": [*LABELS[:2]] * 40})
    long["hypothesis"] = ["x" * 3000 + " a", "b"] * 40
    mine, test = f"mine <b>{'w' * 60}.csv", str(tmp_path / "test.csv")
    for name, each in {mine: table, "test.csv": table.head(50), "long.csv": long}.items():
        each.to_csv(tmp_path / name, index=False)
    for words in (("report", str(tmp_path / mine), "--fast", "--test", test), ("audit", str(tmp_path / "long.csv"))):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (done.output, done.exception)
    compared = tmp_path / "compare.html"
    compared.write_text(compare.page(whole(made()[1])), encoding="utf-8")
    found = [*paths.EXPORTS.glob("*/*.html"), compared]  # two audits and a report
    assert len(found) == 4
    return found


@pytest.mark.slow
@pytest.mark.parametrize("width", [1300, 390])
def test_the_pages_open_from_disk(pages, browser, listened, width):
    for path in pages:
        page = listened(browser, path, width=width, height=900)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("script, img").count() == 0 and "executed" not in page.title()
        assert page.locator("#next").bounding_box()["y"] + 40 <= 900, f"what to do is not on the first screen of {path}"
        if "mine" in str(path):  # markup of the corpus is shown as text
            assert "onerror" in page.locator("body").inner_text()
        if path.name == "audit.html":
            assert page.locator("#next li").count() == 3
        if path.name == "audit.html" and width == 1300:
            for part in ("#size", "#next", "#figures", "#leakage", "#top"):
                box = page.locator(part).bounding_box()
                assert box and box["y"] + box["height"] <= 900, f"{part} of {path} is not on the first screen"
            assert page.locator("#figures tr[data-figure='hypothesis only']").is_visible()
        page.close()


TEXTS = [
    "<script>document.title='executed'</script>",
    "</textarea><img src=x onerror=document.title='executed'>",
    "=1+1",
    "two\r\nlines\rand\n\nmore, \"quoted\" & 'so' &amp; ${item1}",
    "\n a line end first",
    "\U0001f600 漢 é \x1b[31m \u2028 end",
    "x" * 5_000]  # fmt: skip


def test_a_hit_shows_texts_as_texts_and_gives_them_back(browser, tmp_path):
    """What nobody touched comes back as it was, from each of the texts' fields; the second HIT has two pairs."""
    pairs = pd.DataFrame({"item": [f"p{at}" for at in range(7)], "premise": TEXTS, "hypothesis": TEXTS[::-1]})
    table, layout = write_hits(tmp_path, pairs)
    with table.open(newline="") as file:
        hits = list(csv.DictReader(file))
    page, rows = browser.new_page(), []
    for number, hit in enumerate(hits):
        page.set_content(f"<form>{string.Template(layout.read_text()).substitute(hit)}</form>")
        for field in page.locator("fieldset").all():
            field.locator("input[value=neutral]").check()
        said = page.evaluate("Object.fromEntries(new FormData(document.querySelector('form')))")
        assert page.title() == "" and page.locator("img").count() == 0
        row = {"HITId": number, "AssignmentId": number, "WorkerId": "W", "AssignmentStatus": "Approved"}
        row |= {f"Input.{name}": text for name, text in hit.items()}
        rows.append(row | {f"Answer.{name}": text for name, text in said.items()})
    page.close()
    assert [len([name for name in row if name.startswith("Answer.label")]) for row in rows] == [5, 2]
    pd.DataFrame(rows).to_csv(tmp_path / "results.csv", index=False)
    found = read_results([tmp_path / "results.csv"], pairs).set_index("item").loc[pairs["item"]]
    for side in ("premise", "hypothesis"):
        assert found[f"revised_{side}"].tolist() == pairs[side].tolist()


def test_a_third_person_settles_by_key_what_two_said(browser, tmp_path):
    """The widget, with its kernel's half: both answers side by side, as texts and without names."""
    given = both(["neutral"] * 4, ["entailment"] * 4, ["anna", "bert"], premise=np.repeat(TEXTS[:4], 2))
    given = given.assign(revised_premise=given["premise"], revised_hypothesis=[NASTY, "b"] * 4)
    left, pairs = {"neutral": NASTY}, given[["item", "premise", "hypothesis"]].drop_duplicates()
    widget = review.ReviewWidget(review.Adjudication(pairs, tmp_path, given, "carl"))
    page, taken = browser.new_page(), []
    page.expose_function("told", lambda said: (widget.take(said), widget.state)[1])
    css, script = ((review.HERE / f"widget.{end}").read_text() for end in ("css", "js"))
    script = script.replace("export default", "const widget =") + SCRIPTS["widget"]
    script = script.replace("START", json.dumps(widget.state).replace("<", "\\u003c"))
    page.set_content(f"<style>{css}</style><script type=module>{script}</script>")
    for done, key in enumerate("ab3d"):
        pair, (first, second) = widget.state["pair"], page.locator(".nli-review-said > div").all()
        said = {pair[name]: each.inner_text() for name, each in (("first", first), ("second", second))}
        assert said == {"neutral": f"neutral\n\nhypothesis: {NASTY}", "entailment": "entailment"}
        assert first.bounding_box()["y"] == second.bounding_box()["y"] and "anna" not in page.content()
        taken.append({"a": pair["first"], "b": pair["second"], "3": "contradiction", "d": ""}[key])
        page.locator(".nli-review").press(key)
        page.get_by_text(f"carl: {done + 1} of 4").wait_for()
    found = annotations(tmp_path / review.SETTLED)
    assert found["label"].fillna("").tolist() == taken and page.title() == ""
    assert found["revised_hypothesis"].tolist() == [left.get(label, "b") for label in taken]
    page.close()
