"""The ledger of claims in words and as a table to filter, for readers who have never seen a claim's id.

Rows are those of `nli_lib.report.claims.ledger`. Whatever comes from a table is escaped.
"""

import math
from pathlib import Path

import pandas as pd
from IPython.display import HTML
from jinja2 import Environment, FileSystemLoader

from nli_lib.report.claims import VERDICTS
from nli_lib.report.style import COLOURS

PAPERS = {
    "wanli": "WANLI",
    "zfilter": "Debiased generation",
    "consensus": "Consensus cleaning",
    "disco": "DISCO",
    "difficulty": "Test-set difficulty",
}
MARKS = dict(zip(VERDICTS, "✓✗?–", strict=True))
COUNTED = dict(
    zip(VERDICTS, ("held", "did not hold", "inconclusive", "could not be tested at this scale"), strict=True)
)
SHARES, POINTS = ("share", "accuracy"), ("difference of accuracy", "difference of share", "difference of drops")


def kind(unit: str) -> str:
    """How a reader says a number of this unit: "points", "share" (per cent) or "" (as it is)."""
    if unit.startswith(POINTS) or unit in ("accuracy a fold", "accuracy above chance"):
        return "points"
    return "share" if unit.startswith(SHARES) else ""


def quantity(value: float | str, unit: str, *, bare: bool = False) -> str:
    """A claim's number: shares in per cent, their differences in points, the rest in 3 digits.

    What is not a number (a paper's value in words) is returned as it is. `bare` leaves "points" out, for intervals.
    """
    try:
        value = float(value)
    except ValueError:
        return str(value)
    if math.isnan(value):
        return "–"
    if kind(unit) == "points":
        return f"{100 * value:+.1f}" + ("" if bare else " points")
    return f"{value:.1%}" if kind(unit) == "share" else f"{value:.3g}"


def interval(row: pd.Series) -> tuple[str, str]:
    """(our number, its interval in brackets); the interval is "" where none was recorded."""
    low, high = (quantity(row[end], row["unit"], bare=True) for end in ("low", "high"))
    return quantity(row["value"], row["unit"]), "" if "–" in (low, high) else f"[{low}, {high}]"


def region(row: pd.Series) -> str:
    """The values that would confirm a claim, in the unit of its numbers."""
    factor, sign = {"points": (100, " points"), "share": (100, "%"), "": (1, "")}[kind(row["unit"])]
    low, high = (f"{factor * row[end]:g}{sign}" for end in ("region_low", "region_high"))
    if math.isinf(row["region_low"]):
        return f"below {high}"
    return f"above {low}" if math.isinf(row["region_high"]) else f"between {low} and {high}"


def verdict_sentence(row: pd.Series) -> str:
    """One claim as Markdown, its verdict first: a refuted claim never stands alone."""
    if row["verdict"] == VERDICTS[3]:
        return f"{MARKS[VERDICTS[3]]} **Not testable at this scale** ({row['reason']}): {row['claim']}"
    paper = quantity(row["paper_value"], row["unit"])
    numbers = f"{row['unit']}: {' '.join(interval(row))}; would confirm: {region(row)}; the paper: {paper}"
    return f"{MARKS[row['verdict']]} **{row['verdict'].capitalize()}:** {row['claim']} ({numbers})"


def verdict_counts(table: pd.DataFrame) -> str:
    """How many claims have each verdict, in words: "7 held, 2 did not hold, 3 inconclusive"."""
    counts = table["verdict"].value_counts()
    return ", ".join(f"{counts[verdict]} {words}" for verdict, words in COUNTED.items() if verdict in counts)


def ledger_table(table: pd.DataFrame) -> HTML:
    """The ledger as a table grouped by paper (ledger.html), with filters for paper and verdict and columns that sort.

    In the book each row links to its chapter's page. On a phone a row becomes a card with the verdict on top.
    """
    files = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    groups = [
        {
            "paper": PAPERS[key],
            "counts": verdict_counts(rows),
            "rows": rows.fillna({"reference": ""}).to_dict("records"),
        }
        for key, rows in table.groupby("paper", sort=False)
    ]
    found = [verdict for verdict in VERDICTS if verdict in set(table["verdict"])]
    page = files.get_template("ledger.html").render(
        groups=groups,
        choices={"paper": [group["paper"] for group in groups], "verdict": found},
        titles=("Verdict", "Claim", "The paper", "Ours", "Judged by", "Chapter"),
        style=files.loader.get_source(files, "ledger.css")[0],
        script=files.loader.get_source(files, "ledger.js")[0],
        **{"marks": MARKS, "colours": COLOURS, "interval": interval, "quantity": quantity, "region": region},
    )
    return HTML(page)
