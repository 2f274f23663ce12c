"""What a report says of the levels of difficulty of somebody's corpus: their sizes, how firm they are, their pairs.

part = level_figures(corpus, [(pair.logits, hypothesis.logits), ...], contradicted=flags)

The levels come from models that were trained on these very pairs. The one number here that does not is the share of
labels that models contradict which did not train on them, level by level and beside random twins.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.corpus import Corpus
from nli_lib.levels import by_training, estimate, level_means
from nli_lib.measure.difficulty import FEATURES, LEVELS, dynamics_features, level_agreement, levels
from nli_lib.measure.features import spaced
from nli_lib.report.audit_figures import SHARE, Figure
from nli_lib.report.audit_words import ends, percent
from nli_lib.report.style import TWIN
from nli_lib.stats import Estimate, mean_and_range, means_of

MIXTURES = 5  # seeds of the mixture, to see how much the levels depend on it
MOST = 10  # pairs of the hard level that are shown
WORDS, CONTRADICTED = "words of the hypothesis", "contradicted"
UNITS = {WORDS: "words", CONTRADICTED: SHARE}
RAND = "adjusted Rand index"
CHANCE = 0.2  # an index below which the levels of two trainings have hardly anything in common


def level_figures(
    corpus: Corpus,
    trainings: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    contradicted: ArrayLike | None = None,
    said: str = "",
) -> dict:
    """The numbers of the levels as plain values, each with interval and unit.

    trainings     logits (E, N, C) of a model of the pair and of one of the hypothesis alone, for each training
    contradicted  (N,) bool, labels that models contradict which did not train on them; said: how it was trained

    Keys: said, learnt (whether the models of the pair fit these labels better than the majority label does), next
    (what to do), figures, rows (the pairs of the hard level of lowest confidence). The figures are the share of each
    level, of each label in it, the mean number of words of its hypotheses and its share of contradicted labels, both
    also of the level's random twin; how many of these labels either model predicts in the end; and how far the levels
    of two trainings, and of two seeds of the mixture, agree. Raises `ValueError` where the pairs do not fall into three
    levels.
    Source: the difficulty paper, section 3; see `measure.difficulty.levels`.
    """
    labels, premise = corpus.labels, pd.factorize(corpus.premise)[0]
    features = [dynamics_features(*each, labels) for each in trainings]
    fits = [[levels(each, seed=seed) for seed in range(MIXTURES)] for each in features]
    scores = {WORDS: pc.count_substring(spaced(corpus.hypothesis), " ").to_numpy() + 1}
    if contradicted is not None:
        scores[CONTRADICTED] = np.asarray(contradicted, dtype=float)
    table = pd.concat(
        pd.DataFrame({"training": at, "position": range(len(corpus)), "premise": premise, "gold": labels} | scores)
        .assign(level=each[0], corpus="")
        for at, each in enumerate(fits)
    )  # fmt: skip
    found = _shares(table, corpus.classes) | _means(table, list(scores)) | _agreement(fits)
    for at, view in enumerate(("pair", "hypothesis")):
        right = np.array([np.asarray(each[at])[-1].argmax(axis=1) == labels for each in trainings], dtype=float)
        found[f"fitted by the {view}"] = _share(estimate(table, means_of(right)))
    learnt = found["fitted by the pair"].estimate.low > np.bincount(labels).max() / len(labels)
    return {
        "said": said,
        "learnt": bool(learnt),
        "next": _next(found, learnt=learnt),
        "figures": {name: each.as_json() | {"trainings": each.estimate.seeds} for name, each in found.items()},
        "rows": _hardest(corpus, features, fits),
    }


def _shares(table: pd.DataFrame, classes: Sequence[str]) -> dict[str, Figure]:
    level, gold = by_training(table, "level"), by_training(table, "gold")
    found = {}
    for at, name in enumerate(LEVELS):
        found[name] = _share(estimate(table, means_of((level == at).astype(float))))
        inside = [np.where(level == at, gold == label, np.nan) for label in range(len(classes))]
        for label, each in zip(classes, inside, strict=True):
            found[f"{name}: {label}"] = _share(estimate(table, means_of(each)))
    return found


def _share(found: Estimate, unit: str = SHARE) -> Figure:
    """A share, whose interval ends at 0 and 1; another unit has no ends."""
    if unit == SHARE:
        found = found._replace(low=max(0.0, found.low), high=min(1.0, found.high))
    return Figure(found, unit)


def _means(table: pd.DataFrame, scores: list[str]) -> dict[str, Figure]:
    rows, seeds = level_means(table, scores), table["training"].nunique()
    over = "premises and trainings" if seeds > 1 else "premises"
    return {
        f"{row.level}: {row.score}{f', {TWIN}' if row.condition == TWIN else ''}": _share(
            Estimate(row.value, row.low, row.high, row.n, seeds, over), UNITS[row.score]
        )
        for row in rows.itertuples()
    }


def _agreement(fits: Sequence[Sequence[NDArray]]) -> dict[str, Figure]:
    """Mean and range of the adjusted Rand index between trainings, and between seeds of the mixture."""

    def between(pairs: list[tuple[NDArray, NDArray]], over: str) -> Figure:
        values = np.array([level_agreement(*each)["adjusted Rand"] for each in pairs])
        spread = mean_and_range(values, n=len(pairs[0][0]), over=f"{over}, range")._replace(seeds=len(fits))
        if len(values) < 2:
            spread = spread._replace(low=np.nan, high=np.nan)  # one pair has no range
        return Figure(spread, RAND)

    mixtures = [pair for each in fits for pair in combinations(each, 2)]
    found = {"another mixture": between(mixtures, "pairs of seeds")}
    if len(fits) > 1:
        found["another training"] = between(list(combinations([each[0] for each in fits], 2)), "pairs of trainings")
    return found


def _hardest(corpus: Corpus, features: Sequence[NDArray], fits: Sequence[Sequence[NDArray]]) -> list[dict]:
    """The pairs that are hard in most trainings, of them those of lowest confidence (mean over the trainings)."""
    votes = np.mean([each[0] == LEVELS.index("hard") for each in fits], axis=0)
    confidence = np.mean([each[:, FEATURES.index("pair confidence")] for each in features], axis=0)
    first = np.lexsort((confidence, -votes))[: min(MOST, int((votes > 0).sum()))]
    n = len(features)
    return [
        {
            "uid": str(corpus.uid[at]),
            "premise": str(corpus.premise[at]),
            "hypothesis": str(corpus.hypothesis[at]),
            "label": corpus.classes[corpus.labels[at]],
            "hard": {"value": float(votes[at]), "unit": "share of the trainings", "n": n},
            "confidence": {"value": round(float(confidence[at]), 4), "unit": "probability, mean", "n": n},
        }
        for at in first
    ]


def _next(found: dict[str, Figure], *, learnt: bool) -> str:
    again = found.get("another training")
    if not learnt:
        return (
            "Do not read the levels yet: the models fit these labels no better than the most frequent label does. "
            "Train longer (--epochs), or add pairs."
        )
    hard = found["hard"].estimate
    share = f"the {percent(hard.value)} {ends(hard)} of the pairs that are hard to learn"
    if again is not None and again.estimate.value < CHANCE:
        return (
            f"Do not cut the corpus by difficulty: the levels of two trainings agree hardly more than chance would "
            f"have it (adjusted Rand index {again.estimate.value:.2f})."
        )
    own, twin = (found.get(f"hard: {CONTRADICTED}{end}") for end in ("", f", {TWIN}"))
    if own is None or twin is None:
        return f"Look at {share} before any of them is dropped: hard may mean wrong, rare or simply difficult."
    (value, low, *_), (other, _, high, *_) = own.estimate, twin.estimate
    said = (
        f"of their labels, models that did not train on them contradict {percent(value)}, of a random twin's "
        f"{percent(other)}"
    )
    if low > high:
        return f"Review {share} first, for wrong labels gather there: {said}."
    if value > other:
        return f"Look at {share} before any of them is dropped: {said}, which may be chance."
    return f"Do not take {share} for mislabelled: {said}."
