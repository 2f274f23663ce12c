"""What the placeholders of the book's tracked pages stand for in one study, so that nobody types a conclusion.

{{ answer 10_data_map }}    the sentences of that chapter's answer
{{ verdict <claim id> }}    one claim: its verdict, the claim in words, the numbers
{{ verdicts wanli }}        how many of a paper's own claims, declared before their result, have each verdict
{{ figure verdicts }}       a figure of a drawn chapter with its caption, by the name in its cell's metadata
"""

import base64
from pathlib import Path

import nbformat

from nli_lib import paths
from nli_lib.report.claims import read_claims
from nli_lib.report.ledger import PAPERS, own_claims, verdict_counts, verdict_sentence
from nli_lib.store import atomic
from nli_lib.study import pages
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


def _claims(study: str) -> dict[str, str]:
    """Words for every declared claim and every paper; "" where this study has recorded nothing."""
    path = find_table(paths.RESULTS / study / LEDGER)
    declared = paths.BOOK / "claims.yaml"
    found = {f"verdict {claim.id}": "" for claim in read_claims(declared)} if declared.is_file() else {}
    found |= {f"verdicts {key}": "" for key in PAPERS}
    if path is not None:
        table = read_table(path)
        found |= {f"verdict {row['id']}": verdict_sentence(row) for _, row in table.iterrows()}
        found |= {f"verdicts {key}": verdict_counts(rows) for key, rows in table[own_claims(table)].groupby("paper")}
    return found


def words(chapters: Path, study: str) -> dict[str, str]:
    """Markdown for every placeholder; "" where this study has nothing for it. Figures are written below `chapters`."""
    found = _claims(study)
    for name in sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")):
        path = chapters / f"{name}.ipynb"
        page = nbformat.read(path, as_version=4) if path.is_file() else nbformat.v4.new_notebook()
        found |= _figures(page, chapters / "figures")
        found[f"answer {name}"] = "\n\n".join(pages.answer(page))
        found[f"headline {name}"] = " ".join(text.removeprefix("- ") for text in pages.answer(page, "headline"))
    return found
