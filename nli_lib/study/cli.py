"""`nli-study`: run the notebooks, see how they stand, see what this machine lacks, build the book."""

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from nli_lib.errors import UserError
from nli_lib.study import carried, doctor, schedule, standing
from nli_lib.study import manifest as records
from nli_lib.study.corpus_commands import COMMANDS
from nli_lib.study.options import CorpusName, DataDir, Scale, Seeds, reads_a_file, request_of, yaml_values
from nli_lib.study.status import stamps

# commands that need neither notebooks nor book
WITHOUT_NOTEBOOKS = ("audit", "card", "report", "compare")

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"nli-quality-study {carried.version()}")
        raise typer.Exit()


@app.callback()
def before(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="say it and end")
    ] = False,
) -> None:
    if context.invoked_subcommand not in WITHOUT_NOTEBOOKS:
        carried.unpack()


@app.command()
@reads_a_file
def run(
    form: dict,
    notebooks: Annotated[list[str] | None, typer.Argument(help="names, numbers (10) or paths; default: all")] = None,
    scale: Scale = "smoke",
    corpus: CorpusName = None,
    seeds: Seeds = None,
    jobs: Annotated[int, typer.Option(min=1, help="notebooks at a time")] = 1,
    force: Annotated[bool, typer.Option("--force", help="run again what still stands")] = False,
    parts_only: Annotated[
        bool,
        typer.Option("--parts-only", help="train what is missing of chapters made of parts; no table is written"),
    ] = False,
    take_only: Annotated[
        bool, typer.Option("--take-only", help="the same without training: only what finished runs hold")
    ] = False,
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="NAME=VALUE, a notebook's own")
    ] = None,
) -> None:
    """Run notebooks; those whose record still stands are skipped. Exit code 1 when one did not finish."""
    others = yaml_values(parameter or [])
    request = request_of(scale, corpus, **form, seeds=seeds, others=others, force=force)
    if parts_only or take_only:
        complete = schedule.make_parts(notebooks or [], request, "take" if take_only else "train")
        raise typer.Exit(0 if complete else 1)
    outcomes = schedule.run(notebooks or [], request, jobs)
    failed = [outcome.notebook for outcome in outcomes if outcome.state != records.FINISHED]
    ran = sum(outcome.ran for outcome in outcomes)
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} finished, {len(outcomes) - ran} of them found done")
    if failed:
        print(f"not finished: {', '.join(failed)}")
        raise typer.Exit(1)


@app.command()
def status(scale: Scale = "smoke", corpus: CorpusName = None) -> None:
    """How every notebook stands: done, stale and why, failed and why."""
    from nli_lib.study import parts  # which needs pandas

    request = request_of(scale, corpus)
    for name in schedule.order():
        record = records.read(name, request.study)
        state, reason = records.end_state(record)
        if state == records.FINISHED:
            notes = stamps(name, request)
            state, reason = ("stale", " ".join(notes)) if notes else (state, f"{record.get('seconds', 0):,.0f} s")
        print(f"{name:24} {state:12} {record.get('ended', '')[:10]:10}  {reason}".replace("\n", "\n    ").rstrip())
        if said := parts.progress(name, request.study):
            print(f"    {said}")


@app.command()
def confirm(
    before: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="folder with the smoke tables of the revision before")
    ],
    scale: Scale = "small",
) -> None:
    """Confirm recorded chapters for the code at hand where the smoke tables before and after are equal.

    For records that cost hours: each keeps the revision it was made at, and its page names the modules that changed.
    """
    for name, said in standing.confirm(request_of(scale, None).scale, before).items():
        print(f"{name:24} {said}")


@app.command()
def check(scale: Scale = "smoke", corpus: CorpusName = None, data_dir: DataDir = None) -> None:
    """What this machine lacks for a scale, with the command that fetches it. Exit code 1 when it lacks something."""
    findings = doctor.examine(request_of(scale, corpus, data_dir=data_dir))
    for finding in findings:
        mark = "ok" if finding.ok else "LACKS" if finding.needed else "note"
        print(f"{mark:6} {finding.what:24} {finding.said}")
        if not finding.ok:
            print(f"{'':6} {'':24} -> {finding.fix}")
    if any(finding.needed and not finding.ok for finding in findings):
        raise typer.Exit(1)


@app.command("book")
def build(scale: Scale = "smoke", corpus: CorpusName = None) -> None:
    """Draw the chapters from the recorded tables and build book/_build/html. Needs neither torch nor data."""
    from nli_lib.study import book  # what draws and renders takes seconds to be imported

    schedule.order()  # raises RunnerError where the folder holds no notebooks
    print(book.build(request_of(scale, corpus)))


for command in COMMANDS:
    app.command()(command)


def main() -> None:
    """The command line with errors of ours as one clear message instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a console that does not know a letter
    try:
        app()
    except (UserError, OSError) as error:  # OSError: a disk that is full or cannot be written; it names the file
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
