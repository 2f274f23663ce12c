"""The record of a notebook's run: what ran, with what, how it ended, and whether it still stands for the code at hand.

One JSON file a notebook, `data/results/<study>/<notebook>.json`, beside its tables. Only two hands write it: the
notebook itself (`nli_lib.study`) and the runner that watches it (`nli_lib.study.schedule`). "finished" is never
taken from papermill, which marks a notebook whose kernel died as completed.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import json
import os
import re
import sys
import tokenize
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import yaml

from nli_lib import paths
from nli_lib.store import write_json
from nli_lib.study.dial import SCALES
from nli_lib.study.parameters import CORPORA

# End states. "closing" is a notebook that reached its last line and waits for the runner's word.
FINISHED, RUNNING, CLOSING, INTERRUPTED, NEVER = "finished", "running", "closing", "interrupted", "never run"

# Packages that decide numbers: a record made with other versions than the pins is from another environment.
DECISIVE = ("numpy", "scipy", "pandas", "scikit-learn", "statsmodels", "torch", "transformers", "sentence-transformers")

# Modules on top of the house: they draw or manage and change no recorded number.
SHOWING = {"study", "paths"}
RECKONING = {
    "evaluate",
    "inference",
    "contrasts",
    "retrieval",
}  # the modules of report/ whose numbers are recorded; the others draw

LIBRARY = Path(__file__).resolve().parents[1]

# Parameters that change no number: where the corpora lie, and which half is asked for.
NEUTRAL = {"DATA_DIR", "SHOW_ONLY"}


def study_name(scale: str, corpus: str | None) -> str:
    """The folder a run's tables live in: the scale's name on its own corpus, else "<scale>-<corpus>".

    A file's name is followed by four digits that stand for its place, so that two files of one name are two studies.
    """
    if corpus in (None, SCALES[scale].corpus):
        return scale
    words = [scale, re.sub(r"[^A-Za-z0-9_]+", "-", Path(corpus).name.split(".")[0])]
    if corpus not in CORPORA:
        words.append(digest_bytes(str(Path(corpus).expanduser().resolve()).encode())[:4])
    return "-".join(words)


def record_path(notebook: str, study: str) -> Path:
    return paths.RESULTS / study / f"{notebook}.json"


def read(notebook: str, study: str) -> dict:
    """The stored record, or {"state": "never run"}; one that cannot be read says so in its state's reason."""
    path = record_path(notebook, study)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"notebook": notebook, "study": study, "state": NEVER}
    except (OSError, ValueError) as error:
        return {"notebook": notebook, "study": study, "state": "unreadable", "reason": f"{path}: {error}"}


def write(record: Mapping) -> None:
    write_json(record_path(record["notebook"], record["study"]), dict(record))


def alive(pid: int | None) -> bool:
    """Whether a process of this number runs on this machine."""
    if not pid:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def end_state(record: Mapping) -> tuple[str, str]:
    """(state, reason) as it is now: a run still marked running whose process is gone was interrupted."""
    state, reason = record.get("state", NEVER), record.get("reason", "")
    if state in (RUNNING, CLOSING) and not alive(record.get("pid")):
        return INTERRUPTED, f"its process {record.get('pid')} is gone, nothing said why"
    return state, reason


# ---------------------------------------------------------------- digests


def digest_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def digest_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def digest_cells(path: Path) -> str:
    """Digest of a notebook's code cells. Parameters count apart (their values do), prose and outputs not at all."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        tags = cell.get("metadata", {}).get("tags", [])
        if cell["cell_type"] == "code" and not {"parameters", "injected-parameters"} & set(tags):
            parts.append("".join(cell["source"]).strip())
    return digest_bytes("\0".join(parts).encode())


def _docstring_lines(source: str) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if ast.get_docstring(node, clean=False) is not None:
                lines.update(range(first.lineno, first.end_lineno + 1))
    return lines


@functools.lru_cache(maxsize=256)
def _digest_code(path: Path, modified: int) -> str:
    source = path.read_text(encoding="utf-8")
    kept = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            kept[row - 1] = kept[row - 1][:column]
    prose = _docstring_lines(source)
    lines = [line.rstrip() for number, line in enumerate(kept, 1) if number not in prose and line.strip()]
    return digest_bytes("\n".join(lines).encode())


def digest_module(name: str) -> str:
    """Digest of a module's code, comments and docstrings left out: a better explanation makes no result stale."""
    stem = LIBRARY.parent.joinpath(*name.split("."))
    path = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
    return _digest_code(path, path.stat().st_mtime_ns) if path.is_file() else "missing"


def _measures(name: str) -> bool:
    house, _, rest = name.partition(".")
    room, _, module = rest.partition(".")
    return house == "nli_lib" and bool(rest) and room not in SHOWING and (room != "report" or module in RECKONING)


def measuring_modules() -> dict[str, str]:
    """Digest of every module of the library that this process has imported and that can change a number."""
    return {name: digest_module(name) for name in sorted(sys.modules) if _measures(name)}


# ---------------------------------------------------------------- does it still stand?


def _changes(what: str, then: Mapping, now: Mapping) -> list[str]:
    return [
        f"{what} {name} {'changed' if name in then and name in now else 'is new' if name in now else 'is gone'}"
        for name in sorted(then.keys() | now.keys())
        if then.get(name) != now.get(name)
    ]


def declared_same(modules: Mapping[str, str]) -> dict[str, str]:
    """The digests of `modules`, each followed to the newest code that is declared to give the same numbers.

    A faster way to the same numbers need not make a recorded study stale. `book/same_numbers.yaml` declares such a
    change: the module, its digest before (`was`) and after (`now`), why, and how it was checked. A notebook whose
    showing half changed stands there as "notebooks/<its name>", with the digests of its cells. Anything not declared
    there counts as a change.
    """
    path = paths.BOOK / "same_numbers.yaml"
    told = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None
    steps = {(each["module"], each["was"]): each["now"] for each in told or ()}
    newest = {}
    for name, digest in modules.items():
        seen = set()
        while (name, digest) in steps and digest not in seen:
            seen.add(digest)
            digest = steps[name, digest]
        newest[name] = digest
    return newest


def _changed_files(record: Mapping, kind: str, verb: str) -> list[str]:
    """Tables that a run read or wrote and that are no longer what they were."""
    reasons = []
    for name, digest in record.get(kind, {}).items():
        path = paths.RESULTS / name
        if not path.is_file():
            reasons.append(f"{name}, which it {verb}, is missing")
        elif digest_file(path) != digest:
            reasons.append(f"{name}, which it {verb}, changed")
    return reasons


def notebooks_with(part: str, study: str) -> list[str]:
    """Names of the notebooks that have recorded a table `part` in this study, sorted."""
    folder = paths.RESULTS / study
    return sorted({path.name.split(".")[0] for path in folder.glob(f"*.{part}.*") if path.name[0] != "."})


def _changed_sources(record: Mapping) -> list[str]:
    """Tables that a run would gather now and did not then, and files of the book that it read and that changed."""
    reasons = [
        f"{name} has recorded {part} since"
        for part, then in record.get("gathered", {}).items()
        for name in notebooks_with(part, record["study"])
        if name not in then
    ]
    for file, digest in record.get("declared", {}).items():
        path = paths.BOOK / file
        if not path.is_file() or digest_file(path) != digest:
            reasons.append(f"{file} changed")
    return reasons


def corpus_file(corpus: str | None) -> str | None:
    """Digest of a user's own corpus file; None for the published corpora, which do not change."""
    path = Path(corpus or "").expanduser()
    return digest_file(path) if corpus and path.is_file() else None


def _unnamed(parameters: Mapping) -> dict:
    """The parameters, the scale's own corpus written as None also where it was asked for by name."""
    scale = SCALES.get(parameters.get("SCALE"))
    own = scale is not None and parameters.get("CORPUS") == scale.corpus
    return {**parameters, **({"CORPUS": None} if own else {})}


def why_stale(record: Mapping, notebook: Path, parameters: Mapping | None = None) -> list[str]:
    """Reasons why a finished record no longer stands for the code at hand; empty when it does.

    `parameters`: the values asked for now; None compares none (a status page asks for no particular values).
    """
    reasons = []
    if parameters is not None:
        then, now = (_unnamed(each) for each in (record.get("parameters", {}), parameters))
        names = sorted((then.keys() | now.keys()) - NEUTRAL)
        reasons += [f"{n}: {then.get(n)!r} then, {now.get(n)!r} now" for n in names if then.get(n) != now.get(n)]
    name = f"notebooks/{notebook.stem}"
    if declared_same({name: record.get("cells")})[name] != digest_cells(notebook):
        reasons.append("the notebook's code changed")
    modules = declared_same(record.get("modules", {}))
    reasons += _changes("module", modules, {name: digest_module(name) for name in modules})
    reasons += _changed_files(record, "inputs", "read") + _changed_files(record, "outputs", "wrote")
    reasons += _changed_sources(record)
    own = corpus_file(record.get("parameters", {}).get("CORPUS"))
    if own and own != record.get("corpus_file"):
        reasons.append(f"the corpus file {record['parameters']['CORPUS']} changed")
    return reasons


def pins() -> dict[str, str]:
    """The versions in constraints.txt, or those installed where that file is not shipped."""
    path = paths.HOME / "constraints.txt"
    if path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines()
        return dict(line.strip().split("==") for line in lines if "==" in line and not line.startswith("#"))
    versions = {}
    for package in DECISIVE:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def other_environment(record: Mapping) -> list[str]:
    """Packages that decide numbers and had another version when the record was made than this clone pins."""
    then, now = record.get("environment", {}), pins()
    return [
        f"{package} {then[package]} then, {now[package]} here"
        for package in DECISIVE
        if package in then and package in now and then[package].split("+")[0] != now[package].split("+")[0]
    ]
