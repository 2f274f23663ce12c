"""`nli-study`: run the notebooks, see how they stand, see what this machine lacks, build the book."""

import io
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
import yaml

from nli_lib import paths
from nli_lib.corpora import check_enough, load
from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import UserError
from nli_lib.study import carried, doctor, schedule, standing
from nli_lib.study import manifest as records
from nli_lib.study.dial import read_scale
from nli_lib.study.parameters import ParameterError, is_own_file
from nli_lib.study.schedule import Request
from nli_lib.study.status import stamps

# chapters that answer one question about one corpus, and the rows of each class that they need
AUDIT_ROWS = 20
SUSPECTS = ("31_cross_scoring", "32_which_labels_are_wrong")
DEBIASED = ("22_generator", "23_debiased_generator", "24_three_datasets", "26_product_of_experts")

# commands that need neither notebooks nor book
WITHOUT_NOTEBOOKS = ("audit", "card", "report", "compare")

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
Model = Annotated[
    str | None, typer.Option(help="language model, as the server of OPENAI_BASE_URL calls it; default: the scale's")
]
TestFile = Annotated[
    str | None,
    typer.Option("--test", help="a test file, or a corpus by name (its test split), that should share nothing with it"),
]
Epochs = Annotated[int | None, typer.Option(min=1, max=100, help="of each training; default: the recipe's")]
Encoder = Annotated[
    str | None, typer.Option(help="encoder: an offline name, a hub id or a local folder; default: the scale's")
]


def _changes(epochs: int | None, encoder: str | None) -> dict[str, object]:
    """Fields of a `RunSpec` that were asked for."""
    return {name: value for name, value in {"epochs": epochs, "model": encoder}.items() if value is not None}


def _pairs(option: str, pairs: list[str]) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    if wrong := ["".join(parts) for parts in split if not all(parts)]:
        raise ParameterError(f"{option} {wrong[0]}: write NAME=VALUE")
    names = [name.strip() for name, _, _ in split]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ParameterError(f"{option}: {twice[0]} is named twice")
    return {name: value.strip() for name, (_, _, value) in zip(names, split, strict=True)}


def _columns(given: str | None) -> dict[str, str] | None:
    columns = _pairs("--columns", given.split(",")) if given else None
    if given and len(set(columns.values())) < len(columns):
        raise ParameterError(f"--columns {given}: one column stands for two")
    return columns


def _others(pairs: list[str]) -> dict[str, object]:
    """NAME=VALUE pairs, values read as YAML: 3 is a number, no is False, two is text."""
    try:
        return {name: yaml.safe_load(value) for name, value in _pairs("-p", pairs).items()}
    except yaml.YAMLError:
        raise ParameterError(f"-p {' '.join(pairs)}: cannot be read as a value (YAML)") from None


def _request(scale: str, corpus: str | None, data_dir: str | None = None, columns: str | None = None, **more: object):
    """A checked `Request`. Paths are made absolute: notebooks run in the project's folder, not in this one."""
    corpus = _absolute_file(corpus)
    if os.environ.get("NLI_DATA"):
        os.environ["NLI_DATA"] = _absolute(os.environ["NLI_DATA"])
    request = Request(
        scale=scale,
        corpus=corpus,
        data_dir=_absolute(data_dir) if data_dir else None,
        columns=_columns(columns),
        **more,
    )
    request.standard  # noqa: B018  raises ParameterError on wrong values
    return request


def _absolute_file(name: str | None) -> str | None:
    """A file's path made absolute; a corpus by name, and a file that lies elsewhere, as they are."""
    return _absolute(name) if name and is_own_file(name) and Path(name).expanduser().is_file() else name


def _absolute(path: str) -> str:
    # a link is not followed: its own name says what kind of file it is
    return os.path.normpath(Path(path).expanduser().absolute())


def _version(wanted: bool) -> None:
    if wanted:
        print(f"nli-quality-study {carried.version()}")
        raise typer.Exit()


@app.callback()
def before(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="say it and end")
    ] = False,
) -> None:
    if context.invoked_subcommand not in WITHOUT_NOTEBOOKS:
        carried.unpack()


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
def audit(
    corpus: YourFile,
    test: TestFile = None,
    data_dir: DataDir = None,
    columns: Columns = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="write z_filter.csv as well: which pairs the z-filter keeps, and why")
    ] = False,
) -> None:
    """What a corpus gives away before any model is trained: one page, audit.html, and its numbers, audit.json.

    Repeated and contradictory pairs, leakage to a test file, the hypothesis alone, the features that predict labels,
    and what the z-filter would drop, beside SNLI, MultiNLI and WANLI at the same size. Trains no network.
    """
    from nli_lib.study import audit as audits  # what measures takes seconds to be imported

    for path in audits.run(_request("small", corpus, data_dir, columns), _absolute_file(test), pairs=pairs):
        print(path)


@app.command()
def card(corpus: YourFile, test: TestFile = None, data_dir: DataDir = None, columns: Columns = None) -> None:
    """A section for a dataset card on the hub, card.md: the numbers of the audit, with intervals.

    Taken from the audit of the same file where there is one; else the file is audited first.
    """
    from nli_lib.study import audit as audits

    path = audits.write_card(_request("small", corpus, data_dir, columns), _absolute_file(test))
    print(path.read_text(encoding="utf-8"))
    print(path)


@app.command()
def suspects(
    corpus: YourFile,
    scale: Scale = "small",
    data_dir: DataDir = None,
    columns: Columns = None,
    folds: Annotated[
        int | None,
        typer.Option(min=2, max=100, help="models, each scoring what it did not train on; default: 10, fast: 5"),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="times all of it; the list says how many agree")] = 1,
    fast: Annotated[bool, typer.Option("--fast", help="linear models on words: minutes, and no network")] = False,
    embeddings: Annotated[
        bool, typer.Option("--embeddings", help="with --fast: on frozen sentence embeddings; needs torch")
    ] = False,
    probs: Annotated[
        Path | None, typer.Option(help="your own out-of-sample probabilities (npz, csv): trains nothing")
    ] = None,
    decided: Annotated[
        Path | None, typer.Option(help="a csv with your decisions: the list, or what its page exports")
    ] = None,
) -> None:
    """Which labels of a corpus are probably wrong: a ranked list to review, and the page to work through it.

    Trains one model for each fold, which scores what it has not seen, and one on all, for each seed. Stopped, it
    continues. --fast and --probs train no network and leave a list of their own. Decisions in the list itself, or in a
    csv that --decided names, put the rest into an order learnt from them.
    """
    from nli_lib.study import decisions, suspects  # scikit-learn takes a second to be imported

    if (fast or probs) and (seeds > 1 or (fast and probs)):
        raise ParameterError("--fast and --probs stand alone: they take neither each other nor --seeds.")
    if embeddings and not fast:
        raise ParameterError("--embeddings goes with --fast.")
    request = _request(scale, corpus, data_dir, columns, seeds=seeds)
    count = folds or (suspects.FAST_FOLDS if fast else suspects.TRAINED_FOLDS)
    needed = 2 if probs else max(AUDIT_ROWS, 2 * count)
    own = _look_at(request, needed, "suspects" if probs else f"{count} folds")
    part = "embeddings" if embeddings else "fast" if fast else "probs" if probs else ""
    folder = paths.EXPORTS / request.study / part
    taken = own is not None and "decision" in own.table
    if decided and taken:
        raise decisions.DecisionError(f"{corpus} has a column decision of its own: rename it there.")
    # read first, for the list may be written anew
    classes = own.classes if own else None
    made = None if taken else decisions.kept(folder, classes)
    if decided:
        made = decisions.joined(made, decisions.read_decisions(decided, classes))
    how = f"Each label was scored by one of {count} trained models that did not see it."
    if fast or probs:
        scored = own or _named_corpus(request)
        how = suspects.score(scored, folder, folds=count, embeddings=embeddings, probs=probs, columns=request.columns)
        for path in (folder / name for name in ("suspects.csv", "suspects.jsonl", "cleanlab.npz")):
            print(path)
    else:
        _pages(SUSPECTS, request, {SUSPECTS[0]: {"FOLDS": count, "WAYS_PAIRS": 0}})
    names = tuple(own.table) if own else ()
    suspects.set_apart(folder, names)
    if made is not None:
        print(decisions.reorder(folder, made))
    again = ["nli-study", "suspects", str(corpus), *(["--columns", columns] if columns else [])]
    again += (
        ["--fast"] * fast
        + ["--embeddings"] * embeddings
        + (["--probs", str(probs)] if probs else [])
        + ["--decided", "decisions.csv"]
    )
    command = f"The same for the whole list: {shlex.join(again)}"
    told = {"how": how, "command": command, "decided": made is not None}
    said = suspects.finish(folder, Path(corpus).name, own=names, **told)
    print(*said or [], sep="\n")


@app.command()
def report(
    corpus: YourFile,
    test: TestFile = None,
    scale: Scale = "small",
    data_dir: DataDir = None,
    columns: Columns = None,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="trainings of each model of the levels")] = 1,
    pairs: Annotated[
        int, typer.Option(min=100, help="pairs whose levels are measured, at most: a larger corpus is sampled")
    ] = 10_000,
    epochs: Epochs = None,
    encoder: Encoder = None,
    fast: Annotated[bool, typer.Option("--fast", help="train no network: the levels are left out")] = False,
) -> None:
    """Audit, suspect labels, levels of difficulty and comparison of a corpus: one page, report.html, and report.json.

    The comparison is that of `nli-study compare`, where one was made. Trains two models for the levels (--seeds times);
    suspects come from the list that is at hand, else from linear models. Stopped, it continues.
    """
    from nli_lib.study import report as reports

    request = _request(scale, corpus, data_dir, columns)
    changes = _changes(epochs, encoder)
    options = {"fast": fast, "most": pairs, "seeds": seeds, "changes": changes}
    for path in reports.run(request, _absolute_file(test), **options):
        print(path)


@app.command()
def compare(
    corpus: YourFile,
    test: Annotated[str, typer.Option("--test", help="a held-out file, or a corpus by name, that judges the models")],
    added: Annotated[
        list[str] | None,
        typer.Option("--added", help="NAME=FILE of pairs that could be added, such as generated ones; may be repeated"),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(min=24, help="rows of each training set; default: a third of the pairs")
    ] = None,
    share: Annotated[
        float, typer.Option(min=0.01, max=0.49, help="of them, those that are added or swapped in")
    ] = 0.25,
    scale: Scale = "small",
    data_dir: DataDir = None,
    columns: Columns = None,
    seeds: Annotated[int, typer.Option(min=2, max=20, help="trainings of each arm and of each random twin")] = 5,
    folds: Annotated[int, typer.Option(min=2, max=100, help="models that score what they did not see")] = 5,
    epochs: Epochs = None,
    encoder: Encoder = None,
    worth: Annotated[
        float, typer.Option(min=0.5, max=100, help="the smallest difference worth knowing of, in points of accuracy")
    ] = 10.0,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="train even where no such difference would be found")
    ] = False,
    keep_models: Annotated[
        bool, typer.Option("--keep-models", help="keep the weights, for another test file: about 90 MB a training")
    ] = False,
) -> None:
    """What, if anything, to do to a corpus: interventions beside their random twins, all with equally many rows.

    Filters and selections that need nothing but the corpus, and your own files of pairs (--added) added and swapped in.
    A test file or a corpus that is too small to show anything is refused before anything is trained. Trains for hours
    on a processor. Stopped, it continues.
    """
    from nli_lib.study import compare as comparisons

    request = _request(scale, corpus, data_dir, columns)
    files = {name: _absolute_file(file) for name, file in _pairs("--added", added or []).items()}
    how = {"budget": budget, "share": share, "seeds": seeds, "folds": folds, "worth": worth / 100, "anyway": anyway}
    plan = comparisons.Plan(**how, keep=keep_models, changes=_changes(epochs, encoder))
    for path in comparisons.run(request, _absolute_file(test), files, plan):
        print(path)


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
    model: Model = None,
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
    _warn_of_smoke(request)


@app.command()
def counterfactuals(
    corpus: YourFile,
    n: Annotated[int, typer.Option("--n", min=1, help="pairs that are wanted, at most")] = 300,
    model: Model = None,
    scale: Scale = "small",
    data_dir: DataDir = None,
    columns: Columns = None,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="data maps and teachers, one of each a seed")] = 2,
) -> None:
    """Change premises of a corpus so that their pairs get another label, filter them, and leave a file to be reviewed.

    Trains a model for the data map and a teacher for each seed, and asks a language model. Stopped, it continues;
    nothing is asked for twice. What was dropped stands in a second file, with the reasons.
    """
    from nli_lib.study import counterfactuals as pairs  # what asks and filters takes seconds to be imported
    from nli_lib.study.dial import read_scale

    request = _request(scale, corpus, data_dir, columns, seeds=seeds)
    if own := _look_at(request, AUDIT_ROWS, "counterfactuals"):
        pairs.check_labels(own, read_scale(request.scale).disco.prompt)
    kept, dropped = pairs.counterfactuals(request, n, model)
    print(f"{kept}\n{dropped}")
    print(f"People review these pairs with: nli-study review {shlex.quote(str(kept))} --annotator NAME")
    _warn_of_smoke(request)


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
    if (export and aggregate) or (answers and not aggregate):
        raise ParameterError("--export and --aggregate are two steps, and --answers goes with --aggregate.")
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


def _warn_of_smoke(request: Request) -> None:
    """Say at scale smoke that a part of the corpus was read, and that the results say nothing about it."""
    from nli_lib.study import book

    if request.scale == "smoke":
        print(book.worth(request))


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
    print(book.build(request))
    _warn_of_smoke(request)
    if any(outcome.state != records.FINISHED for outcome in ended):
        raise typer.Exit(1)


def _named_corpus(request: Request) -> Corpus:
    """A corpus by name, the split that the study trains on."""
    dial = read_scale(request.scale)
    split = dial.train_split if request.corpus == dial.corpus else "train"
    return load(request.corpus, split, data_dir=request.data_dir)


def main() -> None:
    """The command line with errors of ours as one clear message instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a console that does not know a letter
    try:
        app()
    except (UserError, OSError) as error:  # OSError: a disk that is full or cannot be written; it names the file
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
