"""A reviewer's decisions on the suspects of a corpus, which put the rest of the list into a new order."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd

from nli_lib.errors import UserError
from nli_lib.measure.review_order import next_suspects, suspect_features
from nli_lib.report.exports import write_csv
from nli_lib.store import atomic

# what a decision says of the label: wrong (1), right (0), or nothing that an order could be learnt from
DECISIONS = {"fix": 1.0, "keep": 0.0, "ambiguous": np.nan}
WORDS = ", ".join(DECISIONS)
SAFE = r"\A'(?=[-=+@\t\r])"  # what `exports.write_csv` puts before a uid that a spreadsheet would run


class DecisionError(UserError, ValueError):
    """A file of decisions cannot be used; the message names the file, the line and what to do."""


def read_decisions(path: Path) -> pd.Series:
    """The decisions in a csv with columns uid and decision: uid -> one of `DECISIONS`. Rows without one are left out.

    Raises `DecisionError` on a missing file or column, any other word, and a uid that is decided twice.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise DecisionError(f"{path} cannot be read as a csv: {' '.join(str(error).split())}.") from None
    for name in ("uid", "decision"):
        if name not in table:
            raise DecisionError(
                f"{path} has no column {name!r}. Add a column named decision to suspects.csv, and write {WORDS} or "
                "nothing into each row."
            )
    made = table.assign(decision=table["decision"].str.strip().str.lower(), line=np.arange(2, len(table) + 2))
    made = made[made["decision"] != ""]
    made["uid"] = made["uid"].str.replace(SAFE, "", regex=True)
    checks = {
        f"decision {{decision!r}}: write {WORDS} or nothing": ~made["decision"].isin(list(DECISIONS)),
        "uid {uid!r} is decided twice: leave one of the two": made["uid"].duplicated(),
    }
    for said, wrong in checks.items():
        for row in made[wrong].head(1).to_dict("records"):
            raise DecisionError(f"{path}, row {row['line']}, {said.format(**row)}.")
    return made.set_index("uid")["decision"]


def kept(folder: Path) -> pd.Series | None:
    """The decisions in the list of ``folder`` itself, which a new run of its chapter would write over; None where there
    are none. Raises as `read_decisions`, so that no slip of the pen costs a review."""
    path = folder / "suspects.csv"
    if not path.is_file():
        return None
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        names = [name.strip(' "') for name in re.split("[,;\t]", lines.readline().strip())]
    if "decision" not in names:
        return None
    made = read_decisions(path)
    return made if len(made) else None


def reorder(folder: Path, decision: pd.Series) -> str:
    """Write suspects.csv and suspects.jsonl of ``folder`` anew; what was done, in a sentence.

    decision  as `read_decisions` returns it. The labels without one come first, in the order that `next_suspects`
              learns from the others, which come last. Decisions on labels that are no longer suspect are counted.
    """
    with (folder / "suspects.jsonl").open(encoding="utf-8") as lines:
        table = pd.DataFrame([json.loads(line) for line in lines])
    made, gap = table["uid"].astype(str).map(decision), table["gap"].to_numpy(dtype=float)
    order = next_suspects(gap, suspect_features(table["kind"], gap), made.map(DECISIONS).astype(float))
    still_open = order[made.isna().to_numpy()[order]]
    table = table.assign(decision=made.fillna(""))
    table = table.iloc[np.concatenate([still_open, np.flatnonzero(made.notna())])]
    table = table.assign(rank=np.arange(1, len(table) + 1))
    write_csv(folder / "suspects.csv", table)
    with atomic(folder / "suspects.jsonl") as draft:
        table.to_json(draft, orient="records", lines=True, force_ascii=False)
    counts = made.value_counts()
    told = ", ".join(f"{counts.get(word, 0):,} {word}" for word in DECISIONS)
    if gone := len(decision) - len(made.dropna()):
        told += f"; {gone:,} more are of labels that are not suspect now"
    waits = "in the order of the gap, until one label was fixed and one kept"
    rest = "in the order learnt from them" if {"fix", "keep"} <= set(counts.index) else waits
    return f"{len(made.dropna()):,} decisions ({told}). The other {len(still_open):,} suspects are {rest}."
