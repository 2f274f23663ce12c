"""Catalogue (catalogue.yaml): each corpus's fields, the files of its splits, its place on the hub, its licence."""

from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import TypeAdapter

from nli_lib.corpora.labels import LABELS


@dataclass(frozen=True)
class Split:
    """One split: its official file names (any one will do, the first found is read), samples of it, and its size.

    files    relative to the corpus's folder; a trailing ".gz" is understood too
    samples  files known to hold a part of the split, read only where no official file is there
    hub      the split's name on the hub, None where the hub has none
    rows     rows of the official release, with those that have no gold label; None where no release states it
    parts    splits that this one joins
    """

    files: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    hub: str | None = None
    rows: int | None = None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """One corpus: how its files are read and where they may lie.

    fields    the library's column name -> the source's name for it, or several: the first that is there is taken
    extras    further columns to keep, where they are there
    classes   the classes of its labels
    names     label spellings of this source alone, see `nli_lib.corpora.labels.to_index`
    folders   names under which the corpus's folder is known; the first is the one messages ask for
    hub       repository id on the hub, None where no faithful copy is known
    revision  commit of that repository; "main" where it could not be confirmed when this was written: the commit that
              was then read is recorded in the corpus's `source`
    config    the repository's configuration
    quoted    how a tsv file's double quotes are read, see `nli_lib.corpora.load.reading.read`

    What these cannot say is done by the function of `nli_lib.corpora.load.adapters` that bears the corpus's name.
    """

    title: str
    licence: str
    folders: tuple[str, ...]
    fields: dict[str, str | list[str]]
    splits: dict[str, Split]
    extras: tuple[str, ...] = ()
    classes: tuple[str, ...] = LABELS
    names: dict[str, str] = field(default_factory=dict)
    hub: str | None = None
    revision: str | None = None
    config: str | None = None
    quoted: bool = False


_ENTRIES = yaml.safe_load(Path(__file__).with_name("catalogue.yaml").read_text(encoding="utf-8"))
SOURCES = TypeAdapter(dict[str, Source]).validate_python(_ENTRIES)
