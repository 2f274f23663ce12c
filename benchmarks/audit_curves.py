"""The curves that `nli-study audit` shows beside a corpus: SNLI, MultiNLI and WANLI over the number of pairs.

    NLI_DATA=... python benchmarks/audit_curves.py       # writes nli_tools/audit_curves.csv, in about ten minutes

Read are the official development and test sets of SNLI (19,666 pairs) and the two development sets of MultiNLI
(19,647), whole, and a sample of 15,001 pairs of WANLI's training set that was balanced over the labels by those who
drew it. For each size whole premises are drawn at random, ten times up to 1,500 pairs, five times up to 6,000 and
three times beyond (of two classes four, three and two times); the table holds mean, smallest and largest. Where a size
comes near that of the whole set the draws are nearly the same pairs, and their range says less than another sample of
the corpus would. The table holds numbers only, no text.
"""

import sys
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from nli_lib.corpora import load
from nli_lib.corpora.corpus import CONTRADICTION_OR_NOT, LABELS, TWO_WAY, Corpus, concat
from nli_lib.store import atomic
from nli_tools.audit import FILE, comparable, leakage, sample_premises, with_classes

POOLS = {"snli": ("validation", "test"), "mnli": ("validation_matched", "validation_mismatched"), "wanli": ("train",)}
SIZES = (40, 60, 100, 150, 250, 400, 600, 1_000, 1_500, 2_500, 4_000, 6_000, 10_000, 15_000)
# up to so many pairs, so many draws of whole premises: of three classes, of two
DRAWS = ((1_500, 10, 4), (6_000, 5, 3), (15_000, 3, 2))
SETS = (LABELS, LABELS[:2], (LABELS[0], LABELS[2]), LABELS[1:], TWO_WAY, CONTRADICTION_OR_NOT)
BALANCED = {"wanli"}  # the sample was balanced over the labels by those who made it: it has no majority to show
COLUMNS = ("corpus", "classes", "figure", "n", "value", "low", "high", "draws")


def make_curves(pools: dict[str, Sequence[Corpus]], sizes: Sequence[int] = SIZES) -> Iterator[pd.DataFrame]:
    """Measure the curves, one table a corpus and set of classes. pools: corpus -> the sets that are drawn from; of two,
    the second is also the test set for leakage, and of one, a third of its premises."""
    for name, parts in pools.items():
        yield _leaks(name, parts, sizes)
        whole = concat(parts, name=name)
        for classes in SETS:
            yield _curve(name, with_classes(whole, classes), sizes)


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


def main() -> None:
    pools = {name: [load(name, split) for split in splits] for name, splits in POOLS.items()}
    tables = []
    for table in make_curves(pools):
        tables.append(table)
        print(table["corpus"].iloc[0], table["classes"].iloc[0], len(table), file=sys.stderr, flush=True)
    numbers = pd.concat(tables, ignore_index=True)
    with atomic(FILE) as draft:
        numbers.to_csv(draft, index=False, float_format="%.5g", lineterminator="\n")
    print(f"{FILE}: {len(numbers):,} rows")


if __name__ == "__main__":
    main()
