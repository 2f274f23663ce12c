"""What a revision changed in a text: its length in words, and the pronouns in it.

Source: WANLI, appendix D.3 (W22), which reports for premises and hypotheses that were revised how many changed the word
count by -1 to +2, and how many the set of pronouns. *Departures*: the paper says neither what a word nor what a pronoun
is. Ours: words are parted by blanks, or as `measure.tokens.spaced` parts them; pronouns are `PRONOUNS`, in capitals or
not (so that "US" is one), in contractions too ("she's").
"""

import re
from collections.abc import Sequence

import numpy as np

from nli_lib.measure.tokens import spaced

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
