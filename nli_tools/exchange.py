"""Exchange with other tools: trainings, tables, and people's decisions on pairs.

Trainings by other code become `Dynamics`: logits with the names of their rows. Dataset cartography's folders contain
them too, and its published maps are tables::

    dynamics_epoch_0.jsonl, dynamics_epoch_1.jsonl, ...    {"guid": 17, "logits_epoch_0": [-0.4, 0.1, 0.9], "gold": 2}

A corpus can be converted, with its scores, to pandas, `datasets` and cleanlab's Datalab, and back.

A list of suspects (`evaluate.review_list`) can be exported to Label Studio or Argilla, and people's decisions imported.
In Label Studio, create a project with `label_studio.xml` (Settings, Labeling Interface, Code), import the tasks, label,
and export as JSON. For Argilla 2::

    settings = argilla.Settings.from_json("argilla_settings.json")
    dataset = argilla.Dataset("suspects", settings=settings).create()
    dataset.records.from_json("argilla_records.json")               # and after the review:
    dataset.records.to_json("reviewed.json")

Nothing here imports argilla, which requires a server. `nli_tools.review` is for the review of generated pairs, which
shows no labels; it shares `Answers` and the project's files.

References
----------
allenai/cartography, README and `cartography/selection/train_dy_filtering.py` at revision 3df3438: the format.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import jinja2
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike
from pyarrow import json as arrow
from pydantic import BaseModel, TypeAdapter, ValidationError

from nli_lib.corpora.corpus import LABELS, SIDES, Corpus
from nli_lib.corpora.sources import from_dataset
from nli_lib.evaluate import PLACED
from nli_lib.measure import dynamics
from nli_lib.select.selection import Selection
from nli_lib.store import atomic, reading, write_json
from nli_tools.own_corpus import ToolError, write
from nli_tools.suspects import FOUND, GIVEN

if TYPE_CHECKING:
    from cleanlab import Datalab
    from datasets import Dataset

File = str | Path
Classes = Sequence[str] | None


# ---------------------------------------------------------------- dynamics


@dataclass(frozen=True, eq=False)
class Dynamics:
    """N rows over E epochs.

    Attributes
    ----------
    logits
        (E, N, C), NaN if a row was not recorded in an epoch; the measures refuse such rows, `whole` leaves them out
    labels
        (N,) gold labels, indices into the last axis of `logits`
    uid
        (N,) names of the rows, text or whole numbers
    capture
        "train" for logits of the training pass, "eval" for those of a pass after each epoch, "" if the source does not
        say. The two give different maps
    """

    logits: np.ndarray
    labels: np.ndarray
    uid: np.ndarray
    capture: str = ""

    def __post_init__(self) -> None:
        shape = self.logits.shape
        if len(shape) != 3 or self.labels.shape != shape[1:2] or self.uid.shape != shape[1:2]:
            told = f"logits {shape}, labels {self.labels.shape}, uid {self.uid.shape}"
            raise ToolError(f"{told}: logits (epochs, rows, classes) with a label and a name for each row")
        names, counts = np.unique(self.uid, return_counts=True)
        if (counts > 1).any():
            name = names[counts > 1][0].item()
            raise ToolError(f"uid {name!r} names more than one row: each name must occur once")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: np.ndarray | Sequence[int]) -> Dynamics:
        """Select rows by a boolean mask (N,) or by positions."""
        return replace(self, logits=self.logits[:, rows], labels=self.labels[rows], uid=self.uid[rows])

    @property
    def missing(self) -> np.ndarray:
        """(N,) bool, True for rows missing in some epoch."""
        return np.isnan(self.logits).any(axis=(0, 2))

    def whole(self) -> Dynamics:
        """Keep the rows that every epoch has."""
        return self[~self.missing]

    def of(self, corpus: Corpus) -> Dynamics:
        """Put the rows into the order of a corpus, by uid (compared as text), so that positions match.

        Raises
        ------
        ToolError
            If the corpus has unrecorded rows or other labels; rows that the corpus does not have are left out.
        """
        at = pd.Index(self.uid.astype(str)).get_indexer(corpus.uid.astype(str))  # -1: missing
        if (at < 0).any():
            first, count = corpus.uid[np.argmax(at < 0)], (at < 0).sum()
            told = f"{count:,} of {len(corpus):,} rows of {corpus.name} were not recorded, the first {first!r}"
            raise ToolError(f"{told}: give the corpus that was trained on, or the part of it that was")
        wrong = np.flatnonzero(self.labels[at] != corpus.labels)
        if wrong.size:
            raise ToolError(
                f"row {corpus.uid[wrong[0]]!r} was recorded with label {self.labels[at[wrong[0]]]}, and {corpus.name} "
                f"says {corpus.labels[wrong[0]]} ({wrong.size:,} such rows): labels must mean {corpus.classes} in both"
            )
        return self[at]

    def save(self, path: File) -> None:
        """Write an npz file for `read_dynamics`, or for `numpy.load` without pickle."""
        with atomic(Path(path)) as draft, draft.open("wb") as file:
            np.savez(file, logits=self.logits, labels=self.labels, uid=self.uid, capture=self.capture)


def read_dynamics(path: File) -> Dynamics:
    """Read a file of `RecordLogits.save` or `Dynamics.save`: an npz of logits, labels, uid and capture."""
    with reading(Path(path), "give the npz file that `save` wrote"), np.load(path, allow_pickle=False) as stored:
        return Dynamics(stored["logits"], stored["labels"], stored["uid"], str(stored["capture"]))


def dynamics_of(run: object, labels: ArrayLike | None = None, uid: ArrayLike | None = None) -> Dynamics:
    """Convert a run, a recorder or logits (E, N, C) to `Dynamics`; rows without names are numbered."""
    if isinstance(run, Dynamics):
        return run
    logits = np.asarray(getattr(run, "logits", run))
    gold = np.asarray(getattr(run, "labels", None) if labels is None else labels)
    names = getattr(run, "uid", None) if uid is None else uid
    names = np.arange(logits.shape[1] if logits.ndim == 3 else 0) if names is None else np.asarray(names)
    if names.dtype == object:
        names = names.astype(str)
    told = getattr(run, "capture", "") or getattr(getattr(run, "spec", None), "capture", "")
    return Dynamics(logits, gold, names, str(told))


# ---------------------------------------------------------------- cartography


def read_cartography(folder: File, *, classes: Sequence[str] | None = None, id_field: str = "guid") -> Dynamics:
    """Read the training dynamics in a folder of `dynamics_epoch_*.jsonl`: logits (E, N, C) float64, labels and names
    (N,).

    A row may be missing in some epochs, as in the published sample, which has ten rows of each: see `Dynamics.missing`.
    Rows are ordered by first appearance. Cartography's logits come from the training pass. Rows that several processes
    repeat to fill their last batch are left out if they are equal, and counted.

    Parameters
    ----------
    classes
        the names of the classes in the file's order, if they are E, N, C: logits and labels are then put into this
        library's order. Cartography's MNLI has contradiction first and its SNLI entailment, which the files do not say.
        None: the order is not changed
    id_field
        field with the name of a row

    Raises
    ------
    ToolError
        For an invalid line, a missing epoch, a row that occurs twice in an epoch with different logits or changes its
        label, or logits of different lengths, naming the file and the row.
    """
    files, together = _epochs(Path(folder), id_field)

    def named(at: int) -> str:
        return f"{files[together['epoch'].iloc[at]]}: {id_field} {together['name'].tolist()[at]!r}"

    widths = together["logits"].str.len()
    if widths.nunique() > 1:
        raise ToolError(f"{folder}: rows have {widths.min()} to {widths.max()} logits: give one for each class")
    repeated = together.duplicated(["epoch", "name"])
    if repeated.any():
        same = together.assign(logits=together["logits"].map(tuple)).duplicated(["epoch", "name", "logits", "gold"])
        if (other := repeated & ~same).any():
            told = f"{named(int(np.argmax(other)))} appears in two rows with different contents"
            raise ToolError(f"{told}: leave one of them out")
        first = named(int(np.argmax(repeated)))
        print(f"{folder}: {repeated.sum():,} rows that repeat another row were left out, the first in {first}.")
        together = together[~repeated].reset_index(drop=True)
    row, names = pd.factorize(together["name"])
    labels = together.groupby(row, sort=False)["gold"].first().sort_index().to_numpy(np.int64)
    changed = np.flatnonzero(together["gold"].to_numpy() != labels[row])
    if changed.size:
        raise ToolError(f"{named(changed[0])} changes its gold label")
    width = int(widths.iloc[0])
    if ((labels < 0) | (labels >= width)).any():
        raise ToolError(f"{folder}: gold labels must be in 0..{width - 1}; leave out rows without one")
    logits = np.full((len(files), len(names), width), np.nan)
    logits[together["epoch"], row] = np.array(together["logits"].tolist())
    if classes is not None:  # for each of our classes, its position among theirs
        if sorted(classes) != sorted(LABELS) or width != len(LABELS):
            told = f"classes {', '.join(classes)} for {width} logits"
            raise ToolError(f"{told}: the three are {', '.join(LABELS)}")
        order = np.array([list(classes).index(name) for name in LABELS])
        logits, labels = logits[:, :, order], np.argsort(order)[labels]
    uid = np.asarray(names)
    return Dynamics(logits, labels, uid.astype(str) if uid.dtype == object else uid, "train")


def write_cartography(folder: File, run: object, **arrays: object) -> list[Path]:
    """Write `dynamics_epoch_*.jsonl` into a folder, which cartography reads as `training_dynamics/`; return the paths.

    The numbers are restored bit for bit. A row missing in an epoch is not written for it; cartography's reader needs
    every row in every epoch, see `Dynamics.whole`. It also takes every file of the folder for an epoch, so a folder
    with anything else raises `ToolError`.

    Parameters
    ----------
    run
        `Dynamics`, a recorder, a run of this library, or logits (E, N, C) with labels= (N,) and perhaps uid= (N,)
    """
    given, folder = dynamics_of(run, **arrays), Path(folder)
    paths = [folder / f"dynamics_epoch_{epoch}.jsonl" for epoch in range(len(given.logits))]
    other = sorted({path.name for path in folder.glob("*")} - {path.name for path in paths}) if folder.is_dir() else []
    if other:
        raise ToolError(f"{folder} holds {other[0]}, which cartography takes for an epoch: give an empty folder")
    gold, names = given.labels.tolist(), given.uid.tolist()
    for epoch, path in enumerate(paths):
        there, logits = ~np.isnan(given.logits[epoch]).any(axis=1), given.logits[epoch].tolist()
        field = f"logits_epoch_{epoch}"
        rows = ({"guid": names[at], field: logits[at], "gold": gold[at]} for at in np.flatnonzero(there))
        write(path, "".join(json.dumps(row) + "\n" for row in rows))
    return paths


def write_td_metrics(path: File, run: object, **arrays: object) -> pd.DataFrame:
    """Write cartography's `td_metrics_*.jsonl` for the rows that every epoch has, and return it: one row for each
    example.

    Columns guid, index (the position), threshold_closeness, confidence, variability, correctness and forgetfulness.
    *Departures* of these columns from our scores: correctness is a count of epochs, and forgetfulness is 1000 for a row
    that was never right.
    """
    given = dynamics_of(run, **arrays).whole()
    scores = dynamics.scores(given.logits, given.labels)
    count, confidence = np.rint(scores["correctness"] * len(given.logits)).astype(int), scores["confidence"]
    columns = {"guid": given.uid, "index": np.arange(len(given)), "threshold_closeness": confidence * (1 - confidence)}
    columns |= {"confidence": confidence, "variability": scores["variability"], "correctness": count}
    table = pd.DataFrame({**columns, "forgetfulness": np.where(count == 0, 1000, scores["forgetting"])})
    write(Path(path), "".join(json.dumps(row) + "\n" for row in table.to_dict("records")))
    return table


def read_coordinates(path: File) -> pd.DataFrame:
    """Read a published map (`data_map_coordinates/*.jsonl`): one row for each example, with unchanged columns.

    They are guid, index, confidence and variability (0-1), and correctness, a count of epochs.
    """
    table = _read(Path(path)).to_pandas()
    missing = {"guid", "confidence", "variability"} - set(table)
    if missing:
        raise ToolError(f"{path} has no {', '.join(sorted(missing))}: it is not a data map of cartography")
    return table


def _epochs(folder: Path, id_field: str) -> tuple[list[Path], pd.DataFrame]:
    """The files of all epochs in order, and their concatenated rows: name, logits, gold, epoch."""
    found = ((re.fullmatch(r"dynamics_epoch_(\d+)\.jsonl", path.name), path) for path in folder.glob("*"))
    there = {int(name[1]): path for name, path in found if name}
    if not there:
        raise ToolError(f"{folder} holds no dynamics_epoch_0.jsonl: give the folder training_dynamics")
    if missing := sorted(set(range(max(there) + 1)) - set(there)):
        raise ToolError(f"{folder} has no dynamics_epoch_{missing[0]}.jsonl: epochs count from 0 without a gap")
    tables = []
    for epoch, path in sorted(there.items()):
        table, fields = _read(path), [id_field, f"logits_epoch_{epoch}", "gold"]
        if missing := [field for field in fields if field not in table.column_names]:
            raise ToolError(f"{path} has no field {missing[0]!r}: its rows have {', '.join(table.column_names)}")
        for field in fields:
            if table[field].null_count:
                at = int(np.argmax(table[field].is_null().to_numpy(zero_copy_only=False)))
                raise ToolError(f"{path}, row {at}: {field} is missing")
        if not pa.types.is_integer(table["gold"].type):
            raise ToolError(f"{path}: gold is {table['gold'].type}, and must be a whole number")
        if not pa.types.is_list(table[fields[1]].type):
            raise ToolError(f"{path}: {fields[1]} must be a list of numbers")
        columns = (table[field].to_pylist() for field in fields)
        tables.append(pd.DataFrame(dict(zip(["name", "logits", "gold"], columns, strict=True))).assign(epoch=epoch))
    return [path for _, path in sorted(there.items())], pd.concat(tables, ignore_index=True)


def _read(path: Path) -> pa.Table:
    try:
        return arrow.read_json(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise ToolError(f"{path} cannot be read as one JSON object per line: {error}") from None


# ---------------------------------------------------------------- frames


def to_pandas(corpus: Corpus, selection: Selection | None = None, **scores: ArrayLike) -> pd.DataFrame:
    """Convert a corpus to a DataFrame: the corpus with names of labels, then kept and reason of a selection, then the
    scores, each (N,).

    A score may not have the name of an existing column.

    Examples
    --------
    >>> from nli_lib.corpora import load
    >>> from nli_tools import from_pandas, to_pandas
    >>> table = to_pandas(load("planted", "test", limit=30))
    >>> len(from_pandas(table)), table["label"].iloc[0] in ("entailment", "neutral", "contradiction")
    (30, True)
    """
    return _beside(corpus, selection, scores).assign(label=np.array(corpus.classes, dtype=object)[corpus.labels])


def to_dataset(corpus: Corpus, selection: Selection | None = None, **scores: ArrayLike) -> Dataset:
    """Convert a corpus to a Hugging Face dataset, like `to_pandas`, with labels as a `ClassLabel` in the order of the
    corpus's classes."""
    return replace(corpus, table=_beside(corpus, selection, scores)).to_dataset()


from_pandas = from_dataset  # takes a DataFrame or a Hugging Face dataset


def _beside(corpus: Corpus, selection: Selection | None, scores: Mapping[str, ArrayLike]) -> pd.DataFrame:
    found = {name: np.asarray(values) for name, values in scores.items()}
    if selection is not None:
        found = {"kept": selection.keep, "reason": selection.reason, **found}
    for name, values in found.items():
        if name in corpus.table:
            raise ToolError(f"{corpus.name} has a column {name!r}: give the score another name")
        if values.shape != (len(corpus),):
            raise ToolError(f"{name} has shape {values.shape} for {len(corpus):,} rows: give one value each")
    return corpus.table.assign(**found)


# ---------------------------------------------------------------- label issues


def datalab(
    corpus: Corpus, pred_probs: ArrayLike | None = None, *, features: ArrayLike | None = None, **options: Any
) -> Datalab:
    """Make a `cleanlab.Datalab` of the corpus and find its issues.

    Labels are passed as numbers: names would be sorted alphabetically, and the columns of the probabilities would then
    belong to other classes. For the same reason every class must occur. Raises `ToolError` if one does not, or if
    cleanlab is not installed.

    Parameters
    ----------
    pred_probs
        (N, C) out of sample, columns in the order of the corpus's classes: the softmax of `learn.predict.cross_score`,
        or `cleanlab.npz` of `nli-study suspects`
    features
        (N, D) embeddings, for near duplicates and outliers
    options
        go to `Datalab.find_issues`: issue_types={"label": {}}
    """
    try:
        from cleanlab import Datalab
    except ImportError:
        raise ToolError("cleanlab is not installed: pip install cleanlab datasets") from None
    given: dict[str, np.ndarray] = {}
    if pred_probs is not None:
        values, wanted = np.asarray(pred_probs, dtype=np.float64), (len(corpus), len(corpus.classes))
        if values.shape != wanted:
            raise ToolError(f"pred_probs have shape {values.shape}: {wanted} is needed, a row for each pair")
        wrong = ~((values >= 0).all(axis=1) & (np.abs(values.sum(axis=1) - 1) <= 1e-3))
        if wrong.any():
            raise ToolError(f"pred_probs of row {corpus.uid[wrong][0]!r} are not probabilities that add up to 1")
        if absent := [name for name, count in corpus.counts.items() if not count]:
            told = f"{corpus.name} has no row of {', '.join(absent)}"
            raise ToolError(f"{told}: cleanlab would mix up the columns")
        given["pred_probs"] = values
    if features is not None:
        given["features"] = np.asarray(features)
        if given["features"].ndim != 2 or len(given["features"]) != len(corpus):
            raise ToolError(f"features have shape {given['features'].shape} for {len(corpus):,} rows: (rows, D)")
    if not given:
        raise ToolError("give pred_probs, features, or both: there is nothing to check")
    table = {name: corpus.table[name].astype(str).tolist() for name in ("uid", "premise", "hypothesis")}
    lab = Datalab({**table, "label": corpus.labels.tolist()}, label_name="label", verbosity=0)
    lab.find_issues(**given, **options)
    return lab


def issues(lab: Datalab, corpus: Corpus) -> pd.DataFrame:
    """The results of a Datalab, N rows in the corpus's order: uid, texts, gold and predicted (names), and its columns.

    is_<kind>_issue marks the rows with an issue, <kind>_score is its severity (0-1, low = worse).
    """
    found = lab.get_issues().reset_index(drop=True)
    if len(found) != len(corpus):
        raise ToolError(f"the Datalab has {len(found):,} rows, {corpus.name} {len(corpus):,}: give its corpus")
    names = np.array(corpus.classes, dtype=object)
    table = corpus.table[["uid", "premise", "hypothesis"]].assign(gold=names[corpus.labels])
    if "is_label_issue" in found:
        table["predicted"] = names[lab.get_issues("label")["predicted_label"].to_numpy(np.int64)]
    return table.join(found)


# ---------------------------------------------------------------- answers


DISCARD = "discard"  # an answer in addition to the labels


class Answers:
    """Collected answers from other tools' files, one per person and pair. Rejected ones are counted by reason.

    Attributes
    ----------
    file
        the file, for messages
    names
        the possible answers
    """

    def __init__(self, file: object, names: Sequence[str]) -> None:
        self.file, self.names = file, names
        self._taken: dict[tuple[str, str], dict[str, object]] = {}
        self.left: dict[str, list[str]] = defaultdict(list)  # the places of rejected answers, by reason

    def label(self, annotator: str | None, labels: Sequence[object], where: str) -> str | None:
        """The label of an annotation; None if it has no valid one and is left out."""
        label = labels[0] if labels else None
        faults = {"no annotator": not annotator, "no label": not labels, "more than one label": len(labels) > 1}
        faults |= {f"label {label!r}, which is none of {', '.join(self.names)}": label not in self.names}
        if reason := next((reason for reason, found in faults.items() if found), None):
            self.left[reason].append(where)
        return None if reason else label

    def take(self, pair: str, row: dict[str, object], where: str) -> None:
        """Add a row with its annotator; two different answers of one person to a pair are both left out."""
        before = self._taken.setdefault((pair, row["annotator"]), row)
        if before != row:  # the first is left out together with the second
            self.left["two different answers of one annotator"] += [where] * (2 if before else 1)
            self._taken[pair, row["annotator"]] = {}
        elif before is not row:
            self.left["a repeated answer"].append(where)

    def rows(self) -> list[dict[str, object]]:
        """Return all collected rows in order; print what was left out, and raise `ToolError` if that is everything."""
        rows = [row for row in self._taken.values() if row]
        told = "; ".join(f"{why} ({len(places):,}, the first in {places[0]})" for why, places in self.left.items())
        if told and not rows:
            raise ToolError(f"{self.file}: no answer can be used: {told}.")
        if told:
            print(f"{self.file}: left out: {told}.")
        return rows

    def exported(self, record: type[BaseModel], called: str, how: str) -> list[BaseModel]:
        """Read the records of the file, an export as JSON. Raises `ToolError`, naming the file, the record and the
        field, and ``how`` to make the export."""
        try:
            return TypeAdapter(list[record]).validate_json(Path(self.file).read_bytes())
        except OSError as reason:
            raise ToolError(f"{self.file} cannot be read ({reason.strerror}). {how}") from None
        except ValidationError as reason:
            first = reason.errors()[0]
            field = ".".join(map(str, first["loc"])) or "whole"
            raise ToolError(f"{self.file}: {called} and field {field}: {first['msg']}. {how}") from None


# ---------------------------------------------------------------- label studio: any project


class Value(BaseModel):
    """Choices or texts, depending on the kind of field."""

    choices: list[str] | str | None = None
    text: list[str] | str | None = None


class Result(BaseModel):
    """The value of one field of the configuration; a relation between two fields has none."""

    from_name: str | None = None
    value: Value = Value()


class Annotation(BaseModel):
    """One person's answer to a task."""

    completed_by: Any = None
    result: list[Result]
    was_cancelled: bool | None = False


class Task(BaseModel):
    """A pair with its annotations."""

    id: int | None = None
    data: dict[str, Any]
    annotations: list[Annotation]


def write_project(folder: File, configuration: str, tasks: list[dict], name: str) -> list[Path]:
    """Write a project's configuration, label_studio.xml, and its tasks under a name; return the two paths."""
    files = {"label_studio.xml": configuration, name: json.dumps(tasks, indent=1)}
    return [write(Path(folder, name), text) for name, text in files.items()]


def read_project(answers: Answers) -> Iterator[tuple[str, dict[str, Any], Iterator[tuple]]]:
    """For each task of an export: its place, its data, and the annotations with one label: annotator, label and the
    value of every field. A skipped task has none; those without one label are reported to ``answers``.

    Annotators keep Label Studio's numbers, because an export may contain names and e-mail addresses.
    """

    def labelled(annotations: list[Annotation], where: str) -> Iterator[tuple[str, str, dict[str, str]]]:
        for given in annotations:
            if given.was_cancelled:
                continue
            texts, labels = {}, []
            for result in given.result:
                if result.from_name is None:
                    answers.left["a relation"].append(where)
                said = result.value.choices or result.value.text or []
                said = [said] if isinstance(said, str) else said
                labels += said if result.from_name == "label" else []
                if said:
                    texts[result.from_name] = said[-1]
            by = given.completed_by.get("id") if isinstance(given.completed_by, dict) else given.completed_by
            annotator = f"label-studio-{by}" if isinstance(by, int) else None
            if label := answers.label(annotator, list(dict.fromkeys(labels)), where):
                yield annotator, label, texts

    for number, task in enumerate(answers.exported(Task, "task", "Export the project as JSON."), start=1):
        where = f"task {number}" if task.id is None else f"task {number} (id {task.id})"
        yield where, task.data, labelled(task.annotations, where)


# ---------------------------------------------------------------- label studio: a list of suspects


INTERFACE = Path(__file__).with_name("label_studio_suspects.xml")


def checked(suspects: pd.DataFrame, classes: Classes = None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Check a list; return it with the names of its classes: `classes`, or the three of this library, or those that
    occur.

    Raises
    ------
    ToolError
        If a column is missing, a uid occurs twice, or a label is not a class, naming the column or the row.
    """
    needed = ("uid", "premise", "hypothesis", "gold", "predicted")
    if missing := [column for column in needed if column not in suspects]:
        raise ToolError(f"the list has no column {', '.join(missing)}: give a table of `review_list`")
    if not len(suspects):
        raise ToolError("the list of suspects is empty: there is nothing to review")
    if (twice := suspects["uid"].duplicated()).any():
        raise ToolError(f"uid {suspects['uid'][twice].iloc[0]!r} appears in two rows of the list: list each pair once")
    occur = pd.unique(suspects[["gold", "predicted"]].to_numpy().ravel()).tolist()
    names = tuple(classes or (LABELS if set(occur) <= set(LABELS) else sorted(occur)))
    if other := [name for name in occur if name not in names]:
        raise ToolError(f"label {other[0]!r} is none of the classes {', '.join(names)}")
    if DISCARD in names:
        raise ToolError(f"a class is called {DISCARD!r}, which is also an answer to discard a pair: rename it")
    return suspects.reset_index(drop=True), names


def write_label_studio(
    folder: File, suspects: pd.DataFrame, *, classes: Classes = None, show_labels: bool = False, model: str = "suspects"
) -> list[Path]:
    """Write the project's configuration and its tasks, in the list's order, into a folder; return the two paths.

    Parameters
    ----------
    suspects
        a list from `evaluate.review_list`: uid, premise, hypothesis, gold and predicted (names). If it has p_gold, a
        prediction's score is 1 - p_gold, the model's probability of all other labels
    classes
        the choices; None: entailment, neutral, contradiction, or the two classes that occur
    show_labels
        True shows annotators the gold label and preselects the model's: faster, but it influences them
    model
        name of the source of the predictions

    Raises
    ------
    ToolError
        If the list is not valid.
    """
    table, names = checked(suspects, classes)
    tasks = []
    for row in table.to_dict("records"):
        task = {"data": {"uid": str(row["uid"]), "premise": row["premise"], "hypothesis": row["hypothesis"]}}
        if show_labels:
            choice = {"from_name": "label", "to_name": "hypothesis", "type": "choices"}
            guess = {"model_version": model, "result": [{**choice, "value": {"choices": [row["predicted"]]}}]}
            guess |= {"score": 1 - float(row["p_gold"])} if "p_gold" in table else {}
            task["data"]["gold"], task["predictions"] = row["gold"], [guess]
        tasks.append(task)
    interface = jinja2.Template(INTERFACE.read_text(encoding="utf-8"), trim_blocks=True, keep_trailing_newline=True)
    configuration = interface.render(choices=[*names, DISCARD], show_labels=show_labels, quoted=quoteattr)
    return write_project(folder, configuration, tasks, "label_studio_suspects.json")


def read_label_studio(path: File, suspects: pd.DataFrame, *, classes: Classes = None) -> pd.DataFrame:
    """Read the decisions in an export as JSON: columns uid, gold, annotator, label, discarded and note.

    label is a name, None for a discarded pair. One row for each annotation, in the export's order; a skipped task has
    none. Annotators keep Label Studio's numbers. Annotations without annotator or without one label, and second ones of
    the same annotator, are counted in a message. Raises `ToolError`, naming the file, the task and the field, or if no
    annotation is left.
    """

    def said(answers: Answers) -> Iterator[tuple]:
        for where, data, given in read_project(answers):
            uid = str(data.get("uid"))
            notes = ((annotator, label, texts.get("note", "")) for annotator, label, texts in given)
            yield where, uid, f"{where}, uid: {uid!r}", notes

    return _decisions(path, suspects, classes, said)


def _decisions(path: File, suspects: pd.DataFrame, classes: Classes, said: Callable[..., Iterable]) -> pd.DataFrame:
    """The decisions of a file. said: yields for each pair its place, its uid, its name in a message, and its answers
    (annotator, label, note)."""
    table, names = checked(suspects, classes)
    answers = Answers(path, (*names, DISCARD))
    known = {str(row["uid"]): {"uid": row["uid"], "gold": row["gold"]} for row in table.to_dict("records")}
    for where, uid, called, given in said(answers):
        if uid not in known:
            raise ToolError(f"{path}: {called} is not in the list. Is this the review of another list?")
        for annotator, label, note in given:
            discarded = label == DISCARD
            decision = {"label": None if discarded else label, "discarded": discarded, "note": note}
            answers.take(uid, {**known[uid], "annotator": annotator, **decision}, where)
    columns = ["uid", "gold", "annotator", "label", "discarded", "note"]
    return pd.DataFrame(answers.rows(), columns=columns).astype({"discarded": bool})


# ---------------------------------------------------------------- argilla: a list of suspects


SETTINGS = Path(__file__).with_name("argilla.json")  # without the choices and the metadata
# columns that reveal or suggest which label is wrong
HIDDEN = ("gold", "predicted", "kind", "gap", "p_gold", "pruned", *PLACED, "fold", *FOUND, *GIVEN)
KINDS = {"f": "float", "i": "integer", "u": "integer", "b": "terms"}


class Response(BaseModel):
    """One person's answer to a question."""

    value: Any = None
    user_id: str | None = None


class Record(BaseModel):
    """A pair with its answers, as written by `to_json`."""

    id: str | None = None
    responses: dict[str, list[Response]] | None = None


def write_argilla(
    folder: File, suspects: pd.DataFrame, *, classes: Classes = None, show_labels: bool = False, model: str = "suspects"
) -> list[Path]:
    """Write the settings and the records into a folder, in the list's order; return the two paths.

    Parameters
    ----------
    suspects
        a list from `evaluate.review_list`; its columns of numbers and short texts (gap, kind, p_gold) become metadata
        for filtering and sorting records
    classes
        the choices; None: entailment, neutral, contradiction, or the two classes that occur
    show_labels
        True shows annotators gold and predicted, the latter as a suggestion: faster, but it influences them. Otherwise
        these, and everything found or decided about a label, are metadata that only the owner of the dataset sees
    model
        name of the source of the suggestions
    """
    table, names = checked(suspects, classes)
    metadata = _metadata(table, show_labels)
    options = [{"text": name, "value": name} for name in (*names, DISCARD)]
    settings = json.loads(SETTINGS.read_text(encoding="utf-8")) | {"metadata": list(metadata.values())}
    settings["questions"][0]["settings"] |= {"options": options, "visible_options": max(3, len(options))}
    records = []
    for row in table.to_dict("records"):
        known = {name: row[name] for name in metadata if not pd.isna(row[name])}
        known = {name: str(value) if isinstance(value, bool) else value for name, value in known.items()}
        guess = {"label": {"value": row["predicted"], "score": None, "agent": model}} if show_labels else {}
        record = {"id": str(row["uid"]), "fields": {side: row[side] for side in SIDES}, "metadata": known}
        empty = {"responses": {}, "vectors": {}, "status": "pending", "_server_id": None}
        records.append({**record, "suggestions": guess, **empty})
    paths = [Path(folder, name) for name in ("argilla_settings.json", "argilla_records.json")]
    for path, content in zip(paths, (settings, records), strict=True):
        write_json(path, content)
    return paths


def _metadata(table: pd.DataFrame, show_labels: bool) -> dict[str, dict]:
    """Argilla's settings for the columns that can be metadata: numbers, or words that it lists as terms."""
    found = {}
    for name in table.columns.drop(["uid", *SIDES]):
        column = table[name]
        words = column.map(lambda value: isinstance(value, str)).all() and column.nunique() <= 50
        named = re.fullmatch(r"[a-z0-9_-]+", name)  # Argilla's rule for a name
        if named and (column.dtype.kind in KINDS or words):
            kind = KINDS.get(column.dtype.kind, "terms")
            limits = {"values": None} if kind == "terms" else {"min": None, "max": None}
            seen = {"visible_for_annotators": show_labels or name not in HIDDEN}
            about = {"id": None, "name": name, "title": name, "dataset_id": None, **seen}
            found[name] = {**about, "settings": {**seen, "type": kind, **limits}}
    return found


def read_argilla(path: File, suspects: pd.DataFrame, *, classes: Classes = None) -> pd.DataFrame:
    """Read the decisions in a file of `dataset.records.to_json`: columns uid, gold, annotator, label, discarded, note.

    One row for each response. Annotators keep Argilla's ids. Responses without user or without one label, and second
    ones of the same user, are counted in a message. Raises `ToolError`, naming the file, the record and the field, or
    if no response is left.
    """

    def labelled(answers: Answers, responses: dict[str, list[Response]], where: str) -> Iterator[tuple[str, str, str]]:
        notes = {each.user_id: str(each.value or "") for each in responses.get("note", [])}
        for given in responses.get("label", []):
            labels = given.value if isinstance(given.value, list) else [given.value] if given.value else []
            if label := answers.label(given.user_id, labels, where):
                yield f"argilla-{given.user_id}", label, notes.get(given.user_id, "")

    def said(answers: Answers) -> Iterator[tuple]:
        for record in answers.exported(Record, "record", "Write it with to_json."):
            where = f"record {record.id}"
            yield where, record.id, where, labelled(answers, record.responses or {}, where)

    return _decisions(path, suspects, classes, said)
