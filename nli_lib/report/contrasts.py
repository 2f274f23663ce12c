"""What differs by level of difficulty: means of the levels, and tests between the labels within each.

Each stands beside its control. A mean has the one of a random set of as many pairs with the same labels. A level that
holds a tenth of the examples finds fewer differences for that reason alone, so each count of significant tests has the
same count in random parts of equally many examples.
"""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd

from nli_lib.corpora.labels import LABELS
from nli_lib.measure.difficulty import LEVELS
from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import bootstrap_interval, mann_whitney, percentile_interval, share, stars
from nli_lib.report.style import TWIN
from nli_lib.select.selection import Selection

FAMILY = 9  # three levels times three pairs of labels: one panel of the paper's Figure 3
ALPHA = 0.05
ALL_TESTS = "(share of all tests)"
SHORT = {f"{a} - {b}": f"{a[0]}·{b[0]}".upper() for a, b in combinations(LABELS, 2)}
COLUMNS = ("measure", "level", "pair", "n_a", "n_b", "u", "p", "p_bonferroni", "effect", "stars")


def level_means(table: pd.DataFrame, scores: Sequence[str], *, by: str = "corpus") -> pd.DataFrame:
    """Mean of each score in each level and in the level's random twin, with its interval over the pairs.

    table   one row a pair: the columns ``by``, level (0 easy, 1 ambiguous, 2 hard), gold (its label) and ``scores``

    Columns: ``by``, level (its name), score, condition ("level" or "random twin"), value, low, high, n. A score of
    zeros and ones gets Wilson's interval, any other a bootstrap. A level without pairs has no row.
    """
    rows = []
    for group, part in table.groupby(by, sort=False):
        for place, name in enumerate(LEVELS):
            level = Selection.where(part["level"].to_numpy() == place, dropped="another level")
            twin = level.random_twin(part["gold"].to_numpy())
            for condition, chosen in (("level", level), (TWIN, twin)):
                for score in scores:
                    values = part[score].to_numpy(dtype=float)[chosen.keep]
                    if len(values):
                        interval = share if np.isin(values, (0, 1)).all() else bootstrap_interval
                        rows.append((group, name, score, condition, *interval(values)[:4]))
    return pd.DataFrame(rows, columns=[by, "level", "score", "condition", "value", "low", "high", "n"])


def level_gap(table: pd.DataFrame, score: str, easier: str, harder: str) -> Estimate:
    """Mean of a score in one level minus its mean in another; the two levels are resampled on their own."""
    first, second = (
        table.loc[table["level"] == LEVELS.index(name), score].to_numpy(dtype=float) for name in (easier, harder)
    )
    return bootstrap_interval(first, other=second)


def label_tests(table: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Mann-Whitney tests between the labels, one row for each measure, level and pair of labels: `COLUMNS`.

    table     one row a pair: gold (an index of LABELS), level (an index of LEVELS) and ``measures``
    effect    rank-biserial, > 0 when the first label of the pair tends to have more; see `inference.mann_whitney`

    A level without an example of a label has no test for it: that row is left out.
    Source: the difficulty paper, section 4 (H7). *Departures*: the paper gives stars alone; its family is not stated,
    nine a panel is the likely one.
    """
    cells, rows = dict(iter(table.groupby(["level", "gold"]))), []
    for measure, (level, name), (a, b) in product(measures, enumerate(LEVELS), combinations(range(len(LABELS)), 2)):
        if (level, a) in cells and (level, b) in cells:
            test = mann_whitney(cells[level, a][measure], cells[level, b][measure], family=FAMILY)
            place = {"measure": measure, "level": name, "pair": f"{LABELS[a]} - {LABELS[b]}"}
            rows.append({**place, **test._asdict(), "stars": stars(test.p_bonferroni)})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def matched_tests(
    table: pd.DataFrame, measures: Sequence[str], pool: pd.Series, *, parts: int = 200, seed: int = 0
) -> pd.DataFrame:
    """What the tests of the hard level would say in random parts with as many examples of each label.

    table, measures  as `label_tests`; pool (N,) bool: where the parts are drawn from, without replacement (a label with
                     fewer examples in the pool gives all it has)
    Columns: those of `label_tests` and part. ``seed`` decides the parts.
    """
    random, found = np.random.default_rng(seed), []
    hard = table.loc[table["level"] == LEVELS.index("hard"), "gold"]
    pools = [np.flatnonzero(pool & (table["gold"] == label)) for label in range(len(LABELS))]
    sizes = [min(len(members), (hard == label).sum()) for label, members in enumerate(pools)]
    for part in range(parts):
        drawn = np.concatenate([random.choice(p, n, replace=False) for p, n in zip(pools, sizes, strict=True)])
        found.append(label_tests(table.iloc[drawn].assign(level=0), measures).assign(part=part))
    return pd.concat(found, ignore_index=True)


def level_tests(table: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """`label_tests` of each corpus of a table with a column corpus."""
    corpora = table.groupby("corpus", sort=False)
    return pd.concat([label_tests(part, measures).assign(corpus=name) for name, part in corpora], ignore_index=True)


def size_control(table: pd.DataFrame, measures: Sequence[str], *, parts: int = 200) -> pd.DataFrame:
    """What the tests of the hard level would say in random parts as small, drawn from easy and from all levels.

    table  as `level_tests` takes it; parts  how many are drawn (`matched_tests`)

    For each corpus and ``source`` of the parts one row a test: measure, pair, significant (the share of the parts in
    which it is, at .05 corrected), effect and size (means over the parts of the effect and of its absolute value).
    Then one row a part, whose measure is `ALL_TESTS` and whose ``significant`` is the share of its tests.
    """
    found = []
    for name, corpus in table.groupby("corpus", sort=False):
        for source, pool in (("easy", corpus["level"] == 0), ("all levels", corpus["level"] >= 0)):
            tests = matched_tests(corpus, measures, pool, parts=parts)
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
    levels = tests.groupby(["corpus", "level"], sort=False)["p_bonferroni"]
    rows = [(*key, *share(p <= ALPHA)[:3]) for key, p in levels]
    names = {"easy": "easy, as small as hard", "all levels": "random twin of hard"}
    shares = control[control["measure"] == ALL_TESTS].groupby(["corpus", "source"], sort=False)["significant"]
    rows += [(corpus, names[source], s.mean(), *s.quantile([0.025, 0.975])) for (corpus, source), s in shares]
    return pd.DataFrame(rows, columns=["corpus", "condition", "value", "low", "high"])


def star_notes(tests: pd.DataFrame) -> dict[tuple[str, str], str]:
    """The stars of one corpus's tests as `boxes` writes them: (measure, level) -> a line for each pair of labels."""
    lines = tests["pair"].map(SHORT) + " " + tests["stars"]
    return lines.groupby([tests["measure"], tests["level"]]).agg("\n".join).to_dict()


def cell_agreement(table: pd.DataFrame, *, resamples: int = 500) -> Estimate:
    """Is a yes or no spread over level and label in the same way when another encoder draws the levels?

    table: flag (0 or 1, such as a negation), label, first and second (the level by each encoder), one row a pair.
    Pearson correlation of the nine cells' shares of 1 between the two; bootstrap over the pairs. Cells that one of
    the two lacks are left out.
    """

    def agreement(pairs: pd.DataFrame) -> float:
        by_level = [pairs.rename(columns={each: "level"}).groupby(["level", "label"]) for each in ("first", "second")]
        first, second = (cells["flag"].mean() for cells in by_level)
        return np.corrcoef(*first.align(second, join="inner"))[0, 1]

    random, n = np.random.default_rng(0), len(table)
    draws = [agreement(table.iloc[random.integers(n, size=n)]) for _ in range(resamples)]
    return percentile_interval(agreement(table), np.array(draws), n=n)


def label_effects(table: pd.DataFrame, score: str = "similarity") -> pd.DataFrame:
    """How far a score separates neighbouring labels: a row for each corpus, a column for each pair of labels.

    ``table``: corpus, label (a name), ``score``. Rank-biserial effects in [-1, 1], see `inference.mann_whitney`: above
    0 when the first label tends to have the higher score. Source: WANLI, Figure 4, which shows densities only.
    """
    pairs = [("entailment", "neutral"), ("neutral", "contradiction")]
    of = {key: part.to_numpy() for key, part in table.groupby(["corpus", "label"])[score]}
    names = table["corpus"].unique()
    columns = {f"{a} over {b}": [mann_whitney(of[name, a], of[name, b]).effect for name in names] for a, b in pairs}
    return pd.DataFrame(columns, index=pd.Index(names, name="corpus"))
