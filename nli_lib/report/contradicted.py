"""What a report says of the labels that models contradict which did not train on them: numbers, and the first pairs.

part = contradicted(corpus, probabilities, how="Each label was scored by ...", page="fast/suspects.html")
"""

import numpy as np
from numpy.typing import ArrayLike

from nli_lib.corpora.corpus import Corpus
from nli_lib.corpora.labels import LABELS
from nli_lib.evaluate import skill
from nli_lib.measure.consensus import THRESHOLD, logit_gap, suspects
from nli_lib.report.audit_figures import Figure
from nli_lib.report.audit_words import ends, percent
from nli_lib.stats import clustered_share

FLOOR = 1e-12  # the least probability whose logarithm is taken
MOST = 30  # pairs that are shown


def contradicted(corpus: Corpus, probabilities: ArrayLike, *, how: str, page: str = "") -> dict:
    """The numbers of a list of suspects as plain values, each with interval and unit.

    probabilities  (N, C), of models that did not train on the pairs that they score; how: which models, in words
    page           where the list to work through lies, seen from the report

    Keys: how, page, learnt (whether the models are better than the majority label), said (a sentence about that), next
    (what to do), figures (accuracy, majority, contradicted; "predicted X, labelled Y" for each pair of labels; pruned,
    the rule of consensus cleaning, where there are all three classes), rows (the most contradicted pairs). What
    is drawn anew in the intervals are premises, not models.
    """
    logits, labels = np.log(np.maximum(probabilities, FLOOR)), corpus.labels
    predicted, counts = logits.argmax(axis=1), np.bincount(labels, minlength=len(corpus.classes))
    wrong, names = predicted != labels, corpus.classes
    flags = {"accuracy": ~wrong, "majority": labels == counts.argmax(), "contradicted": wrong}
    flags |= {
        f"predicted {one}, labelled {other}": (predicted == p) & (labels == g)
        for g, other in enumerate(names)
        for p, one in enumerate(names)
        if p != g
    }
    if names == LABELS:
        flags["pruned"] = suspects(logits, labels)
    figures = {name: Figure(clustered_share(each, corpus.premise)) for name, each in flags.items()}
    task = skill(int((~wrong).sum()), len(corpus), counts.max() / len(corpus))
    gap = logit_gap(logits, labels)
    first = np.argsort(-gap, kind="stable")[: min(MOST, int(wrong.sum()))]
    return {
        "how": how,
        "page": page,
        "learnt": task.learnt,
        "said": task.words,
        "next": _next(figures, learnt=task.learnt, n=int(wrong.sum())),
        "figures": {name: each.as_json() for name, each in figures.items()},
        "rows": [
            {
                "uid": str(corpus.uid[at]),
                "premise": str(corpus.premise[at]),
                "hypothesis": str(corpus.hypothesis[at]),
                "label": names[labels[at]],
                "predicted": names[predicted[at]],
                "gap": {"value": round(float(gap[at]), 4), "unit": "logits, difference"},
            }
            for at in first
        ],
    }


def _next(figures: dict[str, Figure], *, learnt: bool, n: int) -> str:
    share = figures["contradicted"].estimate
    if not learnt:
        return (
            "Do not act on contradicted labels yet: the models that scored them are no better than the most frequent "
            "label."
        )
    if not n:
        return "Leave the labels as they are: the models contradict none of them."
    said = (
        f"Read the labels that models contradict, the most contradicted first: {n:,} of {share.n:,} "
        f"({percent(share.value)} {ends(share)})"
    )
    if "pruned" in figures:
        pruned = figures["pruned"].estimate
        said += (
            f", of which consensus cleaning would prune {round(pruned.value * pruned.n):,} (neutral predicted for an "
            f"entailment, gap above {THRESHOLD:g})"
        )
    return said + "; a contradicted label is not a wrong one."
