"""`nli-study review`: people review the pairs of a file, in JupyterLab or elsewhere, and a corpus comes of it."""

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd

from nli_lib import paths
from nli_lib.agreement import kappa
from nli_lib.corpora import load
from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.labels import LABELS
from nli_lib.evaluate import own_columns, write_jsonl
from nli_lib.generate.annotations import ORIGINS, aggregate, reviewed
from nli_lib.generate.label_studio import read_export, write_tasks
from nli_lib.generate.mturk import read_results, write_hits
from nli_lib.generate.review import Review, ReviewError, annotations, pairs
from nli_lib.store import atomic
from nli_lib.study.schedule import Request

REVIEWED = "reviewed.jsonl"
TOOLS = {"label-studio": write_tasks, "mturk": write_hits}
WELCOME = """# A review

Run the next cell (Shift+Enter), click on the pair, and answer with the keys that its buttons name. Every answer is
written at once; close the page whenever you like, and run the cell again to go on."""
KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
INSTALL = "pip install -c constraints.txt -e '.[lab]', or make lab"


def write_notebook(request: Request, annotator: str, *, seed: int = 0) -> Path:
    """The notebook that shows one annotator's review of the file that was asked for; its path."""
    folder = folder_of(request)
    Review(pairs(_corpus(request)), folder, annotator, seed=seed)  # what is wrong is said here, and not in the notebook
    given = {"seed": seed, "data_dir": request.data_dir, **request.form}
    named = "".join(f"    {name}={value!r},\n" for name, value in given.items() if value is not None)
    call = f"review_widget(\n    {request.corpus!r},\n    {str(folder)!r},\n    {annotator!r},\n{named})"
    code = nbformat.v4.new_code_cell(f"from nli_lib.generate.widget import review_widget\n\n{call}", id="review")
    cells = [nbformat.v4.new_markdown_cell(WELCOME, id="welcome"), code]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    path = folder / f"review.{annotator}.ipynb"
    with atomic(path) as draft:
        nbformat.write(notebook, draft)
    print(f"Answers are written to {folder}.")
    return path


def open_lab(notebook: Path) -> int:
    """Open a notebook in JupyterLab, and wait until that ends; its exit code."""
    for module in ("jupyterlab", "anywidget"):
        if importlib.util.find_spec(module) is None:
            raise ReviewError(f"{module} is not installed, and the review is shown with it: {INSTALL}.")
    return subprocess.run([sys.executable, "-m", "jupyterlab", str(notebook)], check=False).returncode


def write(request: Request, tool: str | None, files: Sequence[Path], *, seed: int = 0) -> None:
    """Write the files that ``tool`` (one of `TOOLS`) imports or, where that is None, the corpus that all answers leave:
    those in the folder, and those in ``files``. Prints what was done and the paths."""
    folder, corpus = folder_of(request), _corpus(request)
    queue = pairs(corpus)
    if tool not in (None, *TOOLS):
        raise ReviewError(f"--export {tool}: write {' or '.join(TOOLS)}.")
    if tool:
        written = TOOLS[tool](folder, queue, seed=seed)
    else:
        written = [folder / REVIEWED]
        print(*aggregate_to(*written, corpus, collect(queue, folder, files), seed=seed), sep="\n")
    print(*written, sep="\n")


def folder_of(request: Request) -> Path:
    """Where the answers of a review lie."""
    return paths.EXPORTS / request.study / "review"


def _corpus(request: Request) -> Corpus:
    corpus = load(request.corpus, data_dir=request.data_dir, **request.form)
    if corpus.classes != LABELS:
        raise ReviewError(
            f"{request.corpus}: a review asks for one of {', '.join(LABELS)}, and the file has the labels "
            f"{', '.join(corpus.classes)}."
        )
    return corpus


def collect(queue: pd.DataFrame, folder: Path, files: Sequence[Path]) -> pd.DataFrame:
    """All annotations of ``queue``: answers in ``folder``, exports of Label Studio (.json), results of MTurk (.csv).

    Raises `ReviewError` where a file is neither.
    """
    ending = {file: file.suffix.lower() for file in files}
    if wrong := [file for file in files if ending[file] not in (".json", ".csv")]:
        raise ReviewError(f"{wrong[0]} is neither an export of Label Studio (.json) nor a results csv of MTurk (.csv).")
    parts = [annotations(folder), *(read_export(file, queue) for file in files if ending[file] == ".json")]
    results = [file for file in files if ending[file] == ".csv"]
    return pd.concat([*parts, read_results(results, queue)], ignore_index=True)


def aggregate_to(path: Path, before: Corpus, given: pd.DataFrame, *, seed: int = 0) -> list[str]:
    """Write the corpus that the annotations of another, ``before``, leave to ``path``, whole or not at all, with the
    columns that it brought itself; what was done, in sentences.

    Pairs with fewer than two annotations wait. Raises `ReviewError` if all of them do.
    """
    twice = given[given.groupby("item")["annotator"].transform("size") >= 2]
    if twice.empty:
        raise ReviewError(
            f"no pair of {len(before):,} has two annotations ({len(given):,} annotations in all): let a second "
            "annotator review them, under another name (--annotator)."
        )
    corpus, rules = reviewed(pairs(before), twice, seed=seed), aggregate(twice, seed=seed)["rule"].value_counts()
    own = own_columns(before, {*corpus} - {*ORIGINS}).drop(columns=list(ORIGINS), errors="ignore")
    corpus = corpus.join(own.set_axis(before.uid), on="uid")
    write_jsonl(path, corpus)
    said = [f"{rules.sum():,} of {len(before):,} pairs have two annotations; {len(corpus):,} of them are kept."]
    said += [f"{rule}: {count:,}" for rule, count in rules.items()]
    of_item = twice[twice["item"].isin(corpus["uid"])].groupby("item")["label"]
    if differ := int((of_item.nunique() > 1).sum()):
        said.append(
            f"In {differ:,} of those kept the annotators' labels differ; where the rule does not choose, one was drawn."
        )
    if more := int((of_item.size() > 2).sum()):
        said.append(f"{more:,} of those kept have more than two annotations, of which two were drawn.")
    agreed = kappa(twice)
    if np.isfinite(agreed.value):
        said.append(
            f"Cohen's kappa {agreed.value:.2f} [{agreed.low:.2f}, {agreed.high:.2f}] over the {agreed.n:,} pairs that "
            "both left as they were."
        )
    return said
