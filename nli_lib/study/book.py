"""Builds the report from recorded tables: chapters drawn without their measuring cells, then jupyter-book.

Nothing is trained and no corpus is read. A chapter whose notebook did not finish is replaced by a page that says so and
names the command; one whose record is stale, or was made with other versions than this clone pins, is stamped on top.
The study of a corpus that is not its scale's own gets a book in a folder of its own, of the chapters run on it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import nbformat
import yaml
from plotly.offline import get_plotlyjs

from nli_lib import paths
from nli_lib.errors import UserError
from nli_lib.store import alone, atomic, write_json
from nli_lib.study import digests, pages, words
from nli_lib.study import manifest as records
from nli_lib.study.draw import draw
from nli_lib.study.grounds import title_of
from nli_lib.study.notebook import SMOKE_LABEL
from nli_lib.study.prose import as_text
from nli_lib.study.schedule import Request, order
from nli_lib.study.status import stamps, status_page

KERNELS = 2  # that draw at a time


class BookError(UserError, RuntimeError):
    """The book cannot be built; the message says why and what to do."""


@dataclass(frozen=True)
class Site:
    """The book of one study: where its pages are put together (`source`) and where they are built (`output`)."""

    request: Request
    source: Path
    output: Path

    @property
    def chapters(self) -> Path:
        return self.source / "chapters"

    @property
    def first(self) -> Path:
        return self.output / "_build" / "html" / "index.html"

    @property
    def pages(self) -> list[str]:
        """Every page of the table of contents, as its path without a suffix."""
        toc = yaml.safe_load((self.source / "_toc.yml").read_text(encoding="utf-8"))
        return [toc["root"], *(page["file"] for part in toc["parts"] for page in part["chapters"])]

    @property
    def names(self) -> list[str]:
        """The notebooks in the table of contents, in its order."""
        found = [Path(page).name for page in self.pages if page.startswith("chapters/")]
        return [name for name in found if name != "status"]


def site(request: Request) -> Site:
    """Where a study's book stands: the project's own for a scale's corpus, beside its exported lists for any other."""
    if request.study == request.scale:
        return Site(request, paths.BOOK, paths.BOOK)
    return Site(request, paths.RUNS / "book" / request.study / "source", paths.EXPORTS / request.study / "book")


def _write(path: Path, text: str) -> None:
    """Write only what changed: jupyter-book rebuilds the pages whose files are newer."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        with atomic(path) as draft:
            draft.write_text(text, encoding="utf-8")


def _digests(files: Iterable[Path], root: Path = Path("/")) -> dict[str, str]:
    """Name, seen from `root` -> digest."""
    return {str(path.relative_to(root)): records.digest_file(path) for path in sorted(files)}


# ---------------------------------------------------------------- the book of another corpus


def gather_pages(site: Site) -> None:
    """Put together the sources of a book in its own folder: its chapters, and a first page that names the corpus."""
    request, corpus = site.request, Path(site.request.corpus).name
    own = shutil.ignore_patterns("_build", "chapters", "parts", "figures", "index.md", "_*.yml")
    shutil.copytree(paths.BOOK, site.source, ignore=own, dirs_exist_ok=True)
    states = {name: records.read(name, request.study).get("state", records.NEVER) for name in order()}
    names = [name for name, state in states.items() if state != records.NEVER]
    reference = [file for file in ("notation", "references") if (site.source / f"{file}.md").is_file()]
    parts = {"Chapters": [f"chapters/{name}" for name in names], "Reference": ["chapters/status", *reference]}
    entries = {title: [{"file": file} for file in files] for title, files in parts.items() if files}
    listed = [{"caption": title, "chapters": files} for title, files in entries.items()]
    config = yaml.safe_load((paths.BOOK / "_config.yml").read_text(encoding="utf-8"))
    config["title"] = f"{corpus}: quality of the data"
    # pages link to chapters that were not run on this corpus
    config["sphinx"]["config"]["suppress_warnings"] = ["myst.xref_missing"]
    _write(site.source / "_config.yml", yaml.safe_dump(config, sort_keys=False))
    _write(site.source / "_toc.yml", yaml.safe_dump({"format": "jb-book", "root": "index", "parts": listed}))
    said = f"Recorded at scale {request.scale}. {worth(request)}" if names else "No chapter was run on this corpus."
    opening = f"# What the chapters say about {as_text(corpus)}\n\n{said}"
    answers = [f"## [{title_of(name)}](chapters/{name})\n\n{{{{ answer {name} }}}}" for name in names]
    _write(site.source / "index.md", "\n\n".join([opening, *answers]) + "\n")


def worth(request: Request) -> str:
    """What the chapters' results say of a user's corpus at the scale of a request, in words."""
    if request.scale == "smoke":
        return (
            "This scale reads a small part of a corpus and trains for seconds, to prove that everything works. Nothing "
            "that it gives is a result about this corpus; use scale small for that."
        )
    return "These are results about this corpus. They are no evidence for or against the claims of the papers."


# ---------------------------------------------------------------- one chapter


def _box(kind: str, title: str, text: str) -> str:
    return f":::{{admonition}} {title}\n:class: {kind}\n{text}\n:::\n"


def _foot(name: str, request: Request) -> str:
    """The last line of a page: when and with what its numbers were recorded, and the notebook to take away."""
    link = f'<a href="../_static/notebooks/{name}.ipynb" download>Download the notebook</a>'
    recorded = records.recorded(records.read(name, request.study))
    return f"{recorded}. {link} to run it yourself: `{request.command(name)}`."


def _absent_page(name: str, request: Request, state: str, reason: str) -> str:
    """The page of a chapter without results: its question, and why there is no answer."""
    question = records.cells(paths.NOTEBOOKS / f"{name}.ipynb")[0]["source"]
    why = f"\n\n```text\n{reason}\n```" if reason else ""
    said = f"This chapter has no results at scale {request.study}, and so no answer. Its state is: **{state}**.{why}"
    box = _box("note", "Not part of this report", f"{said}\n\nRun `{request.command(name)}`.")
    return f"{question}\n\n{box}"


def _key(name: str, request: Request) -> str:
    """Digest of everything a drawn chapter depends on."""
    library = (path for path in digests.LIBRARY.rglob("*.*") if path.suffix != ".pyc")
    own = paths.RESULTS.glob(f"{request.scale}*/{name}.*")  # those of other corpora too: `Study.elsewhere`
    files = [paths.NOTEBOOKS / f"{name}.ipynb", *own, *library, *paths.BOOK.glob("*.yaml")]
    inputs = records.read(name, request.study).get("inputs")
    return records.digest_bytes(json.dumps([_digests(files), inputs, stamps(name, request)]).encode())


def _page(name: str, executed: nbformat.NotebookNode, site: Site) -> None:
    """Write the page of a chapter that was drawn, and the notebook that it offers."""
    request, source = site.request, paths.NOTEBOOKS / f"{name}.ipynb"
    notes = [f"{note} Run `{request.command(name)}`." for note in stamps(name, request)]
    boxes = [_box("warning", "Run it again", note) for note in notes]
    page = pages.page(nbformat.read(source, as_version=4), executed, boxes, _foot(name, request))
    _write(site.chapters / f"{name}.ipynb", nbformat.writes(page))
    _write(site.source / "_static" / "notebooks" / source.name, source.read_text(encoding="utf-8"))


def chapters(site: Site, known: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Bring every chapter up to date: the keys of those that have a page, and what kept others from being drawn.

    `known`: the keys of the last time; a chapter whose key is the same is left as it is.
    """
    request, problems = site.request, []
    states = {name: records.end_state(records.read(name, request.study)) for name in site.names}
    keys = {name: _key(name, request) for name, (state, _) in states.items() if state == records.FINISHED}
    due = [name for name in keys if known.get(name) != keys[name] or not (site.chapters / f"{name}.ipynb").is_file()]
    with ThreadPoolExecutor(KERNELS) as pool:
        groups = pool.map(draw, [due[start::KERNELS] for start in range(KERNELS)], [request] * KERNELS)
        drawn = {name: end for group in groups for name, end in group.items()}
    for name, (executed, problem) in drawn.items():
        if not problem:
            _page(name, executed, site)
            continue
        problems.append(f"{name} could not be drawn: {problem}")
        states[name] = "failed", problem
        del keys[name]
    for name, (state, reason) in states.items():
        if name in keys:
            (site.chapters / f"{name}.md").unlink(missing_ok=True)
        else:
            _write(site.chapters / f"{name}.md", _absent_page(name, request, state, reason))
            (site.chapters / f"{name}.ipynb").unlink(missing_ok=True)
    return keys, problems


# ---------------------------------------------------------------- the whole book


def _digest_book(site: Site) -> str:
    files = (path for path in site.source.rglob("*") if not {"_build", "__pycache__"} & set(path.parts))
    library = _digests(digests.LIBRARY.rglob("*.py"), digests.LIBRARY)  # the reference is made from its docstrings
    parts = [_digests(files, site.source), library, site.request.study, sys.version]
    return records.digest_bytes(json.dumps(parts).encode())


def _render(site: Site) -> None:
    """Call jupyter-book; a failure is told by its own errors and the log's place, not by its whole output."""
    log = site.output / "_build" / "build.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    start = "from jupyter_book.cli.main import main; main()"
    words = [sys.executable, "-c", start, "build", str(site.source), "--keep-going"]
    words += ["--path-output", str(site.output)]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    log.write_text(text, encoding="utf-8")
    told = [line for line in text.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b|Error:", line)]
    for line in told:
        print(f"  {line}", flush=True)
    if done.returncode or not site.first.is_file():
        last = "\n".join(told or text.strip().splitlines()[-5:])
        raise BookError(f"jupyter-book failed (code {done.returncode}):\n{last}\nIts whole output: {log}")


def build(request: Request, book: Site | None = None) -> Path:
    """Draw the chapters that are due and build the book, where `site` says or at `book`; the path of its first page.

    Raises `BookError` when a chapter cannot be drawn (the others are still built) or jupyter-book fails.
    """
    if find_spec("jupyter_book") is None:
        raise BookError("the package jupyter-book is missing: pip install 'nli-quality-study[book]'")
    book = book or site(request)
    with alone(book.output / "_build", "this book"):
        return _build(request, book)


def _build(request: Request, book: Site) -> Path:
    if request.study != request.scale:
        gather_pages(book)
    names, folder = book.names, book.chapters
    folder.mkdir(parents=True, exist_ok=True)
    memory = folder / "drawn.json"
    known = json.loads(memory.read_text(encoding="utf-8")) if memory.is_file() else {}
    keys, problems = chapters(book, known)
    write_json(memory, keys)
    _write(book.source / "_static" / "plotly.min.js", get_plotlyjs())  # the one copy that the pages share
    _write(folder / "status.md", status_page(names, request))
    said = words.words(folder, request.study)
    said["announcement"] = SMOKE_LABEL.capitalize() if request.scale == "smoke" else ""
    _write(folder / "words.json", json.dumps(said, indent=1, ensure_ascii=False))
    built, digest = book.output / "_build" / "built.json", _digest_book(book)
    if book.first.is_file() and built.is_file() and json.loads(built.read_text(encoding="utf-8")) == digest:
        print("book: nothing changed since it was built")
    else:
        print(f"book: {len(keys)} of {len(names)} chapters have results", flush=True)
        if not built.is_file():  # Sphinx was killed, or failed: it would take a page cut short for finished
            for name in ("html", ".doctrees"):
                shutil.rmtree(book.output / "_build" / name, ignore_errors=True)
        built.unlink(missing_ok=True)
        _render(book)
        write_json(built, digest)
    if problems:
        raise BookError("\n".join(problems))
    return book.first
