"""Words of the planted corpus (words.yaml), and the drawing of one set of them per pair.

`draw(n, rng)` fills every slot that the sentence patterns name: {a} "the nurse", {a.kind} "a health worker",
{w} "carried", {w.b} "carry". Each slot comes twice: what is said, and the same thing in a synonym, where there is one.
Slots are drawn without regard to any label.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

WORDS = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))

Column = NDArray[np.object_]
Picks = NDArray[np.int64]
Entry = str | list[str]  # a word, or a word and its synonym
Forms = dict[str, tuple[str, str]]  # of one entry: "" or ".s", ".b" ... -> the word in that form, and its synonym


@dataclass
class Slots:
    """For each slot name, n phrases (2, n): what is said, and otherwise; they differ where the word has a synonym."""

    n: int
    rng: np.random.Generator
    phrases: dict[str, Column] = field(default_factory=dict)

    def put(self, name: str, entries: list[Forms], pick: Picks) -> None:
        """Fill slot `name` in all its forms with entries[pick]; a coin decides which of two synonyms is said."""
        swap = self.below(2)
        for form in entries[0]:
            words = np.array([entry[form] for entry in entries], dtype=object)  # (words, 2)
            self.phrases[name + form] = words[pick, [swap, 1 - swap]]

    def below(self, size: int) -> Picks:
        """(n,) integers below `size`."""
        return self.rng.integers(size, size=self.n)

    def distinct(self, size: int, k: int) -> Picks:
        """(k, n) integers below `size`, no two alike in a column."""
        return self.rng.random((self.n, size)).argsort(axis=1)[:, :k].T


def draw(n: int, rng: np.random.Generator) -> dict[str, Column]:
    """One set of words for each of n pairs, slot name -> (2, n); people, things and verbs of one pair differ."""
    slots = Slots(n, rng)
    # Nouns of different kinds, so that no one of them is covered by the kind of another.
    for names, kinds in (("abcd", WORDS["people"]), ("xy", WORDS["things"])):
        entries = [
            noun | {".kind": (_article(kind),) * 2} for kind, words in kinds.items() for noun in _entries(words, NOUN)
        ]
        first = slots.distinct(len(kinds), len(names)).T * 5
        for name, pick in zip(names, (first + rng.integers(5, size=first.shape)).T, strict=True):
            slots.put(name, entries, pick)
    for names, verbs in (("vu", WORDS["meet"]), ("w", WORDS["handle"]), ("ijk", WORDS["act"])):
        for name, pick in zip(names, slots.distinct(len(verbs), len(names)), strict=True):
            slots.put(name, _entries(verbs, VERB), pick)
    # {l} and {p} are two places on one side of the door, {m} is on the other; {l.side} says which.
    sides = ("indoors", "outdoors")
    entries = [place | {".side": (side, side)} for side in sides for place in _entries(WORDS[side])]
    each = len(WORDS["indoors"])
    door, (one, two), other = slots.below(2), slots.distinct(each, 2), slots.below(len(WORDS["outdoors"]))
    for name, side, pick in (("l", door, one), ("p", door, two), ("m", 1 - door, other)):
        slots.put(name, entries, side * each + pick)
    slots.put("t", _entries(WORDS["times"]), slots.below(len(WORDS["times"])))
    # {month} lies in {month.season}, {later} in {later.season}, another; {day} is a weekday, {free} is not.
    seasons = WORDS["seasons"]
    entries = [month | {".season": _two(each["season"])} for each in seasons for month in _entries(each["months"])]
    for name, season in zip(("month", "later"), slots.distinct(len(seasons), 2), strict=True):
        slots.put(name, entries, season * 3 + slots.below(3))
    for name, days in (("day", WORDS["weekdays"]), ("free", WORDS["weekend"])):
        slots.put(name, _entries(days), slots.below(len(days)))
    # {few} < {some} < {many}, and {both} = {few} + {some}.
    few = 2 + slots.below(7)
    some = few + 1 + slots.below(5)
    many = some + 1 + slots.below(4)
    for name, value in (("few", few), ("some", some), ("many", many), ("both", few + some)):
        slots.put(name, _entries(WORDS["numbers"]), value)
    # Two slots that exclude each other, either way round; an entry and its opposite stand side by side.
    grades, looks, states = ([side for pair in WORDS[name] for side in pair] for name in ("grades", "looks", "states"))
    compared = [{"": _two(base), ".er": _two(comparative)} for grade in grades for base, comparative in grade.items()]
    for names, entries in (("gh", compared), ("fo", _entries(looks)), ("sr", _entries(states))):
        pick, side = slots.below(len(entries) // 2), slots.below(2)
        for name, which in zip(names, (side, 1 - side), strict=True):
            slots.put(name, entries, 2 * pick + which)
    pick = slots.below(len(WORDS["transfers"]))
    for name, side in zip(("give", "take"), zip(*WORDS["transfers"], strict=True), strict=True):
        slots.put(name, _entries(side, VERB), pick)
    return slots.phrases


def _two(entry: Entry) -> tuple[str, str]:
    """The word and its synonym, or the word twice."""
    words = [entry] if isinstance(entry, str) else entry
    return words[0], words[-1]


def _article(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def _plural(noun: str) -> str:
    return WORDS["plurals"].get(noun, noun + "s")


def _past(verb: str) -> str:
    return WORDS["irregular"].get(verb, [verb.removesuffix("e") + "ed"])[0]


def _participle(verb: str) -> str:
    return WORDS["irregular"].get(verb, [verb.removesuffix("e") + "ed"])[-1]


# The forms of a word class, each with what makes it of the word.
NOUN = {"": "the {}".format, ".n": str, ".one": _article, ".s": _plural}
VERB = {"": _past, ".b": str, ".p": _participle}


def _entries(words: Iterable[Entry], forms: Mapping[str, Callable[[str], str]] | None = None) -> list[Forms]:
    """The words and their synonyms in all their forms, or just as they are."""
    forms = forms or {"": str}
    return [{form: tuple(map(make, _two(word))) for form, make in forms.items()} for word in words]
