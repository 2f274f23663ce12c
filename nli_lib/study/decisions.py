"""A reviewer's decisions on the suspects of a corpus, which put the rest of the list into a new order."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.corpora.labels import canonical
from nli_lib.csv_files import read_csv, write_csv
from nli_lib.errors import UserError
from nli_lib.evaluate import write_jsonl
from nli_lib.measure.consensus import next_suspects
from nli_lib.report.worklist import GIVEN

SIDES = ("premise", "hypothesis")
ASIDE = "decisions_set_aside.csv"  # in a list's folder: decisions on what the list does not hold now
# what a decision says of the label: wrong (1), right (0), or nothing that an order could be learnt from
DECISIONS = {"fix": 1.0, "keep": 0.0, "ambiguous": np.nan}
WORDS = ", ".join(DECISIONS)


class DecisionError(UserError, ValueError):
    """A file of decisions cannot be used; the message names the file, the line and what to do."""


def read_decisions(path: Path, classes: Sequence[str] | None = None) -> pd.DataFrame:
    """The decisions in a csv with columns uid and decision and perhaps fix_to, note, when and learnt; index uid.

    Columns `GIVEN` and the two texts of the pair, "" where nothing was said: decision, one of `DECISIONS`; fix_to, the
    label that is right, by the library's name. Rows in which nobody wrote anything are left out; those with a note
    alone are not.
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
    made = table.reindex(columns=["uid", *GIVEN, *SIDES], fill_value="").assign(line=np.arange(2, len(table) + 2))
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
    return made.set_index("uid")[[*GIVEN, *SIDES]]


def joined(earlier: pd.DataFrame | None, later: pd.DataFrame) -> pd.DataFrame:
    """Decisions of both, as `read_decisions` returns them; where both decide, the later one counts, and a note without
    a decision takes no decision back."""
    if earlier is None:
        return later
    later = later[(later["decision"] != "") | ~later.index.isin(earlier.index)]
    return pd.concat([earlier[~earlier.index.isin(later.index)], later])


def kept(folder: Path, classes: Sequence[str] | None = None) -> pd.DataFrame | None:
    """The decisions and notes in the list of ``folder`` itself, which a new run would write over, and those set aside;
    None where there are none. Raises as `read_decisions`, so that no slip of the pen costs a review."""
    path, aside = folder / "suspects.csv", folder / ASIDE
    made = read_decisions(aside, classes) if aside.is_file() else None
    if path.is_file():
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            names = [name.strip(' "') for name in re.split("[,;\t]", lines.readline().strip())]
        if "decision" in names:
            made = joined(made, read_decisions(path, classes))
    return made if made is not None and len(made) else None


def reorder(folder: Path, decided: pd.DataFrame) -> str:
    """Write suspects.csv and suspects.jsonl of ``folder`` anew; what was done, in a sentence.

    decided   as `read_decisions` returns it. The labels without a decision come first, in the order that
              `next_suspects` learns from the others, which come last. Decisions on labels that the list does not hold
              are counted and set aside in `ASIDE`, where a later list finds them; so are those on other texts than the
              list has under their uid, as where rows of a file without ids have moved. A note stays with its label,
              decided or not.
    """
    table = read_list(folder).drop(columns=list(GIVEN), errors="ignore")
    strange = other_texts(decided, table)
    aside = decided[strange | ~decided.index.isin(table["uid"].astype(str))]
    decided = decided.drop(aside.index)
    uid, gap = table["uid"].astype(str), table["gap"].to_numpy(dtype=float)
    given = decided[list(GIVEN)].reindex(uid)
    made = given["decision"].replace("", np.nan).set_axis(table.index)
    counts = made.value_counts()
    order = next_suspects(gap, table["kind"], made.map(DECISIONS).astype(float))
    still_open = order[made.isna().to_numpy()[order]]
    learnt = {"fix", "keep"} <= set(counts.index)
    given["learnt"] = np.where(given["decision"].isin(["fix", "keep"]), "yes", "") if learnt else ""
    columns = [name for name in GIVEN if name == "decision" or given[name].fillna("").ne("").any()]
    table = table.assign(**{name: given[name].fillna("").to_numpy() for name in columns})
    table = table.iloc[np.concatenate([still_open, np.flatnonzero(made.notna())])]
    write_list(folder, table.assign(rank=np.arange(1, len(table) + 1)))
    told = ", ".join(f"{counts.get(word, 0):,} {word}" for word in DECISIONS)
    if len(aside):
        write_csv(folder / ASIDE, aside.reset_index(names="uid"))
    else:
        (folder / ASIDE).unlink(missing_ok=True)
    if gone := (aside["decision"] != "").sum():
        told += f"; set aside in {ASIDE}, for they are on labels or texts that are not in the list: {gone:,}"
    waits = "in the order of the gap, until one label was fixed and one kept"
    rest = "in the order learnt from them" if learnt else waits
    return f"{len(made.dropna()):,} decisions ({told}). The other {len(still_open):,} suspects are {rest}."


def other_texts(decided: pd.DataFrame, table: pd.DataFrame) -> NDArray[np.bool_]:
    """Which decisions (D,) bring other texts than the list has under their uid, white space aside.

    One that came without texts, or whose uid is not in the list, brings no other.
    """
    texts = table.set_axis(table["uid"].astype(str)).reindex(decided.index)
    other = np.zeros(len(decided), dtype=bool)
    for side in SIDES:
        here, there = (each[side].fillna("").str.split().str.join(" ") for each in (decided, texts))
        other |= (here.ne("") & there.ne("") & here.ne(there)).to_numpy()
    return other


def read_list(folder: Path) -> pd.DataFrame:
    """The list of a folder, suspects.jsonl, as `exports.review_list` made it and `reorder` may have put it."""
    with (folder / "suspects.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    return pd.DataFrame(rows) if rows else read_csv(folder / "suspects.csv")  # the columns of an empty list


def write_list(folder: Path, table: pd.DataFrame) -> None:
    """Write a list as suspects.csv and suspects.jsonl."""
    write_csv(folder / "suspects.csv", table)
    write_jsonl(folder / "suspects.jsonl", table)
