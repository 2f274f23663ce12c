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


def load_suite(
    name: str, data_dir: str | Path | None = None, limit: int | None = None, seed: int = 0
) -> tuple[dict[str, Corpus], dict[str, str]]:
    """The corpora of a suite by title, and the members that could not be loaded, title -> reason.

    limit  examples of each member, sampled with `seed`; None takes all
    """
    return load_each({each.title: (each.corpus, each.split) for each in members(name)}, data_dir, limit, seed)


def load_each(
    sets: Mapping[str, tuple[str, str]], data_dir: str | Path | None = None, limit: int | None = None, seed: int = 0
) -> tuple[dict[str, Corpus], dict[str, str]]:
    """Load title -> (corpus, split): those at hand by title, and the others, title -> reason. See `load_suite`."""
    folder = sources.data_folder(data_dir)
    loaded: dict[str, Corpus] = {}
    missing: dict[str, str] = {}
    for title, (corpus, split) in sets.items():
        try:
            loaded[title] = sources.load(corpus, split, data_dir, limit, seed)
        except CorpusError as error:
            # Reasons are printed in the book, where the folder of whoever ran the study says nothing.
            missing[title] = str(error).replace(f"{folder}/", "").replace(str(folder), "the data folder")
    return loaded, missing
