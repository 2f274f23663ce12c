"""Builds the report from recorded tables: chapters drawn without their measuring cells, stamped, then jupyter-book.

Nothing is trained and no corpus is read. A chapter whose notebook did not finish is replaced by a page that says so and
names the command; one whose record is stale, or was made with other versions than this clone pins, is stamped on top.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import yaml

from nli_lib import paths
from nli_lib.errors import UserError
from nli_lib.store import atomic, write_json
from nli_lib.study import manifest as records
from nli_lib.study import standing
from nli_lib.study.dial import read_scale
from nli_lib.study.execute import Job, command
from nli_lib.study.notebook import SMOKE_LABEL
from nli_lib.study.schedule import Request, resolve

AT_ONCE = 2  # chapters drawn at a time
README_FIGURES = ("data-map", "competency", "suite-accuracy", "level-accuracy", "errors-by-gap")


class BookError(UserError, RuntimeError):
    """The book cannot be built; the message says why and what to do."""


def _chapters() -> Path:
    return paths.BOOK / "chapters"


def toc_pages() -> list[str]:
    """Every page of the table of contents, as its path without a suffix."""
    toc = yaml.safe_load((paths.BOOK / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *(page["file"] for part in toc["parts"] for page in part["chapters"])]


def toc_chapters() -> list[str]:
    """Names of the notebooks in the table of contents, in its order."""
    names = [Path(page).name for page in toc_pages() if page.startswith("chapters/")]
    return [name for name in names if name != "status"]


def _write(path: Path, text: str) -> None:
    """Write only what changed: jupyter-book rebuilds the pages whose files are newer."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        with atomic(path) as draft:
            draft.write_text(text, encoding="utf-8")


def _run_command(name: str, request: Request) -> str:
    words = f"nli-study run {name} --scale {request.scale}"
    return words + (f" --corpus {request.corpus}" if request.corpus else "")


def _title(notebook: Path) -> str:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"] if notebook.is_file() else []
    text = "".join("".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "markdown")
    found = re.search(r"^# +(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else notebook.stem


# ---------------------------------------------------------------- one chapter


def stamps(name: str, request: Request) -> list[str]:
    """What a reader must know before the chapter: it is stale, or from another environment. Empty when neither."""
    record = records.read(name, request.study)
    found = []
    if reasons := standing.why_stale(record):
        found.append("The numbers here were recorded before something changed: " + "; ".join(reasons) + ".")
    if reasons := records.other_environment(record):
        found.append("The numbers here come from another environment: " + "; ".join(reasons) + ".")
    return found


def _box(kind: str, title: str, text: str) -> str:
    return f":::{{admonition}} {title}\n:class: {kind}\n{text}\n:::\n"


def _finish_page(drawn: Path, name: str, request: Request, notes: list[str]) -> str:
    """The drawn notebook as the book shows it: boxes below the title, parameters folded, no traces of the machinery."""
    notebook = nbformat.read(drawn, as_version=4)
    redo = _run_command(name, request)
    boxes = [_box("warning", "Run it again", f"{note} Run `{redo}`.") for note in notes]
    first = notebook.cells[0]
    head, _, rest = first.source.partition("\n")
    first.source = "\n".join([head, "", *boxes, rest])
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        tags = set(cell.metadata.get("tags", []))
        if "injected-parameters" in tags:
            cell.metadata["tags"] = sorted(tags | {"remove-cell"})
        elif "parameters" in tags:
            cell.metadata["tags"] = sorted(tags | {"hide-cell"})
    notebook.metadata.pop("papermill", None)
    return nbformat.writes(notebook)


def _placeholder(name: str, request: Request, state: str, reason: str) -> str:
    title = _title(paths.NOTEBOOKS / f"{name}.ipynb")
    said = f"At scale {request.study} this notebook's state is: **{state}**." + (
        f"\n\n```text\n{reason}\n```" if reason else ""
    )
    return f"# {title}\n\n" + _box("note", "Not part of this report", f"{said}\n\nRun `{_run_command(name, request)}`.")


def _key(name: str, request: Request, notes: list[str]) -> str:
    """Digest of everything a drawn chapter depends on."""
    record = records.read(name, request.study)
    own = {p.name: records.digest_file(p) for p in sorted((paths.RESULTS / request.study).glob(f"{name}.*"))}
    library = {p.name: records.digest_file(p) for p in sorted(records.LIBRARY.rglob("*.py"))}
    declared = {p.name: records.digest_file(p) for p in sorted(paths.BOOK.glob("*.yaml"))}
    notebook = records.digest_file(paths.NOTEBOOKS / f"{name}.ipynb")
    parts = [notebook, own, record.get("inputs"), library, declared, notes, request.study]
    return records.digest_bytes(json.dumps(parts).encode())


def _draw(name: str, request: Request) -> tuple[str, str]:
    """Execute the showing half into the chapters folder; (state, reason)."""
    folder = paths.RUNS / "book" / request.study
    folder.mkdir(parents=True, exist_ok=True)
    source = paths.NOTEBOOKS / f"{name}.ipynb"
    parameters = resolve(source, request)
    job = Job(
        notebook=name,
        source=str(source),
        study=request.study,
        output=str(folder / f"{name}.ipynb"),
        log=str(folder / f"{name}.log"),
        token="",
        parameters={"SCALE": request.scale, "CORPUS": parameters["CORPUS"]},
        show=True,
    )
    done = subprocess.run(command(job), capture_output=True, text=True)
    last = done.stdout.strip().splitlines()[-1:] or ["{}"]
    end = json.loads(last[0])
    return end.get("state", "killed"), end.get("reason", done.stderr.strip()[-2_000:])


def chapter(name: str, request: Request, known: dict[str, str]) -> tuple[str, str, str]:
    """Bring one chapter up to date: (name, key, problem); the problem is empty when it was drawn or not due."""
    page, placeholder = (_chapters() / f"{name}{suffix}" for suffix in (".ipynb", ".md"))
    source = paths.NOTEBOOKS / f"{name}.ipynb"
    record = records.read(name, request.study)
    state, reason = records.end_state(record)
    problem = ""
    if state == records.FINISHED and source.is_file():
        notes = stamps(name, request)
        key = _key(name, request, notes)
        if known.get(name) == key and page.is_file():
            return name, key, ""
        state, reason = _draw(name, request)
        if state == records.FINISHED:
            drawn = paths.RUNS / "book" / request.study / f"{name}.ipynb"
            _write(page, _finish_page(drawn, name, request, notes))
            placeholder.unlink(missing_ok=True)
            return name, key, ""
        problem = f"{name} could not be drawn: {state}: {reason}"
    _write(placeholder, _placeholder(name, request, state, reason))
    page.unlink(missing_ok=True)
    return name, "", problem


def export_figures(request: Request, names: Iterable[str] = README_FIGURES) -> list[Path]:
    """Write the named figures of the drawn chapters to `book/figures`, for the README; the paths written.

    A figure's name stands in its cell's metadata. One that no drawn chapter holds is a `BookError`.
    """
    found = {}
    for page in sorted(_chapters().glob("*.ipynb")):
        for cell in nbformat.read(page, as_version=4).cells:
            name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
            images = [o["data"]["image/png"] for o in cell.get("outputs", ()) if "image/png" in o.get("data", {})]
            if images:
                found[name] = base64.b64decode(images[0])
    if missing := sorted(set(names) - found.keys()):
        raise BookError(
            f"no drawn chapter of {request.study} has the figure {', '.join(missing)}: run `make book` first"
        )
    files = [paths.BOOK / "figures" / f"{name}.png" for name in names]
    for path in files:
        with atomic(path) as draft:
            draft.write_bytes(found[path.stem])
    return files


# ---------------------------------------------------------------- the status page


def _row(name: str, request: Request) -> list[str]:
    record = records.read(name, request.study)
    state, _ = records.end_state(record)
    source = paths.NOTEBOOKS / f"{name}.ipynb"
    if state == records.FINISHED and source.is_file() and stamps(name, request):
        state += ", stale"
    environment = record.get("environment", {})
    parameters = {k: v for k, v in record.get("parameters", {}).items() if v is not None and k != "SCALE"}
    shown = ", ".join(f"{key}={value}" for key, value in parameters.items())
    seconds = f"{record['seconds']:,.0f}" if "seconds" in record else ""
    seeds = ", ".join(map(str, record.get("seeds", [])))
    versions = " / ".join(filter(None, (environment.get("python"), environment.get("torch"))))
    cells = [name, state, shown, seeds, record.get("device", ""), seconds, record.get("ended", "")[:10], versions]
    return [str(cell).replace("|", "\\|") for cell in cells]


def status_page(names: list[str], request: Request) -> str:
    """Every chapter's end state, parameters, device, seconds, date and versions, as Markdown."""
    head = ["Chapter", "State", "Parameters", "Seeds", "Device", "Seconds", "Date", "Python / torch"]
    rows = [head, ["---"] * len(head), *(_row(name, request) for name in names)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    scale = read_scale(request.scale)
    label = f"\n{SMOKE_LABEL.capitalize()}.\n" if request.scale == "smoke" else ""
    return (
        f"# Status of this report\n{label}\n"
        f"Study `{request.study}`: corpus {request.corpus or scale.corpus}, encoder {scale.model}, "
        f"{scale.epochs} epochs, learning rate {scale.learning_rate:g}. "
        "Each chapter is drawn from the tables that its run recorded; a run "
        "counts as finished only when its last cell wrote its record and every cell was counted. Seconds are those of "
        "its last run; trainings that it found in the store took theirs before.\n\n"
        f"{table}\n"
    )


# ---------------------------------------------------------------- the whole book


def _digest_book(request: Request) -> str:
    files = [
        p for p in paths.BOOK.rglob("*") if p.is_file() and "_build" not in p.parts and "__pycache__" not in p.parts
    ]
    parts = {p.relative_to(paths.BOOK).as_posix(): records.digest_file(p) for p in sorted(files)}
    return records.digest_bytes(json.dumps([parts, request.study, sys.version]).encode())


def _render() -> None:
    """Call jupyter-book; a failure is told by its own errors and the log's place, not by its whole output."""
    log = paths.BOOK / "_build" / "build.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    start = "from jupyter_book.cli.main import main; main()"
    words = [sys.executable, "-c", start, "build", str(paths.BOOK), "--keep-going"]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    log.write_text(text, encoding="utf-8")
    told = [line for line in text.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b|Error:", line)]
    for line in told:
        print(f"  {line}", flush=True)
    if done.returncode or not (paths.BOOK / "_build" / "html" / "index.html").is_file():
        last = "\n".join(told or text.strip().splitlines()[-5:])
        raise BookError(f"jupyter-book failed (code {done.returncode}):\n{last}\nIts whole output: {log}")


def build(request: Request) -> Path:
    """Draw the chapters that are due and build the book; the path of its first page.

    Raises `BookError` when a chapter's showing half fails (the other chapters are still built) or jupyter-book does.
    """
    names, folder = toc_chapters(), _chapters()
    folder.mkdir(parents=True, exist_ok=True)
    memory = folder / "drawn.json"
    known = json.loads(memory.read_text(encoding="utf-8")) if memory.is_file() else {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda name: chapter(name, request, known), names))
    write_json(memory, {name: key for name, key, _ in done if key})
    problems = [problem for _, _, problem in done if problem]
    _write(folder / "status.md", status_page(names, request))
    announcement = folder / "announcement.html"
    if request.scale == "smoke":
        _write(announcement, SMOKE_LABEL.capitalize())
    else:
        announcement.unlink(missing_ok=True)
    first, built = paths.BOOK / "_build" / "html" / "index.html", paths.BOOK / "_build" / "built.json"
    digest = _digest_book(request)
    if first.is_file() and built.is_file() and json.loads(built.read_text(encoding="utf-8")) == digest:
        print("book: nothing changed since it was built")
    else:
        print(
            f"book: {sum(bool(key) for _, key, _ in done)} of {len(names)} chapters have results; building", flush=True
        )
        _render()
        write_json(built, digest)
    if problems:
        raise BookError("\n".join(problems))
    return first
