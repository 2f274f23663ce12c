"""A drawn chapter as a page of the report: the question, its answer, then the rest, with the code out of the way.

In the notebook prose, measuring and showing alternate, as a person steps through them. The page keeps prose and outputs
where they stand and folds the code: one fold at the end of a section with the code of its figures and sentences, and
one fold in all for the measuring half.
"""

import copy
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from nli_lib.study.show import PLOTLY

MACHINERY = {"parameters", "begin", "measure", "finish"}  # tags of the cells that stand in the measuring fold
ANSWER = re.compile(r"##\s+The answer\s*$", re.IGNORECASE | re.MULTILINE)
HOW = re.compile(r"##\s+How it was measured", re.IGNORECASE)
INTERACTIVE = Path(__file__).with_name("interactive.html")
FOLDS = {False: "Code of this section", True: "How it was measured, as code"}


@dataclass
class Section:
    """What stands between two `##` headings."""

    shown: list[NotebookNode] = field(default_factory=list)  # prose and outputs
    code: list[str] = field(default_factory=list)

    @property
    def heading(self) -> str:
        return self.shown[0].source if self.shown and self.shown[0].cell_type == "markdown" else ""

    @property
    def gone(self) -> bool:
        """Whether nothing but the heading is left: what stood below it was the answer, and moved up."""
        return not self.shown or (len(self.shown) == 1 and re.fullmatch(r"## .*", self.heading.strip()) is not None)


def caption(cell: NotebookNode) -> str:
    """The caption of a cell's figure, "" when it has none."""
    return cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")


def tagged(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", ()))


def answer(notebook: NotebookNode, tag: str = "answer") -> list[str]:
    """The sentences that the tagged cells of a page or a drawn notebook show, as Markdown, one text an output."""
    outputs = [o for cell in notebook.cells if tag in tagged(cell) for o in cell.get("outputs", ())]
    texts = [output["data"]["text/markdown"] for output in outputs if "text/markdown" in output.get("data", {})]
    return ["".join(text).strip() for text in texts]


def _interactive(figure: dict) -> str:
    """A plotly figure as HTML that draws itself with the shared script. No text in it can end the script element."""
    parts = [figure.get(part, {}) for part in ("data", "layout", "config")]
    arguments = json.dumps(parts, separators=(",", ":")).replace("<", "\\u003c")
    return INTERACTIVE.read_text(encoding="utf-8").replace("FIGURE", arguments)


def _is_image(output: NotebookNode) -> bool:
    return any(kind.startswith("image/") for kind in output.get("data", {})) and PLOTLY not in output["data"]


def _shown(cell: NotebookNode, outputs: Iterable[NotebookNode], heading: str) -> list[NotebookNode]:
    """One cell without code for each output, so that a caption goes with its image and with nothing else. Several
    images of one cell are counted in their captions."""
    cells, outputs = [], list(outputs)
    images = [at for at, output in enumerate(outputs) if _is_image(output)]
    for at, output in enumerate(outputs):
        data, settings = output.get("data", {}), {}
        if PLOTLY in data:
            output = new_output("display_data", data={"text/html": _interactive(data[PLOTLY])})
        elif at in images:
            about = caption(cell) or f"Figure in the section {heading!r}"
            settings = copy.deepcopy(cell.metadata.get("mystnb", {}))
            if len(images) > 1 and caption(cell):
                about = f"{about} ({images.index(at) + 1} of {len(images)})"
                settings["figure"]["caption"] = about
            # a width makes Sphinx link to the whole picture, which a reader on a phone can enlarge
            settings["image"] = {"alt": about, "width": "100%"}
        tags = sorted({"remove-input"} | tagged(cell) & {"answer", "headline"})
        # the code is taken out of the page; a cell without any would be left out with its output
        cells.append(new_code_cell(cell.source, outputs=[output], metadata={"tags": tags, "mystnb": settings}))
    return cells


def _fold(code: list[str], measuring: bool) -> NotebookNode:
    prompts = {"code_prompt_show": FOLDS[measuring], "code_prompt_hide": FOLDS[measuring]}
    return new_code_cell("\n\n".join(code), metadata={"tags": ["hide-input"], "mystnb": prompts})


def _sections(source: NotebookNode, drawn: NotebookNode) -> tuple[list[Section], list[NotebookNode], list[str]]:
    """(sections in order, the answer's outputs, the measuring code)."""
    outputs = {cell.id: cell.outputs for cell in drawn.cells if cell.cell_type == "code"}
    sections, answers, measuring = [Section()], [], []
    for cell in source.cells:
        if cell.cell_type == "markdown":
            for text in filter(str.strip, re.split(r"^(?=## )", cell.source, flags=re.MULTILINE)):
                if text.startswith("## "):
                    sections.append(Section())
                sections[-1].shown.append(new_markdown_cell(text.strip()))
        elif tagged(cell) & MACHINERY:
            measuring.append(cell.source)
        elif cell.cell_type == "code":
            heading = sections[-1].heading.partition("\n")[0].lstrip("# ")
            place = answers if "answer" in tagged(cell) else sections[-1].shown
            place += _shown(cell, outputs.get(cell.id, ()), heading)
            sections[-1].code.append(cell.source)
    return sections, answers, measuring


def page(source: NotebookNode, drawn: NotebookNode, boxes: Iterable[str] = (), foot: str = "") -> NotebookNode:
    """The page of a chapter.

    source: the notebook, for its prose and code. drawn: its executed copy, for the outputs; cells are matched by id.
    boxes: Markdown that goes below the title. foot: Markdown at the end.
    """
    sections, answers, measuring = _sections(source, drawn)
    first, *sections[0].shown = sections[0].shown
    for section in sections:
        if ANSWER.match(section.heading):
            rest = ANSWER.sub("", section.shown.pop(0).source).strip()
            answers += [new_markdown_cell(rest)] * bool(rest) + section.shown
            section.shown = []
    title, _, question = first.source.partition("\n")
    answers.sort(key=lambda cell: not answer(new_notebook(cells=[cell])))  # sentences first, then figures
    cells = [new_markdown_cell("\n\n".join([title, *boxes, question.strip()])), *answers]
    home = next((section for section in sections if HOW.match(section.heading)), sections[-1])
    left = []  # code of a section that is gone goes with the one before it
    for number, section in enumerate(sections):
        if number and section.gone and section is not home:
            left[-1].code += section.code
        else:
            left.append(section)
    for section in left:
        cells += section.shown
        code = [*(measuring if section is home else ()), *section.code]
        if code:
            cells.append(_fold(code, section is home))
    if foot:
        cells.append(new_markdown_cell(f"---\n\n{foot}"))
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"  # equal chapters give equal files
    metadata = {key: value for key, value in source.metadata.items() if key in ("kernelspec", "language_info")}
    return new_notebook(cells=cells, metadata=metadata)
