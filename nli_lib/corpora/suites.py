"""Suites (suites.yaml): named lists of evaluation sets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.load import sources


class Member(NamedTuple):
    """One evaluation set of a suite: corpus and split as for `load`, and its name in tables and figures."""

    corpus: str
    split: str
    title: str


_LISTS = yaml.safe_load(Path(__file__).with_name("suites.yaml").read_text(encoding="utf-8"))
SUITES = {name: tuple(Member(*member) for member in members) for name, members in _LISTS.items()}


def members(name: str) -> tuple[Member, ...]:
    """The members of a suite; an unknown name is a `CorpusError` that lists the known ones."""
    if name not in SUITES:
        raise CorpusError(f'suite="{name}" is not one of {", ".join(SUITES)}.')
    return SUITES[name]


def suite_for(corpus: str) -> str:
    """The suite to test a model trained on this corpus on: the corpus's own, where there is one, else SNLI's."""
    return corpus if corpus in SUITES else "snli"


def load_each(
    sets: Mapping[str, tuple[str, str]] | str, data_dir: str | Path | None = None, limit: int | None = None
) -> tuple[dict[str, Corpus], dict[str, str]]:
    """Corpora by title, and those that could not be loaded, title -> reason.

    sets   title -> (corpus, split), or the name of a suite
    limit  examples of each, sampled with seed 0; None takes all
    """
    if isinstance(sets, str):
        sets = {each.title: (each.corpus, each.split) for each in members(sets)}
    folder = sources.data_folder(data_dir)
    loaded, missing = {}, {}
    for title, (corpus, split) in sets.items():
        try:
            loaded[title] = sources.load(corpus, split, data_dir, limit)
        except CorpusError as error:
            # Reasons are printed in the book, where the folder of whoever ran the study says nothing.
            missing[title] = str(error).replace(f"{folder}/", "").replace(str(folder), "the data folder")
    return loaded, missing
