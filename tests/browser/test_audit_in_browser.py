"""The page of an audit in a real browser, from disk. Run alone: pytest tests/browser/test_audit_in_browser.py"""

import numpy as np
import pandas as pd
import pytest

from nli_lib import paths
from nli_lib.corpora import load
from nli_lib.study.runner import Request
from nli_tools import audit_page

NASTY = "<script>document.title='executed'</script><img src=x onerror=\"document.title='executed'\"> =1+1"


@pytest.fixture
def pages(home, tmp_path):
    """Audits of two files: planted text with markup in it against a test file, and one long word of two labels."""
    planted = load("planted", "train", limit=600).table
    labels = np.array(["entailment", "neutral", "contradiction"], dtype=object)
    table = planted[["premise", "hypothesis"]].assign(label=labels[planted["label"]])
    table["hypothesis"] += np.where(np.arange(len(table)) % 3 == 0, f" {NASTY}", "")
    table.to_csv(tmp_path / f"mine <b>{'w' * 60}.csv", index=False)
    table.head(50).to_csv(tmp_path / "test.csv", index=False)
    long = pd.DataFrame({"premise": [f"p {at // 2}" for at in range(80)], "label": ["entailment", "neutral"] * 40})
    long.assign(hypothesis=["x" * 3000 + " a", "b"] * 40).to_csv(tmp_path / "long.csv", index=False)
    mine = next(tmp_path.glob("mine*.csv"))
    found = {}
    for name, test in ((str(mine), str(tmp_path / "test.csv")), (str(tmp_path / "long.csv"), None)):
        found[name] = audit_page.run(Request(scale="small", corpus=name), test)[0]
    assert set(paths.EXPORTS.glob("*/audit.html")) == set(found.values())
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("width", [1300, 390])
def test_the_page_opens_from_disk(pages, browser, width):
    for path in pages:
        page, said, asked = browser.new_page(viewport={"width": width, "height": 900}), [], []
        page.on("console", lambda message, said=said: said.append(message.text))
        page.on("pageerror", lambda error, said=said: said.append(str(error)))
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(path.as_uri())
        assert said == [] and asked == [path.as_uri()]  # no error on the console, no request but the page itself
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("script, img").count() == 0 and "executed" not in page.title()
        assert page.locator("#next li").count() == 3
        if width == 1300:
            for part in ("#size", "#next", "#figures", "#leakage", "#top"):
                box = page.locator(part).bounding_box()
                assert box and box["y"] + box["height"] <= 900, f"{part} of {path} is not on the first screen"
            assert page.locator("#figures tr[data-figure='hypothesis only']").is_visible()
        page.close()
    first = browser.new_page()
    first.goto(pages[0].as_uri())
    assert "onerror" in first.locator("body").inner_text()  # markup of the corpus is shown as text
    first.close()
