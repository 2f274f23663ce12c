"""What a list of suspects must hold before it goes to another tool, and a decision that comes back from one.

Suspects for Label Studio: tasks in the list's order with the model's label as a prediction, and decisions back.

Create a project with `label_studio.xml` (Settings, Labeling Interface, Code), import the tasks, label, export as JSON.
The review of generated pairs, which shows no label to anybody, is `nli_tools.review`.

Suspects for Argilla 2: a dataset's settings and records as files, and decisions back.

    settings = argilla.Settings.from_json("argilla_settings.json")
    dataset = argilla.Dataset("suspects", settings=settings).create()
    dataset.records.from_json("argilla_records.json")               # and, when the review is done:
    dataset.records.to_json("reviewed.json")

Nothing here imports argilla, which wants a server as soon as it is used.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from pydantic import BaseModel

from nli_lib.corpora.corpus import LABELS, SIDES
from nli_lib.evaluate import PLACED
from nli_lib.store import atomic, write_json
from nli_tools.dynamics import IntegrationError
from nli_tools.review import Answers, Task, exported
from nli_tools.suspects import GIVEN

NEEDED = ("uid", "premise", "hypothesis", "gold", "predicted")
DISCARD = "discard"  # an answer beside the labels
OTHER_LIST = "Is this the review of another list?"
DECISIONS = ["uid", "gold", "annotator", "label", "discarded", "note"]


def checked(suspects: pd.DataFrame, classes: Sequence[str] | None = None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The list and the names of its classes: `classes`, or the three of this library, or those that occur.

    Raises `IntegrationError` naming the column or the row for a list without `NEEDED`, with a uid twice, or with a
    label that is no class.
    """
    if missing := [column for column in NEEDED if column not in suspects]:
        raise IntegrationError(f"the list has no column {', '.join(missing)}: give what `review_list` makes")
    if not len(suspects):
        raise IntegrationError("the list of suspects is empty: there is nothing to review")
    if suspects["uid"].duplicated().any():
        name = suspects["uid"][suspects["uid"].duplicated()].iloc[0]
        raise IntegrationError(f"uid {name!r} stands in two rows of the list: each pair once")
    occur = pd.unique(suspects[["gold", "predicted"]].to_numpy().ravel()).tolist()
    names = tuple(classes or (LABELS if set(occur) <= set(LABELS) else sorted(occur)))
    if other := [name for name in occur if name not in names]:
        raise IntegrationError(f"label {other[0]!r} is none of the classes {', '.join(names)}")
    if DISCARD in names:
        raise IntegrationError(f"a class is called {DISCARD!r}, which is an answer of its own: rename it")
    return suspects.reset_index(drop=True), names


def decision(row: pd.Series, annotator: str, label: str, note: str) -> dict[str, object]:
    """One row of `DECISIONS`: what somebody said of a suspect."""
    left = label == DISCARD
    given = {"uid": row["uid"], "gold": row["gold"], "annotator": annotator}
    return {**given, "label": None if left else label, "discarded": left, "note": note}


def decisions(rows: list[dict]) -> pd.DataFrame:
    """Decisions as a table, also where there are none."""
    return pd.DataFrame(rows, columns=DECISIONS).astype({"discarded": bool})


# ---------------------------------------------------------------- label studio


LABEL_STUDIO_FILES = ("label_studio.xml", "label_studio_suspects.json")


def write_label_studio(
    folder: str | Path,
    suspects: pd.DataFrame,
    *,
    classes: Sequence[str] | None = None,
    show_labels: bool = False,
    model: str = "suspects",
) -> list[Path]:
    """Write the project's configuration and its tasks into a folder; the two paths.

    suspects     a list as `evaluate.review_list` makes it: uid, premise, hypothesis, gold and predicted (names).
                 Where it has p_gold, a prediction's score is 1 - p_gold: what the model does not give to the gold label
    classes      the choices; None: entailment, neutral, contradiction, or the two classes that occur
    show_labels  whether annotators see the gold label, and find the model's chosen: faster, and it sways them
    model        what the predictions are said to be made by

    Raises `IntegrationError` for a list that does not fit.
    """
    table, names = checked(suspects, classes)
    tasks = []
    for row in table.to_dict("records"):
        data = {"uid": str(row["uid"]), "premise": row["premise"], "hypothesis": row["hypothesis"]}
        if not show_labels:
            tasks.append({"data": data})
            continue
        choice = {"from_name": "label", "to_name": "hypothesis", "type": "choices"}
        guess = {"model_version": model, "result": [{**choice, "value": {"choices": [row["predicted"]]}}]}
        if "p_gold" in table:
            guess["score"] = 1 - float(row["p_gold"])
        tasks.append({"data": {**data, "gold": row["gold"]}, "predictions": [guess]})
    texts = (configuration(names, gold=show_labels), json.dumps(tasks, indent=1))
    paths = [Path(folder, name) for name in LABEL_STUDIO_FILES]
    for path, text in zip(paths, texts, strict=True):
        with atomic(path) as draft:
            draft.write_text(text, encoding="utf-8")
    return paths


def configuration(classes: Sequence[str], *, gold: bool = False) -> str:
    """The labeling interface: two texts, a choice of the classes with keys 1, 2, ..., and a note."""
    view = ElementTree.Element("View")
    for side in ("premise", "hypothesis"):
        ElementTree.SubElement(view, "Header", value=side.capitalize())
        ElementTree.SubElement(view, "Text", name=side, value=f"${side}")
    if gold:
        ElementTree.SubElement(view, "Header", value="In the corpus: $gold")
    asked = {"name": "label", "toName": "hypothesis", "choice": "single-radio", "required": "true"}
    choices = ElementTree.SubElement(view, "Choices", asked)
    for key, name in enumerate([*classes, DISCARD], start=1):
        ElementTree.SubElement(choices, "Choice", value=name, hotkey=str(key))
    note = {"name": "note", "toName": "hypothesis", "rows": "2", "maxSubmissions": "1", "placeholder": "Note"}
    ElementTree.SubElement(view, "TextArea", note)
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


def read_label_studio(
    path: str | Path, suspects: pd.DataFrame, *, classes: Sequence[str] | None = None
) -> pd.DataFrame:
    """The decisions in an export as JSON: columns uid, gold, annotator, label, discarded and note.

    label is a name, None for a discarded pair. One row an annotation, in the export's order; a skipped task has none.
    Annotators bear the numbers that Label Studio gave them. An annotation without annotator or without one label, and a
    second one of the same annotator, are counted, and it is said. Raises `IntegrationError` naming the file, the task
    and the field, or where no annotation is left.
    """
    table, names = checked(suspects, classes)
    answers = Answers(path, (*names, DISCARD), IntegrationError)
    tasks = exported(path, Task, "task", "Export the project as JSON.", IntegrationError)
    known = table.assign(name=table["uid"].astype(str)).set_index("name")
    for number, task in enumerate(tasks, start=1):
        where, uid = task.where(number), str(task.data.get("uid"))
        if uid not in known.index:
            raise IntegrationError(f"{path}: {where}, uid: {uid!r} is not in the list. {OTHER_LIST}")
        for given, label in task.labelled(answers, where):
            answers.take(uid, decision(known.loc[uid], given.annotator, label, given.texts.get("note", "")), where)
    return decisions(answers.rows())


# ---------------------------------------------------------------- argilla


ARGILLA_FILES = ("argilla_settings.json", "argilla_records.json")
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
    paths = [Path(folder, name) for name in ARGILLA_FILES]
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
