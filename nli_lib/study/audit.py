"""`nli-study audit` and `nli-study card`: one corpus measured without training, as a page, numbers and a section.

audit.html, audit.json     the page and its numbers, in the folder of the corpus; nothing else is written
card.md                    a section for a dataset card
z_filter.csv               where it is asked for: every pair, whether the z-filter keeps it, and why not
"""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from nli_lib import paths
from nli_lib.corpora import check_enough
from nli_lib.corpora.corpus import Corpus
from nli_lib.evaluate import export_filtered
from nli_lib.report import audit as numbers
from nli_lib.report import audit_page
from nli_lib.report.audit_figures import SHARE, Figure, Z, leakage, sample_premises
from nli_lib.report.audit_reference import reference
from nli_lib.report.audit_words import next_steps
from nli_lib.stats import Estimate
from nli_lib.study.carried import version
from nli_lib.study.own_corpus import ROWS, as_text, digest, read, read_test, recorded, say, write
from nli_lib.study.parameters import is_own_file
from nli_lib.study.schedule import Request

PAGE, NUMBERS, CARD, LIST = "audit.html", "audit.json", "card.md", "z_filter.csv"
DRAWS = 3  # random parts of a corpus that is larger than the curves of the others
# Stage -> seconds for 100,000 pairs, from how many on it does something, and how many it looks at, at most. They were
# measured by benchmarks/audit.py and only foretell.
STAGES = {
    "reading": (2.0, 0, np.inf),
    "repeated pairs": (1.0, 0, np.inf),
    "hypothesis alone": (12.0, 0, numbers.HYPOTHESES_OF),
    "features": (2.0, 0, numbers.FEATURES_OF),
    "chance": (3.0, 0, numbers.FEATURES_OF),
    "z-filter": (5.0, 0, numbers.FEATURES_OF),
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
    check_enough(corpus, ROWS, "an audit")
    clock.rows = len(corpus)
    found = numbers.audit(corpus, other, stage=clock)
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
        content = audit_page.as_json(corpus, found, own, beside, **facts)
        examples = _examples(corpus, found) if is_own_file(request.corpus) else {}
        if not pairs and _stored(folder / NUMBERS, request, None) is None:
            (folder / LIST).unlink(missing_ok=True)  # of another state of the file
        written = [write(folder / PAGE, audit_page.page(content, examples)), write(folder / NUMBERS, as_text(content))]
        if pairs:
            part = corpus[found.featured] if len(found.featured) < len(corpus) else corpus
            written.append(export_filtered(folder / LIST, part, found.kept))
    for sentence in facts["next"]:
        print(sentence)
    return written


def write_card(request: Request, test: str | None = None) -> Path:
    """Write the section for a dataset card of a corpus that was audited as it is now, or is audited now; its path."""
    return write(paths.EXPORTS / request.study / CARD, audit_page.card(content(request, test)))


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
    found = recorded(path, audit_page.FORMAT, request)
    if found is not None and test:
        asked = {"name": Path(test).name, "digest": digest(test, request)}  # a corpus by name has no digest
        return found if asked.items() <= (found["test"] or {}).items() else None
    return found


def _examples(corpus: Corpus, found: numbers.Audit) -> dict[str, str]:
    """A hypothesis beside each feature of the page, the first that has it."""
    first = found.featured[found.top["first"].to_numpy(dtype=np.int64)]
    return dict(zip(found.top["feature"], corpus.hypothesis[first], strict=True))


def _at(corpus: Corpus, test: Corpus | None, found: numbers.Audit, beside: pd.DataFrame) -> dict[str, Figure]:
    """The figures of a corpus at the size of the curves: its own, or of a larger corpus the mean over random parts.

    The interval of such a mean is as wide as that of the whole corpus, times the root of the ratio of the sizes (not of
    a z, whose standard error does not depend on the size, nor of a share of the test file), and holds all the parts.
    """
    at = int(beside["at"].max()) if len(beside) else len(corpus)
    if at >= len(corpus):
        return dict(found.figures)
    parts = [corpus[sample_premises(corpus, at, seed)] for seed in range(DRAWS)]
    drawn = pd.DataFrame(
        numbers.comparable(part, seed=seed)
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
