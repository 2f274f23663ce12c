"""Runs one notebook in a process of its own and says truly how it ended.

papermill writes a notebook whose kernel died as if it had completed. So the end is decided from evidence gathered
here: the kernel's exit code, the memory group's count of out-of-memory kills, the signal that stopped us, and, for
"finished", the record that this very run's last cell wrote (its token) and an execution count on every code cell.

Kernels talk over IPC below a fresh absolute path: the default path clashes between parallel runs.
"""

import contextlib
import ctypes
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
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar

from filelock import FileLock, Timeout
from jupyter_client.manager import AsyncKernelManager
from traitlets.config import Config

from nli_lib import paths
from nli_lib.store import now
from nli_lib.study import record as records

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
    stored = records.read(job.notebook, job.study)
    if stored.get("token") != job.token or stored.get("state") != records.CLOSING:
        return records.INCOMPLETE, "every cell ran, but study.finish() did not: it must be the notebook's last line"
    code = [cell for cell in records.cells(job.output) if cell["cell_type"] == "code" and cell["source"].strip()]
    if missing := [number for number, cell in enumerate(code, 1) if not cell["execution_count"]]:
        return records.INCOMPLETE, f"code cells {missing} were never executed"
    reason = records.unanswered(stored)
    return (records.INCOMPLETE, reason) if reason else (records.FINISHED, "")


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
        raise records.StudyError(
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
    progress, kills = _Progress(records.cells(source)), oom_kills()
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
                kernel_manager_class="nli_lib.study.execute.WatchedKernel",
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
    os.environ.update({records.TOKEN: job.token, records.RUN_PID: str(os.getpid())})
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # nobody watches a bar in a headless run
    clock, first = time.monotonic(), {**asdict(job), "state": records.RUNNING, "pid": os.getpid(), "started": now()}
    records.write(first)
    signal.signal(signal.SIGTERM, _cut)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the runner, which then asks us to stop
    if sys.platform == "linux":
        # a runner that is killed outright takes its notebooks with it
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    try:
        state, reason = run_job(job)
    except Cut:  # while papermill was still being imported
        state, reason = "stopped", "asked to stop (SIGTERM), before its first cell"
    stored, seconds = records.read(job.notebook, job.study), round(time.monotonic() - clock, 1)
    last = {"state": state, "reason": reason, "started": first["started"], "ended": now(), "seconds": seconds}
    records.write((stored if stored.get("token") == job.token else first) | last)
