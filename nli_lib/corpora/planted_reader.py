"""The planted grammar's own reader: the true label of a pair that somebody else wrote in its words.

    read_pairs(["The nurse carried a violin."], ["The nurse carried a musical instrument."])    # entailment, hypernym

A pair is read where its hypothesis is a form of the grammar, with or without artifacts, and its premise is one of that
form's premises with the same people, things, times. All else is said to be what it is, and is given no label.

"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.corpora.corpus import LABELS
from nli_lib.corpora.planted import AMBIGUOUS, NOUN, PATTERNS, VERB, WORDS, _entries, _two

READ = "read"
AMBIGUOUS_PAIR = "two labels can be defended"
CONFLICT = "forms of two labels"
NO_PATTERN = "both sentences are of the grammar, no form joins them"
OUTSIDE = "not of the grammar"
OUTCOMES = (READ, AMBIGUOUS_PAIR, CONFLICT, NO_PATTERN, OUTSIDE)
NO_LABEL = -1
EXTRA = "{d} {k} {t}"  # the second sentence that a premise may have
SLOT = re.compile(r"\{([a-z]+)(\.[a-z]+)?\}")

Entry = tuple[object, int]  # of a slot: what the grammar compares it by (a kind, a season, a number), and its number
Found = dict[str, frozenset[Entry]]  # slot -> the entries that its words can be


@cache
def phrases() -> dict[str, dict[str, frozenset[Entry]]]:
    """For each slot as a form names it ("a", "a.kind"), every phrase that can fill it, and the entries it can mean."""
    found: dict[str, dict[str, set[Entry]]] = {}

    def put(
        slots: str | Sequence[str], groups: dict[object, list], forms: dict | None = None, extra: dict | None = None
    ):
        at = 0
        for key, words in groups.items():
            for entry in _entries(words, forms):
                for form, both in (entry | {name: _two(make(key)) for name, make in (extra or {}).items()}).items():
                    for slot, phrase in ((slot, phrase) for slot in slots for phrase in both):
                        found.setdefault(slot + form, {}).setdefault(phrase.lower(), set()).add((key, at))
                at += 1

    kind = {".kind": NOUN[".one"]}
    put("abcd", WORDS["people"], NOUN, kind)
    put("xy", WORDS["things"], NOUN, kind)
    for slots, name in (("vu", "meet"), ("w", "handle"), ("ijk", "act")):
        put(slots, {name: WORDS[name]}, VERB)
    put("lpm", {side: WORDS[side] for side in ("indoors", "outdoors")}, None, {".side": str})
    put("t", {"time": WORDS["times"]})
    for season in WORDS["seasons"]:
        names = _two(season["season"])
        put(["month", "later"], {names: season["months"]}, None, {".season": list})
    put(["day"], {"day": WORDS["weekdays"]})
    put(["free"], {"day": WORDS["weekend"]})
    put(["few", "some", "many", "both"], {value: [word] for value, word in enumerate(WORDS["numbers"])})
    for slots, name in (("fo", "looks"), ("sr", "states")):
        put(slots, {(name, at): pair for at, pair in enumerate(WORDS[name])})
    for at, pair in enumerate(WORDS["grades"]):
        put("gh", {("grades", at): [next(iter(grade)) for grade in pair]})
        put(["g.er", "h.er"], {("grades", at): [next(iter(grade.values())) for grade in pair]})
    for side, slot in enumerate(("give", "take")):
        put([slot], {at: [pair[side]] for at, pair in enumerate(WORDS["transfers"])}, VERB)
    return {slot: {each: frozenset(entries) for each, entries in known.items()} for slot, known in found.items()}


def _differ(one: Entry, other: Entry) -> bool:
    return one != other


def _kinds_differ(one: Entry, other: Entry) -> bool:
    return one[0] != other[0]


def _opposite(one: Entry, other: Entry) -> bool:
    return one[0] == other[0] and one != other


def _same(one: Entry, other: Entry) -> bool:
    return one[0] == other[0]


def _less(one: Entry, other: Entry) -> bool:
    return one[0] < other[0]


def _rules() -> dict[tuple[str, str], object]:
    """How the words of two slots of one pair stand to each other, as `lexicon.draw` draws them."""
    rules = {pair: _kinds_differ for slots in ("abcd", "xy") for pair in combinations(slots, 2)}
    rules |= {pair: _differ for slots in ("vu", "ijk") for pair in combinations(slots, 2)}
    rules |= {("l", "p"): lambda one, other: _same(one, other) and one != other}
    rules |= {("l", "m"): _kinds_differ, ("p", "m"): _kinds_differ, ("month", "later"): _kinds_differ}
    rules |= {("f", "o"): _opposite, ("g", "h"): _opposite, ("s", "r"): _opposite, ("give", "take"): _same}
    smaller = combinations(("few", "some", "many"), 2)
    return rules | dict.fromkeys(smaller, _less) | {("few", "both"): _less, ("some", "both"): _less}


RULES = _rules()


class Form(NamedTuple):
    """A sentence pattern that reads a clause, and which slot each of its groups is."""

    pattern: re.Pattern
    slots: tuple[tuple[str, str], ...]  # (slot, slot with its form), one a group


@cache
def form(text: str) -> Form:
    """The reader of one form of the grammar, such as "{a} {w} {x.kind}"."""
    parts, slots, at = [], [], 0
    for found in SLOT.finditer(text):
        name = found[1] + (found[2] or "")
        options = sorted(phrases()[name], key=len, reverse=True)
        parts += [re.escape(text[at : found.start()].lower()), f"({'|'.join(map(re.escape, options))})"]
        slots.append((found[1], name))
        at = found.end()
    return Form(re.compile("".join([*parts, re.escape(text[at:].lower())])), tuple(slots))


def match(text: str, clause: str, known: Found | None = None) -> Found | None:
    """What the slots of the form ``text`` are in ``clause``, beside what is ``known`` of them; None where they cannot
    be."""
    reader = form(text)
    found = reader.pattern.fullmatch(clause)
    if found is None:
        return None
    slots = dict(known or {})
    for (slot, name), phrase in zip(reader.slots, found.groups(), strict=True):
        here = phrases()[name][phrase]
        slots[slot] = slots.get(slot, here) & here
    return slots if _possible(slots) else None


def _possible(slots: Found) -> bool:
    """Whether the slots can be filled so, each by itself, every two and the numbers together."""
    for one, other in combinations(slots, 2):
        rule, pair = RULES.get((one, other)), (one, other)
        if rule is None:
            rule, pair = RULES.get((other, one)), (other, one)
        if rule and not any(rule(a, b) for a in slots[pair[0]] for b in slots[pair[1]]):
            return False
    if {"few", "some", "both"} <= slots.keys():
        few, some, both = (min(slots[name])[0] for name in ("few", "some", "both"))
        return all(slots.values()) and few + some == both
    return all(slots.values())


def bare(hypothesis: str) -> str:
    """A hypothesis as a clause: in lower case, without its full stop and without what artifacts put around it."""
    clause = hypothesis.strip().removesuffix(".").lower()
    words = [word for each in WORDS["artifact_words"].values() for word in each]
    for word in words:
        clause = clause.removeprefix(f"{word}, ").removesuffix(f", {word}")
    for tail in WORDS["tails"]:
        clause = clause.removesuffix(f" {tail}".lower())
    for phrase in WORDS["giveaways"].values():
        clause = clause.removeprefix(f"{phrase} ".lower())
    return clause


def _clauses(premise: str) -> Iterator[tuple[str, str | None]]:
    """(clause, the other sentence or None) for each way to read a premise of one or two sentences."""
    sentences = [each.strip().lower() for each in premise.strip().removesuffix(".").split(". ")]
    if len(sentences) == 1:
        yield sentences[0], None
    elif len(sentences) == 2:
        yield sentences[0], sentences[1]
        yield sentences[1], sentences[0]


def _joins(text: str, premise: str, known: Found) -> bool:
    """Whether a premise is of the form ``text`` with what is known of its slots."""
    for clause, other in _clauses(premise):
        slots = match(text, clause, known)
        if slots is not None and (other is None or match(EXTRA, other, _people(slots)) is not None):
            return True
    return False


def _people(slots: Found) -> Found:
    """The slots whose words the second sentence must not repeat."""
    return {name: slots[name] for name in "abcij" if name in slots}


def read(premise: str, hypothesis: str) -> tuple[int, str, str]:
    """(label or `NO_LABEL`, one of `OUTCOMES`, the family of the pattern or "") of one pair."""
    clause, labels, family, spoken = bare(hypothesis), set(), "", False
    for pattern in PATTERNS:
        slots = match(pattern.hypothesis, clause)
        if slots is None:
            continue
        spoken = True
        for label, forms in enumerate(pattern.premises[: len(LABELS)]):
            if any(_joins(text, premise, slots) for text in forms):
                labels.add(label)
                family = pattern.family
    if len(labels) == 1:
        return labels.pop(), READ, family
    if labels:
        return NO_LABEL, CONFLICT, family
    for each in AMBIGUOUS:
        slots = match(each["hypothesis"], clause)
        spoken |= slots is not None
        if slots is not None and _joins(each["premise"], premise, slots):
            return NO_LABEL, AMBIGUOUS_PAIR, each["family"]
    known = (text for pattern in PATTERNS for side in pattern.premises for text in side)
    spoken = spoken and any(_joins(text, premise, {}) for text in known)
    return NO_LABEL, NO_PATTERN if spoken else OUTSIDE, ""


def gives_away(hypotheses: Sequence[str], labels: Sequence[int]) -> NDArray[np.bool_]:
    """(N,) bool: whether a hypothesis has a word or the phrase that `planted.make` ties to its label (N,)."""
    text, gold = pd.Series(hypotheses, dtype="str").reset_index(drop=True), np.asarray(labels)
    found = np.zeros(len(text), dtype=bool)
    for number, label in enumerate(LABELS):
        tied = "|".join(map(re.escape, [*WORDS["artifact_words"][label], WORDS["giveaways"][label]]))
        found |= (gold == number) & text.str.contains(rf"(?i)\b(?:{tied})\b", regex=True).to_numpy(dtype=bool)
    return found


def read_pairs(premises: Sequence[str], hypotheses: Sequence[str]) -> pd.DataFrame:
    """Each of N pairs as the grammar reads it: label (`NO_LABEL` where it gives none), outcome (`OUTCOMES`), family.

    Spelling and synonyms of the grammar are its own; capitals do not count. A pair with words that the grammar lacks,
    with one person in two places or with a premise of another pattern has no label, even where a reader would give it
    one: what is read is right, and not all that is right is read.
    """
    pairs = [read(*each) for each in zip(premises, hypotheses, strict=True)]
    return pd.DataFrame(pairs, columns=["label", "outcome", "family"])
