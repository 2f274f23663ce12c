"""The page of a comparison, self-contained, to be opened from disk, and its table; also as a part of a report.

Names that a user gave go through jinja's escaping alone; the page has no script and forbids all requests.
"""

from collections.abc import Mapping

import pandas as pd

from nli_lib.compare import BASE
from nli_lib.report.audit_drawing import as_estimate
from nli_lib.report.audit_page import templates
from nli_lib.report.audit_words import distance, ends, percent, short_points

FORMAT = 1  # of compare.json
WIDTH = 100  # of the strip in which the differences are drawn


def page(content: Mapping) -> str:
    """The html of a comparison. content: what compare.json holds, see `study.compare`."""
    template = templates(html=True)
    template.filters["points"] = distance
    return template.get_template("comparison.html").render(**shown(content))


def shown(content: Mapping) -> dict[str, object]:
    """What the templates of the page are filled with, also where the comparison is a part of another page."""
    return {"k": content, "arm_rows": [_row(each, _reach(content)) for each in content["arms"]], "base": BASE}


def table(content: Mapping) -> pd.DataFrame:
    """One row an arm: the numbers of the page as columns, differences in accuracy (0-1) with their intervals."""
    rows = []
    for each in content["arms"]:
        row = {"arm": each["arm"], "different pairs": int(each["distinct"]["value"])}
        for name in ("accuracy", "accuracy of the twin", "difference", "above the base"):
            found = each.get(name, {})
            row |= {name: found.get("value"), f"{name}, low": found.get("low"), f"{name}, high": found.get("high")}
        row |= {"p": each["difference"]["p"], "p, Holm": each["difference"]["p, Holm"]}
        row |= {"trainings": each["difference"]["trainings"], "over": each["difference"]["over"]}
        row |= {
            "place": each["rank"]["value"],
            "place, best": each["rank"]["low"],
            "place, worst": each["rank"]["high"],
        }
        rows.append(row | {"verdict": each["verdict"]})
    absent = [{"arm": name, "verdict": f"left out: {reason}"} for name, reason in content["absent"].items()]
    return pd.DataFrame(rows + absent).round(5)


def _reach(content: Mapping) -> float:
    """The largest end of any difference: the strips of all arms have one scale."""
    found = [as_estimate(each["difference"]) for each in content["arms"]]
    return max((abs(end) for each in found for end in each[:3] if end == end), default=0.0) or 1.0


def _row(each: Mapping, reach: float) -> dict:
    gap, own, twin = (as_estimate(each[name]) for name in ("difference", "accuracy", "accuracy of the twin"))
    place = {end: _place(getattr(gap, end), reach) for end in ("value", "low", "high")}
    rank = each["rank"]
    return {
        "arm": each["arm"],
        "distinct": int(each["distinct"]["value"]),
        "own": f"{percent(own.value)} {ends(own)}",
        "twin": percent(twin.value),
        "gap": f"{short_points(gap.value)} {ends(gap, short_points)}",
        "p": "–" if each["difference"]["p, Holm"] is None else f"{each['difference']['p, Holm']:.3f}",
        "rank": f"{rank['value']} [{rank['low']}–{rank['high']}]",
        "verdict": each["verdict"] or "two draws of one corpus",
        "strip": place,
    }


def _place(value: float, reach: float) -> float | None:
    return round(WIDTH / 2 + 0.46 * WIDTH * value / reach, 1) if value == value else None
