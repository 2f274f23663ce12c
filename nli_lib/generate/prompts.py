"""Prompts of the papers, to the character, and the pairs in what a model writes after them.

The texts stand in `prompts.yaml`.
"""

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict

WANLI = "wanli, paper"
UNPARSED = "not one premise and one hypothesis"


class Prompt(BaseModel):
    """A template: the word for each label, how an example is written, what stands between two, and the whole."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    words: Mapping[str, str]
    example: str
    between: str
    whole: str


@functools.cache
def prompts() -> dict[str, Prompt]:
    """All templates by name and version."""
    text = Path(__file__).with_name("prompts.yaml").read_text(encoding="utf-8")
    return {name: Prompt.model_validate(entry) for name, entry in yaml.safe_load(text).items()}


def digest_prompt(name: str) -> str:
    """Sixteen hex digits that tell one template from another, for a record; of DISCO's too."""
    from nli_lib.generate.perturbations import template  # which rests on more than prompts

    entry = prompts()[name] if name in prompts() else template(name)
    return hashlib.sha256(entry.model_dump_json().encode()).hexdigest()[:16]


def continue_examples(pairs: Sequence[tuple[str, str]], label: str, *, name: str = WANLI) -> str:
    """The prompt that asks for one more pair like these.

    pairs  premise and hypothesis of each example, the most similar to the seed last but one and the seed last
    label  the name that all of them have

    Source: WANLI, section 2.2 and Tables 8 to 11 (W5). *Departures*: a line end within a text becomes a blank; the
    paper's code sends it as it is, which breaks the template.
    """
    prompt = prompts()[name]
    word = prompt.words[label]
    plain = [[re.sub(r"\s+", lambda run: " " if "\n" in run[0] else run[0], side) for side in pair] for pair in pairs]
    examples = [
        prompt.example.format(number=number, premise=premise, word=word, hypothesis=hypothesis)
        for number, (premise, hypothesis) in enumerate(plain, start=1)
    ]
    return prompt.whole.format(examples=prompt.between.join(examples), number=len(pairs) + 1)


def parse_pairs(texts: pd.Series, labels: pd.Series, *, name: str = WANLI) -> pd.DataFrame:
    """The pair in each continuation: columns premise, hypothesis, reason, with the index of ``texts``.

    texts   what the model wrote, (N,); labels: the name of the label that was asked for, (N,)
    reason  "" or why there is no pair, which then has no texts: a continuation is a pair when it has exactly one line
            end that is followed by the word of its label, a colon and a blank

    Source: WANLI's code (W7), which strips the text on the left and drops what does not parse.
    """
    marks = "\n" + labels.map(prompts()[name].words) + ": "
    parts = [text.lstrip().split(mark) for text, mark in zip(texts, marks, strict=True)]
    found = [(*part, "") if len(part) == 2 else (None, None, UNPARSED) for part in parts]
    return pd.DataFrame(found, columns=["premise", "hypothesis", "reason"], index=texts.index)
