"""`nli-study review`: people review the pairs of a file, in JupyterLab or elsewhere, and their answers make a corpus.

JupyterLab shows one pair at a time, with its two texts to revise in place and a key for each answer::

    review_widget("mine.csv", "data/review", "anna")        # or, for pairs in memory:
    ReviewWidget(Review(pairs, folder, "anna"))

1 entailment, 2 neutral, 3 contradiction, d discard, u undo, r revise, Esc out of a text. Keys work only while the
widget has the focus and no text is being typed. Only answers on disk count: the widget shows the next pair when the
answer has been written, and after a reload of the page or a restart of the kernel it shows the first pair without an
answer. The script builds the page only from text nodes and text fields, so nothing in a pair is executed.

Amazon Mechanical Turk takes an input csv and the page of a HIT, and returns the batch's results. Texts are written into
the input csv as ASCII with HTML's character references: no field contains a character that a spreadsheet takes for a
formula, and the page shows the original texts. An Answer in the results csv is exactly what a worker typed: read that
file with `read_results`, not in a spreadsheet.

Label Studio takes a project's configuration and tasks. Create a project with `label_studio.xml` (Settings, Labeling
Interface, Code), import the tasks, let two annotators label each, and export as JSON. Annotators see only the two
texts. JSON can contain any text, and Label Studio shows a Text as text.

Notes
-----
*Departures* of the answers at Mechanical Turk: WANLI's are codes (0 contradiction, 1 entailment, 2 neutral, 3 discard)
and ours are names; we replace worker ids when the results are read, WANLI before the release.

References
----------
WANLI's `process_amt_batch.py` (W11): five pairs a HIT; rejected assignments and unqualified workers do not count.
"""

import html
import importlib.util
import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
import jinja2
import nbformat
import numpy as np
import pandas as pd
import traitlets

from nli_lib.agreement import kappa
from nli_lib.corpora import load
from nli_lib.corpora.corpus import LABELS, Corpus
from nli_lib.errors import UserError
from nli_lib.evaluate import own_columns, write_jsonl
from nli_lib.generate import review as reviews
from nli_lib.generate.review import ORIGINS, SIDES, Review, as_left, as_table, pairs, queue
from nli_lib.study.runner import Request
from nli_lib.tables import write_csv
from nli_tools.exchange import DISCARD, Answers, read_project, write_project
from nli_tools.own_corpus import ToolError, write as write_text

HERE = Path(__file__).parent


def _answer(pair: Mapping[str, str], annotator: str, label: str, left: Mapping[str, str | None]) -> dict[str, object]:
    """Make one row of annotations. ``left``: both texts as the annotator leaves them; a side without text was not
    revised."""
    texts = {f"revised_{side}": as_left(pair[side], left.get(side) or pair[side]) for side in SIDES}
    discarded = label == DISCARD
    return {**pair, "annotator": annotator, **texts, "label": None if discarded else label, "discarded": discarded}


def _known(given: Mapping[str, object], shown: pd.DataFrame, where: str) -> dict[str, str]:
    """The pair named by a row: item and both texts, from the table ``shown`` (index item).

    Raises
    ------
    ToolError
        If there is no such pair, or its texts differ; the message begins with ``where``.
    """
    item = str(given.get("item"))
    if item not in shown.index:
        raise ToolError(f"{where}, item: there is no pair {item!r}. Is this the review of another file?")
    pair = {"item": item, **shown.loc[item, list(SIDES)]}
    for side in SIDES:
        if as_left(pair[side], str(given.get(side))) != pair[side]:
            raise ToolError(f"{where}, {side}: the text of pair {item!r} has changed. Restore the pairs.")
    return pair


# ---------------------------------------------------------------- mturk


PER_HIT = 5
INPUT, PAGE = "mturk_input.csv", "mturk_page.html"
# characters with a meaning in a page or a spreadsheet, and everything outside ASCII
SPECIAL = re.compile(r"[-=+@&<>\"'$\t\r\n]|[^\x00-\x9f]")


def write_hits(folder: Path, pairs: pd.DataFrame, *, seed: int = 0) -> list[Path]:
    """Write the input csv, `PER_HIT` pairs in each row, in an order drawn with ``seed``, and the page; return the two
    paths.

    Columns item1, premise1, hypothesis1, item2, ...; the last row may end with empty ones. Ask for two assignments for
    each HIT.
    """
    shown = pd.DataFrame(queue(pairs, seed)).map(lambda text: SPECIAL.sub(lambda found: f"&#{ord(found[0])};", text))
    numbers = range(1, PER_HIT + 1)
    wide = [shown.iloc[at - 1 :: PER_HIT].reset_index(drop=True).add_suffix(str(at)) for at in numbers]
    page = jinja2.Template((HERE / "mturk.html").read_text(encoding="utf-8")).render(numbers=numbers)
    return [write_csv(Path(folder) / INPUT, pd.concat(wide, axis=1)), write_text(Path(folder) / PAGE, page + "\n")]


def read_results(
    files: Sequence[Path], pairs: pd.DataFrame, *, qualified: Collection[str] | None = None
) -> pd.DataFrame:
    """Read the annotations of one or more results csv files, in the form of `nli_lib.generate.review`.

    Rejected assignments, and those of workers who are not ``qualified`` (ids; None: all are), do not count. Workers are
    called "mturk-1", "mturk-2", ... in the order of their ids; pass all files of a study in one call. Answers without
    worker or label, and second ones of the same worker to a pair, are counted in a message. Raises `ToolError`, naming
    the file, the row and the column, or if no answer is left.
    """
    tables = [_read_results(Path(file)) for file in files]
    workers = sorted({worker for table in tables for worker in table["WorkerId"]} - {""})
    alias = {worker: f"mturk-{number}" for number, worker in enumerate(workers, start=1)}
    shown = pairs.set_index("item")
    answers = Answers(", ".join(map(str, files)), (*LABELS, DISCARD))
    for file, results in zip(files, tables, strict=True):
        counts = results["AssignmentStatus"] != "Rejected"
        if qualified is not None:
            counts &= results["WorkerId"].isin(list(qualified))
        for row, said in results[counts].iterrows():
            for at in (number for number in _numbers(results) if said[f"Input.item{number}"]):
                where, label = f"{file}: row {row + 1}, example {at}", said[f"Answer.label{at}"]
                given = {name: html.unescape(said[f"Input.{name}{at}"]) for name in ("item", *SIDES)}
                pair, left = _known(given, shown, where), {side: said[f"Answer.{side}{at}"] for side in SIDES}
                if answers.label(said["WorkerId"], [label] if label else [], where):
                    answers.take(pair["item"], _answer(pair, alias[said["WorkerId"]], label, left), where)
    return as_table(answers.rows())


def _read_results(file: Path) -> pd.DataFrame:
    """Read a results csv, every field a string, with the needed columns."""
    try:
        results = pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except OSError as error:
        raise ToolError(f"{file} cannot be read ({error.strerror}). Download the batch's results again.") from None
    except ValueError as error:
        raise ToolError(f"{file} is not a csv in UTF-8: {error}. Download the batch's results again.") from None
    numbers = _numbers(results) or ["1"]
    fields = [f"Answer.{part}{at}" for at in numbers for part in ("label", *SIDES)]
    fields += [f"Input.{part}{at}" for at in numbers for part in ("item", *SIDES)]
    for name in ("HITId", "AssignmentId", "WorkerId", "AssignmentStatus", *fields):
        if name not in results:
            cure = f"Give the results csv of a batch that was made with {INPUT} and {PAGE}."
            raise ToolError(f"{file}: column {name} is missing. {cure}")
    if not isinstance(results.index, pd.RangeIndex):  # pandas takes the first field of a longer row for an index
        raise ToolError(f"{file}: the rows have more fields than the header. Download the batch's results again.")
    return results


def _numbers(results: pd.DataFrame) -> list[str]:
    """The numbers of a HIT's examples that occur in any row: "1", "2", ..."""
    items = [name for name in results if name.startswith("Input.item") and results[name].ne("").any()]
    return [name.removeprefix("Input.item") for name in items]


# ---------------------------------------------------------------- label studio


CONFIGURATION = HERE / "label_studio.xml"
TASKS = "label_studio_tasks.json"


def write_tasks(folder: Path, pairs: pd.DataFrame, *, seed: int = 0) -> list[Path]:
    """Write the configuration and the tasks, in an order drawn with ``seed``; return the two paths."""
    tasks = [{"data": pair} for pair in queue(pairs, seed)]
    return write_project(folder, CONFIGURATION.read_text(encoding="utf-8"), tasks, TASKS)


def read_export(path: Path, pairs: pd.DataFrame) -> pd.DataFrame:
    """Read the annotations of an export as JSON (not JSON-MIN), in the form of `nli_lib.generate.review`.

    Annotators keep Label Studio's numbers, not their names. Annotations without annotator or without one label, and
    second ones of the same annotator, are counted in a message. Raises `ToolError`, naming the file, the task and the
    field, or if no annotation is left.
    """
    answers, shown = Answers(path, (*LABELS, DISCARD)), pairs.set_index("item")
    for where, data, given in read_project(answers):
        pair = _known(data, shown, f"{path}: {where}")
        for annotator, label, texts in given:
            answers.take(pair["item"], _answer(pair, annotator, label, texts), where)
    return as_table(answers.rows())


# ---------------------------------------------------------------- widget


class ReviewWidget(anywidget.AnyWidget):
    """The widget of a review. `state` is shown by the page, which answers with messages."""

    _esm = HERE / "widget.js"
    _css = HERE / "widget.css"
    state = traitlets.Dict(help="pair, done, pairs, annotator, fault, turn (the answers taken)").tag(sync=True)

    def __init__(self, review: Review, **options: Any):
        super().__init__(**options)
        self.review = review
        self._turn = 0
        self._show()
        self.on_msg(lambda _widget, content, _buffers: self.take(content))

    def take(self, content: dict[str, str]) -> None:
        """Handle one message of the page: act ("label", "discard" or "undo") and its data; show the next pair.

        If the answer is refused, the page says why, and the pair stays.
        """
        fault = ""
        try:
            match content:
                case {"act": "label", "item": item, "label": label, "premise": premise, "hypothesis": hypothesis}:
                    self.review.label(item, label, premise=premise, hypothesis=hypothesis)
                case {"act": "discard", "item": item}:
                    self.review.discard(item)
                case {"act": "undo"}:
                    self.review.undo()
                case _:
                    fault = "Not saved: the page sent an unknown message. Load the page again."
        except (UserError, OSError) as error:
            fault = f"Not saved: {error}"
        self._show(fault)

    def _show(self, fault: str = "") -> None:
        done, count = self.review.progress
        self._turn += 1
        named = {"annotator": self.review.annotator, "turn": self._turn, "fault": fault}
        self.state = {"pair": self.review.pair, "done": done, "pairs": count, **named}


def review_widget(corpus: str, folder: str, annotator: str, seed: int = 0, **where: object) -> ReviewWidget:
    """The widget of one annotator's review of a file, which is loaded with ``where``; its answers are in ``folder``."""
    return ReviewWidget(Review(pairs(load(corpus, **where)), Path(folder), annotator, seed=seed))


# ---------------------------------------------------------------- review


REVIEWED = "reviewed.jsonl"
TOOLS = {"label-studio": write_tasks, "mturk": write_hits}
WELCOME = """# A review

Run the next cell (Shift+Enter), click on the pair, and answer with the keys named on the buttons. Every answer is
saved at once. You can close the page at any time; run the cell again to continue."""


def write_notebook(request: Request, annotator: str, *, seed: int = 0) -> Path:
    """Write a notebook that shows one annotator's review of the requested file; return its path."""
    folder, corpus = _asked(request)
    Review(pairs(corpus), folder, annotator, seed=seed)  # raises errors here, not in the notebook
    given = {"seed": seed, "data_dir": request.data_dir, **request.form}
    named = "".join(f"    {name}={value!r},\n" for name, value in given.items() if value is not None)
    call = f"review_widget(\n    {request.corpus!r},\n    {str(folder)!r},\n    {annotator!r},\n{named})"
    code = nbformat.v4.new_code_cell(f"from nli_tools.review import review_widget\n\n{call}", id="review")
    cells = [nbformat.v4.new_markdown_cell(WELCOME, id="welcome"), code]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    path = write_text(folder / f"review.{annotator}.ipynb", nbformat.writes(notebook) + "\n")
    print(f"Answers are written to {folder}.")
    return path


def open_lab(notebook: Path) -> int:
    """Open a notebook in JupyterLab and wait for its end; return the exit code."""
    if importlib.util.find_spec("jupyterlab") is None:
        cure = "pip install -c constraints.txt -e '.[lab]', or make lab."
        raise ToolError(f"jupyterlab is not installed, but the review needs it: {cure}")
    return subprocess.run([sys.executable, "-m", "jupyterlab", str(notebook)], check=False).returncode


def write(request: Request, tool: str | None, files: Sequence[Path], *, seed: int = 0) -> None:
    """Write the files that ``tool`` (one of `TOOLS`) imports or, if that is None, the corpus from all answers: those in
    the folder, and those in ``files``. Prints a summary and the paths."""
    folder, corpus = _asked(request)
    if tool not in (None, *TOOLS):
        raise ToolError(f"--export {tool}: write {' or '.join(TOOLS)}.")
    if tool:
        written = TOOLS[tool](folder, pairs(corpus), seed=seed)
    else:
        written = [folder / REVIEWED]
        print(*aggregate_to(*written, corpus, collect(pairs(corpus), folder, files), seed=seed), sep="\n")
    print(*written, sep="\n")


def _asked(request: Request) -> tuple[Path, Corpus]:
    """The folder with the answers of a review, and the reviewed corpus."""
    corpus = load(request.corpus, data_dir=request.data_dir, **request.form)
    if corpus.classes != LABELS:
        told = f"{request.corpus}: a review asks for one of {', '.join(LABELS)}"
        raise ToolError(f"{told}, but the file has the labels {', '.join(corpus.classes)}.")
    return request.exports / "review", corpus


def collect(queue: pd.DataFrame, folder: Path, files: Sequence[Path]) -> pd.DataFrame:
    """All annotations of ``queue``: answers in ``folder``, exports of Label Studio (.json), results of MTurk (.csv).

    Raises
    ------
    ToolError
        If a file is neither.
    """
    exports, results = ([file for file in files if file.suffix.lower() == each] for each in (".json", ".csv"))
    for file in files:
        if file not in [*exports, *results]:
            raise ToolError(f"{file} is neither an export of Label Studio (.json) nor a results csv of MTurk (.csv).")
    parts = [reviews.annotations(folder), *(read_export(file, queue) for file in exports)]
    return pd.concat([*parts, read_results(results, queue)], ignore_index=True)


def aggregate_to(path: Path, before: Corpus, given: pd.DataFrame, *, seed: int = 0) -> list[str]:
    """Write the corpus that results from annotations of ``before`` to ``path``, completely or not at all, with the
    extra columns of ``before``; return sentences about it.

    Pairs with fewer than two annotations wait. Raises `ToolError` if all of them do.
    """
    twice = given[given.groupby("item")["annotator"].transform("size") >= 2]
    if twice.empty:
        raise ToolError(
            f"no pair of {len(before):,} has two annotations ({len(given):,} annotations in all): let a second "
            "annotator review them, under another name (--annotator)."
        )
    corpus = reviews.reviewed(pairs(before), twice, seed=seed)
    rules = reviews.aggregate(twice, seed=seed)["rule"].value_counts()
    own = own_columns(before, {*corpus} - {*ORIGINS}).drop(columns=list(ORIGINS), errors="ignore")
    corpus = corpus.join(own.set_axis(before.uid), on="uid")
    write_jsonl(path, corpus)
    said = [f"{rules.sum():,} of {len(before):,} pairs have two annotations; {len(corpus):,} of them are kept."]
    said += [f"{rule}: {count:,}" for rule, count in rules.items()]
    of_item = twice[twice["item"].isin(corpus["uid"])].groupby("item")["label"]
    if differ := int((of_item.nunique() > 1).sum()):
        drawn = "where the rule does not choose, one was drawn at random"
        said.append(f"In {differ:,} of those kept the annotators' labels differ; {drawn}.")
    if more := int((of_item.size() > 2).sum()):
        said.append(f"{more:,} of those kept have more than two annotations, of which two were drawn at random.")
    agreed = kappa(twice)
    if np.isfinite(agreed.value):
        found = f"Cohen's kappa {agreed.value:.2f} [{agreed.low:.2f}, {agreed.high:.2f}]"
        said.append(f"{found} over the {agreed.n:,} pairs that both annotators left unchanged.")
    return said
