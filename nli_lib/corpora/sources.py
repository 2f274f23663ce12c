"""Sources: corpora by name, or a user's file by path, from a local folder, then from the hub.

`load` reads both. The catalogue (catalogue.yaml) lists each corpus's fields, the files of its splits, its address on
the hub and its licence. An adapter does what the catalogue cannot express, from the source's columns to the library's;
labels stay names::

    load("snli", "validation")
    load("mine.csv", columns={"premise": "question", "hypothesis": "answer"})

Other files are read completely or not at all, because a missing row would change other people's results::

    rows = every_row(path, {"id": str, "votes": list[int]})  # the fields of each row and their types
    refuse(path, {"id": (twice, ids, "occurs twice")})  # conditions on all rows together
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from numpy.typing import ArrayLike
from pydantic import TypeAdapter, ValidationError, create_model

from nli_lib import paths
from nli_lib.corpora import reading
from nli_lib.corpora.corpus import LABELS, SUPPORTED_OR_REFUTED, Corpus, CorpusError, NotAtHandError, canonical, concat
from nli_lib.corpora.planted import make_split
from nli_lib.corpora.reading import Rows, build, build_own, own


@dataclass(frozen=True)
class Split:
    """One split: its official file names (the first that is found is read), samples of it, and its size.

    Attributes
    ----------
    files
        relative to the corpus's folder, also with ".gz" appended
    samples
        files that contain a part of the split, read only if there is no official file
    hub
        the split's name on the hub, None if it is not there
    rows
        rows of the official release, including those without a gold label; None if no release states it
    parts
        splits that this one combines
    """

    files: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    hub: str | None = None
    rows: int | None = None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """One corpus: the form of its files and their possible places.

    The function of `nli_lib.corpora.sources` with the corpus's name does the rest.

    Attributes
    ----------
    fields
        the library's column name -> the source's name, or several: the first that exists is used
    extras
        other columns to keep, if they exist
    classes
        the classes of its labels
    names
        label spellings for this source only, see `nli_lib.corpora.corpus.to_index`
    folders
        possible names of the corpus's folder; messages ask for the first
    hub
        repository id on the hub, None if no faithful copy is known
    revision
        commit of that repository; "main" if it was not confirmed when this was written: the corpus's `source` then
        records the commit that was read
    config
        configuration of the repository
    quoted
        treatment of double quotes in a tsv file, see `nli_lib.corpora.reading.read`
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


# ---------------------------------------------------------------- hub


_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")


def read_hub(repository: str, config: str | None, split: str, revision: str) -> tuple[Rows, str]:
    """Read the rows of a hub split; return them with "repository@commit". Class numbers become class names.

    Asks the hub once for the commit of `revision`, so that an unreachable hub is an error after seconds, not after the
    retries of a download. Raises `CorpusError` at once if the environment forbids the hub.
    """
    yes = ("1", "true", "yes", "on")
    if switch := next((name for name in _OFFLINE if os.environ.get(name, "").strip().lower() in yes), None):
        raise CorpusError(f"hub {repository}: not asked, because {switch} is set in the environment")
    try:
        import datasets
        from huggingface_hub import HfApi

        commit = HfApi().dataset_info(repository, revision=revision, timeout=10).sha or revision  # seconds
        dataset = datasets.load_dataset(repository, config, split=split, revision=commit)
    except Exception as error:  # network, hub and format errors have no common class
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise CorpusError(f"hub {repository}@{revision} ({split}): {line}") from error
    return reading.from_dataset(dataset, f"hub {repository}"), f"{repository}@{commit}"


# ---------------------------------------------------------------- whole


def every_row(path: Path, fields: Mapping[str, type]) -> list[dict]:
    """Read the rows of a file, each with these fields, name -> type. Raises `CorpusError`, naming file, row and field,
    if a value has another type."""
    read = reading.read(path)
    if read.skipped:
        raise CorpusError(f"{path}: some of its lines cannot be read ({dict(read.skipped)}). Fetch it again.")
    rows = TypeAdapter(list[create_model("Row", **{name: (kind, ...) for name, kind in fields.items()})])
    try:
        return rows.dump_python(rows.validate_python(read.table.to_dict("records"), strict=True))
    except ValidationError as error:
        (at, *field), said = error.errors()[0]["loc"], error.errors()[0]["msg"]
        field = ".".join(map(str, field))
        raise CorpusError(f"{path}: row {read.row[at] + 1}, field {field}: {said}. Fetch the file again.") from None


def refuse(path: Path, faults: Mapping[str, tuple[ArrayLike, Sequence, str]]) -> None:
    """Raise `CorpusError` for the first row with a fault. faults: field -> which rows have the fault (N,), the value to
    show for each row (N,), and the fault."""
    for name, (faulty, values, why) in faults.items():
        if np.any(faulty):
            row = int(np.argmax(faulty))
            raise CorpusError(f"{path}: row {row + 1}, field {name}: {values[row]} {why}. Fetch the file again.")


# ---------------------------------------------------------------- adapters


def anli(raw: Rows, rows: Rows, split: str) -> Rows:
    """Add the column `round` (1, 2 or 3), from the split's name."""
    return rows.assign(round=int(split[-1]))


def wanli(raw: Rows, rows: Rows, split: str) -> Rows:
    """Add the makers: GPT-3 Curie wrote the pairs; if genre is "generated_revised", a worker changed the text.

    pairID is the row number of the seed in MultiNLI train, not its pairID, so the seed's uid is not known.
    """
    revised = rows.table["genre"] == "generated_revised" if "genre" in rows.table else False
    return rows.assign(origin_corpus="mnli", maker=np.where(revised, "gpt-3-curie, worker", "gpt-3-curie"))


def fever(raw: Rows, rows: Rows, split: str) -> Rows:
    """Map FEVER to NLI: SUPPORTS is entailment, REFUTES contradiction, NOT ENOUGH INFO neutral.

    Three-way files have query (the claim) and context (the evidence); the two-way file has sentence1 (the evidence) and
    sentence2 (the claim), and no neutral class. The evidence is the premise and the claim the hypothesis.

    Notes
    -----
    *Departures*: the hub's copy, and the page that describes the format, call the claim the premise. A hypothesis-only
    model then sees only the evidence, which is why the difficulty paper finds no artefact in FEVER.
    """
    classes = SUPPORTED_OR_REFUTED if "sentence1" in raw.table else LABELS
    return replace(rows, classes=classes, note="evidence as premise, claim as hypothesis")


def sick(raw: Rows, rows: Rows, split: str) -> Rows:
    """Select the split: SICK.txt contains all splits, and SemEval_set names them."""
    if "SemEval_set" not in raw.table:
        return rows
    part = {"train": "TRAIN", "validation": "TRIAL", "test": "TEST"}[split]
    here = (raw.table["SemEval_set"] == part).to_numpy(dtype=bool)
    return replace(rows, table=rows.table[here].reset_index(drop=True), row=rows.row[here])


def cad(raw: Rows, rows: Rows, split: str) -> Rows:
    """Add ids to Human-CAD: the rows of the revised folders are in the order of their originals in original/<split>.

    revised_combined has four revisions of each original, revised_premise and revised_hypothesis two, each written by a
    worker for its label. all_combined has another order, so its origins are not known.
    """
    folder, part = split.split("/")
    if (each := {"revised_premise": 2, "revised_hypothesis": 2, "revised_combined": 4}.get(folder)) is None:
        return rows
    origin = f"cad-original/{part}-" + pd.Series(rows.row // each).astype(str)
    intended = rows.table["label"].map(canonical)
    return rows.assign(origin_uid=origin, origin_corpus="cad", maker="worker", intended_label=intended)


def chaosnli(raw: Rows, rows: Rows, split: str) -> Rows:
    """Add the 100 new labels of each example of ChaosNLI; label is their majority, uid the pairID of SNLI or MultiNLI.

    Extras: n_entailment, n_neutral, n_contradiction (counts of the 100 labels), entropy (bits, as in the file),
    majority, old_label (the original gold label, by name), annotator_labels (the original five) and source.
    """
    table = rows.table.rename(columns={"old_labels": "annotator_labels"})
    inner = [example if isinstance(example, dict) else {} for example in table["premise"]]
    counts = table.pop("label_count") if "label_count" in table else pd.Series([None] * len(table), dtype=object)
    for row, three in zip(rows.row, counts, strict=True):
        whole = isinstance(three, list) and all(type(count) is int and count >= 0 for count in three)
        if not whole or len(three) != len(LABELS) or not sum(three):
            fault = f"row {row + 1}, field 'label_count': not three counts but {three!r}"
            raise CorpusError(f"{rows.where}: {fault}. Fetch the file again.")
    for name in ("premise", "hypothesis", "source"):
        table[name] = pd.Series([example.get(name) for example in inner], dtype=object)
    table[[f"n_{name}" for name in LABELS]] = np.array(counts.tolist(), dtype=np.int64).reshape(-1, len(LABELS))
    table["majority"] = table["label"].map(canonical)
    if "old_label" in table:
        table["old_label"] = table["old_label"].map(canonical)
    return replace(rows, table=table)


def stress(raw: Rows, rows: Rows, split: str) -> Rows:
    """Add the origins: all kinds except antonym and numerical change one side of a pair of MultiNLI dev and keep its
    pairID."""
    if split.split("/")[0] in ("antonym", "numerical"):
        return rows.assign(maker="rule")
    known = {"origin_uid": rows.table["pairID"]} if "pairID" in rows.table else {}
    return rows.assign(**known, origin_corpus="mnli", maker="rule", intended_label=rows.table["label"].map(canonical))


def disco(raw: Rows, rows: Rows, split: str) -> Rows:
    """Read DISCO's releases: the counterfactual (new_premise, new_label), written by GPT-3 for its label.

    The original is a pair of SNLI without its uid, so its text and label are kept: origin_premise (the hypothesis is
    the same), origin_label.
    """
    intended = rows.table["label"].map(canonical)
    return rows.assign(origin_corpus="snli", maker="text-davinci-002", intended_label=intended)


SPECIAL = {adapter.__name__: adapter for adapter in (anli, wanli, fever, sick, cad, chaosnli, stress, disco)}


# ---------------------------------------------------------------- sources


Folder = str | Path | None  # of local corpora
# File names that do not identify the corpus count only in a folder with its name.
_GENERIC = frozenset({"train", "dev", "test", "validation", "dataset"})
# Called with every corpus that `load` returns, so that a study can record it.
OBSERVERS: list[Callable[[Corpus], None]] = []


def load(
    name: str, split: str = "train", data_dir: Folder = None, limit: int | None = None, seed: int = 0, **form: object
) -> Corpus:
    """Load a corpus by name, or a user's csv, tsv, txt, json, jsonl or parquet file (gzipped too) by path.

    Order: a local official file; a local sample of the split (`Corpus.source` says so); the hub at the catalogue's
    revision (`Corpus.source` has the commit); else `CorpusError` with the names of the files that would do. Rows that
    cannot be used are counted by reason in `Corpus.skipped`; for a user's file, `Corpus.left_out` is printed.

    Parameters
    ----------
    name
        one of `names()`, or a path
    split
        the corpus's name for the split ("validation_matched", "test_r3", "revised_combined/test"); "dev" and
        "validation" mean the same. For a user's file it is only the value of the column `split`.
    data_dir
        the folder of local files; by default the environment's NLI_DATA, then data/raw of the project. Official file
        names are found in it directly, in the corpus's folder, or as ``<corpus>_<file>``, gzipped or not.
    limit
        size of a uniform sample without replacement, in file order; None takes all (of the planted corpus, which is
        made to order: 2,000)
    seed
        seed of the sample, and of the planted corpus
    **form
        form of a user's file. columns: the library's column name -> the file's, see `nli_lib.corpora.reading.own`.
        labels: the meaning of its labels, as in {"0": "entailment", "1": "neutral", "2": "contradiction"}. encoding: if
        it is not UTF-8, as in "cp1252"

    Examples
    --------
    >>> from nli_lib.corpora import load
    >>> corpus = load("planted", "train", limit=100)
    >>> sorted(corpus.counts)
    ['contradiction', 'entailment', 'neutral']
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < 1):
        raise CorpusError(f"limit={limit!r} must be a whole number of examples, 1 or more, or None for all.")
    known = str(name).lower()
    if known == "planted":
        corpus = make_split(split, 2_000 if limit is None else int(limit), seed)
    elif known not in SOURCES:
        corpus = _own_file(str(name), split, data_folder(data_dir), **form)
    elif any(form.values()):
        official = f"{known} is read in its official format."
        raise CorpusError(f"columns=, labels= and encoding= are for a user's own file; {official}")
    else:
        spellings = (split, split.replace("dev", "validation"), split.replace("validation", "dev"))
        found = next((spelling for spelling in spellings if spelling in SOURCES[known].splits), None)
        if found is None:
            raise CorpusError(f'{known}: split="{split}" is not one of {", ".join(SOURCES[known].splits)}.')
        corpus = _official(known, found, data_folder(data_dir))
    corpus = sample(corpus, limit, seed)
    for observe in OBSERVERS:
        observe(corpus)
    return corpus


def sample(corpus: Corpus, limit: int | None, seed: int = 0) -> Corpus:
    """Draw ``limit`` examples without replacement, in the corpus's order; the whole corpus if it has no more.

    Examples
    --------
    >>> from nli_lib.corpora import load
    >>> from nli_lib.corpora.sources import sample
    >>> len(sample(load("planted", "train", limit=100), 10))
    10
    """
    if limit is None or limit >= len(corpus):
        return corpus
    chosen = np.sort(np.random.default_rng(seed).choice(len(corpus), int(limit), replace=False))
    return replace(corpus[chosen], source=f"{corpus.source}, {limit:,} of {len(corpus):,} examples, seed {seed}")


def from_dataset(data: object, name: str = "", split: str = "", **form: dict) -> Corpus:
    """Make a Corpus from a split of a Hugging Face dataset or a DataFrame; the inverse of `to_dataset`.

    Labels are names, or a `ClassLabel`, with numbers that become names; -1 is no gold label and counted in `skipped`.
    Column names, uids and unusable rows are treated as by `load` with a user's file.

    Parameters
    ----------
    name, split
        by default the value of the columns "corpus" and "split", if they have only one, else "dataset", "train"
    **form
        columns: the library's column name -> the dataset's; labels: the dataset's name of a label -> the library's

    Examples
    --------
    >>> import pandas as pd
    >>> from nli_lib.corpora import from_dataset
    >>> table = pd.DataFrame({"text_a": ["A dog runs."], "text_b": ["An animal moves."], "gold": ["entailment"]})
    >>> from_dataset(table, "mine").table[["premise", "hypothesis", "label"]]
           premise        hypothesis  label
    0  A dog runs.  An animal moves.      0
    """
    if isinstance(data, dict):
        raise CorpusError(f"a dataset with the splits {', '.join(data)}: choose one, as in dataset['train'].")
    rows = reading.from_dataset(data, name or "dataset")
    given = {"corpus": name, "split": split or ("" if isinstance(data, pd.DataFrame) else str(data.split or ""))}
    for column, default in (("corpus", "dataset"), ("split", "train")):
        said = rows.table[column].unique() if column in rows.table else ()
        given[column] = given[column] or (str(said[0]) if len(said) == 1 else default)
        if list(said) == [given[column]]:
            rows = replace(rows, table=rows.table.drop(columns=column))
    return build_own(own(rows, **form), *given.values(), f"a {type(data).__name__}")


def names() -> tuple[str, ...]:
    """Names of the corpora that `load` knows.

    Examples
    --------
    >>> from nli_lib.corpora import names
    >>> "snli" in names()
    True
    """
    return (*SOURCES, "planted")


def data_folder(data_dir: Folder = None) -> Path | None:
    """The folder of local corpora: `data_dir`, else the environment's NLI_DATA, else data/raw, else None."""
    if not (given := data_dir or os.environ.get("NLI_DATA")):
        raw = paths.HOME / "data" / "raw"
        return raw if raw.is_dir() else None
    if not (folder := Path(given).expanduser()).is_dir():
        origin = "data_dir" if data_dir else "the environment variable NLI_DATA"
        raise CorpusError(f"{folder}: {origin} is not a folder.")
    return folder


def lacking(folder: Path | None) -> str:
    """The beginning of a sentence that names files missing from `data_folder`."""
    return f"{folder} does not hold" if folder else "set NLI_DATA, or pass data_dir, to a folder that holds"


def _own_file(name: str, split: str, folder: Path | None, encoding: str | None = None, **form: object) -> Corpus:
    if encoding:
        try:
            "".encode(encoding)
        except (LookupError, ValueError):
            usual = "usual ones are cp1252, latin-1, utf-16-le"
            raise CorpusError(f'encoding="{encoding}" is not known; {usual}.') from None
    path = Path(name).expanduser()
    if not reading.kind(path) and not path.is_file():
        close = get_close_matches(name.lower(), names(), n=1)
        hint, endings = f' Did you mean "{close[0]}"?' if close else "", ", ".join(reading.SUFFIXES)
        raise CorpusError(f'"{name}" is neither a corpus ({", ".join(names())}) nor a file ({endings}, .gz).{hint}')
    if not path.exists() and folder is not None and (folder / path).exists():
        path = folder / path
    raw = reading.read(path, encoding=encoding, columns=form.get("columns") or {})
    return build_own(own(raw, **form), path.name.removesuffix(".gz").rsplit(".", 1)[0], split, path.name)


def _official(name: str, split: str, folder: Path | None) -> Corpus:
    source, parts = SOURCES[name], SOURCES[name].splits[split].parts
    if parts:
        whole = concat([_official(name, part, folder) for part in parts], name=name, split=split)
        return replace(whole, table=whole.table.assign(split=split))
    raw, where = (_from_folder(name, split, folder) if folder else None) or _from_hub(name, split, folder)
    rows = replace(raw.pick(source.fields, source.extras), classes=source.classes, names=source.names)
    rows = SPECIAL[name](raw, rows, split) if name in SPECIAL else rows
    return build(rows, name=name, split=split, source=where)


def _from_folder(name: str, split: str, folder: Path) -> tuple[Rows, str] | None:
    """Read the rows of the first file of the split that exists; return them with their source."""
    source, entry = SOURCES[name], SOURCES[name].splits[split]
    named = folder.name in {part for known in source.folders for part in known.split("/")}
    for file in (*entry.files, *entry.samples):
        places = [f"{known}/{file}" for known in source.folders]
        places += [file] if named or "/" in file or Path(file).stem not in _GENERIC else []
        places.append(f"{name}_{file.replace('/', '_')}")
        for path in (folder / f"{place}{zipped}" for place in places for zipped in ("", ".gz")):
            if path.is_file():
                note = f" (a sample of {split})" if file in entry.samples else ""
                return reading.read(path, quoted=source.quoted), f"{path.relative_to(folder)}{note}"
    return None


def _from_hub(name: str, split: str, folder: Path | None) -> tuple[Rows, str]:
    """Read the rows of the split on the hub; return them with their source. Errors name the local files that would
    do."""
    source, entry = SOURCES[name], SOURCES[name].splits[split]
    files = " or ".join(f"{source.folders[0]}/{file}" for file in entry.files)
    wanted = f"{name} {split}: {lacking(folder)} {files} (.gz too)."
    if source.hub is None or entry.hub is None:
        raise NotAtHandError(f"{wanted} The hub has no faithful copy.")
    try:
        raw, where = read_hub(source.hub, source.config, entry.hub, source.revision)
    except CorpusError as error:
        raise NotAtHandError(f"{wanted} Then: {str(error).rstrip('.')}.") from None
    if source.revision == "main" and entry.rows not in (None, len(raw.table)):
        raise CorpusError(f"{where}: {len(raw.table):,} rows, but {name} {split} has {entry.rows:,}: not the same set.")
    return raw, f"hub {where} ({entry.hub})"
