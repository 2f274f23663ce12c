"""What one training set is worth beside another: accuracies of several trainings of each, on many test sets.

right      training set -> test set -> (S, N) bool, which of the N pairs each of S trainings gets right
accuracy(right["WANLI"], premises, columns(premises), other=right["MultiNLI"])    # how much better, an Estimate
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.report.estimate import Estimate
from nli_lib.report.papers import paper_table
from nli_lib.report.trainings import over_trainings

Right = Mapping[str, NDArray[np.bool_]]  # test set -> (S, N)
Columns = Mapping[str, Sequence[str]]  # column of a table -> the test sets whose unweighted mean it is
ANLI, ROUND = "ANLI", "ANLI R"
MEAN = "mean out of domain"
# WANLI's Table 3: its training sets and columns under the names that they have here; its WANLI is a quarter of MultiNLI
PRINTED_SETS = {
    "MultiNLI": "multinli",
    "WANLI, part": "wanli",
    "MultiNLI ◇ WANLI": "multinli-swap-wanli",
    "MultiNLI + WANLI": "multinli-add-wanli",
}
PRINTED_COLUMNS = {"HANS": "hans", "QNLI": "qnli", "WNLI": "wnli", "WANLI test": "wanli", "WANLI kept out": "wanli"}


def columns(titles: Iterable[str]) -> dict[str, list[str]]:
    """Every test set is a column of its own, but for the rounds of ANLI, which are one.

    Source: WANLI, section 3.3, whose gains on ANLI are unweighted means of its three rounds (W16).
    """
    found: dict[str, list[str]] = {}
    for title in titles:
        found.setdefault(ANLI if title.startswith(ROUND) else title, []).append(title)
    return found


def accuracy(
    right: Right,
    premises: Mapping[str, ArrayLike],
    columns: Columns,
    *,
    other: Right | None = None,
    summary: Callable[..., NDArray] = np.mean,
    resamples: int = 500,
) -> Estimate:
    """Accuracy in 0-1 of the trainings on one set, or how far it lies above that on another, as one number.

    premises  test set -> (N,), whose pairs are drawn together
    other     the same of another training set; the s-th training of one is compared with the s-th of the other
    summary   of the columns of a training, along the last axis: their mean, plain or weighted

    The interval is over trainings and premises (`report.trainings.over_trainings`); n counts the premises of all test
    sets in the columns.
    """
    titles = [title for members in columns.values() for title in members]
    base = {title: 0.0 if other is None else other[title].astype(float) for title in titles}
    every = np.concatenate([right[title] - base[title] for title in titles], axis=1)
    block = np.repeat(np.arange(len(titles)), [right[title].shape[1] for title in titles])
    groups = np.concatenate([f"{title}: " + pd.Series(premises[title]).astype(str) for title in titles])
    # (test sets, columns): what each test set counts in each column
    weights = np.stack([np.isin(titles, members) / len(members) for members in columns.values()], axis=1)

    def statistic(rows: NDArray) -> NDArray:
        chosen = every[:, rows]
        sums = np.stack([chosen[..., block[rows] == at].sum(axis=-1) for at in range(len(titles))], axis=-1)
        with np.errstate(invalid="ignore"):  # a resample without a pair of some test set: NaN
            means = sums / np.bincount(block[rows], minlength=len(titles))
        return summary(means @ weights, axis=-1)

    return over_trainings(statistic, len(block), groups=groups, resamples=resamples)


def compare(
    right: Mapping[str, Right],
    premises: Mapping[str, ArrayLike],
    out_of_domain: Sequence[str],
    *,
    baseline: str | None = None,
    resamples: int = 500,
) -> pd.DataFrame:
    """`accuracy` of every training set on every column, and `MEAN`, that of the columns ``out_of_domain``.

    baseline  a training set: what the others have above it instead, without a row of its own

    Columns: title, condition (the training set), and those of Estimate.
    """
    each, rows = columns(premises), []
    wanted = {name: {name: members} for name, members in each.items()}
    judged = {name: each[name] for name in out_of_domain if name in each}
    wanted |= {MEAN: judged} if judged else {}
    for condition, answers in right.items():
        if condition != baseline:
            options = {"other": right[baseline] if baseline else None, "resamples": resamples}
            rows += [
                {"title": title, "condition": condition, **accuracy(answers, premises, part, **options)._asdict()}
                for title, part in wanted.items()
            ]
    return pd.DataFrame(rows, columns=["title", "condition", *Estimate._fields])


def printed() -> pd.Series:
    """WANLI's Table 3 as accuracies in 0-1 by (title, condition); ANLI is the mean of its rounds, `MEAN` that of HANS,
    QNLI, WNLI and ANLI."""
    table = paper_table("wanli", "Table 3").loc[list(PRINTED_SETS.values())] / 100
    found = pd.DataFrame({title: table[column] for title, column in PRINTED_COLUMNS.items()})
    found[ANLI] = table[["anli-r1", "anli-r2", "anli-r3"]].mean(axis=1)
    found[MEAN] = found[["HANS", "QNLI", "WNLI", ANLI]].mean(axis=1)
    return found.set_axis(list(PRINTED_SETS)).T.stack().rename_axis(["title", "condition"])
