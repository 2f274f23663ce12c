"""Suspects for Label Studio: tasks in the list's order with the model's label as a prediction, and decisions back.

Create a project with `label_studio.xml` (Settings, Labeling Interface, Code), import the tasks, label, export as JSON.
The review of generated pairs, which shows no label to anybody, is `nli_lib.generate.label_studio`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd

from nli_lib.generate.exchange import Answers, exported
from nli_lib.generate.label_studio import Task
from nli_lib.integrations.dynamics import IntegrationError
from nli_lib.integrations.suspects import DISCARD, OTHER_LIST, checked, decision, decisions
from nli_lib.store import atomic

FILES = ("label_studio.xml", "label_studio_suspects.json")


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
    paths = [Path(folder, name) for name in FILES]
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
