"""Build the report from recorded tables: draw chapters without their measuring cells, then run jupyter-book.

Nothing is trained and no corpus is read::

    build(Request("small"))

The showing cells of a chapter are run (`draw`), and laid out as a page (`chapter_page`): the question, its answer, then
the rest. In a notebook, prose, measuring and showing alternate; the page keeps prose and outputs in place and folds the
code: one fold at the end of each section for its figures and sentences, and one fold for the whole measuring half. A
chapter without a finished record is replaced by a page that says so and names the command; a chapter with a stale
record, or one made with other versions than this clone pins, has a note at the top. The status page shows when, where
and with what each chapter was recorded, from the records.

A study of another corpus than its scale's gets a separate book, of the chapters run on it.

Conclusions are never typed: placeholders on the book's tracked pages are replaced by results (`words`):

{{ answer 10_data_map }}
    the sentences of that chapter's answer
{{ headline 10_data_map }}
    the sentences from cells tagged `headline`, without the verdict
{{ verdict <claim id> }}
    one claim: verdict, text, numbers
{{ verdicts wanli }}
    the number of a paper's claims, declared before their result, with each verdict
{{ figure verdicts }}
    a figure of a drawn chapter with its caption, by the name in its cell's metadata
{{ question 10_data_map }}
    the chapter's question
{{ badge 10_data_map }}
    the verdict of that chapter's answer, as a badge
{{ chapters 1 }}
    the chapters of a part as a table: question, verdict, answer
{{ lessons do }}
    the lessons of `ledger`: do, doubt, open, and count, a sentence with their numbers
{{ chapters absent }}
    the chapters that this study has not recorded
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import yaml
from jinja2 import ChainableUndefined, Environment, FileSystemLoader
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode, read as read_notebook, writes
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook
from plotly.offline import get_plotlyjs

from nli_lib import claims, paths
from nli_lib.errors import StudyError
from nli_lib.ledger import LESSONS, PAPERS, own_claims, read_lessons, sections, verdict_counts, verdict_sentence
from nli_lib.stats import VERDICTS
from nli_lib.store import alone, atomic, write_json
from nli_lib.study import standing
from nli_lib.study.notebook import DRAW, NOTICES, PLOTLY, as_text
from nli_lib.study.runner import Request, order, resolve, socket_folder
from nli_lib.study.standing import stale, stamps, write_text
from nli_lib.tables import find_table, read_table

PAGES = Environment(loader=FileSystemLoader(Path(__file__).with_name("pages")), undefined=ChainableUndefined)
PAGES.trim_blocks = PAGES.keep_trailing_newline = True
PAGES.filters["as_text"] = as_text


def draw(names: Iterable[str], request: Request) -> dict[str, tuple[NotebookNode, str]]:
    """Execute each chapter without its measuring cells; return the copies and the errors that stopped them ("" if
    none).

    Chapters share a kernel, so that pandas, matplotlib and seaborn are imported once; `%reset` clears the names of the
    previous chapter.
    """
    copies, whole, died, found = {}, new_notebook(), "", {}
    for name in names:
        copy = load_notebook_node(str(paths.NOTEBOOKS / f"{name}.ipynb"))
        copy.cells = [cell for cell in copy.cells if "measure" not in cell.metadata.tags]
        copies[name] = parameterize_notebook(copy, {"SCALE": request.scale, "CORPUS": resolve(name, request)["CORPUS"]})
        whole.cells += [new_code_cell("%reset -f"), *copies[name].cells]
    if copies:
        with socket_folder() as sockets:
            kernel = AsyncKernelManager(transport="ipc", ip=f"{sockets}/kernel")
            place = {"metadata": {"path": str(paths.HOME)}}
            client = NotebookClient(whole, km=kernel, timeout=None, allow_errors=True, resources=place)
            try:
                # a page needs pictures, regardless of the shell's MPLBACKEND
                client.execute(env={**os.environ, "MPLBACKEND": "inline", DRAW: "1"}, cleanup_kc=True)
            except DeadKernelError as error:
                died = str(error)
    for name, copy in copies.items():
        code = [cell for cell in copy.cells if cell.cell_type == "code" and cell.source.strip()]
        problems = []
        for number, cell in enumerate(code, 1):
            errors = [f": {o.ename}: {o.evalue}" for o in cell.outputs if o.output_type == "error"]
            errors += [] if cell.execution_count else [f" was never executed. {died}"]
            problems += [f"code cell {number} of {len(code)}{error}" for error in errors]
        found[name] = copy, (problems or [""])[0]
    return found


# ---------------------------------------------------------------- pages


MACHINERY = {"parameters", "begin", "measure", "finish"}  # tags of the cells in the measuring fold
ANSWER = re.compile(r"##\s+The answer\s*$", re.IGNORECASE | re.MULTILINE)
HOW = re.compile(r"##\s+How it was measured", re.IGNORECASE)
BOLD = re.compile(r"\*\*(\w+)\.\*\* ")


def caption_of(cell: NotebookNode) -> str:
    """The caption of a cell's figure, "" if it has none."""
    return cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")


def tagged(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", ()))


def answer(notebook: NotebookNode, tag: str = "answer") -> list[str]:
    """The sentences shown by the tagged cells of a page or a drawn notebook, as Markdown, one text for each output."""
    outputs = [o for cell in notebook.cells if tag in tagged(cell) for o in cell.get("outputs", ())]
    return ["".join(o["data"]["text/markdown"]).strip() for o in outputs if "text/markdown" in o.get("data", {})]


def verdict_of(notebook: NotebookNode) -> str:
    """The verdict at the beginning of the answer of a page or a drawn notebook, "" if it has none."""
    found = next((BOLD.match(text) for text in answer(notebook)), None)
    return found[1] if found and found[1] in VERDICTS else ""


def badge(verdict: str) -> str:
    """A verdict as HTML; also "Not run", for a chapter without results."""
    kind = verdict.lower().replace(" ", "-")
    return f'<span class="verdict verdict-{kind}">{verdict}</span>' if verdict else ""


def _shown(cell: NotebookNode, outputs: list[NotebookNode], heading: str) -> list[NotebookNode]:
    """One cell without code for each output, so that a caption belongs only to its image. Several images of one cell
    are numbered in their captions."""
    cells, kinds = [], [output.get("data", {}) for output in outputs]
    images = [PLOTLY not in data and any(kind.startswith("image/") for kind in data) for data in kinds]
    for at, (output, data) in enumerate(zip(outputs, kinds, strict=True)):
        settings = {}
        if PLOTLY in data:
            # the figure is drawn by the shared script, and no text in it can end the script element
            parts = [data[PLOTLY].get(part, {}) for part in ("data", "layout", "config")]
            arguments = json.dumps(parts, separators=(",", ":")).replace("<", "\\u003c")
            page = Path(__file__).with_name("interactive.html").read_text(encoding="utf-8").replace("FIGURE", arguments)
            output = new_output("display_data", data={"text/html": page})
        elif images[at]:
            about = caption_of(cell) or f"Figure in the section {heading!r}"
            settings = dict(cell.metadata.get("mystnb", {}))
            if sum(images) > 1 and caption_of(cell):
                about = f"{about} ({sum(images[: at + 1])} of {sum(images)})"
                settings["figure"] = settings["figure"] | {"caption": about}
            # with a width, Sphinx links to the whole picture, which can be enlarged on a phone
            settings["image"] = {"alt": about, "width": "100%"}
        tags = sorted({"remove-input"} | tagged(cell) & {"answer", "headline"})
        # the code is removed from the page; a cell without code would be left out with its output
        cells.append(new_code_cell(cell.source, outputs=[output], metadata={"tags": tags, "mystnb": settings}))
    return cells


def chapter_page(
    source: NotebookNode, drawn: NotebookNode, boxes: Iterable[str] = (), foot: str = "", number: str = ""
) -> NotebookNode:
    """Lay out the page of a chapter.

    source: the notebook, for its prose and code. drawn: its executed copy, for the outputs; cells are matched by id.
    boxes: Markdown below the title. foot: Markdown at the end. number: before the title.
    """
    outputs = {cell.id: cell.outputs for cell in drawn.cells if cell.cell_type == "code"}
    # a section begins at each heading; text and outputs below "The answer" join the outputs of the answer
    sections, answers, measuring = [], [], []
    for cell in source.cells:
        if cell.cell_type == "markdown":
            for text in map(str.strip, re.split(r"^(?=## )", cell.source, flags=re.MULTILINE)):
                if text.startswith("## ") or not sections:
                    sections.append(SimpleNamespace(heading=text, shown=[], code=[]))
                place, rest = sections[-1].shown, ANSWER.sub("", text).strip()
                place = answers if ANSWER.match(sections[-1].heading) else place
                place += [new_markdown_cell(rest)] * bool(rest)
        elif tagged(cell) & MACHINERY:
            measuring.append(cell.source)
        elif cell.cell_type == "code":
            above = "answer" in tagged(cell) or ANSWER.match(sections[-1].heading)
            heading = sections[-1].heading.partition("\n")[0].lstrip("# ")
            place = answers if above else sections[-1].shown
            place += _shown(cell, outputs.get(cell.id, []), heading)
            sections[-1].code.append(cell.source)
    first, *sections[0].shown = sections[0].shown
    title, _, question = first.source.partition("\n")
    title = title.replace("# ", f"# {number} ".replace("  ", " "), 1)
    # sentences first, then figures, then what else is below "The answer"
    answers.sort(key=lambda cell: (not answer(new_notebook(cells=[cell])), "answer" not in tagged(cell)))
    asked = f"{question.strip()} {badge(verdict_of(new_notebook(cells=answers)))}".strip()
    cells = [new_markdown_cell("\n\n".join([title, *boxes, asked])), *answers]
    home = next((section for section in sections if HOW.match(section.heading)), sections[-1])
    left = []
    for section in sections:
        # if only the heading is left, the answer was below it and moved up
        gone = not section.shown or (len(section.shown) == 1 and re.fullmatch("## .*", section.heading))
        if left and gone and section is not home:
            left[-1].code += section.code
        else:
            left.append(section)
    for section in left:
        cells += section.shown
        if code := [*(measuring if section is home else ()), *section.code]:
            fold = "How it was measured, as code" if section is home else "Code of this section"
            about = {"tags": ["hide-input"], "mystnb": {"code_prompt_show": fold, "code_prompt_hide": fold}}
            cells.append(new_code_cell("\n\n".join(code), metadata=about))
    cells.append(new_markdown_cell(f"---\n\n{foot}"))
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"  # equal chapters give equal files
    metadata = {key: value for key, value in source.metadata.items() if key in ("kernelspec", "language_info")}
    return new_notebook(cells=cells, metadata=metadata)


# ---------------------------------------------------------------- status


def used(record: Mapping) -> dict[str, str]:
    """Things that a run of a chapter used, as text: parameters, the dial, corpora, the machine."""
    # "planted train, 2,000 rows, 2eb0" is one of several draws; its size is left out here
    rows = {name: f"{entry['rows']:,} rows" for name, entry in record.get("corpora", {}).items()}
    corpora = {re.sub(r", [\d,]+ rows, (\w+)$", r" (draw \1)", name): said for name, said in rows.items()}
    given = {k: None if value == "" else value for k, value in record.get("parameters", {}).items() if k != "SCALE"}
    versions = record.get("environment", {})
    machine = {"device": record.get("device")} | {name: versions.get(name) for name in ("python", "torch")}
    said = {"Parameters": given, "From the dial": record.get("dial", {}), "Read": corpora, "Machine": machine}
    for what, values in said.items():
        said[what] = ", ".join(f"{name} = {value}" for name, value in values.items() if value is not None)
    return {what: words for what, words in said.items() if words}


def status_page(names: Collection[str], request: Request) -> str:
    """The end state, date, time, seeds, device, revision and inputs of every chapter, as Markdown."""
    rows = []
    for name in names:
        record = standing.read(name, request.study)
        state = standing.end_state(record)[0]
        aged = ", stale" if state == standing.FINISHED and stamps(record) else ""
        # older entries name modules
        changed = {n for each in record.get("confirmed", ()) for n in each.get("definitions", each.get("modules", ()))}
        rows.append((name, state + aged, record, used(record), sorted(changed)))
    return PAGES.get_template("status.md").render(rows=rows, study=as_text(request.study))


# ---------------------------------------------------------------- overviews


def title_of(name: str) -> str:
    """The title of a chapter with its number, "10 The data map"."""
    title = standing.cells(paths.NOTEBOOKS / f"{name}.ipynb")[0]["source"].partition("\n")[0].lstrip("# ")
    return f"{name[:2]} {title}"


def question_of(name: str) -> str:
    """The question of a chapter, from its first cell."""
    return _in_row(standing.cells(paths.NOTEBOOKS / f"{name}.ipynb")[0]["source"].partition("**Question.**")[2])


def chapters_of(part: str, chapters: Path) -> str:
    """The chapters of a part as a Markdown table: title, question, verdict and first sentence of the answer."""
    rows = ["| chapter | question | answer |", "|---|---|---|"]
    for name in sorted(name for name in order() if name.startswith(part)):
        page = chapters / f"{name}.ipynb"
        said = answer(read_notebook(page, as_version=4))[:1] if page.is_file() else ["**Not run.** "]
        said = [BOLD.sub(f"{badge(text[2:].partition('.')[0])} ", text) for text in said]
        rows.append(f"| [{title_of(name)}](/chapters/{name}) | {question_of(name)} | {_in_row(*said)} |")
    return "\n".join(rows)


def _in_row(*texts: str) -> str:
    return " ".join(" ".join(texts).replace("|", "\\|").split())


def absent_chapters(chapters: Path) -> str:
    """One sentence of Markdown that names the notebooks without a drawn page in the folder ``chapters``."""
    names = sorted(order())
    if not (lacking := [name for name in names if not (chapters / f"{name}.ipynb").is_file()]):
        return "Every chapter of the study is recorded at this scale."
    listed = ", ".join(f"{{doc}}`{title_of(name)} </chapters/{name}>`" for name in lacking)
    return f"{len(lacking)} of {len(names)} chapters are *not recorded at this scale*: {listed}."


# ---------------------------------------------------------------- words


LEDGER = "63_claims.ledger"


def words(chapters: Path, study: str) -> dict[str, str]:
    """Markdown for every placeholder; "" if this study has nothing for it. Figures are written below `chapters`."""
    path = find_table(paths.RESULTS / study / LEDGER)
    ledger = pd.DataFrame(columns=claims.LEDGER) if path is None else read_table(path)
    ledger = ledger.assign(stale=ledger["notebook"].isin(stale(study)))
    # for every declared claim, every paper and the lessons; "" if this study has recorded nothing
    declared = paths.BOOK / "claims.yaml"
    found = {f"verdict {claim.id}": "" for claim in claims.read_claims(declared)} if declared.is_file() else {}
    found |= {f"verdicts {key}": "" for key in PAPERS} | {"chapters absent": absent_chapters(chapters)}
    if len(ledger):
        found |= {f"verdict {row['id']}": verdict_sentence(row) for _, row in ledger.iterrows()}
        found |= {f"verdicts {key}": verdict_counts(rows) for key, rows in ledger[own_claims(ledger)].groupby("paper")}
    found |= {f"chapters {part}": chapters_of(part, chapters) for part in {name[0] for name in order()}}
    # for each paper, its tables and figures and the chapters with their counterparts; the file's head has the fields
    file, page = paths.BOOK / "exhibits.yaml", PAGES.get_template("exhibits.md")
    known = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    titles = {path.stem: title_of(path.stem) for path in paths.NOTEBOOKS.glob("*.ipynb")}
    for key, rows in known.items():
        found[f"exhibits {key}"] = page.render(paper=PAPERS[key], rows=rows, titles=titles).strip()
    if LESSONS.is_file():
        found |= {f"lessons {place}": text for place, text in sections(read_lessons(), ledger).items()}
    for name in sorted(order()):
        path = chapters / f"{name}.ipynb"
        page = read_notebook(path, as_version=4) if path.is_file() else new_notebook()
        for cell in page.cells:
            figure, caption = cell.metadata.get("mystnb", {}).get("figure", {}).get("name"), caption_of(cell)
            images = [o["data"]["image/png"] for o in cell.get("outputs", ()) if "image/png" in o.get("data", {})]
            if figure and images:
                with atomic(chapters / "figures" / f"{figure}.png") as draft:
                    draft.write_bytes(base64.b64decode(images[0]))
                shown = f":::{{figure}} /chapters/figures/{figure}.png\n:alt: {caption}\n{caption}\n:::"
                found[f"figure {figure}"] = shown
        found[f"answer {name}"] = "\n\n".join(answer(page))
        found[f"headline {name}"] = _in_row(*(BOLD.sub("", t.removeprefix("- ")) for t in answer(page, "headline")))
        found[f"question {name}"] = question_of(name)
        found[f"badge {name}"] = badge(verdict_of(page) if page.cells else "Not run")
    return found


# ---------------------------------------------------------------- book


KERNELS = 2  # number of kernels that draw at a time


class Site:
    """The book of one study: the folder of its source pages (`source`) and of the built pages (`output`)."""

    def __init__(self, request: Request, source: Path, output: Path):
        self.request, self.source, self.output = request, source, output
        self.chapters, self.first = source / "chapters", output / "_build" / "html" / "index.html"

    @property
    def pages(self) -> list[str]:
        """Every page of the table of contents, as its path without a suffix."""
        text = (self.source / "_toc.yml").read_text(encoding="utf-8")
        return [yaml.safe_load(text)["root"], *re.findall(r"- file: (\S+)", text)]

    @property
    def names(self) -> list[str]:
        """The notebooks in the table of contents, in its order."""
        pages = [page.partition("chapters/") for page in self.pages]
        return [name for before, _, name in pages if not before and name != "status"]


def site(request: Request) -> Site:
    """The folders of a study's book: the project's for a scale's corpus, next to the exported lists for any other."""
    if request.study == request.scale:
        return Site(request, paths.BOOK, paths.BOOK)
    return Site(request, paths.RUNS / "book" / request.study / "source", request.exports / "book")


# ---------------------------------------------------------------- the book of another corpus


def gather_pages(site: Site) -> None:
    """Write the sources of a separate book: its chapters, and a first page that names the corpus."""
    request, corpus = site.request, Path(site.request.corpus).name
    own = shutil.ignore_patterns("_build", "chapters", "parts", "figures", "index.md", "_*.yml")
    shutil.copytree(paths.BOOK, site.source, ignore=own, dirs_exist_ok=True)
    names = [name for name in order() if standing.end_state(standing.read(name, request.study))[0] != standing.NEVER]
    reference = [file for file in ("faq", "notation", "references") if (site.source / f"{file}.md").is_file()]
    config = yaml.safe_load((paths.BOOK / "_config.yml").read_text(encoding="utf-8"))
    config["title"] = f"{corpus}: quality of the data"
    # pages may link to chapters that were not run on this corpus
    config["sphinx"]["config"]["suppress_warnings"] = ["myst.xref_missing"]
    write_text(site.source / "_config.yml", yaml.safe_dump(config, sort_keys=False))
    write_text(site.source / "_toc.yml", PAGES.get_template("toc.yml").render(names=names, reference=reference))
    said = f"Recorded at scale {request.scale}. {worth(request)}" if names else "No chapter was run on this corpus."
    titles = {name: title_of(name) for name in names}
    index = PAGES.get_template("index.md").render(corpus=as_text(corpus), said=said, chapters=titles)
    write_text(site.source / "index.md", index)


def worth(request: Request) -> str:
    """A sentence on what the chapters' results mean for a user's corpus at the request's scale."""
    if request.scale == "smoke":
        proof = "This scale reads a small part of a corpus and trains for seconds, to prove that everything works."
        return f"{proof} Nothing that it gives is a result about this corpus; use scale small for that."
    return "These are results about this corpus. They are no evidence for or against the claims of the papers."


# ---------------------------------------------------------------- one chapter


def _key(name: str, request: Request) -> str:
    """Digest of everything on which a drawn chapter depends."""
    library = (path for path in standing.LIBRARY.rglob("*.*") if path.suffix != ".pyc")
    own = paths.RESULTS.glob(f"{request.scale}*/{name}.*")  # those of other corpora too, because chapter 61 shows them
    files = [paths.NOTEBOOKS / f"{name}.ipynb", *own, *library, *paths.BOOK.glob("*.yaml")]
    record = standing.read(name, request.study)
    return standing.digest_of([standing.digests(sorted(files)), record.get("inputs"), stamps(record)])


def chapters(site: Site, known: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Bring every chapter up to date; return the keys of those with a page, and the problems of the others.

    `known`: the keys of the last time; a chapter with the same key is not drawn again.
    """
    request, problems = site.request, []
    states = {name: standing.end_state(standing.read(name, request.study)) for name in site.names}
    keys = {name: _key(name, request) for name, (state, _) in states.items() if state == standing.FINISHED}
    due = [name for name in keys if known.get(name) != keys[name] or not (site.chapters / f"{name}.ipynb").is_file()]
    with ThreadPoolExecutor(KERNELS) as pool:
        groups = pool.map(draw, [due[start::KERNELS] for start in range(KERNELS)], [request] * KERNELS)
        drawn = {name: end for group in groups for name, end in group.items()}
    for name, (executed, problem) in drawn.items():
        source, record = paths.NOTEBOOKS / f"{name}.ipynb", standing.read(name, request.study)
        if problem:
            # if the cells are newer than their record, the page says so, and the book has no error
            problems += [f"{name} could not be drawn: {problem}"] * ("cells changed" not in str(stamps(record)))
            states[name] = "failed", problem
            del keys[name]
            continue
        run = f"`{request.command(name)}`"
        boxes = [PAGES.get_template("stale.md").render(note=note, run=run) for note in stamps(record)]
        link = f'<a href="../_static/notebooks/{name}.ipynb" download>Download the notebook</a>'
        foot = f"{standing.recorded(record)}. {link} to run it yourself: {run}."
        page = chapter_page(read_notebook(source, as_version=4), executed, boxes, foot, name[:2])
        write_text(site.chapters / source.name, writes(page))
        write_text(site.source / "_static" / "notebooks" / source.name, source.read_text(encoding="utf-8"))
    for name, (state, reason) in states.items():
        absent, page = site.chapters / f"{name}.md", site.chapters / f"{name}.ipynb"
        (absent if name in keys else page).unlink(missing_ok=True)
        if name not in keys:  # a page with its question, and the reason why there is no answer
            _, _, question = standing.cells(paths.NOTEBOOKS / page.name)[0]["source"].partition("\n")
            question = f"# {title_of(name)}\n{question.rstrip()} {badge('Not run')}"
            told = {"study": request.study, "state": state, "reason": reason, "command": request.command(name)}
            write_text(absent, PAGES.get_template("absent.md").render(question=question, **told))
    return keys, problems


# ---------------------------------------------------------------- the whole book


def _render(site: Site) -> None:
    """Call jupyter-book; a failure is reported by its errors and the path of the log, not by its whole output."""
    log = site.output / "_build" / "build.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    # the command has no option for Sphinx's number of processes
    start = "import functools, os, jupyter_book.sphinx as s; s.build_sphinx = functools.partial(s.build_sphinx, "
    start += "jobs=os.cpu_count()); from jupyter_book.cli.main import main; main()"
    words = [sys.executable, "-c", start, "build", str(site.source), "--keep-going", "--path-output", str(site.output)]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    log.write_text(text, encoding="utf-8")
    told = [line for line in text.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b|Error:", line)]
    for line in told:
        print(f"  {line}", flush=True)
    if done.returncode or not site.first.is_file():
        last = "\n".join(told or text.strip().splitlines()[-5:])
        raise StudyError(f"jupyter-book failed (code {done.returncode}):\n{last}\nFull output: {log}")


def build(request: Request, book: Site | None = None) -> Path:
    """Draw the chapters that need it and build the book, at the place of `site` or at `book`; return the path of its
    first page.

    Raises
    ------
    StudyError
        If a chapter cannot be drawn (the others are still built) or jupyter-book fails.
    """
    if find_spec("jupyter_book") is None:
        raise StudyError("the package jupyter-book is missing: pip install 'nli-quality-study[book]'")
    book = book or site(request)
    with alone(book.output / "_build", "this book"):
        if request.study != request.scale:
            gather_pages(book)
        names, folder = book.names, book.chapters
        folder.mkdir(parents=True, exist_ok=True)
        memory, built = folder / "drawn.json", book.output / "_build" / "built.json"
        known, last = (json.loads(each.read_bytes()) if each.is_file() else {} for each in (memory, built))
        keys, problems = chapters(book, known)
        write_json(memory, keys)
        write_text(book.source / "_static" / "plotly.min.js", get_plotlyjs())  # one copy, shared by all pages
        write_text(folder / "status.md", status_page(names, request))
        said = words(folder, request.study)
        said["announcement"] = NOTICES.get(request.scale, "").capitalize()
        write_text(folder / "words.json", json.dumps(said, indent=1, ensure_ascii=False))
        files = (path for path in book.source.rglob("*") if not {"_build", "__pycache__"} & set(path.parts))
        # the reference is made from the docstrings of the library
        library = standing.LIBRARY.rglob("*.py")
        digest = standing.digest_of([standing.digests(sorted([*files, *library])), request.study, sys.version])
        if book.first.is_file() and last == digest:
            print("book: nothing changed since it was built")
        else:
            print(f"book: {len(keys)} of {len(names)} chapters have results", flush=True)
            if not built.is_file():  # Sphinx was killed or failed, and would take a truncated page for finished
                for name in ("html", ".doctrees"):
                    shutil.rmtree(book.output / "_build" / name, ignore_errors=True)
            built.unlink(missing_ok=True)
            _render(book)
            write_json(built, digest)
    if problems:
        raise StudyError("\n".join(problems))
    return book.first
