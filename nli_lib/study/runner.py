"""Runs the study's notebooks: those asked for, in their order, several at a time if wished, without what stands::

    outcomes = run(["10"], Request("small"), jobs=2)

A finished record is kept unless the notebook's code, its parameters, what it used of the library or the tables it read
have changed. What runs has a process of its own, a worker (`main`), which says truly how the notebook ended. papermill
writes a notebook whose kernel died as if it had completed; so the end is decided from evidence gathered here: the
kernel's exit code, the memory group's count of out-of-memory kills, the signal that stopped us, and, for "finished",
the record that this very run's last cell wrote (its token) and an execution count on every code cell.

Kernels talk over IPC below a fresh absolute path (`socket_folder`): the default path clashes between parallel runs.

Notebooks, book and recorded tables lie in the home that NLI_HOME names. An installed library, into whose wheel
`setup.py` puts them, copies them there; a clone links to its own, and what is written takes the place of a link.
"""

import ast
import asyncio
import contextlib
import ctypes
import graphlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Literal

import yaml
from filelock import AsyncFileLock, Timeout
from jupyter_client.manager import AsyncKernelManager
from pydantic import TypeAdapter, ValidationError
from traitlets.config import Config

from nli_lib import paths
from nli_lib.errors import StudyError
from nli_lib.store import atomic, draft_folder, now
from nli_lib.study import dial, standing
from nli_lib.study.dial import FORM, Parameters, as_options, check, close

FOLDER = Path(__file__).resolve().parents[1] / "carried"
CLONE = Path(__file__).resolve().parents[2]
MADE = {"__pycache__", "_build", "chapters", "notebooks", "plotly.min.js"}  # by runs, in the folder of the book
STAMP = "nli-study.version"  # in the notebooks' folder: the version that they came with


def version() -> str:
    """The version of the installed library; of one that is not installed, but on the path, "not installed"."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version("nli-quality-study")
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
            cure = f"installed is {own}: move both folders away, or set NLI_HOME to a new folder."
            raise StudyError(f"{paths.NOTEBOOKS} and {paths.BOOK} are those of version {there}, {cure}")
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


# ---------------------------------------------------------------- what is asked


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
    into: str | None = None  # the folder of results, in place of the study's own
    force: bool = False

    def standard(self) -> dict[str, object]:
        """The parameters every notebook takes, checked. Raises `StudyError`."""
        return check({name: getattr(self, name.lower()) for name in Parameters.model_fields})

    @property
    def form(self) -> dict[str, object]:
        """How a user's own file is read, as `load` takes it."""
        return {name: getattr(self, name) for name in FORM}

    @property
    def study(self) -> str:
        return self.into or standing.study_name(self.scale, self.corpus)

    @property
    def exports(self) -> Path:
        """The folder for files with a corpus's own text."""
        return paths.EXPORTS / self.study

    def apart(self, command: str) -> "Request":
        """The request of a command that gives chapters settings of its own: on a corpus by name the results go into a
        folder of the command, so that the study's recorded tables are left alone."""
        return replace(self, into=self.study if dial.is_own_file(self.corpus) else f"{self.study}-{command}")

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
        cure = "unset NLI_HOME, or set it to a new folder, which is then filled."
        raise StudyError(f"{paths.HOME} has no folder notebooks: {cure}")
    path = paths.NOTEBOOKS / "order.yaml"
    try:
        said = path.read_text(encoding="utf-8") if path.is_file() else ""
        declared = TypeAdapter(dict[str, list[str] | Literal["all"] | None]).validate_python(yaml.safe_load(said) or {})
    except (yaml.YAMLError, ValidationError) as error:
        raise StudyError(f"{path} is not an order of notebooks: {' '.join(str(error).split())}") from None
    present = sorted(file.stem for file in paths.NOTEBOOKS.glob("*.ipynb"))
    names = [name for name in dict.fromkeys([*declared, *present]) if name in present]
    every, waits = [name for name in names if declared.get(name) != "all"], {}
    for name in names:
        after = every if declared.get(name) == "all" else declared.get(name) or []
        if unknown := [other for other in after if other not in {*declared, *names}]:
            raise StudyError(f"{path}: {name} waits for {unknown}, which nobody declares")
        waits[name] = [other for other in after if other in names]
    try:
        graphlib.TopologicalSorter(waits).prepare()
    except graphlib.CycleError as error:
        raise StudyError(f"{path}: notebooks wait for each other: {', '.join(error.args[1])}") from None
    return waits


def choose(wanted: Iterable[str], scale: str) -> list[str]:
    """The notebooks meant by names, number prefixes ("10") or paths; all of the scale when none is given."""
    known, chosen = list(order()), []
    for word in list(wanted) or dial.read_scale(scale).chapters or ():
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
                rule = "sets one parameter a line: NAME = a number, a text or None."
                raise StudyError(f"{name}: the cell tagged `parameters` {rule}") from None
    raise StudyError(f"{name} has no cell tagged `parameters`")


def knobs_of(name: str) -> dict[str, str]:
    """The keys of the dial that a notebook's own parameters stand for, from its cell tagged `begin`."""
    begin = [tree for tags, tree in standing.code_cells(paths.NOTEBOOKS / f"{name}.ipynb") if "begin" in tags]
    said = {node.arg: node.value for tree in begin for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    return ast.literal_eval(said["knobs"]) if "knobs" in said else {}


def resolve(notebook: str, request: Request) -> dict[str, object]:
    """Every parameter's value as the notebook will see it. Raises `StudyError` for names that it does not have, and
    for values that its `begin` would refuse."""
    declared = declared_parameters(notebook)
    own = [name for name in declared if name not in Parameters.model_fields]
    for name in request.others:
        if name in Parameters.model_fields:
            option = name.lower().replace("_", "-")
            raise StudyError(f"-p {name}: use --{option}, which also decides where the results go")
        if name not in own:
            has = ", ".join(own) or "none of its own"
            raise StudyError(f"{notebook} has no parameter {name}{close(name, own)}; it has {has}")
    asked = {name: value for name, value in request.standard().items() if value is not None}
    dial.refuse_absent(notebook, request.scale)
    given = {**declared, **asked, **request.others}
    if request.others:
        knobs = knobs_of(notebook)
        check({name: given[name] for name in own}, knobs)
        turned = {name: given[name] for name in knobs if given[name] is not None}
        dial.turned(dial.read_scale(request.scale), knobs, turned)
    return given


def study_of(name: str, request: Request) -> str:
    """The study that a notebook's results go to: the request's, or one named after the knobs that are turned."""
    if not request.others or request.into:
        return request.study
    turned = {knob: request.others[knob] for knob in knobs_of(name) if request.others.get(knob) is not None}
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


def executed(name: str, study: str) -> Path:
    """Where the executed copy of a notebook lies; its logs lie beside it."""
    return paths.RUNS / "notebooks" / study / f"{name}.ipynb"


def _last_line(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return " ".join(text.strip().rpartition("\n")[2].split())


async def _run_one(name: str, request: Request, threads: int) -> Outcome:
    """Run a notebook in its own process. A worker that left no end of its own is reported with its last words."""
    given = {key: value for key, value in resolve(name, request).items() if value is not None}
    job = {"notebook": name, "study": study_of(name, request), "parameters": given, "token": os.urandom(16).hex()}
    log, words = (executed(name, job["study"]).with_suffix(kind) for kind in (".log", ".worker.log"))
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    # not -m: that would load the module twice, and papermill's copy would watch the kernel for nobody
    command = [sys.executable, "-c", "from nli_lib.study.runner import main; main()", json.dumps(job)]
    clock = time.monotonic()
    with words.open("w", encoding="utf-8") as said:
        process = await asyncio.create_subprocess_exec(*command, stdout=said, stderr=said, env={**limits, **os.environ})
    try:
        while process.returncode is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 60)
                break
            at = f"{_last_line(words)} {_last_line(log)}"  # the section, and what it printed: an epoch, a fold
            print(f"  ... {name}, {time.monotonic() - clock:.0f} s: {at}", flush=True)
    except asyncio.CancelledError:
        process.terminate()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 15)  # to write its record
        raise
    record = standing.read(name, job["study"])
    state, reason = standing.end_state(record)
    own = record.get("token") == job["token"]
    if not own or state in (standing.RUNNING, standing.CLOSING, standing.INTERRUPTED):
        state = "killed"
        reason = f"its runner ended with code {process.returncode}: {_last_line(words) or 'no message'}"
        if own:
            standing.write({**record, "state": state, "reason": reason})
    return Outcome(name, state, reason, seconds=time.monotonic() - clock)


async def _run_or_skip(name: str, request: Request, threads: int) -> Outcome:
    """Run a notebook as the only runner where it has to run; a second one says so and waits."""
    if request.force or stale(name, request):
        folder = executed(name, study_of(name, request)).parent
        folder.mkdir(parents=True, exist_ok=True)
        lock = AsyncFileLock(folder / f".{name}.lock", run_in_executor=False)
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
    chosen = choose(names, request.scale)
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
    for name in choose(names, request.scale):
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


# ---------------------------------------------------------------- execute


class WatchedKernel(AsyncKernelManager):
    """A kernel manager that remembers the kernel's process, also once it has ended."""

    process = None

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


def verdict_on_end(name: str, study: str, token: str) -> tuple[str, str]:
    """(state, reason) of a notebook that papermill ran to the end: finished only on our own evidence."""
    stored = standing.read(name, study)
    if stored.get("token") != token or stored.get("state") != standing.CLOSING:
        return standing.INCOMPLETE, "every cell ran, but study.finish() did not: it must be the notebook's last line"
    cells = standing.cells(executed(name, study))
    code = [cell for cell in cells if cell["cell_type"] == "code" and cell["source"].strip()]
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
def socket_folder() -> Iterator[Path]:
    """A new folder for a kernel's sockets, removed at the end. Those of processes that were killed are removed first.

    It lies in a folder of the user's own, closed to others: where temporary files go, or below /tmp where that path
    would be too long for a socket. XDG_RUNTIME_DIR will not do: it is emptied at logout, and a study runs on.
    """
    folders = [Path(base, f"nli-study-{os.getuid()}") for base in (tempfile.gettempdir(), "/tmp")]
    # in bytes; the path of a socket has at most 103, on macOS
    own = next((each for each in folders if len(os.fsencode(each)) <= 75), folders[-1])
    with contextlib.suppress(FileExistsError):
        own.mkdir(mode=0o700)
    about = own.lstat()
    if own.is_symlink() or not own.is_dir() or about.st_uid != os.getuid() or about.st_mode & 0o077:
        cure = "which sockets need: remove it, or set TMPDIR to another folder with a short path."
        raise StudyError(f"{own} is not a folder of yours that is closed to others (mode 700), {cure}")
    with draft_folder(own / "k") as folder:
        yield folder


def _cut(*_: object) -> None:
    """End this run: kill the kernel and whatever it started, which is a session of its own."""
    process = WatchedKernel.process
    if process is not None and process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    raise KeyboardInterrupt


def run_job(name: str, study: str, parameters: dict[str, object], token: str) -> tuple[str, str]:
    """Execute the notebook; (state, reason) of how it ended."""
    import papermill
    from nbclient.exceptions import DeadKernelError

    source, output = paths.NOTEBOOKS / f"{name}.ipynb", executed(name, study)
    progress, kills = _Progress(standing.cells(source)), oom_kills()
    try:
        with socket_folder() as sockets, output.with_suffix(".log").open("w", encoding="utf-8") as log:
            how = {"cwd": paths.HOME, "stdout_file": log, "stderr_file": log, "on_cell_start": progress}
            how |= {"kernel_name": "python3", "kernel_manager_class": "nli_lib.study.runner.WatchedKernel"}
            how["config"] = Config(WatchedKernel={"transport": "ipc", "ip": f"{sockets}/kernel"})
            papermill.execute_notebook(source, output, parameters, progress_bar=False, **how)
    except papermill.PapermillExecutionError as error:
        more = " ..." if len(error.evalue) > 2_000 else ""
        return "failed", f"{progress}\n{error.ename}: {error.evalue[:2_000]}{more}"
    except DeadKernelError:
        code = WatchedKernel.process and WatchedKernel.process.poll()
        state, reason = verdict_on_death(code, kills, oom_kills())
        return state, f"{reason}, in {progress}"
    except KeyboardInterrupt:
        return "stopped", f"asked to stop (SIGTERM), in {progress}"
    except Exception as error:
        return "failed", f"could not be run: {type(error).__name__}: {error}"
    return verdict_on_end(name, study, token)


def main() -> None:
    """Run the job given as JSON, the arguments of `run_job`, and leave its end state in the record."""
    job = json.loads(sys.argv[1])
    name, study, token = job["notebook"], job["study"], job["token"]
    os.environ.update({standing.TOKEN: token, standing.RUN_PID: str(os.getpid())})
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # nobody watches a bar in a headless run
    clock, first = time.monotonic(), {**job, "state": standing.RUNNING, "pid": os.getpid(), "started": now()}
    standing.write(first)
    signal.signal(signal.SIGTERM, _cut)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the runner, which then asks us to stop
    if sys.platform == "linux":
        # a runner that is killed outright takes its notebooks with it
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    try:
        state, reason = run_job(name, study, job["parameters"], token)
    except KeyboardInterrupt:  # while papermill was still being imported
        state, reason = "stopped", "asked to stop (SIGTERM), before its first cell"
    stored, seconds = standing.read(name, study), round(time.monotonic() - clock, 1)
    last = {"state": state, "reason": reason, "started": first["started"], "ended": now(), "seconds": seconds}
    standing.write((stored if stored.get("token") == token else first) | last)
