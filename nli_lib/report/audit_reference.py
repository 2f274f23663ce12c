"""What SNLI, MultiNLI and WANLI show at the size of somebody's corpus: recorded curves over the number of pairs.

beside = reference(corpus.classes, len(corpus))     corpus, figure, value, low, high at n pairs

z grows with the square root of n; what a filter drops and what a model of n-grams learns also depend on n: a figure of
one corpus can be read beside that of another at equal size alone. `audit_curves.csv` holds numbers only; it was made by
`benchmarks/audit_curves.py` from the official development and test sets of SNLI and MultiNLI and a public sample of
WANLI's training set.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import Corpus, concat
from nli_lib.corpora.labels import CONTRADICTION_OR_NOT, LABELS, TWO_WAY
from nli_lib.report.audit import comparable
from nli_lib.report.audit_figures import leakage, sample_premises

FILE = Path(__file__).with_name("audit_curves.csv")
TITLES = {"snli": "SNLI", "mnli": "MultiNLI", "wanli": "WANLI"}
POOLS = {
    "snli": ("validation", "test"),
    "mnli": ("validation_matched", "validation_mismatched"),
    "wanli": ("train",),
}
SIZES = (40, 60, 100, 150, 250, 400, 600, 1_000, 1_500, 2_500, 4_000, 6_000, 10_000, 15_000)
# up to so many pairs, so many draws of whole premises: of three classes, of two
DRAWS = ((1_500, 10, 4), (6_000, 5, 3), (15_000, 3, 2))
SETS = (LABELS, LABELS[:2], (LABELS[0], LABELS[2]), LABELS[1:], TWO_WAY, CONTRADICTION_OR_NOT)
BALANCED = {"wanli"}  # the sample was balanced over the labels by those who made it: it has no majority to show
COLUMNS = ("corpus", "classes", "figure", "n", "value", "low", "high", "draws")


def reference(classes: Sequence[str], n: int) -> pd.DataFrame:
    """Rows corpus, figure, value, low, high (smallest and largest of the draws), at: the figures of the three corpora.

    at   the number of pairs that they are about: ``n``, or the most that all three curves reach where n is more; of
         leakage, for which a part of the pairs is the test set, the most that was recorded of that corpus

    Between two recorded sizes a figure is interpolated over log n. There are no rows for classes that were not
    recorded, nor for a figure below the sizes at which it could be measured. Leakage was recorded for three classes and
    does not depend on them.
    """
    known = curves()
    name = "/".join(classes)
    own = known[(known["classes"] == name) | ((known["classes"] == "any") & (name in set(known["classes"])))]
    if own.empty:
        return pd.DataFrame(columns=["corpus", "figure", "value", "low", "high", "at"])
    reach = own[own["classes"] == name].groupby("corpus")["n"].max().min()
    at, rows = int(min(n, reach)), []
    for (corpus, figure), curve in own.dropna(subset=["value"]).groupby(["corpus", "figure"], sort=False):
        curve = curve.sort_values("n")
        if at < curve["n"].min():
            continue
        found = [np.interp(np.log(at), np.log(curve["n"]), curve[end]) for end in ("value", "low", "high")]
        rows.append((corpus, figure, *map(float, found), min(at, int(curve["n"].max()))))
    return pd.DataFrame(rows, columns=["corpus", "figure", "value", "low", "high", "at"])


def curves() -> pd.DataFrame:
    """The recorded curves: `COLUMNS`."""
    return pd.read_csv(FILE)


# ---------------------------------------------------------------- making them


def make_curves(pools: dict[str, Sequence[Corpus]], sizes: Sequence[int] = SIZES) -> Iterator[pd.DataFrame]:
    """Measure the curves, one table a corpus and set of classes. pools: corpus -> the sets that are drawn from; of two,
    the second is also the test set for leakage, and of one, a third of its premises."""
    for name, parts in pools.items():
        yield _leaks(name, parts, sizes)
        whole = concat(parts, name=name)
        for classes in SETS:
            yield _curve(name, with_classes(whole, classes), sizes)


def with_classes(corpus: Corpus, classes: Sequence[str]) -> Corpus:
    """A corpus of three classes as one of others: pairs of a class that they lack go, classes that they join join."""
    group = {TWO_WAY: (0, 1, 1), CONTRADICTION_OR_NOT: (0, 0, 1)}.get(tuple(classes))
    group = np.array(group or [classes.index(name) if name in classes else -1 for name in LABELS])
    table = corpus.table.assign(label=group[corpus.labels])
    return replace(corpus, table=table[table["label"] >= 0], classes=tuple(classes), rows_read=None)


def _curve(name: str, corpus: Corpus, sizes: Sequence[int]) -> pd.DataFrame:
    rows = []
    classes = len(corpus.classes)
    for n in (n for n in sizes if n <= len(corpus)):
        drawn = (comparable(corpus[sample_premises(corpus, n, seed)], seed=seed) for seed in range(_draws(n, classes)))
        rows += _summed(name, "/".join(corpus.classes), n, pd.DataFrame(drawn))
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table[~((table["figure"] == "majority") & (name in BALANCED))]


def _leaks(name: str, parts: Sequence[Corpus], sizes: Sequence[int]) -> pd.DataFrame:
    rows, (train, *test) = [], parts
    for n in sizes:
        drawn = []
        for seed in range(_draws(n)):
            own, other = train, test[0] if test else None
            if other is None:
                held = np.zeros(len(own), bool)
                held[sample_premises(own, len(own) // 3, seed)] = True
                own, other = own[~held], own[held]
            if n <= len(own):
                found = leakage(own[sample_premises(own, n, seed)], other)
                drawn.append({figure: each.estimate.value for figure, each in found.items()})
        rows += _summed(name, "any", n, pd.DataFrame(drawn)) if drawn else []
    return pd.DataFrame(rows, columns=COLUMNS)


def _summed(name: str, classes: str, n: int, drawn: pd.DataFrame) -> Iterator[tuple]:
    for figure in drawn:
        values = drawn[figure].dropna()
        if len(values):
            yield name, classes, figure, n, values.mean(), values.min(), values.max(), len(values)


def _draws(n: int, classes: int = 3) -> int:
    return next(draws[classes == 2] for most, *draws in DRAWS if n <= most)
