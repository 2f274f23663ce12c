"""Suites (suites.yaml): named lists of evaluation sets."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.load import sources

# suite -> title of an evaluation set -> its corpus and split
SUITES: dict[str, dict[str, list[str]]] = yaml.safe_load(Path(__file__).with_name("suites.yaml").read_text("utf-8"))


def suite_for(corpus: str) -> str:
    """The suite to test a model trained on this corpus on: the corpus's own, where there is one, else SNLI's."""
    return corpus if corpus in SUITES else "snli"


def load_each(
    sets: Mapping[str, Sequence[str]] | str, data_dir: str | Path | None = None, limit: int | None = None
) -> tuple[dict[str, Corpus], dict[str, str]]:
    """Corpora by title, and those that could not be loaded, title -> reason.

    sets   title -> (corpus, split), or the name of a suite
    limit  examples of each, sampled with seed 0; None takes all
    """
    if isinstance(sets, str):
        if sets not in SUITES:
            raise CorpusError(f'suite="{sets}" is not one of {", ".join(SUITES)}.')
        sets = SUITES[sets]
    loaded, missing = {}, {}
    for title, (corpus, split) in sets.items():
        try:
            loaded[title] = sources.load(corpus, split, data_dir, limit)
        except CorpusError as error:
            missing[title] = without_folder(error, data_dir)
    return loaded, missing


def without_folder(error: CorpusError, data_dir: str | Path | None) -> str:
    """A reason for the book, where the folder of whoever ran the study says nothing."""
    folder = sources.data_folder(data_dir)
    return str(error).replace(f"{folder}/", "").replace(str(folder), "the data folder") if folder else str(error)
