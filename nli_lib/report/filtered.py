"""What a filter did to a corpus: which features still stand out, what is left, what a model learns.

Sets of pairs are masks (N,) by name, such as {"before": ..., "after": ..., "random twin": ...}.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.measure.features import Features, top_features, z_statistics, z_threshold
from nli_lib.select.zfilter import z_filter


def strongest(
    table: Features, labels: ArrayLike, sets: Mapping[str, np.ndarray], classes: Sequence[str], *, k: int = 20
) -> pd.DataFrame:
    """The k features of highest z for each label in each set of pairs: `top_features` with label names.

    Further columns: pairs (name of the set) and line, the z of significance at .01 with Bonferroni's correction over
    all features and labels.
    """
    labels, tables = np.asarray(labels), []
    line = z_threshold(0.01, tests=len(table.names) * len(classes))
    for name, rows in sets.items():
        stats = z_statistics(table.matrix[np.flatnonzero(rows)], labels[rows], len(classes))
        best = top_features(stats, table.names, k=k).drop(columns="column")
        tables.append(best.assign(label=np.asarray(classes, dtype=object)[best["label"]], pairs=name, line=line))
    return pd.concat(tables, ignore_index=True)


def suppression(table: Features, labels: ArrayLike, *, line: float, seed: int = 0, **options: object) -> np.ndarray:
    """Three numbers about what the z-filter leaves of the features' ties to the labels, (3,).

    0  highest z of a label among the kept pairs over that among their random twin, mean of the labels
    1  highest z of a label minus its fifth highest, over the highest, among the kept pairs, mean of the labels
    2  number of (feature, label) pairs with z above `line` among the kept pairs over that among their random twin; nan
       where the twin has none

    `seed` gives the order of the pairs and the twin; `options` go to `z_filter`, which needs `n_classes` among them.
    Source: the z-filter paper, Table 12 and appendix D. *Departures*: it compares with all pairs, whose z are higher
    for being more; the twin is ours.
    """
    labels = np.asarray(labels)
    kept = z_filter(table.matrix, labels, names=table.names, seed=seed, **options)
    ranked = []
    for rows in (kept.keep, kept.random_twin(labels, seed).keep):
        z = z_statistics(table.matrix[np.flatnonzero(rows)], labels[rows], options["n_classes"]).z
        ranked.append(-np.sort(-np.nan_to_num(z, nan=-np.inf), axis=0))
    after, twin = ranked
    above, of_twin = ((each > line).sum() for each in ranked)
    share = above / of_twin if of_twin else np.nan
    return np.array([(after[0] / twin[0]).mean(), (1 - after[4] / after[0]).mean(), share])


def composition(corpus: Corpus, sets: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Who is in each set of pairs: n, the share of each label, mean words of the hypothesis, number of premises."""
    words = np.char.count(corpus.hypothesis.astype(str), " ") + 1
    rows = []
    for name, kept in sets.items():
        shares = np.bincount(corpus.labels[kept], minlength=len(corpus.classes)) / kept.sum()
        facts = {f"share of {label}": share for label, share in zip(corpus.classes, shares, strict=True)}
        premises = len(set(corpus.premise[kept]))
        mean = {"words of the hypothesis": words[kept].mean(), "premises": premises}
        rows.append({"pairs": name, "n": int(kept.sum()), **facts, **mean})
    return pd.DataFrame(rows)


def with_all_pairs(accuracy: pd.DataFrame, baselines: pd.DataFrame) -> pd.DataFrame:
    """Accuracies after training on parts of a corpus, and before them those of a model of all pairs, as "all pairs".

    accuracy   as `suite_table` makes it, with a column condition; baselines: chapter 02's, of which the pair encoder's
    rows are taken, for the same test sets and seeds. Both by the rule argmax.
    """
    whole = baselines[baselines["model"] == "encoder, pair"].assign(condition="all pairs")
    same = whole["title"].isin(accuracy["title"]) & whole["seed"].isin(accuracy["seed"])
    both = pd.concat([whole[same], accuracy], ignore_index=True)
    return both[both["rule"] == "argmax"].dropna(axis="columns")
