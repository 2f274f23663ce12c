"""Label Studio: a review written as a project's configuration and tasks, and its JSON export read back.

Create a project with the configuration `label_studio.xml` (Settings, Labeling Interface, Code), import the tasks, let
two annotators label each task, and export as JSON. Annotators see the two texts alone. JSON holds any text as it is,
and Label Studio shows a Text as text.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, TypeAdapter, ValidationError

from nli_lib.generate.annotations import SIDES
from nli_lib.generate.exchange import annotation, known_pair, table
from nli_lib.generate.review import ReviewError, queue
from nli_lib.store import atomic

CONFIGURATION = Path(__file__).with_name("label_studio.xml")
TASKS = "label_studio_tasks.json"


class Value(BaseModel):
    """Choices or texts, as their kind of field submits them."""

    choices: list[str] | str | None = None
    text: list[str] | str | None = None


class Result(BaseModel):
    """What one field of the configuration says."""

    from_name: str
    value: Value

    @property
    def said(self) -> str | None:
        """The choice, or the last text that was submitted; None where the field was left empty."""
        values = self.value.choices or self.value.text or []
        return values if isinstance(values, str) else next(iter(values[::-1]), None)


class Person(BaseModel):
    """Who annotated, by the number alone: an export may hold the name and the e-mail address."""

    id: int


class Annotation(BaseModel):
    """One person's answer to a task."""

    completed_by: int | Person
    result: list[Result]
    was_cancelled: bool = False

    @property
    def annotator(self) -> str:
        by = self.completed_by
        return f"label-studio-{by if isinstance(by, int) else by.id}"


class Task(BaseModel):
    """A pair with its annotations."""

    data: dict[str, Any]
    annotations: list[Annotation]


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

    A skipped task has no annotation. Annotators bear the numbers that Label Studio gave them, not their names. Raises
    `ReviewError` naming the file, the task and the field.
    """
    try:
        tasks = TypeAdapter(list[Task]).validate_json(Path(path).read_bytes())
    except OSError as error:
        raise ReviewError(f"{path} cannot be read ({error.strerror}). Export the project as JSON.") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "whole"
        raise ReviewError(f"{path}: task and field {field}: {first['msg']}. Export the project as JSON.") from None
    shown, rows = pairs.set_index("item")[list(SIDES)], []
    for number, task in enumerate(tasks, start=1):
        where = f"{path}: task {number}"
        pair = known_pair(task.data, shown, where)
        for given in task.annotations:
            if not given.was_cancelled:
                said = {result.from_name: result.said for result in given.result}
                rows.append(annotation(pair, given.annotator, said.get("label"), said, where))
    return table(rows)
