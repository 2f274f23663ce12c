"""`nli-study review`: people review the pairs of a file, in JupyterLab or elsewhere, and their answers make a corpus.

JupyterLab shows one pair at a time, with its two texts to revise in place and a key for each answer::

    review_widget("mine.csv", "data/review", "anna")        # or, for pairs in memory:
    ReviewWidget(Review(pairs, folder, "anna"))

1 entailment, 2 neutral, 3 contradiction, d discard, u undo, r revise, Esc out of a text. Keys work only while the
widget has the focus and no text is being typed. Only answers on disk count: the widget shows the next pair when the
answer has been written, and after a reload of the page or a restart of the kernel it shows the first pair without an
answer. The script builds the page only from text nodes and text fields, so nothing in a pair is executed.

A third person settles the pairs on which two annotators disagree, in the same widget, which then shows both answers
side by side, or in a csv. Neither says who gave which answer, and the order of the two is drawn for each pair::

    review_widget("mine.csv", "data/review", "carl", answers=[])

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
import json
import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
import jinja2
import nbformat
import pandas as pd
import traitlets

from nli_lib.agreement import kappa
from nli_lib.corpora import load
from nli_lib.corpora.corpus import LABELS, Corpus, canonical
from nli_lib.errors import UserError
from nli_lib.evaluate import own_columns, write_jsonl
from nli_lib.generate import review as reviews
from nli_lib.generate.review import ORIGINS, SIDES, Answer, Review, as_left, as_table, pairs, queue, untouched
from nli_lib.stats import Estimate, share
from nli_lib.store import now, reading, write_json
from nli_lib.study.runner import Request
from nli_lib.tables import read_csv, write_csv
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


# ---------------------------------------------------------------- adjudication


SETTLED = "adjudicated"  # the folder of a third person's answers, and the rule of a settled pair
PLACES = ("first", "second")


def differing(given: pd.DataFrame, seed: int = 0) -> list[pd.DataFrame]:
    """Two answers to each pair on which annotators disagree about the label or about discarding it: two tables of
    annotations, index item, with `DISCARD` among the labels.

    Which answer comes first is drawn with ``seed`` for each pair, and does not depend on the other pairs. Of more than
    two annotations, the first one and the first that differs from it are taken.
    """
    drawn = f"{seed}\0" + given["item"].astype(str) + "\0" + given["annotator"]
    table = given.assign(label=given["label"].fillna(DISCARD), turn=pd.util.hash_array(drawn.to_numpy(object)))
    table = table.sort_values(["item", "turn"])
    other = table[table["label"] != table.groupby("item")["label"].transform("first")]
    return [each[each["item"].isin(other["item"])].drop_duplicates("item").set_index("item") for each in (table, other)]


class Adjudication(Review):
    """The review of a third person, who settles what two annotators disagree on, without being told who they are.

    Its answers, and the seed of the order, are in the folder `SETTLED` of the review.

    Attributes
    ----------
    shown
        the pairs in the order of the queue, index item: premise and hypothesis; first and second, the two labels or
        `DISCARD`, in the order of `differing`; first_premise and so on, the texts as these annotators leave them
    """

    def __init__(self, pairs: pd.DataFrame, folder: Path, given: pd.DataFrame, annotator: str, *, seed: int = 0):
        folder, answers = Path(folder) / SETTLED, differing(given, seed)
        if answers[0].empty:
            raise ToolError(f"no two annotators disagree about a pair ({len(given):,} annotations): nothing to settle.")
        if annotator in set(given["annotator"]):
            raise ToolError(f"{annotator} has annotated these pairs: name a third person (--annotator).")
        for other in set(folder.glob("answers.*.jsonl")) - {folder / f"answers.{annotator}.jsonl"}:
            raise ToolError(f"{other}: another person has begun. Continue under that name, or move the file away.")
        super().__init__(pairs[pairs["item"].isin(answers[0].index)], folder, annotator, seed=seed)
        path = folder / "order.json"
        with reading(path, "write the seed of the first call into it"):
            drawn = json.loads(path.read_text(encoding="utf-8"))["seed"] if path.is_file() else seed
        if drawn != seed:
            raise ToolError(f"{path}: the order of the answers was drawn with seed {drawn}: give --seed {drawn}.")
        write_json(path, {"seed": seed})
        self.shown = pd.DataFrame(self._queue.values()).set_index("item")
        for name, each in zip(PLACES, answers, strict=True):
            left = {f"{name}_{side}": each[f"revised_{side}"] for side in SIDES}
            self.shown = self.shown.assign(**{name: each["label"]}, **left)

    @property
    def pair(self) -> dict[str, str] | None:
        """As of a `Review`, with both answers."""
        return (pair := super().pair) and pair | self.shown.loc[pair["item"]].to_dict()

    def table(self) -> pd.DataFrame:
        """`shown` with the column settled: the third person's label so far, `DISCARD`, or ""."""
        given = {item: answer.label or DISCARD for item, answer in self.answers.standing.items()}
        return self.shown.assign(settled=[given.get(item, "") for item in self.shown.index])

    def read(self, path: Path) -> None:
        """Take the answers in the column settled of a csv of `table`: one of `PLACES`, with the texts of that answer, a
        label for the pair as it was, `DISCARD`, or "", which leaves the pair as it is.

        Raises
        ------
        ToolError
            If the file cannot be used, naming the row and the value; nothing is taken then.
        """
        found, told, taken = read_csv(path), self.table(), {}
        if missing := [name for name in ("item", *SIDES, "settled") if name not in found]:
            raise ToolError(f"{path} has no column {missing[0]!r}: fill in the csv that --adjudicate writes.")
        for at, given in enumerate(found.to_dict("records")):
            where, word = f"{path}, row {at + 2}", given["settled"].strip().lower()
            item = _known(given, told, where)["item"]
            pair = told.loc[item]
            label, start = (pair[word], f"{word}_") if word in PLACES else (canonical(word) or word, "")
            if label not in ("", *LABELS, DISCARD):
                raise ToolError(f"{where}, settled {word!r}: write first, second, {', '.join(LABELS)} or {DISCARD}.")
            if item in found["item"].iloc[:at].to_numpy():
                raise ToolError(f"{where}, item {item!r} appears twice: keep only one of the two rows.")
            if word not in ("", pair["settled"]):
                taken[item] = label, {side: pair[start + side] for side in SIDES}
        for item, (label, left) in taken.items():
            if item in self.answers.standing:
                with self.answers:
                    self.answers.add(Answer(act="undo", item=item, given=now()))
            self.discard(item) if label == DISCARD else self.label(item, label, **left)


def agreement(given: pd.DataFrame, settled: pd.DataFrame) -> dict[str, tuple[Estimate, Estimate]]:
    """Raw agreement and kappa over the pairs that neither side revised or discarded: "" -> of two annotators, and if
    pairs are settled, annotator -> of theirs and the final labels, where open disagreements have none."""
    tables = {"": given}
    if len(settled):
        labels = given["label"].fillna(DISCARD).groupby(given["item"]).transform("nunique")
        agreed = given[(labels == 1) & ~given["item"].isin(settled["item"])].drop_duplicates("item")
        final = pd.concat([settled, agreed]).assign(annotator="")
        for name, own in given.groupby("annotator"):
            tables[name] = pd.concat([own[own["item"].isin(final["item"])], final[final["item"].isin(own["item"])]])
    labels = {name: untouched(each) for name, each in tables.items()}
    return {name: (share(each[:, 0] == each[:, 1]), kappa(tables[name])) for name, each in labels.items() if len(each)}


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


def review_widget(
    corpus: str, folder: str, annotator: str, seed: int = 0, answers: Sequence[str] | None = None, **where: object
) -> ReviewWidget:
    """The widget of one annotator's review of a file, which is loaded with ``where``; its answers are in ``folder``.

    With ``answers``, files of answers from outside, perhaps none, it is an `Adjudication`.
    """
    return ReviewWidget(_review(pairs(load(corpus, **where)), Path(folder), annotator, seed, answers))


def _review(pairs: pd.DataFrame, folder: Path, annotator: str, seed: int, answers: Sequence | None) -> Review:
    if answers is None:
        return Review(pairs, folder, annotator, seed=seed)
    return Adjudication(pairs, folder, collect(pairs, folder, [*map(Path, answers)]), annotator, seed=seed)


# ---------------------------------------------------------------- review


REVIEWED = "reviewed.jsonl"
TOOLS = {"label-studio": write_tasks, "mturk": write_hits}


def write_notebook(request: Request, annotator: str, *, seed: int = 0, answers: Sequence[Path] | None = None) -> Path:
    """Write a notebook that shows one annotator's review of the requested file, or as in `review_widget` an
    adjudication; return its path."""
    folder, corpus = _asked(request)
    answers = None if answers is None else [str(file.absolute()) for file in answers]
    review = _review(pairs(corpus), folder, annotator, seed, answers)  # raises errors here, not in the notebook
    given = {"seed": seed, "answers": answers, "data_dir": request.data_dir, **request.form}
    named = "".join(f"    {name}={value!r},\n" for name, value in given.items() if value is not None)
    call = f"review_widget(\n    {request.corpus!r},\n    {str(folder)!r},\n    {annotator!r},\n{named})"
    notebook = nbformat.read(HERE / "review.ipynb", as_version=4)
    notebook.cells[1].source = f"from nli_tools.review import review_widget\n\n{call}"
    folder = review.answers.path.parent
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
        given, settled = collect(pairs(corpus), folder, files), reviews.annotations(folder / SETTLED)
        print(*aggregate_to(*written, corpus, given, settled, seed=seed), sep="\n")
    print(*written, sep="\n")


def adjudicate(request: Request, annotator: str, files: Sequence[Path], path: Path, *, seed: int = 0) -> list[str]:
    """Write an adjudication as a csv to fill in, with all answers so far, or take the answers from that csv if it is
    there; return the lines to print."""
    if path.suffix.lower() != ".csv":
        raise ToolError(f"--adjudicate {path}: write lab, or the name of a csv.")
    folder, corpus = _asked(request)
    review = _review(pairs(corpus), folder, annotator, seed, files)
    review.read(path) if path.is_file() else write_csv(path, review.table().reset_index())
    return ["{:,} of {:,} disagreements are settled. Fill in the last column of:".format(*review.progress), str(path)]


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


def aggregate_to(path: Path, before: Corpus, given: pd.DataFrame, settled: pd.DataFrame, *, seed: int = 0) -> list[str]:
    """Write the corpus that results from annotations of ``before`` to ``path``, completely or not at all, with the
    extra columns of ``before``; return sentences about it. ``settled``: a third person's annotations, which replace the
    others of their pairs.

    Pairs with fewer than two annotations wait. Raises `ToolError` if all of them do.
    """
    twice = given[given.groupby("item")["annotator"].transform("size") >= 2]
    if twice.empty:
        raise ToolError(
            f"no pair of {len(before):,} has two annotations ({len(given):,} annotations in all): let a second "
            "annotator review them, under another name (--annotator)."
        )
    final = [settled.assign(annotator=f"{SETTLED} {number}") for number in (1, 2)]  # a rule needs two annotations
    final = pd.concat([twice[~twice["item"].isin(settled["item"])], *final], ignore_index=True)
    corpus, rules = reviews.reviewed(pairs(before), final, seed=seed), reviews.aggregate(final, seed=seed)
    corpus["rule"] = corpus["rule"].mask(corpus["uid"].isin(settled["item"]), SETTLED)
    rules = rules["rule"].mask(rules["item"].isin(settled["item"]), SETTLED).value_counts()
    own = own_columns(before, {*corpus} - {*ORIGINS}).drop(columns=list(ORIGINS), errors="ignore")
    corpus = corpus.join(own.set_axis(before.uid), on="uid")
    write_jsonl(path, corpus)
    of_item = final[final["item"].isin(corpus["uid"])].groupby("item")["label"]
    told = {"pairs": len(before), "kept": len(corpus), "rules": rules.to_dict(), "agreed": agreement(twice, settled)}
    told |= {"differ": int((of_item.nunique() > 1).sum()), "more": int((of_item.size() > 2).sum())}
    template = jinja2.Template((HERE / "reviewed.md").read_text(encoding="utf-8"), trim_blocks=True)
    return template.render(told).splitlines()
