"""What the placeholders of the book's tracked pages stand for in one study, so that nobody types a conclusion.

{{ answer 10_data_map }}    the sentences of that chapter's answer
{{ headline 10_data_map }}  those of them that the chapter's cells tag `headline`
{{ verdict <claim id> }}    one claim: its verdict, the claim in words, the numbers
{{ verdicts wanli }}        how many of a paper's own claims, declared before their result, have each verdict
{{ figure verdicts }}       a figure of a drawn chapter with its caption, by the name in its cell's metadata
{{ rests 10_data_map }}     what that chapter's headline rests on: its tables and the verdicts on its claims
{{ lessons do }}            of `report.lessons`: do, doubt, open, and count, a sentence that says how many there are
{{ chapters absent }}       the chapters that this study has not recorded
"""

import base64
from pathlib import Path

import nbformat
import pandas as pd

from nli_lib import paths
from nli_lib.claims import LEDGER as COLUMNS
from nli_lib.claims import read_claims
from nli_lib.report.ledger import PAPERS, own_claims, verdict_counts, verdict_sentence
from nli_lib.report.lessons import LESSONS, read_lessons, sections
from nli_lib.store import atomic
from nli_lib.study import pages
from nli_lib.study.grounds import absent_chapters, rests_on
from nli_lib.study.standing import stale
from nli_lib.study.tables import find_table, read_table

LEDGER = "63_claims.ledger"


def _figures(page: nbformat.NotebookNode, folder: Path) -> dict[str, str]:
    """Words for the figures of a drawn chapter that have a name; the images are written into `folder`."""
    found = {}
    for cell in page.cells:
        name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
        images = [o["data"]["image/png"] for o in cell.get("outputs", ()) if "image/png" in o.get("data", {})]
        if name and images:
            with atomic(folder / f"{name}.png") as draft:
                draft.write_bytes(base64.b64decode(images[0]))
            caption = pages.caption(cell)
            lines = (f":::{{figure}} /chapters/figures/{name}.png", f":alt: {caption}", caption, ":::")
            found[f"figure {name}"] = "\n".join(lines)
    return found


def _claims(ledger: pd.DataFrame) -> dict[str, str]:
    """Words for every declared claim, every paper and the lessons; "" where this study has recorded nothing."""
    declared = paths.BOOK / "claims.yaml"
    found = {f"verdict {claim.id}": "" for claim in read_claims(declared)} if declared.is_file() else {}
    found |= {f"verdicts {key}": "" for key in PAPERS}
    if len(ledger):
        found |= {f"verdict {row['id']}": verdict_sentence(row) for _, row in ledger.iterrows()}
        found |= {f"verdicts {key}": verdict_counts(rows) for key, rows in ledger[own_claims(ledger)].groupby("paper")}
    if LESSONS.is_file():
        found |= {f"lessons {place}": text for place, text in sections(read_lessons(), ledger).items()}
    return found


def words(chapters: Path, study: str) -> dict[str, str]:
    """Markdown for every placeholder; "" where this study has nothing for it. Figures are written below `chapters`."""
    path = find_table(paths.RESULTS / study / LEDGER)
    ledger = pd.DataFrame(columns=COLUMNS) if path is None else read_table(path)
    ledger = ledger.assign(stale=ledger["notebook"].isin(stale(study)))
    found = _claims(ledger) | {"chapters absent": absent_chapters(chapters)}
    for name in sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")):
        path = chapters / f"{name}.ipynb"
        page = nbformat.read(path, as_version=4) if path.is_file() else nbformat.v4.new_notebook()
        found |= _figures(page, chapters / "figures")
        found[f"answer {name}"] = "\n\n".join(pages.answer(page))
        found[f"headline {name}"] = " ".join(text.removeprefix("- ") for text in pages.answer(page, "headline"))
        found[f"rests {name}"] = rests_on(name, study, ledger)
    return found
