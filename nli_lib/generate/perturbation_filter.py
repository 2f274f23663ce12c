"""DISCO's heuristic filter of perturbations: ten rules, of which the first that a perturbation meets is its reason.

The rules read the generation (what stands in the place of the span), the old premise, the new one and the hypothesis.
"""

import string
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from nli_lib.generate.perturbations import CODE_2022, CODE_2023, PAPER, PerturbationError
from nli_lib.measure.features import tokenize
from nli_lib.select.selection import KEPT, Selection

REASONS = (
    COPIES,
    HOLDS,
    IN_HYPOTHESIS,
    IN_PREMISE,
    LIKE_HYPOTHESIS,
    LIKE_PREMISE,
    FORBIDDEN,
    NEGATION,
    GAP,
    NEW_LIKE_HYPOTHESIS,
) = (
    "copies the hypothesis",
    "holds the hypothesis",
    "stands in the hypothesis, or is empty",
    "stands in the premise",
    "has the words of the hypothesis",
    "has the words of the premise",
    "speaks of the prompt",
    "negates",
    "has a gap",
    "the new premise has the words of the hypothesis",
)
UNPUNCTUATED = str.maketrans("", "", string.punctuation)
CONTRACTIONS = ("doesn", "isn", "wasn", "shouldn", "wouldn", "couldn", "won", "can", "don")
NEGATIONS = ("not", "no", "none")
OF_HYPOTHESIS, OF_PREMISE = 0.6, 0.35  # Jaccard indices above which a generation repeats them
PHRASES = ("[blank]", "story:", "conclusion:", "context:", "answer:")


class Rules(BaseModel):
    """What differs between the states of the code."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    forbidden: tuple[str, ...]
    negations: tuple[str, ...]
    overlap: float  # Jaccard index of the new premise and the hypothesis above which a pair is dropped


# The apostrophes: curly ones in 2022, which only a generation with curly ones can hold; straight ones in 2023, which no
# generation holds any more when its punctuation is gone.
_2022 = Rules(
    forbidden=("It is true", "It is false", "it is true", "it is false", *PHRASES),
    negations=(*NEGATIONS, *(f"{word}\u2019t" for word in CONTRACTIONS)),
    overlap=0.5,
)
_2023 = Rules(
    forbidden=("it is true", "it is false", *PHRASES, "statement:"),
    negations=(*NEGATIONS, *(f"{word}'t" for word in CONTRACTIONS)),
    overlap=0.8,
)
RULES = {PAPER: _2022, CODE_2022: _2022, CODE_2023: _2023}


def perturbation_filter(pairs: pd.DataFrame, *, name: str = CODE_2022) -> Selection:
    """Which perturbations are kept, and for each other one the first of `REASONS` that it meets, in their order.

    pairs  as `rules_met` reads them; name: one of `perturbations.VERSIONS`

    Source: DISCO, section 3.2, and `filter.py` (D6); the paper names the kinds of rules and gives no number.
    """
    meets = rules_met(pairs, name=name)
    reason = np.select(list(meets.values()), list(meets), default=KEPT).astype(object)
    return Selection(reason == KEPT, reason)


def rules_met(pairs: pd.DataFrame, *, name: str = CODE_2022) -> dict[str, NDArray[np.bool_]]:
    """For each of `REASONS`, which perturbations meet it, whether or not they meet an earlier one: masks (N,).

    pairs  columns generation, origin_premise, hypothesis, premise (the new one), intended_label (a name)

    With g, h, p and n the generation, the hypothesis and the two premises in lower case and without ASCII punctuation:

    1. g is h
    2. h is a part of g
    3. g is a part of h, as an empty g always is
    4. g is a part of p
    5. the Jaccard index of the words of g and h, each as often as it occurs, is above .6
    6. that of g and p is above .35
    7. the generation holds a forbidden phrase, upper and lower case distinct
    8. the intended label is contradiction, and g holds a negation as a part: "no" in "snow" is one, and "doesn't" none
    9. the generation holds an underscore
    10. the index of n and h is above .5 (2022) or .8 (2023)

    *Departures*: the code of 2023 has about twenty negations more; those among them that are written with a straight
    apostrophe can never be met, and the others are not at hand. It also throws its filter's answer away.
    """
    if name not in RULES:
        raise PerturbationError(f"there is no filter {name!r}: choose from {', '.join(map(repr, RULES))}")
    rules, raw = RULES[name], _text(pairs["generation"])
    g, h, p = (_text(_bare(pairs[side])) for side in ("generation", "hypothesis", "origin_premise"))
    texts = [pairs[side] for side in ("generation", "hypothesis", "origin_premise", "premise")]
    with_hypothesis, with_premise, whole = _jaccard(texts, ((0, 1), (0, 2), (3, 1)))
    contradicts = (pairs["intended_label"] == "contradiction").to_numpy()
    flags = (
        g == h,
        _part(h, g),
        _part(g, h),
        _part(g, p),
        with_hypothesis > OF_HYPOTHESIS,
        with_premise > OF_PREMISE,
        _any(rules.forbidden, raw),
        contradicts & _any(rules.negations, g),
        _any(("_",), raw),
        whole > rules.overlap,
    )
    return {reason: np.asarray(flag, dtype=bool) for reason, flag in zip(REASONS, flags, strict=True)}


def _jaccard(texts: list[pd.Series], pairs: tuple[tuple[int, int], ...]) -> list[NDArray[np.float64]]:
    """Jaccard index of the words of two texts, each as often as it occurs, (N,) for each two of several columns: 0 to
    1, high = alike. The words are counted once for all.

    Formula: sum over words of min(count in a, count in b) over sum of max. Two texts without words have 1. "a a b" and
    "a b" have 2/3. Words are those of `measure.features`. Source: textdistance, which the code calls with lists of
    words.
    """
    n = len(texts[0])
    counts = tokenize(np.concatenate([np.asarray(column, dtype=object) for column in texts])).counts()
    parts = [counts[at * n : (at + 1) * n] for at in range(len(texts))]
    sizes = [np.asarray(part.sum(axis=1)).ravel() for part in parts]
    found = []
    for one, other in pairs:
        shared = np.asarray(parts[one].minimum(parts[other]).sum(axis=1)).ravel()
        union = sizes[one] + sizes[other] - shared
        found.append(np.where(union > 0, shared / np.maximum(union, 1), 1.0))
    return found


def _bare(texts: pd.Series) -> pd.Series:
    return texts.str.lower().str.translate(UNPUNCTUATED)


def _text(texts: pd.Series) -> NDArray:
    return texts.to_numpy(dtype=np.dtypes.StringDType())


def _part(small: NDArray, large: NDArray) -> NDArray[np.bool_]:
    return np.strings.find(large, small) >= 0


def _any(phrases: Sequence[str], texts: NDArray) -> NDArray[np.bool_]:
    return np.logical_or.reduce([np.strings.find(texts, phrase) >= 0 for phrase in phrases])
