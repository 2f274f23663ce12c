"""What trained generators write: whether the labels fit, which features give them away, and what a mask covers.

Several generators are told apart by columns of the samples, such as "unlikelihood" and "seed"; see `study.generators`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.planted import ARTIFACT_WORDS, GIVEAWAYS
from nli_lib.measure.features import Features, features_in_shards, join, prediction, tokenize, z_statistics
from nli_lib.measure.giveaways import Flagged, cross_fitted, partial_input_predictions
from nli_lib.select.zfilter import z_filter
from nli_lib.stats import share

SIDES = ("hypothesis", "premise")
LETTERS = 200  # of a text that is shown


def agreement(pairs: pd.DataFrame, predicted: ArrayLike, by: Sequence[str]) -> pd.DataFrame:
    """How often a teacher's prediction is the intended label, one row for each group of pairs.

    pairs      rows with "label" and the columns `by`; predicted (N,) the class that the teacher gives each
    Columns: `by`, n, agree, share, low, high (Wilson), and two controls: chance, the agreement of the same intended and
    predicted labels paired at random, and most, the share of the most frequent intended label.
    """
    rows = []
    for name, part in pairs.assign(predicted=np.asarray(predicted)).groupby(list(by), sort=True):
        agree = part["label"] == part["predicted"]
        found = share(agree.to_numpy())
        labels, guesses = (part[column].value_counts(normalize=True) for column in ("label", "predicted"))
        chance = labels.mul(guesses, fill_value=0).sum()
        facts = {"n": len(part), "agree": int(agree.sum()), "share": found.value, "low": found.low, "high": found.high}
        rows.append({**dict(zip(by, name, strict=True)), **facts, "chance": chance, "most": labels.max()})
    return pd.DataFrame(rows, columns=[*by, "n", "agree", "share", "low", "high", "chance", "most"])


def label_margins(logits: np.ndarray, labels: ArrayLike) -> pd.DataFrame:
    """What a generator's record says: columns epoch (counted in the record), accuracy, margin, own.

    logits (E, N, C) log p(hypothesis | label, premise). accuracy: share of pairs whose own label makes the hypothesis
    most probable; margin: own label's log p minus the mean of the wrong ones'; own: the log p under the own label.
    """
    labels = np.asarray(labels)
    own = logits[:, np.arange(len(labels)), labels]
    wrong = (logits.sum(2) - own) / (logits.shape[2] - 1)
    accuracy = (logits.argmax(2) == labels).mean(1)
    columns = {"accuracy": accuracy, "margin": (own - wrong).mean(1), "own": own.mean(1)}
    return pd.DataFrame({"epoch": np.arange(1, len(logits) + 1), **columns})


def biased_in(
    table: Features, labels: ArrayLike, sets: Mapping[str, np.ndarray], tops: pd.DataFrame, *, n_classes: int
) -> pd.DataFrame:
    """z of given features in several sets of pairs of the same size: columns set, label, name, z, n, share.

    table, labels  features and labels of all pairs, N of them
    sets           name -> positions of its pairs; equal sizes make z comparable, for it grows with their root
    tops           the features: label (a number) and name, such as the highest of the corpus itself

    A feature that a set does not hold has n = 0 and z = 0 there: it gives nothing away.
    """
    labels, place = np.asarray(labels), {name: at for at, name in enumerate(table.names)}
    column, label = tops["name"].map(place).to_numpy(), tops["label"].to_numpy()
    found = []
    for name, rows in sets.items():
        stats = z_statistics(table.matrix[rows], labels[rows], n_classes)
        n, count = stats.n[column], stats.counts[column, label]
        facts = {"z": np.nan_to_num(stats.z[column, label]), "n": n, "share": count / np.maximum(n, 1)}
        found.append(tops[["label", "name"]].assign(set=name, **facts))
    return pd.concat(found, ignore_index=True)[["set", "label", "name", "z", "n", "share"]]


def accepted(table: Features, labels: ArrayLike, sets: Mapping[str, np.ndarray], **options: object) -> pd.DataFrame:
    """What the z-filter keeps of each set of pairs by itself: columns set, n, kept, share; `options` go to it."""
    labels, rows = np.asarray(labels), []
    for name, at in sets.items():
        kept = z_filter(table.matrix[at], labels[at], names=table.names, **options)
        rows.append({"set": name, "n": len(at), "kept": kept.size, "share": kept.size / max(len(at), 1)})
    return pd.DataFrame(rows)


def mask_table(corpus: Corpus, rejected: ArrayLike, flagged: Flagged) -> pd.DataFrame:
    """What the mask marks in the rejected pairs, by label and in all: columns label, pairs, whole (share of them whose
    whole hypothesis is marked), hypothesis and premise (share of their words that are marked)."""
    rejected = np.asarray(rejected, bool)
    table = pd.DataFrame({"label": np.array(corpus.classes, object)[corpus.labels], "whole": flagged.whole})
    for side in SIDES:
        words = tokenize(getattr(corpus, side))
        marked = getattr(flagged, side) | (flagged.whole[words.rows] if side == "hypothesis" else False)
        table[f"{side} marked"] = np.bincount(words.rows, marked, minlength=len(corpus))
        table[f"{side} words"] = words.lengths
    rows = []
    for name, part in [*table[rejected].groupby("label", sort=True), ("all", table[rejected])]:
        shares = {side: part[f"{side} marked"].sum() / max(part[f"{side} words"].sum(), 1) for side in SIDES}
        rows.append({"label": name, "pairs": len(part), "whole": part["whole"].mean(), **shares})
    return pd.DataFrame(rows, columns=["label", "pairs", "whole", "hypothesis", "premise"])


def marked_texts(corpus: Corpus, rows: Sequence[int], flagged: Flagged, reasons: ArrayLike) -> pd.DataFrame:
    """The texts of some pairs with each marked word in [brackets]: columns label, premise, hypothesis, reason.

    reasons (N,) as a Selection has them. Texts are cut to `LETTERS` characters.
    """
    shown = {}
    for side in SIDES:
        starts = np.cumsum([0, *tokenize(getattr(corpus, side)).lengths])
        texts = []
        for at in rows:
            flags = iter(getattr(flagged, side)[starts[at] : starts[at + 1]])
            everything = side == "hypothesis" and flagged.whole[at]
            words = getattr(corpus, side)[at].split()
            counted = [len(tokenize([word]).ids) > 0 for word in words]
            marks = [everything or (counts and next(flags)) for counts in counted]
            text = " ".join(f"[{word}]" if mark else word for word, mark in zip(words, marks, strict=True))
            texts.append(text[:LETTERS])
        shown[side] = texts
    label = np.array(corpus.classes, object)[corpus.labels[list(rows)]]
    return pd.DataFrame({"label": label, **shown, "reason": np.asarray(reasons, object)[list(rows)]})


def planted_ties(pairs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """How far planted words still go with their label, for pairs made from the planted corpus: columns `by`, n (pairs
    with a planted word or phrase), own (share of them whose label is the word's), chance (that share, to be expected
    from how often the generator intends each label)."""
    words = {word: label for label, words in ARTIFACT_WORDS.items() for word in (*words, GIVEAWAYS[label])}
    pattern = "|".join(sorted(words, key=len, reverse=True))
    found = pairs["hypothesis"].str.lower().str.extract(rf"\b({pattern})\b", expand=False)
    rows = []
    for name, whole in pairs.assign(of=found.map(words)).groupby(list(by), sort=True):
        part = whole.dropna(subset=["of"])
        if part.empty:
            continue
        chance = whole["label"].value_counts(normalize=True).reindex(part["of"]).fillna(0).mean()
        own = (part["of"] == part["label"]).mean()
        rows.append({**dict(zip(by, name, strict=True)), "n": len(part), "own": own, "chance": chance})
    return pd.DataFrame(rows, columns=[*by, "n", "own", "chance"])


def joint_features(corpus: Corpus, pairs: pd.DataFrame) -> tuple[Features, np.ndarray]:
    """Features (N + M, V) and labels of a corpus's N pairs and, after them, M sampled ones: those of
    `measure.features.features` and a hypothesis-only prediction.

    The prediction is that of n-grams, cross-fitted for the corpus's own pairs; for sampled ones it is that of a model
    of all of the corpus's pairs, which has seen none of them.
    """
    classes, gold, texts = len(corpus.classes), corpus.labels, corpus.hypothesis
    own = cross_fitted(texts, gold, n_classes=classes, groups=corpus.premise)
    others = np.empty((0, classes))
    if len(pairs):
        others = partial_input_predictions(texts, gold, {"samples": pairs["hypothesis"]}, n_classes=classes)["samples"]
    guesses = np.concatenate([own, others]).argmax(1)
    sides = [
        np.concatenate([getattr(corpus, side), pairs[side].to_numpy(object)]) for side in ("premise", "hypothesis")
    ]
    table = join(features_in_shards(*sides), prediction(guesses, n_classes=classes))
    return table, np.concatenate([gold, pairs["label"].to_numpy(np.int64)])


def equal_sets(corpus: Corpus, pairs: pd.DataFrame, by: str, *, seed: int = 0) -> dict[str, np.ndarray]:
    """Positions in `joint_features` of equally many pairs of each generator, the first ones drawn, and as many of the
    corpus at random, under "corpus"."""
    names = pairs[by].to_numpy()
    parts = {name: len(corpus) + np.flatnonzero(names == name) for name in pd.unique(names)}
    size = min(len(corpus), *map(len, parts.values()))
    random = np.random.default_rng(seed).permutation(len(corpus))
    return {"corpus": np.sort(random[:size])} | {name: at[:size] for name, at in parts.items()}
