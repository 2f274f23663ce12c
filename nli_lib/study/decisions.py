"""A reviewer's decisions on the suspects of a corpus, which put the rest of the list into a new order."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from nli_lib.corpora.labels import canonical
from nli_lib.errors import UserError
from nli_lib.measure.review_order import next_suspects, suspect_features
from nli_lib.report.exports import read_csv, write_csv, write_jsonl
from nli_lib.report.worklist import GIVEN

# what a decision says of the label: wrong (1), right (0), or nothing that an order could be learnt from
DECISIONS = {"fix": 1.0, "keep": 0.0, "ambiguous": np.nan}
WORDS = ", ".join(DECISIONS)


class DecisionError(UserError, ValueError):
    """A file of decisions cannot be used; the message names the file, the line and what to do."""


def read_decisions(path: Path, classes: Sequence[str] | None = None) -> pd.DataFrame:
    """The decisions in a csv with columns uid and decision and perhaps fix_to, note, when and learnt; index uid.

    Columns `GIVEN`, all of them texts, "" where nothing was said: decision, one of `DECISIONS`; fix_to, the label that
    is right, by the library's name. Rows in which nobody wrote anything are left out; those with a note alone are not.
    Raises `CsvError` for a file that is none, and `DecisionError` on a missing column, any other word, a label that is
    none of ``classes`` or stands without the decision fix, and a uid that is decided twice.
    """
    table = read_csv(path)
    for name in ("uid", "decision"):
        if name not in table:
            raise DecisionError(
                f"{path} has no column {name!r}. Add a column named decision to suspects.csv, and write {WORDS} or "
                "nothing into each row."
            )
    made = table.reindex(columns=["uid", *GIVEN], fill_value="").assign(line=np.arange(2, len(table) + 2))
    made["decision"] = made["decision"].str.strip().str.lower()
    made = made[made[["decision", "fix_to", "note"]].ne("").any(axis=1)]
    fixed = made["fix_to"].str.strip()
    made["fix_to"] = fixed.map(lambda name: canonical(name) or name)
    known = made["fix_to"].isin(classes) if classes else made["fix_to"].map(canonical).notna()
    checks = {
        f"decision {{decision!r}}: write {WORDS} or nothing": ~made["decision"].isin(["", *DECISIONS]),
        "fix_to {fix_to!r}: write a label of the corpus" + (f" ({', '.join(classes)})" if classes else ""): (
            (fixed != "") & ~known
        ),
        "fix_to {fix_to!r} stands beside the decision {decision!r}: write fix there, or leave it out": (
            (fixed != "") & (made["decision"] != "fix")
        ),
        "uid {uid!r} is decided twice: leave one of the two": made["uid"].duplicated(),
    }
    for said, wrong in checks.items():
        for row in made[wrong].head(1).to_dict("records"):
            raise DecisionError(f"{path}, row {row['line']}, {said.format(**row)}.")
    return made.set_index("uid")[list(GIVEN)]


def joined(earlier: pd.DataFrame | None, later: pd.DataFrame) -> pd.DataFrame:
    """Decisions of both, as `read_decisions` returns them; where both decide, the later one counts, and a note without
    a decision takes no decision back."""
    if earlier is None:
        return later
    later = later[(later["decision"] != "") | ~later.index.isin(earlier.index)]
    return pd.concat([earlier[~earlier.index.isin(later.index)], later])


def kept(folder: Path, classes: Sequence[str] | None = None) -> pd.DataFrame | None:
    """The decisions and notes in the list of ``folder`` itself, which a new run would write over; None where there are
    none. Raises as `read_decisions`, so that no slip of the pen costs a review."""
    path = folder / "suspects.csv"
    if not path.is_file():
        return None
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        names = [name.strip(' "') for name in re.split("[,;\t]", lines.readline().strip())]
    if "decision" not in names:
        return None
    made = read_decisions(path, classes)
    return made if len(made) else None


def reorder(folder: Path, decided: pd.DataFrame) -> str:
    """Write suspects.csv and suspects.jsonl of ``folder`` anew; what was done, in a sentence.

    decided   as `read_decisions` returns it. The labels without a decision come first, in the order that
              `next_suspects` learns from the others, which come last. Decisions on labels that are no longer suspect
              are counted. A note stays with its label, decided or not.
    """
    table = read_list(folder).drop(columns=list(GIVEN), errors="ignore")
    uid, gap = table["uid"].astype(str), table["gap"].to_numpy(dtype=float)
    given = decided.reindex(uid)
    made = given["decision"].replace("", np.nan).set_axis(table.index)
    counts = made.value_counts()
    order = next_suspects(gap, suspect_features(table["kind"], gap), made.map(DECISIONS).astype(float))
    still_open = order[made.isna().to_numpy()[order]]
    learnt = {"fix", "keep"} <= set(counts.index)
    given["learnt"] = np.where(given["decision"].isin(["fix", "keep"]), "yes", "") if learnt else ""
    columns = [name for name in GIVEN if name == "decision" or given[name].fillna("").ne("").any()]
    table = table.assign(**{name: given[name].fillna("").to_numpy() for name in columns})
    table = table.iloc[np.concatenate([still_open, np.flatnonzero(made.notna())])]
    write_list(folder, table.assign(rank=np.arange(1, len(table) + 1)))
    told = ", ".join(f"{counts.get(word, 0):,} {word}" for word in DECISIONS)
    if gone := (decided["decision"] != "").sum() - len(made.dropna()):
        told += f"; {gone:,} more are of labels that are not suspect now"
    waits = "in the order of the gap, until one label was fixed and one kept"
    rest = "in the order learnt from them" if learnt else waits
    return f"{len(made.dropna()):,} decisions ({told}). The other {len(still_open):,} suspects are {rest}."


def read_list(folder: Path) -> pd.DataFrame:
    """The list of a folder, suspects.jsonl, as `exports.review_list` made it and `reorder` may have put it."""
    with (folder / "suspects.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    return pd.DataFrame(rows) if rows else pd.read_csv(folder / "suspects.csv")  # the columns of an empty list


def write_list(folder: Path, table: pd.DataFrame) -> None:
    """Write a list as suspects.csv and suspects.jsonl."""
    write_csv(folder / "suspects.csv", table)
    write_jsonl(folder / "suspects.jsonl", table)
