"""The list of suspect labels as one page to work through, from disk and without a network; and what a widget shows.

    made = worklist(table, classes=corpus.classes, title="mine.csv", said=[...])
    write_page(folder / "suspects.html", made)

The page holds the texts of the corpus. They are shown as text: they stand in the page as JSON in which no "<" is left,
the script (worklist.js) puts them into text nodes, and the page's own policy forbids it to load or send anything.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd

from nli_lib.measure.consensus import EVERY
from nli_lib.store import atomic, now

HERE = Path(__file__).parent
MOST = 5_000  # suspects in a page: nobody reviews more, and a browser opens it at once
SHOWN = ("uid", "premise", "hypothesis", "gold", "predicted", "kind", "gap", "p_gold")
GIVEN = ("decision", "fix_to", "note", "when", "learnt")  # what a reviewer says of a suspect


def worklist(
    table: pd.DataFrame,
    *,
    classes: Sequence[str],
    title: str,
    said: Sequence[str] = (),
    warning: str = "",
    command: str = "",
    most: int = MOST,
) -> dict:
    """What the page and the widget are made of: a value for `json.dumps`.

    table    `exports.review_list`, in the order of review, perhaps with the columns `GIVEN`; its first ``most`` rows
             are taken, and every decided one
    classes  what a label can be fixed to
    said     sentences about the list; warning: one that must not be missed; command: what learns from all suspects
    """
    given = table.reindex(columns=list(GIVEN), fill_value="").fillna("").astype(str)
    decided = given[["decision", "note"]].ne("").any(axis=1).to_numpy()
    chosen = decided | (np.arange(len(table)) < most)
    rows = table.loc[chosen, list(SHOWN)].astype({"uid": str, "gap": float, "p_gold": float})
    if "votes" in table:
        rows["votes"] = table.loc[chosen, "votes"].astype(int)
    said = list(said)
    if not chosen.all():
        said.append(f"This page holds {chosen.sum():,} of {len(table):,} suspects; suspects.csv holds all of them.")
    built = now()
    made = given[decided].assign(when=lambda part: part["when"].where(part["when"] != "", built))
    # a browser keeps decisions by this key: another corpus or another model is another list
    told = table[["uid", "premise", "hypothesis", "gold", "predicted"]].sort_values("uid").to_json(orient="values")
    return {
        "key": f"nli-suspects-{hashlib.sha256((title + told).encode()).hexdigest()[:16]}",
        "built": built,
        "title": title,
        "classes": list(classes),
        "every": EVERY,
        "warning": warning,
        "said": said,
        "command": command,
        "rows": rows.to_dict("records"),
        "made": [[uid, each] for uid, each in zip(rows["uid"][decided[chosen]], made.to_dict("records"), strict=True)],
    }


def write_page(path: Path, made: dict) -> Path:
    """Write a `worklist` as one html file, whole or not at all; the path."""
    parts = {name: (HERE / f"worklist.{name}").read_text(encoding="utf-8") for name in ("css", "js")}
    # "<" could end the script element, and "<!--" changes how the rest is read
    parts["list"] = json.dumps(made, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
    template = jinja2.Template((HERE / "worklist.html").read_text(encoding="utf-8"), keep_trailing_newline=True)
    with atomic(path) as draft:
        draft.write_text(template.render(title=made["title"], **parts), encoding="utf-8")
    return path


def read_page(path: Path) -> dict:
    """The `worklist` that a page was made of."""
    page = Path(path).read_text(encoding="utf-8")
    _, _, rest = page.partition('<script type="application/json" id="list">')
    return json.loads(rest.partition("</script>")[0])
