"""When each claim was declared and when its statistic was first recorded, as the project's git history has it."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from nli_lib import paths
from nli_lib.claims import Claim, Region, read_yaml

DECLARED, RECORDED = "book/claims.yaml", "data/results/small/*.claims.csv"
COLUMNS = ["id", "declared_in", "declared_on", "recorded_in", "recorded_on", "confirmed_then"]
# ids began with the paper's number before they began with its name
NUMBERS = {"000": "wanli", "001": "zfilter", "002": "consensus", "003": "disco", "004": "difficulty"}


def _git(home: Path, *words: str) -> str:
    """What git says about the folder; "" where there is no git, no history, or only a part of it."""
    try:
        return subprocess.run(["git", "-C", str(home), *words], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def _named(id: str) -> str:
    number, _, rest = id.partition("-")
    return f"{NUMBERS.get(number, number)}-{rest}"


def _added(home: Path, files: str, line: str) -> Iterator[tuple[str, str, str]]:
    """(id, commit, time) of each line that a commit added to `files` and `line` matches, the oldest commit first."""
    shown = ["--reverse", "--date-order", "--format=%x00%h %cI", "--patch", "--no-renames", "--unified=0"]
    for commit in _git(home, "log", *shown, "--", files).split("\0")[1:]:
        head, _, patch = commit.partition("\n")
        yield from ((_named(id), *head.split()) for id in re.findall(line, patch, re.MULTILINE))


def declarations(home: Path | None = None) -> pd.DataFrame:
    """One row a claim of the history, `COLUMNS`: the commits of its declaration and of its first record at small.

    `confirmed_then` is the region that would have confirmed it in that first record. Ends are None where there is none
    yet; the table is empty without git or with a shallow history.
    """
    home = home or paths.HOME
    if _git(home, "rev-parse", "--is-shallow-repository").strip() != "false":
        return pd.DataFrame(columns=COLUMNS)
    first = {}
    for kind, files, line in (
        ("declared", DECLARED, r"^\+- id: (\S+)"),
        ("recorded", RECORDED, r"^\+(\d*[a-z]*-[\w.-]+),"),
    ):
        for id, commit, time in _added(home, files, line):
            first.setdefault(id, {}).setdefault(kind, (commit, time))
    commits = {found["recorded"][0] for found in first.values() if "recorded" in found}
    then = {commit: _confirmed(_git(home, "show", f"{commit}:{DECLARED}")) for commit in sorted(commits)}
    rows = []
    for id, found in first.items():
        ends = [part for kind in ("declared", "recorded") for part in found.get(kind, (None, None))]
        rows.append([id, *ends, then.get(ends[2], {}).get(id)])
    return pd.DataFrame(rows, columns=COLUMNS, dtype=object)


def _confirmed(text: str) -> dict[str, str]:
    return {_named(claim["id"]): str(Region.model_validate(claim["confirm"])) for claim in read_yaml(text) or ()}


def unfounded(claims: Sequence[Claim], history: pd.DataFrame) -> list[str]:
    """What contradicts "declared before" in the history, one sentence a claim; empty when nothing does."""
    known, found = history.set_index("id").to_dict("index"), []
    for claim in claims:
        row = known.get(claim.id, {})
        if claim.declared == "after" or not row.get("recorded_in"):
            continue
        if not row["declared_in"] or pd.Timestamp(row["declared_on"]) >= pd.Timestamp(row["recorded_on"]):
            found.append(f"{claim.id}: first recorded in {row['recorded_in']}, declared in {row['declared_in']}")
        elif row["confirmed_then"] not in (None, str(claim.confirm)):
            found.append(
                f"{claim.id}: confirmed by values {row['confirmed_then']} when it was first recorded, "
                f"by values {claim.confirm} now"
            )
    return found
