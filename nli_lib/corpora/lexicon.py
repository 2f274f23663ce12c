"""Dictionaries: which words are unknown, which are antonyms. Looked up on this machine, never downloaded.

WordNet is read by nltk from its own data or from Debian's package wordnet-base; the word list is pyspellchecker's.
"""

import contextlib
import functools
import io
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from nli_lib.errors import UserError

DEBIAN = Path("/usr/share/wordnet")
LEXICOGRAPHER_FILES = 45  # WordNet's own number of them; Debian's package leaves out the list of their names


class LexiconError(UserError, RuntimeError):
    """A dictionary is not on this machine; the message says what to install."""


@functools.cache
def spelling() -> Callable[[Iterable[str]], set[str]]:
    """What gives those of the words that the English word list does not have; numbers are never among them."""
    try:
        from spellchecker import SpellChecker
    except ModuleNotFoundError:
        raise LexiconError("the spelling measure needs pyspellchecker: pip install pyspellchecker") from None
    return SpellChecker(language="en", distance=1).unknown


class Wordnet:
    """Antonyms and base forms of English words. Raises `LexiconError` where no WordNet is found."""

    def __init__(self) -> None:
        self._reader = _open_wordnet()

    def antonyms_of(self, word: str) -> set[str]:
        """First antonym of every lemma of every synset of `word`, inflected or not; several words are joined by "_".

        Source: the difficulty paper's `heuristics.py` (H6), which takes the first antonym of each lemma only.
        """
        lemmas = (lemma for synset in self._reader.synsets(word) for lemma in synset.lemmas())
        return {found[0].name() for lemma in lemmas if (found := lemma.antonyms())}

    def antonyms_in(self, word: str, context: list[str]) -> set[str]:
        """Antonyms of `word` in the sense that Lesk's rule picks: the one whose gloss shares most words with `context`.

        Source: Naik et al. (2018), who substitute antonyms in the sense that Lesk picks.
        """
        from nltk.wsd import lesk

        senses = self._reader.synsets(word)
        if not any(lemma.antonyms() for sense in senses for lemma in sense.lemmas()):
            return set()
        lemmas = lesk(context, word, synsets=senses).lemmas()
        return {antonym.name() for lemma in lemmas for antonym in lemma.antonyms()}

    def base_form(self, word: str) -> str:
        """`word` without its inflection as WordNet's rules take it off, the word itself where they know none."""
        return self._reader.morphy(word) or word


def dictionaries() -> tuple[dict[str, object], dict[str, str]]:
    """The dictionaries at hand, by the names that `measure.difficulty.every_measure` takes, and what is missing: name
    of the measure -> what to install.
    """
    found, missing = {}, {}
    for name, look_up, measure in (("unknown", spelling, "misspelled"), ("wordnet", Wordnet, "antonyms")):
        try:
            found[name] = look_up()
        except LexiconError as error:
            missing[measure] = str(error)
    return found, missing


@functools.cache
def _open_wordnet():
    try:
        import nltk
        from nltk.corpus import wordnet
        from nltk.corpus.reader import WordNetCorpusReader
    except ModuleNotFoundError:
        raise LexiconError("antonyms need nltk and WordNet's files: pip install nltk") from None
    with contextlib.suppress(LookupError):
        wordnet.ensure_loaded()
        return wordnet
    if not (DEBIAN / "data.noun").is_file():
        raise LexiconError(
            "antonyms need WordNet's files: apt-get install wordnet-base (Debian), or python -m nltk.downloader wordnet"
        )

    nltk.data.path.append(str(DEBIAN))  # nltk reads from folders on its path only

    class DebianReader(WordNetCorpusReader):
        def open(self, file: str):
            if file == "lexnames":
                return io.StringIO("".join(f"{i:02d}\tfile-{i:02d}\t0\n" for i in range(LEXICOGRAPHER_FILES)))
            return super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            """No map to other languages, whose files Debian's package leaves out too."""

    with warnings.catch_warnings(action="ignore"):  # that those languages are not there
        return DebianReader(str(DEBIAN), omw_reader=None)
