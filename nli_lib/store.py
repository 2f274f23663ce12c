"""The store of training runs: their arrays on disk, and the settings that identify a run (`RunSpec`).

A run's folder is created first, filled epoch by epoch, and marked done last::

    spec.json         the settings, compared with the requested ones before anything is changed
    <name>.npy        one memory-mapped array for each declared name, e.g. logits (E, N, C)
    done.npy          one bit per epoch, set only after the epoch's arrays and checkpoint are on disk
    checksums.json    digests of arrays and weights, written with the last bit, verified at every later use
    log.jsonl         one row per epoch
    about.json        package versions, code revision, device, seconds

After a kill at any moment the folder is readable, and the same call continues at the first unfinished epoch. A file
that cannot be read, or was changed, raises a `StoreError` that names it and says what to delete.

The settings give a readable id. Runs with equal specs on equal data are the same run, and the store finds a finished
one by its id.
"""

import contextlib
import errno
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field

from nli_lib import paths
from nli_lib.errors import UserError

DRAFT = ".nli-draft"  # locked while a draft is written; an unlocked one belongs to a killed process
PACKAGES = ("torch", "transformers", "datasets", "numpy", "scipy", "pandas", "scikit-learn", "sentence-transformers")

Arrays = Mapping[str, tuple[tuple[int, ...], str]]  # name -> shape, dtype


class StoreError(UserError, RuntimeError):
    """The store cannot read or write something; the message names the file or field and what to do."""


@contextlib.contextmanager
def reading(path: Path, cure: str) -> Iterator[None]:
    """Turn any error in a block that reads `path` into a `StoreError` that names it and ends in `cure`.

    The original message is left out: for a damaged file, torch and numpy advise switching off their safeguards.
    """
    try:
        yield
    except (UserError, MemoryError):
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise StoreError(f"{path} cannot be read ({reason}): {cure}") from None


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn a full disk or a read-only folder into a `StoreError` that names `path`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        # torch wraps the system's error, and libraries in Rust put it into their message
        told = re.search(r"\(os error (\d+)\)", str(error))
        numbers = [int(told[1])] if told else [getattr(each, "errno", None) for each in (error, error.__context__)]
        no_room = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM}
        if not (known := [number for number in numbers if number in no_room]):
            raise
        advice = "free space, or let its folder be a link to one with room; what was done before is kept"
        raise StoreError(f"{path} cannot be written ({os.strerror(known[0])}): {advice}") from error


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a path for a new file or folder that replaces `path` if the block succeeds, and is removed if it fails."""
    path = Path(path)
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_folder(path) as folder:
            draft = Path(folder, path.name)
            yield draft
            if draft.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with draft.open("rb+") as file:
                    os.fsync(file.fileno())
            draft.replace(path)


@contextlib.contextmanager
def draft_folder(path: Path) -> Iterator[Path]:
    """Yield a folder next to `path`, locked during the block and then removed; folders of killed processes are removed
    first."""
    _clear(path.parent)
    while True:
        folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:100]}."))
        lock = FileLock(folder / DRAFT)
        with contextlib.suppress(FileNotFoundError):  # another process removed it before it was locked
            lock.acquire()
            break
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # before the lock is released; otherwise _clear might create it again
        lock.release()


def _clear(folder: Path) -> None:
    """Remove the drafts of killed processes from a folder."""
    for lock in folder.glob(f".*/{DRAFT}"):
        with contextlib.suppress(OSError), FileLock(lock, blocking=False):  # OSError: it is being written
            shutil.rmtree(lock.parent, ignore_errors=True)


@contextlib.contextmanager
def alone(folder: Path, what: str, name: str = "") -> Iterator[None]:
    """Work on a folder, or on its part `name`, as the only process; a second process prints a message and waits.

    Parameters
    ----------
    what
        name in messages: "this run"
    """
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f".{name}lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            print(f"{folder.name}: another process works on {what}; waiting for it", flush=True)
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def write_json(path: Path, value: object) -> None:
    with atomic(path) as draft:
        draft.write_text(json.dumps(value, indent=2, sort_keys=True, default=str) + "\n", encoding="utf-8")


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an array into a file, completely or not at all."""
    # "w+b": numpy writes directly into a write-only file, and a full disk then cuts it silently
    with atomic(path) as draft, draft.open("w+b") as file:
        np.save(file, array)


def revision() -> str:
    """The commit of the running code, with "+changes" if tracked files differ from it; "unknown" outside git."""
    described = ("describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+changes")
    words = ("git", "-C", str(Path(__file__).parent), *described)
    with contextlib.suppress(OSError):  # no git
        return subprocess.run(words, capture_output=True, text=True).stdout.strip() or "unknown"
    return "unknown"


def environment() -> dict[str, str]:
    """Python, platform, code revision and the versions of packages that affect numbers."""
    system = f"{platform.system()} {platform.machine()}"
    versions = {"python": platform.python_version(), "platform": system, "revision": revision()}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def device() -> str:
    """Name of the computing device: the CUDA device if torch uses one, else the CPU and the number of its cores."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()} CPU, {cores} cores"


@functools.lru_cache(maxsize=1024)
def _checksum(path: Path, size: int, modified: int) -> str:
    """Digest of a file's content; an unchanged file is not read again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


class RunFolder:
    """A run on disk. Open it with `open_run`, which holds the lock."""

    def __init__(self, path: Path):
        self.path = Path(path)

    def reading(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Context for reading the folder's file `name`: see `reading`."""
        return reading(self.path / name, f"delete the folder {self.path} to train this run again")

    @property
    def checkpoint(self) -> Path:
        """Path of the training loop's state between epochs."""
        return self.path / "checkpoint.pt"

    def read_json(self, name: str) -> dict:
        """Read the folder's JSON file `name`."""
        with self.reading(name):
            return dict(json.loads((self.path / name).read_text(encoding="utf-8")))

    def array(self, name: str, mode: str = "r") -> np.ndarray:
        """The declared array `name`, memory-mapped; `mode` "r" to read, "r+" to fill."""
        with self.reading(f"{name}.npy"):
            return np.load(self.path / f"{name}.npy", mmap_mode=mode)

    @property
    def done(self) -> np.ndarray:
        """(E,) bool, True for completed epochs."""
        with self.reading("done.npy"):
            return np.load(self.path / "done.npy").astype(bool, casting="no")

    def mark(self, epochs: int) -> None:
        """Set the done bits of the first `epochs` epochs; call it after their arrays and checkpoint are written."""
        bits = self.done
        bits[:epochs] = True
        if bits.all():
            arrays = {*self.path.glob("*.npy"), *self.path.glob("*.csv")} - {self.path / "done.npy"}
            parts = {"arrays": arrays, "model": self.path.glob("model/*.safetensors")}
            parts["models"] = self.path.glob("models/*/*.safetensors")
            write_json(self.path / "checksums.json", {part: self._checksums(files) for part, files in parts.items()})
        write_array(self.path / "done.npy", bits)

    def _checksums(self, files: Iterable[Path]) -> dict[str, str]:
        checksums = {}
        for path in files:
            with self.reading(path.name):
                about = path.stat()
                checksums[str(path.relative_to(self.path))] = _checksum(path, about.st_size, about.st_mtime_ns)
        return checksums

    def verify(self, part: Literal["arrays", "model", "models"]) -> None:
        """Raise `StoreError` if a file of a finished run was changed; older runs have no checksums."""
        if (self.path / "checksums.json").exists():
            for name, written in self.read_json("checksums.json").get(part, {}).items():
                if self._checksums([self.path / name]) != {name: written}:
                    self.refuse(f"{name} does not hold what was written")

    def refuse(self, fault: str) -> NoReturn:
        raise StoreError(f"{self.path}: {fault}; delete this folder to train the run again")

    @property
    def log(self) -> list[dict]:
        """The rows of the epochs logged so far, in order."""
        path = self.path / "log.jsonl"
        with self.reading(path.name):
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            return [json.loads(line) for line in lines]

    def add_log(self, row: Mapping) -> None:
        """Log one epoch's row; an epoch repeated after a kill replaces its earlier row."""
        rows = [old for old in self.log if old["epoch"] < row["epoch"]] + [dict(row)]
        with atomic(self.path / "log.jsonl") as draft:
            draft.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")

    def write_about(self, **facts: object) -> None:
        write_json(self.path / "about.json", {**environment(), **facts})


def _check(folder: RunFolder, spec: Mapping, arrays: Arrays) -> None:
    """Compare stored with requested settings, and a finished run with its checksums.

    A setting that one side does not have counts as its default. `content` is not compared, because `corpus_digest` is.
    """
    stored = folder.read_json("spec.json")
    for field in sorted((stored.keys() | spec.keys()) - {"content"}):
        theirs, ours = (each.get(field, DEFAULTS.get(field)) for each in (stored, spec))
        if theirs != ours:
            difference = f"{field}={theirs!r}, this call asks {field}={ours!r}"
            cure = "Use another folder, or delete this one to start again."
            raise StoreError(f"{folder.path}: the stored run has {difference}. {cure}")
    for name, (shape, dtype) in arrays.items():
        array = folder.array(name)
        if array.shape != tuple(shape) or array.dtype != dtype:
            folder.refuse(f"{name}.npy is {array.dtype} {array.shape} and should be {dtype} {tuple(shape)}")
    if folder.done.all():
        folder.verify("arrays")


@contextlib.contextmanager
def open_run(path: Path, spec: Mapping, arrays: Arrays, *, steps: int) -> Iterator[RunFolder]:
    """Open a run's folder for exclusive writing: create it, or compare `spec` with the stored one and continue.

    `arrays` maps a name to (shape, dtype); `steps` is the number of done bits (epochs). A second process that opens the
    same folder prints a message and waits. Raises `StoreError` if the specs differ (naming the field), if a file is
    damaged, or if the folder cannot be written.
    """
    folder = RunFolder(path)
    spec = json.loads(json.dumps(dict(spec)))  # the form in which it is read back: tuples become lists
    arrays = {**arrays, "done": ((steps,), "bool")}
    with alone(folder.path, "this run"), _writing(folder.path):
        _clear(folder.path)
        if (folder.path / "spec.json").exists():
            _check(folder, spec, arrays)
        else:  # spec.json is written last, so a folder without one is ignored
            folder.checkpoint.unlink(missing_ok=True)
            for name, (shape, dtype) in arrays.items():
                # all bytes are written: with a sparse file a full disk would be noticed too late
                write_array(folder.path / f"{name}.npy", np.zeros(shape, dtype))
            write_json(folder.path / "spec.json", spec)
        yield folder


# ---------------------------------------------------------------- spec


View = Literal["pair", "hypothesis", "premise"]
LONGEST_ID = 200  # bytes; file systems allow names of 255, and drafts and locks have longer names
RUN = "run:"  # `model="run:<id>"` starts from the model of another run in the store, wherever it is


class RunSpec(BaseModel):
    """Every setting that decides the numbers of one training run.

    The defaults are the recipe of WANLI (its Tables 4 and 5): RoBERTa-large, 5 epochs, learning rate 1e-5, batch 32,
    weight decay 0.1 (none on bias and LayerNorm), linear decay after a warm-up of 6% of the steps, gradients clipped
    at norm 1, at most 128 word pieces. `study.dial` holds what the other papers change.

    The id depends only on fields that differ from their defaults, so a new field changes no id as long as its default
    is the previous behaviour. A default must therefore never change.

    Raises
    ------
    ValueError
        (pydantic's `ValidationError`) For unknown, mistyped and impossible settings, naming the field.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    corpus: str  # name, or path of a user's file
    content: str | None = None  # digest of a user's file: a corrected file is another corpus
    split: str = "train"
    limit: int | None = Field(None, ge=1)  # size of a seeded sample; None takes all
    subset: str = "all"  # name of the selection that was kept; part of the run's identity
    view: View = "pair"
    model: str = "roberta-large"  # offline name, hub id, local folder or "run:<id>" of an encoder
    objective: str = "classify"  # name of the objective, see `learn.fit`
    epochs: int = Field(5, ge=1)  # the maximum if `patience` is given
    batch_size: int = Field(32, ge=1)
    learning_rate: float = Field(1e-5, gt=0)
    schedule: Literal["linear", "constant"] = "linear"  # after the warm-up: down to 0, or constant
    warmup: float = Field(0.06, ge=0, lt=1)  # share of all steps
    warmup_steps: int | None = Field(None, ge=0)  # warm-up in steps; replaces the share `warmup`
    weight_decay: float = Field(0.1, ge=0)
    epsilon: float = Field(1e-8, gt=0)  # AdamW's epsilon
    clip: float | None = Field(1.0, gt=0)  # largest gradient norm; None clips nothing
    patience: int | None = Field(None, ge=1)  # stop after this number of epochs without a better `watch`
    watch: Literal["accuracy", "loss"] = "accuracy"  # the value that `patience` watches on `validation`
    validation: str = "validation"  # name of the split that `patience` watches
    max_length: int = Field(128, ge=8)  # word pieces; longer examples are cut
    precision: Literal["bf16", "fp32"] = "bf16"
    # time of recording the logits of an epoch: "eval", in an evaluation pass after it (WANLI and the difficulty paper),
    # or "train", in the training pass, with dropout on (cartography)
    capture: Literal["eval", "train"] = "eval"
    record: Literal["every", "last"] = "every"  # epochs with recorded logits
    seed: int = Field(0, ge=0)
    models: Literal["last", "all"] = "last"  # "all" keeps the model of every epoch, for `learn.predict.predict_epochs`

    @property
    def id(self) -> str:
        """A readable name of a folder, ending in a digest of every field that is not at its default.

        At most `LONGEST_ID` bytes: a longer readable part is cut.
        """
        model = "model" if self.model.startswith(RUN) else Path(self.model).name
        words = (Path(self.corpus).name, self.split, str(self.limit or "all"), self.subset, self.view, model)
        readable = re.sub(r"[^\w.=-]+", "-", "_".join((*words, self.capture, f"s{self.seed}")))
        settings = json.dumps(self.model_dump(exclude_defaults=True), sort_keys=True)
        digest = hashlib.sha256(settings.encode()).hexdigest()[:8]
        return f"{readable.encode()[: LONGEST_ID - 9].decode(errors='ignore')}_{digest}"

    @property
    def folder(self) -> Path:
        return paths.RUNS / self.id


DEFAULTS = {name: field.get_default() for name, field in RunSpec.model_fields.items() if not field.is_required()}
