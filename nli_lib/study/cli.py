"""`nli-study`: run the notebooks, see how they stand, see what this machine lacks, build the book."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

# chapters that answer one question about one corpus, each with parameters of its own
AUDIT = {"20_z_statistics": {}, "21_z_filter": {"TRAIN": False}}
SUSPECTS = "31_cross_score_and_prune"

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

Scale = Annotated[str, typer.Option(help="the dial: smoke, small or full")]
CorpusName = Annotated[
    str | None, typer.Option("--corpus", help="a corpus by name, or a file; default: the scale's own")
]
Seeds = Annotated[int | None, typer.Option(help="how many seeds, 1 to 20; default: the scale's own")]
DataDir = Annotated[str | None, typer.Option(help="folder with the official corpus files; default: NLI_DATA")]


def _others(pairs: list[str]) -> dict[str, object]:
    """NAME=VALUE pairs, values read as YAML: 3 is a number, no is False, two is text."""
    from nli_lib.study.parameters import ParameterError

    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ParameterError(f"-p {pair}: write NAME=VALUE")
        try:
            found[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise ParameterError(f"-p {pair}: {value} cannot be read as a value (YAML)") from None
    return found


def _request(scale: str, corpus: str | None, seeds: int | None = None, data_dir: str | None = None, **more: object):
    """A checked `Request`. Paths are made absolute: notebooks run in the project's folder, not in this one."""
    from nli_lib.study.parameters import is_own_file
    from nli_lib.study.schedule import Request

    if corpus and is_own_file(corpus) and Path(corpus).expanduser().is_file():
        corpus = str(Path(corpus).expanduser().resolve())
    if data_dir:
        data_dir = str(Path(data_dir).expanduser().resolve())
    if os.environ.get("NLI_DATA"):
        os.environ["NLI_DATA"] = str(Path(os.environ["NLI_DATA"]).expanduser().resolve())
    request = Request(scale=scale, corpus=corpus, seeds=seeds, data_dir=data_dir, **more)
    request.standard  # noqa: B018  raises ParameterError on wrong values
    return request


@app.command()
def run(
    notebooks: Annotated[list[str] | None, typer.Argument(help="names, numbers (10) or paths; default: all")] = None,
    scale: Scale = "smoke",
    corpus: CorpusName = None,
    seeds: Seeds = None,
    data_dir: DataDir = None,
    jobs: Annotated[int, typer.Option(min=1, help="notebooks at a time")] = 1,
    limit: Annotated[float | None, typer.Option(min=1, help="seconds that one notebook may take")] = None,
    force: Annotated[bool, typer.Option("--force", help="run again what still stands")] = False,
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="NAME=VALUE, a notebook's own")
    ] = None,
) -> None:
    """Run notebooks; those whose record still stands are skipped. Exit code 1 when one did not finish."""
    from nli_lib.study.manifest import FINISHED
    from nli_lib.study.schedule import run as run_notebooks

    others = _others(parameter or [])
    request = _request(scale, corpus, seeds, data_dir, others=others, limit=limit, force=force)
    outcomes = run_notebooks(notebooks or [], request, jobs)
    failed = [outcome.notebook for outcome in outcomes if outcome.state != FINISHED]
    ran = sum(outcome.ran for outcome in outcomes)
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} finished, {len(outcomes) - ran} of them found done")
    if failed:
        print(f"not finished: {', '.join(failed)}")
        raise typer.Exit(1)


@app.command()
def status(scale: Scale = "smoke", corpus: CorpusName = None) -> None:
    """How every notebook stands: done, stale and why, failed and why."""
    from nli_lib.study import manifest as records
    from nli_lib.study import standing
    from nli_lib.study.schedule import order

    request = _request(scale, corpus)
    for name in order():
        record = records.read(name, request.study)
        state, reason = records.end_state(record)
        if state == records.FINISHED:
            reasons = standing.why_stale(record)
            reasons += records.other_environment(record)
            state, reason = ("stale", "; ".join(reasons)) if reasons else (state, f"{record['seconds']:,.0f} s")
        print(f"{name:24} {state:12} {record.get('ended', '')[:10]:10}  {reason}".replace("\n", "\n    ").rstrip())


@app.command()
def confirm(
    before: Annotated[Path, typer.Option(help="folder with the smoke tables of the revision before")],
    scale: Scale = "small",
) -> None:
    """Confirm recorded chapters for the code at hand where the smoke tables before and after are equal.

    For records that cost hours: each keeps the revision it was made at, and its page names the modules that changed.
    """
    from nli_lib.study import standing

    if not before.is_dir():
        raise typer.BadParameter(f"there is no folder {before}", param_hint="--before")
    for name, said in standing.confirm(_request(scale, None).scale, before).items():
        print(f"{name:24} {said}")


@app.command()
def check(scale: Scale = "smoke", corpus: CorpusName = None, data_dir: DataDir = None) -> None:
    """What this machine lacks for a scale, with the command that fetches it. Exit code 1 when it lacks something."""
    from nli_lib.study.doctor import examine

    request = _request(scale, corpus, None, data_dir)
    findings = examine(request.scale, request.corpus, request.data_dir)
    for finding in findings:
        mark = "ok" if finding.ok else "LACKS" if finding.needed else "note"
        print(f"{mark:6} {finding.what:24} {finding.said}")
        if not finding.ok:
            print(f"{'':6} {'':24} -> {finding.fix}")
    if any(finding.needed and not finding.ok for finding in findings):
        raise typer.Exit(1)


@app.command()
def book(scale: Scale = "smoke", corpus: CorpusName = None) -> None:
    """Draw the chapters from the recorded tables and build book/_build/html. Needs neither torch nor data."""
    from nli_lib.study.book import build

    print(build(_request(scale, corpus)))


@app.command()
def audit(
    corpus: Annotated[str, typer.Argument(help="your file (csv, tsv, jsonl, parquet), or a corpus by name")],
    scale: Scale = "small",
    data_dir: DataDir = None,
) -> None:
    """What a corpus gives away, as pages of a book: top features by label, the hypothesis alone, the z-filter.

    Reads texts and labels and trains no network.
    """
    _pages(AUDIT, scale, corpus, data_dir)


@app.command()
def suspects(
    corpus: Annotated[str, typer.Argument(help="your file (csv, tsv, jsonl, parquet), or a corpus by name")],
    scale: Scale = "small",
    data_dir: DataDir = None,
    folds: Annotated[int, typer.Option(min=2, max=100, help="models, each scoring what it did not train on")] = 10,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="times all of it; the list says how many agree")] = 1,
) -> None:
    """Which labels of a corpus are probably wrong: a ranked list to review in data/exports/, and a page of a book.

    Trains one model for each fold, which scores what it has not seen, and one on all, for each seed. Stopped, it
    continues.
    """
    _pages({SUSPECTS: {"FOLDS": folds, "WAYS_PAIRS": 0}}, scale, corpus, data_dir, seeds)


def _pages(chapters: dict[str, dict], scale: str, corpus: str, data_dir: str | None, seeds: int | None = None) -> None:
    """Run some chapters on one corpus, name the lists they wrote, build the book. Exit code 1 when one fails."""
    from nli_lib import paths
    from nli_lib.study.book import build
    from nli_lib.study.manifest import FINISHED
    from nli_lib.study.schedule import run as run_notebooks

    ended = []
    for name, others in chapters.items():
        ended += run_notebooks([name], _request(scale, corpus, seeds, data_dir, others=others), 1)
    request = _request(scale, corpus)
    print(*sorted((paths.EXPORTS / request.study).glob("*")), sep="\n")
    print(build(request))
    if any(outcome.state != FINISHED for outcome in ended):
        raise typer.Exit(1)


@app.command()
def figures(scale: Scale = "small", corpus: CorpusName = None) -> None:
    """Take the README's figures out of the drawn chapters into book/figures. After `book` at the same scale."""
    from nli_lib.study.book import export_figures

    for path in export_figures(_request(scale, corpus)):
        print(path)


def main() -> None:
    """The command line with errors of ours as one clear message instead of a traceback."""
    from nli_lib.errors import UserError

    try:
        app()
    except (UserError, OSError) as error:  # OSError: a disk that is full or cannot be written; it names the file
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
