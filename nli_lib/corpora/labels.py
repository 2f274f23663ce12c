"""Labels: the one order, the names every source uses, and the rules that carry three classes to two.

Entailment is 0, neutral 1 and contradiction 2 everywhere in this library. At least six orders are in use elsewhere
(WANLI's repository is alphabetical, GLUE's WNLI is the reverse of its QNLI, many checkpoints count from contradiction),
so a label or a model's output is only ever mapped by its *name*, never by its number.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
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

# spelling, lower case -> the name used in this library
_SPELLINGS = yaml.safe_load(Path(__file__).with_name("labels.yaml").read_text(encoding="utf-8"))
NAMES = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings}
_NO_GOLD_NAMES = frozenset({"", "-", "-1", "hidden"})  # "hidden": the withheld labels of FEVER's own dev and test files
_NUMBERED = re.compile(r"label[_ -]?\d+|[+-]?\d+(\.0+)?", re.IGNORECASE)

# For each set of classes: the class of a three-way entailment, neutral and contradiction; -1 is no class of the set.
_GROUPS = {
    LABELS: (0, 1, 2),
    TWO_WAY: (0, 1, 1),
    SUPPORTED_OR_REFUTED: (0, -1, 1),
    CONTRADICTION_OR_NOT: (0, 0, 1),
    ("entailment", "neutral"): (0, 1, -1),
    ("neutral", "contradiction"): (-1, 0, 1),
}


class LabelError(UserError, ValueError):
    """Labels or label names that cannot be mapped by name."""


def canonical(name: object) -> str | None:
    """The library's name for one spelling of a label (case and outer blanks ignored), or None when it is not known."""
    return NAMES.get(str(name).strip().lower())


def is_numbered(name: object) -> bool:
    """Whether a label is a number or a placeholder (2, ``LABEL_0``): it depends on an order that nobody states."""
    return _NUMBERED.fullmatch(str(name).strip()) is not None


def is_no_gold(name: object) -> bool:
    """Whether a cell says that a row has no gold label: nothing, "-", -1."""
    return str(name).strip().lower() in _NO_GOLD_NAMES


def are_several(name: object) -> bool:
    """Whether a cell names several labels, such as "neutral, entailment"."""
    parts = re.split(r"[,;|/]", str(name).strip("[]() "))
    return len(parts) > 1 and all(canonical(part.strip(" '\"")) for part in parts)


def declared(labels: Mapping[str, str]) -> dict[str, str]:
    """What somebody says that the labels of a file mean: spelling, as `spelling` has it, -> name, "-" for none.

    Raises `LabelError` where a name is not known.
    """
    known = {theirs: "-" if ours == "-" else canonical(ours) for theirs, ours in labels.items()}
    if unknown := sorted(str(labels[theirs]) for theirs, ours in known.items() if ours is None):
        raise LabelError(
            f"{', '.join(map(repr, unknown))} is no label: the names are {', '.join(_SPELLINGS)}, and - for rows to be "
            "left out"
        )
    return {spelling(theirs): ours for theirs, ours in known.items()}


def spelling(label: object) -> str:
    """A label without what a file may do to it: capitals, blanks around it, the .0 of a number."""
    return re.sub(r"(?<=\d)\.0+\Z", "", str(label).strip().lower())


def to_index(
    values: Iterable[object], classes: Sequence[str] = LABELS, names: Mapping[str, str] | None = None
) -> np.ndarray:
    """Index of each label name in `classes`; `NO_GOLD` (-1) without a gold label, `UNKNOWN` (-2) for any other name.

    values   (N,) label names as a source spells them; None, NaN, "", "-" and -1 are rows without a gold label
    classes  the corpus's classes, for instance `LABELS` or `TWO_WAY`
    names    further spellings of this source alone, lower case: ``{"0": "not_entailment", ...}`` for WNLI's files

    Returns (N,) int64. In a two-class set "neutral" and "contradiction" count as "not_entailment".
    """
    raw = pd.Series(list(values), dtype=object)
    codes, unique = pd.factorize(np.array([str(value) for value in raw.where(raw.notna(), "")], dtype=object))
    table = np.array([_one_index(value, tuple(classes), names or {}) for value in unique], dtype=np.int64)
    return table[codes]


def _one_index(value: str, classes: tuple[str, ...], names: Mapping[str, str]) -> int:
    spelled = value.strip().lower()
    name = names.get(spelled) or NAMES.get(spelled)
    if name in classes:
        return classes.index(name)
    if name in LABELS and classes in _GROUPS:
        group = _GROUPS[classes][LABELS.index(name)]
        return group if group >= 0 else UNKNOWN
    return NO_GOLD if name is None and spelled in _NO_GOLD_NAMES else UNKNOWN


def head_columns(label2id: Mapping[str, int], classes: Sequence[str] = LABELS) -> np.ndarray:
    """Columns of a pretrained head in the library's order: ``logits[:, head_columns(config.label2id)]``.

    label2id  the model configuration's own table, name -> output number

    Returns (C,) int64. Raises `LabelError` for ``LABEL_0``-style names, unknown names, and a head with other classes.
    """
    shown = dict(label2id)
    if any(map(is_numbered, shown)):
        raise LabelError(
            f"the model's label names are {sorted(map(str, shown))}: they do not say which output is entailment. "
            "Set config.label2id to real names (see the model's card), or use the encoder without its head."
        )
    found = {canonical(name): int(column) for name, column in shown.items()}
    if None in found or set(found) != set(classes) or sorted(found.values()) != list(range(len(classes))):
        raise LabelError(f"the model's head has label2id={shown}; by name it is not the classes {tuple(classes)}.")
    return np.array([found[name] for name in classes], dtype=np.int64)


def collapse(logits: np.ndarray, classes: Sequence[str] = LABELS, rule: str = "argmax") -> np.ndarray:
    """Predicted class of each example from three-way logits: an index into `classes`, or -1 for none of them.

    logits   (N, 3), in the order of `LABELS`
    classes  `LABELS`, two of them (two-way FEVER is `SUPPORTED_OR_REFUTED`), `TWO_WAY` (HANS, QNLI, RTE, WNLI, MED) or
             `CONTRADICTION_OR_NOT`
    rule     "argmax": the three-way argmax, then its class. "sum": the probabilities of each class added up, then the
             argmax; a tie goes to the first class. They differ: with "sum", entailment needs p(E) >= .5.

    Two-way FEVER has no neutral: "argmax" counts a neutral prediction as wrong (-1), "sum" leaves neutral out.
    Returns (N,) int64.

    Source: both rules are in use for the same HANS sentences (hans ``evaluate_heur_output.py`` and robust-nli collapse
    the argmax; gen-debiased-nli sums). *Departures*: "argmax" is the rule of every table here, "sum" stands beside it.
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

    membership = (group[:, None] == np.arange(len(classes))).astype(np.float64)
    return (softmax(logits, axis=1) @ membership).argmax(axis=1)
