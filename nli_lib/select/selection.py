"""Selections of examples, with a reason for each; the filters and samples of the papers.

A `Selection` refers to its corpus by position: ``corpus[selection.keep]`` is the kept part, ``corpus[~selection.keep]``
the dropped part, and ``selection.reason[~selection.keep]`` says why. Every selection has a control: ``random_twin``, of
the same size and label balance.

`training_subsets` makes the selections by difficulty of Tables 5 and 6 of the difficulty paper. WANLI has two
selections by ambiguity: exemplars for generation (`most_variable`) and the generated pairs that are kept
(`most_ambiguous`). DISCO's teacher keeps the counterfactuals that raise a model's probability of the requested label
(`teacher_filter`). `folds` are drawn so that every example can be scored by a model that was not trained on it. The
other functions draw parts of corpora: at random, by label, swapped in for the same number of other pairs, or originals
with their revisions.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax
from sklearn.model_selection import GroupKFold, KFold

from nli_lib.corpora.corpus import SIDES, Corpus, CorpusError, concat
from nli_lib.corpora.suites import Counterfactuals
from nli_lib.measure.dynamics import LEVELS

KEPT = "kept"


@dataclass(frozen=True, eq=False)
class Selection:
    """keep (N,) bool, True for a kept example; reason (N,) str, the reason why it was kept or dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.select.selection import Selection
    >>> short = Selection.where(np.array([True, True, False, False]), kept="short", dropped="long")
    >>> short.size, short.reason.tolist()
    (2, ['short', 'short', 'long', 'long'])
    >>> short.random_twin(np.array([0, 1, 0, 1]), seed=0).keep
    array([False, False,  True,  True])
    """

    keep: np.ndarray
    reason: np.ndarray

    def __post_init__(self) -> None:
        if self.keep.dtype != bool or self.keep.ndim != 1:
            raise ValueError(f"keep must be a boolean array (N,), not {self.keep.dtype} of shape {self.keep.shape}")
        if self.reason.shape != self.keep.shape:
            raise ValueError(
                f"reasons have shape {self.reason.shape} for {len(self)} examples: give one reason an example"
            )

    def __len__(self) -> int:
        return len(self.keep)

    @property
    def size(self) -> int:
        """Number of examples kept."""
        return int(self.keep.sum())

    @property
    def digest(self) -> str:
        """Eight hex digits that identify this choice of examples in the name of a run."""
        return hashlib.sha256(np.packbits(self.keep).tobytes() + len(self).to_bytes(8, "little")).hexdigest()[:8]

    @classmethod
    def all(cls, n: int) -> "Selection":
        """Keep all ``n`` examples: the baseline of every comparison."""
        return cls(np.ones(n, dtype=bool), np.full(n, KEPT, dtype=object))

    @classmethod
    def where(cls, keep: np.ndarray, dropped: str, kept: str = KEPT) -> "Selection":
        """Keep the examples where ``keep`` (N,) is True, with one reason for kept and one for dropped ones."""
        return cls(keep, np.where(keep, kept, dropped).astype(object))

    def overlap(self, other: "Selection") -> float:
        """Jaccard index of the kept examples, 0 to 1: the share that both keep of those that either keeps."""
        return float((self.keep & other.keep).sum() / (self.keep | other.keep).sum())

    def random_twin(self, labels: np.ndarray, seed: int = 0) -> "Selection":
        """The control: a uniform random selection that keeps the same number of examples of every label.

        labels (N,). Depends only on the labels, the number kept of each, and the seed.
        """
        labels = np.asarray(labels)
        if labels.shape != self.keep.shape:
            raise ValueError(f"labels have shape {labels.shape}, the selection {self.keep.shape}")
        generator = np.random.default_rng(seed)
        keep = np.zeros(len(self), dtype=bool)
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            wanted = int(self.keep[members].sum())
            keep[generator.choice(members, size=wanted, replace=False)] = True
        return Selection.where(keep, dropped="not drawn", kept="drawn")


def top(scores: np.ndarray, *, fraction: float, name: str = "top") -> "Selection":
    """Keep the ``fraction`` (0-1) of the examples with the highest scores (N,); of equal scores, the earlier positions.

    ``name`` becomes the reason. *Departures*: keeps int(fraction * N) examples, as cartography's log says; its code
    takes one more.

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.select.selection import top
    >>> top(np.array([0.1, 0.5, 0.3]), fraction=1 / 3).keep
    array([False,  True, False])
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction is {fraction}, it must lie between 0 and 1")
    if np.isnan(scores).any():
        raise ValueError(f"scores are NaN, the first at position {np.isnan(scores).argmax()}: they have no rank")
    keep = np.zeros(len(scores), dtype=bool)
    keep[np.argsort(-np.asarray(scores, dtype=float), kind="stable")[: int(fraction * len(scores))]] = True
    return Selection.where(keep, dropped=f"not in the {name}", kept=name)


# ---------------------------------------------------------------- subsets


QUANTILES = (0.33, 0.66)
PARTS = ("easy", "easy+ambiguous", "ambiguous", "ambiguous+hard", "easy+hard", "hard")  # unions of levels


def training_subsets(level: ArrayLike, variability: ArrayLike, margin: ArrayLike) -> dict[str, Selection]:
    """The nine training sets by name, in the order of the paper's tables; "all" is the last.

    Parameters
    ----------
    level
        (N,) 0 easy, 1 ambiguous, 2 hard (`measure.dynamics.levels`)
    variability
        (N,) of the model of the pair: "data maps" keeps values above its .66 quantile
    margin
        (N,) of the model of the pair: "aum" keeps values strictly between its .33 and .66 quantiles

    Notes
    -----
    *Departures*: the paper's text calls data maps "the top 66% percentile"; its code and tables keep a third.

    References
    ----------
    The difficulty paper section 4.2 and its code (H11).
    """
    level, variability, margin = (np.asarray(values) for values in (level, variability, margin))
    low, high = np.quantile(margin, QUANTILES)
    keeps = {
        "data maps": variability > np.quantile(variability, QUANTILES[1]),
        "aum": (margin > low) & (margin < high),
        **{name: np.isin(level, [LEVELS.index(each) for each in name.split("+")]) for name in PARTS},
    }
    subsets = {name: Selection.where(keep, dropped=f"not in {name}") for name, keep in keeps.items()}
    return {**subsets, "all": Selection.all(len(level))}


# ---------------------------------------------------------------- ambiguous


EXCLUDED, BELOW = "excluded genre", "not in the top quarter of its label"


def most_variable(
    variability: ArrayLike, labels: ArrayLike, *, excluded: ArrayLike | None = None, quantile: float = 0.75
) -> Selection:
    """Keep the exemplars: the pairs of each label with a variability above its quantile, .75 for the top quarter.

    variability (N,), of the gold label's probability; labels (N,); excluded (N,) bool, pairs to leave out first, such
    as those of a genre

    Raises
    ------
    ValueError
        If there is NaN among the pairs that are not excluded, because no quantile is known then.

    Notes
    -----
    *Departures*: none; the paper's count of 98,176 includes all genres.

    References
    ----------
    WANLI, section 2.1, and its `pipeline.py` (W3): telephone is removed first, the quantile is numpy's (linear
    interpolation), and a pair must lie strictly above it.

    Examples
    --------
    >>> from nli_lib.select.selection import most_variable
    >>> most_variable([0.1, 0.2, 0.3, 0.4], labels=[0, 0, 0, 0]).keep
    array([False, False, False,  True])
    """
    variability, labels = np.asarray(variability, dtype=float), np.asarray(labels)
    out = np.zeros(len(labels), dtype=bool) if excluded is None else np.asarray(excluded, dtype=bool)
    if variability.shape != labels.shape or np.isnan(variability[~out]).any():
        raise ValueError(f"variability of shape {variability.shape} for {len(labels)} labels: give each pair one")
    keep = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels[~out]):
        members = (labels == label) & ~out
        keep |= members & (variability > np.quantile(variability[members], quantile))
    return Selection(keep, np.where(keep, "kept", np.where(out, EXCLUDED, BELOW)).astype(object))


def most_ambiguous(scores: ArrayLike, labels: ArrayLike, *, fraction: float = 0.5, classes: int = 3) -> Selection:
    """Keep the same number of pairs of each label, those with the highest scores: int(fraction N) // classes each.

    scores (N,), in WANLI the estimated max variability (`measure.dynamics.max_variability`); labels (N,), the requested
    ones. Of equal scores the earlier pair is kept. A label with fewer pairs keeps all of them.

    Notes
    -----
    *Departures*: the code joins scores by position, so that a pair without a score shifts all later ones; here each
    pair has its score, and NaN is an error.

    References
    ----------
    WANLI, section 2.3, and its `keep_ambiguous.py` (W10).

    Examples
    --------
    >>> from nli_lib.select.selection import most_ambiguous
    >>> most_ambiguous([0.1, 0.2, 0.3, 0.4], labels=[0, 0, 1, 1], classes=2).keep
    array([False,  True, False,  True])
    """
    scores, labels = np.asarray(scores, dtype=float), np.asarray(labels)
    if scores.shape != labels.shape or np.isnan(scores).any():
        raise ValueError(f"scores of shape {scores.shape} for {len(labels)} labels: give each pair one")
    rank = pd.Series(scores).groupby(labels).rank(method="first", ascending=False).to_numpy()  # from 1
    return Selection.where(rank <= int(fraction * len(labels)) // classes, "less ambiguous than others of its label")


# ---------------------------------------------------------------- teacher


THRESHOLD = 0.3  # default of the code that the paper used; the cut is half of it: the smallest released score is .15003
SMALL = "the probability of the label moves too little"


def probability_shift(before: ArrayLike, after: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """Gain in probability of the new label by the perturbation, -1 to 1; high = the perturbation worked.

    Parameters
    ----------
    before, after
        logits (N, C) of the original and of the new pair
    labels
        (N,) the new label -> (N,)

    Notes
    -----
    Formula: p(l' | P', H) - p(l' | P, H). Source: DISCO, equation 1 (D7).

    Examples
    --------
    >>> import numpy as np
    >>> from nli_lib.select.selection import probability_shift
    >>> before, after = np.log([[0.8, 0.1, 0.1]]), np.log([[0.2, 0.7, 0.1]])
    >>> probability_shift(before, after, labels=[1]).round(2)
    array([0.6])
    """
    before, after, labels = np.asarray(before), np.asarray(after), np.asarray(labels, dtype=np.int64)
    if before.shape != after.shape or before.ndim != 2 or labels.shape != before.shape[:1]:
        raise ValueError(f"logits {before.shape} and {after.shape} with labels {labels.shape}: give (N, C) twice, (N,)")
    moved = softmax(after.astype(np.float64), axis=1) - softmax(before.astype(np.float64), axis=1)
    return moved[np.arange(len(labels)), labels]


def vote(shifts: ArrayLike) -> NDArray[np.float64]:
    """Combine the shifts of T teachers, (T, N) -> (N,): their mean, weighted by their own softmax.

    The teacher with the largest shift counts most, so the result lies between the mean and the maximum; the vote of one
    teacher is its shift. Source: DISCO's code (`ensemble`), which the paper does not describe (D7).

    Examples
    --------
    >>> from nli_lib.select.selection import vote
    >>> vote([[0.6], [0.2]]).round(2)  # two teachers, one pair
    array([0.44])
    """
    shifts = np.atleast_2d(np.asarray(shifts, dtype=np.float64))
    return (softmax(shifts, axis=0) * shifts).sum(axis=0)


def teacher_filter(shifts: ArrayLike, *, threshold: float = THRESHOLD) -> Selection:
    """Keep the pairs with a shift (N,) above half the threshold.

    The teacher need not predict the new label, nor must the old one become less probable.

    Parameters
    ----------
    threshold
        `THRESHOLD`, .3, cuts at .15; the default of the code of 2023, .5, cuts at .25

    References
    ----------
    DISCO, section 3.2, which gives no number, and `run.py` (D7).

    Examples
    --------
    >>> from nli_lib.select.selection import teacher_filter
    >>> teacher_filter([0.1, 0.2], threshold=0.3).keep
    array([False,  True])
    """
    shifts = np.asarray(shifts, dtype=np.float64)
    if np.isnan(shifts).any():
        raise ValueError(f"the shift at position {int(np.isnan(shifts).argmax())} is NaN: it cannot be compared")
    return Selection.where(shifts > threshold / 2, dropped=SMALL)


# ---------------------------------------------------------------- folds


def folds(labels: ArrayLike, *, count: int = 10, groups: ArrayLike | None = None, seed: int = 0) -> NDArray[np.int64]:
    """Draw the fold of each example, (N,), 0 to count - 1, with the seed; fold sizes differ as little as possible.

    labels (N,). With ``groups`` (N,), such as premises, no group is split: a model never scores a hypothesis of a
    premise that it was trained on. Then the numbers of groups differ as little as possible, and a large group makes a
    large fold. Without groups, examples of one premise may be in different folds, so that their labels may be
    remembered rather than predicted.

    Raises
    ------
    ValueError
        If there are fewer examples (or groups) than folds, or if a label in some fold has no examples outside it,
        because a model cannot predict a label that it never saw.

    Notes
    -----
    *Departures*: the paper states neither seed nor shuffling nor grouping; both ways are offered.

    References
    ----------
    The consensus cleaning paper section 2 (E5).

    Examples
    --------
    >>> from nli_lib.select.selection import folds
    >>> premises = ["A dog."] * 3 + ["A cat."] * 3
    >>> folds([0, 1, 2] * 2, count=2, groups=premises)
    array([0, 0, 0, 1, 1, 1])
    """
    gold = np.asarray(labels)
    if len(gold) and (gold == gold[0]).all():
        raise ValueError(f"all {len(gold)} examples have the label {gold[0]}: there is nothing to learn")
    if groups is not None:  # as numbers, in sorted order: scikit-learn takes minutes to compare texts one by one
        groups = np.unique(np.asarray(groups), return_inverse=True)[1]
    what, have = ("examples", len(gold)) if groups is None else ("groups", int(groups.max(initial=-1)) + 1)
    if not 2 <= count <= have:
        raise ValueError(f"{count} folds cannot be made of {have} {what}: choose between 2 folds and as many as {what}")
    splitter = (KFold if groups is None else GroupKFold)(count, shuffle=True, random_state=seed)
    fold = np.empty(len(gold), dtype=np.int64)
    for at, (training, held_out) in enumerate(splitter.split(gold, groups=groups)):
        fold[held_out] = at
        if missing := sorted(set(gold[held_out].tolist()) - set(gold[training].tolist())):
            raise ValueError(
                f"label {missing[0]} occurs in fold {at} alone, so the model that scores it never sees one: "
                "ask for fewer folds, or leave that label out"
            )
    return fold


def sample_of_groups(labels: ArrayLike, groups: ArrayLike, size: int) -> NDArray[np.bool_]:
    """Draw a random sample of whole groups with about ``size`` of the N examples, (N,) bool; all of them if N is less.

    It counts groups, not examples: if their sizes differ widely, "about" can be far off.
    """
    parts = round(len(labels) / size) if size else 0
    return np.ones(len(labels), dtype=bool) if parts < 2 else folds(labels, groups=groups, count=parts) == 0


def linked(*keys: ArrayLike) -> NDArray[np.int64]:
    """Number the examples, (N,), so that two have the same number if they share a key or are linked through others.

    Parameters
    ----------
    keys
        each (N,), such as premises and hypotheses; a missing value (None, NaN) links nothing
    """
    at = pd.Series(np.arange(len(keys[0])))
    firsts = [at.groupby(np.asarray(key)).transform("min").fillna(at) for key in keys]  # the first with the same key
    ends = np.tile(at, len(firsts)), np.concatenate(firsts).astype(np.int64)
    graph = coo_array((np.ones(len(ends[0]), dtype=bool), ends), shape=(len(at), len(at)))
    return connected_components(graph, directed=False)[1].astype(np.int64)


# ---------------------------------------------------------------- mix


TWIN = "random twin"  # other pairs of the same corpus


def swap_in(corpus: Corpus, other: Corpus, *, seed: int = 0) -> Corpus:
    """Replace random pairs of ``corpus`` by the pairs of ``other``: the size stays the same.

    The remaining pairs come first, in their order. Equal seeds drop the same pairs of a corpus for every `other` of one
    size. Raises `CorpusError` if ``other`` is larger or has other classes.

    Notes
    -----
    *Departures*: none; the paper does not mention a seed.

    References
    ----------
    WANLI, section 3.2, random replacement, the diamond of its Table 3 (W15).
    """
    stays = len(corpus) - len(other)
    if stays < 0:
        raise CorpusError(
            f"{len(other):,} pairs of {other.name} cannot replace pairs of {corpus.name}, which has {len(corpus):,}: "
            "take a part of them."
        )
    return concat([sample(corpus, stays, seed=seed), other], name=f"{corpus.name} ◇ {other.name}")


def sample(corpus: Corpus, size: int, *, seed: int = 0) -> Corpus:
    """Draw ``size`` random pairs without replacement, in the corpus's order. With equal seeds a smaller sample is part
    of a larger one. Raises `CorpusError` if the corpus has fewer pairs."""
    return corpus[drawn(corpus, size, seed=seed)]


def drawn(corpus: Corpus, size: int, *, seed: int = 0) -> NDArray[np.bool_]:
    """Mask of the pairs that `sample` draws, (N,) bool."""
    if not 0 <= size <= len(corpus):
        raise CorpusError(f"{size:,} pairs of {corpus.name}/{corpus.split} are asked for, and it has {len(corpus):,}.")
    keep = np.zeros(len(corpus), dtype=bool)
    keep[np.random.default_rng(seed).permutation(len(corpus))[:size]] = True
    return keep


# ---------------------------------------------------------------- augment


def augmentation(pairs: Counterfactuals, size: int, *, seed: int = 0) -> Corpus:
    """Draw random originals, each followed by its revisions, ``size`` rows in all; the last one may lose some
    revisions."""
    used = np.unique(pairs.origin)
    turn = np.random.default_rng(seed).permutation(len(used))
    family = np.empty(len(pairs.original), np.int64)
    family[used[turn]] = np.arange(len(used))
    # an original comes first in its family, its revisions follow in their order
    owner = np.concatenate([family[used], family[pairs.origin]])
    order = np.argsort(owner, kind="stable")[:size]
    if len(order) < size:
        raise CorpusError(f"{pairs.revised.name}: {len(owner):,} originals and revisions, {size:,} are asked for")
    return concat([pairs.original[used], pairs.revised], name=pairs.revised.name)[order]


def of_labels(corpus: Corpus, counts: NDArray[np.int64], *, seed: int = 0) -> Corpus:
    """Draw the given number of random pairs of each label, (C,), or all if there are fewer, in the corpus's order."""
    order, keep = np.random.default_rng(seed).permutation(len(corpus)), np.zeros(len(corpus), dtype=bool)
    for label, count in enumerate(counts):
        keep[order[corpus.labels[order] == label][:count]] = True
    return corpus[keep]


def alike(corpus: Corpus, part: Corpus, seed: int) -> Corpus:
    """The same number of random pairs of each label as in ``part``; if a label has too few, pairs of other labels fill
    up."""
    found = of_labels(corpus, np.bincount(part.labels, minlength=len(corpus.classes)), seed=seed)
    if len(found) == len(part):
        return found
    others = corpus[~np.isin(corpus.uid, found.uid)]
    return concat([found, sample(others, len(part) - len(found), seed=seed)], name=corpus.name)


def without_copies(corpus: Corpus) -> Corpus:
    """Drop the pairs that repeat an earlier one in premise, hypothesis and label."""
    return corpus[~corpus.table.duplicated([*SIDES, "label"]).to_numpy()]
