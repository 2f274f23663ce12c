"""The commands of `nli-study` that take a user's corpus, and `main`, which also has those of the study."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from nli_lib.errors import StudyError
from nli_lib.study import cli
from nli_lib.study.cli import Model, Scale, Seeds, option, reads_a_file, request_of
from nli_lib.study.dial import read_scale
from nli_tools.own_corpus import look_at, refuse_unspaced, run_chapters, warn_of_smoke

YourFile = Annotated[str, typer.Argument(help="your file (csv, tsv, txt, json, jsonl, parquet), or a corpus by name")]
TestFile = option(str | None, "a test file, or a corpus by name (its test split), to check for leakage")
Epochs = option(int | None, "epochs of each training; default: those of the recipe", min=1, max=100)
Encoder = option(str | None, "encoder: an offline name, a hub id or a local folder; default: that of the scale")
Folds = option(int | None, "models, each scoring pairs that it did not see; default: 10; --fast: 5", min=2, max=100)
Embeddings = option(bool, "with --fast: linear models on frozen sentence embeddings; needs torch", "--embeddings")
Probs = option(Path | None, "your own out-of-sample probabilities (a table, npz, npy): trains nothing")
Decided = option(Path | None, "a csv with your decisions: the list itself, or the export of its page")
Levels = option(int, "the most pairs for which levels are measured; a larger corpus is sampled", min=100)
Added = option(list[str] | None, "NAME=FILE of pairs that could be added, such as generated ones; may be repeated")
Budget = option(int | None, "rows of each training set; default: a third of the pairs", min=24)
Share = option(float, "the share of them that is added or swapped in", min=0.01, max=0.49)
Croissant = option(bool, "write the numbers as croissant.json, metadata in Croissant's format, instead", "--croissant")
Tasks = option(bool, "also write the pairs, those not suspected and each level for lm-evaluation-harness", "--tasks")
Worth = option(float, "the smallest relevant difference, in points of accuracy", min=0.5, max=100)
Anyway = option(bool, "train even if such a difference would not be found", "--anyway")
KeepModels = option(bool, "keep the weights for another test file: about 90 MB per training", "--keep-models")
Wanted = option(int, "the most pairs that you want; fewer if the filters drop more", "--n", min=1)
Exports = option(list[Path] | None, "answers from outside: Label Studio json, MTurk csv", exists=True)
Settles = option(str | None, "settle what annotators disagree on: in lab (JupyterLab), or in a csv to fill in")


def spec_changes(epochs: int | None, encoder: str | None) -> dict[str, object]:
    """The requested fields of a `RunSpec`."""
    return {name: value for name, value in {"epochs": epochs, "model": encoder}.items() if value is not None}


@reads_a_file
def audit(
    corpus: YourFile,
    form: dict,
    test: TestFile = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="also write z_filter.csv: what is kept, and why")] = False,
) -> None:
    """Audit a corpus before any model is trained: one page, audit.html, and its numbers, audit.json.

    Repeated and contradictory pairs, leakage to a test file, the hypothesis alone, the features that predict labels,
    and what the z-filter would drop, compared with SNLI, MultiNLI and WANLI at the same size. Trains no network.
    """
    from nli_tools import audit_page  # measuring takes seconds to import

    print(*audit_page.run(request_of("small", corpus, **form), cli.absolute_file(test), pairs=pairs), sep="\n")


@reads_a_file
def card(corpus: YourFile, form: dict, test: TestFile = None, croissant: Croissant = False) -> None:
    """Write a section for a dataset card on the hub, card.md: the numbers of the audit, with intervals.

    Uses the audit of the same file if there is one; otherwise the file is audited first.
    """
    from nli_tools import audit_page

    request = request_of("small", corpus, **form)
    print(*audit_page.write_card(request, cli.absolute_file(test), croissant=croissant), sep="\n")


@reads_a_file
def suspects(
    corpus: YourFile,
    form: dict,
    scale: Scale = "small",
    folds: Folds = None,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="repetitions; the list says how many agree")] = 1,
    fast: Annotated[bool, typer.Option("--fast", help="linear models on words: minutes, no network")] = False,
    embeddings: Embeddings = False,
    probs: Probs = None,
    decided: Decided = None,
) -> None:
    """Find the labels of a corpus that are probably wrong: a ranked list, and a page to review it.

    For each seed, trains one model for each fold, which scores the pairs that it has not seen, and one on all pairs. If
    it is interrupted, the same command continues. --fast and --probs train no network and write separate lists. From
    decisions in the list itself, or in the csv given by --decided, a new order of the other suspects is learnt.
    """
    from nli_tools import suspects as lists  # scikit-learn takes a second to import

    asked = lists.Asked(folds=folds, seeds=seeds, fast=fast, embeddings=embeddings, probs=probs, decided=decided)
    request = request_of(scale, corpus, **form, seeds=seeds)
    for line in lists.run(request, asked):
        print(line)


@reads_a_file
def report(
    corpus: YourFile,
    form: dict,
    test: TestFile = None,
    scale: Scale = "small",
    seeds: Annotated[int, typer.Option(min=1, max=20, help="trainings of each model of the levels")] = 1,
    pairs: Levels = 10_000,
    epochs: Epochs = None,
    encoder: Encoder = None,
    fast: Annotated[bool, typer.Option("--fast", help="train no network and leave out the levels")] = False,
    tasks: Tasks = False,
) -> None:
    """Report on a corpus: audit, suspect labels, levels of difficulty and comparison, as report.html and report.json.

    Includes the comparison of `nli-study compare` if you have made one. Trains two models for the levels (--seeds
    times). Suspects come from an existing list, or else from linear models. If it is interrupted, the same command
    continues.
    """
    from nli_tools import report as reports

    options = {"fast": fast, "most": pairs, "seeds": seeds, "changes": spec_changes(epochs, encoder), "tasks": tasks}
    print(*reports.run(request_of(scale, corpus, **form), cli.absolute_file(test), **options), sep="\n")


@reads_a_file
def compare(
    corpus: YourFile,
    form: dict,
    test: Annotated[str, typer.Option("--test", help="a held-out file, or a corpus by name, to test the models on")],
    added: Added = None,
    budget: Budget = None,
    share: Share = 0.25,
    scale: Scale = "small",
    seeds: Annotated[int, typer.Option(min=2, max=20, help="trainings of each arm and of each random control")] = 5,
    folds: Annotated[int, typer.Option(min=2, max=100, help="models, each scoring pairs that it did not see")] = 5,
    epochs: Epochs = None,
    encoder: Encoder = None,
    worth: Worth = 10.0,
    anyway: Anyway = False,
    keep_models: KeepModels = False,
) -> None:
    """Compare what could be done to a corpus: each change with a random control, all with the same number of rows.

    The changes are filters and selections that need only the corpus, and your own files of pairs (--added), added or
    swapped in. A test file or a corpus that is too small to show anything is refused before anything is trained. Takes
    hours on a CPU. If it is interrupted, the same command continues.
    """
    from nli_tools import compare as comparisons

    request = request_of(scale, corpus, **form)
    given = cli.named_values("--added", added or [], "FILE")
    files = {name: cli.absolute_file(file) for name, file in given.items()}
    how = {"budget": budget, "share": share, "seeds": seeds, "folds": folds, "worth": worth / 100, "anyway": anyway}
    plan = comparisons.Plan(**how, keep=keep_models, changes=spec_changes(epochs, encoder))
    print(*comparisons.run(request, cli.absolute_file(test), files, plan), sep="\n")


@reads_a_file
def debias(corpus: YourFile, form: dict, scale: Scale = "small", seeds: Seeds = None) -> None:
    """Make debiased training sets of a corpus and try a debiased loss on it, as a small separate book.

    Trains generators, filters what they write, and writes z-aug.jsonl, par-z.jsonl and seq-z.jsonl. Then it trains with
    a product of experts on a grid. This takes hours on a CPU at scale small. If it is interrupted, the same command
    continues.
    """
    request = request_of(scale, corpus, **form, seeds=seeds)
    if own := look_at(request, "debiasing"):
        refuse_unspaced(own, "the mask of the debiased generator needs words separated by spaces")
    chapters = ("22_generator", "23_debiased_generator", "24_three_datasets", "26_product_of_experts")
    run_chapters({chapter: {} for chapter in chapters}, request)


@reads_a_file
def generate(
    corpus: Annotated[str, typer.Option("--corpus", help="your file, or a corpus by name, whose pairs are examples")],
    form: dict,
    n: Wanted = 500,
    model: Model = None,
    scale: Scale = "small",
    seeds: Annotated[int, typer.Option(min=1, max=20, help="task models; the first one chooses the pairs")] = 2,
) -> None:
    """Generate new pairs like the most ambiguous ones of a corpus, filter them, and write a file to review.

    Trains a task model for each seed and asks a language model. If it is interrupted, the same command continues;
    nothing is asked for twice.
    """
    from nli_tools import generate as pairs  # what asks and filters takes seconds to be imported

    request = request_of(scale, corpus, **form, seeds=seeds).apart("generate")
    if own := look_at(request, "generating pairs"):
        pairs.check_labels(own)
    _say_review(request, pairs.generate(request, n, model))


@reads_a_file
def counterfactuals(
    corpus: YourFile,
    form: dict,
    n: Annotated[int, typer.Option("--n", min=1, help="the most pairs that you want")] = 300,
    model: Model = None,
    scale: Scale = "small",
    seeds: Annotated[int, typer.Option(min=1, max=20, help="data maps and teachers, one of each for each seed")] = 2,
) -> None:
    """Change premises of a corpus so that their pairs get another label, filter them, and write a file to review.

    Trains a model for the data map and a teacher for each seed, and asks a language model. If it is interrupted, the
    same command continues; nothing is asked for twice. A second file has what was dropped, with the reasons.
    """
    from nli_tools import generate as pairs  # what asks and filters takes seconds to be imported

    request = request_of(scale, corpus, **form, seeds=seeds).apart("counterfactuals")
    if own := look_at(request, "counterfactuals"):
        refuse_unspaced(own, "the parser that finds the spans reads only English")
        pairs.check_labels(own, read_scale(request.scale).disco.prompt)
    _say_review(request, *pairs.counterfactuals(request, n, model))


def _say_review(request: cli.Request, pairs: Path, *others: Path) -> None:
    print(pairs, *others, sep="\n")
    print(f"To review these pairs: nli-study review {shlex.quote(str(pairs))} --annotator NAME")
    warn_of_smoke(request)


@reads_a_file
def review(
    corpus: YourFile,
    form: dict,
    annotator: Annotated[str, typer.Option(help="who reviews; each annotator needs a different name")] = "annotator-1",
    export: Annotated[str | None, typer.Option(help="write files for label-studio or mturk instead")] = None,
    aggregate: Annotated[bool, typer.Option("--aggregate", help="write the corpus resulting from the answers")] = False,
    adjudicate: Settles = None,
    answers: Exports = None,
    seed: Annotated[int, typer.Option(min=0, help="decides the order of the pairs and all random choices")] = 0,
) -> None:
    """Let people label, revise or discard the pairs of a file in JupyterLab, then aggregate their answers.

    Needs two annotators or more, each with a name. If it is interrupted, the same command continues. With --adjudicate,
    a third annotator settles the labels on which two disagree, and does not see who gave which.
    """
    from nli_tools import review as people  # what reads and writes reviews takes seconds to be imported

    request = request_of("small", corpus, **form)
    if bool(export) + aggregate + bool(adjudicate) > 1 or (answers and not (aggregate or adjudicate)):
        raise StudyError("--export, --adjudicate and --aggregate are separate steps; --answers goes with the last two.")
    if adjudicate not in (None, "lab"):
        print(*people.adjudicate(request, annotator, answers or [], Path(adjudicate), seed=seed), sep="\n")
    elif export or aggregate:
        people.write(request, export, answers or [], seed=seed)
    else:
        given = (answers or []) if adjudicate else None
        raise typer.Exit(people.open_lab(people.write_notebook(request, annotator, seed=seed, answers=given)))


for command in (audit, card, suspects, report, compare, debias, generate, counterfactuals, review):
    cli.app.command()(command)
cli.WITHOUT_NOTEBOOKS |= {"audit", "card", "report", "compare"}
app, main = cli.app, cli.main
