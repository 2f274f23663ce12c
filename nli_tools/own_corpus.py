"""A user's corpus under a command: read and looked at before anything runs, the chapters that answer a question about
it, and what was written about it before."""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psutil
import typer

from nli_lib import paths
from nli_lib.corpora import check_enough, load
from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.sources import SOURCES
from nli_lib.measure.features import UNSPACED, unspaced
from nli_lib.store import atomic
from nli_lib.study import runner, standing
from nli_lib.study.dial import is_own_file, own_path
from nli_lib.study.runner import Request, version

TIMES = 24  # memory that reading and an audit take, in sizes of the file, at most: benchmarks/own_corpus_sizes.py
MIN_ROWS = 20  # of each class, the fewest that a command looks at


def look_at(request: Request, what: str, rows_a_class: int = MIN_ROWS) -> Corpus | None:
    """Read a user's own file before anything runs: say which rows are left out, and refuse what is too small.

    None for a corpus by name. Raises `CorpusError`.
    """
    if not is_own_file(request.corpus):
        return None
    corpus = read(request.corpus, request)
    say(corpus)
    check_enough(corpus, rows_a_class, what)
    return corpus


def read(name: str, request: Request, split: str = "train") -> Corpus:
    """A corpus by name or a user's own file. Raises `CorpusError` for one that this machine's memory does not hold."""
    path = own_path(name, request.data_dir)
    size, free = path.stat().st_size if path else 0, psutil.virtual_memory().available
    if size * TIMES > free:
        raise CorpusError(
            f"{name}: a file of {size / 1e9:,.1f} GB takes about {size * TIMES / 1e9:,.0f} GB of memory here, and "
            f"{free / 1e9:,.1f} GB are free: take a part of it, drawn by premise."
        )
    try:
        form = request.form if name == request.corpus or is_own_file(name) else {}
        return load(name, split, data_dir=request.data_dir, **form)
    except MemoryError:
        raise CorpusError(f"{name}: too large to be read here at once: take a part of it, drawn by premise.") from None


def read_test(name: str, request: Request) -> Corpus:
    """The test file, with the column names of the corpus where it has them, else with its own; of a corpus by name its
    test split, else the first that it has to test on."""
    splits = () if is_own_file(name) else SOURCES[name].splits if name in SOURCES else ("test",)  # the planted one's
    held_out = [each for kind in ("test", "validation") for each in splits if each.startswith(kind)]
    split = next(iter([*held_out, *splits]), "train")
    try:
        return read(name, request, split)
    except CorpusError as error:
        if not request.columns:
            raise
        try:
            return read(name, replace(request, columns=None))
        except CorpusError:
            raise error from None


def say(corpus: Corpus) -> None:
    """Print how many pairs there are of each label, and what to know before any number."""
    print(f"{len(corpus):,} pairs:", ", ".join(f"{name} {count:,}" for name, count in corpus.counts.items()))
    for sentence in corpus.warnings():
        print(sentence)
    if has_unspaced(corpus):
        print(
            "Texts without blanks: characters and pairs of characters stand for words. The encoders, prompts and "
            "dictionaries of this study are English: believe no number that rests on them."
        )


def has_unspaced(corpus: Corpus) -> bool:
    """Whether one in a hundred hypotheses or more is written without blanks between words (`measure.features`)."""
    return bool(unspaced(corpus.hypothesis).mean() >= UNSPACED)


def refuse_unspaced(corpus: Corpus, what: str) -> None:
    """Raise `CorpusError` where a corpus is not parted into words by blanks. what: what needs that, in words."""
    if has_unspaced(corpus):
        raise CorpusError(
            f"{corpus.name}: texts without blanks between words; {what}. Audit and suspects --fast do not."
        )


def digest(name: str, request: Request) -> str | None:
    """sha256 (hex) of a user's own file; None for a corpus by name."""
    if (path := own_path(name, request.data_dir)) is None:
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run_chapters(chapters: Mapping[str, dict[str, object]], request: Request) -> None:
    """Run chapters, each with its own parameters, on one corpus, name the files they wrote, and build the book.

    Raises `typer.Exit` with code 1 when a chapter fails.
    """
    from nli_lib.study import book  # what draws and renders takes seconds to be imported

    folder = paths.EXPORTS / request.study
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.*")}
    ended = [end for name, own in chapters.items() for end in runner.run([name], replace(request, others=own))]
    for path in sorted(path for path in folder.glob("*.*") if path.is_file()):
        print(f"{path} (from an earlier run)" if path.stat().st_mtime_ns == before.get(path) else path)
    print(book.build(request))
    warn_of_smoke(request)
    if any(outcome.state != standing.FINISHED for outcome in ended):
        raise typer.Exit(1)


def warn_of_smoke(request: Request) -> None:
    """Say at scale smoke that a part of the corpus was read, and that the results say nothing about it."""
    from nli_lib.study import book

    if request.scale == "smoke":
        print(book.worth(request))


def recorded(path: Path, form: int, request: Request) -> dict | None:
    """The numbers that a command wrote about the corpus of a request as it is now, in the format ``form``; None where
    there are none that this version wrote."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        content = json.loads(path.read_text(encoding="utf-8"))
        same = content["format"] == form and content["version"] == version()
        same &= content["digest"] is not None and content["digest"] == digest(request.corpus, request)
        return content if same and all(content.get(name) == said for name, said in request.form.items()) else None
    return None


def write(path: Path, text: str) -> Path:
    """Write a text, whole or not at all; the path."""
    with atomic(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return path


def as_text(content: Mapping) -> str:
    """Numbers as the text of a json file."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
