"""Words of the planted corpus (words.yaml), and the drawing of one set of them per pair.

`draw(n, rng)` fills every slot that the sentence patterns name: {a} "the nurse", {a.kind} "a health worker",
{w} "carried", {w.b} "carry". Each slot comes twice, as `said` and as `otherwise`: the same thing in a synonym, where
there is one. Slots are drawn without regard to any label.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

WORDS = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))

Column = NDArray[np.object_]
Picks = NDArray[np.int64]
Forms = dict[str, tuple[str, str]]  # of one entry: "" or ".s", ".b" ... -> the word in that form, and its synonym


@dataclass
class Slots:
    """For each slot name, n phrases; `said` and `otherwise` differ where the word has a synonym."""

    n: int
    rng: np.random.Generator
    said: dict[str, Column] = field(default_factory=dict)
    otherwise: dict[str, Column] = field(default_factory=dict)

    def put(self, name: str, entries: list[Forms], pick: Picks) -> None:
        """Fill slot `name` in all its forms with entries[pick]; a coin decides which of two synonyms is said."""
        swap = self.below(2)
        for form in entries[0]:
            words = np.array([entry[form] for entry in entries], dtype=object)  # (words, 2)
            self.said[name + form], self.otherwise[name + form] = words[pick, swap], words[pick, 1 - swap]

    def below(self, size: int) -> Picks:
        """(n,) integers below `size`."""
        return self.rng.integers(size, size=self.n)

    def distinct(self, size: int, k: int) -> Picks:
        """(k, n) integers below `size`, no two alike in a column."""
        return self.rng.random((self.n, size)).argsort(axis=1)[:, :k].T


def draw(n: int, rng: np.random.Generator) -> Slots:
    """One set of words for each of n pairs; people, things and verbs of one pair differ from each other."""
    slots = Slots(n, rng)
    # Nouns of different kinds, so that no one of them is covered by the kind of another.
    for names, kinds in (("abcd", WORDS["people"]), ("xy", WORDS["things"])):
        entries = [_noun(word, kind) for kind, words in kinds.items() for word in words]
        first = slots.distinct(len(kinds), len(names)).T * 5
        for name, pick in zip(names, (first + rng.integers(5, size=first.shape)).T, strict=True):
            slots.put(name, entries, pick)
    for names, verbs in (("vu", WORDS["meet"]), ("w", WORDS["handle"]), ("ijk", WORDS["act"])):
        for name, pick in zip(names, slots.distinct(len(verbs), len(names)), strict=True):
            slots.put(name, [_verb(entry) for entry in verbs], pick)
    _places(slots)
    _calendar(slots)
    _numbers(slots)
    for names, pairs, forms in (("gh", "grades", _grade), ("fo", "looks", _plain), ("sr", "states", _plain)):
        _opposites(slots, names, [forms(side) for pair in WORDS[pairs] for side in pair])
    deals, pick = WORDS["transfers"], slots.below(len(WORDS["transfers"]))
    for side, name in enumerate(("give", "take")):
        slots.put(name, [_verb(deal[side]) for deal in deals], pick)
    return slots


def _places(slots: Slots) -> None:
    """{l} and {p} are two places on one side of the door, {m} is on the other; {l.side} says which."""
    sides = ("indoors", "outdoors")
    entries = [_plain(place) | {".side": (side, side)} for side in sides for place in WORDS[side]]
    each = len(WORDS["indoors"])
    door, (one, two), other = slots.below(2), slots.distinct(each, 2), slots.below(len(WORDS["outdoors"]))
    for name, side, pick in (("l", door, one), ("p", door, two), ("m", 1 - door, other)):
        slots.put(name, entries, side * each + pick)
    slots.put("t", [_plain(time) for time in WORDS["times"]], slots.below(len(WORDS["times"])))


def _calendar(slots: Slots) -> None:
    """{month} lies in {month.season}, {later} in {later.season}, another; {day} is a weekday, {free} is not."""
    seasons = WORDS["seasons"]
    entries = [_plain(month) | {".season": _two(each["season"])} for each in seasons for month in each["months"]]
    for name, season in zip(("month", "later"), slots.distinct(len(seasons), 2), strict=True):
        slots.put(name, entries, season * 3 + slots.below(3))
    for name, days in (("day", WORDS["weekdays"]), ("free", WORDS["weekend"])):
        slots.put(name, [_plain(day) for day in days], slots.below(len(days)))


def _numbers(slots: Slots) -> None:
    """{few} < {some} < {many}, and {both} = {few} + {some}."""
    few = 2 + slots.below(7)
    some = few + 1 + slots.below(5)
    many = some + 1 + slots.below(4)
    entries = [_plain(number) for number in WORDS["numbers"]]
    for name, value in (("few", few), ("some", some), ("many", many), ("both", few + some)):
        slots.put(name, entries, value)


def _opposites(slots: Slots, names: str, entries: list[Forms]) -> None:
    """Two slots that exclude each other, either way round; an entry and its opposite stand side by side."""
    pick, side = slots.below(len(entries) // 2), slots.below(2)
    for name, which in zip(names, (side, 1 - side), strict=True):
        slots.put(name, entries, 2 * pick + which)


def _two(entry: str | list[str]) -> tuple[str, str]:
    """The word and its synonym, or the word twice."""
    words = [entry] if isinstance(entry, str) else entry
    return words[0], words[-1]


def _plain(entry: str | list[str]) -> Forms:
    return {"": _two(entry)}


def _grade(entry: dict[str, str | list[str]]) -> Forms:
    ((base, comparative),) = entry.items()
    return {"": (base, base), ".er": _two(comparative)}


def _noun(entry: str | list[str], kind: str) -> Forms:
    one, other = _two(entry)
    forms = {"": "the {}".format, ".n": str, ".one": _article, ".s": _plural}
    return {form: (make(one), make(other)) for form, make in forms.items()} | {".kind": (_article(kind),) * 2}


def _verb(entry: str | list[str]) -> Forms:
    """Forms of a verb and its synonym: "" past, ".b" base, ".p" participle."""
    return dict(zip(("", ".b", ".p"), zip(*map(_conjugate, _two(entry)), strict=True), strict=True))


def _conjugate(verb: str) -> tuple[str, str, str]:
    """Past, base, participle."""
    if verb in WORDS["irregular"]:
        past, participle = WORDS["irregular"][verb]
        return past, verb, participle
    head, _, tail = verb.partition(" ")  # "rent out"
    ending = "d" if head.endswith("e") else "ied" if head[-1] == "y" and head[-2] not in "aeiou" else "ed"
    past = (head[:-1] if ending == "ied" else head) + ending + (f" {tail}" if tail else "")
    return past, verb, past


def _article(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def _plural(noun: str) -> str:
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if noun[-1] == "y" and noun[-2] not in "aeiou" else noun + "s"
