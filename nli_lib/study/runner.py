"""Run the study's notebooks in their order, several at a time if wanted, and skip those with a valid record::

    outcomes = run(["10"], Request("small"), jobs=2)

A finished record is kept unless the notebook's code, its parameters, the definitions of the library that it used or the
tables that it read have changed. Each notebook runs in a separate process, a worker (`main`), which reports how it
ended. papermill writes a notebook with a dead kernel as if it had completed, so the end is decided from other evidence:
the kernel's exit code, the memory group's count of out-of-memory kills, the signal that stopped us, and, for
"finished", the record written by the last cell of this run (its token) and an execution count on every code cell.

Workers, and the kernels that they start, are forked from one process (`serve`) that has imported what most notebooks
need. Each is killed without harm to the others; if that process is killed, the next notebook gets another one.

Kernels talk over IPC below a fresh absolute path (`socket_folder`): the default path clashes between parallel runs.

Notebooks, book and recorded tables are in the folder of NLI_HOME. An installed library, with a wheel to which
`setup.py` adds them, copies them there; a clone links to its files, and a written file replaces the link.
"""

import ast
import asyncio
import contextlib
import ctypes
import gc
import graphlib
import importlib
import json
import os
import re
import select
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

FOLDER = Path(__file__).resolve().parents[1] / "carried"
CLONE = Path(__file__).resolve().parents[2]
MADE = {"__pycache__", "_build", "chapters", "notebooks", "plotly.min.js"}  # made by runs, in the folder of the book
WARM = ["papermill", "ipykernel.kernelapp", "sklearn.linear_model", "transformers.models.bert.modeling_bert"]
WARM += ["nli_lib.plots", "nli_lib.study", "nli_lib.learn.fit"]
STAMP = "nli-study.version"  # file in the notebooks' folder with their version


def version() -> str:
    """The version of the installed library; "not installed" if it is only on the path."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version("nli-quality-study")
    return "not installed"


def unpack() -> None:
    """Copy the installed library's files into `paths.HOME`, or link to the clone's, unless that was done. Existing
    files are never overwritten; copies from another version raise a `StudyError`."""
    if not FOLDER.is_dir():
        return _link()
    own, stamp = version(), paths.NOTEBOOKS / STAMP
    if stamp.is_file():
        there, _, unfinished = stamp.read_text(encoding="utf-8").strip().partition(" ")
        if there != own:
            cure = f"installed is {own}: move both folders away, or set NLI_HOME to a new folder."
            raise StudyError(f"{paths.NOTEBOOKS} and {paths.BOOK} are those of version {there}, {cure}")
        if not unfinished:
            return
    elif paths.NOTEBOOKS.exists() or paths.BOOK.exists():
        return  # a clone named by NLI_HOME, or a user's notebooks
    standing.write_text(stamp, f"{own} unfinished\n")  # so that an interrupted copy is completed later
    print(f"notebooks, book and recorded tables of version {own} were copied to {paths.HOME}", flush=True)
    for source in sorted(path for path in FOLDER.rglob("*") if path.is_file()):
        if not (target := paths.HOME / source.relative_to(FOLDER)).exists():
            with atomic(target) as draft:
                shutil.copyfile(source, draft)
    standing.write_text(stamp, f"{own}\n")


def _link() -> None:
    """Link from a home outside the clone to notebooks, book, pins and, once, the recorded tables."""
    linked = paths.NOTEBOOKS.is_symlink()
    if paths.HOME.resolve() == CLONE or (not linked and (paths.NOTEBOOKS.exists() or paths.BOOK.exists())):
        return  # or another clone, or a user's files
    folders = [CLONE / "book", *([] if linked else sorted(CLONE.glob("data/results/small*")))]
    files = [path.relative_to(CLONE) for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    for name in [Path("constraints.txt"), *(name for name in files if not MADE & set(name.parts)), Path("notebooks")]:
        if not (target := paths.HOME / name).exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)  # a link to a clone that has moved
            target.symlink_to(CLONE / name)
    if not linked:
        print(f"notebooks, book and recorded tables are read from {CLONE}; results go below {paths.HOME}", flush=True)


# ---------------------------------------------------------------- requests


@dataclass(frozen=True)
class Request:
    """The request for a run: the dial, other parameters by name, and whether to repeat notebooks with a valid
    record."""

    scale: str = "smoke"
    corpus: str | None = None
    seeds: int | None = None
    data_dir: str | None = None
    columns: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    encoding: str | None = None
    others: dict[str, object] = field(default_factory=dict)
    into: str | None = None  # folder of results, instead of the study's
    force: bool = False

    def standard(self) -> dict[str, object]:
        """Check the parameters of every notebook. Raises `StudyError`."""
        return dial.check({name: getattr(self, name.lower()) for name in dial.Parameters.model_fields})

    @property
    def form(self) -> dict[str, object]:
        """The form of a user's file, as arguments of `load`."""
        return {name: getattr(self, name) for name in dial.FORM}

    @property
    def study(self) -> str:
        return self.into or standing.study_name(self.scale, self.corpus)

    @property
    def exports(self) -> Path:
        """The folder for files with a corpus's text."""
        return paths.EXPORTS / self.study

    def apart(self, command: str) -> "Request":
        """The request of a command that changes chapters' settings: for a corpus by name the results go into the
        command's folder, so that the study's recorded tables do not change."""
        return replace(self, into=self.study if dial.is_own_file(self.corpus) else f"{self.study}-{command}")

    def command(self, notebook: str) -> str:
        """The shell command that runs a notebook with this request."""
        return standing.command(notebook, self.scale, self.corpus, data_dir=self.data_dir, **dial.as_options(self.form))


@dataclass
class Outcome:
    """The end of one notebook in this call: its state, the reason, and whether it was run at all."""

    notebook: str
    state: str
    reason: str = ""
    ran: bool = True
    seconds: float = 0.0


# ---------------------------------------------------------------- notebooks


def order() -> dict[str, list[str]]:
    """{notebook: the notebooks it waits for}, from notebooks/order.yaml; others wait for none."""
    if not paths.NOTEBOOKS.is_dir():
        cure = "unset NLI_HOME, or set it to a new folder, which is then filled."
        raise StudyError(f"{paths.HOME} has no folder notebooks: {cure}")
    path = paths.NOTEBOOKS / "order.yaml"
    try:
        said = path.read_text(encoding="utf-8") if path.is_file() else ""
        declared = TypeAdapter(dict[str, list[str] | Literal["all"] | None]).validate_python(yaml.safe_load(said) or {})
    except (yaml.YAMLError, ValidationError) as error:
        raise StudyError(f"{path} is not a valid order of notebooks: {' '.join(str(error).split())}") from None
    present = sorted(file.stem for file in paths.NOTEBOOKS.glob("*.ipynb"))
    names = [name for name in dict.fromkeys([*declared, *present]) if name in present]
    every, waits = [name for name in names if declared.get(name) != "all"], {}
    for name in names:
        after = every if declared.get(name) == "all" else declared.get(name) or []
        if unknown := [other for other in after if other not in {*declared, *names}]:
            raise StudyError(f"{path}: {name} waits for {unknown}, which does not exist")
        waits[name] = [other for other in after if other in names]
    try:
        graphlib.TopologicalSorter(waits).prepare()
    except graphlib.CycleError as error:
        raise StudyError(f"{path}: notebooks wait for each other: {', '.join(error.args[1])}") from None
    return waits


def choose(wanted: Iterable[str], scale: str) -> list[str]:
    """The notebooks given by names, number prefixes ("10") or paths; all of the scale by default."""
    known, chosen = list(order()), []
    for word in list(wanted) or (scale in dial.SCALES and dial.read_scale(scale).chapters) or ():
        stem = Path(word).stem
        if not (found := [name for name in known if name == stem or name.startswith(f"{stem}_")]):
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
                rule = "sets one parameter per line: NAME = a number, a text or None."
                raise StudyError(f"{name}: the cell tagged `parameters` {rule}") from None
    raise StudyError(f"{name} has no cell tagged `parameters`")


def knobs_of(name: str) -> dict[str, str]:
    """The keys of the dial behind a notebook's additional parameters, from its cell tagged `begin`."""
    begin = [tree for tags, tree in standing.code_cells(paths.NOTEBOOKS / f"{name}.ipynb") if "begin" in tags]
    said = {node.arg: node.value for tree in begin for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    return ast.literal_eval(said["knobs"]) if "knobs" in said else {}


def resolve(notebook: str, request: Request) -> dict[str, object]:
    """The value of every parameter in the notebook. Raises `StudyError` for unknown names and for values that its
    `begin` would refuse."""
    declared = declared_parameters(notebook)
    own = [name for name in declared if name not in dial.Parameters.model_fields]
    for name in request.others:
        if name in dial.Parameters.model_fields:
            option = name.lower().replace("_", "-")
            raise StudyError(f"-p {name}: use --{option}, which also decides where the results go")
        if name not in own:
            has = ", ".join(own) or "only the usual ones"
            raise StudyError(f"{notebook} has no parameter {name}{dial.close(name, own)}; it has {has}")
    asked = {name: value for name, value in request.standard().items() if value is not None}
    dial.refuse_absent(notebook, request.scale)
    given = {**declared, **asked, **request.others}
    if request.others:
        knobs = knobs_of(notebook)
        dial.check({name: given[name] for name in own}, knobs)
        turned = {name: given[name] for name in knobs if given[name] is not None}
        dial.turned(dial.read_scale(request.scale), knobs, turned)
    return given


def study_of(name: str, request: Request) -> str:
    """The study of a notebook's results: the request's, or one named after the turned knobs."""
    if not request.others or request.into:
        return request.study
    turned = {knob: request.others[knob] for knob in knobs_of(name) if request.others.get(knob) is not None}
    return standing.study_name(request.scale, request.corpus, turned)


def stale(name: str, request: Request) -> list[str]:
    """The reasons why a notebook has to run; empty if its finished record is valid."""
    record = standing.read(name, study_of(name, request))
    state, reason = standing.end_state(record)
    if state != standing.FINISHED:
        return [f"{state}: {reason}".partition("\n")[0].removesuffix(": ")]
    return standing.why_stale(record, resolve(name, request))


def write_reasons(name: str, request: Request) -> str:
    """Write a file with the reasons why a notebook has to run, for Snakemake, and return its path: while the record is
    valid the file is not changed, so it is newer than the last run only if the notebook has to run again.
    """
    path = paths.RUNS / "snakemake" / study_of(name, request) / f"{name}.why"
    reasons = json.dumps([standing.read(name, study_of(name, request)).get("token"), *stale(name, request)])
    if not path.is_file() or json.loads(reasons)[1:]:
        standing.write_text(path, reasons)
    return str(path)


# ---------------------------------------------------------------- running


def executed(name: str, study: str) -> Path:
    """Path of the executed copy of a notebook; its logs are next to it."""
    return paths.RUNS / "notebooks" / study / f"{name}.ipynb"


def _last_line(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return " ".join(text.strip().rpartition("\n")[2].split())


class _Workers:
    """Processes for notebooks, forked from a server (`serve`) that has imported the usual libraries once."""

    def __init__(self, notebooks: int, jobs: int):
        # for fewer it does not pay; elsewhere, libraries do not survive a fork
        warm = notebooks >= 4 and sys.platform == "linux"
        # not -m: that would load the module twice, and papermill's copy would watch the kernel in vain
        self.command = [sys.executable, "-c", f"from nli_lib.study.runner import serve; serve({warm})"]
        threads = max(1, len(os.sched_getaffinity(0)) // jobs) if hasattr(os, "sched_getaffinity") else 1
        limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        # the second lets libraries look for a GPU without effects on a forked process
        self.env = {**limits, "PYTORCH_NVML_BASED_CUDA_CHECK": "1", **os.environ}
        self.server, self.said = None, {}

    async def begin(self, job: dict[str, object]) -> list[asyncio.Future]:
        """Begin a job (`main`). Returns futures of the process's number and its exit code, None if the server is
        killed."""
        if self.server is None:
            pipe = asyncio.subprocess.PIPE
            start = asyncio.create_subprocess_exec(*self.command, stdin=pipe, stdout=pipe, env=self.env)
            self.server = asyncio.create_task(start)
            self.listener = asyncio.create_task(self._listen())
        server = await self.server
        self.said[job["token"]] = to_come = [asyncio.get_running_loop().create_future() for _ in range(2)]
        server.stdin.write(f"{json.dumps(job)}\n".encode())
        return to_come

    async def _listen(self) -> None:
        async for line in (await self.server).stdout:
            token, at, number = line.decode().split()
            self.said[token][int(at)].set_result(int(number))
        for future in (future for to_come in self.said.values() for future in to_come if not future.done()):
            future.set_result(None)
        self.server, self.said = None, {}  # if it was killed, the next notebook gets another one

    async def end(self) -> None:
        """End the server."""
        if self.server is not None:
            (server := await self.server).stdin.close()
            await asyncio.gather(self.listener, server.wait())


def serve(warm: bool) -> None:
    """Fork a worker for each job, a line of JSON on stdin; write its process's number and its exit code to stdout."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the runner, which then asks workers to stop
    for module in WARM if warm else ():
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    standing.dependences(["nli_lib.study.notebook:", "nli_lib.study.budgets:"] if warm else ())  # parsed once for all
    gc.freeze()  # so that no collection looks through the libraries again, and a worker ends in .4 s instead of 1.9
    tokens, asked = {}, sys.stdin.buffer.raw  # a line at a time, so that select sees the next
    while True:
        for pid, status in [os.waitpid(pid, os.WNOHANG) for pid in tokens]:
            if pid:
                os.write(1, f"{tokens.pop(pid)} 1 {os.waitstatus_to_exitcode(status)}\n".encode())
        if not select.select([asked], [], [], 0.05 if tokens else None)[0]:
            continue
        if not (line := asked.readline()):
            return  # the runner has ended
        job = json.loads(line)
        if pid := os.fork():
            tokens[pid] = job["token"]
            os.write(1, f"{job['token']} 0 {pid}\n".encode())
            continue
        words = os.open(executed(job["notebook"], job["study"]).with_suffix(".worker.log"), os.O_WRONLY)
        for number, target in enumerate((os.open(os.devnull, os.O_RDONLY), words, words)):
            os.dup2(target, number)
        return main(job)


async def _run_one(name: str, request: Request, workers: _Workers) -> Outcome:
    """Run a notebook in a separate process. A worker that left no end state is reported with its last output."""
    given = {key: value for key, value in resolve(name, request).items() if value is not None}
    job = {"notebook": name, "study": study_of(name, request), "parameters": given, "token": os.urandom(16).hex()}
    log, words = (executed(name, job["study"]).with_suffix(kind) for kind in (".log", ".worker.log"))
    words.write_text("", encoding="utf-8")
    clock = time.monotonic()
    begun, ended = await workers.begin(job)
    try:
        while not (await asyncio.wait([ended], timeout=60))[0]:
            at = f"{_last_line(words)} {_last_line(log)}"  # the section, and its last output: an epoch, a fold
            print(f"  ... {name}, {time.monotonic() - clock:.0f} s: {at}", flush=True)
    except asyncio.CancelledError:
        if pid := await begun:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        await asyncio.wait([ended], timeout=15)  # time to write its record
        raise
    record = standing.read(name, job["study"])
    state, reason = standing.end_state(record)
    own = record.get("token") == job["token"]
    if not own or state in (standing.RUNNING, standing.CLOSING, standing.INTERRUPTED):
        state = "killed"
        reason = f"its runner ended with code {ended.result()}: {_last_line(words) or 'no message'}"
        if own:
            standing.write({**record, "state": state, "reason": reason})
    return Outcome(name, state, reason, seconds=time.monotonic() - clock)


async def _run_or_skip(name: str, request: Request, workers: _Workers) -> Outcome:
    """Run a notebook, if it has to run, as the only runner; a second one prints a message and waits."""
    if request.force or stale(name, request):
        folder = executed(name, study_of(name, request)).parent
        folder.mkdir(parents=True, exist_ok=True)
        lock = AsyncFileLock(folder / f".{name}.lock", run_in_executor=False)
        try:
            held = await lock.acquire(blocking=False)
        except Timeout:
            print(f"{name}: another process is running it; waiting", flush=True)
            held = await lock.acquire(poll_interval=0.5)
        async with held:
            record = standing.read(name, study_of(name, request))
            if standing.end_state(record)[0] in (standing.RUNNING, standing.CLOSING):  # for example in JupyterLab
                return Outcome(name, "busy", f"process {record['pid']} has run it since {record['started']}", ran=False)
            if reasons := ["requested again (--force)"] if request.force else stale(name, request):
                print(f"{name}: running ({standing.in_short(reasons)})", flush=True)
                return await _run_one(name, request, workers)
    seconds = standing.read(name, study_of(name, request)).get("seconds", 0.0)
    return Outcome(name, standing.FINISHED, "still valid", ran=False, seconds=seconds)


def run(names: Iterable[str], request: Request, jobs: int = 1) -> list[Outcome]:
    """Run notebooks in their order, at most `jobs` at a time; those with a valid record are skipped with a line.

    A notebook waits for those it reads from (order.yaml) that are among `names`, however they end. Returns the end of
    each; the caller decides what a failure means. Raises before anything starts if a parameter is wrong.
    """
    chosen = choose(names, request.scale)
    for name in chosen:
        resolve(name, request)
    return asyncio.run(_run_all(chosen, request, jobs))


async def _run_all(names: list[str], request: Request, jobs: int) -> list[Outcome]:
    waits, slots, outcomes, tasks, signals = order(), asyncio.Semaphore(jobs), [], {}, []
    whole, workers = asyncio.current_task(), _Workers(len(names), jobs)

    async def when_ready(name: str) -> None:
        await asyncio.gather(*(tasks[other] for other in waits[name] if other in tasks))
        async with slots:
            outcomes.append(await _run_or_skip(name, request, workers))
            print(tell(outcomes[-1]), flush=True)

    def stop(number: signal.Signals) -> None:
        signals.append(number)
        whole.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    tasks |= {name: asyncio.create_task(when_ready(name)) for name in names}
    try:
        await asyncio.gather(*tasks.values())  # an error, such as a full disk, ends the others too
    except asyncio.CancelledError:
        print(f"\nstopped by {signals[0].name}; the same command continues", flush=True)
        sys.exit(128 + signals[0])
    finally:
        await workers.end()
    return outcomes


def make_parts(names: Iterable[str], request: Request, only: str = "train") -> bool:
    """Make the missing parts of chapters, one after another in this process, but no tables; return True if all exist.

    Parameters
    ----------
    only
        `parts.TRAIN`, or `parts.TAKE` to use only finished runs of the store, without training. The measuring cells up
        to the last one tagged `parts` are run. After a stop at any moment, the same call continues.
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
    """One outcome as a line of text."""
    if not outcome.ran:
        return f"{outcome.notebook}: {outcome.state}, {outcome.reason}"
    text = f"{outcome.notebook}: {outcome.state} after {outcome.seconds:.0f} s"
    return text + (f"\n    {outcome.reason}".replace("\n", "\n    ") if outcome.reason else "")


# ---------------------------------------------------------------- execute


class Forked:
    """A process forked from this one, with the parts of `subprocess.Popen` that `jupyter_client` needs."""

    stdin = stdout = stderr = returncode = None

    def __init__(self, pid: int):
        self.pid = pid

    def poll(self, how: int = os.WNOHANG) -> int | None:
        if self.returncode is None and (ended := os.waitpid(self.pid, how))[0]:
            self.returncode = os.waitstatus_to_exitcode(ended[1])
        return self.returncode

    def wait(self) -> int:
        return self.poll(0)

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


def waiting_kernel() -> tuple[Forked, int]:
    """Fork a kernel, before there are threads; it waits for its arguments at the other end of the descriptor."""
    read, write = os.pipe()
    if pid := os.fork():
        os.close(read)
        return Forked(pid), write
    os.close(write)
    os.setsid()
    with os.fdopen(read, encoding="utf-8") as said:
        told = said.read()
    if not told:  # the worker ended without using it
        sys.exit()
    arguments, env, folder = json.loads(told)
    os.environ.update(env, JPY_PARENT_PID=str(os.getppid()))
    os.chdir(folder)
    sys.path[:] = [each for each in sys.path if each]  # as ipykernel_launcher does
    from ipykernel.kernelapp import launch_new_instance

    sys.exit(launch_new_instance(argv=arguments))


class WatchedKernel(AsyncKernelManager):
    """A kernel manager that remembers the kernel's process after its end, and uses a waiting one."""

    process = waiting = None

    async def _async_launch_kernel(self, kernel_cmd: list[str], **how: object) -> None:
        if WatchedKernel.waiting is None:
            return await super()._async_launch_kernel(kernel_cmd, **how)
        (process, write), WatchedKernel.waiting = WatchedKernel.waiting, None
        with os.fdopen(write, "w", encoding="utf-8") as told:
            json.dump([kernel_cmd[kernel_cmd.index("-f") :], how["env"], str(how.get("cwd") or Path.cwd())], told)
        self.provisioner.process, self.provisioner.pid, self.provisioner.pgid = process, process.pid, process.pid
        self._reconcile_connection_info(self.provisioner.connection_info)

    async def _async_is_alive(self) -> bool:
        WatchedKernel.process = getattr(self.provisioner, "process", None) or WatchedKernel.process
        return await super()._async_is_alive()

    is_alive = _async_is_alive


def oom_kills() -> int | None:
    """Number of processes in our memory group killed for memory; None if nothing counts them."""
    with contextlib.suppress(OSError):
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()]
        groups = [path.lstrip("/") for _, controllers, path in lines if controllers in ("", "memory")]
        folders = [Path(root, group) for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory") for group in (*groups, "")]
        files = [folder / name for folder in folders for name in ("memory.events", "memory.oom_control")]
        counts = [re.search(r"(?m)^oom_kill (\d+)$", file.read_text()) for file in files if file.is_file()]
        return next((int(count[1]) for count in counts if count), None)
    return None


def verdict_on_death(code: int | None, before: int | None, after: int | None) -> tuple[str, str]:
    """(state, reason) of a notebook with a dead kernel: out of memory only if the memory group's counter says so."""
    if code is None:
        return "killed", "the kernel died; its exit code is not known"
    if code >= 0:
        return "killed", f"the kernel exited with code {code}"
    if code == -signal.SIGKILL and None not in (before, after) and after > before:
        return "out of memory", "the kernel was killed because the machine's memory was full"
    return "killed", f"the kernel was killed by signal {-code} ({signal.strsignal(-code)})"


def verdict_on_end(name: str, study: str, token: str) -> tuple[str, str]:
    """(state, reason) of a notebook that papermill ran to the end: finished only by our evidence."""
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
    """Progress of a notebook, one line per cell, with the heading above it."""

    def __init__(self, cells: list[dict]):
        self.cells = sum(cell["cell_type"] == "code" and bool(cell["source"].strip()) for cell in cells)
        self.at, self.line, self.heading = 0, "", "the beginning"

    def __call__(self, cell: dict, cell_index: int) -> None:
        if cell["cell_type"] == "markdown":
            self.heading = [self.heading, *re.findall(r"^#+ +(.+)$", cell["source"], re.MULTILINE)][-1].strip()
        elif cell["source"].strip() and "injected-parameters" not in cell["metadata"].get("tags", []):
            self.at += 1
            self.line = next(line for line in cell["source"].splitlines() if line.strip())[:60]
            print(f"{self.heading} (cell {self.at} of {self.cells}, {(self.at - 1) / self.cells:.0%} done)", flush=True)

    def __str__(self) -> str:
        return f"code cell {self.at} of {self.cells}: {self.line}"


@contextlib.contextmanager
def socket_folder() -> Iterator[Path]:
    """Yield a new folder for a kernel's sockets, removed at the end. Folders of killed processes are removed first.

    It is in a private folder of the user, in the folder for temporary files, or below /tmp if that path would be too
    long for a socket. XDG_RUNTIME_DIR is not suitable: it is emptied at logout, while a study continues.
    """
    folders = [Path(base, f"nli-study-{os.getuid()}") for base in (tempfile.gettempdir(), "/tmp")]
    # in bytes; a socket's path has at most 103, on macOS
    own = next((each for each in folders if len(os.fsencode(each)) <= 75), folders[-1])
    with contextlib.suppress(FileExistsError):
        own.mkdir(mode=0o700)
    about = own.lstat()
    if own.is_symlink() or not own.is_dir() or about.st_uid != os.getuid() or about.st_mode & 0o077:
        cure = "which sockets need: remove it, or set TMPDIR to another folder with a short path."
        raise StudyError(f"{own} is not a private folder of yours (mode 700), {cure}")
    with draft_folder(own / "k") as folder:
        yield folder


def _cut(*_: object) -> None:
    """End this run: kill the kernel and everything it started, which is a separate session."""
    if (process := WatchedKernel.process) is not None and process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    raise KeyboardInterrupt


def run_job(name: str, study: str, parameters: dict[str, object], token: str) -> tuple[str, str]:
    """Execute the notebook; return the (state, reason) of its end."""
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
        state, reason = verdict_on_death(WatchedKernel.process and WatchedKernel.process.poll(), kills, oom_kills())
        return state, f"{reason}, in {progress}"
    except KeyboardInterrupt:
        return "stopped", f"asked to stop (SIGTERM), in {progress}"
    except Exception as error:
        return "failed", f"could not be run: {type(error).__name__}: {error}"
    return verdict_on_end(name, study, token)


def main(job: dict[str, object]) -> None:
    """Run a job, the arguments of `run_job`, and leave its end state in the record."""
    name, study, token = job["notebook"], job["study"], job["token"]
    os.environ.update({standing.TOKEN: token, standing.RUN_PID: str(os.getpid())})
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # no progress bars in a headless run
    WatchedKernel.waiting = waiting_kernel()
    clock, first = time.monotonic(), {**job, "state": standing.RUNNING, "pid": os.getpid(), "started": now()}
    standing.write(first)
    signal.signal(signal.SIGTERM, _cut)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the runner, which then asks us to stop
    if sys.platform == "linux":
        # if the runner is killed, its notebooks end too
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    try:
        state, reason = run_job(name, study, job["parameters"], token)
    except KeyboardInterrupt:  # during the import of papermill
        state, reason = "stopped", "asked to stop (SIGTERM), before its first cell"
    stored, seconds = standing.read(name, study), round(time.monotonic() - clock, 1)
    last = {"state": state, "reason": reason, "started": first["started"], "ended": now(), "seconds": seconds}
    standing.write((stored if stored.get("token") == token else first) | last)
