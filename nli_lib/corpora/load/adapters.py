"""Adapters: from a source's own columns to the library's, and what the catalogue cannot say; labels stay names."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from nli_lib.corpora.corpus import CorpusError
from nli_lib.corpora.labels import (
    CONTRADICTION_OR_NOT,
    LABELS,
    SUPPORTED_OR_REFUTED,
    TWO_WAY,
    canonical,
    declared,
    is_numbered,
    spelling,
)
from nli_lib.corpora.load.catalogue import Source
from nli_lib.corpora.load.rows import Rows, shown

ORIENTATIONS = ("evidence", "hub")
_ALL = yaml.safe_load(Path(__file__).with_name("own.yaml").read_text(encoding="utf-8"))
OWN, OWN_IDS = _ALL["fields"], _ALL["ids"]


def adapt(name: str, source: Source, raw: Rows, split: str, **options: str) -> Rows:
    """The rows of one of the catalogue's files (official format or hub table) under the library's names."""
    rows = replace(raw.pick(source.fields, source.extras), classes=source.classes, names=source.names)
    return SPECIAL[name](raw, rows, split, **options) if name in SPECIAL else rows


def anli(raw: Rows, rows: Rows, split: str) -> Rows:
    """The column `round` (1, 2 or 3) comes from the split's name."""
    return rows.assign(round=int(split[-1]))


def wanli(raw: Rows, rows: Rows, split: str) -> Rows:
    """GPT-3 Curie wrote the pairs; where genre is "generated_revised", a worker changed the text.

    pairID is the row number of the seed in MultiNLI train and not its pairID, so the seed's uid is not known.
    """
    revised = rows.table["genre"] == "generated_revised" if "genre" in rows.table else False
    return rows.assign(origin_corpus="mnli", maker=np.where(revised, "gpt-3-curie, worker", "gpt-3-curie"))


def fever(raw: Rows, rows: Rows, split: str, orientation: str = "evidence") -> Rows:
    """FEVER as NLI: SUPPORTS is entailment, REFUTES contradiction, NOT ENOUGH INFO neutral.

    Three-way files hold query (the claim) and context (the evidence); the two-way file holds sentence1 (the evidence)
    and sentence2 (the claim) and has no neutral class. With orientation "evidence" the evidence is the premise and the
    claim the hypothesis.

    *Departures*: the hub's copy, and the page that describes the format, call the claim the premise. A hypothesis-only
    model then sees evidence only, which is why the difficulty paper finds no artefact in FEVER. orientation="hub"
    reproduces that.
    """
    if orientation not in ORIENTATIONS:
        raise CorpusError(f'fever: orientation="{orientation}" is not one of {", ".join(ORIENTATIONS)}.')
    classes = SUPPORTED_OR_REFUTED if "sentence1" in raw.table else LABELS
    if orientation == "evidence":
        return replace(rows, classes=classes, note="evidence as premise, claim as hypothesis")
    turned = rows.table.rename(columns={"premise": "hypothesis", "hypothesis": "premise"})
    return replace(rows, table=turned, classes=classes, note="claim as premise, as on the hub")


def sick(raw: Rows, rows: Rows, split: str) -> Rows:
    """SICK.txt holds all splits, told apart by SemEval_set."""
    if "SemEval_set" not in raw.table:
        return rows
    part = {"train": "TRAIN", "validation": "TRIAL", "test": "TEST"}[split]
    here = (raw.table["SemEval_set"] == part).to_numpy(dtype=bool)
    return replace(rows, table=rows.table[here].reset_index(drop=True), row=rows.row[here])


def cad(raw: Rows, rows: Rows, split: str) -> Rows:
    """Human-CAD: no ids. The rows of the revised folders stand in the order of their originals in original/<split>.

    revised_combined has four revisions of each original, revised_premise and revised_hypothesis two, each written by a
    worker for the label that it bears. all_combined has another order, so that its origins are not known.
    """
    folder, part = split.split("/")
    each = {"revised_premise": 2, "revised_hypothesis": 2, "revised_combined": 4}.get(folder)
    if each is None:
        return rows
    origin = f"cad-original/{part}-" + pd.Series(rows.row // each).astype(str)
    intended = rows.table["label"].map(canonical)
    return rows.assign(origin_uid=origin, origin_corpus="cad", maker="worker", intended_label=intended)


def chaosnli(raw: Rows, rows: Rows, split: str) -> Rows:
    """ChaosNLI: 100 new labels for each example; label is their majority, uid the pairID of SNLI or MultiNLI.

    Extras: n_entailment, n_neutral, n_contradiction (counts of the 100 labels), entropy (bits, as in the file),
    majority, old_label (the original gold label, by name), annotator_labels (the original five) and source.
    """
    table = rows.table.rename(columns={"old_labels": "annotator_labels"})
    inner = [example if isinstance(example, dict) else {} for example in table["premise"]]
    counts = table.pop("label_count") if "label_count" in table else pd.Series([None] * len(table), dtype=object)
    wrong = [i for i, three in enumerate(counts) if not _three_counts(three)]
    if wrong:
        row, found = int(rows.row[wrong[0]]) + 1, counts[wrong[0]]
        raise CorpusError(
            f"{rows.where}: row {row}, field 'label_count': not three counts but {found!r}. Fetch the file again."
        )
    three = np.array(counts.tolist(), dtype=np.int64).reshape(-1, len(LABELS))
    for field in ("premise", "hypothesis", "source"):
        table[field] = pd.Series([example.get(field) for example in inner], dtype=object)
    table[[f"n_{name}" for name in LABELS]] = three
    table["majority"] = table["label"].map(canonical)
    if "old_label" in table:
        table["old_label"] = table["old_label"].map(canonical)
    return replace(rows, table=table)


def _three_counts(value: object) -> bool:
    """Whether these are whole numbers from 0, one for each of `LABELS`, of at least one person."""
    whole = isinstance(value, list) and all(type(count) is int and count >= 0 for count in value)
    return whole and len(value) == len(LABELS) and sum(value) > 0


def stress(raw: Rows, rows: Rows, split: str) -> Rows:
    """All but antonym and numerical change one side of a pair of MultiNLI dev, whose pairID is kept."""
    if split.split("/")[0] in ("antonym", "numerical"):
        return rows.assign(maker="rule")
    known = {"origin_uid": rows.table["pairID"]} if "pairID" in rows.table else {}
    return rows.assign(**known, origin_corpus="mnli", maker="rule", intended_label=rows.table["label"].map(canonical))


def disco(raw: Rows, rows: Rows, split: str) -> Rows:
    """DISCO releases: the counterfactual (new_premise, new_label), written by GPT-3 for the label that it bears.

    The original is a pair of SNLI without its uid, so its text and label are kept: origin_premise (the hypothesis is
    the same), origin_label.
    """
    origin = raw.pick({"origin_premise": "premise", "origin_label": "label"}).table
    intended = rows.table["label"].map(canonical)
    return rows.assign(**origin, origin_corpus="snli", maker="text-davinci-002", intended_label=intended)


SPECIAL = {adapter.__name__: adapter for adapter in (anli, wanli, fever, sick, cad, chaosnli, stress, disco)}


def own(raw: Rows, columns: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None) -> Rows:
    """A user's own rows: premise, hypothesis, label (names); every other column is kept under its own name.

    columns  the library's name -> the file's, for instance ``{"premise": "q", "label": "verdict"}``. Without it the
             names of `OWN` are understood, in upper and lower case; an empty column gives way to another, and a column
             of numbers to one of label names. Numbers are places in a file without a header: ``{"premise": "2"}``.
    labels   the file's name of a label -> the library's, "-" for rows to be left out: ``{"0": "entailment", ...}``

    The uid is the column of that name, or one of `OWN_IDS` if it names every row once, else made from the row number.
    The classes are the labels that are there, in the library's order.
    """
    columns = dict(columns or {})
    unknown = sorted(set(columns) - set(OWN))
    if unknown:
        raise CorpusError(f"columns={columns}: {', '.join(unknown)} is not one of {', '.join(OWN)}.")
    absent = [theirs for theirs in columns.values() if theirs not in raw.table]
    if absent:
        found = f"which is not in the file; found {shown(raw.table)}."
        raise CorpusError(f"{raw.where}: columns= names {shown(absent)}, {found}")
    meant = declared(labels or {})
    rows = raw.pick({**OWN, **_fullest(raw.table, meant), **columns}, extras=None, advice=f" {_ALL['advice']}")
    if columns and all(map(str.isdecimal, columns.values())):
        rows = _without_header(rows, meant)
    table = rows.table
    if meant:
        table = table.assign(label=[meant.get(spelling(label), label) for label in table["label"]])
    for name in OWN_IDS if "uid" not in table else ():
        ids = next((table[column] for column in table if column.lower() == name.lower()), None)
        if ids is not None and ids.notna().all() and ids.map(str).is_unique:
            table = table.assign(uid=ids)
            break
    classes = _classes_of(table["label"], raw.where)
    note = "" if classes == LABELS else f"two classes: {', '.join(classes)}"
    return replace(rows, table=table, classes=classes, note=note)


def _without_header(rows: Rows, meant: Mapping[str, str]) -> Rows:
    """The rows of a file whose columns were named by their places, without the first where that is a header after all:
    what stands in place of its label is no label, and stands in no other row."""
    label = str(rows.table["label"].iloc[0])
    named = canonical(label) or is_numbered(label) or spelling(label) in meant
    if named or rows.row[0] or label in set(map(str, rows.table["label"][1:])):
        return rows
    print(f"{rows.where}: row 1 is taken for a header ({shown(rows.table.iloc[0])}).")
    return replace(rows, table=rows.table[1:].reset_index(drop=True), row=rows.row[1:])


def _fullest(table: pd.DataFrame, meant: Mapping[str, str]) -> dict[str, str]:
    """Of several columns that may be one of the library's, the first that says something: a text, a label's name."""

    def says(ours: str, value: object) -> bool:
        return str(value).strip() != "" if ours != "label" else spelling(value) in meant or canonical(value) is not None

    there, chosen = {name.lower(): name for name in reversed(table.columns)}, {}
    for ours, names in OWN.items():
        theirs = [there[name] for name in names if name in there]
        for name in theirs if len(theirs) > 1 else ():
            if any(says(ours, value) for value in set(map(str, table[name].dropna()))):
                chosen[ours] = name
                break
    return chosen


def _classes_of(labels: pd.Series, where: str) -> tuple[str, ...]:
    """The classes named in a column of labels; where it names only one, the known set of classes that has it."""
    named = {canonical(label) for label in set(map(str, labels))} - {None}
    for known in (LABELS, TWO_WAY, CONTRADICTION_OR_NOT):
        if named <= set(known):
            return tuple(name for name in known if name in named) if len(named) > 1 else known
    raise CorpusError(
        f"{where}: field 'label': {', '.join(sorted(named))} do not belong together. A corpus has three classes "
        f"({', '.join(LABELS)}) or two ({', '.join(TWO_WAY)}): write not_entailment for neutral and contradiction, or "
        "leave out the rows that say not_entailment."
    )
