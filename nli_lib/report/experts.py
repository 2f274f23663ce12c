"""A grid of knobs and what choosing among them is worth: the best by development pairs beside the best by the test."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from nli_lib.corpora.corpus import Corpus
from nli_lib.evaluate import accuracy_row, suite_table

KNOBS = ("beta", "gamma")


def best_of(grid: pd.DataFrame, title: str, knobs: Sequence[str] = KNOBS) -> pd.Series:
    """The row of ``grid`` with the highest accuracy on the test set ``title``; of equals the first.

    grid: title, accuracy and the knobs. Raises `KeyError` where no row has the title.
    """
    part = grid[grid["title"] == title]
    if part.empty:
        raise KeyError(f"the grid was not tested on {title!r}")
    return part.loc[part["accuracy"].idxmax(), [*knobs, "accuracy"]]


def choices(grid: pd.DataFrame, development: str, knobs: Sequence[str] = KNOBS) -> pd.DataFrame:
    """For each test set, what the grid gives when it is chosen on ``development``, and when on the test set itself.

    Columns: title; the knobs chosen on the development pairs are the same for all, those chosen on the test set follow
    as "beta by test", ...; chosen (accuracy of the first), by test (of the second), optimism (their difference, 0 or
    more: what choosing on the test set adds), mean (of the grid: what choosing at random gives).
    """
    first, rows = best_of(grid, development, knobs), []
    for title, part in grid[grid["title"] != development].groupby("title", sort=False):
        same = (part[list(knobs)] == first[list(knobs)]).all(axis=1)
        best, chosen = best_of(grid, title, knobs), float(part.loc[same, "accuracy"].iloc[0])
        rows.append({
            "title": title,
            **{f"{knob} by test": best[knob] for knob in knobs},
            "chosen": chosen,
            "by test": float(best["accuracy"]),
            "optimism": float(best["accuracy"]) - chosen,
            "mean": float(part["accuracy"].mean()),
        })  # fmt: skip
    columns = ["title", *(f"{knob} by test" for knob in knobs), "chosen", "by test", "optimism", "mean"]
    return pd.DataFrame(rows, columns=columns)


def accuracy_on(
    predictions: Mapping[str, np.ndarray], tests: Mapping[str, Corpus], classes: Sequence[str], *, seed: int
) -> pd.DataFrame:
    """Accuracy on each test set, as `evaluate.suite_table`, of a model that predicts ``classes``, whichever they are.

    A set with the model's own classes has one row, by the rule argmax; of others only a model of the three classes can
    say anything, by both rules. predictions: title -> logits (N, C), ordered as ``classes``.
    """
    tables = []
    for title, test in tests.items():
        if test.classes == tuple(classes):
            row = accuracy_row(np.asarray(predictions[title]).argmax(axis=1) == test.labels)
            tables.append(pd.DataFrame([{"title": title, **row, "rule": "argmax", "seed": seed}]))
        else:
            tables.append(suite_table({title: predictions[title]}, {title: test}, seed=seed))
    return pd.concat(tables, ignore_index=True)
