"""`nli-study`: run the notebooks, see how they stand, see what this machine lacks, build the book."""

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
import yaml

from nli_lib import paths
from nli_lib.corpora import check_enough, load
from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.study import doctor, schedule, standing
from nli_lib.study import manifest as records
from nli_lib.study.parameters import ParameterError, is_own_file
from nli_lib.study.schedule import Request
from nli_lib.study.status import stamps

# chapters that answer one question about one corpus, and the rows of each class that they need
AUDIT, AUDIT_ROWS = ("20_z_statistics", "21_z_filter"), 20
SUSPECTS = ("31_cross_scoring", "32_which_labels_are_wrong")
DEBIASED = ("22_generator", "23_debiased_generator", "24_three_datasets", "26_product_of_experts")

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

Scale = Annotated[str, typer.Option(help="the dial: smoke, small or full")]
CorpusName = Annotated[
    str | None, typer.Option("--corpus", help="a corpus by name, or a file; default: the scale's own")
]
Seeds = Annotated[int | None, typer.Option(help="how many seeds, 1 to 20; default: the scale's own")]
DataDir = Annotated[str | None, typer.Option(help="folder with the official corpus files; default: NLI_DATA")]
Columns = Annotated[
    str | None, typer.Option(help="your file's column names, as in premise=context,hypothesis=claim,label=verdict")
]
YourFile = Annotated[str, typer.Argument(help="your file (csv, tsv, txt, json, jsonl, parquet), or a corpus by name")]


def _pairs(option: str, pairs: list[str]) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    if wrong := ["".join(parts) for parts in split if not all(parts)]:
        raise ParameterError(f"{option} {wrong[0]}: write NAME=VALUE")
    return {name.strip(): value.strip() for name, _, value in split}


def _others(pairs: list[str]) -> dict[str, object]:
    """NAME=VALUE pairs, values read as YAML: 3 is a number, no is False, two is text."""
    try:
        return {name: yaml.safe_load(value) for name, value in _pairs("-p", pairs).items()}
    except yaml.YAMLError:
        raise ParameterError(f"-p {' '.join(pairs)}: cannot be read as a value (YAML)") from None


def _request(scale: str, corpus: str | None, data_dir: str | None = None, columns: str | None = None, **more: object):
    """A checked `Request`. Paths are made absolute: notebooks run in the project's folder, not in this one."""
    if corpus and is_own_file(corpus) and Path(corpus).expanduser().is_file():
        corpus = _absolute(corpus)
    if os.environ.get("NLI_DATA"):
        os.environ["NLI_DATA"] = _absolute(os.environ["NLI_DATA"])
    request = Request(
        scale=scale,
        corpus=corpus,
        data_dir=_absolute(data_dir) if data_dir else None,
        columns=_pairs("--columns", columns.split(",")) if columns else None,
        **more,
    )
    request.standard  # noqa: B018  raises ParameterError on wrong values
    return request


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().resolve())


@app.command()
def run(
    notebooks: Annotated[list[str] | None, typer.Argument(help="names, numbers (10) or paths; default: all")] = None,
    scale: Scale = "smoke",
    corpus: CorpusName = None,
    seeds: Seeds = None,
    data_dir: DataDir = None,
    columns: Columns = None,
    jobs: Annotated[int, typer.Option(min=1, help="notebooks at a time")] = 1,
    force: Annotated[bool, typer.Option("--force", help="run again what still stands")] = False,
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="NAME=VALUE, a notebook's own")
    ] = None,
) -> None:
    """Run notebooks; those whose record still stands are skipped. Exit code 1 when one did not finish."""
    others = _others(parameter or [])
    request = _request(scale, corpus, data_dir, columns, seeds=seeds, others=others, force=force)
    outcomes = schedule.run(notebooks or [], request, jobs)
    failed = [outcome.notebook for outcome in outcomes if outcome.state != records.FINISHED]
    ran = sum(outcome.ran for outcome in outcomes)
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} finished, {len(outcomes) - ran} of them found done")
    if failed:
        print(f"not finished: {', '.join(failed)}")
        raise typer.Exit(1)


@app.command()
def status(scale: Scale = "smoke", corpus: CorpusName = None) -> None:
    """How every notebook stands: done, stale and why, failed and why."""
    request = _request(scale, corpus)
    for name in schedule.order():
        record = records.read(name, request.study)
        state, reason = records.end_state(record)
        if state == records.FINISHED:
            notes = stamps(name, request)
            state, reason = ("stale", " ".join(notes)) if notes else (state, f"{record.get('seconds', 0):,.0f} s")
        print(f"{name:24} {state:12} {record.get('ended', '')[:10]:10}  {reason}".replace("\n", "\n    ").rstrip())


@app.command()
def confirm(
    before: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="folder with the smoke tables of the revision before")
    ],
    scale: Scale = "small",
) -> None:
    """Confirm recorded chapters for the code at hand where the smoke tables before and after are equal.

    For records that cost hours: each keeps the revision it was made at, and its page names the modules that changed.
    """
    for name, said in standing.confirm(_request(scale, None).scale, before).items():
        print(f"{name:24} {said}")


@app.command()
def check(scale: Scale = "smoke", corpus: CorpusName = None, data_dir: DataDir = None) -> None:
    """What this machine lacks for a scale, with the command that fetches it. Exit code 1 when it lacks something."""
    findings = doctor.examine(_request(scale, corpus, data_dir))
    for finding in findings:
        mark = "ok" if finding.ok else "LACKS" if finding.needed else "note"
        print(f"{mark:6} {finding.what:24} {finding.said}")
        if not finding.ok:
            print(f"{'':6} {'':24} -> {finding.fix}")
    if any(finding.needed and not finding.ok for finding in findings):
        raise typer.Exit(1)


@app.command("book")
def build(scale: Scale = "smoke", corpus: CorpusName = None) -> None:
    """Draw the chapters from the recorded tables and build book/_build/html. Needs neither torch nor data."""
    from nli_lib.study import book  # what draws and renders takes seconds to be imported

    print(book.build(_request(scale, corpus)))


@app.command()
def audit(corpus: YourFile, scale: Scale = "small", data_dir: DataDir = None, columns: Columns = None) -> None:
    """Which features predict the labels of a corpus, and what the z-filter would drop, as a small book of its own.

    Reads texts and labels and trains no network.
    """
    request = _request(scale, corpus, data_dir, columns)
    _look_at(request, AUDIT_ROWS, "an audit")
    _pages(AUDIT, request, {"21_z_filter": {"TRAIN": False}})


@app.command()
def suspects(
    corpus: YourFile,
    scale: Scale = "small",
    data_dir: DataDir = None,
    columns: Columns = None,
    folds: Annotated[int, typer.Option(min=2, max=100, help="models, each scoring what it did not train on")] = 10,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="times all of it; the list says how many agree")] = 1,
    decided: Annotated[
        Path | None, typer.Option(help="the list with your decisions (column decision: fix, keep, ambiguous)")
    ] = None,
) -> None:
    """Which labels of a corpus are probably wrong: a ranked list to review, and the pages that explain it.

    Trains one model for each fold, which scores what it has not seen, and one on all, for each seed. Stopped, it
    continues. Decisions in the list itself, or in a copy that --decided names, put the rest into an order learnt from
    them.
    """
    from nli_lib.study import decisions  # scikit-learn takes a second to be imported

    request = _request(scale, corpus, data_dir, columns, seeds=seeds)
    own = _look_at(request, max(AUDIT_ROWS, 2 * folds), f"{folds} folds")
    folder, taken = paths.EXPORTS / request.study, own is not None and "decision" in own.table
    if decided and taken:
        raise decisions.DecisionError(f"{corpus} has a column decision of its own: rename it there.")
    # read first, for the list may be written anew
    made = decisions.read_decisions(decided) if decided else None if taken else decisions.kept(folder)
    _pages(SUSPECTS, request, {SUSPECTS[0]: {"FOLDS": folds, "WAYS_PAIRS": 0}})
    if made is not None:
        print(decisions.reorder(folder, made))


@app.command()
def debias(
    corpus: YourFile,
    scale: Scale = "small",
    seeds: Seeds = None,
    data_dir: DataDir = None,
    columns: Columns = None,
) -> None:
    """Make debiased training sets of a corpus and try a debiased loss on it, as a small book of its own.

    Trains generators, filters what they write, and writes z-aug.jsonl, par-z.jsonl and seq-z.jsonl; then trains with a
    product of experts on a grid. That takes hours on a processor at scale small. Stopped, it continues.
    """
    request = _request(scale, corpus, data_dir, columns, seeds=seeds)
    _look_at(request, AUDIT_ROWS, "debiasing")
    _pages(DEBIASED, request, {})


@app.command()
def generate(
    corpus: Annotated[str, typer.Option("--corpus", help="your file, or a corpus by name, whose pairs are continued")],
    n: Annotated[
        int, typer.Option("--n", min=1, help="pairs that are wanted, at most; fewer where the filters drop more")
    ] = 500,
    model: Annotated[
        str | None, typer.Option(help="language model, as the server of OPENAI_BASE_URL calls it; default: the scale's")
    ] = None,
    scale: Scale = "small",
    data_dir: DataDir = None,
    columns: Columns = None,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="task models; the first one chooses")] = 2,
) -> None:
    """Grow new pairs in the manner of a corpus's most ambiguous ones, filter them, and leave a file to be reviewed.

    Trains a task model for each seed, and asks a language model. Stopped, it continues; nothing is asked for twice.
    """
    from nli_lib.study import generate as pairs  # what asks and filters takes seconds to be imported

    request = _request(scale, corpus, data_dir, columns, seeds=seeds)
    if own := _look_at(request, AUDIT_ROWS, "generating pairs"):
        pairs.check_labels(own)
    path = pairs.generate(request, n, model)
    print(path)
    print(f"People review these pairs with: nli-study review {shlex.quote(str(path))} --annotator NAME")


@app.command()
def review(
    corpus: YourFile,
    annotator: Annotated[str, typer.Option(help="who reviews; each annotator needs another name")] = "annotator-1",
    export: Annotated[str | None, typer.Option(help="write files for label-studio or mturk instead")] = None,
    aggregate: Annotated[bool, typer.Option("--aggregate", help="write the corpus that the answers leave")] = False,
    answers: Annotated[
        list[Path] | None, typer.Option(exists=True, help="with it: Label Studio json, MTurk csv")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="decides the order of the pairs, and what the rules draw")] = 0,
    data_dir: DataDir = None,
    columns: Columns = None,
) -> None:
    """Let people label, revise or discard the pairs of a file, in JupyterLab; then aggregate what they answered.

    Two annotators or more, each with a name. Stopped, the same command continues.
    """
    from nli_lib.study import review as people  # what reads and writes reviews takes seconds to be imported

    request = _request("small", corpus, data_dir, columns)
    if export or aggregate:
        people.write(request, export, answers or [], seed=seed)
    else:
        raise typer.Exit(people.open_lab(people.write_notebook(request, annotator, seed=seed)))


def _look_at(request: Request, rows_a_class: int, what: str) -> Corpus | None:
    """Read a user's own file before anything runs: say which rows are left out, and refuse what is too small."""
    if is_own_file(request.corpus):
        corpus = load(request.corpus, data_dir=request.data_dir, columns=request.columns)
        print(f"{len(corpus):,} pairs:", ", ".join(f"{name} {count:,}" for name, count in corpus.counts.items()))
        for sentence in corpus.warnings():
            print(sentence)
        check_enough(corpus, rows_a_class, what)
        return corpus
    return None


def _pages(chapters: tuple[str, ...], request: Request, others: dict[str, dict]) -> None:
    """Run some chapters on one corpus, name the lists they wrote, build the book. Exit code 1 when one fails."""
    from nli_lib.study import book

    folder = paths.EXPORTS / request.study
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.*")}
    ended = [end for name in chapters for end in schedule.run([name], replace(request, others=others.get(name, {})))]
    lists = [path for path in sorted(folder.glob("*.*")) if path.is_file()]
    for path in lists:
        old = path.stat().st_mtime_ns == before.get(path)
        print(f"{path} (from an earlier run: nothing has changed since)" if old else path)
    if (arrays := folder / "cleanlab.npz") in lists and chapters == SUSPECTS:
        print(_skill(arrays))
    print(book.build(request))
    if any(outcome.state != records.FINISHED for outcome in ended):
        raise typer.Exit(1)


def _skill(arrays: Path) -> str:
    """What the models of a list of suspects have learnt, in words."""
    from nli_lib.report.evaluate import skill

    with np.load(arrays) as found:
        labels, predicted = found["labels"], found["pred_probs"].argmax(axis=1)
    return skill(int((predicted == labels).sum()), len(labels), np.bincount(labels).max() / len(labels)).words


def main() -> None:
    """The command line with errors of ours as one clear message instead of a traceback."""
    try:
        app()
    except (UserError, OSError) as error:  # OSError: a disk that is full or cannot be written; it names the file
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
