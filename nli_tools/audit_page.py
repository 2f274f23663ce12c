"""`nli-study audit` and `nli-study card`: a corpus measured without training, as a page, as numbers and as a section.

audit.html, audit.json
    the page and its numbers, in the folder of the corpus; nothing else is written
card.md, croissant.json
    a section for a dataset card; the same numbers as a record set of Croissant, the format of metadata of MLCommons
z_filter.csv
    on request: every pair, with the z-filter's decision and the reason

The page is self-contained and opens from disk. All text of the corpus is escaped by jinja; the page has no script and
forbids all requests.
"""

import contextlib
import json
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from matplotlib.ticker import MaxNLocator

import nli_lib
from nli_lib.corpora import check_enough
from nli_lib.corpora.corpus import MANY, Corpus
from nli_lib.evaluate import export_filtered
from nli_lib.stats import Estimate
from nli_lib.study.dial import is_own_file
from nli_lib.study.runner import Request, version
from nli_tools import audit
from nli_tools.audit import SHARE, WORDS, Audit, Figure, ends, percent, reference, visible
from nli_tools.own_corpus import MIN_ROWS, as_text, digest, read, read_test, recorded, say, write

HERE = Path(__file__).parent
FORMAT = 2  # of audit.json
# formats of numbers, also filters of the templates
FORMS = {name: getattr(audit, name) for name in ("percent", "points", "distance", "short_points", "square")}
FORMS["z"] = audit.z_words
ROWS = {figure: (name, FORMS[form]) for figure, (name, form) in WORDS["rows"].items()}
COLOURS = yaml.safe_load(Path(nli_lib.__file__).with_name("colours.yaml").read_text(encoding="utf-8"))


def as_estimate(figure: Mapping) -> Estimate:
    value, low, high = (np.nan if figure[end] is None else figure[end] for end in ("value", "low", "high"))
    return Estimate(value, low, high, figure["n"], over=figure["over"])


def curve_drawing(content: Mapping, figure: str) -> dict:
    """A figure of the reference corpora and of the user's corpus over the number of pairs: points of an svg, 300 by
    190."""
    known = audit.curves().dropna(subset=["value"])
    known = known[(known["classes"] == "/".join(content["classes"])) & (known["figure"] == figure)]
    # the user's figure for the whole corpus and, if that is larger than the curves, at their size
    own = [part[figure] for part in (content["figures"], content["own figures at that size"]) if figure in part]
    own = [(each["n"], as_estimate(each)) for each in own if each["value"] is not None and each["n"] > 0]
    sizes = np.array([*known["n"], *(n for n, _ in own)], dtype=float)
    drawn = {"title": WORDS["curves"][figure], "lines": {}, "own": [], "x": [], "y": []}
    if not len(sizes):
        return drawn
    values = np.array([*known["low"], *known["high"], *(end for _, e in own for end in e[:3] if np.isfinite(end)), 0.0])
    left, right, top, bottom = 54, 292, 8, 166
    x_first, x_last = np.log(sizes.min()), np.log(sizes.max()) if np.ptp(sizes) else np.log(sizes.max()) + 1
    rows = MaxNLocator(4).tick_values(values.min(), values.max() if np.ptp(values) else values.max() + 1)

    def x(n: float) -> float:
        return round(left + (right - left) * (np.log(n) - x_first) / (x_last - x_first), 1)

    def y(value: float) -> float:
        return round(bottom - (bottom - top) * (value - rows[0]) / (rows[-1] - rows[0]), 1)

    for corpus, curve in known.groupby("corpus", sort=False):
        points = (f"{x(row.n)},{y(row.value)}" for row in curve.sort_values("n").itertuples())
        drawn["lines"][corpus] = " ".join(points)
    for n, each in own:
        low, high = (y(end if np.isfinite(end) else each.value) for end in (each.low, each.high))
        drawn["own"].append({"x": x(n), "y": y(each.value), "low": low, "high": high})
    ticks = [n for n in (100, 1_000, 10_000, 100_000, 1_000_000) if sizes.min() <= n <= sizes.max()]
    form = ROWS[figure][1]
    return drawn | {"x": [(x(n), f"{n:,}") for n in ticks], "y": [(y(value), form(value)) for value in rows.round(10)]}


def as_json(corpus: Corpus, found: Audit, own: Mapping[str, Figure], compared: pd.DataFrame, **facts: object) -> dict:
    """The content of audit.json: every number as value, low, high, unit, n and over.

    own: the figures of the corpus at the size of the reference curves; compared: `audit.reference`; facts:
    more content, such as file, digest, test, next (sentences) and version.
    """

    def whole(count: int, n: int) -> dict:
        return Figure(audit.exact(count, n), audit.PAIRS).as_json()

    features = []
    for row in found.top.itertuples():
        known = {"label": row.label, "rank": row.rank, "feature": row.feature, "pairs": whole(row.n, row.n)}
        over = {"n": row.n, "over": "premises"}
        z_paper = Estimate(row.z_paper, np.nan, np.nan, **over)
        known["share"] = Figure(Estimate(row.share, row.low, row.high, **over)).as_json()
        known["share in the corpus"] = Figure(audit.exact(row.base, row.n)).as_json()
        known["z"] = Figure(Estimate(row.z, row.z_low, row.z_high, **over), audit.Z).as_json()
        features.append({**known, "z, one over the number of labels": Figure(z_paper, audit.Z).as_json()})
    references: dict[str, dict] = {}
    for row in compared.itertuples():
        kind = found.figures[row.figure].unit if row.figure in found.figures else SHARE
        draws = Estimate(row.value, row.low, row.high, row.at, over="draws of premises, range")
        references.setdefault(row.corpus, {})[row.figure] = Figure(draws, kind).as_json()
    reasons, n = [], len(found.kept)
    for row in found.reasons.itertuples():
        reasons.append({"feature": row.feature, "pairs": whole(row.pairs, n), "alone": whole(row.alone, n)})
    about = {"corpus": corpus.name, "source": corpus.source, "classes": list(corpus.classes)}
    about |= {"warnings": corpus.warnings(), "notes": found.notes}
    return {
        "format": FORMAT,
        **facts,
        **about,
        "figures": {name: figure.as_json() for name, figure in found.figures.items()},
        "compared at": int(compared["at"].max()) if len(compared) else None,
        "own figures at that size": {name: figure.as_json() for name, figure in own.items()},
        "reference": references,
        "features": features,
        "z-filter reasons": reasons,
    }


def page(content: Mapping, examples: Mapping[str, str] | None = None) -> str:
    """The html of an audit from the result of `as_json`. examples: feature -> a text of the user's corpus that has
    it."""
    return templates(html=True).get_template("audit.html").render(**shown(content, examples))


def shown(content: Mapping, examples: Mapping[str, str] | None = None) -> dict[str, object]:
    """The values for the page's templates, also for an audit within another page."""

    def of(start: str) -> dict[str, dict]:
        return {name.removeprefix(start): each for name, each in content["figures"].items() if name.startswith(start)}

    labels = {name: [f for f in content["features"] if f["label"] == name] for name in content["classes"]}
    drawn = {"curves": [curve_drawing(content, figure) for figure in WORDS["curves"]], "titles": WORDS["titles"]}
    colours = {**COLOURS["corpora"], **COLOURS["labels"]}
    counted = {"rows": table_rows(content), "skipped": of("skipped: "), "balance": of("label: "), "labels": labels}
    return {"c": content, **counted, **drawn, "examples": examples or {}, "colours": colours}


def card(content: Mapping) -> str:
    """A section for a dataset card on the hub, in Markdown, from the result of `as_json`."""
    return templates(html=False).get_template("audit_card.md").render(**shown(content))


def next_steps(found: Audit, compared: pd.DataFrame, own: Mapping[str, Figure], *, test: str = "") -> list[str]:
    """Advice in three sentences: about the rows, about the hypothesis alone, about features and the z-filter.

    Parameters
    ----------
    compared
        `audit.reference`; own: the figures of the corpus at that size; test: name of the test file, ""
    """
    f = {name: figure.estimate for name, figure in found.figures.items()}
    placed = {"more than": [], "not distinguishable from that": [], "less than": []}
    more, same, less = placed.values()
    for row in compared[compared["figure"] == "gain"].itertuples():
        mine = own["gain"].estimate
        names = more if mine.low > row.high else less if mine.high < row.low else same
        names.append(f"{WORDS['titles'][row.corpus]} ({audit.points(row.value)})")
    most = {"same": f["one answer"].value, "most": audit.ONE_ANSWER, "placed": placed, "at": compared["at"].max()}
    best = found.top.loc[found.top["z"].idxmax()] if len(found.top) and f["detectable"].value else None
    return [
        sentence("rows", f=f, test=test, many=MANY, often=0.01),  # from this share on, repeated pairs are mentioned
        sentence("alone", gain=f["gain"], right=f["hypothesis only"], area=f["area"], **most),
        sentence("features", dropped=f["dropped"], best=best, unit=audit.unit(f["without blanks"].value)),
    ]


def sentence(name: str, **values: object) -> str:
    """Advice from the numbers: a macro of next_steps.md, in one line."""
    said = getattr(templates(html=False).get_template("next_steps.md").module, name)(**values)
    return re.sub(r"\s*\n\s*", " ", said).strip()


def templates(*, html: bool) -> Environment:
    """The templates of this folder, with filters for numbers and texts; ``html``: True escapes texts."""

    def interval(figure: Estimate | Mapping, form: str = "percent") -> str:
        return ends(figure if isinstance(figure, Estimate) else as_estimate(figure), FORMS[form])

    def number(share: Estimate) -> str:
        return f"{round(share.value * share.n):,}"

    @pass_context
    def in_english(context: Mapping, feature: str) -> str:
        return audit.plain(feature, audit.unit(context["c"]["figures"]["without blanks"]["value"]))

    def markdown(text: object) -> str:
        """Escape a text of the corpus for Markdown and html."""
        shown = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return "".join(f"\\{letter}" if letter in r"\`*_{}[]()#|!~" else letter for letter in shown)

    blanks = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    known = Environment(loader=FileSystemLoader(HERE), autoescape=html, undefined=StrictUndefined, **blanks)
    known.filters |= {**FORMS, "interval": interval, "number": number, "plain": in_english, "whose": audit.whose}
    known.filters |= {"visible": visible, "markdown": markdown}
    return known


def table_rows(content: Mapping) -> list[dict]:
    """One row for each measured figure of `ROWS`: name, own and interval (texts; replaced by a remark if the model of
    the hypothesis nearly always gives one answer), at (the own value at the size of the curves), the reference (corpus
    -> value as text), strip (the positions of all values between the smallest and the largest, 4 to 96)."""
    figures, at, rows = content["figures"], content["own figures at that size"], []
    for key, (name, form) in ROWS.items():
        if key not in figures:
            continue
        own, same = as_estimate(figures[key]), as_estimate(at.get(key, figures[key]))
        interval = ends(own, form)
        if key == "gain" and (answer := figures["one answer"]["value"] or 0) > audit.ONE_ANSWER:
            interval = f"one answer to {percent(answer)}"  # an interval would suggest knowledge
        beside = {corpus: each[key]["value"] for corpus, each in content["reference"].items() if key in each}
        values = np.array([*same[:3], *beside.values()], dtype=float)
        finite = values[np.isfinite(values)]
        first, width = (finite.min(), np.ptp(finite) or 1.0) if len(finite) else (0.0, 1.0)
        places = (round(4 + 92 * (each - first) / width, 1) if np.isfinite(each) else None for each in values)
        value, low, high, *others = places
        strip = {"value": value, "low": low, "high": high, "beside": dict(zip(beside, others, strict=True))}
        row = {"key": key, "name": name, "own": form(own.value), "interval": interval, "at": form(same.value)}
        rows.append({**row, "beside": {corpus: form(value) for corpus, value in beside.items()}, "strip": strip})
    return rows


# ---------------------------------------------------------------- audit


NUMBERS, LIST = "audit.json", "z_filter.csv"
# Stage -> seconds for 100,000 pairs, smallest number of pairs, and largest number that it uses. They were measured by
# benchmarks/audit.py and serve only as a forecast.
STAGES = {
    "reading": (2.0, 0, np.inf),
    "repeated pairs": (1.0, 0, np.inf),
    "hypothesis alone": (12.0, 0, audit.HYPOTHESES_OF),
    "features": (2.0, 0, audit.FEATURES_OF),
    "chance": (3.0, 0, audit.FEATURES_OF),
    "z-filter": (5.0, 0, audit.FEATURES_OF),
    "comparison": (14.0, 15_001, 3 * 15_000),
    "page": (1.0, 0, 100_000),
}


def run(request: Request, test: str | None = None, *, pairs: bool = False) -> list[Path]:
    """Audit the corpus of a request, against a test file if one is given; return the written files.

    Parameters
    ----------
    pairs
        also write `LIST`
    """
    folder, clock = request.exports, Clock()
    with clock("reading"):
        corpus = read(request.corpus, request)
        other = read_test(test, request) if test else None
    say(corpus)
    check_enough(corpus, MIN_ROWS, "an audit")
    clock.rows = len(corpus)
    found = audit.audit(corpus, other, stage=clock)
    with clock("comparison"):
        beside = reference(corpus.classes, len(corpus))
        own = _at(corpus, other, found, beside)
    with clock("page"):
        against = {"name": Path(test).name, "digest": digest(test, request), "pairs": len(other)} if test else None
        steps = next_steps(found, beside, own, test=Path(test).name if test else "")
        facts = {"next": steps, "version": version(), "digest": digest(request.corpus, request), **request.form}
        content = as_json(corpus, found, own, beside, **facts, test=against)
        examples = {}
        if is_own_file(request.corpus):  # the first text with each feature of the page
            first = found.featured[found.top["first"].to_numpy(dtype=np.int64)]
            of_premise = found.top["feature"].str.endswith("@premise")
            texts = np.where(of_premise, corpus.premise[first], corpus.hypothesis[first])
            examples = dict(zip(found.top["feature"], texts, strict=True))
        if not pairs and _stored(folder / NUMBERS, request, None) is None:
            (folder / LIST).unlink(missing_ok=True)  # from an earlier state of the file
        written = [write(folder / "audit.html", page(content, examples)), write(folder / NUMBERS, as_text(content))]
        if pairs:
            part = corpus[found.featured] if len(found.featured) < len(corpus) else corpus
            written.append(export_filtered(folder / LIST, part, found.kept))
    print(*steps, sep="\n")
    return written


def write_card(request: Request, test: str | None = None, *, croissant: bool = False) -> tuple[str, Path]:
    """Write the section for a dataset card of a corpus, or its Croissant, which is audited now unless it was before;
    return text and path."""
    found = content(request, test)
    if not croissant:
        return (text := card(found)), write(request.exports / "card.md", text)
    text = templates(html=False).get_template("croissant.json").render(c=found, file=Path(request.corpus).name)
    said = "Add license, creator, url, version and datePublished before you publish it: the file does not say them."
    return said, write(request.exports / "croissant.json", text)


def content(request: Request, test: str | None = None) -> dict:
    """The content of audit.json for the current corpus, which is audited now unless it was before."""
    path = request.exports / NUMBERS
    stored = _stored(path, request, test)
    if stored is None:
        run(request, test)
        return json.loads(path.read_text(encoding="utf-8"))
    if stored["test"] and not test:
        name, then = stored["test"]["name"], stored["test"]["digest"]
        now = digest(str(Path(request.corpus).with_name(name)), request)
        if now not in (None, then):
            print(f"{name} has changed since the audit that found the leakage: name it again with --test {name}.")
    return stored


def _stored(path: Path, request: Request, test: str | None) -> dict | None:
    """The result of an earlier audit of the same file and test file; None if there is none."""
    found = recorded(path, FORMAT, request)
    if found is not None and test:
        asked = {"name": Path(test).name, "digest": digest(test, request)}  # a corpus by name has no digest
        return found if asked.items() <= (found["test"] or {}).items() else None
    return found


def _at(corpus: Corpus, test: Corpus | None, found: audit.Audit, beside: pd.DataFrame) -> dict[str, Figure]:
    """The figures of a corpus at the size of the curves: its own or, for a larger corpus, the mean over random parts.

    The interval of such a mean has the width for the whole corpus times the root of the ratio of the sizes (without
    this factor for a z, because its standard error does not depend on the size, and for a share of the test file), and
    includes all parts.
    """
    at = int(beside["at"].max()) if len(beside) else len(corpus)
    if at >= len(corpus):
        return dict(found.figures)
    parts, rows = 3, []
    for seed in range(parts):
        part = corpus[audit.sample_premises(corpus, at, seed)]
        leaked = audit.leakage(part, test) if test is not None else {}
        leaked = {name: each.estimate.value for name, each in leaked.items()}
        rows.append(audit.comparable(part, seed=seed) | leaked)
    figures = {}
    for name, values in pd.DataFrame(rows).items():
        whole, value = found.figures[name], float(values.mean())
        fixed = whole.unit == audit.Z or name.startswith("leaked")
        half = (whole.estimate.high - whole.estimate.low) / 2 * (1 if fixed else np.sqrt(whole.estimate.n / at))
        low, high = float(min(value - half, values.min())), float(max(value + half, values.max()))
        if whole.unit == SHARE:
            low, high = max(0.0, low), min(1.0, high)
        figures[name] = whole._replace(estimate=Estimate(value, low, high, at, over=f"premises, and {parts} parts"))
    return figures


# ---------------------------------------------------------------- progress


class Clock:
    """Show on the error stream the current stage and the remaining time, estimated from the stages before.

    with clock("features"): ...
    """

    def __init__(self) -> None:
        self.rows, self._left, self._took, self._foretold = None, dict(STAGES), 0.0, 0.0

    @contextlib.contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        started, ended, rows = time.monotonic(), threading.Event(), self.rows or 0
        expected = {
            name: seconds * min(rows, most) / 100_000 if rows >= least else 0.0
            for name, (seconds, least, most) in self._left.items()
        }
        number, own = len(STAGES) - len(self._left) + 1, expected.pop(stage)
        pace = (self._took + 1) / (self._foretold + 1)  # ratio of actual to forecast time so far

        def tell(what: str, gone: float = 0.0) -> None:
            rest = max(0.0, pace * own - gone) + pace * sum(expected.values())
            left = f", about {max(1, round(rest))} s left" if self.rows else ""
            print(f"{what}{left}", file=sys.stderr, flush=True)

        def repeat() -> None:
            while not ended.wait(20):  # seconds
                gone = time.monotonic() - started
                tell(f"      {stage}, {gone:.0f} s", gone)

        tell(f"[{number}/{len(STAGES)}] {stage}")
        watcher = threading.Thread(target=repeat, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
            del self._left[stage]
            if self.rows:
                self._took += time.monotonic() - started
                self._foretold += own
