"""Tests between the labels within each level of difficulty, beside their control.

A level that holds a tenth of the examples finds fewer differences for that reason alone, so each count of significant
tests has the same count in random parts of equally many examples.
"""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd

from nli_lib.corpora.labels import LABELS
from nli_lib.measure.difficulty import LEVELS
from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import mann_whitney, stars, t_interval
from nli_lib.report.trainings import with_trainings

FAMILY = 9  # three levels times three pairs of labels: one panel of the paper's Figure 3
ALPHA = 0.05
ALL_TESTS = "(share of all tests)"
SHORT = {f"{a} - {b}": f"{a[0]}·{b[0]}".upper() for a, b in combinations(LABELS, 2)}
COLUMNS = ("measure", "level", "pair", "n_a", "n_b", "u", "p", "p_bonferroni", "effect", "stars")


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
    """`label_tests` of each corpus and training of a table with the columns corpus and training."""
    found = [
        label_tests(part, measures).assign(corpus=corpus, training=training)
        for (corpus, training), part in table.groupby(["corpus", "training"], sort=False)
    ]
    return pd.concat(found, ignore_index=True)


def size_control(table: pd.DataFrame, measures: Sequence[str], *, parts: int = 200) -> pd.DataFrame:
    """What the tests of the hard level would say in random parts as small, drawn from easy and from all levels.

    table  as `level_tests` takes it; parts  how many are drawn (`matched_tests`)

    For each corpus, training and ``source`` of the parts one row a test: measure, pair, significant (the share of the
    parts in which it is, at .05 corrected), effect and size (means over the parts of the effect and of its absolute
    value). Then one row a part, whose measure is `ALL_TESTS` and whose ``significant`` is the share of its tests.
    """
    found = []
    for (name, training), pairs in table.groupby(["corpus", "training"], sort=False):
        for source, pool in (("easy", pairs["level"] == 0), ("all levels", pairs["level"] >= 0)):
            tests = matched_tests(pairs, measures, pool, parts=parts, seed=training)
            tests = tests.assign(significant=tests["p_bonferroni"] <= ALPHA, size=tests["effect"].abs())
            means = tests.groupby(["measure", "pair"], sort=False)[["significant", "effect", "size"]].mean()
            shares = pd.DataFrame({"measure": ALL_TESTS, "significant": tests.groupby("part")["significant"].mean()})
            whose = {"corpus": name, "training": training, "source": source}
            found += [each.assign(**whose) for each in (means.reset_index(), shares)]
    return pd.concat(found, ignore_index=True)


def significant_shares(tests: pd.DataFrame, control: pd.DataFrame) -> pd.DataFrame:
    """Share of the tests that are significant, by corpus and condition: columns corpus, condition, value, low, high.

    tests, control  as `level_tests` and `size_control` give them. The conditions are the levels, then "easy, as small
    as hard" and "random twin of hard"; a mean over the trainings with its t interval, which one training has not.
    """
    names = {"easy": "easy, as small as hard", "all levels": "random twin of hard"}
    parts = control[control["measure"] == ALL_TESTS].assign(condition=lambda part: part["source"].map(names))
    found = tests.assign(condition=tests["level"], significant=tests["p_bonferroni"] <= ALPHA)
    keys = ["corpus", "condition", "training"]
    shares = pd.concat([each.groupby(keys, sort=False)["significant"].mean() for each in (found, parts)])
    rows = [(*key, *t_interval(part)[:3]) for key, part in shares.groupby(keys[:2], sort=False)]
    return pd.DataFrame(rows, columns=["corpus", "condition", "value", "low", "high"])


def smaller_share(tests: pd.DataFrame, control: pd.DataFrame) -> Estimate:
    """Share of the tests that are significant in random parts of easy as small as hard, minus that in hard.

    tests, control  of one corpus, as `significant_shares` takes them. The interval is over trainings and parts; n is
    the number of parts.
    """
    parts = control[(control["measure"] == ALL_TESTS) & (control["source"] == "easy")]
    part = parts.groupby("training").cumcount()
    in_parts = parts.assign(part=part).pivot(index="training", columns="part", values="significant")
    hard = tests[tests["level"] == "hard"]
    in_hard = (hard["p_bonferroni"] <= ALPHA).groupby(hard["training"]).mean()
    drop = in_parts.sub(in_hard, axis=0)
    return with_trainings(drop.to_numpy().mean(), drop.mean(), drop.mean(axis=1), n=drop.shape[1])


def over_trainings_of_tests(tests: pd.DataFrame) -> pd.DataFrame:
    """One row a test and level from a row for each training: the mean effect, the median p, and the stars of that."""
    found = tests.groupby(["measure", "pair", "level"], sort=False)
    found = found.agg({"effect": "mean", "p": "median", "p_bonferroni": "median"}).reset_index()
    return found.assign(stars=found["p_bonferroni"].map(stars))


def star_notes(tests: pd.DataFrame) -> dict[tuple[str, str], str]:
    """The stars of one corpus's tests as `boxes` writes them: (measure, level) -> a line for each pair of labels."""
    lines = tests["pair"].map(SHORT) + " " + tests["stars"]
    return lines.groupby([tests["measure"], tests["level"]]).agg("\n".join).to_dict()


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
