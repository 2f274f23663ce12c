"""Sentence patterns of the planted corpus (patterns.yaml, whose head says how they are made), read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import yaml

ONE_RECEIVER = ("transfer",)  # families where saying it of another person nearly denies it
_ALL = yaml.safe_load(Path(__file__).with_name("patterns.yaml").read_text(encoding="utf-8"))


class Pattern(NamedTuple):
    """One hypothesis and the premises that entail it, leave it open or contradict it."""

    hypothesis: str
    entailing: tuple[str, ...]
    neutral: tuple[str, ...]
    contradicting: tuple[str, ...]
    specific: tuple[str, ...]  # those of the neutral premises that the hypothesis repeats, saying more


def _pattern(entry: dict) -> Pattern:
    specific = [premise["specific"] for premise in entry["neutral"] if isinstance(premise, dict)]
    neutral = [premise["specific"] if isinstance(premise, dict) else premise for premise in entry["neutral"]]
    sides = (entry["entailment"], neutral, entry["contradiction"], specific)
    return Pattern(entry["hypothesis"], *map(tuple, sides))


FAMILIES = {name: tuple(map(_pattern, patterns)) for name, patterns in _ALL["families"].items()}
AMBIGUOUS: list[dict] = _ALL["ambiguous"]  # family, premise, hypothesis, and the two labels that can be defended


def premises(family: str, pattern: Pattern) -> tuple[tuple[str, ...], ...]:
    """Premises of a pattern for entailment, neutral and contradiction, and those less specific than its hypothesis.

    What decides the label for one person leaves it open for another, so these count as neutral too: otherwise the
    wording of the premise alone would tell neutral pairs from the rest.
    """
    neutral = pattern.neutral + (() if family in ONE_RECEIVER else _of_another(pattern))
    return pattern.entailing, neutral, pattern.contradicting, pattern.specific


def _of_another(pattern: Pattern) -> tuple[str, ...]:
    """The deciding premises of a pattern, said of someone (or something) that its hypothesis is not about."""
    subject = re.search(r"\{(\w)", pattern.hypothesis).group(1)
    other = "y" if subject == "x" else "d"
    return tuple(
        re.sub(rf"\{{{subject}(?=[.}}])", f"{{{other}", premise)
        for premise in (*pattern.entailing, *pattern.contradicting)
        if re.search(rf"\{{{subject}[.}}]", premise)
        and f"{{{other}" not in premise
        and not premise.startswith((f"it was {{{subject}}}", "only "))  # these rule everyone else out
    )
