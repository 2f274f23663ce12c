"""Corpora: tables of premise-hypothesis pairs with gold labels, and the names and rules of labels.

An example is identified by its position: scores are (N,), selections boolean (N,), a subset is ``corpus[keep]``::

    easy = corpus[confidence > 0.9]

Entailment is 0, neutral 1 and contradiction 2 everywhere in this library. Other projects use at least six orders
(WANLI's repository is alphabetical, GLUE's WNLI is the reverse of its QNLI, many checkpoints count from contradiction),
so labels and model outputs are mapped by *name*, never by number.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from nli_lib.errors import UserError

LABELS = ("entailment", "neutral", "contradiction")
E, N, C = 0, 1, 2

TWO_WAY = ("entailment", "not_entailment")
SUPPORTED_OR_REFUTED = ("entailment", "contradiction")
CONTRADICTION_OR_NOT = ("non_contradiction", "contradiction")

NO_GOLD, UNKNOWN = -1, -2

# spelling in lower case -> name used in this library
_SPELLINGS = yaml.safe_load(Path(__file__).with_name("labels.yaml").read_text(encoding="utf-8"))
NAMES = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings}
_NO_GOLD_NAMES = frozenset({"", "-", "-1", "hidden"})  # "hidden": withheld in FEVER's dev and test files
_NUMBERED = re.compile(r"label[_ -]?\d+|[+-]?\d+(\.0+)?", re.IGNORECASE)

# For each set of classes: its class for a three-way entailment, neutral and contradiction; -1 if it has none.
_GROUPS = {LABELS: (0, 1, 2), TWO_WAY: (0, 1, 1), SUPPORTED_OR_REFUTED: (0, -1, 1), CONTRADICTION_OR_NOT: (0, 0, 1)}
_GROUPS |= {LABELS[:2]: (0, 1, -1), LABELS[1:]: (-1, 0, 1)}


class CorpusError(UserError, ValueError):
    """A corpus or labels that cannot be read or used; the message names the file, the row, the field and what to do."""


class NotAtHandError(CorpusError):
    """A published corpus that is neither in the data folder nor available from the hub."""


def canonical(name: object) -> str | None:
    """The library's name for one spelling of a label (case and outer blanks ignored), or None if it is not known."""
    return NAMES.get(str(name).strip().lower())


def is_numbered(name: object) -> bool:
    """True if a label is a number or a placeholder (2, ``LABEL_0``), with a meaning that depends on an unknown
    order."""
    return _NUMBERED.fullmatch(str(name).strip()) is not None


def is_no_gold(name: object) -> bool:
    """True if a cell means that the row has no gold label: empty, "-", -1."""
    return str(name).strip().lower() in _NO_GOLD_NAMES


def are_several(name: object) -> bool:
    """True if a cell names several labels, such as "neutral, entailment"."""
    parts = re.split(r"[,;|/]", str(name).strip("[]() "))
    return len(parts) > 1 and all(canonical(part.strip(" '\"")) for part in parts)


def declared(labels: Mapping[str, str]) -> dict[str, str]:
    """Normalise a user's declaration of a file's labels: spelling, by `spelling`, -> name, "-" for none.

    Raises
    ------
    CorpusError
        If a name is not known.
    """
    known = {theirs: "-" if ours == "-" else canonical(ours) for theirs, ours in labels.items()}
    if unknown := sorted(str(labels[theirs]) for theirs, ours in known.items() if ours is None):
        known_ones = f"the names are {', '.join(_SPELLINGS)}, and - for rows to be left out"
        raise CorpusError(f"{', '.join(map(repr, unknown))} is no label: {known_ones}")
    return {spelling(theirs): ours for theirs, ours in known.items()}


def spelling(label: object) -> str:
    """Remove what a file may add to a label: capitals, outer blanks, the .0 of a number."""
    return re.sub(r"(?<=\d)\.0+\Z", "", str(label).strip().lower())


def to_index(values: Iterable, classes: Sequence[str] = LABELS, names: Mapping[str, str] | None = None) -> np.ndarray:
    """Index of each label name in `classes`; `NO_GOLD` (-1) without a gold label, `UNKNOWN` (-2) for an unknown name.

    Returns (N,) int64. In a two-class set "neutral" and "contradiction" count as "not_entailment".

    Parameters
    ----------
    values
        (N,) label names as a source spells them; None, NaN, "", "-" and -1 are rows without a gold label
    classes
        the corpus's classes, for instance `LABELS` or `TWO_WAY`
    names
        extra spellings for this source only, lower case: ``{"0": "not_entailment", ...}`` for WNLI's files
    """
    raw = pd.Series(list(values), dtype=object)
    codes, unique = pd.factorize(np.array([str(value) for value in raw.where(raw.notna(), "")], dtype=object))
    place = dict(zip(LABELS, _GROUPS.get(tuple(classes), ()), strict=False))
    place = {name: at for name, at in place.items() if at >= 0} | {name: at for at, name in enumerate(classes)}
    found = []
    for spelled in (value.strip().lower() for value in unique):
        name = (names or {}).get(spelled) or NAMES.get(spelled)
        found.append(NO_GOLD if name is None and is_no_gold(spelled) else place.get(name, UNKNOWN))
    return np.array(found, dtype=np.int64)[codes]


def head_columns(label2id: Mapping[str, int], classes: Sequence[str] = LABELS) -> np.ndarray:
    """Columns of a pretrained head in the library's order: ``logits[:, head_columns(config.label2id)]``.

    Returns (C,) int64. Raises `CorpusError` for ``LABEL_0``-style names, unknown names, and a head with other classes.

    Parameters
    ----------
    label2id
        the table in the model's configuration, name -> output number
    """
    if any(map(is_numbered, label2id)):
        fault = f"the model's label names are {sorted(map(str, label2id))}: they do not say which output is entailment."
        cure = "Set config.label2id to real names (see the model's card), or use the encoder without its head."
        raise CorpusError(f"{fault} {cure}")
    found = {canonical(name): int(column) for name, column in label2id.items()}
    if None in found or set(found) != set(classes) or sorted(found.values()) != list(range(len(classes))):
        head = f"label2id={dict(label2id)}"
        raise CorpusError(f"the model's head has {head}; by name it is not the classes {tuple(classes)}.")
    return np.array([found[name] for name in classes], dtype=np.int64)


def collapse(logits: np.ndarray, classes: Sequence[str] = LABELS, rule: str = "argmax") -> np.ndarray:
    """Predicted class of each example from three-way logits: an index into `classes`, or -1 for none of them.

    Two-way FEVER has no neutral: "argmax" counts a neutral prediction as wrong (-1), "sum" leaves neutral out.

    Returns (N,) int64.

    Parameters
    ----------
    logits
        (N, 3), in the order of `LABELS`
    classes
        `LABELS`, two of them (two-way FEVER is `SUPPORTED_OR_REFUTED`), `TWO_WAY` (HANS, QNLI, RTE, WNLI, MED) or
        `CONTRADICTION_OR_NOT`
    rule
        "argmax": the three-way argmax, then its class. "sum": the probabilities of each class are added up, then the
        argmax; a tie goes to the first class. They differ: with "sum", entailment needs p(E) >= .5.

    Notes
    -----
    *Departures*: every table here uses "argmax"; "sum" is offered for comparison.

    References
    ----------
    Both rules are in use for the same HANS sentences (hans ``evaluate_heur_output.py`` and robust-nli collapse the
    argmax; gen-debiased-nli sums).

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.corpora.corpus import TWO_WAY, collapse
    >>> logits = np.log([[0.4, 0.35, 0.25]])
    >>> collapse(logits, TWO_WAY), collapse(logits, TWO_WAY, rule="sum")
    (array([0]), array([1]))
    """
    logits = np.asarray(logits, dtype=np.float64)
    if logits.ndim != 2 or logits.shape[1] != len(LABELS):
        raise ValueError(f"collapse needs logits of shape (N, {len(LABELS)}), not {logits.shape}")
    if tuple(classes) not in _GROUPS:
        raise ValueError(f"no rule carries {LABELS} to the classes {tuple(classes)}; known: {list(_GROUPS)}")
    group = np.array(_GROUPS[tuple(classes)])
    if rule == "argmax":
        return group[logits.argmax(axis=1)]
    if rule != "sum":
        raise ValueError(f'rule="{rule}" is not one of "argmax", "sum"')
    from scipy.special import softmax

    return (softmax(logits, axis=1) @ (group[:, None] == np.arange(len(classes)))).argmax(axis=1)  # (N, 3) @ (3, C)


# ---------------------------------------------------------------- corpus


SIDES = ["premise", "hypothesis"]
COLUMNS = ("uid", "premise", "hypothesis", "label", "corpus", "split")
# Limits at which `Corpus.warnings` warns: share of the rows left out, share of the rows in a class, rows in a class.
MANY, RARE, FEW = 0.05, 0.1, 100


def _column(name: str, dtype: type = object) -> cached_property:
    """(N,) a column of the table as an array, of str unless a dtype is given."""
    return cached_property(lambda corpus: corpus.table[name].to_numpy(dtype=dtype))


@dataclass(frozen=True, eq=False)
class Corpus:
    """N examples, their classes and their source.

    For text made from other text, these columns mean the same in every corpus; a corpus has those that its source
    knows:

    origin_uid
        uid of the example it was made from
    origin_corpus
        name of the corpus of that example
    maker
        the author: "worker", "rule", or a model's name ("gpt-3-curie")
    intended_label
        name of the label that the maker was asked for; `label` is the label it was judged to have

    Attributes
    ----------
    table
        `COLUMNS` first (uid a unique string, label an index into `classes`), then the source's extra columns; for a
        user's file, all its other columns, with unchanged names
    name
        the corpus's name ("snli"), or the stem of a user's file
    split
        the requested split
    classes
        `LABELS`, or the class names of a two-class set; see `nli_lib.corpora.corpus.collapse`
    skipped
        rows of the source that are not in the table, counted by reason
    source
        the file or hub revision that was read, and whether it is a sample
    rows_read
        rows of the source, used or not; for a subset, those of the whole corpus. None: rows of the table and `skipped`

    Examples
    --------
    >>> from nli_lib.corpora import load
    >>> corpus = load("planted", "test", limit=30)
    >>> len(corpus), corpus.classes
    (30, ('entailment', 'neutral', 'contradiction'))
    >>> corpus[corpus.labels == 0].counts["entailment"]
    10
    """

    table: pd.DataFrame
    name: str
    split: str
    classes: tuple[str, ...] = LABELS
    skipped: Mapping[str, int] = field(default_factory=dict)
    source: str = ""
    rows_read: int | None = None

    def __post_init__(self) -> None:
        if missing := [column for column in COLUMNS if column not in self.table.columns]:
            raise CorpusError(f"{self._where()}: columns {missing} are missing; found {list(self.table.columns)}")
        ordered = list(dict.fromkeys([*COLUMNS, *self.table.columns]))
        object.__setattr__(self, "table", self.table[ordered].reset_index(drop=True))
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.rows_read is None:
            object.__setattr__(self, "rows_read", len(self.table) + sum(self.skipped.values()))
        if (repeated := self.table["uid"].duplicated()).any():
            raise CorpusError(f"{self._where()}: uid {self.table['uid'][repeated].iloc[0]!r} names more than one row")
        if (outside := (self.labels < 0) | (self.labels >= len(self.classes))).any():
            row = int(outside.argmax())
            fault = f"row {row} has label {self.labels[row]}, outside the classes {self.classes}"
            raise CorpusError(f"{self._where()}: {fault}")

    def _where(self) -> str:
        return f"corpus {self.name}/{self.split}" + (f" from {self.source}" if self.source else "")

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, keep: np.ndarray | Sequence[int] | slice) -> Corpus:
        """Select examples by a boolean mask (N,), integer positions or a slice; returns a Corpus."""
        return replace(self, table=self.table.iloc[np.arange(len(self))[keep]])

    def __repr__(self) -> str:
        classes = "/".join(self.classes)
        return f"Corpus({self.name}/{self.split}, {len(self):,} examples, classes={classes}, source={self.source!r})"

    labels = _column("label", np.int64)  # gold labels, indices into `classes`
    premise = _column("premise")
    hypothesis = _column("hypothesis")
    uid = _column("uid")  # unique names

    def texts(self, view: str = "pair") -> tuple[list[str], list[str] | None]:
        """The texts of a view: (premises, hypotheses) for "pair", (one side, None) for "hypothesis" and "premise"."""
        if view not in ("pair", *SIDES):
            raise ValueError(f'view="{view}" is not one of pair, hypothesis, premise')
        first = "premise" if view == "pair" else view
        return getattr(self, first).tolist(), self.hypothesis.tolist() if view == "pair" else None

    def to_dataset(self) -> object:
        """Convert the table to a Hugging Face dataset, with labels as `ClassLabel` with the names of `classes`."""
        import datasets

        dataset = datasets.Dataset.from_pandas(self.table, preserve_index=False)
        return dataset.cast_column("label", datasets.ClassLabel(names=list(self.classes)))

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows of each class, by name."""
        return dict(zip(self.classes, np.bincount(self.labels, minlength=len(self.classes)).tolist(), strict=True))

    @property
    def _counted(self) -> str:
        return ", ".join(f"{name} {count:,}" for name, count in self.counts.items())

    @property
    def left_out(self) -> str:
        """A text that counts the source's rows missing from the table, by reason; "" if there are none."""
        reasons, left = (f"{reason} {count:,}" for reason, count in self.skipped.items()), sum(self.skipped.values())
        verb = "was" if left == 1 else "were"
        return f"{left:,} of {self.rows_read:,} rows {verb} left out: {', '.join(reasons)}." if left else ""

    def warnings(self) -> list[str]:
        """Warnings about the corpus: many rows left out, only one class, a rare class, few rows."""
        found, counts = [], self.counts
        if sum(self.skipped.values()) > MANY * self.rows_read:
            found.append(f"More than {MANY:.0%} of the rows cannot be used. {self.left_out}")
        if len(self) and max(counts.values()) == len(self):
            found.append(f"All rows are {max(counts, key=counts.get)}: nothing that compares classes can be measured.")
            return found
        for name, count in counts.items():
            if not count:
                found.append(f"No row is {name}: nothing that compares {name} with another class can be measured.")
            elif count < RARE * len(self):
                few = f"Only {count:,} of {len(self):,} rows ({count / len(self):.1%}) are {name}: accuracy hardly"
                found.append(f"{few} depends on them, and what is measured on them alone is uncertain.")
        if min(counts.values()) < FEW:
            small = f"Fewer than {FEW} rows of a class ({self._counted})"
            found.append(f"{small}: expect wide intervals, and models that have not learnt the task.")
        return found

    @cached_property
    def digest(self) -> str:
        """sha256 (hex) over uid, premise, hypothesis and label: equal digests are equal examples in equal order."""
        total = hashlib.sha256(len(self).to_bytes(8, "little"))
        for column in (self.uid, self.premise, self.hypothesis):
            # The lengths distinguish ("ab", "c") from ("a", "bc").
            total.update(np.fromiter(map(len, column), dtype="<i8", count=len(column)).tobytes())
            total.update("".join(column).encode("utf-8"))
        total.update(self.labels.astype("<i8").tobytes())
        return total.hexdigest()

    def examples(self, *, extra: Sequence[str] = ()) -> pd.DataFrame:
        """A few example pairs: the first of each class, with the name of its label and the `extra` columns."""
        rows = self.table.drop_duplicates("label")
        names = np.array(self.classes, dtype=object)[rows["label"]]
        return rows[[*SIDES, *extra]].assign(label=names).reset_index(drop=True)


def concat(corpora: Sequence[Corpus], *, name: str, split: str = "train") -> Corpus:
    """Concatenate corpora into one with `name` and `split`; the columns of these names keep each row's origin.

    A uid that an earlier row has gets "#2", "#3" appended. A column that only some corpora have is missing (NaN) in the
    rows of the others. `skipped` is summed. Raises `CorpusError` if a corpus has other classes than the first.

    Examples
    --------
    >>> from nli_lib.corpora import concat, load
    >>> parts = [load("planted", split, limit=30) for split in ("train", "test")]
    >>> len(concat(parts, name="both"))
    60
    """
    if not corpora:
        raise CorpusError(f"{name}: concat was given no corpus")
    classes = corpora[0].classes
    if any(corpus.classes != classes for corpus in corpora):
        said = "; ".join(f"{corpus.name}/{corpus.split}: {', '.join(corpus.classes)}" for corpus in corpora)
        raise CorpusError(f"{name}: corpora with different classes cannot be joined ({said}).")
    table = pd.concat([corpus.table for corpus in corpora], ignore_index=True)
    table["uid"] = unique_uids(table["uid"])
    skipped = dict(sum((Counter(corpus.skipped) for corpus in corpora), Counter()))
    source, rows_read = " + ".join(corpus.source for corpus in corpora), sum(corpus.rows_read for corpus in corpora)
    return Corpus(table, name, split, classes, skipped, source, rows_read)


def check_enough(corpus: Corpus, rows_a_class: int = 2, what: str = "this analysis") -> None:
    """Raise one `CorpusError` if a class has fewer than `rows_a_class` rows, or if there is only one class.

    Parameters
    ----------
    what
        the purpose, for the message: "five folds"
    """
    if min(corpus.counts.values()) < rows_a_class or len(corpus.classes) < 2:
        needed = f"{rows_a_class:,} rows of each class are needed, and there are {corpus._counted}"
        cure = "Add rows, or leave the rows of the small class out; a corpus of one class cannot be analysed."
        raise CorpusError(f"{corpus._where()}: {what}: {needed}. {cure}")


def unique_uids(uid: pd.Series) -> pd.Series:
    """Make uids unique: append "#2", "#3" to the second and third row with the same name."""
    while uid.duplicated().any():
        turn = uid.groupby(uid).cumcount()
        uid = uid.where(turn == 0, uid + "#" + (turn + 1).astype(str))
    return uid


def duplicates(corpus: Corpus) -> pd.DataFrame:
    """Mark the rows that repeat an earlier row of the same corpus: N rows, boolean columns; `.sum()` counts.

    pairs
        the same premise and hypothesis
    conflicting
        the pair occurs in several rows (the first included) that do not all have the same label
    premises
        the premise (usual: SNLI writes three hypotheses for each)
    hypotheses
        the hypothesis

    Examples
    --------
    >>> from nli_lib.corpora import concat, duplicates, load
    >>> corpus = load("planted", "test", limit=30)
    >>> int(duplicates(concat([corpus, corpus], name="twice"))["pairs"].sum())
    30
    """
    table = corpus.table
    conflicting = table.groupby(SIDES)["label"].transform("nunique") > 1
    found = pd.DataFrame({"pairs": table.duplicated(SIDES), "conflicting": conflicting})
    return found.assign(premises=table.duplicated("premise"), hypotheses=table.duplicated("hypothesis"))


def overlap(a: Corpus, b: Corpus) -> pd.DataFrame:
    """Mark the rows of `a` with a pair, premise or hypothesis that also occurs in `b`; for leakage, a = test and b =
    train.

    Boolean columns pairs, premises, hypotheses. Letter case and runs of blanks are ignored.

    Examples
    --------
    >>> from nli_lib.corpora import load, overlap
    >>> test = load("planted", "test", limit=30)
    >>> bool(overlap(test, test)["pairs"].all())
    True
    """
    one, other = (corpus.table[SIDES].replace(r"\s+", " ", regex=True) for corpus in (a, b))
    one, other = (table.apply(lambda side: side.str.lower().str.strip()) for table in (one, other))
    pairs = pd.MultiIndex.from_frame(one).isin(pd.MultiIndex.from_frame(other))
    premises, hypotheses = (one[side].isin(other[side]) for side in SIDES)
    return pd.DataFrame({"pairs": pairs, "premises": premises, "hypotheses": hypotheses})
