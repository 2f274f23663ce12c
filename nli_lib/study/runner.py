"""Notebooks, book and recorded tables that the library brings along, in the home that NLI_HOME names.

An installed library copies them there; `setup.py` puts them into the wheel. A clone links to its own, so that they are
read from the clone, and what is written takes the place of a link.

Runs the study's notebooks: the ones asked for, in their order, several at a time if wished, without what stands.

Each notebook runs in a process of its own (`nli_lib.study.runner`), which decides how it ended. This module decides
what to run and why: a finished record is kept unless the notebook's code, its parameters, the library modules it used
or the tables it read have changed.

What a command line may say: the options that several commands share, and how what was written is read::

    request = request_of(scale, corpus, **form, seeds=seeds)  # checked, its paths absolute

Runs one notebook in a process of its own and says truly how it ended.

papermill writes a notebook whose kernel died as if it had completed. So the end is decided from evidence gathered
here: the kernel's exit code, the memory group's count of out-of-memory kills, the signal that stopped us, and, for
"finished", the record that this very run's last cell wrote (its token) and an execution count on every code cell.

Kernels talk over IPC below a fresh absolute path: the default path clashes between parallel runs.
"""

import ast
import asyncio
import contextlib
import ctypes
import functools
import graphlib
import inspect
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer
import yaml
from filelock import AsyncFileLock, FileLock, Timeout
from jupyter_client.manager import AsyncKernelManager
from pydantic import TypeAdapter, ValidationError
from traitlets.config import Config

from nli_lib import paths
from nli_lib.store import atomic, now
from nli_lib.study import dial, standing
from nli_lib.study.dial import FORM, ParameterError, Parameters, as_options, check, close, is_own_file
from nli_lib.study.standing import StudyError

FOLDER = Path(__file__).resolve().parents[1] / "carried"
CLONE = Path(__file__).resolve().parents[2]
MADE = {"__pycache__", "_build", "chapters", "notebooks", "plotly.min.js"}  # by runs, in the folder of the book
STAMP = "nli-study.version"  # in the notebooks' folder: the version that they came with


def version() -> str:
    """The version of the installed library; of one that is not installed, but on the path, "not installed"."""
    try:
        return metadata.version("nli-quality-study")
    except metadata.PackageNotFoundError:
        return "not installed"


def unpack() -> None:
    """Copy into `paths.HOME` what the installed library carries, or link to what the clone holds, where it has not been
    done. What is there is never overwritten: copied from another version, it is a `StudyError`."""
    if not FOLDER.is_dir():
        _link()
        return
    own, stamp = version(), paths.NOTEBOOKS / STAMP
    if stamp.is_file():
        there, _, unfinished = stamp.read_text(encoding="utf-8").strip().partition(" ")
        if there != own:
            raise StudyError(
                f"{paths.NOTEBOOKS} and {paths.BOOK} are those of version {there}, installed is {own}: move both "
                "folders away, or set NLI_HOME to a new folder."
            )
        if not unfinished:
            return
    elif paths.NOTEBOOKS.exists() or paths.BOOK.exists():
        return  # a clone named by NLI_HOME, or somebody's own
    standing.write_text(stamp, f"{own} unfinished\n")  # so that a copy that was interrupted is finished
    print(f"notebooks, book and recorded tables of version {own} are copied into {paths.HOME}", flush=True)
    for source in sorted(path for path in FOLDER.rglob("*") if path.is_file()):
        target = paths.HOME / source.relative_to(FOLDER)
        if not target.exists():
            with atomic(target) as draft:
                shutil.copyfile(source, draft)
    standing.write_text(stamp, f"{own}\n")


def _link() -> None:
    """Link from a home that is not the clone itself to notebooks, book, pins and, once, the recorded tables."""
    linked = paths.NOTEBOOKS.is_symlink()
    if paths.HOME.resolve() == CLONE or (not linked and (paths.NOTEBOOKS.exists() or paths.BOOK.exists())):
        return  # or another clone, or somebody's own
    folders = [CLONE / "book", *([] if linked else sorted(CLONE.glob("data/results/small*")))]
    files = [path.relative_to(CLONE) for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    for name in [Path("constraints.txt"), *(name for name in files if not MADE & set(name.parts)), Path("notebooks")]:
        target = paths.HOME / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)  # a link to a clone that has moved
            target.symlink_to(CLONE / name)
    if not linked:
        print(f"notebooks, book and recorded tables are read from {CLONE}; results go below {paths.HOME}", flush=True)


# ---------------------------------------------------------------- schedule


HEARTBEAT = 60.0  # seconds between lines that say how far the notebooks are
PATIENCE = 15.0  # seconds a stopped notebook gets to write its record


@dataclass(frozen=True)
class Request:
    """What a run is asked to do: the dial, other parameters by name, and whether to run again what stands."""

    scale: str = "smoke"
    corpus: str | None = None
    seeds: int | None = None
    data_dir: str | None = None
    columns: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    encoding: str | None = None
    others: dict[str, object] = field(default_factory=dict)
    force: bool = False

    def standard(self) -> dict[str, object]:
        """The parameters every notebook takes, checked. Raises `ParameterError`."""
        given = {"SCALE": self.scale, "CORPUS": self.corpus, "SEEDS": self.seeds, "DATA_DIR": self.data_dir}
        return check(given | {name.upper(): said for name, said in self.form.items()})

    @property
    def form(self) -> dict[str, object]:
        """How a user's own file is read, as `load` takes it."""
        return {name: getattr(self, name) for name in FORM}

    @property
    def study(self) -> str:
        return standing.study_name(self.scale, self.corpus)

    def command(self, notebook: str) -> str:
        """The shell command that runs a notebook as asked here."""
        return standing.command(notebook, self.scale, self.corpus, data_dir=self.data_dir, **as_options(self.form))


@dataclass
class Outcome:
    """How one notebook ended in this call: its state, the reason, and whether it was run at all."""

    notebook: str
    state: str
    reason: str = ""
    ran: bool = True
    seconds: float = 0.0


# ---------------------------------------------------------------- what there is


def order() -> dict[str, list[str]]:
    """{notebook: the notebooks it waits for}, from notebooks/order.yaml; others wait for nothing."""
    if not paths.NOTEBOOKS.is_dir():
        raise StudyError(
            f"{paths.HOME} has no folder notebooks: unset NLI_HOME, or set it to a new folder, which is then filled."
        )
    path = paths.NOTEBOOKS / "order.yaml"
    try:
        said = path.read_text(encoding="utf-8") if path.is_file() else ""
        declared = TypeAdapter(dict[str, list[str] | Literal["all"] | None]).validate_python(yaml.safe_load(said) or {})
    except (yaml.YAMLError, ValidationError) as error:
        raise StudyError(f"{path} is not an order of notebooks: {' '.join(str(error).split())}") from None
    present = sorted(file.stem for file in paths.NOTEBOOKS.glob("*.ipynb"))
    names = [name for name in dict.fromkeys([*declared, *present]) if name in present]
    waits = {}
    for name in names:
        after = declared.get(name) or []
        if after == "all":
            after = [other for other in names if other != name and declared.get(other) != "all"]
        if unknown := [other for other in after if other not in {*declared, *names}]:
            raise StudyError(f"{path}: {name} waits for {unknown}, which nobody declares")
        waits[name] = [other for other in after if other in names]
    try:
        graphlib.TopologicalSorter(waits).prepare()
    except graphlib.CycleError as error:
        raise StudyError(f"{path}: notebooks wait for each other: {', '.join(error.args[1])}") from None
    return waits


def choose(wanted: Iterable[str]) -> list[str]:
    """The notebooks meant by names, number prefixes ("10") or paths; all of them when none is given."""
    known = list(order())
    chosen = []
    for word in wanted:
        stem = Path(word).stem
        found = [name for name in known if name == stem or re.fullmatch(rf"{re.escape(stem)}_.*", name)]
        if not found:
            raise StudyError(f"no notebook {word!r} in {paths.NOTEBOOKS}; there are: {', '.join(known) or 'none'}")
        chosen += found
    return [name for name in known if name in chosen] if chosen else known


def declared_parameters(name: str) -> dict[str, object]:
    """Names and default values in the cell tagged `parameters` of a notebook."""
    for cell in standing.cells(paths.NOTEBOOKS / f"{name}.ipynb"):
        if "parameters" in cell["tags"]:
            try:
                return {node.targets[0].id: ast.literal_eval(node.value) for node in ast.parse(cell["source"]).body}
            except (AttributeError, ValueError, SyntaxError):
                raise StudyError(
                    f"{name}: the cell tagged `parameters` sets one parameter a line: NAME = a number, a text or None."
                ) from None
    raise StudyError(f"{name} has no cell tagged `parameters`")


def declared_rules(name: str) -> tuple[dict[str, object], dict[str, str]]:
    """What the `begin` of a notebook says of its own parameters, `extra` and `knobs`."""
    begin = [tree for tags, tree in standing.code_cells(paths.NOTEBOOKS / f"{name}.ipynb") if "begin" in tags]
    said = {node.arg: node.value for tree in begin for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    said = {arg: eval(compile(ast.Expression(said[arg]), name, "eval")) for arg in ("extra", "knobs") if arg in said}
    return said.get("extra", {}), said.get("knobs", {})


def resolve(notebook: str, request: Request) -> dict[str, object]:
    """Every parameter's value as the notebook will see it. Raises `ParameterError` for names that it does not have, and
    for values that its `begin` would refuse."""
    declared = declared_parameters(notebook)
    own = [name for name in declared if name not in Parameters.model_fields]
    for name in request.others:
        if name in Parameters.model_fields:
            option = name.lower().replace("_", "-")
            raise ParameterError(f"-p {name}: use --{option}, which also decides where the results go")
        if name not in own:
            has = ", ".join(own) or "none of its own"
            raise ParameterError(f"{notebook} has no parameter {name}{close(name, own)}; it has {has}")
    asked = {name: value for name, value in request.standard().items() if value is not None}
    given = {**declared, **asked, **request.others}
    if request.others:
        extra, knobs = declared_rules(notebook)
        check({name: given[name] for name in own}, extra | dict.fromkeys(knobs, Any))
        dial.turned(
            dial.read_scale(request.scale), knobs, {name: given[name] for name in knobs if given[name] is not None}
        )
    return given


def study_of(name: str, request: Request) -> str:
    """The study that a notebook's results go to: the request's, or one named after the knobs that are turned."""
    if not request.others:
        return request.study
    cells = standing.cells(paths.NOTEBOOKS / f"{name}.ipynb")
    begin = "\n".join(cell["source"] for cell in cells if "begin" in cell["metadata"].get("tags", []))
    given = [node for node in ast.walk(ast.parse(begin)) if isinstance(node, ast.keyword) and node.arg == "knobs"]
    knobs = ast.literal_eval(given[0].value) if given else {}
    turned = {knob: request.others[knob] for knob in knobs if request.others.get(knob) is not None}
    return standing.study_name(request.scale, request.corpus, turned)


def stale(name: str, request: Request) -> list[str]:
    """Why a notebook has to run; empty when its finished record still stands."""
    record = standing.read(name, study_of(name, request))
    state, reason = standing.end_state(record)
    if state != standing.FINISHED:
        return [f"{state}: {reason}".partition("\n")[0].removesuffix(": ")]
    return standing.why_stale(record, resolve(name, request))


def write_reasons(name: str, request: Request) -> str:
    """The path of a file that says why a notebook has to run, for Snakemake: as long as the notebook stands, the file
    is left alone, so it is newer than the notebook's last run only when the notebook has to run again.
    """
    path = paths.RUNS / "snakemake" / study_of(name, request) / f"{name}.why"
    token = standing.read(name, study_of(name, request)).get("token")
    reasons = json.dumps([token, *stale(name, request)])
    if not path.is_file() or json.loads(reasons)[1:]:
        standing.write_text(path, reasons)
    return str(path)


# ---------------------------------------------------------------- running


def _last_line(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return " ".join(text.strip().rpartition("\n")[2].split())


async def _run_one(name: str, request: Request, threads: int) -> Outcome:
    """Run a notebook in its own process. A worker that left no end of its own is reported with its last words."""
    given = {key: value for key, value in resolve(name, request).items() if value is not None}
    job = Job(name, study_of(name, request), given, token=uuid.uuid4().hex)
    words, clock = job.output.with_suffix(".worker.log"), time.monotonic()
    words.parent.mkdir(parents=True, exist_ok=True)
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    # not -m: that would load the module twice, and papermill's copy would watch the kernel for nobody
    command = [sys.executable, "-c", "from nli_lib.study.runner import main; main()", json.dumps(asdict(job))]
    with words.open("w", encoding="utf-8") as said:
        process = await asyncio.create_subprocess_exec(*command, stdout=said, stderr=said, env={**limits, **os.environ})
    try:
        while process.returncode is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), HEARTBEAT)
                break
            at = f"{_last_line(words)} {_last_line(job.log)}"  # the section, and what it printed: an epoch, a fold
            print(f"  ... {name}, {time.monotonic() - clock:.0f} s: {at}", flush=True)
    except asyncio.CancelledError:
        process.terminate()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), PATIENCE)
        raise
    record = standing.read(name, study_of(name, request))
    state, reason = standing.end_state(record)
    if record.get("token") != job.token or state in (standing.RUNNING, standing.CLOSING, standing.INTERRUPTED):
        reason = f"its runner ended with code {process.returncode}: {_last_line(words) or 'no message'}"
        state = "killed"
        if record.get("token") == job.token:
            standing.write({**record, "state": state, "reason": reason})
    return Outcome(name, state, reason, seconds=time.monotonic() - clock)


async def _run_or_skip(name: str, request: Request, threads: int) -> Outcome:
    """Run a notebook as the only runner where it has to run; a second one says so and waits."""
    if request.force or stale(name, request):
        path = paths.RUNS / "notebooks" / study_of(name, request) / f".{name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = AsyncFileLock(path, run_in_executor=False)
        try:
            held = await lock.acquire(blocking=False)
        except Timeout:
            print(f"{name}: another process runs it; waiting for it", flush=True)
            held = await lock.acquire(poll_interval=0.5)
        async with held:
            record = standing.read(name, study_of(name, request))
            if standing.end_state(record)[0] in (standing.RUNNING, standing.CLOSING):  # in JupyterLab, say
                return Outcome(name, "busy", f"process {record['pid']} runs it since {record['started']}", ran=False)
            if reasons := ["asked for again (--force)"] if request.force else stale(name, request):
                print(f"{name}: running ({standing.in_short(reasons)})", flush=True)
                return await _run_one(name, request, threads)
    seconds = standing.read(name, study_of(name, request)).get("seconds", 0.0)
    return Outcome(name, standing.FINISHED, "still stands", ran=False, seconds=seconds)


def run(names: Iterable[str], request: Request, jobs: int = 1) -> list[Outcome]:
    """Run notebooks in their order, at most `jobs` at a time; what still stands is skipped with a line.

    A notebook waits for those it reads from (order.yaml) as far as they are among `names`, however they end. Returns
    how each ended; the caller decides what a failure means. Raises before anything starts when a parameter is wrong.
    """
    chosen = choose(names)
    for name in chosen:
        resolve(name, request)
    return asyncio.run(_run_all(chosen, request, jobs))


async def _run_all(names: list[str], request: Request, jobs: int) -> list[Outcome]:
    waits, slots, outcomes, tasks, signals = order(), asyncio.Semaphore(jobs), [], {}, []
    threads = max(1, len(os.sched_getaffinity(0)) // jobs) if hasattr(os, "sched_getaffinity") else 1
    whole = asyncio.current_task()

    async def when_ready(name: str) -> None:
        await asyncio.gather(*(tasks[other] for other in waits[name] if other in tasks))
        async with slots:
            outcomes.append(await _run_or_skip(name, request, threads))
            print(tell(outcomes[-1]), flush=True)

    def stop(number: signal.Signals) -> None:
        signals.append(number)
        whole.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    tasks |= {name: asyncio.create_task(when_ready(name)) for name in names}
    try:
        await asyncio.gather(*tasks.values())  # an error, such as a full disk, ends the others with it
    except asyncio.CancelledError:
        print(f"\nstopped by {signals[0].name}; the same command continues", flush=True)
        sys.exit(128 + signals[0])
    return outcomes


def make_parts(names: Iterable[str], request: Request, only: str = "train") -> bool:
    """Make the parts that chapters lack, one after another in this process, and no table; whether all are there.

    Parameters
    ----------
    only
        `parts.TRAIN`, or `parts.TAKE` for what the finished runs of the store hold, without any training. Cells up to
        the last one tagged `parts` are run, the measuring ones. Stopped at any moment, the same call goes on.
    """
    from nli_lib.study import parts  # which needs pandas

    os.environ[parts.ONLY], complete = only, True
    for name in choose(names):
        cells, namespace = standing.cells(paths.NOTEBOOKS / f"{name}.ipynb"), resolve(name, request)
        last = max((at for at, cell in enumerate(cells) if "parts" in cell["tags"]), default=-1)
        try:
            for cell in cells[: last + 1]:
                if cell["tags"] & {"begin", "measure"}:
                    exec(compile(cell["source"], name, "exec"), namespace)
        except parts.MissingPartsError:
            complete = False
        if last >= 0:
            print(f"{name}: {parts.progress(name, study_of(name, request))}", flush=True)
    return complete


def tell(outcome: Outcome) -> str:
    """One outcome in words."""
    if not outcome.ran:
        return f"{outcome.notebook}: {outcome.state}, {outcome.reason}"
    text = f"{outcome.notebook}: {outcome.state} after {outcome.seconds:.0f} s"
    return text + (f"\n    {outcome.reason}".replace("\n", "\n    ") if outcome.reason else "")


# ---------------------------------------------------------------- options


def option(kind: object, said: str, *names: str, **more: object) -> object:
    return Annotated[kind, typer.Option(*names, help=said, **more)]


Scale = option(str, "the dial: smoke, small or full")
CorpusName = option(str | None, "a corpus by name, or a file; default: the scale's own", "--corpus")
Seeds = option(int | None, "how many seeds, 1 to 20; default: the scale's own")
DataDir = option(str | None, "folder with the official corpus files; default: NLI_DATA")
Columns = option(str | None, "your file's column names, as in premise=context,hypothesis=claim,label=verdict")
Labels = option(str | None, "your file's label names, as in 0=entailment,1=neutral,2=contradiction")
Encoding = option(str | None, "of a file that is not UTF-8, as in cp1252")
# Where and how a user's file is read: the options of every command that `reads_a_file`.
OPTIONS = {"data_dir": DataDir, "columns": Columns, "labels": Labels, "encoding": Encoding}
YourFile = Annotated[str, typer.Argument(help="your file (csv, tsv, txt, json, jsonl, parquet), or a corpus by name")]
Model = option(str | None, "language model, as the server of OPENAI_BASE_URL calls it; default: the scale's")
TESTED = "a test file, or a corpus by name (its test split), that should share nothing with it"
TestFile = option(str | None, TESTED, "--test")
Epochs = option(int | None, "of each training; default: the recipe's", min=1, max=100)
Encoder = option(str | None, "encoder: an offline name, a hub id or a local folder; default: the scale's")


def spec_changes(epochs: int | None, encoder: str | None) -> dict[str, object]:
    """Fields of a `RunSpec` that were asked for."""
    return {name: value for name, value in {"epochs": epochs, "model": encoder}.items() if value is not None}


def named_values(option: str, pairs: list[str], value: str = "VALUE") -> dict[str, str]:
    """NAME=VALUE pairs of ``option``, each name once; ``value``: what its help calls a value."""
    split = [pair.partition("=") for pair in pairs]
    if wrong := ["".join(parts) for parts in split if not all(parts)]:
        raise ParameterError(f"{option} {wrong[0]}: write NAME={value}")
    names = [name.strip() for name, _, _ in split]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ParameterError(f"{option}: {twice[0]} is named twice")
    return {name: value.strip() for name, (_, _, value) in zip(names, split, strict=True)}


def reads_a_file(command: Callable) -> Callable:
    """A command whose parameter ``form`` is what `OPTIONS` say, which it takes in its place."""
    rest = [each for name, each in inspect.signature(command).parameters.items() if name != "form"]
    named = inspect.Parameter.KEYWORD_ONLY
    rest += [inspect.Parameter(name, named, default=None, annotation=kind) for name, kind in OPTIONS.items()]

    @functools.wraps(command)
    def called(**given: object) -> None:
        command(form={name: given.pop(name) for name in OPTIONS}, **given)

    called.__signature__ = inspect.Signature(rest)
    called.__annotations__ = {each.name: each.annotation for each in rest}
    del called.__wrapped__  # whose source Sphinx would hold against this signature
    return called


def yaml_values(pairs: list[str]) -> dict[str, object]:
    """NAME=VALUE pairs, values read as YAML: 3 is a number, no is False, two is text."""
    try:
        return {name: yaml.safe_load(value) for name, value in named_values("-p", pairs).items()}
    except yaml.YAMLError:
        raise ParameterError(f"-p {' '.join(pairs)}: cannot be read as a value (YAML)") from None


def request_of(
    scale: str, corpus: str | None, *, columns: str | None = None, labels: str | None = None, **more: object
) -> Request:
    """A checked `Request`. Paths are made absolute: notebooks run in the project's folder, not in this one."""
    corpus = absolute_file(corpus)
    if os.environ.get("NLI_DATA"):
        os.environ["NLI_DATA"] = _absolute(os.environ["NLI_DATA"])
    if more.get("data_dir"):
        more["data_dir"] = _absolute(more["data_dir"])
    named = named_values("--columns", columns.split(",")) if columns else None
    if columns and len(set(named.values())) < len(named):
        raise ParameterError(f"--columns {columns}: one column stands for two")
    more["labels"] = named_values("--labels", labels.split(",")) if labels else None
    request = Request(scale, corpus, columns=named, **more)
    request.standard()  # raises ParameterError on wrong values
    return request


def absolute_file(name: str | None) -> str | None:
    """A file's path made absolute; a corpus by name, and a file that lies elsewhere, as they are."""
    return _absolute(name) if name and is_own_file(name) and Path(_absolute(name)).is_file() else name


def _absolute(path: str) -> str:
    # a link is not followed: its own name says what kind of file it is
    try:
        return os.path.normpath(Path(path).expanduser().absolute())
    except RuntimeError:
        raise ParameterError(f"{path}: there is no such user. A file of this name is ./{path}") from None


# ---------------------------------------------------------------- execute


LOCK = "nli-study.lock"  # in a folder of sockets, by which it is known as ours
LONGEST = 75  # bytes of the path of the folder above them: that of a socket has at most 103, on macOS


@dataclass
class Job:
    """One notebook to run, and what it is given."""

    notebook: str
    study: str
    parameters: dict = field(default_factory=dict)
    token: str = ""

    @property
    def output(self) -> Path:
        """Its executed copy; its log lies beside it."""
        return paths.RUNS / "notebooks" / self.study / f"{self.notebook}.ipynb"

    @property
    def log(self) -> Path:
        return self.output.with_suffix(".log")


class Cut(BaseException):
    """This run was asked to stop."""


class WatchedKernel(AsyncKernelManager):
    """A kernel manager that remembers the kernel's process, also once it has ended."""

    process: ClassVar[subprocess.Popen | None] = None

    async def _async_is_alive(self) -> bool:
        WatchedKernel.process = getattr(self.provisioner, "process", None) or WatchedKernel.process
        return await super()._async_is_alive()

    is_alive = _async_is_alive


def oom_kills() -> int | None:
    """How many processes of our memory group the kernel has killed for memory; None where nothing counts them."""
    with contextlib.suppress(OSError):
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()]
        groups = [path.lstrip("/") for _, controllers, path in lines if controllers in ("", "memory")]
        folders = [Path(root, group) for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory") for group in (*groups, "")]
        files = [folder / name for folder in folders for name in ("memory.events", "memory.oom_control")]
        counts = [re.search(r"(?m)^oom_kill (\d+)$", file.read_text()) for file in files if file.is_file()]
        return next((int(count[1]) for count in counts if count), None)
    return None


def verdict_on_death(code: int | None, before: int | None, after: int | None) -> tuple[str, str]:
    """(state, reason) of a notebook whose kernel died: out of memory only when the memory group's counter says so."""
    if code is None:
        return "killed", "the kernel died; its exit code is not known"
    if code >= 0:
        return "killed", f"the kernel ended by itself with exit code {code}"
    if code == -signal.SIGKILL and None not in (before, after) and after > before:
        return "out of memory", "the kernel was killed because the machine's memory was full"
    return "killed", f"the kernel was killed by signal {-code} ({signal.strsignal(-code)})"


def verdict_on_end(job: Job) -> tuple[str, str]:
    """(state, reason) of a notebook that papermill ran to the end: finished only on our own evidence."""
    stored = standing.read(job.notebook, job.study)
    if stored.get("token") != job.token or stored.get("state") != standing.CLOSING:
        return standing.INCOMPLETE, "every cell ran, but study.finish() did not: it must be the notebook's last line"
    code = [cell for cell in standing.cells(job.output) if cell["cell_type"] == "code" and cell["source"].strip()]
    if missing := [number for number, cell in enumerate(code, 1) if not cell["execution_count"]]:
        return standing.INCOMPLETE, f"code cells {missing} were never executed"
    reason = standing.unanswered(stored)
    return (standing.INCOMPLETE, reason) if reason else (standing.FINISHED, "")


class _Progress:
    """Says, one line each, how far the notebook is and below which heading."""

    def __init__(self, cells: list[dict]):
        self.cells = sum(cell["cell_type"] == "code" and bool(cell["source"].strip()) for cell in cells)
        self.at, self.line, self.heading = 0, "", "the beginning"

    def __call__(self, cell: dict, cell_index: int) -> None:
        if cell["cell_type"] == "markdown":
            headings = re.findall(r"^#+ +(.+)$", cell["source"], re.MULTILINE)
            self.heading = headings[-1].strip() if headings else self.heading
        elif cell["source"].strip() and "injected-parameters" not in cell["metadata"].get("tags", []):
            self.at += 1
            self.line = next(line for line in cell["source"].splitlines() if line.strip())[:60]
            done = (self.at - 1) / self.cells
            print(f"{self.heading} (cell {self.at} of {self.cells}, {done:.0%} done)", flush=True)

    def __str__(self) -> str:
        return f"code cell {self.at} of {self.cells}: {self.line}"


@contextlib.contextmanager
def socket_folder() -> Iterator[str]:
    """A new folder for a kernel's sockets, removed at the end. Those of processes that were killed are removed first.

    Each holds a lock file that its process keeps locked as long as it lives: what has none, or is locked, stays. It
    lies in a folder of the user's own, closed to others: where temporary files go, or below /tmp where that path would
    be too long for a socket. XDG_RUNTIME_DIR will not do: it is emptied at logout, and a study runs on.
    """
    folders = [Path(base, f"nli-study-{os.getuid()}") for base in (tempfile.gettempdir(), "/tmp")]
    own = next((each for each in folders if len(os.fsencode(each)) <= LONGEST), folders[-1])
    with contextlib.suppress(FileExistsError):
        own.mkdir(mode=0o700)
    about = own.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise standing.StudyError(
            f"{own} is not a folder of yours that is closed to others (mode 700), which sockets need: remove it, "
            "or set TMPDIR to another folder with a short path."
        )
    with FileLock(own / LOCK):  # nobody takes a new folder for one that was left before its lock is held
        for left in own.glob(f"*/{LOCK}"):
            with contextlib.suppress(Timeout), FileLock(left).acquire(blocking=False):
                shutil.rmtree(left.parent, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(dir=own))
        held = FileLock(folder / LOCK)
        held.acquire()
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        held.release()


def _cut(*_: object) -> None:
    """End this run: kill the kernel and whatever it started, which is a session of its own."""
    process = WatchedKernel.process
    if process is not None and process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    raise Cut


def run_job(job: Job) -> tuple[str, str]:
    """Execute the notebook; (state, reason) of how it ended."""
    import papermill
    from nbclient.exceptions import DeadKernelError

    source = paths.NOTEBOOKS / f"{job.notebook}.ipynb"
    progress, kills = _Progress(standing.cells(source)), oom_kills()
    try:
        with socket_folder() as sockets, job.log.open("w", encoding="utf-8") as log:
            papermill.execute_notebook(
                source,
                job.output,
                parameters=job.parameters,
                kernel_name="python3",
                progress_bar=False,
                cwd=paths.HOME,
                stdout_file=log,
                stderr_file=log,
                kernel_manager_class="nli_lib.study.runner.WatchedKernel",
                config=Config(WatchedKernel={"transport": "ipc", "ip": f"{sockets}/kernel"}),
                on_cell_start=progress,
            )
    except papermill.PapermillExecutionError as error:
        more = " ..." if len(error.evalue) > 2_000 else ""
        return "failed", f"{progress}\n{error.ename}: {error.evalue[:2_000]}{more}"
    except DeadKernelError:
        code = WatchedKernel.process and WatchedKernel.process.poll()
        state, reason = verdict_on_death(code, kills, oom_kills())
        return state, f"{reason}, in {progress}"
    except Cut:
        return "stopped", f"asked to stop (SIGTERM), in {progress}"
    except Exception as error:
        return "failed", f"could not be run: {type(error).__name__}: {error}"
    return verdict_on_end(job)


def main() -> None:
    """Run the job given as JSON and leave its end state in the record."""
    job = Job(**json.loads(sys.argv[1]))
    os.environ.update({standing.TOKEN: job.token, standing.RUN_PID: str(os.getpid())})
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # nobody watches a bar in a headless run
    clock, first = time.monotonic(), {**asdict(job), "state": standing.RUNNING, "pid": os.getpid(), "started": now()}
    standing.write(first)
    signal.signal(signal.SIGTERM, _cut)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the runner, which then asks us to stop
    if sys.platform == "linux":
        # a runner that is killed outright takes its notebooks with it
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    try:
        state, reason = run_job(job)
    except Cut:  # while papermill was still being imported
        state, reason = "stopped", "asked to stop (SIGTERM), before its first cell"
    stored, seconds = standing.read(job.notebook, job.study), round(time.monotonic() - clock, 1)
    last = {"state": state, "reason": reason, "started": first["started"], "ended": now(), "seconds": seconds}
    standing.write((stored if stored.get("token") == job.token else first) | last)
