"""Do the labels differ in a measure, within each level of difficulty? Tests, effect sizes, and a control for size.

A level that holds a tenth of the examples finds fewer differences for that reason alone, so each count of significant
tests stands beside the same count in random parts of equally many examples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from nli_lib.corpora.labels import LABELS
from nli_lib.report.inference import mann_whitney

FAMILY = 9  # three levels times three pairs of labels: one panel of the paper's Figure 3
COLUMNS = ("measure", "level", "pair", "n_a", "n_b", "u", "p", "p_bonferroni", "effect", "stars")


def label_tests(
    measures: Mapping[str, np.ndarray],
    labels: np.ndarray,
    levels: np.ndarray,
    names: Sequence[str],
    *,
    family: int = FAMILY,
    classes: Sequence[str] = LABELS,
) -> pd.DataFrame:
    """Mann-Whitney tests between the labels, one row for each measure, level and pair of labels: `COLUMNS`.

    measures  name -> (N,) values; labels (N,) indices of ``classes``; levels (N,) indices of ``names``
    effect    rank-biserial, > 0 when the first label of the pair tends to have more; see `inference.mann_whitney`

    A level without an example of a label has no test for it: that row is left out.
    Source: the difficulty paper, section 4 (H7). *Departures*: the paper gives stars alone; its family is not stated,
    nine a panel is the likely one.
    """
    rows = []
    for measure, values in measures.items():
        for level, name in enumerate(names):
            for a, b in combinations(range(len(classes)), 2):
                first, second = (values[(levels == level) & (labels == label)] for label in (a, b))
                if len(first) and len(second):
                    test = mann_whitney(first, second, family=family)
                    pair = f"{classes[a]} - {classes[b]}"
                    row = (measure, name, pair, test.n_a, test.n_b, test.u, test.p, test.p_bonferroni, test.effect)
                    rows.append((*row, test.stars))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def matched_tests(
    measures: Mapping[str, np.ndarray],
    labels: np.ndarray,
    pool: np.ndarray,
    like: np.ndarray,
    *,
    parts: int = 200,
    seed: int = 0,
    family: int = FAMILY,
    classes: Sequence[str] = LABELS,
) -> pd.DataFrame:
    """What the tests of a small level would say in random parts of ``pool`` with as many examples of each label.

    measures, labels  as `label_tests`; pool, like (N,) bool: where the parts are drawn from, and whose size they take
                      (a label with fewer examples in the pool gives all it has)
    Columns: part, measure, pair, p_bonferroni, effect. ``seed`` decides the parts; they are drawn without replacement.
    """
    random = np.random.default_rng(seed)
    pools = [np.flatnonzero(pool & (labels == label)) for label in range(len(classes))]
    sizes = [min(len(members), int((like & (labels == at)).sum())) for at, members in enumerate(pools)]
    found = []
    for part in range(parts):
        drawn = np.concatenate([random.choice(p, n, replace=False) for p, n in zip(pools, sizes, strict=True)])
        some = {name: values[drawn] for name, values in measures.items()}
        tests = label_tests(some, labels[drawn], np.zeros(len(drawn), int), ["part"], family=family, classes=classes)
        found.append(tests[["measure", "pair", "p_bonferroni", "effect"]].assign(part=part))
    return pd.concat(found, ignore_index=True)[["part", "measure", "pair", "p_bonferroni", "effect"]]
