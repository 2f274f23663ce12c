"""The page of a HIT in a real browser. Run alone: pytest tests/browser/test_mturk_page.py"""

import csv
import string

import pandas as pd

from nli_tools.review import read_results, write_hits

TEXTS = [
    "<script>document.title='executed'</script>",
    "</textarea><img src=x onerror=document.title='executed'>",
    "=1+1",
    "two\r\nlines\rand\n\nmore, \"quoted\" & 'so' &amp; ${item1}",
    "\n a line end first",
    "\U0001f600 漢 é \x1b[31m \u2028 end",
    "x" * 5_000,
]


def test_a_page_shows_texts_as_texts_and_gives_them_back(browser, tmp_path):
    """What nobody touched comes back as it was, from each of the texts' fields; the second HIT has two pairs."""
    pairs = pd.DataFrame({"item": [f"p{at}" for at in range(7)], "premise": TEXTS, "hypothesis": TEXTS[::-1]})
    table, layout = write_hits(tmp_path, pairs)
    with table.open(newline="") as file:
        hits = list(csv.DictReader(file))
    page, rows = browser.new_page(), []
    for number, hit in enumerate(hits):
        page.set_content(f"<form>{string.Template(layout.read_text()).substitute(hit)}</form>")
        fields = page.locator("fieldset")
        for at in range(fields.count()):
            fields.nth(at).locator("input[value=neutral]").check()
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
