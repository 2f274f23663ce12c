"""WANLI's heuristic filters of generated pairs, in the order that its counts depend on, and how it cleans the rest."""

import string
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from nli_lib.measure.features import spaced, unspaced
from nli_lib.select.selection import KEPT, Selection

SHORTEST, UNSPACED_SHORTEST = 5, 2  # characters of a side, and where a character is a syllable or a word
SHORT, COPIED, PHRASE, EXAMPLE = "short", "hypothesis copies the premise", "speaks of the prompt", "copies an example"
# in the paper's released code; its text names the first three
PHRASES = ("pair of sentences", "previous examples", "same relationship as", "The speaker")
UNPUNCTUATED = str.maketrans("", "", string.punctuation)


def heuristic_filter(pairs: pd.DataFrame, examples: Sequence[Sequence[tuple[str, str]]]) -> Selection:
    """Which generated pairs are kept, and for each other one the first reason that it meets.

    pairs     premise and hypothesis, (N,)
    examples  for each pair the (premise, hypothesis) of the examples in its prompt

    1. `SHORT`: a side has fewer than five characters, blanks at its ends not counted; of texts written without blanks
       (`measure.features.unspaced`) fewer than two
    2. `COPIED`: both sides are equal in lower case, without ASCII punctuation (without any, where there are no blanks)
    3. `PHRASE`: one of `PHRASES` stands in premise and hypothesis written together, upper and lower case distinct
    4. `EXAMPLE`: both sides equal those of an example, blanks at the ends not counted

    Source: WANLI, section 2.3, and its `filtering/filter.py` (W8). "The speaker" is in the code alone.
    """
    premise, hypothesis = (pairs[side].str.strip() for side in ("premise", "hypothesis"))
    bare = [spaced(side.str.lower().str.translate(UNPUNCTUATED)) for side in (pairs["premise"], pairs["hypothesis"])]
    short = [side.str.len() < np.where(unspaced(side), UNSPACED_SHORTEST, SHORTEST) for side in (premise, hypothesis)]
    together = pairs["premise"] + pairs["hypothesis"]
    given = [{(a.strip(), b.strip()) for a, b in each} for each in examples]
    meets = {
        SHORT: short[0] | short[1],
        COPIED: pc.equal(*bare),
        PHRASE: np.logical_or.reduce([together.str.contains(phrase, regex=False) for phrase in PHRASES]),
        EXAMPLE: [pair in known for pair, known in zip(zip(premise, hypothesis, strict=True), given, strict=True)],
    }
    flags = [np.asarray(flag, dtype=bool) for flag in meets.values()]
    reason = np.select(flags, list(meets), default=KEPT).astype(object)
    return Selection(reason == KEPT, reason)


def clean(texts: pd.Series) -> pd.Series:
    """What WANLI's code does to the texts that are kept, (N,): what surrounds them and has no partner is taken away.

    Blanks at the ends; one pair of double quotes around the text, if it has exactly two; one pair of parentheses around
    it, if it has exactly two; then each of ``" ' ( )`` that occurs once and stands first, or else last.
    A text can be shorter than five characters afterwards. Source: WANLI's code (W8); the paper does not mention it.
    """
    texts = texts.str.strip()
    for first, last in ('""', "()"):
        single = texts.str.count("\\" + first) + (texts.str.count("\\" + last) if first != last else 0) == 2
        around = single & texts.str.startswith(first) & texts.str.endswith(last) & (texts.str.len() > 1)
        texts = texts.where(~around, texts.str[1:-1])
    for mark in "\"'()":
        once = texts.str.count("\\" + mark) == 1
        leads, ends = once & texts.str.startswith(mark), once & texts.str.endswith(mark)
        texts = texts.where(~leads, texts.str[1:]).where(leads | ~ends, texts.str[:-1])
    return texts
