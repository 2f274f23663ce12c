"""Labels whose errors are known: VariErr, in which the annotators of a label judged their own reasons a second time.

VariErr (Weber-Genzel et al., 2024) had four people label 500 pairs of MultiNLI dev matched that ChaosNLI had chosen,
and explain each label. In a second round all four judged all explanations. A label is an *error* where none of those
who gave it stands by his explanation of it, and human variation otherwise. It is the outside truth for any score that
claims to find wrong labels: the people said themselves which of their labels were slips. The release also holds the
scores of its own detectors and the table made of them.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import BaseModel, TypeAdapter, ValidationError

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.labels import LABELS, to_index
from nli_lib.corpora.load import sources
from nli_lib.corpora.load.whole import every_row, refuse
from nli_lib.corpora.people import json_lists
from nli_lib.corpora.planted import check_truth

SPLIT = ("mnli", "validation_matched")
FOLDERS = ("varierr", "VariErr-NLI", ".")
FILE, PREDICTIONS, RESULTS = "varierr.json", "predictions", "results/results.tsv"
ITEMS = ("pair", "key", "premise", "hypothesis", "label", "error", "count", "hundred")
KNOWN = ("position", "pair", "key", "label", "error", "count", "five")
HELD_OUT = 4  # every so-manieth premise of the planted corpus is judged, and none of its pairs is trained on
SCORES = TypeAdapter(dict[str, float])


class Judgment(BaseModel, strict=True):
    annotator: int
    makes_sense: bool


class Explanation(BaseModel, strict=True):
    """Why one annotator gave a label, and what the four said of the reason."""

    annotator: int
    id: str
    judgments: list[Judgment]

    @property
    def stands(self) -> bool:
        """Whether its own author called it sensible in the second round; who did not judge it does not stand by it."""
        return any(each.makes_sense for each in self.judgments if each.annotator == self.annotator)


class Pair(BaseModel, strict=True):
    """One row of the file."""

    id: str
    context: str
    statement: str
    entailment: list[Explanation]
    neutral: list[Explanation]
    contradiction: list[Explanation]
    label_count_round_1: dict[str, float | None]
    error_labels: list[str]
    chaosnli_labels: dict[str, int]

    def items(self) -> list[tuple]:
        """A tuple as `ITEMS` names it for each label that somebody gave in the first round."""
        given = {name: getattr(self, name) for name in LABELS}
        rows = []
        for label, (name, why) in enumerate(given.items()):
            if why:
                key, error = f"{why[0].id.split('-')[0]}-{name[0]}", not any(each.stands for each in why)
                people = len(why), self.chaosnli_labels.get(name[0], 0)
                rows.append((self.id, key, self.context, self.statement, label, error, *people))
        return rows


def varierr(data_dir: str | None = None) -> pd.DataFrame:
    """Every label that somebody gave in VariErr's first round, one row each: 878 of 500 pairs, 129 of them errors.

    pair                 the pair's name, MultiNLI's pairID
    key                  name of the item in the published predictions, "664-e"
    premise, hypothesis  the texts
    label                index of the label
    error                whether none of those who gave it stood by his explanation in the second round
    count                how many of the four gave it, 1 to 4
    hundred              how many of ChaosNLI's 100 gave it

    Raises `CorpusError` where the file is not at hand, naming it, and where it is malformed or contradicts itself,
    naming the row and the field.
    """
    path = _folder(data_dir) / FILE
    pairs = every_row(path, Pair)
    table = pd.DataFrame([item for pair in pairs for item in pair.items()], columns=list(ITEMS))
    _check(pairs, table, path)
    return table


def _check(pairs: list[Pair], table: pd.DataFrame, path: Path) -> None:
    """The file's own counts and errors are what its explanations and judgments say, and no pair stands twice."""
    names = pd.Series([pair.id for pair in pairs])
    wrong = table[table["error"]].groupby("pair")["label"].agg(lambda part: {LABELS[label] for label in part})
    counts = table.pivot_table(index="pair", columns="label", values="count").reindex(columns=range(len(LABELS)))
    said = pd.DataFrame([pair.label_count_round_1 for pair in pairs]).reindex(columns=list(LABELS)).fillna(0)
    counted = (said.to_numpy(float) != counts.reindex(names).fillna(0).to_numpy()).any(axis=1)
    judged = [set(pair.error_labels) != wrong.get(pair.id, set()) for pair in pairs]
    why = "is the pair, and the field is not what its explanations and their authors' own judgments say"
    faults = {"id": (names.duplicated(), names, "stands twice")}
    faults |= {"label_count_round_1": (counted, names, why), "error_labels": (judged, names, why)}
    refuse(path, faults)


def known_errors(corpus: Corpus, *, data_dir: str | None = None) -> pd.DataFrame:
    """The labels of `corpus` that VariErr has judged, one row each, in the corpus's order.

    position  place of the pair in `corpus`
    five      share of the corpus's own five annotators who gave the label, 0 to 1; NaN where they are not known
    others    pair, key, label, error, count: as `varierr`

    Any corpus but MultiNLI dev matched, and a machine without the file, give an empty table. In the planted corpus a
    quarter of the premises is judged: each pair has one item, its given label, which is an error where it was flipped.
    """
    if corpus.name == "planted" and "flipped" in corpus.table:
        check_truth(corpus)
        group = np.unique(corpus.premise.astype(str), return_inverse=True)[1]
        table = pd.DataFrame({"position": np.flatnonzero(group % HELD_OUT == 0), "count": 1, "five": 1.0})
        at = table["position"].to_numpy()
        names, flipped = corpus.uid[at], corpus.table["flipped"].to_numpy(dtype=bool)[at]
        return table.assign(pair=names, key=names, label=corpus.labels[at], error=flipped)[list(KNOWN)]
    if (corpus.name, corpus.split) != SPLIT or _folder(data_dir, needed=False) is None:
        return pd.DataFrame(columns=list(KNOWN))
    own = pd.DataFrame({"pair": corpus.uid, "position": np.arange(len(corpus))})
    both = own.merge(varierr(data_dir), on="pair", validate="one_to_many")
    return both.assign(five=_five(corpus, both))[list(KNOWN)]


def _five(corpus: Corpus, items: pd.DataFrame) -> np.ndarray:
    """(K,) share of the corpus's own annotators who gave each item's label, NaN where the corpus does not say."""
    if "annotator_labels" not in corpus.table or items.empty:
        return np.full(len(items), np.nan)
    texts = corpus.table["annotator_labels"].iloc[items["position"]].reset_index(drop=True)
    votes = json_lists(texts).explode().dropna()
    agrees = to_index(votes, corpus.classes) == items["label"].to_numpy()[votes.index]
    return pd.Series(agrees, votes.index).groupby(level=0).mean().reindex(range(len(items))).to_numpy()


def published_scores(data_dir: str | None = None) -> pd.DataFrame:
    """What the release's own detectors said: method, run, key, score; the more suspect the higher.

    Empty if it is not at hand. Raises `CorpusError` naming the file and the item where a score is no number.
    """
    parts, folder = [pd.DataFrame(columns=["method", "run", "key", "score"])], _folder(data_dir, needed=False)
    for path in sorted((folder / PREDICTIONS).glob("*/*.json")) if folder else ():
        try:
            scores = pd.Series(SCORES.validate_json(path.read_bytes()), dtype=float)
        except ValidationError as error:
            first = error.errors()[0]
            item = ".".join(map(str, first["loc"])) or "whole"
            raise CorpusError(f"{path}: item {item}: {first['msg']}.") from None
        parts.append(pd.DataFrame({"method": path.parent.name, "run": path.stem, "key": scores.index, "score": scores}))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def published_table(data_dir: str | None = None) -> pd.DataFrame:
    """The release's table: index method; AP, P@50, P@100 and R@100 in percent, the means over runs as printed.

    Empty if it is not at hand. Raises `CorpusError` naming the file, and the row and the field that is no number.
    """
    folder, columns = _folder(data_dir, needed=False), ["AP", "P@50", "P@100", "R@100"]
    if folder is None or not (path := folder / RESULTS).is_file():
        return pd.DataFrame(columns=columns, index=pd.Index([], name="Method"), dtype=float)
    try:
        table = (
            pd.read_csv(path, sep="\t", dtype=str)
            .set_index("Method")
            .fillna("")
            .reindex(columns=columns, fill_value="")
        )
    except (ValueError, KeyError) as error:  # empty or not UTF-8; without the column
        raise CorpusError(f"{path}: no table with the column Method ({error}). Fetch it again.") from None
    numbers = table.apply(lambda column: column.str.extract(r"^\$(\d+\.\d+)(?:\\pm\d+\.\d+)?\$$")[0].astype(float))
    if numbers.isna().any(axis=None):
        row, column = (int(at[0]) for at in np.nonzero(numbers.isna().to_numpy()))
        raise CorpusError(f"{path}: row {row + 1}, field {table.columns[column]}: {table.iloc[row, column]!r}.")
    return numbers


def _folder(data_dir: str | None, *, needed: bool = True) -> Path | None:
    """Where the release lies; None, or where it is `needed` an error, if it is not at hand."""
    folder = sources.data_folder(data_dir)
    found = [folder / name for name in FOLDERS if (folder / name / FILE).is_file()] if folder else []
    if needed and not found:
        raise CorpusError(f"VariErr: {sources.lacking(folder)} {FOLDERS[0]}/{FILE}.")
    return found[0] if found else None
