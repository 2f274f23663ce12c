"""Models trained on augmented sets: averages over test sets, weighted or not, and what choosing the best is worth."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.report.estimate import Estimate
from nli_lib.report.inference import t_interval
from nli_lib.report.mixtures import Right, accuracy
from nli_lib.report.papers import paper_table

PLAIN, WEIGHTED = "plain mean", "weighted by size"
ROBUSTNESS = ("pi-cd", "pi-sp", "is-cs", "li-li", "li-ts", "st", "hans")
OUT_OF_DOMAIN = ("mnli-hard-m", "mnli-hard-mm", "qnli")
PAIRED = ("human-cad", "snli-hard-arrow", "wanli-arrow")
MEAN, BY_VALIDATION, BY_SCORE = "mean", "best on the validation set", "best on the score itself"


def weights_of(titles: Sequence[str], rows: Mapping[str, str]) -> NDArray[np.float64]:
    """The weights of test sets, (D,), adding up to 1: sizes in the paper's Table 2, in the row that ``rows`` names for
    the title. Where a title has no row, all weigh the same."""
    sizes = paper_table("disco", "Table 2")["size"]
    known = [float(sizes[rows[title]]) if title in rows else np.nan for title in titles]
    found = np.ones(len(titles)) if np.isnan(known).any() else np.array(known)
    return found / found.sum()


def average(
    right: Right,
    premises: Mapping[str, ArrayLike],
    titles: Sequence[str],
    weights: ArrayLike | None = None,
    *,
    other: Right | None = None,
    resamples: int = 500,
) -> Estimate:
    """Mean accuracy over test sets, or how far it lies above that of ``other``, over trainings and premises.

    right, other, premises  as `report.mixtures.accuracy` takes them; weights (D,) of the titles, None: all the same
    """
    shares = np.full(len(titles), 1 / len(titles)) if weights is None else np.asarray(weights, dtype=float)

    def summary(means: NDArray, axis: int) -> NDArray:
        return np.average(means, axis=axis, weights=shares)

    columns = {title: [title] for title in titles}
    return accuracy(right, premises, columns, other=other, summary=summary, resamples=resamples)


def average_table(
    right: Mapping[str, Right],
    premises: Mapping[str, ArrayLike],
    suites: Mapping[str, Sequence[str]],
    rows: Mapping[str, str],
    *,
    baseline: str | None = None,
) -> pd.DataFrame:
    """Both averages of every training set and suite: columns suite, average, condition and those of Estimate.

    suites    name -> titles; rows: title -> row of Table 2, see `weights_of`
    baseline  a training set: how far the others lie above it instead, without a row of its own
    """
    found = []
    for suite, titles in suites.items():
        if not titles:
            continue
        for name, weights in ((PLAIN, None), (WEIGHTED, weights_of(titles, rows))):
            for condition, answers in right.items():
                if condition != baseline:
                    other = right[baseline] if baseline else None
                    value = average(answers, premises, titles, weights, other=other)
                    found.append({"suite": suite, "average": name, "condition": condition, **value._asdict()})
    return pd.DataFrame(found, columns=["suite", "average", "condition", *Estimate._fields])


def score_table(
    right: Mapping[str, Right], suites: Mapping[str, Sequence[str]], rows: Mapping[str, str], seeds: Sequence[int]
) -> pd.DataFrame:
    """Both averages of every single training: columns suite, average, condition, seed, value."""
    found = []
    for suite, titles in suites.items():
        for condition, answers in right.items():
            if not titles:
                continue
            single = np.stack([answers[title].mean(axis=1) for title in titles])  # (D, S)
            for name, weights in ((PLAIN, None), (WEIGHTED, weights_of(titles, rows))):
                values = np.average(single, axis=0, weights=weights)
                there = {"suite": suite, "average": name, "condition": condition}
                found += [{**there, "seed": seed, "value": value} for seed, value in zip(seeds, values, strict=True)]
    return pd.DataFrame(found, columns=["suite", "average", "condition", "seed", "value"])


def best_of(scores: pd.DataFrame, validation: pd.DataFrame) -> pd.DataFrame:
    """What is reported of several trainings: their `MEAN`, that of the one that is `BY_VALIDATION`, or that `BY_SCORE`.

    scores      as `score_table` makes it; validation: condition, seed, validation (an accuracy)
    Columns: suite, average, condition, trainings, `MEAN`, `BY_VALIDATION`, `BY_SCORE`. Of equals the first seed.
    Source: DISCO, appendix A, whose tables show the best of five restarts, chosen by validation accuracy.
    """
    table = scores.merge(validation, on=["condition", "seed"], validate="many_to_one")
    keys, rows = ["suite", "average", "condition"], []
    for key, part in table.groupby(keys, sort=False):
        part = part.sort_values("seed")
        chosen = part["value"].iloc[int(part["validation"].to_numpy().argmax())]
        rows.append((*key, len(part), part["value"].mean(), chosen, part["value"].max()))
    return pd.DataFrame(rows, columns=[*keys, "trainings", MEAN, BY_VALIDATION, BY_SCORE])


def worth_of_choosing(best: pd.DataFrame, *, suite: str) -> Estimate:
    """How far the training of the best score lies above the mean of all, mean over the training sets, by the weighted
    average; t interval over those; n and seeds count the trainings."""
    part = best[(best["suite"] == suite) & (best["average"] == WEIGHTED)]
    found, trainings = t_interval(part[BY_SCORE] - part[MEAN]), int(part["trainings"].sum())
    return found._replace(n=trainings, seeds=trainings)


def printed_averages() -> pd.DataFrame:
    """The averages of the paper's Table 4 from its Tables 3 and 5: columns condition, column, printed, `PLAIN`,
    `WEIGHTED`, in percent.

    Source: DISCO, Table 4, whose averages weigh every test set by its size in Table 2 (D13), which the paper does not
    say: 63% of its robustness is one stress test.
    """
    sizes, printed = (paper_table("disco", f"Table {number}") for number in (2, 4))
    single = pd.concat([paper_table("disco", f"Table {number}") for number in (3, 5)], axis=1)
    columns = {"robustness": ROBUSTNESS, "out-of-domain": OUT_OF_DOMAIN}
    rows = []
    for condition, column in ((row, name) for row in printed.index for name in printed.columns):
        sets = columns.get(column, PAIRED)
        cells = list(sets) if column in columns else [f"{column}-{each}" for each in sets]
        values, weights = single.loc[condition, cells].to_numpy(float), sizes.loc[list(sets), "size"].to_numpy(float)
        by_size = np.average(values, weights=weights)
        rows.append((condition, column, printed.loc[condition, column], values.mean(), by_size))
    return pd.DataFrame(rows, columns=["condition", "column", "printed", PLAIN, WEIGHTED])
