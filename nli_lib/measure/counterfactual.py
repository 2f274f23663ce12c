"""Pairs of an original and its counterfactual: does the prediction follow the edit, is it right, what was edited.

The original is x, with the label l; its revision is x', made for the label l'. Everything is one value a pair of the
two, (K,), in the order of the revisions: an original with four revisions stands in four places.

What a revision changed in a text: its length in words, and the pronouns in it.

Notes
-----
*Departures*: the paper says neither what a word nor what a pronoun is. Ours: words are parted by blanks, or as
`measure.features.spaced` parts them; pronouns are `PRONOUNS`, in capitals or not (so that "US" is one), in contractions
too ("she's").

References
----------
WANLI, appendix D.3 (W22), which reports for premises and hypotheses that were revised how many changed the word count
by -1 to +2, and how many the set of pronouns.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from nli_lib.measure import check_labels, check_logits, check_pairs
from nli_lib.measure.features import Words, spaced, tokenize

TIE = -1  # the judgement of people whose votes have no majority
KINDS = ("nothing", "insertion", "deletion", "substitution", "rewriting")
NEGATIONS = frozenset(
    {"no", "not", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor", "without", "cannot"}
    | {f"{verb}nt" for verb in ("is", "are", "was", "were", "do", "does", "did", "has", "have", "had")}
    | {f"{verb}nt" for verb in ("ca", "wo", "would", "could", "should", "must", "need", "ai")}
)


def sensitivity(original: ArrayLike, revised: ArrayLike) -> NDArray[np.float64]:
    """How much probability moves from the old to the new *predicted* label, 0 to 1; 0 where the prediction stays.

    Notes
    -----
    Shapes: logits of the originals (K, C) and of their revisions (K, C) -> (K,).

    Formula: [p(l2|x') - p(l2|x) + p(l1|x) - p(l1|x')] / 2, l1 the most probable label of x and l2 that of x'; of
    equally probable labels the first. Gold labels play no part: a model that is always wrong can have 1. `outcomes`
    tells that apart.

    *Departures*: none. The mean over the pairs is what Table 5 prints, times 100.

    References
    ----------
    DISCO, section 5.2 (D14).
    """
    before, after = (softmax(check_logits(each, epochs=False), axis=1) for each in (original, revised))
    if before.shape != after.shape:
        raise ValueError(f"logits of shape {before.shape} and {after.shape}: give both texts of each pair a row")
    at, old, new = np.arange(len(before)), before.argmax(axis=1), after.argmax(axis=1)
    moved = (after[at, new] - before[at, new] + before[at, old] - after[at, old]) / 2
    return np.where(old == new, 0.0, moved)  # exactly, whatever the rounding


def outcomes(original: ArrayLike, revised: ArrayLike, labels: ArrayLike, new_labels: ArrayLike) -> NDArray[np.object_]:
    """What happened to each pair, in words (K,): "changed" or "unchanged" prediction, and how many of its two texts are
    classified right, as in "changed, 1 right".

    Notes
    -----
    Shapes: logits (K, C) twice, gold labels (K,) twice. The share of "2 right" is the pair accuracy, which is never
    above the accuracy on either text; K counts pairs, so that an original with four revisions counts four times. Where
    the gold labels differ an unchanged prediction has at most one right; the other two of "changed" are sensitive and
    wrong.

    References
    ----------
    DISCO, section 5.2 (D15).
    """
    right = _right(original, revised, labels, new_labels).sum(axis=0)
    moved = np.argmax(original, axis=1) != np.argmax(revised, axis=1)
    names = [[f"{word}, {count} right" for count in range(3)] for word in ("unchanged", "changed")]
    return np.array(names, dtype=object)[moved.astype(int), right]


def _right(original: ArrayLike, revised: ArrayLike, labels: ArrayLike, new_labels: ArrayLike) -> NDArray[np.bool_]:
    sides = [check_logits(each, epochs=False) for each in (original, revised)]
    if sides[0].shape != sides[1].shape:
        raise ValueError(f"logits of shape {sides[0].shape} and {sides[1].shape}: give both texts of each pair a row")
    gold = [check_labels(each, *sides[0].shape) for each in (labels, new_labels)]
    return np.stack([side.argmax(axis=1) == each for side, each in zip(sides, gold, strict=True)])  # (2, K)


# ---------------------------------------------------------------- flips


def flipped(judged: ArrayLike, target: ArrayLike) -> NDArray[np.bool_]:
    """Whether x' was judged to have the label it was made for, (K,); the mean is the label flip rate. A tie has not.

    judged, target (K,) label indices; judged by a majority of people or by a model's prediction.

    References
    ----------
    DISCO, section 4.2 (D8).
    """
    return np.asarray(judged) == np.asarray(target)


def softly_flipped(judged: ArrayLike, original: ArrayLike) -> NDArray[np.bool_]:
    """Whether x' was judged to have another label than x, (K,); the mean is the soft label flip rate, which is never
    below the label flip rate where every target differs from its original. A tie is no judgement, so it is no flip.

    References
    ----------
    DISCO, section 4.2 (D8).
    """
    judged = np.asarray(judged)
    return (judged != np.asarray(original)) & (judged != TIE)


# ---------------------------------------------------------------- edits


class Edits(NamedTuple):
    """What turned K texts into K others. Words are those of `measure.features`: lower case, no punctuation.

    Attributes
    ----------
    distance
        (K,) words to insert, delete or replace at the least (Levenshtein)
    removed
        (K,) words from the first to the last that differ, in the text before; inserted: in the text after
    start
        (K,) words before the first difference, as a share of the text before; 0 where nothing differs
    words
        (K,) words of the text before
    """

    distance: NDArray[np.int64]
    removed: NDArray[np.int64]
    inserted: NDArray[np.int64]
    start: NDArray[np.float64]
    words: NDArray[np.int64]

    @property
    def kind(self) -> NDArray[np.object_]:
        """One of `KINDS` (K,): a substitution puts as many words in as it takes out, a rewriting another number."""
        conditions = [
            (self.removed == 0) & (self.inserted == 0),
            self.removed == 0,
            self.inserted == 0,
            self.removed == self.inserted,
        ]
        return np.array(KINDS, dtype=object)[np.select(conditions, range(4), 4)]


def edits(before: Sequence[str], after: Sequence[str]) -> Edits:
    """How each text was changed into the one at the same place; `Edits`, (K,) each. Two empty texts: nothing."""
    count = check_pairs(before, after)
    old, new = tokenize([*before, *after]).split(count)
    width = max(old.lengths.max(initial=0), new.lengths.max(initial=0)) + 1
    first, second = _padded(old, width, -1), _padded(new, width, -2)
    shorter = np.minimum(old.lengths, new.lengths)
    start = _leading(first == second, shorter)
    # the same from the end, no further than what the beginning has left
    ending = _leading(_padded(old, width, -1, True) == _padded(new, width, -2, True), shorter - start)
    removed, inserted = old.lengths - start - ending, new.lengths - start - ending
    distance = _levenshtein(first, second, start, removed, inserted)
    differs = (removed > 0) | (inserted > 0)
    share = np.where(differs, start / np.maximum(old.lengths, 1), 0.0)
    return Edits(distance, removed, inserted, share, old.lengths)


def negations(texts: Sequence[str]) -> NDArray[np.int64]:
    """How many words of each text are a negation, (N,): `NEGATIONS`, contractions such as "isn't" among them."""
    table = tokenize(texts)
    known = np.array([word in NEGATIONS for word in table.vocabulary.to_pylist()], dtype=bool)
    found = known[table.ids] if len(table.ids) else np.zeros(0, dtype=bool)
    return np.bincount(table.rows, found, minlength=len(texts)).astype(np.int64)


def _padded(words: Words, width: int, fill: int, backwards: bool = False) -> NDArray[np.int64]:
    """The words of each text as a row (K, width), from the first on or from the last on backwards, then ``fill``."""
    lengths, at = words.lengths[:, None], np.arange(width)
    place = words.offsets[1:, None] - 1 - at if backwards else words.offsets[:-1, None] + at
    if not len(words.ids):
        return np.full(place.shape, fill)
    return np.where(at < lengths, words.ids[place.clip(0, len(words.ids) - 1)], fill)


def _leading(same: NDArray, most: NDArray) -> NDArray[np.int64]:
    """How many True each row of (K, L) begins with, at most ``most`` (K,)."""
    return np.minimum(np.logical_and.accumulate(same, axis=1).sum(axis=1), most)


def _levenshtein(a: NDArray, b: NDArray, start: NDArray, rows: NDArray, columns: NDArray) -> NDArray[np.int64]:
    """Levenshtein distance of the words a[start:start + rows] and b[start:start + columns] of each row, (K,).

    One loop over the words of a; insertions, each of which follows from the one before, are a running minimum.
    """
    height, width = rows.max(initial=0), columns.max(initial=0)
    at = np.arange(width + 1)
    last = np.broadcast_to(at, (len(a), width + 1)).copy()  # (K, width + 1) distances to the empty text
    result, each = columns.copy(), np.arange(len(a))
    other = np.take_along_axis(b, (start[:, None] + at[:width]).clip(max=b.shape[1] - 1), axis=1)
    for row in range(height):
        word = a[each, np.minimum(start + row, a.shape[1] - 1)]
        step = last + 1  # a deletion
        step[:, 1:] = np.minimum(step[:, 1:], last[:, :-1] + (word[:, None] != other))
        last = np.minimum.accumulate(step - at, axis=1) + at
        result = np.where(rows == row + 1, last[each, columns], result)
    return result


# ---------------------------------------------------------------- revisions


SLIGHT = (-1, 2)  # the change of the word count that the paper calls slight, ends included
# personal and possessive pronouns, the determiners among them, and reflexive ones; no demonstrative, relative,
# interrogative or indefinite pronoun
PRONOUNS = frozenset(
    {"i", "me", "my", "mine", "myself"}
    | {"we", "us", "our", "ours", "ourselves"}
    | {"you", "your", "yours", "yourself", "yourselves"}
    | {"he", "him", "his", "himself"}
    | {"she", "her", "hers", "herself"}
    | {"it", "its", "itself"}
    | {"they", "them", "their", "theirs", "themselves", "themself"}
    | {"one's", "oneself"}
)
_WORD = re.compile(r"one's|[a-z]+")


def word_change(before: Sequence[str], after: Sequence[str]) -> np.ndarray:
    """(N,) words of the revised text minus words of the text before it; 0 where only words were replaced."""
    both = zip(spaced(before).to_pylist(), spaced(after).to_pylist(), strict=True)
    return np.array([len(new.split()) - len(old.split()) for old, new in both], dtype=int)


def is_slight(change: np.ndarray) -> np.ndarray:
    """(N,) whether a change of the word count lies in `SLIGHT`."""
    return (SLIGHT[0] <= np.asarray(change)) & (np.asarray(change) <= SLIGHT[1])


def pronouns(text: str) -> frozenset[str]:
    """The pronouns in a text, in lower case; one that occurs twice counts once."""
    return PRONOUNS & set(_WORD.findall(text.lower().replace("’", "'")))


def pronouns_changed(before: Sequence[str], after: Sequence[str]) -> np.ndarray:
    """(N,) whether the set of pronouns in the text is another one after the revision."""
    changed = [pronouns(old) != pronouns(new) for old, new in zip(before, after, strict=True)]
    return np.array(changed, dtype=bool)
