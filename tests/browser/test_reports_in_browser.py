"""The pages of `report` and `compare` in a real browser, from disk."""

import itertools

import pytest
from compared import made, whole
from typer.testing import CliRunner

from nli_lib import paths
from nli_lib.corpora import load
from nli_tools import compare
from nli_tools.commands import app

NASTY = "<script>document.title='executed'</script><img src=x onerror=\"document.title='executed'\">"


@pytest.fixture
def report(home, tmp_path):
    """A report on planted text with markup in it, without a training."""
    table = load("planted", "train", limit=300).table[["premise", "hypothesis", "label"]]
    table["label"] = table["label"].map(dict(enumerate(["entailment", "neutral", "contradiction"])))
    table.assign(hypothesis=table["hypothesis"] + f" {NASTY}").to_csv(tmp_path / "mine <b>.csv", index=False)
    done = CliRunner().invoke(app, ["report", str(tmp_path / "mine <b>.csv"), "--fast"])
    assert done.exit_code == 0, (done.output, done.exception)
    (path,) = paths.EXPORTS.glob("*/report.html")
    return path


@pytest.fixture
def compared(tmp_path):
    path = tmp_path / "compare.html"
    path.write_text(compare.page(whole(made()[1])), encoding="utf-8")
    return path


@pytest.mark.slow
def test_the_pages_open_from_disk(report, compared, browser):
    for path, width in itertools.product((report, compared), (1300, 390)):
        page, said, asked = browser.new_page(viewport={"width": width, "height": 900}), [], []
        page.on("console", lambda message, said=said: said.append(message.text))
        page.on("pageerror", lambda error, said=said: said.append(str(error)))
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(path.as_uri())
        assert said == [] and asked == [path.as_uri()]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("script, img").count() == 0 and "executed" not in page.title()
        box = page.locator("#next").bounding_box()
        assert box["y"] + 40 <= 900, f"what to do is not on the first screen of {path.name}"
        page.close()
