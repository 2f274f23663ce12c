"""The NLI stress test of Naik et al. (2018), made by rule from any three-way corpus.

The difficulty paper's Tables 5 and 6 report accuracies on it. Every row keeps the uid of the example it was made from
(`origin_uid`) and the rule in words (`rule`). What is random about a row depends on the seed and that uid alone:
neither the order of the corpus nor what else is in it plays a part.

*Departures*: the distributed files cut a text at its first full stop and put the tautology there; here it stands before
the last one and nothing is cut. Numbers come from the corpus's own premises instead of AQuA-RAT. Spelling is disturbed
in any word of three letters or more, not in files for content and function words.
"""

import re
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from nli_lib.corpora.corpus import Corpus, CorpusError
from nli_lib.corpora.labels import LABELS, C, E, N
from nli_lib.corpora.lexicon import Wordnet

_ALL = yaml.safe_load(Path(__file__).with_name("stress.yaml").read_text(encoding="utf-8"))
TAUTOLOGIES: dict[str, tuple[str, str, int]] = _ALL["tautologies"]
NAIK_SHARES: dict[str, float] = _ALL["shares"]
KINDS = (*TAUTOLOGIES, "spelling: swap", "spelling: keyboard", "antonym", "numerical")

WORD = re.compile(r"[A-Za-z]{3,}")
ENDING = re.compile(r"[\"']?[.!?]*")  # of a sentence, read backwards: forwards every blank would be a beginning
# a whole number from 2 to 999 that is no part of a longer one, of a date, a time or a fraction
NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBER = re.compile(
    rf"(?<![\w.,:/-])(?:[2-9]|[1-9]\d{{1,2}}|{'|'.join(NUMBER_WORDS)})(?![\w/-]|[.,:]\d)", re.IGNORECASE
)
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def stress(kind: str, corpus: Corpus, *, seed: int = 0, wordnet: Wordnet | None = None) -> Corpus:
    """The stress set of one of `KINDS` made from `corpus`; examples that give no row are counted in `skipped`.

    word overlap, negation, length mismatch   a tautology is added; the label stays
    spelling: swap                            two neighbouring letters of a word of the hypothesis change places
    spelling: keyboard                        a letter of it becomes its neighbour on a QWERTY keyboard
    antonym                                   the premise, and as hypothesis the premise with one word replaced by its
                                              antonym in the sense that Lesk's rule picks; always contradiction
    numerical                                 the premise, and as hypothesis the premise with its number replaced: an
                                              entailment ("more than" a smaller number) and a contradiction; and the
                                              entailment with its sides exchanged, which is neutral

    "antonym" needs `wordnet`. "antonym" and "numerical" use each premise once, under its first uid.
    """
    if corpus.classes != LABELS:
        raise CorpusError(f"a stress set is made from a three-way corpus; {corpus.name} has {corpus.classes}")
    if kind not in KINDS:
        raise CorpusError(f"stress: kind={kind!r} is not one of {', '.join(KINDS)}")
    if kind == "antonym" and wordnet is None:
        raise CorpusError("stress: antonyms need wordnet=Wordnet() (nli_lib.corpora.lexicon)")
    rows_of = MAKERS[kind] if kind in MAKERS else partial(_antonym, wordnet)
    once = corpus[~corpus.table["premise"].duplicated()] if kind in ("antonym", "numerical") else corpus
    made, empty = [], 0
    for pair in once.table.itertuples():
        # a random stream of the example's own
        random = np.random.default_rng([seed, KINDS.index(kind), zlib.crc32(pair.uid.encode())])
        rows = list(rows_of(pair, random))
        uid = f"{pair.uid}#{kind}"
        made += [(f"{uid}#{at}" if len(rows) > 1 else uid, pair.uid, *row) for at, row in enumerate(rows)]
        empty += not rows
    table = pd.DataFrame(made, columns=["uid", "origin_uid", "premise", "hypothesis", "label", "rule"])
    table = table.astype({"label": np.int64}).assign(corpus=corpus.name, split=corpus.split)
    intended = np.array(LABELS, dtype=object)[table["label"]]
    table = table.assign(origin_corpus=corpus.name, maker="rule", intended_label=intended)
    skipped = {f"nothing to change ({kind})": empty} if empty else {}
    return Corpus(table, corpus.name, f"{corpus.split}, {kind}", LABELS, skipped, f"{corpus.source}, stress: {kind}")


Row = tuple[str, str, int, str]  # premise, hypothesis, label, rule


def _longer(side: str, words: str, times: int, pair: tuple, *_: object) -> Iterator[Row]:
    """The pair with a tautology before the end of one side."""
    tail = f" {words}" * times
    texts = {"premise": pair.premise, "hypothesis": pair.hypothesis}
    text = texts[side].rstrip()
    marks = ENDING.match(text[::-1])[0][::-1]
    texts[side] = text.removesuffix(marks).rstrip() + tail + marks
    yield *texts.values(), pair.label, f'"{words}" {times} x at the end of the {side}'


# ---------------------------------------------------------------- spelling


def _misspelt(change: Callable, pair: tuple, random: np.random.Generator) -> Iterator[Row]:
    for changed, rule in _one_word_changed(pair.hypothesis, change, random):
        yield pair.premise, changed, pair.label, rule


def _one_word_changed(text: str, change: Callable, random: np.random.Generator) -> Iterator[tuple[str, str]]:
    """The text with one word changed, and the rule; words are tried in random order until one can be, often none."""
    words = list(WORD.finditer(text))
    for at in random.permutation(len(words)):
        old, (start, end) = words[at][0], words[at].span()
        if (new := change(old, random)) != old:
            yield text[:start] + new + text[end:], f"{old} -> {new}"
            return


def _swap(word: str, random: np.random.Generator) -> str:
    places = [at for at in range(len(word) - 1) if word[at].lower() != word[at + 1].lower()]
    if not places:
        return word
    at = int(random.choice(places))
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _keyboard(word: str, random: np.random.Generator) -> str:
    at = int(random.integers(len(word)))
    old = word[at]
    row = next(row for row in KEYBOARD if old.lower() in row)
    place = row.index(old.lower())
    new = str(random.choice([row[i] for i in (place - 1, place + 1) if 0 <= i < len(row)]))
    return word[:at] + (new.upper() if old.isupper() else new) + word[at + 1 :]


# ---------------------------------------------------------------- meaning


def _antonym(wordnet: Wordnet, pair: tuple, random: np.random.Generator) -> Iterator[Row]:
    context = [word.lower() for word in WORD.findall(pair.premise)]

    def opposite(word: str, random: np.random.Generator) -> str:
        known = sorted(filter(str.isalpha, wordnet.antonyms_in(word.lower(), context)))
        if not known:
            return word
        new = str(random.choice(known))
        return new.capitalize() if word[0].isupper() else new

    for changed, rule in _one_word_changed(pair.premise, opposite, random):
        yield pair.premise, changed, C, rule


def _numerical(pair: tuple, random: np.random.Generator) -> Iterator[Row]:
    premise = pair.premise
    numbers = list(NUMBER.finditer(premise))
    if not numbers:
        return
    found = numbers[int(random.integers(len(numbers)))]
    number = int(found[0]) if found[0].isdigit() else 2 + NUMBER_WORDS.index(found[0].lower())
    less, more = int(random.integers(1, number)), int(random.integers(number + 1, 2 * number + 1))

    def with_number(words: str) -> str:
        words = words.capitalize() if found[0][0].isupper() else words
        return premise[: found.start()] + words + premise[found.end() :]

    true = str(random.choice([f"more than {less}", f"less than {more}"]))
    false = str(random.choice([f"less than {number}", f"more than {number}", f"{more}"]))
    yield premise, with_number(true), E, f"{found[0]} -> {true}"
    yield with_number(true), premise, N, f"{true} -> {found[0]}"
    yield premise, with_number(false), C, f"{found[0]} -> {false}"


# kind -> what makes its rows of an example and a random stream; "antonym" needs a WordNet too
MAKERS = {
    **{kind: partial(_longer, *how) for kind, how in TAUTOLOGIES.items()},
    "spelling: swap": partial(_misspelt, _swap),
    "spelling: keyboard": partial(_misspelt, _keyboard),
    "numerical": _numerical,
}
