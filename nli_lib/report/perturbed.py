"""What became of perturbations, step by step, and whether a teacher can tell the good ones.

A direction is "e2n", from entailment to neutral. Intervals draw whole originals, each with all its perturbations.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score

from nli_lib.corpora.corpus import LABELS, Corpus
from nli_lib.corpora.counterfactuals import directions
from nli_lib.generate.perturb import CODE_2022, CODE_2023, perturbation_filter
from nli_lib.select.selection import KEPT, Selection, probability_shift
from nli_lib.stats import Estimate, mean_over_premises, means_of, over_trainings

DIRECTIONS = tuple(directions())
EVERY = "all directions"
WRITTEN, _, PASSED, SHIFTED, PREDICTED = STEPS = (
    "asked for",
    "answered",
    "passed by the heuristics",
    "kept by the teacher",
    "predicted as intended",
)
OTHER_PREMISES, SAME_PREMISE = "of another premise", "of a premise that is perturbed"


def draw_originals(keep: ArrayLike, labels: ArrayLike, n: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Positions of about n of the kept examples (N,), of each label equally many, drawn at random; sorted."""
    keep, labels = np.asarray(keep, dtype=bool), np.asarray(labels)
    rng, found = np.random.default_rng(seed), []
    known = np.unique(labels)
    for label in known:
        members = np.flatnonzero(keep & (labels == label))
        found.append(rng.permutation(members)[: -(-n // len(known))])
    return np.sort(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)


def other_premises(corpus: Corpus, premises: ArrayLike) -> Selection:
    """The pairs of a corpus that have none of these premises: what a teacher may learn from before it judges them."""
    same = np.isin(corpus.premise.astype(str), np.asarray(premises).astype(str))
    return Selection.where(~same, dropped=SAME_PREMISE, kept=OTHER_PREMISES)


def survival_table(pairs: pd.DataFrame, steps: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """How many perturbations are left after each step: columns direction, step, count, n, share, low, high.

    pairs  rows of `generate.perturb.perturbed`; steps: name -> (N,) bool, what is left after it
    One row a direction and step, with `EVERY` first; a direction without problems is there, with missing shares.
    """
    rows = []
    direction = pairs["direction"].to_numpy()
    for name in (EVERY, *DIRECTIONS):
        part = np.ones(len(pairs), dtype=bool) if name == EVERY else direction == name
        for step, left in steps.items():
            flags = np.asarray(left, dtype=bool)[part]
            found = mean_over_premises(flags, pairs["position"][part]) if len(flags) else _nothing()
            rows.append((name, step, int(flags.sum()), len(flags), found.value, found.low, found.high))
    return pd.DataFrame(rows, columns=["direction", "step", "count", "n", "share", "low", "high"]).round(5)


def reason_table(pairs: pd.DataFrame, passed: Mapping[str, Selection], reasons: Sequence[str]) -> pd.DataFrame:
    """What the heuristics of each version drop: columns version, reason, count, n, share, low, high; `KEPT` last."""
    rows = []
    for version, selection in passed.items():
        for reason in (*reasons, KEPT) if len(pairs) else ():
            flags = selection.reason == reason
            found = mean_over_premises(flags, pairs["position"])
            rows.append((version, reason, int(flags.sum()), len(flags), found.value, found.low, found.high))
    return pd.DataFrame(rows, columns=["version", "reason", "count", "n", "share", "low", "high"]).round(5)


def shifts_of(
    teachers: Sequence[tuple[NDArray, NDArray]], position: ArrayLike, labels: ArrayLike
) -> NDArray[np.float64]:
    """The shift that each teacher sees, (T, N).

    teachers  for each, logits of the originals (S, C) and of the new pairs (N, C); position (N,): the original of each
    new pair in the first; labels (N,): the new ones
    """
    position, labels = np.asarray(position, dtype=np.int64), np.asarray(labels, dtype=np.int64)
    moved = [probability_shift(before[position], after, labels) for before, after in teachers]
    return np.array(moved).reshape(len(teachers), len(labels))


def spans_missed(pairs: pd.DataFrame, kept: ArrayLike) -> pd.DataFrame:
    """How often two random spans find no perturbation that is kept, where all spans find one.

    pairs, kept  perturbations (N,) and which of them are kept, (N,) bool or, for T trainings, (T, N)
    One row a premise and direction: columns position, direction, spans, and for training t kept_t, missed_t (with
    replacement, as in the code of 2022: (1 - a/k)^2 for a kept of k) and missed_apart_t (two different ones).
    missed is missing where nothing is kept.
    """
    kept = np.atleast_2d(np.asarray(kept, dtype=bool))
    table = pairs[["position", "direction"]].assign(**{f"kept_{t}": row for t, row in enumerate(kept)})
    groups = table.groupby(["position", "direction"], sort=True)
    found = groups.sum().assign(spans=groups.size()).reset_index()
    for t in range(len(kept)):
        a, k = found[f"kept_{t}"].to_numpy(dtype=float), found["spans"].to_numpy(dtype=float)
        some = a > 0
        found[f"missed_{t}"] = np.where(some, (1 - a / k) ** 2, np.nan)
        apart = (k - a) * np.maximum(k - a - 1, 0) / np.maximum(k * (k - 1), 1)
        found[f"missed_apart_{t}"] = np.where(some, np.where(k > 1, apart, 0.0), np.nan)
    return found


def missed_estimate(missed: pd.DataFrame, trainings: int) -> Estimate | None:
    """Mean of missed_t over the premises and directions of two spans or more that have a kept one, over trainings and
    originals; None where a training keeps nothing."""
    some = missed[missed["spans"] > 1]
    values = some[[f"missed_{t}" for t in range(trainings)]].to_numpy(dtype=float).T
    if not values.size or np.isnan(values).all(axis=1).any():
        return None
    return over_trainings(means_of(values), values.shape[1], groups=some["position"].to_numpy())


def cross_labelled(originals: Corpus, revised: Corpus) -> pd.DataFrame:
    """Revised premises with the label they bear, and again with the label they have not: position, row, label, true.

    position  of the original; row: of the revision; label: the one that is claimed; true: whether it is the revision's
    The label of the original is never claimed, since a perturbation is always asked for another one. A revision whose
    original is not there, or has its label, is left out.
    """
    place = {uid: at for at, uid in enumerate(originals.uid)}
    at = revised.table["origin_uid"].map(place)
    row = np.flatnonzero(at.notna())
    position = at.to_numpy(dtype=float)[row].astype(np.int64)
    changed = originals.labels[position] != revised.labels[row]
    row, position = row[changed], position[changed]
    right = revised.labels[row]
    wrong = len(LABELS) - originals.labels[position] - right
    parts = [(right, True), (wrong, False)]
    tables = [
        pd.DataFrame({"position": position, "row": row, "label": claimed, "true": is_so}) for claimed, is_so in parts
    ]
    return pd.concat(tables, ignore_index=True)


def separation(shifts: ArrayLike, true: ArrayLike, groups: ArrayLike) -> Estimate:
    """Area under the ROC curve: how often a pair that has its label moves the teacher more than one that has not.

    0 to 1, high = told apart, 0.5 = not at all. shifts (T, N), true (N,) bool, groups (N,): originals, drawn whole.
    The mean over T teachers, with an interval over trainings and originals.
    """
    shifts, true = np.atleast_2d(np.asarray(shifts, dtype=float)), np.asarray(true, dtype=bool)
    if true.all() or not true.any():
        raise ValueError("all pairs have their label, or none has: there is nothing to tell apart")

    def statistic(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.array([roc_auc_score(true[rows], each[rows]) for each in shifts])

    return over_trainings(statistic, len(true), groups=np.asarray(groups))


def truth_table(true: ArrayLike, groups: ArrayLike, filters: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """What filters keep of pairs that have their label, and of those that have not.

    true (N,) bool; groups (N,) originals; filters: name -> (N,) bool
    Columns filter, label ("true", "broken"), count, n, share, low, high; and pure, the share of the kept that are true,
    which is missing where nothing is kept.
    """
    true, groups = np.asarray(true, dtype=bool), np.asarray(groups)
    rows = []
    for name, keep in filters.items():
        keep = np.asarray(keep, dtype=bool)
        pure = float(true[keep].mean()) if keep.any() else np.nan
        for title, part in (("true", true), ("broken", ~true)):
            found = mean_over_premises(keep[part], groups[part]) if part.any() else _nothing()
            rows.append((name, title, int(keep[part].sum()), int(part.sum()), *found[:3], pure))
    columns = ["filter", "label", "count", "n", "share", "low", "high", "pure"]
    return pd.DataFrame(rows, columns=columns).round(5)


def _nothing() -> Estimate:
    return Estimate(np.nan, np.nan, np.nan, 0)


def released_table(released: Mapping[str, Corpus]) -> pd.DataFrame:
    """What the released counterfactuals are: one row a file.

    title, n; lowest, the smallest shift; above_half, the share whose shift is above one half; by_insertion, the share
    that was asked by insertion; dropped and dropped_2023, how many the heuristics of each state of the code would drop.
    """
    rows = []
    for title, corpus in released.items():
        table = corpus.table.rename(columns={"gen_out": "generation"})
        score = table["score"].astype(float)
        dropped = [int((~perturbation_filter(table, name=name).keep).sum()) for name in (CODE_2022, CODE_2023)]
        inserted = _inserted(table).mean()
        rows.append((title, len(table), score.min(), (score > 0.5).mean(), inserted, *dropped))
    columns = ["title", "n", "lowest", "above_half", "by_insertion", "dropped", "dropped_2023"]
    return pd.DataFrame(rows, columns=columns).round(6)


def suffix_gap(table: pd.DataFrame) -> Estimate:
    """How many words more than the span the generation has with a masked prompt, minus that with insertion.

    table  released counterfactuals with origin_premise, span_prev, gen_out and prefix. Pairs whose span ends the
    premise are left out: there is no suffix to notice. Premises are drawn, of each way of asking on its own.
    """
    ends = [
        premise.rstrip(" .!?").endswith(span.rstrip(" .!?"))
        for premise, span in zip(table["origin_premise"], table["span_prev"], strict=True)
    ]
    middle = table[~np.array(ends, dtype=bool)]
    more = middle["gen_out"].str.split().str.len() - middle["span_prev"].str.split().str.len()
    masked = ~_inserted(middle)
    premises = middle["origin_premise"]
    return mean_over_premises(more[masked], premises[masked], other=(more[~masked], premises[~masked]))


def _inserted(table: pd.DataFrame) -> NDArray[np.bool_]:
    found = table["prefix"].notna() if "prefix" in table else pd.Series(False, index=table.index)
    return found.to_numpy(dtype=bool)
