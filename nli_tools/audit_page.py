"""The drawings of an audit's page: points of svg elements that its template writes down.

The pages of an audit: audit.html (self-contained, opens from disk), audit.json, and a section for a dataset card.

Text of the corpus goes through jinja's escaping alone; the page has no script and forbids all requests.

`nli-study audit` and `nli-study card`: one corpus measured without training, as a page, numbers and a section.

audit.html, audit.json     the page and its numbers, in the folder of the corpus; nothing else is written
card.md                    a section for a dataset card
z_filter.csv               where it is asked for: every pair, whether the z-filter keeps it, and why not
"""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from matplotlib.ticker import MaxNLocator

import nli_lib
from nli_lib import paths
from nli_lib.corpora import check_enough
from nli_lib.corpora.corpus import Corpus
from nli_lib.evaluate import export_filtered
from nli_lib.stats import Estimate
from nli_lib.study.dial import is_own_file
from nli_lib.study.runner import Request, version
from nli_tools import audit
from nli_tools.audit import (
    ONE_ANSWER,
    PAIRS,
    SHARE,
    TITLES,
    Audit,
    Figure,
    Z,
    curves,
    ends,
    exact,
    leakage,
    next_steps,
    percent,
    plain,
    reference,
    sample_premises,
    short_points,
    square,
    unit,
    visible,
    z_words,
)
from nli_tools.own_corpus import MIN_ROWS, as_text, digest, read, read_test, recorded, say, write

WIDTH, HEIGHT = 300, 190  # of a curve's drawing
CURVES = {
    "gain": "Hypothesis alone above the most frequent label, points",
    "highest z": "Strongest feature, z",
    "dropped": "Share that the z-filter drops",
}


def as_estimate(figure: Mapping) -> Estimate:
    value, low, high = (np.nan if figure[end] is None else figure[end] for end in ("value", "low", "high"))
    return Estimate(value, low, high, figure["n"], over=figure["over"])


def strip(own: Estimate, beside: Mapping[str, float]) -> dict:
    """Where one's own value and those of the corpora stand between the smallest and the largest of them, 4 to 96."""
    known = np.array([own.value, own.low, own.high, *beside.values()], dtype=float)
    known = known[np.isfinite(known)]
    first, width = (known.min(), np.ptp(known) or 1.0) if len(known) else (0.0, 1.0)

    def place(value: float) -> float | None:
        return round(4 + 92 * (value - first) / width, 1) if np.isfinite(value) else None

    ours = {end: place(getattr(own, end)) for end in ("value", "low", "high")}
    return {**ours, "beside": {corpus: place(value) for corpus, value in beside.items()}}


def curve_drawing(content: Mapping, figure: str) -> dict:
    """One figure of the reference corpora over the number of pairs, and one's own: points of an svg, 300 by 190."""
    known = curves().dropna(subset=["value"])
    known = known[(known["classes"] == "/".join(content["classes"])) & (known["figure"] == figure)]
    own = [(each["n"], as_estimate(each)) for each in _own(content, figure)]
    own = [(n, each) for n, each in own if np.isfinite(each.value) and n > 0]
    sizes = np.array([*known["n"], *(n for n, _ in own)], dtype=float)
    values = np.array([*known["low"], *known["high"], *(end for _, e in own for end in e[:3] if np.isfinite(end)), 0.0])
    form = {"gain": short_points, "highest z": z_words}.get(figure, percent)
    if not len(sizes):
        return {"title": CURVES[figure], "lines": {}, "own": [], "x": [], "y": []}
    left, right, top, bottom = 54, WIDTH - 8, 8, HEIGHT - 24
    x_first, x_last = np.log(sizes.min()), np.log(sizes.max()) if np.ptp(sizes) else np.log(sizes.max()) + 1
    rows = MaxNLocator(4).tick_values(values.min(), values.max() if np.ptp(values) else values.max() + 1)
    y_first, y_last = rows[0], rows[-1]

    def x(n: float) -> float:
        return round(left + (right - left) * (np.log(n) - x_first) / (x_last - x_first), 1)

    def y(value: float) -> float:
        return round(bottom - (bottom - top) * (value - y_first) / (y_last - y_first), 1)

    lines = {
        corpus: " ".join(f"{x(row.n)},{y(row.value)}" for row in curve.sort_values("n").itertuples())
        for corpus, curve in known.groupby("corpus", sort=False)
    }
    ticks = [n for n in (100, 1_000, 10_000, 100_000, 1_000_000) if sizes.min() <= n <= sizes.max()]
    marks = [
        {
            "x": x(n),
            "y": y(e.value),
            "low": y(e.low if np.isfinite(e.low) else e.value),
            "high": y(e.high if np.isfinite(e.high) else e.value),
        }
        for n, e in own
    ]
    return {
        "title": CURVES[figure],
        "lines": lines,
        "own": marks,
        "x": [(x(n), f"{n:,}") for n in ticks],
        "y": [(y(value), form(value)) for value in rows.round(10)],
    }


def _own(content: Mapping, figure: str) -> Sequence[Mapping]:
    """One's own figure for the whole corpus, and where that is larger than the curves at their size."""
    parts = content["figures"], content["own figures at that size"]
    return [part[figure] for part in parts if figure in part]


# ---------------------------------------------------------------- audit page


HERE = Path(__file__).parent
FORMAT = 2  # of audit.json
COLOURS = yaml.safe_load(Path(nli_lib.__file__).with_name("colours.yaml").read_text(encoding="utf-8"))
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


# ---------------------------------------------------------------- audit


PAGE, NUMBERS, CARD, LIST = "audit.html", "audit.json", "card.md", "z_filter.csv"
DRAWS = 3  # random parts of a corpus that is larger than the curves of the others
# Stage -> seconds for 100,000 pairs, from how many on it does something, and how many it looks at, at most. They were
# measured by benchmarks/audit.py and only foretell.
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
EVERY = 20.0  # seconds between lines about a stage that takes longer


def run(request: Request, test: str | None = None, *, pairs: bool = False) -> list[Path]:
    """Audit the corpus of a request, against a test file where one is named; the files that were written.

    pairs   write `LIST` as well
    """
    folder, clock = paths.EXPORTS / request.study, Clock()
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
        facts = {
            "next": next_steps(found, beside, own, test=Path(test).name if test else ""),
            "version": version(),
            "digest": digest(request.corpus, request),
            **request.form,
            "test": {"name": Path(test).name, "digest": digest(test, request), "pairs": len(other)} if test else None,
        }
        content = as_json(corpus, found, own, beside, **facts)
        examples = _examples(corpus, found) if is_own_file(request.corpus) else {}
        if not pairs and _stored(folder / NUMBERS, request, None) is None:
            (folder / LIST).unlink(missing_ok=True)  # of another state of the file
        written = [write(folder / PAGE, page(content, examples)), write(folder / NUMBERS, as_text(content))]
        if pairs:
            part = corpus[found.featured] if len(found.featured) < len(corpus) else corpus
            written.append(export_filtered(folder / LIST, part, found.kept))
    for sentence in facts["next"]:
        print(sentence)
    return written


def write_card(request: Request, test: str | None = None) -> Path:
    """Write the section for a dataset card of a corpus that was audited as it is now, or is audited now; its path."""
    return write(paths.EXPORTS / request.study / CARD, card(content(request, test)))


def content(request: Request, test: str | None = None) -> dict:
    """What audit.json holds of a corpus that was audited as it is now, or is audited now."""
    path = paths.EXPORTS / request.study / NUMBERS
    stored = _stored(path, request, test)
    if stored is None:
        run(request, test)
        stored = json.loads(path.read_text(encoding="utf-8"))
    elif stored["test"] and not test:
        name, then = stored["test"]["name"], stored["test"]["digest"]
        now = digest(str(Path(request.corpus).with_name(name)), request)
        if now not in (None, then):
            print(f"{name} has changed since the audit that found the leakage: give it again with --test {name}.")
    return stored


def _stored(path: Path, request: Request, test: str | None) -> dict | None:
    """What an earlier audit of the same file, and of the same test file, found; None where there is none."""
    found = recorded(path, FORMAT, request)
    if found is not None and test:
        asked = {"name": Path(test).name, "digest": digest(test, request)}  # a corpus by name has no digest
        return found if asked.items() <= (found["test"] or {}).items() else None
    return found


def _examples(corpus: Corpus, found: audit.Audit) -> dict[str, str]:
    """A hypothesis beside each feature of the page, the first that has it."""
    first = found.featured[found.top["first"].to_numpy(dtype=np.int64)]
    return dict(zip(found.top["feature"], corpus.hypothesis[first], strict=True))


def _at(corpus: Corpus, test: Corpus | None, found: audit.Audit, beside: pd.DataFrame) -> dict[str, Figure]:
    """The figures of a corpus at the size of the curves: its own, or of a larger corpus the mean over random parts.

    The interval of such a mean is as wide as that of the whole corpus, times the root of the ratio of the sizes (not of
    a z, whose standard error does not depend on the size, nor of a share of the test file), and holds all the parts.
    """
    at = int(beside["at"].max()) if len(beside) else len(corpus)
    if at >= len(corpus):
        return dict(found.figures)
    parts = [corpus[sample_premises(corpus, at, seed)] for seed in range(DRAWS)]
    drawn = pd.DataFrame(
        audit.comparable(part, seed=seed)
        | ({} if test is None else {name: each.estimate.value for name, each in leakage(part, test).items()})
        for seed, part in enumerate(parts)
    )
    figures = {}
    for name in drawn:
        whole, values = found.figures[name], drawn[name]
        fixed = whole.unit == Z or name.startswith("leaked")
        half = (whole.estimate.high - whole.estimate.low) / 2 * (1 if fixed else np.sqrt(whole.estimate.n / at))
        value = float(values.mean())
        low, high = float(min(value - half, values.min())), float(max(value + half, values.max()))
        if whole.unit == SHARE:
            low, high = max(0.0, low), min(1.0, high)
        estimate = Estimate(value, low, high, at, over=f"premises, and {DRAWS} parts")
        figures[name] = whole._replace(estimate=estimate)
    return figures


# ---------------------------------------------------------------- progress


class Clock:
    """Says on the error stream which stage runs and about how long the rest takes, by what the stages before took.

    with clock("features"): ...
    """

    def __init__(self) -> None:
        self.rows, self._left, self._took, self._foretold = None, dict(STAGES), 0.0, 0.0

    @contextlib.contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        started, ended, expected = time.monotonic(), threading.Event(), self._expected(stage)
        number = len(STAGES) - len(self._left) + 1
        self._tell(f"[{number}/{len(STAGES)}] {stage}", self._rest())

        def repeat() -> None:
            while not ended.wait(EVERY):
                gone = time.monotonic() - started
                rest = max(0.0, self._pace() * expected - gone) + self._rest() - self._pace() * expected
                self._tell(f"      {stage}, {gone:.0f} s", rest)

        watcher = threading.Thread(target=repeat, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
            self._left.pop(stage, None)
            if self.rows:
                self._took += time.monotonic() - started
                self._foretold += expected

    def _expected(self, stage: str) -> float:
        seconds, least, most = STAGES[stage]
        rows = self.rows or 0
        return seconds * min(rows, most) / 100_000 if rows >= least else 0.0

    def _pace(self) -> float:
        """How many times as long as foretold the stages took so far."""
        return (self._took + 1) / (self._foretold + 1)

    def _rest(self) -> float:
        return self._pace() * sum(map(self._expected, self._left))

    def _tell(self, what: str, rest: float) -> None:
        left = f", about {max(1, round(rest))} s left" if self.rows else ""
        print(f"{what}{left}", file=sys.stderr, flush=True)
