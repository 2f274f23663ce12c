"""The pages of an audit: audit.html (self-contained, opens from disk), audit.json, and a section for a dataset card.

Text of the corpus goes through jinja's escaping alone; the page has no script and forbids all requests.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context

from nli_lib.corpora.corpus import Corpus
from nli_lib.report.audit import Audit
from nli_lib.report.audit_drawing import CURVES, as_estimate, curve_drawing, strip
from nli_lib.report.audit_figures import PAIRS, Figure, Z, exact
from nli_lib.report.audit_reference import TITLES
from nli_lib.report.audit_words import ONE_ANSWER, ends, percent, plain, short_points, square, unit, visible, z_words
from nli_lib.stats import Estimate

HERE = Path(__file__).parent
FORMAT = 2  # of audit.json
COLOURS = yaml.safe_load((HERE / "colours.yaml").read_text(encoding="utf-8"))
COLOURS = {**COLOURS["corpora"], **COLOURS["labels"]}


# figure -> what it is called, how it is written
ROWS = {
    "majority": ("Most frequent label", percent),
    "duplicates": ("Rows that repeat an earlier pair", percent),
    "conflicts": ("Rows whose pair has two labels", percent),
    "hypotheses": ("Rows that repeat a hypothesis", percent),
    "leaked pairs": ("Test pairs found here", percent),
    "leaked premises": ("Test premises found here", percent),
    "leaked hypotheses": ("Test hypotheses found here", percent),
    "hypothesis only": ("Accuracy of the hypothesis alone", percent),
    "gain": ("… above most frequent label, points", short_points),
    "area": ("Hypothesis alone, area under ROC curve", square),
    "highest z": ("Strongest feature, z", z_words),
    "above": ("N-grams tied to a label", percent),
    "dropped": ("Pairs that the z-filter drops", percent),
}


def as_json(corpus: Corpus, found: Audit, own: Mapping[str, Figure], beside: pd.DataFrame, **facts: object) -> dict:
    """The content of audit.json: every number as value, low, high, unit, n and over.

    own: the figures of the corpus at the size of the reference curves; beside: `audit_reference.reference`; facts: what
    else is known, such as file, digest, test, next (sentences) and version.
    """
    at = int(beside["at"].max()) if len(beside) else None
    units = {name: figure.unit for name, figure in found.figures.items()}
    references: dict[str, dict] = {}
    for row in beside.itertuples():
        draws = Figure(
            Estimate(row.value, row.low, row.high, row.at, over="draws of premises, range"),
            units.get(row.figure, "share"),
        )
        references.setdefault(row.corpus, {})[row.figure] = draws.as_json()
    return {
        "format": FORMAT,
        **facts,
        "corpus": corpus.name,
        "source": corpus.source,
        "classes": list(corpus.classes),
        "warnings": corpus.warnings(),
        "notes": found.notes,
        "figures": {name: figure.as_json() for name, figure in found.figures.items()},
        "compared at": at,
        "own figures at that size": {name: figure.as_json() for name, figure in own.items()},
        "reference": references,
        "features": [_feature(row) for row in found.top.itertuples()],
        "z-filter reasons": [
            {
                "feature": row.feature,
                "pairs": _whole(row.pairs, len(found.kept)),
                "alone": _whole(row.alone, len(found.kept)),
            }
            for row in found.reasons.itertuples()
        ],
    }


def _whole(count: int, n: int) -> dict:
    return Figure(exact(count, n), PAIRS).as_json()


def _feature(row: tuple) -> dict:
    share = Estimate(row.share, row.low, row.high, row.n, over="premises")
    z = Estimate(row.z, row.z_low, row.z_high, row.n, over="premises")
    paper = Estimate(row.z_paper, np.nan, np.nan, row.n, over="premises")
    return {
        "label": row.label,
        "rank": row.rank,
        "feature": row.feature,
        "pairs": _whole(row.n, row.n),
        "share": Figure(share).as_json(),
        "share in the corpus": Figure(exact(row.base, row.n)).as_json(),
        "z": Figure(z, Z).as_json(),
        "z, one over the number of labels": Figure(paper, Z).as_json(),
    }


def page(content: Mapping, examples: Mapping[str, str] | None = None) -> str:
    """The html of an audit from what `as_json` gave. examples: feature -> a hypothesis that has it, of a user's own."""
    return templates(html=True).get_template("audit.html").render(**shown(content, examples))


def shown(content: Mapping, examples: Mapping[str, str] | None = None) -> dict[str, object]:
    """What the templates of the page are filled with, also where the audit is a part of another page."""
    return {
        "c": content,
        "rows": table_rows(content),
        "labels": label_blocks(content),
        "curves": [curve_drawing(content, figure) for figure in CURVES],
        "skipped": _of(content, "skipped: "),
        "balance": _of(content, "label: "),
        "examples": examples or {},
        "titles": TITLES,
        "colours": COLOURS,
    }


def _of(content: Mapping, start: str) -> dict[str, dict]:
    return {name.removeprefix(start): each for name, each in content["figures"].items() if name.startswith(start)}


def card(content: Mapping) -> str:
    """A section for a dataset card on the hub, in Markdown, from what `as_json` gave."""
    return (
        templates(html=False)
        .get_template("audit_card.md")
        .render(c=content, rows=table_rows(content), labels=label_blocks(content), titles=TITLES)
    )


def templates(*, html: bool) -> Environment:
    """The templates of this folder, with filters for numbers and texts; ``html``: texts are escaped."""
    known = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    known.filters |= {"percent": percent, "plain": _plain, "visible": visible, "z": z_words, "interval": _interval}
    known.filters["area"] = lambda figure: f"{square(figure['value'])} {_interval(figure, square)}".rstrip()
    known.filters["markdown"] = _markdown
    return known


@pass_context
def _plain(context: Mapping, feature: str) -> str:
    return plain(feature, unit(context["c"]["figures"]["without blanks"]["value"]))


def _interval(figure: Mapping, form=percent) -> str:
    return ends(as_estimate(figure), form)


def _markdown(text: object) -> str:
    """A text of the corpus in Markdown: letters that mean something there, or in html, are escaped."""
    shown = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{letter}" if letter in r"\`*_{}[]()#|!~" else letter for letter in shown)


def table_rows(content: Mapping) -> list[dict]:
    """One row for each of `ROWS` that was measured: name, own and interval (in words; where the model of the hypothesis
    nearly always gives one answer, that stands in its place), at (the own value at the size of the curves), beside
    (corpus -> value in words), strip (positions of all of them, 0 to 100)."""
    figures, at, rows = content["figures"], content["own figures at that size"], []
    for key, (name, form) in ROWS.items():
        if key not in figures:
            continue
        own, same = as_estimate(figures[key]), as_estimate(at.get(key, figures[key]))
        interval = ends(own, form)
        if key == "gain" and (answer := figures["one answer"]["value"] or 0) > ONE_ANSWER:
            interval = f"one answer to {percent(answer)}"  # of the pairs: an interval would claim to know something
        beside = {corpus: each[key]["value"] for corpus, each in content["reference"].items() if key in each}
        rows.append({
            "key": key,
            "name": name,
            "own": form(own.value),
            "interval": interval,
            "at": form(same.value),
            "beside": {corpus: form(value) for corpus, value in beside.items()},
            "strip": strip(same, beside),
        })  # fmt: skip
    return rows


def label_blocks(content: Mapping) -> dict[str, list[dict]]:
    """Label -> its features, best first."""
    blocks: dict[str, list[dict]] = {name: [] for name in content["classes"]}
    for feature in content["features"]:
        blocks[feature["label"]].append(feature)
    return blocks
