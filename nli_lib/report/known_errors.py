"""How well orders of review find known errors: average precision, with intervals over pairs and trainings."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.label_quality import average_precision
from nli_lib.measure.consensus import COUNTS, FIVE, MEMBERS, MODELS, VOTES, combine, suspicion
from nli_lib.plots import TWIN
from nli_lib.stats import Estimate, resample_counts, with_trainings

ORDERS = (*MEMBERS, "low normalised margin", "gap", "variability (data map)")
COMBINED = (VOTES, MODELS, FIVE, COUNTS)
COUNTED, COUNTED_TWIN = "label counts alone", "label counts, then a random twin"
COUNTED_MAP = "published: label counts, then data map"
ALONE, HELPED, PRINTED, CONTROL = "models alone", "models and annotators", "published", "control: random twin or counts"
GROUPS = dict.fromkeys((*ORDERS, VOTES, MODELS), ALONE) | {FIVE: HELPED, COUNTS: HELPED}
GROUPS |= dict.fromkeys((COUNTED, COUNTED_TWIN, TWIN), CONTROL)
# the release's methods, in words; those trained on its own errors say so
PUBLISHED = {
    "dm_mean": "published: data map, confidence",
    "dm_std": "published: data map, variability",
    "metadata_archaeology_knn": "published: trained on known errors, neighbours",
    "metadata_archaeology_lr": "published: trained on known errors, regression",
    "gpt-3.5-turbo": "published: GPT-3.5",
    "gpt-4-1106-preview": "published: GPT-4",
    "baseline_chaosnli_prob": "published: ChaosNLI's 100",
    "peer_heuristic_sum_all_exp": "published: judgments of peers",
}


class Precision(NamedTuple):
    """Average precision of one order of n items: `value`.

    by_training  (S,) what each training contributes: its own value, or the jackknife's where the S are one order
    draws        (R,) in each resample of the pairs, with the trainings kept
    others       whether these are other trainings than ours
    """

    value: float
    by_training: NDArray[np.float64]
    draws: NDArray[np.float64]
    n: int
    others: bool = False

    def estimate(self) -> Estimate:
        return with_trainings(self.value, self.draws, self.by_training, n=self.n)

    def minus(self, other: "Precision") -> Estimate:
        """How much higher this one is than another: paired by resample, and by training where they are the same."""
        trainings = self.by_training, other.by_training
        if len(trainings[0]) == len(trainings[1]) and self.others == other.others:
            trainings = (trainings[0] - trainings[1],)
        return with_trainings(self.value - other.value, self.draws - other.draws, *trainings, n=self.n)


class Resamples:
    """The same R resamples for all orders: pairs drawn with replacement, whole.

    wrong (K,) bool, whether an item is an error; pairs (K,), the pair that each item belongs to: two labels of one pair
    are not independent draws. Resamples without any error have no average precision and are left out.
    """

    def __init__(self, wrong: ArrayLike, pairs: ArrayLike, *, resamples: int = 1000, seed: int = 0):
        self.wrong = np.asarray(wrong, dtype=bool)
        if not self.wrong.any():
            raise ValueError("no item is an error, so nothing can be found")
        weights = np.stack(list(resample_counts(len(self.wrong), groups=pairs, resamples=resamples, seed=seed)))
        self.weights = weights[weights[:, self.wrong].any(axis=1)]  # (R, K)

    def each(self, scores: ArrayLike, *, others: bool = False) -> Precision:
        """The mean over trainings of the average precision of each one's order. scores (S, K), NaN: not scored."""
        scores = np.atleast_2d(np.asarray(scores, dtype=float))
        by_training = np.array([self._value(row) for row in scores])
        draws = np.mean([weighted_precision(row, self.wrong, self.weights) for row in scores], axis=0)
        return Precision(float(by_training.mean()), by_training, draws, len(self.wrong), others)

    def together(self, scores: ArrayLike) -> Precision:
        """The average precision of one order: the mean over trainings of their scores (S, K)."""
        scores = np.atleast_2d(np.asarray(scores, dtype=float))
        count, sums = len(scores), scores.sum(axis=0)
        value = self._value(sums)
        without = [self._value(sums - row) for row in scores] if count > 1 else [value]
        pseudo = count * value - (count - 1) * np.array(without)  # Tukey's jackknife
        return Precision(value, pseudo, weighted_precision(sums, self.wrong, self.weights), len(self.wrong))

    def _value(self, row: NDArray) -> float:
        known = ~np.isnan(row)
        return float(average_precision(row[known], self.wrong[known]))


def weighted_precision(scores: ArrayLike, wrong: ArrayLike, weights: ArrayLike) -> NDArray[np.float64]:
    """Average precision of one order under R weightings of its items, (R,).

    scores (K,), the more suspect the higher, NaN: left out; wrong (K,) bool; weights (R, K). Equal scores are one step
    of the curve. Equal to scikit-learn's `average_precision_score` with each row as sample weights.
    """
    scores, wrong, weights = np.asarray(scores, dtype=float), np.asarray(wrong, dtype=bool), np.asarray(weights)
    order = np.argsort(-scores, kind="stable")[: np.count_nonzero(~np.isnan(scores))]
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # of each run of equal scores
    seen = weights[:, order].cumsum(axis=1, dtype=float)[:, last]
    found = (weights * wrong)[:, order].cumsum(axis=1, dtype=float)[:, last]
    precision = np.divide(found, seen, out=np.zeros_like(found), where=seen > 0)
    return (np.diff(found, axis=1, prepend=0) * precision).sum(axis=1) / found[:, -1]


def score_items(watched: Mapping[int, ArrayLike], items: pd.DataFrame) -> pd.DataFrame:
    """Every order of review of every judged label: seed, key, the orders of `suspicion` and of `combine`.

    watched  seed -> logits (E, H, C) of the H judged pairs, in the order of their places in the corpus
    items    `corpora.people.known_errors`
    """
    row, parts = np.unique(items["position"], return_inverse=True)[1], []
    for seed, logits in watched.items():
        scores = pd.DataFrame(suspicion(np.asarray(logits)[:, row], items["label"].to_numpy(dtype=int)))
        both = scores.assign(**combine(scores, count=items["count"], five=items["five"]))
        parts.append(both.assign(seed=seed, key=items["key"].to_numpy()))
    empty = pd.DataFrame(columns=["seed", "key", *ORDERS, *COMBINED])
    return pd.concat(parts, ignore_index=True)[empty.columns] if parts else empty


def find_errors(
    scores: pd.DataFrame, items: pd.DataFrame, published: pd.DataFrame, *, resamples: int = 1000
) -> dict[str, Precision]:
    """`Precision` of all orders on the same resamples of the items, by name; none where no item is an error.

    scores  `score_items`; published: `corpora.people.published_scores`, or no rows. The controls are the counts alone
            (`COUNTED`), a random order, and the counts with a random order among equals. `FIVE` is left out where the
            corpus's own five labels are not known.
    """
    if not len(scores) or not items["error"].any():
        return {}
    draw, keys = Resamples(items["error"], items["pair"], resamples=resamples), items["key"]
    count, by_seed = items["count"].to_numpy(dtype=float), scores.pivot(index="seed", columns="key")
    wide = {name: by_seed[name][keys].to_numpy(dtype=float) for name in (*ORDERS, *COMBINED)}
    found = {name: draw.each(wide[name]) for name in ORDERS}
    found |= {name: draw.together(wide[name]) for name in COMBINED if np.isfinite(wide[name]).all()}
    random = np.random.default_rng(0).random(wide[COUNTS].shape)
    found |= {COUNTED: draw.each(-count), TWIN: draw.each(random), COUNTED_TWIN: draw.each(random - 2 * count)}
    for method, part in published[published["key"].isin(keys)].groupby("method"):
        runs = part.pivot(index="run", columns="key", values="score").reindex(columns=keys)
        if method in PUBLISHED:
            found[PUBLISHED[method]] = draw.each(runs, others=True)
        if method == "dm_mean":
            found[COUNTED_MAP] = draw.each(runs - 1000 * count, others=True)
    return found


def precision_table(found: Mapping[str, Precision]) -> pd.DataFrame:
    """One row an order, the best first: score, group (a value of `GROUPS`), and the fields of `Estimate`."""
    rows = [
        {"score": name, "group": GROUPS.get(name, PRINTED), **each.estimate()._asdict()} for name, each in found.items()
    ]
    table = pd.DataFrame(rows, columns=["score", "group", *Estimate._fields])
    return table.sort_values("value", ascending=False, ignore_index=True)


def gain_table(found: Mapping[str, Precision], others: Sequence[str]) -> pd.DataFrame:
    """How much higher each of our orders is than each of `others`, paired: score, other, the fields of `Estimate`."""
    ours = [name for name in (*ORDERS, *COMBINED) if name in found]
    pairs = [(name, other) for other in others if other in found for name in ours]
    rows = [{"score": a, "other": b, **found[a].minus(found[b])._asdict()} for a, b in pairs]
    return pd.DataFrame(rows, columns=["score", "other", *Estimate._fields])


def reproduced(published: pd.DataFrame, items: pd.DataFrame, printed: pd.Series) -> pd.DataFrame:
    """The release's table made again from its prediction files: method, ours, printed (average precision in percent).

    published  `corpora.people.published_scores`; items: key, error, count of all items; printed: method -> percent

    Protocol, as the release's code has it: scikit-learn's average precision over the items that a file scores, the mean
    over its runs. Rows that end in "_rerank" put the labels that fewest annotators gave first, and among equals the
    method's order; an item without a score counts as 0 there. "LC_VariErr" is the counts alone. Scores of other items
    than these give no rows.
    """
    published = published[published["key"].isin(items["key"])]
    if published.empty or not items["error"].any():
        return pd.DataFrame(columns=["method", "ours", "printed"])
    wide = published.pivot(index=["method", "run"], columns="key", values="score").reindex(columns=items["key"])
    wrong, count = items["error"].to_numpy(dtype=bool), items["count"].to_numpy(dtype=float)
    wide.loc[("LC_VariErr", "counts"), :] = -count
    negative = -wide[wide.index.get_level_values("method") == "dm_std"]
    plain = pd.concat([wide, negative.rename({"dm_std": "dm_neg_std"}, level="method")])
    again = plain.fillna(0) - 1000 * count
    both = pd.concat([plain, again.rename(lambda method: f"{method}_rerank", level="method")])
    values = [average_precision(row[~np.isnan(row)], wrong[~np.isnan(row)]) for row in both.to_numpy(dtype=float)]
    ours = 100 * pd.Series(values, both.index).groupby(level=0).mean()
    return pd.DataFrame({"ours": ours, "printed": printed}).dropna().rename_axis("method").reset_index()
