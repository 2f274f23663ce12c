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
from nli_lib.measure.difficulty import LEVELS
from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import mann_whitney, percentile_interval, share

FAMILY = 9  # three levels times three pairs of labels: one panel of the paper's Figure 3
ALPHA = 0.05
ALL_TESTS = "(share of all tests)"
SHORT = {f"{a} - {b}": f"{a[0]}·{b[0]}".upper() for a, b in combinations(LABELS, 2)}
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


def level_tests(table: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """`label_tests` of each corpus of a table with the columns corpus, gold, level and ``measures``."""
    return pd.concat(
        [
            label_tests(part[list(measures)].to_dict("series"), part["gold"], part["level"], LEVELS).assign(corpus=name)
            for name, part in table.groupby("corpus", sort=False)
        ],
        ignore_index=True,
    )


def size_control(table: pd.DataFrame, measures: Sequence[str], *, parts: int = 200) -> pd.DataFrame:
    """What the tests of the hard level would say in random parts as small, drawn from easy and from all levels.

    table  as `level_tests` takes it; parts  how many are drawn (`matched_tests`)

    For each corpus and ``source`` of the parts one row a test: measure, pair, significant (the share of the parts in
    which it is, at .05 corrected), effect and size (means over the parts of the effect and of its absolute value).
    Then one row a part, whose measure is `ALL_TESTS` and whose ``significant`` is the share of its tests.
    """
    found = []
    for name, part in table.groupby("corpus", sort=False):
        columns = {measure: part[measure].to_numpy() for measure in measures}
        gold, level = part["gold"].to_numpy(), part["level"].to_numpy()
        for source, pool in (("easy", level == 0), ("all levels", level >= 0)):
            tests = matched_tests(columns, gold, pool, level == LEVELS.index("hard"), parts=parts)
            tests = tests.assign(significant=tests["p_bonferroni"] <= ALPHA, size=tests["effect"].abs())
            means = tests.groupby(["measure", "pair"], sort=False)[["significant", "effect", "size"]].mean()
            shares = pd.DataFrame({"measure": ALL_TESTS, "significant": tests.groupby("part")["significant"].mean()})
            found += [each.assign(corpus=name, source=source) for each in (means.reset_index(), shares)]
    return pd.concat(found, ignore_index=True)


def significant_shares(tests: pd.DataFrame, control: pd.DataFrame) -> pd.DataFrame:
    """Share of the tests that are significant, by corpus and condition: columns corpus, condition, value, low, high.

    tests, control  as `level_tests` and `size_control` give them. The conditions are the levels, with Wilson's
    interval, then "easy, as small as hard" and "random twin of hard" with the middle 95 % of the parts.
    """
    rows = [
        (*key, *share(part["p_bonferroni"] <= ALPHA)[:3])
        for key, part in tests.groupby(["corpus", "level"], sort=False)
    ]
    names = {"easy": "easy, as small as hard", "all levels": "random twin of hard"}
    shares = control[control["measure"] == ALL_TESTS].groupby(["corpus", "source"], sort=False)["significant"]
    rows += [(corpus, names[source], s.mean(), *s.quantile([0.025, 0.975])) for (corpus, source), s in shares]
    return pd.DataFrame(rows, columns=["corpus", "condition", "value", "low", "high"])


def star_notes(tests: pd.DataFrame) -> dict[tuple[str, str], str]:
    """The stars of one corpus's tests as `boxes` writes them: (measure, level) -> a line for each pair of labels."""
    lines = tests["pair"].map(SHORT) + " " + tests["stars"]
    return lines.groupby([tests["measure"], tests["level"]]).agg("\n".join).to_dict()


def cell_agreement(
    flags: np.ndarray, labels: np.ndarray, first: np.ndarray, second: np.ndarray, *, resamples: int = 500
) -> Estimate:
    """Is a yes or no spread over level and label in the same way when another encoder draws the levels?

    flags (N,) 0 or 1, such as a negation; labels, first, second (N,): the label and the level by each encoder.
    Pearson correlation of the nine cells' shares of 1 between the two; bootstrap over the pairs. Cells that one of
    the two lacks are left out.
    """

    def agreement(rows: np.ndarray) -> float:
        shares = []
        for level in (first, second):
            cell = len(LEVELS) * level[rows] + labels[rows]
            with np.errstate(invalid="ignore"):  # an empty cell is 0 / 0: not finite, left out below
                shares.append(np.bincount(cell, weights=flags[rows], minlength=9) / np.bincount(cell, minlength=9))
        known = np.isfinite(shares).all(axis=0)
        return np.corrcoef(shares[0][known], shares[1][known])[0, 1]

    random, n = np.random.default_rng(0), len(labels)
    draws = [agreement(random.integers(n, size=n)) for _ in range(resamples)]
    return percentile_interval(agreement(np.arange(n)), np.array(draws), n=n)


def label_effects(table: pd.DataFrame, score: str = "similarity") -> pd.DataFrame:
    """How far a score separates neighbouring labels: a row for each corpus, a column for each pair of labels.

    ``table``: corpus, label (a name), ``score``. Rank-biserial effects in [-1, 1], see `inference.mann_whitney`: above
    0 when the first label tends to have the higher score. Source: WANLI, Figure 4, which shows densities only.
    """
    pairs = [("entailment", "neutral"), ("neutral", "contradiction")]
    of = {key: part.to_numpy() for key, part in table.groupby(["corpus", "label"])[score]}
    rows = {
        name: {f"{a} over {b}": mann_whitney(of[name, a], of[name, b]).effect for a, b in pairs}
        for name in table["corpus"].unique()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("corpus")


def resampled_label_effects(table: pd.DataFrame, score: str = "similarity", *, resamples: int = 500) -> pd.DataFrame:
    """`label_effects` of bootstrap resamples that are drawn within each corpus and label; index (draw, corpus)."""
    drawn = table.groupby(["corpus", "label"])
    effects = [label_effects(drawn.sample(frac=1, replace=True, random_state=at), score) for at in range(resamples)]
    return pd.concat(effects, keys=range(resamples), names=["draw"])
