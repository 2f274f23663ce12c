"""Counterfactual pairs of the planted grammar: one edit of the premise, after which another label is the true one.

    originals, revised = counterfactuals(500, seed=0)

Both premises are of one pattern and filled with the same words, so that the grammar knows the label of each.
"""

from collections import Counter, defaultdict
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.corpora.corpus import COLUMNS, Corpus, CorpusError
from nli_lib.corpora.edits import edit, shared_ends
from nli_lib.corpora.labels import LABELS
from nli_lib.corpora.planted import (
    ATTEMPTS,
    EXTRA_SENTENCE,
    SPLITS,
    STRENGTHS,
    Column,
    _artifacts,
    _check,
    _fill,
    _sentence,
)
from nli_lib.corpora.planted.grammar import PATTERNS
from nli_lib.corpora.planted.lexicon import draw

LONGEST = 3  # words or slots of a pattern that an edit takes out or puts in, at most
SHARED = 2  # that the two premises have in common at least
MAKER = "grammar"
MADE = ("origin_uid", "origin_corpus", "maker", "intended_label")
MADE += ("true_label", "family", "broken", "span", "replacement")


class Edits(NamedTuple):
    """K premise forms that one edit can turn to each of the other two labels, and what it makes of them."""

    family: Column  # (K,)
    hypothesis: Column  # (K,)
    premise: Column  # (K,)
    label: NDArray[np.int64]  # (K,) the true one
    becomes: Column  # (K, C, M) forms of which each label is the true one; "" where there are fewer than M
    counts: NDArray[np.int64]  # (K, C) how many there are


def counterfactuals(
    n: int, seed: int = 0, *, split: str = "test", broken: float = 0.0, **strengths: float
) -> tuple[Corpus, Corpus]:
    """Original pairs (n,) and their revisions (2 n,), two for each original: one towards each of the other labels.

    split      as in `planted.make_split`; in "challenge" the artifacts point to a wrong label
    broken     share of the revisions that miss their label: the edit keeps the original's label or makes the third one
    strengths  of the artifacts in the hypothesis, as in `planted.make`. They follow the label of the original, and its
               revisions have the same hypothesis; there are neither flips nor ambiguous pairs

    The labels of the originals are balanced and true. Row 2 i and row 2 i + 1 of the revisions belong to original i.
    Columns of the revisions besides `COLUMNS` are `MADE`: label is the intended one, by number, and intended_label by
    name; true_label is what the grammar says of the revised pair, by number; broken says that the two differ.
    `span` is the run of words in the original's premise that `replacement` took the place of; neither is empty, and the
    rest of the two premises is equal. The span may occur twice in the premise. Equal arguments give equal corpora.

    Raises `CorpusError` for a share, split or strength that there is not.
    """
    if not 0 <= broken <= 1:
        raise CorpusError(f"planted: broken={broken} is not a share between 0 and 1")
    if named := {"flips", "ambiguous"} & strengths.keys():
        raise CorpusError(f"planted: counterfactuals have only true labels, there is no strength {min(named)!r}")
    _check(n, split, strengths)
    rng = np.random.default_rng([seed, SPLITS.index(split), 0xCF])
    label = rng.permutation(np.arange(n) % len(LABELS))
    against = (split == "challenge") * rng.integers(1, 3, size=n)
    plan = _artifacts((label + against) % len(LABELS), STRENGTHS | strengths, rng)
    intended = np.column_stack([(label + 1) % 3, (label + 2) % 3])  # (n, 2)
    missed = rng.random((n, 2)) < broken
    rows = _distinct(label, intended, missed, plan, rng)
    uid = (f"planted-edited-{split}-{seed}-" + pd.Series(np.arange(n)).astype(str).str.zfill(6)).to_numpy(dtype=object)
    source = f"planted grammar, counterfactuals, seed {seed}"
    table = pd.DataFrame(
        {
            "uid": uid,
            "premise": rows["premise"],
            "hypothesis": rows["hypothesis"],
            "label": label,
            "corpus": "planted",
            "split": split,
            "true_label": label,
            "family": rows["family"],
        }
    )
    originals = Corpus(table, "planted", split, source=source)
    names = np.array(LABELS, dtype=object)
    made = {
        "uid": np.repeat(uid, 2) + np.array(">", dtype=object) + names[intended.ravel()],
        "premise": rows["revised"].ravel(),
        "hypothesis": np.repeat(rows["hypothesis"], 2),
        "label": intended.ravel(),
        "corpus": "planted_counterfactuals",
        "split": split,
        "origin_uid": np.repeat(uid, 2),
        "origin_corpus": "planted",
        "maker": MAKER,
        "intended_label": names[intended.ravel()],
        "true_label": rows["true_label"].ravel(),
        "family": np.repeat(rows["family"], 2),
        "broken": missed.ravel(),
    }
    spans = [edit(a, b) for a, b in zip(np.repeat(rows["premise"], 2), made["premise"], strict=True)]
    made |= {"span": [span for span, _ in spans], "replacement": [new for _, new in spans]}
    revised = pd.DataFrame(made, columns=[*COLUMNS, *MADE])
    return originals, Corpus(revised, "planted_counterfactuals", split, source=source)


@cache
def edits() -> Edits:
    """All premise forms of the grammar that have counterfactuals for both other labels."""
    found = []
    for pattern in PATTERNS:
        sides = [(label, form) for label in range(len(LABELS)) for form in pattern.premises[label]]
        becomes = defaultdict(list)
        for (_, form), (label, other) in permutations(sides, 2):
            a, b = form.split(), other.split()
            start, end = shared_ends(a, b)
            if form != other and start + end >= SHARED and max(len(a), len(b)) - start - end <= LONGEST:
                becomes[form, label].append(other)
        for label, form in sides:
            options = [becomes[form, other] for other in range(len(LABELS))]
            if all(options[other] for other in range(len(LABELS)) if other != label):
                found.append((pattern.family, pattern.hypothesis, form, label, options))
    family, hypothesis, premise, label, options = zip(*found, strict=True)
    counts = np.array([[len(forms) for forms in each] for each in options])
    padded = [[forms + [""] * (counts.max() - len(forms)) for forms in each] for each in options]
    texts = (np.array(column, dtype=object) for column in (family, hypothesis, premise))
    return Edits(*texts, np.array(label), np.array(padded, dtype=object), counts)


def _distinct(
    label: NDArray, intended: NDArray, missed: NDArray, plan: dict[str, NDArray], rng: np.random.Generator
) -> dict[str, NDArray]:
    """Texts and true labels of the planned rows; what came out twice, or like its original, is drawn again."""
    n = len(label)
    rows = {name: np.full(n, "", dtype=object) for name in ("premise", "hypothesis", "family")}
    rows |= {"revised": np.full((n, 2), "", dtype=object), "true_label": np.zeros((n, 2), dtype=int)}
    todo = np.arange(n)
    for _ in range(ATTEMPTS):
        some = {name: values[todo] for name, values in plan.items()}
        for name, values in _draw(label[todo], intended[todo], missed[todo], some, rng).items():
            rows[name][todo] = values
        premises = np.column_stack([rows["premise"], rows["revised"]])  # (n, 3)
        alike = np.logical_or.reduce([premises[:, i] == premises[:, j] for i, j in ((0, 1), (0, 2), (1, 2))])
        repeated = pd.DataFrame({"premise": rows["premise"], "hypothesis": rows["hypothesis"]}).duplicated()
        todo = np.flatnonzero(alike | repeated.to_numpy())
        if not len(todo):
            return rows
    raise CorpusError(f"planted: {len(todo)} of n={n} pairs still repeat others after {ATTEMPTS} draws: ask for fewer")


def _draw(
    label: NDArray, intended: NDArray, missed: NDArray, plan: dict[str, NDArray], rng: np.random.Generator
) -> dict[str, NDArray]:
    """One draw of forms and words for each row."""
    n, known = len(label), edits()
    pick = np.empty(n, dtype=int)
    for side in range(len(LABELS)):  # all families alike, as in the planted corpus
        mine = np.flatnonzero(known.label == side)
        chances = 1 / pd.Series(known.family[mine]).map(Counter(known.family[mine])).to_numpy()
        pick[label == side] = rng.choice(mine, int((label == side).sum()), p=chances / chances.sum())
    # a missed label is by a coin the one that was there, where an edit can keep it, or the third one
    kept = (known.counts[pick, label] > 0)[:, None] & (rng.random((n, 2)) < 0.5)
    true = np.where(missed, np.where(kept, label[:, None], 3 - label[:, None] - intended), intended)
    size = known.counts[pick[:, None], true]
    which = rng.integers(size)
    again = (true[:, 0] == true[:, 1]) & (which[:, 0] == which[:, 1])
    which[:, 1] = np.where(again, (which[:, 1] + 1) % size[:, 1], which[:, 1])
    revised = known.becomes[pick[:, None], true, which]
    slots = draw(n, rng)
    said, otherwise = np.zeros(n, dtype=int), plan["other_words"].astype(int)
    extra = _sentence(_fill(np.full(n, "{d} {k} {t}", dtype=object), slots, said))
    where = np.where(rng.random(n) < EXTRA_SENTENCE, rng.integers(1, 3, size=n), 0)
    texts = []
    for forms in (known.premise[pick], *revised.T):
        text = _sentence(_fill(forms, slots, said))
        texts.append(np.where(where == 1, extra + " " + text, np.where(where == 2, text + " " + extra, text)))
    clause, word = _fill(known.hypothesis[pick], slots, otherwise), plan["artifact_word"]
    clause = np.where(plan["phrase"] != "", plan["phrase"] + " " + clause, clause)
    clause = np.where(plan["tail"] != "", clause + " " + plan["tail"], clause)
    dressed = np.where(plan["word_first"], word + ", " + clause, clause + ", " + word)
    return {
        "premise": texts[0],
        "hypothesis": _sentence(np.where(word == "", clause, dressed)),
        "family": known.family[pick],
        "revised": np.column_stack(texts[1:]),
        "true_label": true,
    }
