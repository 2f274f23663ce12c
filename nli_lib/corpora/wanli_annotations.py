"""What WANLI's workers said of the generated pairs, as it was released: one annotation a row, workers under aliases.

The paper had each of its 118,724 pairs annotated by two workers, and both annotations are in the whole file
(`anonymized_annotations.jsonl`). The released sample has one annotation of each of a hundred pairs.
"""

from pathlib import Path

import pandas as pd
from pydantic import BaseModel

from nli_lib.corpora.corpus import CorpusError
from nli_lib.corpora.labels import LABELS, canonical
from nli_lib.corpora.load import sources
from nli_lib.corpora.load.whole import every_row, refuse

NAME = "wanli-annotations"  # what a claim's evidence calls it
FILES = ("anonymized_annotations.jsonl", "anonymized_annotations_sample.jsonl")
FOLDERS = ("wanli", ".")
DISCARD = "discard"  # stands where a label stands


class Row(BaseModel, strict=True):
    """One row of the file, as far as it is read; `label` is the label that the generator was asked for."""

    WorkerId: str
    id: int
    premise: str
    hypothesis: str
    label: str
    revised_premise: str
    revised_hypothesis: str
    gold: str
    revised: bool


def annotations(data_dir: str | None = None) -> pd.DataFrame:
    """Every released annotation, one a row, in the file's order: the columns of `nli_lib.generate.annotations`.

    item       the pair's id, as in WANLI's own files
    annotator  the worker's alias
    premise, hypothesis, revised_premise, revised_hypothesis  as they were generated, and as the worker left them
    label      the name of the label that the worker gave, missing where the pair was discarded
    discarded  whether it was
    intended_label  the name of the label that the generator was asked for

    Raises `CorpusError` where the file is not at hand, naming it, and where it is malformed or contradicts itself,
    naming the row and the field.
    """
    folder, path = sources.data_folder(data_dir), find(data_dir)
    if path is None:
        raise CorpusError(f"WANLI's annotations: {sources.lacking(folder)} {FOLDERS[0]}/{FILES[0]}, or {FILES[1]}.")
    table = pd.DataFrame([row.model_dump() for row in every_row(path, Row)])
    discarded = table["gold"] == DISCARD
    label = table["gold"].map(canonical).where(~discarded)
    changed = (table["revised_premise"] != table["premise"]) | (table["revised_hypothesis"] != table["hypothesis"])
    gold, asked, who = table["gold"], table["label"], table["WorkerId"]
    faults = {
        "gold": (~discarded & ~label.isin(LABELS), gold, "is neither a label nor discard"),
        "label": (~asked.map(canonical).isin(LABELS), asked, "is no label"),
        "revised": (~discarded & (table["revised"] != changed), table["revised"], "is not what the texts say"),
        "WorkerId": (table.duplicated(["id", "WorkerId"]), who, "has annotated this pair twice"),
    }
    refuse(path, faults)
    named = {"id": "item", "WorkerId": "annotator", "label": "intended_label"}
    table = table.drop(columns=["gold", "revised"]).rename(columns=named)
    known = {"item": table["item"].astype(str), "intended_label": table["intended_label"].map(canonical)}
    return table.assign(label=label, discarded=discarded, **known)


def find(data_dir: str | None = None) -> Path | None:
    """The file of annotations that is at hand, the whole one before the sample; None where neither is."""
    folder = sources.data_folder(data_dir)
    places = [folder / place / file for file in FILES for place in FOLDERS] if folder else []
    return next((path for path in places if path.is_file()), None)
