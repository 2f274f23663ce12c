"""What a person takes away: suspected label errors as a ranked list, cleanlab's arrays, what a filter left out.

These hold the corpus's own text, so they are written to `paths.EXPORTS`, which git ignores, and never into a table.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import softmax

from nli_lib.corpora.corpus import COLUMNS, Corpus
from nli_lib.csv_files import write_csv
from nli_lib.measure.consensus import AGREE, THRESHOLD, logit_gap, mismatch, prunable, self_confidence, suspects
from nli_lib.select.selection import Selection
from nli_lib.store import atomic

PLACED = ("rank", "votes")  # columns that a list may get besides


def review_list(
    corpus: Corpus, logits: ArrayLike, fold: ArrayLike, *, threshold: float = THRESHOLD, votes: ArrayLike | None = None
) -> pd.DataFrame:
    """Every example whose label the model contradicts, the most contradicted first: the order to review them in.

    logits (N, C) and fold (N,) as `learn.cross.cross_score` makes and takes them. Columns: rank (from 1), uid, premise,
    hypothesis, gold, predicted (names), kind, gap (logits, see `consensus.logit_gap`), p_gold, fold, and pruned:
    whether the consensus cleaning paper's rule, with this threshold, would take the example out; it speaks of
    entailment and neutral, and takes none where one of them is no class. Where several seeds have scored the corpus,
    votes (N,) says how many of them prune the example. The columns that the corpus brought itself come last, as
    "votes (own)" where their name is taken.
    """
    found = {
        "predicted": np.array(corpus.classes, dtype=object)[np.argmax(logits, axis=1)],
        "kind": mismatch(logits, corpus.labels),
        "gap": logit_gap(logits, corpus.labels),
        "p_gold": self_confidence(logits, corpus.labels).round(4),
        "fold": np.asarray(fold),
        "pruned": suspects(logits, corpus.labels, threshold=threshold) & prunable(corpus.classes),
    }
    found |= {} if votes is None else {"votes": np.asarray(votes)}
    table = _beside(corpus, found).sort_values("gap", ascending=False, kind="stable").round({"gap": 4})
    table = table[table["kind"] != AGREE].reset_index(drop=True)
    table.insert(0, "rank", np.arange(1, len(table) + 1))
    return table


def export_review(
    folder: Path, table: pd.DataFrame, corpus: Corpus, logits: ArrayLike, fold: ArrayLike
) -> dict[str, Path]:
    """Write suspects.csv and suspects.jsonl (`review_list`) and cleanlab.npz; the paths by name.

    cleanlab.npz holds labels (N,), pred_probs (N, C), out of sample, columns in the order of `classes`; fold (N,),
    which model scored which row; uid (N,). It loads with `numpy.load` without pickle:

        arrays = numpy.load("cleanlab.npz"); find_label_issues(arrays["labels"], arrays["pred_probs"])
    """
    paths = {name: Path(folder) / name for name in ("suspects.csv", "suspects.jsonl", "cleanlab.npz")}
    write_csv(paths["suspects.csv"], table)
    write_jsonl(paths["suspects.jsonl"], table)
    with atomic(paths["cleanlab.npz"]) as draft:
        np.savez_compressed(
            draft,
            labels=corpus.labels,
            pred_probs=softmax(np.asarray(logits, dtype=np.float64), axis=1),
            fold=np.asarray(fold),
            uid=corpus.uid.astype(np.str_),
            classes=np.array(corpus.classes, dtype=np.str_),
        )
    return paths


def export_filtered(path: Path, corpus: Corpus, selection: Selection) -> Path:
    """Write every example of a corpus with what a selection step said of it, in the corpus's order; the path.

    A csv (`write_csv`) of uid, premise, hypothesis, gold (a name), kept (True or False), reason ("kept", or why not)
    and the corpus's own columns.
    """
    return write_csv(Path(path), _beside(corpus, {"kept": selection.keep, "reason": selection.reason}))


def write_jsonl(path: Path, table: pd.DataFrame) -> Path:
    """Write a table as one JSON object a line, numbers with up to 15 decimals, whole or not at all; the path."""
    with atomic(path) as draft:
        table.to_json(draft, orient="records", lines=True, force_ascii=False, double_precision=15, date_format="iso")
    return path


def _beside(corpus: Corpus, found: dict[str, np.ndarray]) -> pd.DataFrame:
    """A corpus's uid, texts and gold label, then what was found, then the columns that the corpus brought itself."""
    table = corpus.table[["uid", "premise", "hypothesis"]]
    table = table.assign(gold=np.array(corpus.classes, dtype=object)[corpus.labels], **found)
    return table.join(own_columns(corpus, {*table, *PLACED}))


def own_columns(corpus: Corpus, taken: Iterable[str]) -> pd.DataFrame:
    """The columns that a corpus brought itself, as "votes (own)" where their name is one of those that are taken."""
    own, taken, made = corpus.table.drop(columns=list(COLUMNS)), set(taken), {}
    for name in own:
        new = name
        while new in taken:
            new += " (own)"
        taken.add(new)
        made[new] = own[name].map(lambda value: repr(value) if isinstance(value, bytes) else value)
    return pd.DataFrame(made, index=corpus.table.index)
