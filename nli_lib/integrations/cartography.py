"""Dataset cartography's files: training dynamics in and out, its table of scores out, its published maps in.

    dynamics_epoch_0.jsonl, dynamics_epoch_1.jsonl, ...    {"guid": 17, "logits_epoch_0": [-0.4, 0.1, 0.9], "gold": 2}

Format: allenai/cartography, README and `cartography/selection/train_dy_filtering.py` at revision 3df3438.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import json as arrow

from nli_lib.corpora.labels import LABELS
from nli_lib.integrations.dynamics import Dynamics, IntegrationError, dynamics_of
from nli_lib.measure import dynamics
from nli_lib.store import atomic

NAME = re.compile(r"dynamics_epoch_(\d+)\.jsonl")
NEVER = 1000  # their forgetfulness of a row that was never right


def read_cartography(folder: str | Path, *, classes: Sequence[str] | None = None, id_field: str = "guid") -> Dynamics:
    """The training dynamics in a folder of `dynamics_epoch_*.jsonl`: logits (E, N, C) float64, labels and names (N,).

    classes   the names of the classes in the file's order, where they are E, N, C: logits and labels are then put into
              this library's order. Cartography's MNLI has contradiction first and its SNLI entailment; the files do
              not say it. None: as they stand
    id_field  the field that names a row

    A row may be missing in some epochs, as in their published sample, which shows ten rows of each: see
    `Dynamics.missing`. The order of the rows is that of their first appearance. Theirs are logits of the training pass.

    Rows that several processes repeat to fill their last batch are left out where they say the same, and counted.
    Raises `IntegrationError` naming the file and the row for a line that is not one, an epoch that is missing, a row
    that stands twice in an epoch with other logits or changes its label, and for logits of different lengths.
    """
    files = _files(Path(folder))
    tables = [_epoch(path, epoch, id_field) for epoch, path in enumerate(files)]
    together = pd.concat(tables, ignore_index=True)

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
    if classes is not None:
        order = _order(classes, width)
        logits, labels = logits[:, :, order], np.argsort(order)[labels]
    uid = np.asarray(names)
    return Dynamics(logits, labels, uid.astype(str) if uid.dtype == object else uid, "train")


def write_cartography(folder: str | Path, run: object, **arrays: object) -> list[Path]:
    """Write `dynamics_epoch_*.jsonl` into a folder, which cartography reads as `training_dynamics/`; the paths.

    run     `Dynamics`, a recorder, a run of this library, or logits (E, N, C) with labels= (N,) and perhaps uid= (N,)

    The numbers come back bit for bit. A row that an epoch lacks is not written for it; cartography's own reader wants
    every row in every epoch, see `Dynamics.whole`. It also takes every file of the folder for an epoch, so a folder
    that holds anything else is an `IntegrationError`.
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
    count = np.rint(scores["correctness"] * len(given.logits)).astype(int)
    confidence = scores["confidence"]
    table = pd.DataFrame({"guid": given.uid, "index": np.arange(len(given))})
    table["threshold_closeness"] = confidence * (1 - confidence)
    table = table.assign(confidence=confidence, variability=scores["variability"], correctness=count)
    table["forgetfulness"] = np.where(count == 0, NEVER, scores["forgetting"])
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


def _files(folder: Path) -> list[Path]:
    """The epochs' files in order, none missing."""
    found = {int(match[1]): path for path in folder.glob("*") if (match := NAME.fullmatch(path.name))}
    if not found:
        raise IntegrationError(f"{folder} holds no dynamics_epoch_0.jsonl: give the folder training_dynamics")
    if missing := sorted(set(range(max(found) + 1)) - set(found)):
        raise IntegrationError(f"{folder} lacks dynamics_epoch_{missing[0]}.jsonl: epochs count from 0 without a gap")
    return [found[epoch] for epoch in range(len(found))]


def _epoch(path: Path, epoch: int, id_field: str) -> pd.DataFrame:
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
    columns = [table[field].to_pylist() for field in fields]
    return pd.DataFrame(dict(zip(["name", "logits", "gold"], columns, strict=True))).assign(epoch=epoch)


def _read(path: Path) -> pa.Table:
    try:
        return arrow.read_json(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise IntegrationError(f"{path} cannot be read as one JSON object a line: {error}") from None


def _order(classes: Sequence[str], width: int) -> np.ndarray:
    """For each of our classes, its place among `classes`."""
    if sorted(classes) != sorted(LABELS) or width != len(LABELS):
        raise IntegrationError(f"classes {', '.join(classes)} for {width} logits: the three are {', '.join(LABELS)}")
    return np.array([list(classes).index(name) for name in LABELS])
