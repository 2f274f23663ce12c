"""Numbers by level of difficulty, over trainings and pairs: each training draws levels of its own.

Every table here has one row a training and pair: training, position (of the pair in its corpus), level (0 easy,
1 ambiguous, 2 hard), premise (any code that is equal where the premise is), and the columns that are named. All
trainings have the same positions. What is drawn anew in the intervals are trainings and premises, or pairs where the
table has no column premise (`trainings.over_trainings`).

Tests between the labels within each level of difficulty, beside their control.

A level that holds a tenth of the examples finds fewer differences for that reason alone, so each count of significant
tests has the same count in random parts of equally many examples.

Of many tests of one claim, "nowhere a difference": the one that speaks most against it, with an interval that holds
although it was picked.
"""

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.corpus import LABELS
from nli_lib.errors import UserError
from nli_lib.measure.difficulty import LEVELS
from nli_lib.plots import TWIN
from nli_lib.select.selection import Selection
from nli_lib.stats import (
    CELLS,
    LEVEL,
    Estimate,
    Statistic,
    correlations_with,
    gaps_between,
    mann_whitney,
    means_of,
    over_trainings,
    stars,
    t_interval,
    with_trainings,
)

FIGURE = 200  # resamples of an interval that is drawn; those of a claim have more


def by_training(table: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """A column as an array (S, N): a row a training, in it the pairs in the order of their positions."""
    return table.pivot(index="training", columns="position", values=column).to_numpy(dtype=float)


def estimate(table: pd.DataFrame, statistic: Statistic, **options: object) -> Estimate:
    """`over_trainings` of a statistic of the table's pairs."""
    premises = by_training(table, "premise")[0] if "premise" in table else None
    return over_trainings(statistic, table["position"].nunique(), groups=premises, **options)


def level_means(table: pd.DataFrame, scores: Sequence[str], *, by: str = "corpus") -> pd.DataFrame:
    """Mean of each score in each level and in the level's random twin: as many pairs with the same labels.

    table  as above, with ``by``, gold (the label) and ``scores``

    Columns: ``by``, level (its name), score, condition ("level" or "random twin"), value, low, high, n (premises). A
    level that is empty in some training has no row.
    """
    rows = []
    for group, part in table.groupby(by, sort=False):
        levels, gold = by_training(part, "level"), by_training(part, "gold")[0]
        for place, name in enumerate(LEVELS):
            chosen = [Selection.where(each == place, dropped="another level") for each in levels]
            twins = [each.random_twin(gold, seed) for seed, each in enumerate(chosen)]
            for (condition, parts), score in ((c, s) for c in (("level", chosen), (TWIN, twins)) for s in scores):
                keep = np.array([each.keep for each in parts])
                if keep.any(axis=1).all():
                    values = np.where(keep, by_training(part, score), np.nan)
                    found = estimate(part, means_of(values), resamples=FIGURE)
                    rows.append((group, name, score, condition, *found[:4]))
    return pd.DataFrame(rows, columns=[by, "level", "score", "condition", "value", "low", "high", "n"])


def level_gap(table: pd.DataFrame, score: str, one: str, other: str) -> Estimate:
    """Mean of a score in one level minus its mean in another."""
    levels, values = by_training(table, "level"), by_training(table, score)
    return estimate(table, gaps_between(values, *(levels == LEVELS.index(name) for name in (one, other))))


def level_mean(table: pd.DataFrame, score: str, level: str) -> Estimate:
    """Mean of a score in a level."""
    inside = by_training(table, "level") == LEVELS.index(level)
    return estimate(table, means_of(np.where(inside, by_training(table, score), np.nan)))


def label_gap(table: pd.DataFrame, measure: str, label: int, level: str) -> Estimate:
    """Mean of a measure over the pairs of one label in a level minus its mean over the other pairs of that level."""
    inside, gold = by_training(table, "level") == LEVELS.index(level), by_training(table, "gold")
    return estimate(
        table, gaps_between(by_training(table, measure), inside & (gold == label), inside & (gold != label))
    )


def correlation_table(table: pd.DataFrame, scores: Sequence[str], target: str | pd.DataFrame) -> pd.DataFrame:
    """Spearman correlation of each score with ``target`` within each training.

    target  a column, or the table of other trainings of the same names, whose column of the score's name it then is

    Columns: score, value, low, high, n (premises). A score that is constant in some training has no row.
    """
    rows = []
    for name in scores:
        values = by_training(table, name)
        wanted = by_training(table, target) if isinstance(target, str) else by_training(target, name)
        if np.ptp(values, axis=1).all() and np.ptp(wanted, axis=1).all():
            rows.append((name, *estimate(table, correlations_with(values, wanted), resamples=FIGURE)[:4]))
    return pd.DataFrame(rows, columns=["score", "value", "low", "high", "n"])


def correlation_gain(table: pd.DataFrame, one: str, other: str, target: str) -> Estimate:
    """Spearman correlation of one score with ``target`` minus that of another."""
    wanted = by_training(table, target)
    first, second = (correlations_with(by_training(table, score), wanted) for score in (one, other))
    return estimate(table, lambda rows: first(rows) - second(rows))


def cell_agreement(table: pd.DataFrame, flag: str, first: str, second: str) -> Estimate:
    """Is a yes or no spread over level and label in the same way when another encoder draws the levels?

    table: gold, ``flag`` (0 or 1, such as a negation), ``first`` and ``second`` (the level by each encoder). Pearson
    correlation of the nine cells' shares of 1 between the two, and so is its interval kept within -1 and 1. Cells that
    one of the two lacks are left out.
    """
    flags, gold = by_training(table, flag)[0], by_training(table, "gold")[0].astype(int)
    cells = [by_training(table, each).astype(int) * len(LEVELS) + gold for each in (first, second)]

    def shares(cell: NDArray, rows: NDArray) -> NDArray:
        sizes, found = (np.bincount(cell[rows], weights, len(LEVELS) ** 2) for weights in (None, flags[rows]))
        return np.divide(found, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)

    def agreement(one: NDArray, other: NDArray) -> float:
        both = np.isfinite(one) & np.isfinite(other)
        return np.corrcoef(one[both], other[both])[0, 1]

    def statistic(rows: NDArray) -> NDArray:
        return np.array([agreement(shares(a, rows), shares(b, rows)) for a, b in zip(*cells, strict=True)])

    found = estimate(table, statistic)
    return found._replace(low=max(found.low, -1.0), high=min(found.high, 1.0))


# ---------------------------------------------------------------- contrasts


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


# ---------------------------------------------------------------- strongest


OF_STRONGEST = ("measure", "pair", "n_a", "n_b", "p", "p_bonferroni", "effect", "low", "high", "tests", "trainings")


def strongest(tests: pd.DataFrame, table: pd.DataFrame, *, resamples: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """The test that speaks most against it in each corpus and level: its corpus, level and `OF_STRONGEST`.

    tests  as `contrasts.level_tests` gives them, for S trainings; table: the examples, with corpus, training, level,
           gold and the measures

    It is the one of smallest p, in the median over the trainings; of equal p the one of largest effect. effect is the
    mean over the trainings; n_a, n_b, p and p_bonferroni are medians. low and high: two half-widths in quadrature, of
    Student's t interval over the trainings, and of the interval over the pairs (`effect_interval`, in the mean over the
    trainings), which is simultaneous over all tests of that corpus and level, so that it holds for the one that was
    picked as well. tests: how many they are.

    Raises `UserError` for a corpus with a level in which no training has pairs of two labels: the levels are then the
    labels that a model predicts, which has learnt nothing else.
    """
    for corpus in table["corpus"].unique():
        tested = set(tests.loc[tests["corpus"] == corpus, "level"])
        if lacking := [level for level in LEVELS if level not in tested]:
            raise UserError(
                f"{corpus}: no pairs of two labels in the {' and '.join(lacking)} level, so nothing can be compared "
                "there. The models that draw the levels have learnt too little: give them more pairs or epochs."
            )
    rows, keys = [], ["corpus", "level"]
    for (corpus, level), part in tests.assign(size=tests["effect"].abs()).groupby(keys, sort=False):
        medians = part.groupby(["measure", "pair"], sort=False)[["p", "size"]].median()
        measure, pair = medians.sort_values(["p", "size"], ascending=[True, False], kind="stable").index[0]
        picked = part[(part["measure"] == measure) & (part["pair"] == pair)]
        labels = [LABELS.index(name) for name in pair.split(" - ")]
        there = table[(table["corpus"] == corpus) & (table["level"] == LEVELS.index(level))]
        halves = []
        for _, pairs in there.groupby("training"):
            a, b = (pairs.loc[pairs["gold"] == label, measure] for label in labels)
            ends = effect_interval(a, b, family=len(medians), resamples=resamples, seed=seed)
            halves.append((ends.high - ends.low) / 2)
        effect = t_interval(picked["effect"])
        half = np.hypot(np.mean(halves), np.nan_to_num(effect.high - effect.value))
        middle = picked[["n_a", "n_b", "p", "p_bonferroni"]].median()
        ends = effect.value, effect.value - half, effect.value + half
        rows.append([corpus, level, measure, pair, *middle, *ends, len(medians), len(picked)])
    return pd.DataFrame(rows, columns=[*keys, *OF_STRONGEST])


def effect_interval(a: ArrayLike, b: ArrayLike, *, family: int = 1, resamples: int = 10_000, seed: int = 0) -> Estimate:
    """Rank-biserial effect of a (n_a,) over b (n_b,), as in `inference.mann_whitney`, with a bootstrap interval.

    Both are resampled on their own; n is n_a + n_b. The level is Bonferroni's: 1 - .05 / family, for a family of
    intervals that are to hold all together. Resampling is done on the counts of the distinct values, which is the same.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if not len(a) or not len(b) or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("an effect needs values on both sides, all of them finite")
    values, random = np.unique(np.concatenate([a, b])), np.random.default_rng(seed)
    counts = [np.bincount(np.searchsorted(values, each), minlength=len(values)) for each in (a, b)]
    value, effects, block = _effects(*counts)[0], [], max(1, CELLS // len(values))
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        effects.append(_effects(*(random.multinomial(each.sum(), each / each.sum(), size=size) for each in counts)))
    tail = (1 - LEVEL) / family / 2
    low, high = np.quantile(np.concatenate(effects), [tail, 1 - tail])
    return Estimate(float(value), float(low), float(high), len(a) + len(b))


def _effects(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    """Rank-biserial effects (R,) of samples that are counts of the same ascending values, (R, V) each or (V,)."""
    a, b = np.atleast_2d(a), np.atleast_2d(b)
    n_a, n_b = a.sum(axis=1), b.sum(axis=1)
    below = np.cumsum(b, axis=1) - b
    return (a * (2 * below + b - n_b[:, None])).sum(axis=1) / (n_a * n_b)
