"""Label Studio: a review written as a project's configuration and tasks, and its JSON export read back.

Create a project with the configuration `label_studio.xml` (Settings, Labeling Interface, Code), import the tasks, let
two annotators label each task, and export as JSON. Annotators see the two texts alone. JSON holds any text as it is,
and Label Studio shows a Text as text.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel

from nli_lib.generate.annotations import SIDES
from nli_lib.generate.exchange import Answers, annotation, exported, known_pair, table
from nli_lib.generate.review import queue
from nli_lib.store import atomic

CONFIGURATION = Path(__file__).with_name("label_studio.xml")
TASKS = "label_studio_tasks.json"


class Value(BaseModel):
    """Choices or texts, as their kind of field submits them."""

    choices: list[str] | str | None = None
    text: list[str] | str | None = None


class Result(BaseModel):
    """What one field of the configuration says; a relation between two others is of no field."""

    from_name: str | None = None
    value: Value = Value()

    @property
    def said(self) -> list[str]:
        """The choices, or the texts that were submitted, one after another."""
        values = self.value.choices or self.value.text or []
        return [values] if isinstance(values, str) else values


class Annotation(BaseModel):
    """One person's answer to a task."""

    completed_by: Any = None
    result: list[Result]
    was_cancelled: bool | None = False

    @property
    def annotator(self) -> str | None:
        """Who annotated, by the number alone: an export may hold the name and the e-mail address."""
        by = self.completed_by.get("id") if isinstance(self.completed_by, dict) else self.completed_by
        return f"label-studio-{by}" if isinstance(by, int) else None

    @property
    def texts(self) -> dict[str, str]:
        """What every field says, the last of its texts."""
        return {result.from_name: result.said[-1] for result in self.result if result.from_name and result.said}


class Task(BaseModel):
    """A pair with its annotations."""

    id: int | None = None
    data: dict[str, Any]
    annotations: list[Annotation]

    def where(self, number: int) -> str:
        return f"task {number}" if self.id is None else f"task {number} (id {self.id})"

    def labelled(self, answers: Answers, where: str) -> Iterator[tuple[Annotation, str]]:
        """The annotations that have one label, and that label; ``answers`` is told of the others. A skipped task has
        none."""
        for given in self.annotations:
            if given.was_cancelled:
                continue
            for _ in (result for result in given.result if result.from_name is None):
                answers.leave("a relation", where)
            labels = [label for result in given.result if result.from_name == "label" for label in result.said]
            if label := answers.label(given.annotator, list(dict.fromkeys(labels)), where):
                yield given, label


def write_tasks(folder: Path, pairs: pd.DataFrame, *, seed: int = 0) -> list[Path]:
    """Write the configuration and the tasks, in the order that ``seed`` decides; the two paths."""
    files = {CONFIGURATION.name: CONFIGURATION.read_text(encoding="utf-8")}
    files[TASKS] = json.dumps([{"data": pair} for pair in queue(pairs, seed)], indent=1)
    written = [Path(folder) / name for name in files]
    for path, text in zip(written, files.values(), strict=True):
        with atomic(path) as draft:
            draft.write_text(text, encoding="utf-8")
    return written


def read_export(path: Path, pairs: pd.DataFrame) -> pd.DataFrame:
    """The annotations of an export as JSON (not JSON-MIN), as `nli_lib.generate.annotations` takes them.

    Annotators bear the numbers that Label Studio gave them, not their names. An annotation without annotator or without
    one label, and a second one of the same annotator, are counted, and it is said. Raises `ReviewError` naming the
    file, the task and the field, or where no annotation is left.
    """
    answers = Answers(path)
    tasks = exported(path, Task, "task", "Export the project as JSON.")
    shown = pairs.set_index("item")[list(SIDES)]
    for number, task in enumerate(tasks, start=1):
        where = task.where(number)
        pair = known_pair(task.data, shown, f"{path}: {where}")
        for given, label in task.labelled(answers, where):
            answers.take(pair["item"], annotation(pair, given.annotator, label, given.texts), where)
    return table(answers.rows())
