"""A user's corpus under a command: looked at before anything runs, and the chapters that answer a question about it."""

from collections.abc import Mapping
from dataclasses import replace

import typer

from nli_lib import paths
from nli_lib.corpora import check_enough, load
from nli_lib.corpora.corpus import Corpus
from nli_lib.study import manifest as records
from nli_lib.study import schedule
from nli_lib.study.dial import read_scale
from nli_lib.study.parameters import is_own_file
from nli_lib.study.schedule import Request

ROWS = 20  # of each class, the fewest that a command looks at


def look_at(request: Request, what: str, rows_a_class: int = ROWS) -> Corpus | None:
    """Read a user's own file before anything runs: say which rows are left out, and refuse what is too small.

    None for a corpus by name. Raises `CorpusError`.
    """
    if not is_own_file(request.corpus):
        return None
    corpus = load(request.corpus, data_dir=request.data_dir, columns=request.columns)
    print(f"{len(corpus):,} pairs:", ", ".join(f"{name} {count:,}" for name, count in corpus.counts.items()))
    for sentence in corpus.warnings():
        print(sentence)
    check_enough(corpus, rows_a_class, what)
    return corpus


def named_corpus(request: Request) -> Corpus:
    """A corpus by name, the split that the study trains on."""
    dial = read_scale(request.scale)
    split = dial.train_split if request.corpus == dial.corpus else "train"
    return load(request.corpus, split, data_dir=request.data_dir)


def run_chapters(chapters: Mapping[str, dict[str, object]], request: Request) -> None:
    """Run chapters, each with its own parameters, on one corpus, name the files they wrote, and build the book.

    Raises `typer.Exit` with code 1 when a chapter fails.
    """
    from nli_lib.study import book  # what draws and renders takes seconds to be imported

    folder = paths.EXPORTS / request.study
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.*")}
    ended = [end for name, own in chapters.items() for end in schedule.run([name], replace(request, others=own))]
    for path in sorted(path for path in folder.glob("*.*") if path.is_file()):
        old = path.stat().st_mtime_ns == before.get(path)
        print(f"{path} (from an earlier run: nothing has changed since)" if old else path)
    print(book.build(request))
    warn_of_smoke(request)
    if any(outcome.state != records.FINISHED for outcome in ended):
        raise typer.Exit(1)


def warn_of_smoke(request: Request) -> None:
    """Say at scale smoke that a part of the corpus was read, and that the results say nothing about it."""
    from nli_lib.study import book

    if request.scale == "smoke":
        print(book.worth(request))
