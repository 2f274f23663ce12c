"""Suspects for Argilla 2: a dataset's settings and records as files, and decisions back.

    settings = argilla.Settings.from_json("argilla_settings.json")
    dataset = argilla.Dataset("suspects", settings=settings).create()
    dataset.records.from_json("argilla_records.json")               # and, when the review is done:
    dataset.records.to_json("reviewed.json")

Nothing here imports argilla, which wants a server as soon as it is used.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel

from nli_lib.corpora.corpus import SIDES
from nli_lib.evaluate import PLACED
from nli_lib.generate.exchange import Answers, exported
from nli_lib.integrations.dynamics import IntegrationError
from nli_lib.integrations.suspects import DISCARD, OTHER_LIST, checked, decision, decisions
from nli_lib.report.worklist import GIVEN
from nli_lib.store import write_json

FILES = ("argilla_settings.json", "argilla_records.json")
GUIDELINES = "Given the premise, the hypothesis is ... Choose the label that is right, whatever the corpus says."
# what says, or hints at, which label is wrong
HIDDEN = ("gold", "predicted", "kind", "gap", "p_gold", "pruned", *PLACED, "fold", "models", *GIVEN)
NAME = re.compile(r"[a-z0-9_-]+")  # what Argilla takes for a name
KINDS = {"f": "float", "i": "integer", "u": "integer", "b": "terms"}


class Response(BaseModel):
    """One person's answer to a question."""

    value: Any = None
    user_id: str | None = None


class Record(BaseModel):
    """A pair with its answers, as `to_json` writes it."""

    id: str | None = None
    responses: dict[str, list[Response]] | None = None


def write_argilla(
    folder: str | Path,
    suspects: pd.DataFrame,
    *,
    classes: Sequence[str] | None = None,
    show_labels: bool = False,
    model: str = "suspects",
) -> list[Path]:
    """Write the settings and the records into a folder, in the list's order; the two paths.

    suspects     a list as `evaluate.review_list` makes it; its columns of numbers and short texts (gap, kind,
                 p_gold) become metadata that records can be filtered and sorted by
    classes      the choices; None: entailment, neutral, contradiction, or the two classes that occur
    show_labels  whether annotators see gold and predicted, the model's as a suggestion: faster, and it sways them.
                 Otherwise they, and all that was found or decided about a label, are metadata that only the owner of
                 the dataset sees
    model        what the suggestions are said to be made by
    """
    table, names = checked(suspects, classes)
    extra = [name for name in table if name not in (*SIDES, "uid") and NAME.fullmatch(name) and _plain(table[name])]
    settings = {
        "guidelines": GUIDELINES,
        "fields": [_property(side, {"type": "text", "use_markdown": False}, required=True) for side in SIDES],
        "questions": [
            _property("label", _choice([*names, DISCARD]), required=True, type="label_selection", description=None),
            _property("note", {"type": "text", "use_markdown": False}, required=False, type="text", description=None),
        ],
        "vectors": [],
        "metadata": [_metadata(name, table[name], show_labels) for name in extra],
        "allow_extra_metadata": False,
        "distribution": {"strategy": "overlap", "min_submitted": 1},
        "mapping": None,
    }
    records = []
    for row in table.to_dict("records"):
        record = {"id": str(row["uid"]), "fields": {side: row[side] for side in SIDES}}
        record["metadata"] = {name: _value(row[name]) for name in extra if not pd.isna(row[name])}
        guess = {"value": row["predicted"], "score": None, "agent": model}
        record["suggestions"] = {"label": guess} if show_labels else {}
        records.append({**record, "responses": {}, "vectors": {}, "status": "pending", "_server_id": None})
    paths = [Path(folder, name) for name in FILES]
    for path, content in zip(paths, (settings, records), strict=True):
        write_json(path, content)
    return paths


def read_argilla(path: str | Path, suspects: pd.DataFrame, *, classes: Sequence[str] | None = None) -> pd.DataFrame:
    """The decisions in what `dataset.records.to_json` wrote: columns uid, gold, annotator, label, discarded, note.

    One row a response. Annotators bear the ids that Argilla gave them. A response without user or without one label,
    and a second one of the same user, are counted, and it is said. Raises `IntegrationError` naming the file, the
    record and the field, or where no response is left.
    """
    table, names = checked(suspects, classes)
    answers = Answers(path, (*names, DISCARD), IntegrationError)
    known = table.assign(name=table["uid"].astype(str)).set_index("name")
    for record in exported(path, Record, "record", "Write it by to_json.", IntegrationError):
        where = f"record {record.id}"
        if record.id not in known.index:
            raise IntegrationError(f"{path}: {where} is not in the list. {OTHER_LIST}")
        said = record.responses or {}
        notes = {each.user_id: str(each.value or "") for each in said.get("note", [])}
        for given in said.get("label", []):
            labels = given.value if isinstance(given.value, list) else [given.value] if given.value else []
            if label := answers.label(given.user_id, labels, where):
                note = notes.get(given.user_id, "")
                answers.take(record.id, decision(known.loc[record.id], f"argilla-{given.user_id}", label, note), where)
    return decisions(answers.rows())


def _plain(column: pd.Series) -> bool:
    """Whether a column can be metadata: numbers, or words that Argilla lists as terms."""
    return column.dtype.kind in KINDS or (
        column.map(lambda value: isinstance(value, str)).all() and column.nunique() <= 50
    )


def _value(value: object) -> object:
    if isinstance(value, bool | np.bool_):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def _property(name: str, settings: dict, **more: object) -> dict:
    known = {"id": None, "name": name, "title": name.capitalize(), "settings": settings, "dataset_id": None}
    return {"type": "text", "description": None, **known, **more}


def _choice(names: Sequence[str]) -> dict:
    options = [{"text": name, "value": name} for name in names]
    return {"type": "label_selection", "options": options, "visible_options": max(3, len(options))}


def _metadata(name: str, column: pd.Series, shown: bool) -> dict:
    kind = KINDS.get(column.dtype.kind, "terms")
    limits = {"values": None} if kind == "terms" else {"min": None, "max": None}
    visible = shown or name not in HIDDEN
    settings = {"visible_for_annotators": visible, "type": kind, **limits}
    title = {"id": None, "name": name, "title": name, "dataset_id": None, "visible_for_annotators": visible}
    return {**title, "settings": settings}
