"""Other tools' files: what people answer there to pairs, and the lists of suspects that go to them and come back.

`Answers` holds what Label Studio, Argilla and MTurk have in common: one answer of a person to a pair.

Label Studio: a configuration and tasks as files, and the JSON export read back, here with a list of suspects. Create a
project with `label_studio.xml` (Settings, Labeling Interface, Code), import the tasks, label, export as JSON. The
review of generated pairs, which shows no label to anybody, is `nli_tools.review`.

Argilla 2: a dataset's settings and records as files, and decisions back::

    settings = argilla.Settings.from_json("argilla_settings.json")
    dataset = argilla.Dataset("suspects", settings=settings).create()
    dataset.records.from_json("argilla_records.json")               # and, when the review is done:
    dataset.records.to_json("reviewed.json")

Nothing here imports argilla, which wants a server as soon as it is used.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
from pydantic import BaseModel, TypeAdapter, ValidationError

from nli_lib.corpora.corpus import LABELS, SIDES
from nli_lib.errors import UserError
from nli_lib.evaluate import PLACED
from nli_lib.store import write_json
from nli_tools.dynamics import IntegrationError
from nli_tools.own_corpus import write
from nli_tools.suspects import GIVEN

DISCARD = "discard"  # an answer beside the labels


class Answers:
    """What is taken from other tools' files: one answer of a person to a pair. What is not is counted by its reason.

    Attributes
    ----------
    file
        what is read, for messages
    names
        the answers that there are
    error
        what is raised where none can be used
    """

    def __init__(self, file: object, names: Sequence[str], error: type[UserError]) -> None:
        self.file, self.names, self.error = file, names, error
        self._taken: dict[tuple[str, str], dict[str, object]] = {}
        self._left: dict[str, list[str]] = {}  # where, by the reason

    def leave(self, reason: str, where: str) -> None:
        self._left.setdefault(reason, []).append(where)

    def label(self, annotator: str | None, labels: Sequence[object], where: str) -> str | None:
        """The one label of an annotation; None where it has none that counts, and is left out."""
        if not annotator:
            reason = "no annotator"
        elif not labels:
            reason = "no label"
        elif len(labels) > 1:
            reason = "more than one label"
        elif labels[0] not in self.names:
            reason = f"label {labels[0]!r}, which is none of {', '.join(self.names)}"
        else:
            return labels[0]
        self.leave(reason, where)
        return None

    def take(self, pair: str, row: dict[str, object], where: str) -> None:
        """Take a row that names its annotator; two different answers of one person to a pair are both left out."""
        before = self._taken.setdefault((pair, row["annotator"]), row)
        if before is row:
            return
        if before == row:
            self.leave("an answer that was given before", where)
            return
        for _ in range(2 if before else 1):
            self.leave("two different answers of one annotator", where)
        self._taken[pair, row["annotator"]] = {}

    def rows(self) -> list[dict[str, object]]:
        """All that was taken, in its order; says what was left out, and raises `error` where that is everything."""
        rows = [row for row in self._taken.values() if row]
        told = "; ".join(f"{why} ({len(places):,}, the first in {places[0]})" for why, places in self._left.items())
        if told and not rows:
            raise self.error(f"{self.file}: no answer can be used: {told}.")
        if told:
            print(f"{self.file}: left out: {told}.")
        return rows

    def exported(self, record: type[BaseModel], called: str, how: str) -> list[BaseModel]:
        """The records of the file, an export as JSON. Raises `error` naming the file, the record and the field, and
        ``how`` the export is made."""
        try:
            return TypeAdapter(list[record]).validate_json(Path(self.file).read_bytes())
        except OSError as reason:
            raise self.error(f"{self.file} cannot be read ({reason.strerror}). {how}") from None
        except ValidationError as reason:
            first = reason.errors()[0]
            field = ".".join(map(str, first["loc"])) or "whole"
            raise self.error(f"{self.file}: {called} and field {field}: {first['msg']}. {how}") from None


# ---------------------------------------------------------------- label studio


class Value(BaseModel):
    """Choices or texts, as their kind of field submits them."""

    choices: list[str] | str | None = None
    text: list[str] | str | None = None


class Result(BaseModel):
    """What one field of the configuration says; a relation between two others is of no field."""

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


Said = Iterator[tuple[str, str, dict[str, str]]]


def write_project(folder: str | Path, configuration: str, tasks: list[dict], name: str) -> list[Path]:
    """Write a project's configuration, label_studio.xml, and its tasks under a name; the two paths."""
    files = {"label_studio.xml": configuration, name: json.dumps(tasks, indent=1)}
    return [write(Path(folder, name), text) for name, text in files.items()]


def read_project(answers: Answers) -> Iterator[tuple[str, dict[str, Any], Said]]:
    """For each task of an export its place, its data, and the annotations that have one label: annotator, label and
    what every field says. A skipped task has none; ``answers`` is told of those without one label.

    Annotators bear the numbers that Label Studio gave them: an export may hold the name and the e-mail address.
    """

    def labelled(annotations: list[Annotation], where: str) -> Said:
        for given in annotations:
            if given.was_cancelled:
                continue
            texts, labels = {}, []
            for result in given.result:
                if result.from_name is None:
                    answers.leave("a relation", where)
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


# ---------------------------------------------------------------- suspects


def checked(suspects: pd.DataFrame, classes: Sequence[str] | None = None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The list and the names of its classes: `classes`, or the three of this library, or those that occur.

    Raises
    ------
    IntegrationError
        Naming the column or the row for a list that lacks a column, with a uid twice, or with a label that is no class.
    """
    needed = ("uid", "premise", "hypothesis", "gold", "predicted")
    if missing := [column for column in needed if column not in suspects]:
        raise IntegrationError(f"the list has no column {', '.join(missing)}: give what `review_list` makes")
    if not len(suspects):
        raise IntegrationError("the list of suspects is empty: there is nothing to review")
    if (twice := suspects["uid"].duplicated()).any():
        raise IntegrationError(f"uid {suspects['uid'][twice].iloc[0]!r} stands in two rows of the list: each pair once")
    occur = pd.unique(suspects[["gold", "predicted"]].to_numpy().ravel()).tolist()
    names = tuple(classes or (LABELS if set(occur) <= set(LABELS) else sorted(occur)))
    if other := [name for name in occur if name not in names]:
        raise IntegrationError(f"label {other[0]!r} is none of the classes {', '.join(names)}")
    if DISCARD in names:
        raise IntegrationError(f"a class is called {DISCARD!r}, which is an answer of its own: rename it")
    return suspects.reset_index(drop=True), names


def write_label_studio(
    folder: str | Path,
    suspects: pd.DataFrame,
    *,
    classes: Sequence[str] | None = None,
    show_labels: bool = False,
    model: str = "suspects",
) -> list[Path]:
    """Write the project's configuration and its tasks, in the list's order, into a folder; the two paths.

    Parameters
    ----------
    suspects
        a list as `evaluate.review_list` makes it: uid, premise, hypothesis, gold and predicted (names). Where it has
        p_gold, a prediction's score is 1 - p_gold: what the model does not give to the gold label
    classes
        the choices; None: entailment, neutral, contradiction, or the two classes that occur
    show_labels
        whether annotators see the gold label, and find the model's chosen: faster, and it sways them
    model
        what the predictions are said to be made by

    Raises
    ------
    IntegrationError
        For a list that does not fit.
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
    # the interface: two texts, a choice of the classes with keys 1, 2, ..., and a note
    view = ElementTree.Element("View")
    for side in SIDES:
        ElementTree.SubElement(view, "Header", value=side.capitalize())
        ElementTree.SubElement(view, "Text", name=side, value=f"${side}")
    if show_labels:
        ElementTree.SubElement(view, "Header", value="In the corpus: $gold")
    asked = {"name": "label", "toName": "hypothesis", "choice": "single-radio", "required": "true"}
    choices = ElementTree.SubElement(view, "Choices", asked)
    for key, name in enumerate([*names, DISCARD], start=1):
        ElementTree.SubElement(choices, "Choice", value=name, hotkey=str(key))
    note = {"name": "note", "toName": "hypothesis", "rows": "2", "maxSubmissions": "1", "placeholder": "Note"}
    ElementTree.SubElement(view, "TextArea", note)
    ElementTree.indent(view)
    configuration = ElementTree.tostring(view, encoding="unicode") + "\n"
    return write_project(folder, configuration, tasks, "label_studio_suspects.json")


def read_label_studio(
    path: str | Path, suspects: pd.DataFrame, *, classes: Sequence[str] | None = None
) -> pd.DataFrame:
    """The decisions in an export as JSON: columns uid, gold, annotator, label, discarded and note.

    label is a name, None for a discarded pair. One row an annotation, in the export's order; a skipped task has none.
    Annotators bear the numbers that Label Studio gave them. An annotation without annotator or without one label, and a
    second one of the same annotator, are counted, and it is said. Raises `IntegrationError` naming the file, the task
    and the field, or where no annotation is left.
    """

    def said(answers: Answers) -> Iterator[tuple]:
        for where, data, given in read_project(answers):
            uid = str(data.get("uid"))
            notes = ((annotator, label, texts.get("note", "")) for annotator, label, texts in given)
            yield where, uid, f"{where}, uid: {uid!r}", notes

    return _decisions(path, suspects, classes, said)


def _decisions(
    path: str | Path, suspects: pd.DataFrame, classes: Sequence[str] | None, said: Callable[[Answers], Iterable[tuple]]
) -> pd.DataFrame:
    """The decisions of a file. said: gives of each pair where it stands, its uid, how a message calls it, and its
    answers (annotator, label, note)."""
    table, names = checked(suspects, classes)
    answers = Answers(path, (*names, DISCARD), IntegrationError)
    known = {str(row["uid"]): {"uid": row["uid"], "gold": row["gold"]} for row in table.to_dict("records")}
    for where, uid, called, given in said(answers):
        if uid not in known:
            raise IntegrationError(f"{path}: {called} is not in the list. Is this the review of another list?")
        for annotator, label, note in given:
            discarded = label == DISCARD
            decision = {"label": None if discarded else label, "discarded": discarded, "note": note}
            answers.take(uid, {**known[uid], "annotator": annotator, **decision}, where)
    columns = ["uid", "gold", "annotator", "label", "discarded", "note"]
    return pd.DataFrame(answers.rows(), columns=columns).astype({"discarded": bool})


# ---------------------------------------------------------------- argilla


# what says, or hints at, which label is wrong
HIDDEN = ("gold", "predicted", "kind", "gap", "p_gold", "pruned", *PLACED, "fold", "models", *GIVEN)
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

    Parameters
    ----------
    suspects
        a list as `evaluate.review_list` makes it; its columns of numbers and short texts (gap, kind, p_gold) become
        metadata that records can be filtered and sorted by
    classes
        the choices; None: entailment, neutral, contradiction, or the two classes that occur
    show_labels
        whether annotators see gold and predicted, the model's as a suggestion: faster, and it sways them. Otherwise
        they, and all that was found or decided about a label, are metadata that only the owner of the dataset sees
    model
        what the suggestions are said to be made by
    """
    table, names = checked(suspects, classes)
    metadata = _metadata(table, show_labels)

    def asked(name: str, settings: dict, *, required: bool = True) -> dict:
        about = {"id": None, "name": name, "title": name.capitalize(), "description": None, "dataset_id": None}
        return {**about, "type": settings["type"], "settings": settings, "required": required}

    options = [{"text": name, "value": name} for name in (*names, DISCARD)]
    choice = {"type": "label_selection", "options": options, "visible_options": max(3, len(options))}
    text = {"type": "text", "use_markdown": False}
    guide = "Given the premise, the hypothesis is ... Choose the label that is right, whatever the corpus says."
    questions = [asked("label", choice), asked("note", text, required=False)]
    settings = {"guidelines": guide, "fields": [asked(side, text) for side in SIDES], "questions": questions}
    settings |= {"vectors": [], "metadata": list(metadata.values()), "allow_extra_metadata": False, "mapping": None}
    settings["distribution"] = {"strategy": "overlap", "min_submitted": 1}
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
    """The columns that can be metadata, numbers, or words that Argilla lists as terms, as its settings have them."""
    found = {}
    for name in table.columns.drop(["uid", *SIDES]):
        column = table[name]
        words = column.map(lambda value: isinstance(value, str)).all() and column.nunique() <= 50
        if re.fullmatch(r"[a-z0-9_-]+", name) and (
            column.dtype.kind in KINDS or words
        ):  # what Argilla takes for a name
            kind = KINDS.get(column.dtype.kind, "terms")
            limits = {"values": None} if kind == "terms" else {"min": None, "max": None}
            seen = {"visible_for_annotators": show_labels or name not in HIDDEN}
            about = {"id": None, "name": name, "title": name, "dataset_id": None, **seen}
            found[name] = {**about, "settings": {**seen, "type": kind, **limits}}
    return found


def read_argilla(path: str | Path, suspects: pd.DataFrame, *, classes: Sequence[str] | None = None) -> pd.DataFrame:
    """The decisions in what `dataset.records.to_json` wrote: columns uid, gold, annotator, label, discarded, note.

    One row a response. Annotators bear the ids that Argilla gave them. A response without user or without one label,
    and a second one of the same user, are counted, and it is said. Raises `IntegrationError` naming the file, the
    record and the field, or where no response is left.
    """

    def labelled(answers: Answers, responses: dict[str, list[Response]], where: str) -> Iterator[tuple[str, str, str]]:
        notes = {each.user_id: str(each.value or "") for each in responses.get("note", [])}
        for given in responses.get("label", []):
            labels = given.value if isinstance(given.value, list) else [given.value] if given.value else []
            if label := answers.label(given.user_id, labels, where):
                yield f"argilla-{given.user_id}", label, notes.get(given.user_id, "")

    def said(answers: Answers) -> Iterator[tuple]:
        for record in answers.exported(Record, "record", "Write it by to_json."):
            where = f"record {record.id}"
            yield where, record.id, where, labelled(answers, record.responses or {}, where)

    return _decisions(path, suspects, classes, said)
