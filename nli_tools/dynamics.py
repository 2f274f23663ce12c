"""Other people's objects and files: dynamics of their trainings, frames and datasets, cleanlab's Datalab.

Dynamics: the logits of a training that somebody else did, with the names of its rows; an npz file of them.

Dataset cartography's files: training dynamics in and out, its table of scores out, its published maps in::

    dynamics_epoch_0.jsonl, dynamics_epoch_1.jsonl, ...    {"guid": 17, "logits_epoch_0": [-0.4, 0.1, 0.9], "gold": 2}

Format: allenai/cartography, README and `cartography/selection/train_dy_filtering.py` at revision 3df3438.

A corpus as a DataFrame or a Hugging Face dataset with what was measured beside it, and back.

cleanlab's Datalab on a corpus, and what it found as a table beside the corpus.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike
from pyarrow import json as arrow

from nli_lib.corpora.corpus import LABELS, Corpus
from nli_lib.corpora.sources import from_dataset
from nli_lib.errors import UserError
from nli_lib.measure import dynamics
from nli_lib.select.selection import Selection
from nli_lib.store import atomic, reading

if TYPE_CHECKING:
    from cleanlab import Datalab
    from datasets import Dataset


class IntegrationError(UserError, ValueError):
    """What another tool gave or wants does not fit; the message names the file, row or field, and what to do."""


@dataclass(frozen=True, eq=False)
class Dynamics:
    """N rows over E epochs.

    Attributes
    ----------
    logits
        (E, N, C), NaN where a row was not recorded in an epoch; the measures refuse those, `whole` leaves them out
    labels
        (N,) gold labels, indices into the last axis of `logits`
    uid
        (N,) the names of the rows, text or whole numbers
    capture
        "train" for logits of the training pass, "eval" for those of a pass after each epoch, "" where the source does
        not say. The two give different maps
    """

    logits: np.ndarray
    labels: np.ndarray
    uid: np.ndarray
    capture: str = ""

    def __post_init__(self) -> None:
        shape = self.logits.shape
        if len(shape) != 3 or self.labels.shape != shape[1:2] or self.uid.shape != shape[1:2]:
            told = f"logits {shape}, labels {self.labels.shape}, uid {self.uid.shape}"
            raise IntegrationError(f"{told}: logits (epochs, rows, classes) with a label and a name for each row")
        names, counts = np.unique(self.uid, return_counts=True)
        if (counts > 1).any():
            name = names[counts > 1][0].item()
            raise IntegrationError(f"uid {name!r} names more than one row: each name stands once")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: np.ndarray | Sequence[int]) -> Dynamics:
        """The rows named by a boolean mask (N,) or by positions."""
        return replace(self, logits=self.logits[:, rows], labels=self.labels[rows], uid=self.uid[rows])

    @property
    def missing(self) -> np.ndarray:
        """(N,) bool: rows that some epoch lacks."""
        return np.isnan(self.logits).any(axis=(0, 2))

    def whole(self) -> Dynamics:
        """The rows that every epoch has."""
        return self[~self.missing]

    def of(self, corpus: Corpus) -> Dynamics:
        """The rows in the order of a corpus, found by uid (compared as text), so that they stand beside it by position.

        Raises
        ------
        IntegrationError
            Where the corpus has rows that were not recorded, or other labels; rows that the corpus does not have are
            left out.
        """
        at = pd.Index(self.uid.astype(str)).get_indexer(corpus.uid.astype(str))  # -1: not there
        if (at < 0).any():
            first = corpus.uid[np.argmax(at < 0)]
            raise IntegrationError(
                f"{(at < 0).sum():,} of {len(corpus):,} rows of {corpus.name} were not recorded, the first {first!r}: "
                "give the corpus that was trained on, or the part of it that was"
            )
        wrong = np.flatnonzero(self.labels[at] != corpus.labels)
        if wrong.size:
            raise IntegrationError(
                f"row {corpus.uid[wrong[0]]!r} was recorded with label {self.labels[at[wrong[0]]]}, and {corpus.name} "
                f"says {corpus.labels[wrong[0]]} ({wrong.size:,} such rows): labels must mean {corpus.classes} in both"
            )
        return self[at]

    def save(self, path: str | Path) -> None:
        """Write an npz file that `read_dynamics` reads, and `numpy.load` without pickle."""
        with atomic(Path(path)) as draft, draft.open("wb") as file:
            np.savez(file, logits=self.logits, labels=self.labels, uid=self.uid, capture=self.capture)


def read_dynamics(path: str | Path) -> Dynamics:
    """What `RecordLogits.save` or `Dynamics.save` wrote: an npz file of logits, labels, uid and capture."""
    with reading(Path(path), "give the npz file that `save` wrote"), np.load(path, allow_pickle=False) as stored:
        return Dynamics(stored["logits"], stored["labels"], stored["uid"], str(stored["capture"]))


def dynamics_of(run: object, labels: ArrayLike | None = None, uid: ArrayLike | None = None) -> Dynamics:
    """A run, a recorder or logits (E, N, C) as `Dynamics`; rows without names are numbered."""
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


def read_cartography(folder: str | Path, *, classes: Sequence[str] | None = None, id_field: str = "guid") -> Dynamics:
    """The training dynamics in a folder of `dynamics_epoch_*.jsonl`: logits (E, N, C) float64, labels and names (N,).

    A row may be missing in some epochs, as in their published sample, which shows ten rows of each: see
    `Dynamics.missing`. The order of the rows is that of their first appearance. Theirs are logits of the training pass.

    Rows that several processes repeat to fill their last batch are left out where they say the same, and counted.

    Parameters
    ----------
    classes
        the names of the classes in the file's order, where they are E, N, C: logits and labels are then put into this
        library's order. Cartography's MNLI has contradiction first and its SNLI entailment; the files do not say it.
        None: as they stand
    id_field
        the field that names a row

    Raises
    ------
    IntegrationError
        Naming the file and the row for a line that is not one, an epoch that is missing, a row that stands twice in an
        epoch with other logits or changes its label, and for logits of different lengths.
    """
    files, together = _epochs(Path(folder), id_field)

    def named(at: int) -> str:
        return f"{files[together['epoch'].iloc[at]]}: {id_field} {together['name'].tolist()[at]!r}"

    widths = together["logits"].str.len()
    if widths.nunique() > 1:
        raise IntegrationError(f"{folder}: rows have {widths.min()} to {widths.max()} logits: give one a class")
    repeated = together.duplicated(["epoch", "name"])
    if repeated.any():
        same = together.assign(logits=together["logits"].map(tuple)).duplicated(["epoch", "name", "logits", "gold"])
        if (other := repeated & ~same).any():
            raise IntegrationError(
                f"{named(int(np.argmax(other)))} stands in two rows that say different things: leave one of them out"
            )
        first = named(int(np.argmax(repeated)))
        print(f"{folder}: {repeated.sum():,} rows that repeat another were left out, the first in {first}.")
        together = together[~repeated].reset_index(drop=True)
    row, names = pd.factorize(together["name"])
    labels = together.groupby(row, sort=False)["gold"].first().sort_index().to_numpy(np.int64)
    changed = np.flatnonzero(together["gold"].to_numpy() != labels[row])
    if changed.size:
        raise IntegrationError(f"{named(changed[0])} changes its gold label")
    width = int(widths.iloc[0])
    if ((labels < 0) | (labels >= width)).any():
        raise IntegrationError(f"{folder}: gold labels must lie in 0..{width - 1}; leave rows without one out")
    logits = np.full((len(files), len(names), width), np.nan)
    logits[together["epoch"], row] = np.array(together["logits"].tolist())
    if classes is not None:  # for each of our classes, its place among theirs
        if sorted(classes) != sorted(LABELS) or width != len(LABELS):
            raise IntegrationError(
                f"classes {', '.join(classes)} for {width} logits: the three are {', '.join(LABELS)}"
            )
        order = np.array([list(classes).index(name) for name in LABELS])
        logits, labels = logits[:, :, order], np.argsort(order)[labels]
    uid = np.asarray(names)
    return Dynamics(logits, labels, uid.astype(str) if uid.dtype == object else uid, "train")


def write_cartography(folder: str | Path, run: object, **arrays: object) -> list[Path]:
    """Write `dynamics_epoch_*.jsonl` into a folder, which cartography reads as `training_dynamics/`; the paths.

    The numbers come back bit for bit. A row that an epoch lacks is not written for it; cartography's own reader wants
    every row in every epoch, see `Dynamics.whole`. It also takes every file of the folder for an epoch, so a folder
    that holds anything else is an `IntegrationError`.

    Parameters
    ----------
    run
        `Dynamics`, a recorder, a run of this library, or logits (E, N, C) with labels= (N,) and perhaps uid= (N,)
    """
    given, folder = dynamics_of(run, **arrays), Path(folder)
    paths = [folder / f"dynamics_epoch_{epoch}.jsonl" for epoch in range(len(given.logits))]
    other = sorted({path.name for path in folder.glob("*")} - {path.name for path in paths}) if folder.is_dir() else []
    if other:
        raise IntegrationError(f"{folder} holds {other[0]}, which cartography takes for an epoch: give an empty folder")
    gold, names = given.labels.tolist(), given.uid.tolist()
    for epoch, path in enumerate(paths):
        there, logits = ~np.isnan(given.logits[epoch]).any(axis=1), given.logits[epoch].tolist()
        rows = (
            {"guid": names[at], f"logits_epoch_{epoch}": logits[at], "gold": gold[at]} for at in np.flatnonzero(there)
        )
        with atomic(path) as draft:
            draft.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return paths


def write_td_metrics(path: str | Path, run: object, **arrays: object) -> pd.DataFrame:
    """Write cartography's `td_metrics_*.jsonl` of the rows that every epoch has, and return it: one row an example.

    Columns guid, index (the position), threshold_closeness, confidence, variability, correctness and forgetfulness.
    *Departures* of their columns from our scores of the same name: correctness is a count of epochs, and
    forgetfulness is 1000 for a row that was never right.
    """
    given = dynamics_of(run, **arrays).whole()
    scores = dynamics.scores(given.logits, given.labels)
    count, confidence = np.rint(scores["correctness"] * len(given.logits)).astype(int), scores["confidence"]
    columns = {"guid": given.uid, "index": np.arange(len(given)), "threshold_closeness": confidence * (1 - confidence)}
    columns |= {"confidence": confidence, "variability": scores["variability"], "correctness": count}
    table = pd.DataFrame({**columns, "forgetfulness": np.where(count == 0, 1000, scores["forgetting"])})
    with atomic(Path(path)) as draft:
        lines = (json.dumps(row) + "\n" for row in table.to_dict("records"))
        draft.write_text("".join(lines), encoding="utf-8")
    return table


def read_coordinates(path: str | Path) -> pd.DataFrame:
    """A published map (`data_map_coordinates/*.jsonl`): one row an example, its columns as they are.

    guid, index, confidence and variability (0-1), and correctness, which is a count of epochs there.
    """
    table = _read(Path(path)).to_pandas()
    missing = {"guid", "confidence", "variability"} - set(table)
    if missing:
        raise IntegrationError(f"{path} has no {', '.join(sorted(missing))}: it is no data map of cartography's")
    return table


def _epochs(folder: Path, id_field: str) -> tuple[list[Path], pd.DataFrame]:
    """The files of the epochs in order, none missing, and their rows one after another: name, logits, gold, epoch."""
    found = ((re.fullmatch(r"dynamics_epoch_(\d+)\.jsonl", path.name), path) for path in folder.glob("*"))
    there = {int(name[1]): path for name, path in found if name}
    if not there:
        raise IntegrationError(f"{folder} holds no dynamics_epoch_0.jsonl: give the folder training_dynamics")
    if missing := sorted(set(range(max(there) + 1)) - set(there)):
        raise IntegrationError(f"{folder} lacks dynamics_epoch_{missing[0]}.jsonl: epochs count from 0 without a gap")
    tables = []
    for epoch, path in sorted(there.items()):
        table, fields = _read(path), [id_field, f"logits_epoch_{epoch}", "gold"]
        if missing := [field for field in fields if field not in table.column_names]:
            raise IntegrationError(f"{path} has no field {missing[0]!r}: its rows have {', '.join(table.column_names)}")
        for field in fields:
            if table[field].null_count:
                at = int(np.argmax(table[field].is_null().to_numpy(zero_copy_only=False)))
                raise IntegrationError(f"{path}, row {at}: {field} is missing")
        if not pa.types.is_integer(table["gold"].type):
            raise IntegrationError(f"{path}: gold is {table['gold'].type}, and must be a whole number")
        if not pa.types.is_list(table[fields[1]].type):
            raise IntegrationError(f"{path}: {fields[1]} must be a list of numbers")
        columns = (table[field].to_pylist() for field in fields)
        tables.append(pd.DataFrame(dict(zip(["name", "logits", "gold"], columns, strict=True))).assign(epoch=epoch))
    return [path for _, path in sorted(there.items())], pd.concat(tables, ignore_index=True)


def _read(path: Path) -> pa.Table:
    try:
        return arrow.read_json(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise IntegrationError(f"{path} cannot be read as one JSON object a line: {error}") from None


# ---------------------------------------------------------------- frames


def to_pandas(corpus: Corpus, selection: Selection | None = None, **scores: ArrayLike) -> pd.DataFrame:
    """The corpus with its labels as names, then kept and reason of a selection, then the scores, each (N,).

    A score may not have the name of a column that is there.
    """
    return _beside(corpus, selection, scores).assign(label=np.array(corpus.classes, dtype=object)[corpus.labels])


def to_dataset(corpus: Corpus, selection: Selection | None = None, **scores: ArrayLike) -> Dataset:
    """The same as a Hugging Face dataset, its labels a `ClassLabel` in the order of the corpus's classes."""
    return replace(corpus, table=_beside(corpus, selection, scores)).to_dataset()


from_pandas = from_dataset  # takes a DataFrame or a Hugging Face dataset


def _beside(corpus: Corpus, selection: Selection | None, scores: Mapping[str, ArrayLike]) -> pd.DataFrame:
    found = {name: np.asarray(values) for name, values in scores.items()}
    if selection is not None:
        found = {"kept": selection.keep, "reason": selection.reason, **found}
    for name, values in found.items():
        if name in corpus.table:
            raise IntegrationError(f"{corpus.name} has a column {name!r}: give the score another name")
        if values.shape != (len(corpus),):
            raise IntegrationError(f"{name} has shape {values.shape} for {len(corpus):,} rows: give one value each")
    return corpus.table.assign(**found)


# ---------------------------------------------------------------- label issues


def datalab(
    corpus: Corpus, pred_probs: ArrayLike | None = None, *, features: ArrayLike | None = None, **options: Any
) -> Datalab:
    """A `cleanlab.Datalab` of the corpus in which issues were looked for.

    Labels are given as numbers: names would be put into alphabetical order, and the columns of the probabilities would
    then belong to other classes. For the same reason every class must occur. Raises `IntegrationError` otherwise, and
    where cleanlab is not installed.

    Parameters
    ----------
    pred_probs
        (N, C) out of sample, columns in the order of the corpus's classes: what `learn.cross_score` gives after a
        softmax, or `cleanlab.npz` of `nli-study suspects`
    features
        (N, D) embeddings, for near duplicates and outliers
    options
        go to `Datalab.find_issues`: issue_types={"label": {}}
    """
    try:
        from cleanlab import Datalab
    except ImportError:
        raise IntegrationError("cleanlab is not installed: pip install cleanlab datasets") from None
    given: dict[str, np.ndarray] = {}
    if pred_probs is not None:
        values, wanted = np.asarray(pred_probs, dtype=np.float64), (len(corpus), len(corpus.classes))
        if values.shape != wanted:
            raise IntegrationError(f"pred_probs have shape {values.shape}: {wanted} is needed, a row for each pair")
        wrong = ~((values >= 0).all(axis=1) & (np.abs(values.sum(axis=1) - 1) <= 1e-3))
        if wrong.any():
            raise IntegrationError(f"pred_probs of row {corpus.uid[wrong][0]!r} are no probabilities that add up to 1")
        if absent := [name for name, count in corpus.counts.items() if not count]:
            raise IntegrationError(
                f"{corpus.name} has no row of {', '.join(absent)}: cleanlab would mix the columns up"
            )
        given["pred_probs"] = values
    if features is not None:
        given["features"] = np.asarray(features)
        if given["features"].ndim != 2 or len(given["features"]) != len(corpus):
            raise IntegrationError(f"features have shape {given['features'].shape} for {len(corpus):,} rows: (rows, D)")
    if not given:
        raise IntegrationError("give pred_probs, features, or both: there is nothing to look at")
    table = {name: corpus.table[name].astype(str).tolist() for name in ("uid", "premise", "hypothesis")}
    lab = Datalab({**table, "label": corpus.labels.tolist()}, label_name="label", verbosity=0)
    lab.find_issues(**given, **options)
    return lab


def issues(lab: Datalab, corpus: Corpus) -> pd.DataFrame:
    """What a Datalab found, N rows in the corpus's order: uid, texts, gold and predicted (names), its columns.

    is_<kind>_issue says which rows have it, <kind>_score how badly (0-1, low = worse).
    """
    found = lab.get_issues().reset_index(drop=True)
    if len(found) != len(corpus):
        raise IntegrationError(f"the Datalab has {len(found):,} rows, {corpus.name} {len(corpus):,}: give its corpus")
    names = np.array(corpus.classes, dtype=object)
    table = corpus.table[["uid", "premise", "hypothesis"]].assign(gold=names[corpus.labels])
    if "is_label_issue" in found:
        table["predicted"] = names[lab.get_issues("label")["predicted_label"].to_numpy(np.int64)]
    return table.join(found)
