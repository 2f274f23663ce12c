"""Sentence patterns of the planted corpus (patterns.yaml, whose head says how they are made), read."""

import re
from pathlib import Path
from typing import NamedTuple

import yaml

_ALL = yaml.safe_load(Path(__file__).with_name("patterns.yaml").read_text(encoding="utf-8"))


class Pattern(NamedTuple):
    """One hypothesis and the premises that decide it.

    What decides the label for one person leaves it open for another, so these premises count as neutral too: otherwise
    the wording of the premise alone would tell neutral pairs from the rest.
    """

    family: str
    hypothesis: str
    premises: tuple[list[str], ...]  # that entail it, leave it open, contradict it; of the open, those that say less


def _pattern(family: str, entry: dict) -> Pattern:
    hypothesis, entailing, contradicting = entry["hypothesis"], entry["entailment"], entry["contradiction"]
    neutral = [premise["specific"] if isinstance(premise, dict) else premise for premise in entry["neutral"]]
    specific = [premise["specific"] for premise in entry["neutral"] if isinstance(premise, dict)]
    if family != "transfer":  # where saying it of another person nearly denies it
        neutral += _of_another(hypothesis, entailing + contradicting)
    return Pattern(family, hypothesis, (entailing, neutral, contradicting, specific))


def _of_another(hypothesis: str, premises: list[str]) -> list[str]:
    """The premises said of someone (or something) that the hypothesis is not about, where that can be."""
    subject = re.search(r"\{(\w)", hypothesis).group(1)
    other = "y" if subject == "x" else "d"
    return [
        re.sub(rf"\{{{subject}(?=[.}}])", f"{{{other}", premise)
        for premise in premises
        if re.search(rf"\{{{subject}[.}}]", premise)
        and f"{{{other}" not in premise
        and not premise.startswith((f"it was {{{subject}}}", "only "))  # these rule everyone else out
    ]


PATTERNS = [_pattern(family, entry) for family, entries in _ALL["families"].items() for entry in entries]
AMBIGUOUS: list[dict] = _ALL["ambiguous"]  # family, premise, hypothesis, and the two labels that can be defended
