"""Sources: `load` reads a corpus by name, or a user's own file by path: from a local folder, then from the hub."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from nli_lib import paths
from nli_lib.corpora.corpus import MANY, Corpus, CorpusError, NotAtHandError, concat
from nli_lib.corpora.load import adapters, hub, reading
from nli_lib.corpora.load.catalogue import SOURCES, Source
from nli_lib.corpora.load.rows import Rows, build

if TYPE_CHECKING:
    from datasets import Dataset

PLANTED, PLANTED_SIZE = "planted", 2_000
# File names that say nothing about the corpus count only in a folder that bears its name.
_GENERIC = frozenset({"train", "dev", "test", "validation", "dataset"})
# Called with every corpus that `load` returns: a study writes them into its record.
OBSERVERS: list[Callable[[Corpus], None]] = []


def load(
    name: str,
    split: str = "train",
    data_dir: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    *,
    columns: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    encoding: str | None = None,
    orientation: str = "evidence",
) -> Corpus:
    """A corpus by name, or a user's own csv, tsv, txt, json, jsonl or parquet file (gzipped too) by path.

    name         one of `names()`, or a path
    split        the corpus's own split name ("validation_matched", "test_r3", "revised_combined/test"); "dev" and
                 "validation" mean the same. For a user's file it is only the word in the column `split`.
    data_dir     the folder of local files; by default the environment's NLI_DATA, then data/raw of the project.
                 Official file names are found in it directly, in the corpus's folder, or as ``<corpus>_<file>``,
                 gzipped or not.
    limit        a uniform sample of so many examples without replacement, in file order; None takes all (of the
                 planted corpus, which is made to measure: 2,000)
    seed         of the sample, and of the planted corpus
    columns      a user's file: the library's column name -> the file's, see `nli_lib.corpora.load.adapters.own`
    labels       a user's file: what its labels are, as in {"0": "entailment", "1": "neutral", "2": "contradiction"}
    encoding     a user's file that is not UTF-8, as in "cp1252"
    orientation  FEVER: "evidence" (the premise is the evidence) or "hub" (the premise is the claim, as the hub has it)

    Order: local official file, a local sample of the split (`Corpus.source` says so), the hub at the catalogue's
    revision (the commit read stands in `Corpus.source`), else `CorpusError` with the file names wanted. Rows that
    cannot be used are counted by reason in `Corpus.skipped`; of a user's file, `Corpus.left_out` is printed.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1):
        raise CorpusError(f"limit={limit!r} must be a whole number of examples, 1 or more, or None for all.")
    if encoding:
        try:
            "".encode(encoding)
        except (LookupError, ValueError):
            raise CorpusError(
                f'encoding="{encoding}" is not known; usual ones are cp1252, latin-1, utf-16-le.'
            ) from None
    known = str(name).lower()
    if known == PLANTED:
        from nli_lib.corpora import planted

        corpus = planted.make_split(split, PLANTED_SIZE if limit is None else int(limit), seed)
    elif known not in SOURCES:
        corpus = _own_file(str(name), split, data_folder(data_dir), columns, labels, encoding)
    elif columns or labels or encoding:
        raise CorpusError(
            f"columns=, labels= and encoding= are for a user's own file; {known} is read in its official format."
        )
    else:
        source = SOURCES[known]
        options = {"orientation": orientation} if known == "fever" else {}
        corpus = _official(known, source, _split_name(known, source, split), data_folder(data_dir), options)
    if limit is not None and limit < len(corpus):
        chosen = np.sort(np.random.default_rng(seed).choice(len(corpus), int(limit), replace=False))
        source = f"{corpus.source}, {limit:,} of {len(corpus):,} examples, seed {seed}"
        corpus = replace(corpus[chosen], source=source)
    for observe in OBSERVERS:
        observe(corpus)
    return corpus


def in_memory(
    data: Dataset | pd.DataFrame,
    name: str | None,
    split: str | None,
    columns: Mapping[str, str] | None,
    labels: Mapping[str, str] | None,
) -> Corpus:
    """A user's own rows that come from no file; see `Corpus.from_dataset`."""
    if isinstance(data, dict):
        raise CorpusError(f"a dataset with the splits {', '.join(data)}: choose one, as in dataset['train'].")
    rows = reading.from_dataset(data, name or "dataset")
    if split is None and not isinstance(data, pd.DataFrame):
        split = str(data.split or "") or None
    given = {"corpus": name, "split": split}
    for column, default in (("corpus", "dataset"), ("split", "train")):
        said = rows.table[column].unique() if column in rows.table else ()
        given[column] = given[column] or (str(said[0]) if len(said) == 1 else default)
        if list(said) == [given[column]]:
            rows = replace(rows, table=rows.table.drop(columns=column))
    return _own(adapters.own(rows, columns, labels), *given.values(), f"a {type(data).__name__}")


def _own(rows: Rows, name: str, split: str, source: str) -> Corpus:
    """The Corpus of a user's own rows; rows that cannot be used are not passed over in silence."""
    corpus = build(rows, name=name, split=split, source=source, own=True)
    if corpus.skipped:
        many = sum(corpus.skipped.values()) > MANY * corpus.rows_read
        print(f"WARNING: a good part of {source} cannot be used." if many else f"{source}:", corpus.left_out)
    return corpus


def names() -> tuple[str, ...]:
    """The corpora that `load` knows by name."""
    return (*SOURCES, PLANTED)


def data_folder(data_dir: str | Path | None = None) -> Path | None:
    """The folder of local corpora: `data_dir`, else the environment's NLI_DATA, else data/raw, else None."""
    given = data_dir or os.environ.get("NLI_DATA")
    if not given:
        raw = paths.HOME / "data" / "raw"
        return raw if raw.is_dir() else None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        origin = "data_dir" if data_dir else "the environment variable NLI_DATA"
        raise CorpusError(f"{folder}: {origin} is not a folder.")
    return folder


def lacking(folder: Path | None) -> str:
    """How a sentence begins that names the files which `data_folder` should hold and does not."""
    return f"{folder} does not hold" if folder else "set NLI_DATA, or pass data_dir, to a folder that holds"


def _split_name(name: str, source: Source, split: str) -> str:
    spellings = (split, split.replace("dev", "validation"), split.replace("validation", "dev"))
    found = next((spelling for spelling in spellings if spelling in source.splits), None)
    if found is None:
        raise CorpusError(f'{name}: split="{split}" is not one of {", ".join(source.splits)}.')
    return found


def _own_file(
    name: str,
    split: str,
    folder: Path | None,
    columns: dict[str, str] | None,
    labels: dict[str, str] | None,
    encoding: str | None,
) -> Corpus:
    path = Path(name).expanduser()
    if not reading.kind(path) and not path.is_file():
        close = get_close_matches(name.lower(), names(), n=1)
        hint = f' Did you mean "{close[0]}"?' if close else ""
        endings = ", ".join(reading.SUFFIXES)
        raise CorpusError(f'"{name}" is neither a corpus ({", ".join(names())}) nor a file ({endings}, .gz).{hint}')
    if not path.exists() and folder is not None and (folder / path).exists():
        path = folder / path
    stem = path.name.removesuffix(".gz").rsplit(".", 1)[0]
    raw = reading.read(path, encoding=encoding, columns=columns or {})
    return _own(adapters.own(raw, columns, labels), stem, split, path.name)


def _official(name: str, source: Source, split: str, folder: Path | None, options: dict[str, str]) -> Corpus:
    entry = source.splits[split]
    if entry.parts:
        parts = [_official(name, source, part, folder, options) for part in entry.parts]
        whole = concat(parts, name=name, split=split)
        return replace(whole, table=whole.table.assign(split=split))
    path, note = _find(name, source, split, folder)
    if path is not None:
        raw, where = reading.read(path, quoted=source.quoted), f"{path.relative_to(folder)}{note}"
    else:
        raw, where = _from_hub(name, source, split, folder)
    rows = adapters.adapt(name, source, raw, split, **options)
    return build(rows, name=name, split=split, source=where)


def _find(name: str, source: Source, split: str, folder: Path | None) -> tuple[Path | None, str]:
    """The first file of the split that is there, and a note where it is only a sample."""
    entry = source.splits[split]
    named = folder is not None and folder.name in {part for known in source.folders for part in known.split("/")}
    for file in (*entry.files, *entry.samples) if folder else ():
        places = [f"{known}/{file}" for known in source.folders]
        if named or "/" in file or Path(file).stem not in _GENERIC:
            places.append(file)
        for place in (*places, f"{name}_{file.replace('/', '_')}"):
            for path in (folder / place, folder / f"{place}.gz"):
                if path.is_file():
                    return path, f" (a sample of {split})" if file in entry.samples else ""
    return None, ""


def _from_hub(name: str, source: Source, split: str, folder: Path | None) -> tuple[Rows, str]:
    """The rows of the split on the hub and where they are from; errors name the local files that would do."""
    entry = source.splits[split]
    files = " or ".join(f"{source.folders[0]}/{file}" for file in entry.files)
    wanted = f"{name} {split}: {lacking(folder)} {files} (.gz too)."
    if source.hub is None or entry.hub is None:
        raise NotAtHandError(f"{wanted} The hub has no faithful copy.")
    try:
        raw, where = hub.read_hub(source.hub, source.config, entry.hub, source.revision)
    except CorpusError as error:
        raise NotAtHandError(f"{wanted} Then: {str(error).rstrip('.')}.") from None
    if source.revision == "main" and entry.rows not in (None, len(raw.table)):
        raise CorpusError(f"{where}: {len(raw.table):,} rows, but {name} {split} has {entry.rows:,}: not the same set.")
    return raw, f"hub {where} ({entry.hub})"
