"""The page of a report: audit, suspects, levels and comparison of one corpus, self-contained, to be opened from disk.

Text of the corpus goes through jinja's escaping alone; the page has no script and forbids all requests.
"""

from collections.abc import Mapping

from nli_lib.report import comparison_page
from nli_lib.report.audit_drawing import as_estimate
from nli_lib.report.audit_page import shown, templates
from nli_lib.report.audit_words import distance, ends, percent
from nli_lib.report.level_figures import CONTRADICTED, RAND, WORDS
from nli_lib.report.style import COLOURS, TWIN

FORMAT = 1  # of report.json
PARTS = ("audit", "suspects", "levels", "comparison")


def next_steps(parts: Mapping[str, Mapping]) -> list[str]:
    """What to do next, in the order of the parts: three sentences of the audit, one of each other part."""
    steps = list(parts["audit"]["next"])
    return steps + [parts[name]["next"] for name in PARTS[1:] if name in parts]


def page(content: Mapping) -> str:
    """The html of a report. content: what report.json holds, see `study.report`."""
    template = templates(html=True)
    template.filters |= {"in_words": in_words, "points": distance}
    parts = shown(content["audit"]) | (comparison_page.shown(content["comparison"]) if "comparison" in content else {})
    return template.get_template("report.html").render(
        **parts, report=content, level_colours=COLOURS, twin=TWIN, score_names=(CONTRADICTED, WORDS)
    )


def in_words(figure: Mapping) -> str:
    """A number of any unit with its interval, for reading."""
    estimate = as_estimate(figure)
    form = {"words": "{:.1f}".format, RAND: "{:.2f}".format}.get(figure["unit"], percent)
    return f"{form(estimate.value)} {ends(estimate, form)}".rstrip()
