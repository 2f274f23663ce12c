"""Where a run's arrays live: declared first, filled epoch by epoch, marked done last.

A run's folder holds

    spec.json         the settings, compared with the asked ones before anything is touched
    <name>.npy        one memory-mapped array for each declared name, e.g. logits (E, N, C)
    done.npy          one bit an epoch, set only after the epoch's arrays and checkpoint are on disk
    log.jsonl         one row an epoch
    about.json        package versions, code revision, device, seconds

Killed at any moment, the folder stays readable, and the same call continues at the first epoch that is not done.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from nli_lib import paths

PACKAGES = ("torch", "transformers", "datasets", "numpy", "scipy", "pandas", "scikit-learn", "sentence-transformers")


class StoreError(RuntimeError):
    """The run's folder does not fit what was asked of it; the message names the field and what to do."""


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well, and vanishes when it does not."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.chmod(0o644)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` that takes its place when the block ends well, and vanishes when it does not."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield draft
        draft.chmod(0o755)
        shutil.rmtree(path, ignore_errors=True)
        draft.replace(path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_json(path: Path, value: object) -> None:
    with atomic(path) as draft:
        draft.write_text(json.dumps(value, indent=2, sort_keys=True, default=str) + "\n", encoding="utf-8")


def revision() -> str:
    """The commit of the code that runs, with "+changes" when tracked files differ from it; "unknown" outside git."""

    def git(*words: str) -> str:
        return subprocess.run(
            ("git", "-C", str(paths.HOME), *words), capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def environment() -> dict[str, str]:
    """Python, platform, code revision and the versions of the packages that decide numbers."""
    versions = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "revision": revision(),
    }
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def device() -> str:
    """What computed: the CUDA device's name where torch uses one, else the CPU and how many of its cores."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()} CPU, {cores} cores"


class RunFolder:
    """One run on disk. Open it with `open_run`, which holds the lock."""

    def __init__(self, path: Path):
        self.path = Path(path)

    @property
    def checkpoint(self) -> Path:
        """Where the training loop keeps its state between epochs."""
        return self.path / "checkpoint.pt"

    @property
    def spec(self) -> dict:
        return json.loads((self.path / "spec.json").read_text(encoding="utf-8"))

    def array(self, name: str, mode: str = "r") -> np.ndarray:
        """The declared array `name`, memory-mapped; `mode` "r" to read, "r+" to fill."""
        return np.load(self.path / f"{name}.npy", mmap_mode=mode)

    @property
    def done(self) -> np.ndarray:
        """(E,) bool: which epochs are complete."""
        return np.load(self.path / "done.npy")

    def mark(self, epochs: int) -> None:
        """Set the done bits of the first `epochs` epochs; call it after their arrays and checkpoint are written."""
        bits = self.done
        bits[:epochs] = True
        with atomic(self.path / "done.npy") as draft:
            np.save(draft, bits)

    @property
    def log(self) -> list[dict]:
        """The row of each epoch logged so far, in order."""
        path = self.path / "log.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def add_log(self, row: Mapping) -> None:
        """Log one epoch's row; an epoch done again after a kill replaces its earlier row."""
        rows = [old for old in self.log if old["epoch"] < row["epoch"]] + [dict(row)]
        with atomic(self.path / "log.jsonl") as draft:
            draft.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")

    def write_about(self, **facts: object) -> None:
        write_json(self.path / "about.json", {**environment(), **facts})

    @property
    def about(self) -> dict:
        return json.loads((self.path / "about.json").read_text(encoding="utf-8"))


def _compare(stored: Mapping, asked: Mapping, path: Path) -> None:
    for field in sorted(stored.keys() | asked.keys()):
        if stored.get(field) != asked.get(field):
            raise StoreError(
                f"{path}: the stored run has {field}={stored.get(field)!r}, "
                f"this call asks {field}={asked.get(field)!r}. Use another folder, or delete this one to start again."
            )


def _declare(folder: RunFolder, spec: Mapping, arrays: Mapping[str, tuple[tuple[int, ...], str]], steps: int) -> None:
    for name, (shape, dtype) in arrays.items():
        if not (folder.path / f"{name}.npy").exists():
            with atomic(folder.path / f"{name}.npy") as draft:
                np.lib.format.open_memmap(draft, mode="w+", dtype=np.dtype(dtype), shape=shape).flush()
    if not (folder.path / "done.npy").exists():
        with atomic(folder.path / "done.npy") as draft:
            np.save(draft, np.zeros(steps, bool))
    write_json(folder.path / "spec.json", dict(spec))


@contextlib.contextmanager
def open_run(
    path: Path, spec: Mapping, arrays: Mapping[str, tuple[tuple[int, ...], str]], *, steps: int, wait: float = -1
) -> Iterator[RunFolder]:
    """Open a run's folder for writing, alone: create it, or compare `spec` with the stored one and continue.

    `arrays` maps a name to (shape, dtype); `steps` is the number of done bits (epochs). A second process that opens the
    same folder says so and waits, for ever by default, at most `wait` seconds otherwise. Raises `StoreError` when the
    specs differ (it names the field), when the wait runs out, and when the folder cannot be written.
    """
    folder = RunFolder(path)
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.path / ".lock")
        lock.acquire(timeout=0)
    except Timeout:
        print(f"{folder.path.name}: another process works on this run; waiting for it", flush=True)
        try:
            lock.acquire(timeout=wait)
        except Timeout as error:
            raise StoreError(f"{folder.path}: still in use by another process after {wait:g} seconds") from error
    except OSError as error:
        raise StoreError(
            f"{folder.path}: cannot be written ({error.strerror}); free space or choose another NLI_HOME"
        ) from error
    try:
        spec = json.loads(json.dumps(dict(spec)))  # as it will be read back: tuples become lists
        if (folder.path / "spec.json").exists():
            _compare(folder.spec, spec, folder.path)
        _declare(folder, spec, arrays, steps)
        yield folder
    except OSError as error:
        if error.errno is None:
            raise
        raise StoreError(f"{folder.path}: {error.strerror}; the epochs already done are kept") from error
    finally:
        lock.release()
