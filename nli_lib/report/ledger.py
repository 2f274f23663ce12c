"""The ledger of claims in words, as a table to filter and as a figure, for readers who have never seen a claim's id.

Rows are those of `nli_lib.claims.ledger`. Whatever comes from a table is escaped.
"""

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import HTML
from jinja2 import Environment, FileSystemLoader
from matplotlib.figure import Figure

from nli_lib.claims import VERDICTS
from nli_lib.report.names import unsigned_zero
from nli_lib.report.style import COLOURS, INK, PALE, SMALL, drawing

PAPERS = {
    "wanli": "WANLI",
    "zfilter": "Debiased generation",
    "consensus": "Consensus cleaning",
    "disco": "DISCO",
    "difficulty": "Test-set difficulty",
}
MARKS = dict(zip(VERDICTS, "✓✗?–", strict=True))
COUNTED = {"not held": "did not hold", VERDICTS[3]: "could not be judged"}  # the others as they are
SHARES = ("share", "accuracy")
POINTS = ("difference of accuracy", "difference of share", "difference of drops", "difference of flip rates")
NUMBER_AND_WORDS = re.compile(r"(-?[0-9.]+)( \(.*\))")  # a paper's number with a remark


def kind(unit: str) -> str:
    """How a reader says a number of this unit: "points", "share" (per cent) or "" (as it is)."""
    if unit.startswith(POINTS) or unit in ("accuracy a fold", "accuracy above chance"):
        return "points"
    return "share" if unit.startswith(SHARES) else ""


def quantity(value: float | str, unit: str, *, bare: bool = False) -> str:
    """A claim's number: shares in per cent, their differences in points, the rest in 3 digits.

    What is not a number (a paper's value in words) is returned as it is, a remark behind a number, too. `bare` leaves
    "points" out, for intervals.
    """
    if found := NUMBER_AND_WORDS.fullmatch(str(value)):
        return quantity(found[1], unit, bare=bare) + found[2]
    try:
        value = float(value)
    except ValueError:
        return str(value)
    if math.isnan(value):
        return "–"
    if kind(unit) == "points":
        return unsigned_zero(f"{100 * value:+.1f}") + ("" if bare else " points")
    return f"{value:.1%}" if kind(unit) == "share" else f"{value:.3g}"


def interval(row: pd.Series) -> tuple[str, str]:
    """(our number, its interval in brackets); the interval is "" where none was recorded.

    That of a share ends at 0 and at 100%, though a t interval need not.
    """
    ends = np.array([row["low"], row["high"]], float)
    ends = ends.clip(0, 1) if kind(row["unit"]) == "share" else ends
    low, high = (quantity(end, row["unit"], bare=True) for end in ends)
    return quantity(row["value"], row["unit"]), "" if "–" in (low, high) else f"[{low}, {high}]"


def region(row: pd.Series) -> str:
    """The values that would confirm a claim, in the unit of its numbers."""
    factor, sign = {"points": (100, " points"), "share": (100, "%"), "": (1, "")}[kind(row["unit"])]
    low, high = (f"{factor * row[end]:g}{sign}" for end in ("region_low", "region_high"))
    low, high = (re.sub(r"^(-?1 point)s$", r"\1", end) for end in (low, high))
    if math.isinf(row["region_low"]):
        return f"below {high}"
    return f"above {low}" if math.isinf(row["region_high"]) else f"between {low} and {high}"


def verdict_sentence(row: pd.Series) -> str:
    """One claim as Markdown, its verdict first: a refuted claim never stands alone."""
    if row["verdict"] == VERDICTS[3]:
        return f"{MARKS[VERDICTS[3]]} **Not judged** ({row['reason']}): {row['claim']}"
    paper = quantity(row["paper_value"], row["unit"])
    numbers = f"{row['unit']}: {' '.join(interval(row))}; would confirm: {region(row)}; the paper: {paper}"
    said = "; ".join([numbers, *notes(row)])
    return f"{MARKS[row['verdict']]} **{row['verdict'].capitalize()}:** {row['claim']} ({said})"


def kind_of_claim(row: pd.Series) -> str:
    """Why a claim is counted apart, in words; "" for a claim of the paper that was declared before its result."""
    kinds = {"a question of ours": row["ours"], "declared after its first result": row["declared"] == "after"}
    return ", ".join(kind for kind, true in kinds.items() if true)


def fragile(row: pd.Series) -> str:
    """What a judged claim would be at 99% where that is another verdict, in words; "" where it is the same."""
    return f"{row['verdict_99']} at 99%" if VERDICTS[3] != row["verdict"] != row["verdict_99"] else ""


def notes(row: pd.Series) -> list[str]:
    """What a reader must know beside a verdict: why the claim is counted apart, what it would be at 99%, and whether
    the record it comes from is stale (column `stale` of booleans, where the table has it)."""
    stale = "from a stale record" if row.get("stale", False) and row["verdict"] != VERDICTS[3] else ""
    return [note for note in (kind_of_claim(row), fragile(row), stale) if note]


def own_claims(table: pd.DataFrame) -> pd.Series:
    """Which rows are claims of the papers that were declared before their first result, as booleans."""
    return ~table["ours"].astype(bool) & (table["declared"] == "before")


def verdict_counts(table: pd.DataFrame) -> str:
    """How many claims have each verdict, in words: "7 held, 2 did not hold, 3 inconclusive"."""
    counts = table["verdict"].value_counts()
    return ", ".join(f"{counts[each]} {COUNTED.get(each, each)}" for each in VERDICTS if each in counts) or "none"


def changed_verdicts(table: pd.DataFrame, earlier: pd.DataFrame) -> pd.DataFrame:
    """The claims of ``table`` (a ledger) whose verdict is not the one in ``earlier`` (id, verdict, mended).

    Columns paper, claim, then, now, why: what was mended, or else the reason of the verdict now.
    """
    both = table.merge(earlier, on="id", suffixes=("", "_then"))
    both = both[both["verdict"] != both["verdict_then"]]
    why = both["mended"].where(both["mended"] != "", both["reason"])
    columns = {"paper": both["paper"].map(PAPERS), "claim": both["claim"], "then": both["verdict_then"]}
    return pd.DataFrame({**columns, "now": both["verdict"], "why": why}).reset_index(drop=True)


def places(table: pd.DataFrame) -> pd.DataFrame:
    """Where the numbers of each claim lie on a line of its own from 0 to 100, for claims differ in unit.

    Columns value, low, high, paper (NaN where the paper has words), region_low and region_high; an open end of the
    confirming values lies at the end of the line.
    """
    paper = pd.to_numeric(table["paper_value"], errors="coerce")
    numbers = table[["value", "low", "high", "region_low", "region_high"]].assign(paper=paper).astype(float)
    finite = numbers.where(np.isfinite(numbers))
    first, width = finite.min(axis=1), (finite.max(axis=1) - finite.min(axis=1)).replace(0, 1)
    at = 10 + 80 * numbers.sub(first, axis=0).div(width, axis=0)
    return at.assign(**at[["region_low", "region_high"]].clip(0, 100)).round(1)


def ledger_table(table: pd.DataFrame) -> HTML:
    """The ledger as a table grouped by paper (ledger.html), with filters for paper and verdict and columns that sort.

    Columns `declared_in`, `declared_on`, `recorded_in` (`nli_lib.study.declarations`), where the table has them, say
    when a claim was declared. A judged claim's interval is drawn below its number: the confirming values are shaded,
    a diamond is the paper's number. In the book each row links to its chapter's page. On a phone a row becomes a card
    with the verdict on top.
    """
    files = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    at = places(table).astype(object)
    table = table.assign(at=at.where(at.notna(), None).to_dict("records"))
    groups = [
        {
            "key": key,
            "paper": PAPERS[key],
            "counts": verdict_counts(rows[own_claims(rows)]),
            "rows": rows.to_dict("records"),
        }
        for key, rows in table.fillna({"reference": "", "over": ""}).groupby("paper", sort=False)
    ]
    found = [verdict for verdict in VERDICTS if verdict in set(table["verdict"])]
    page = files.get_template("ledger.html").render(
        groups=groups,
        choices={"paper": [group["paper"] for group in groups], "verdict": found},
        titles=("Verdict", "Claim", "The paper", "Ours", "Chapter"),
        style=files.loader.get_source(files, "ledger.css")[0],
        script=files.loader.get_source(files, "ledger.js")[0],
        **{"marks": MARKS, "colours": COLOURS, "interval": interval, "quantity": quantity, "region": region},
        notes=notes,
    )
    return HTML(page)


def verdict_bars(ledger: pd.DataFrame, *, title: str = "") -> Figure:
    """How many claims of each paper have each verdict: one stacked bar a paper, the numbers in it.

    Claims of the papers that were declared before their first result; the others are counted apart, in words.
    """
    ledger = ledger[own_claims(ledger)]
    counts = pd.crosstab(ledger["paper"], ledger["verdict"])
    counts = counts.reindex(index=[key for key in PAPERS if key in counts.index], columns=list(VERDICTS), fill_value=0)
    counts = counts.rename(index=PAPERS).iloc[::-1]
    colours = [COLOURS.get(verdict, PALE) for verdict in counts]
    with drawing(height=0.9 + 0.38 * len(counts)) as (figure, axes):
        counts.plot.barh(stacked=True, color=colours, width=0.8, ax=axes, legend=False)
        for bars, verdict in zip(axes.containers, counts, strict=True):
            words = [str(n) if n else "" for n in counts[verdict]]
            ink = "white" if verdict in COLOURS else INK
            axes.bar_label(bars, words, label_type="center", color=ink, fontsize=SMALL)
        axes.set(xlabel="claims", ylabel="", title=title)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.tick_params(axis="y", length=0)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
