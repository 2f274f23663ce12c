"""Parts: a table that rests on many trainings is made of small tracked files, one a training, which outlive the runs.

    tables = study.parts({"longer, training 0": Part("23_debiased_generator", decides, make), ...})

What is recorded is read; what is missing is made, in this order, and recorded the moment it is there. A part is found
by what decides it, as content (`decided`), and never by code: code that chooses other rows gives another digest by
itself, and a refactoring loses nothing.

    data/results/<study>/<chapter>.parts/<name>-<digest of what decides it>.parquet
    data/results/<study>/<chapter>.parts/wanted.json    name -> file of all that the chapter asked for last

A table over 1 MB is a folder of that name with several files. `table.attrs` says what decides it, what it cost and
where it was made. Processes and machines that share the folder, or bring their files together, make parts each.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from nli_lib import paths
from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.spec import RunSpec
from nli_lib.store import StoreError, atomic, device, now, reading, revision, write_json
from nli_lib.study.tables import MOST_BYTES

ONLY = "NLI_PARTS"  # set where nothing but parts is made: to one of
TRAIN, TAKE = "train", "take"  # train what is missing, or take over only what finished runs hold
CURE = "delete it, and it is made again"
NAMES_ROWS = {"corpus", "content", "split", "limit", "subset", "validation"}  # fields of a spec: the digest says more
WANTED = "wanted.json"


class MissingPartsError(UserError, RuntimeError):
    """Parts are missing where nothing but parts is made; the message says how many."""


class Part(NamedTuple):
    """A part of a chapter's tables.

    decides  what decides it, as JSON; make: computes it. Its attrs replace what is measured of seconds and device
    ready    whether the run that it rests on is finished, so that making it trains nothing
    lock     parts with the same are made by one process at a time, by default each by itself
    """

    chapter: str
    decides: Mapping
    make: Callable[[], pd.DataFrame]
    ready: Callable[[], bool] = lambda: False
    lock: str = ""


def decided(spec: RunSpec, corpus: Corpus, start: Mapping | None = None, **more: object) -> dict:
    """What decides a training: its recipe, the very rows in their order, their classes, and `more`, such as the digest
    of what it is tested on. `start`: what decides the run whose weights it starts from."""
    recipe = {name: value for name, value in spec.model_dump(exclude_defaults=True).items() if name not in NAMES_ROWS}
    return {
        "recipe": {**recipe, **({"model": start} if start else {})},
        "rows": corpus.digest,
        "classes": list(corpus.classes),
        **more,
    }


def key_of(part: Part) -> str:
    """A short digest of what decides the part."""
    canonical = json.dumps(part.decides, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:8]


def file_of(name: str, part: Part, study: str) -> Path:
    """Where the part called `name` lies, or will lie; one that the same decides may have another name."""
    folder, key = paths.RESULTS / study / f"{part.chapter}.parts", key_of(part)
    path = folder / f"{_readable(name)}-{key}.parquet"
    return path if path.exists() else next(folder.glob(f"*-{key}.parquet"), path)


def _readable(name: str) -> str:
    return re.sub(r"[^\w.=-]+", "-", name)[:80]


def gather(wanted: Mapping[str, Part], study: str, only: str | None = None) -> dict[str, pd.DataFrame]:
    """The tables of parts, by name: read where they are recorded, made and recorded where they are not.

    What another process is making is left to it, and waited for after everything else. With `only`, `TRAIN` or `TAKE`,
    nothing is waited for, and `MissingPartsError` is raised where parts are missing in the end. Raises `StoreError` for
    a damaged part and for a full disk.
    """
    files = {name: file_of(name, part, study) for name, part in wanted.items()}
    for path in files.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        for other in path.parent.glob(f"{path.stem[:-8]}{'[0-9a-f]' * 8}.parquet"):
            if other not in files.values():
                print(f"{other} rests on something else than is asked for now: it is left aside and not used")
    for wait in (False,) if only else (False, True):
        for name, path in files.items():
            part = wanted[name]
            if path.exists() or (only == TAKE and not part.ready()):
                continue
            if wait:
                print(f"{name}: another process makes this part; waiting for it", flush=True)
            lock = FileLock(path.with_name(f".{_readable(part.lock or path.stem)}.lock"))
            with contextlib.suppress(Timeout), lock.acquire(blocking=wait):
                if not path.exists():
                    _make(name, part, path)
    missing = [name for name, path in files.items() if not path.exists()]
    if missing:
        raise MissingPartsError(f"{len(missing)} of {len(wanted)} parts are missing, {missing[0]} the first")
    return {name: read(path, wanted[name].decides) for name, path in files.items()}


def _make(name: str, part: Part, path: Path) -> None:
    began = time.monotonic()
    table = part.make()
    measured = {"seconds": round(time.monotonic() - began, 1), "device": device(), "revision": revision()}
    about = {"decides": part.decides, "made": now(), **measured, **table.attrs}
    pieces = _encoded(table, about)
    with atomic(path) as draft:
        if len(pieces) == 1:
            draft.write_bytes(pieces[0])
        else:
            draft.mkdir()
            for number, piece in enumerate(pieces):
                (draft / f"{number:03d}-of-{len(pieces)}.parquet").write_bytes(piece)
    print(f"{name}: recorded in {path.parent.name}", flush=True)


def _encoded(table: pd.DataFrame, about: Mapping) -> list[bytes]:
    """The table as parquet, cut in halves until each is at most 1 MB."""
    table.attrs, buffer = dict(about), io.BytesIO()
    settings = {"compression": "zstd", "compression_level": 19, "use_dictionary": False, "data_page_size": 2**25}
    settings["write_statistics"] = False  # of a table of bits they are longer than the table
    table.to_parquet(buffer, index=False, write_page_checksum=True, **settings)
    if len(buffer.getvalue()) <= MOST_BYTES or len(table) < 2:
        return [buffer.getvalue()]
    half = len(table) // 2
    return [*_encoded(table[:half], about), *_encoded(table[half:], about)]


def files_in(path: Path) -> list[Path]:
    """The files of a part: itself, or those in its folder, in their order."""
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def read(path: Path, decides: Mapping) -> pd.DataFrame:
    """A recorded part. Raises `StoreError` naming the file where it is damaged, or is not what its name says."""
    files = files_in(path)
    with reading(path, CURE):
        tables = [pd.read_parquet(file, page_checksum_verification=True) for file in files]
        whole = not path.is_dir() or files[-1].name == f"{len(files) - 1:03d}-of-{len(files)}.parquet"
        if not whole or any(table.attrs["decides"] != json.loads(json.dumps(decides)) for table in tables):
            raise StoreError(f"{path} is not what its name says: {CURE}")
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)


# ---------------------------------------------------------------- how far a chapter is


def declare(wanted: Mapping[str, Part], notebook: str, study: str) -> None:
    """Leave the names and files of all parts that a chapter asks for, for `progress`."""
    path = paths.RESULTS / study / f"{notebook}.parts" / WANTED
    files = {name: os.path.relpath(file_of(name, part, study), path.parent) for name, part in wanted.items()}
    write_json(path, files)


def progress(notebook: str, study: str) -> str:
    """How many of the parts that a chapter asks for are there, and what the others cost, by the seconds that those of
    the same kind took, on this machine where it has made one; "" for a chapter that has asked for none."""
    path = paths.RESULTS / study / f"{notebook}.parts" / WANTED
    if not path.is_file():
        return ""
    with reading(path, "delete it, and run the chapter again"):
        wanted = {name: path.parent / file for name, file in json.loads(path.read_text(encoding="utf-8")).items()}
    took = defaultdict(lambda: defaultdict(list))  # kind -> device -> seconds
    for name, file in wanted.items():
        if file.exists():
            with reading(file, CURE):
                about = json.loads(pq.read_schema(files_in(file)[0]).metadata[b"PANDAS_ATTRS"])
                if about["seconds"] is not None:
                    took[_kind(name)][about["device"]].append(about["seconds"])
    missing = [_kind(name) for name, file in wanted.items() if not file.exists()]
    said = f"{len(wanted) - len(missing)} of {len(wanted)} parts are there"
    if not missing:
        return said
    seconds, where = 0.0, set()
    for kind in missing:
        machines = took.get(kind, {})
        if machines:
            at = device() if device() in machines else max(machines, key=lambda name: len(machines[name]))
            seconds, where = seconds + sum(machines[at]) / len(machines[at]), where | {at}
    if not where:
        return f"{said}; what the others cost is not known yet"
    unknown = sum(kind not in took for kind in missing)
    besides = f", besides {unknown} of a kind that was not timed yet" if unknown else ""
    return f"{said}; the others cost some {seconds / 3600:.1f} h, as on {', '.join(sorted(where))}{besides}"


def _kind(name: str) -> str:
    """Parts whose names differ in nothing but numbers, of trainings or settings, cost about the same."""
    return re.sub(r"\d[\d.]*", "", name)
