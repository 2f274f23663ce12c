"""The planted grammar's own reader: the true label of a pair that somebody else wrote in its words::

    read_pairs(["The nurse carried a violin."], ["The nurse carried a musical instrument."])    # entailment, hypernym

A pair is read where its hypothesis is a form of the grammar, with or without artifacts, and its premise is one of that
form's premises with the same people, things, times. All else is said to be what it is, and is given no label.

"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nli_lib.corpora.corpus import LABELS
from nli_lib.corpora.planted import AMBIGUOUS, PATTERNS, WORDS, lexicon

READ = "read"
AMBIGUOUS_PAIR = "two labels can be defended"
CONFLICT = "forms of two labels"
NO_PATTERN = "both sentences are of the grammar, no form joins them"
OUTSIDE = "not of the grammar"
OUTCOMES = (READ, AMBIGUOUS_PAIR, CONFLICT, NO_PATTERN, OUTSIDE)
NO_LABEL = -1

Entry = tuple[object, int]  # of a slot: what the grammar compares it by (a kind, a season, a number), and its number
Found = dict[str, frozenset[Entry]]  # slot -> the entries that its words can be


@cache
def phrases() -> dict[str, dict[str, frozenset[Entry]]]:
    """For each slot as a form names it ("a", "a.kind"), every phrase that can fill it, and the entries it can mean."""
    found: dict[str, dict[str, set[Entry]]] = {}
    for slot, (entries, keys) in lexicon().items():
        for at, (forms, key) in enumerate(zip(entries, keys, strict=True)):
            for form, phrase in ((form, phrase) for form, both in forms.items() for phrase in both):
                found.setdefault(slot + form, {}).setdefault(phrase.lower(), set()).add((key, at))
    return {slot: {each: frozenset(entries) for each, entries in known.items()} for slot, known in found.items()}


# How the entries of two slots of one pair stand to each other, as `planted.draw` draws them, and of which slots.
RULES = (
    (lambda a, b: a != b, [("v", "u"), *combinations("ijk", 2)]),
    (lambda a, b: a[0] != b[0], [*combinations("abcd", 2), ("x", "y"), ("l", "m"), ("p", "m"), ("month", "later")]),
    (lambda a, b: a[0] == b[0] and a != b, [("l", "p"), ("f", "o"), ("g", "h"), ("s", "r")]),
    (lambda a, b: a[0] == b[0], [("give", "take")]),
    (lambda a, b: a[0] < b[0], [*combinations(("few", "some", "many"), 2), ("few", "both"), ("some", "both")]),
)


@cache
def form(text: str) -> tuple[re.Pattern, list[tuple[str, str]]]:
    """The pattern that reads a clause of one form of the grammar, such as "{a} {w} {x.kind}", and for each of its
    groups the slot, and the slot with its form."""
    parts, slots, at = [], [], 0
    for found in re.finditer(r"\{([a-z]+)(\.[a-z]+)?\}", text):
        name = found[1] + (found[2] or "")
        options = sorted(phrases()[name], key=len, reverse=True)
        parts += [re.escape(text[at : found.start()].lower()), f"({'|'.join(map(re.escape, options))})"]
        slots.append((found[1], name))
        at = found.end()
    return re.compile("".join([*parts, re.escape(text[at:].lower())])), slots


def match(text: str, clause: str, known: Found) -> Found | None:
    """What the slots of the form ``text`` are in ``clause``, beside what is ``known`` of them; None where they cannot
    be filled so, each by itself, every two and the numbers together."""
    pattern, names = form(text)
    found = pattern.fullmatch(clause)
    if found is None:
        return None
    slots = dict(known)
    for (slot, name), phrase in zip(names, found.groups(), strict=True):
        here = phrases()[name][phrase]
        slots[slot] = slots.get(slot, here) & here
    possible = all(slots.values())
    for rule, pairs in RULES:
        for one, other in pairs:
            if possible and one in slots and other in slots:
                possible = any(rule(a, b) for a in slots[one] for b in slots[other])
    if possible and {"few", "some", "both"} <= slots.keys():
        few, some, both = (min(slots[name])[0] for name in ("few", "some", "both"))
        possible = few + some == both
    return slots if possible else None


def bare(hypothesis: str) -> str:
    """A hypothesis as a clause: in lower case, without its full stop and without what artifacts put around it."""
    clause = hypothesis.strip().removesuffix(".").lower()
    for word in (word for each in WORDS["artifact_words"].values() for word in each):
        clause = clause.removeprefix(f"{word}, ").removesuffix(f", {word}")
    for tail in WORDS["tails"]:
        clause = clause.removesuffix(f" {tail}".lower())
    for phrase in WORDS["giveaways"].values():
        clause = clause.removeprefix(f"{phrase} ".lower())
    return clause


def _joins(text: str, premise: str, known: Found) -> bool:
    """Whether a premise, of one or two sentences, is of the form ``text`` with what is known of its slots."""
    sentences = [each.strip().lower() for each in premise.strip().removesuffix(".").split(". ")]
    for clause, *others in permutations(sentences) if len(sentences) <= 2 else ():
        slots = match(text, clause, known)
        if slots is not None:  # the second sentence must not repeat words of these
            taken = {name: slots[name] for name in "abcij" if name in slots}
            if all(match("{d} {k} {t}", other, taken) is not None for other in others):
                return True
    return False


def read(premise: str, hypothesis: str) -> tuple[int, str, str]:
    """(label or `NO_LABEL`, one of `OUTCOMES`, the family of the pattern or "") of one pair."""
    clause, labels, family, spoken = bare(hypothesis), set(), "", False
    for pattern in PATTERNS:
        slots = match(pattern.hypothesis, clause, {})
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
        slots = match(each["hypothesis"], clause, {})
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
