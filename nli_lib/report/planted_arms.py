"""Interventions on planted text, where it is known which of them should help, and on which split.

arms(corpus, dynamics, crossed)       # selections: the z-filter, consensus pruning, ambiguous third, the planted pairs
gains = gains_over_twins(accuracy)    # each beside its random twin
expected(gains, {"words": {"artifact": 0.6}}, challenge)
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from nli_lib.corpora.corpus import Corpus
from nli_lib.evaluate import accuracy_row, seed_gains
from nli_lib.measure.consensus import suspects
from nli_lib.measure.dynamics import variability
from nli_lib.measure.features import features
from nli_lib.measure.giveaways import partial_input_predictions
from nli_lib.select.selection import Selection, top
from nli_lib.select.zfilter import z_filter

ALL, TRUTH, Z, PRUNED, AMBIGUOUS = (
    "all pairs",
    "without the planted",
    "z-filter",
    "consensus pruning",
    "ambiguous third",
)
TWIN = ", twin"
ARTIFACTS = (
    "artifact",
    "overlap",
    "length",
    "giveaway",
)  # strengths that point to a wrong label on the challenge split
# which planted fault each arm takes out
REMOVES = {TRUTH: {*ARTIFACTS, "flips"}, Z: set(ARTIFACTS), PRUNED: {"flips"}, AMBIGUOUS: set()}
LINEAR, ENCODER = "n-grams of the hypothesis", "encoder"
# what each learner can go by: n-grams of the hypothesis see neither copied words nor that a label contradicts the texts
SEES = {LINEAR: {"artifact", "length", "giveaway"}, ENCODER: {*ARTIFACTS, "flips"}}
GAIN, NONE = "gain", "no gain"
COLUMNS = ["planted", "learner", "arm", "title", "value", "low", "high", "seeds", "expected", "seen"]


def planted_pairs(corpus: Corpus) -> NDArray[np.bool_]:
    """(N,) bool: the pairs of a planted corpus with a forced artifact, a flipped label or two defensible ones."""
    columns = corpus.table
    return ((columns["planted"] != "") | columns["flipped"] | columns["ambiguous"]).to_numpy(dtype=bool)


def arms(
    corpus: Corpus,
    dynamics: ArrayLike | None = None,
    crossed: ArrayLike | None = None,
    *,
    threshold: float = 2.0,
    seed: int = 0,
) -> dict[str, Selection]:
    """What each intervention keeps of a planted corpus, by name, each with its random twin (", twin").

    dynamics (E, N, C) logits of a training on the whole corpus: without them no ambiguous third; crossed (N, C)
    cross-scored logits: without them no consensus pruning; threshold of the pruning rule, in logits. "all pairs" comes
    first; "without the planted" drops what was planted and nothing else, which only a planted corpus can tell.
    """
    labels, table = corpus.labels, features(corpus.premise, corpus.hypothesis)
    found = {TRUTH: Selection.where(~planted_pairs(corpus), dropped="planted")}
    found[Z] = z_filter(table.matrix, labels, names=table.names, seed=seed)
    if crossed is not None:
        found[PRUNED] = Selection.where(~suspects(crossed, labels, threshold=threshold), dropped="suspect")
    if dynamics is not None:
        found[AMBIGUOUS] = top(variability(dynamics, labels), fraction=1 / 3)
    twins = {f"{name}{TWIN}": each.random_twin(labels, seed) for name, each in found.items()}
    return {ALL: Selection.all(len(labels)), **found, **twins}


def linear_accuracy(corpus: Corpus, tests: Mapping[str, Corpus], *, seed: int = 0) -> pd.DataFrame:
    """Accuracy of logistic regression on the n-grams of the hypothesis, trained on each of the `arms` of a corpus.

    Columns: title (of ``tests``), condition (the arm), seed, kept (pairs trained on) and those of
    `evaluate.accuracy_row`. An arm that keeps nothing has no rows.
    """
    rows, texts = [], {title: test.hypothesis for title, test in tests.items()}
    for arm, kept in arms(corpus, seed=seed).items():
        known = corpus[kept.keep]
        guess = partial_input_predictions(known.hypothesis, known.labels, texts, n_classes=3) if len(known) else {}
        for title, each in guess.items():
            row = {"title": title, "condition": arm, "seed": seed, "kept": kept.size}
            rows.append(row | accuracy_row(each.argmax(axis=1) == tests[title].labels))
    return pd.DataFrame(rows)


def gains_over_twins(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each arm minus that of its random twin, within every seed, with a t interval over the seeds.

    accuracy: planted, learner, title, condition, seed, n, accuracy. Columns: planted, learner, arm, title, value, low,
    high, seeds. With one seed, low and high are NaN.
    """
    rows = []
    for (planted, learner), part in accuracy.groupby(["planted", "learner"], sort=False):
        for arm in REMOVES:
            gains = seed_gains(part, arm).query("other == @arm + @TWIN")
            rows.append(gains.assign(planted=planted, learner=learner, arm=arm))
    return pd.concat(rows, ignore_index=True).reindex(columns=COLUMNS[:8])


def expected(gains: pd.DataFrame, planted: Mapping[str, Mapping[str, float]], challenge: str) -> pd.DataFrame:
    """``gains`` with what the planted strengths say and what was seen.

    planted: name -> strengths; challenge: title of the split whose artifacts point to a wrong label. Columns expected:
    "gain" where the arm takes out what was planted there, the learner can go by it and the split punishes it (an
    artifact on the challenge split; a flipped label on every split), else "no gain". seen: "as planted" or "not as
    planted" where the interval says so, else "open". That nothing is gained is never proved: there, an interval that
    reaches 0 or lies below is as planted.
    """

    def punished(row: pd.Series) -> bool:
        strong = {name for name, share in planted[row["planted"]].items() if share > 0}
        strong &= REMOVES[row["arm"]] & SEES[row["learner"]]
        return "flips" in strong or (bool(strong & set(ARTIFACTS)) and row["title"] == challenge)

    def seen(row: pd.Series) -> str:
        if not np.isfinite(row["low"]):
            return "open"
        if row["expected"] == NONE:
            return "not as planted" if row["low"] > 0 else "as planted"
        return "as planted" if row["low"] > 0 else "not as planted" if row["high"] < 0 else "open"

    found = gains.drop(columns=["expected", "seen"], errors="ignore")
    found["expected"] = [GAIN if punished(row) else NONE for _, row in found.iterrows()]
    return found.assign(seen=[seen(row) for _, row in found.iterrows()])[COLUMNS]
