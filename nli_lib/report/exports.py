"""What a person takes away: suspected label errors as a ranked list, cleanlab's arrays, what a filter turned away.

These hold the corpus's own text, so they are written to `spec.EXPORTS`, which git ignores, and never into a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import softmax

from nli_lib.corpora.corpus import Corpus
from nli_lib.measure.consensus import AGREE, PRUNED, THRESHOLD, logit_gap, mismatch, suspects
from nli_lib.measure.label_issues import self_confidence
from nli_lib.select.selection import Selection
from nli_lib.store import atomic


def review_list(
    corpus: Corpus,
    logits: ArrayLike,
    fold: ArrayLike,
    *,
    kinds: Sequence[str] = (PRUNED,),
    threshold: float = THRESHOLD,
    votes: ArrayLike | None = None,
) -> pd.DataFrame:
    """Every example whose label the model contradicts, the most contradicted first: the order to review them in.

    logits (N, C) and fold (N,) as `learn.cross.cross_score` makes and takes them. Columns: rank (from 1), uid, premise,
    hypothesis, gold, predicted (names), kind, gap (logits, see `consensus.logit_gap`), p_gold, fold, and pruned:
    whether the consensus cleaning paper's rule, with these kinds and this threshold, would take the example out. Where
    several seeds have scored the corpus, votes (N,) says how many of them prune the example, and is the last column.
    """
    logits, classes = np.asarray(logits, dtype=np.float64), np.array(corpus.classes, dtype=object)
    gap = logit_gap(logits, corpus.labels)
    table = pd.DataFrame(
        {
            "uid": corpus.uid,
            "premise": corpus.premise,
            "hypothesis": corpus.hypothesis,
            "gold": classes[corpus.labels],
            "predicted": classes[logits.argmax(axis=1)],
            "kind": mismatch(logits, corpus.labels),
            "gap": gap.round(4),
            "p_gold": self_confidence(logits, corpus.labels).round(4),
            "fold": np.asarray(fold),
            "pruned": suspects(logits, corpus.labels, kinds=kinds, threshold=threshold),
        }
    )
    if votes is not None:
        table["votes"] = np.asarray(votes)
    order = np.argsort(-gap, kind="stable")
    table = table.iloc[order[(table["kind"] != AGREE).to_numpy()[order]]].reset_index(drop=True)
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
    with atomic(paths["suspects.csv"]) as draft:
        table.to_csv(draft, index=False, lineterminator="\n")
    with atomic(paths["suspects.jsonl"]) as draft:
        table.to_json(draft, orient="records", lines=True, force_ascii=False)
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

    A csv of uid, premise, hypothesis, gold (a name), kept (True or False) and reason ("kept", or why not).
    """
    if len(selection) != len(corpus):
        raise ValueError(f"a selection among {len(selection)} examples does not belong to a corpus of {len(corpus)}")
    columns = {"uid": corpus.uid, "premise": corpus.premise, "hypothesis": corpus.hypothesis}
    columns["gold"] = np.array(corpus.classes, dtype=object)[corpus.labels]
    table = pd.DataFrame({**columns, "kept": selection.keep, "reason": selection.reason})
    with atomic(Path(path)) as draft:
        table.to_csv(draft, index=False, lineterminator="\n")
    return Path(path)
