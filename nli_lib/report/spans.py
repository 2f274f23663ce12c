"""What spans premises have, which of them each rule tries, and how many of the released ones are found."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.generate.perturb import (
    NOUN,
    PREDICATE,
    PREPOSITION,
    SPAN_RULES,
    VERB,
    Demonstration,
    choose_spans,
    find_spans,
)
from nli_lib.measure.similarity import shared_words
from nli_lib.stats import mean_over_premises

KINDS = (NOUN, VERB, PREPOSITION, PREDICATE)
MISSING = "not found"


def spans_of_premises(spans: pd.DataFrame, labels: ArrayLike, classes: Sequence[str]) -> pd.DataFrame:
    """How many different spans a premise has, by the label of its pair: columns label, kinds, value, low, high, n.

    spans   as `find_spans`, of premises (S,); labels (S,)
    kinds   "all", "chunks alone" (of nouns and verbs); the interval draws premises
    """
    rows, labels = [], np.asarray(labels)
    for kinds, part in (("all", spans), ("chunks alone", spans[spans["kind"].isin((NOUN, VERB))])):
        counts = part.drop_duplicates(["text", "span"])["text"].value_counts()
        counts = counts.reindex(np.arange(len(labels)), fill_value=0).to_numpy()
        for label in np.unique(labels):
            found = mean_over_premises(counts[labels == label], np.flatnonzero(labels == label))
            rows.append((classes[label], kinds, *found[:4]))
    return pd.DataFrame(rows, columns=["label", "kinds", "value", "low", "high", "n"]).round(4)


def kinds_of_spans(spans: pd.DataFrame) -> pd.DataFrame:
    """By kind of span: columns kind, spans, words (mean), repeated (share that occurs again in the premise)."""
    table = spans.assign(words=spans["span"].str.split().str.len(), repeated=spans["times"] > 1)
    grouped = table.groupby("kind")[["words", "repeated"]].mean().assign(spans=table["kind"].value_counts())
    return grouped.reindex([kind for kind in KINDS if kind in grouped.index]).round(4).reset_index()


def rules_compared(spans: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """What each of `SPAN_RULES` tries: columns rule, tried (spans of a premise), different, share of all, repeated.

    repeated is the share of the tried that repeat a span of the same premise.
    """
    everything, rows = len(choose_spans(spans)), []
    texts = spans["text"].nunique()
    for rule in SPAN_RULES if texts else ():
        chosen = choose_spans(spans, rule, seed=seed)
        different = len(chosen.drop_duplicates(["text", "span"]))
        repeated = 1 - different / len(chosen)
        rows.append((rule, len(chosen) / texts, different / texts, different / everything, repeated))
    return pd.DataFrame(rows, columns=["rule", "tried", "different", "share", "repeated"]).round(4)


def released_found(released: Mapping[str, Corpus], *, limit: int | None = None, seed: int = 0) -> pd.DataFrame:
    """Which kind of span each released one is here: columns title, kind, count, n, share, low, high.

    released  title -> corpus of released counterfactuals, with origin_premise and span_prev. `MISSING` is a kind
    limit     look for so many of each, drawn at random
    """
    rows = []
    for title, corpus in released.items():
        table = corpus.table
        if limit is not None and limit < len(table):
            table = table.sample(limit, random_state=seed)
        premise, place = np.unique(table["origin_premise"].to_numpy(dtype=object), return_inverse=True)
        spans = find_spans(premise)
        known = spans.drop_duplicates(["text", "span"]).set_index(["text", "span"])["kind"]
        asked = pd.MultiIndex.from_arrays([place, table["span_prev"].str.strip()])
        kind = known.reindex(asked).fillna(MISSING).to_numpy()
        for name in (*KINDS, MISSING):
            found = mean_over_premises(kind == name, place)
            rows.append((title, name, int((kind == name).sum()), len(kind), *found[:3]))
    return pd.DataFrame(rows, columns=["title", "kind", "count", "n", "share", "low", "high"]).round(5)


def demonstrations_alike(
    corpus: Corpus, problems: pd.DataFrame, groups: Mapping[str, Sequence[Sequence[Demonstration]]]
) -> pd.DataFrame:
    """Words that a problem shares with its demonstrations (Jaccard): columns condition, value, low, high, n.

    groups  name -> the demonstrations of each problem (N,); problems without any are left out. Originals are drawn
    """
    rows, position = [], problems["position"].to_numpy()
    texts = [f"{corpus.premise[at]} {corpus.hypothesis[at]}" for at in position]
    for name, shown in groups.items():
        own = [at for at, each in enumerate(shown) for _ in each]
        others = [f"{each.premise} {each.hypothesis}" for group in shown for each in group]
        if own:
            values = shared_words([*texts, *others], np.array(own), len(texts) + np.arange(len(others)))
            rows.append((name, *mean_over_premises(values, position[own])[:4]))
    return pd.DataFrame(rows, columns=["condition", "value", "low", "high", "n"]).round(5)
