"""Evaluation data: suites of evaluation sets, sets that no catalogue lists, stress sets, counterfactuals.

A suite (suites.yaml) names evaluation sets, each a corpus and a split as for `load`::

    tests, missing = load_each("snli", limit=2_000)

MultiNLI's hard parts and the adversarial benchmark of Liu et al. (2020), the tests of papers on debiasing, are read as
they are distributed: the first as parallel line files, the second from the hub or from JSON lines.

`stress` makes the sets of the NLI stress test of Naik et al. (2018) by rule from any three-way corpus. Every row keeps
the uid of the example it was made from (`origin_uid`) and a description of the rule (`rule`). The randomness of a row
depends only on the seed and that uid, not on the order of the corpus or its other rows. Antonyms are looked up in a
local WordNet, never downloaded: nltk reads it from its data or from Debian's package wordnet-base. The word list is
pyspellchecker's.

Counterfactuals are revisions with their originals, made by people (Human-CAD), GPT-3 (DISCO) or the planted grammar::

    pairs = load_pairs("cad", "test")
    predict(run, pairs.original)[pairs.origin], predict(run, pairs.revised)  # logits row by row

Notes
-----
*Departures* of the stress sets: the distributed files cut a text at its first full stop and put the tautology there;
here it comes before the last one and nothing is cut. Numbers come from the corpus's premises instead of AQuA-RAT.
Spelling errors occur in any word of three letters or more, without separate files for content and function words.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from nli_lib.corpora import reading, sources
from nli_lib.corpora.corpus import LABELS, SIDES, C, Corpus, CorpusError, E, N, concat, to_index
from nli_lib.corpora.planted import counterfactuals
from nli_lib.corpora.sources import Folder
from nli_lib.errors import PackageError

_ALL = yaml.safe_load(Path(__file__).with_name("suites.yaml").read_text(encoding="utf-8"))
SUITES: dict[str, dict[str, list[str]]] = _ALL["suites"]  # suite -> title of an evaluation set -> its corpus and split
HARD_PARTS: dict[str, str] = _ALL["hard parts"]  # part of MultiNLI's development set -> its folder
BENCHMARK: dict[str, int] = _ALL["benchmark"]  # title of a part of the adversarial benchmark -> its rows
TAUTOLOGIES: dict[str, tuple[str, str, int]] = _ALL["tautologies"]
NAIK_SHARES: dict[str, float] = _ALL["shares"]


def suite_for(corpus: str) -> str:
    """The suite for testing a model trained on this corpus: the corpus's, if there is one, else SNLI's."""
    return corpus if corpus in SUITES else "snli"


# corpora by title, and those that could not be loaded: title -> reason
Found = tuple[dict[str, Corpus], dict[str, str]]


def load_each(sets: Mapping[str, Sequence[str]] | str, data_dir: Folder = None, limit: int | None = None) -> Found:
    """Load corpora by title; return them and the reasons for those that could not be loaded, title -> reason.

    Parameters
    ----------
    sets
        title -> (corpus, split), or the name of a suite
    limit
        examples from each, sampled with seed 0; None takes all
    """
    if isinstance(sets, str):
        if sets not in SUITES:
            raise CorpusError(f'suite="{sets}" is not one of {", ".join(SUITES)}.')
        sets = SUITES[sets]
    loaders = {title: partial(sources.load, *place, data_dir, limit) for title, place in sets.items()}
    return _each(loaders, data_dir, limit)


def _each(loaders: Mapping[str, Callable[[], Corpus]], data_dir: Folder, limit: int | None) -> Found:
    """The corpora from the loaders, or seeded samples of them, and the reasons why others failed."""
    found, missing = {}, {}
    for title, read in loaders.items():
        try:
            found[title] = sources.sample(read(), limit)
        except CorpusError as error:
            missing[title] = without_folder(error, data_dir)
    return found, missing


def without_folder(error: CorpusError, data_dir: Folder) -> str:
    """The error's message for the book, without the path of the data folder, which means nothing to readers."""
    folder = sources.data_folder(data_dir)
    return str(error).replace(f"{folder}/", "").replace(str(folder), "the data folder") if folder else str(error)


# ---------------------------------------------------------------- hard sets


def mnli_hard(part: str, data_dir: Folder = None) -> Corpus:
    """The pairs of MultiNLI's development set, "matched" or "mismatched", that a hypothesis-only model gets wrong.

    Read from the line files s1.test, s2.test and labels.test in ``mnli_hard/`` of the data folder, as Karimi Mahabadi
    et al. (2020) distribute them: 4,573 and 4,530 pairs, with blanks around the punctuation. The uid is the line.

    Raises
    ------
    CorpusError
        If a file is missing, is not UTF-8, or has another number of lines than the others.
    """
    folder, name = sources.data_folder(data_dir), f"mnli_hard/{HARD_PARTS[part]}"
    files, columns = {"premise": "s1.test", "hypothesis": "s2.test", "label": "labels.test"}, {}
    for column, file in files.items():
        path = folder / name / file if folder else None
        if path is None or not path.is_file():
            raise CorpusError(f"mnli_hard {part}: {sources.lacking(folder)} {name}/{file}.")
        try:
            columns[column] = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            raise CorpusError(f"{name}/{file}: byte {error.start} is not UTF-8.") from None
    if len(set(map(len, columns.values()))) > 1:
        said = ", ".join(f"{file} {len(columns[column]):,}" for column, file in files.items())
        raise CorpusError(f"{name}: the files have different numbers of lines ({said}).")
    rows = reading.Rows.of(columns, np.arange(len(columns["label"])), name)
    return reading.build(rows, name="mnli_hard", split=part, source=name)


def mnli_hards(data_dir: Folder = None, limit: int | None = None) -> Found:
    """Load `mnli_hard` of both parts, with the titles of their whole sets, and the reason if one is missing.

    ``limit``: of each, a seeded sample.
    """
    loaders = {f"MultiNLI {part}, hard part": partial(mnli_hard, part, data_dir) for part in HARD_PARTS}
    return _each(loaders, data_dir, limit)


def adversarial(data_dir: Folder = None, limit: int | None = None, titles: Iterable[str] = tuple(BENCHMARK)) -> Found:
    """Load the parts of the adversarial benchmark, by title; return them and the reasons for missing ones, title ->
    reason.

    Read from ``robust_nli/<split>.jsonl`` in the data folder, else from the hub, where the copy may change and is used
    only if its number of rows is right. ``limit``: of each, a seeded sample.

    References
    ----------
    Liu et al. (2020); the paper on debiased generation, Table 5. See chapter 25.
    """
    return _each({title: partial(_part, title, data_dir) for title in titles}, data_dir, limit)


def _part(title: str, data_dir: Folder) -> Corpus:
    """One part of the adversarial benchmark."""
    folder, split, count = sources.data_folder(data_dir), title.replace("-", "_"), BENCHMARK[title]
    classes = _ALL["of two classes"].get(title, LABELS)  # IS-SD (HANS's sentences) and LI-TS have separate repositories
    repository = "robust_nli" if classes == LABELS else f"robust_nli_{split.lower()}"
    file = f"robust_nli/{split}.jsonl"
    here = folder is not None and (folder / file).is_file()
    try:
        if here:
            raw, where = reading.read(folder / file), file
        else:
            raw, where = sources.read_hub(f"pietrolesci/{repository}", None, split, "main")
            if len(raw.table) != count:
                raise CorpusError(f"{where}: {len(raw.table):,} rows, but {title} has {count:,}: not the same set")
        rows = raw.pick({name: name for name in ("premise", "hypothesis", "label")})
        return reading.build(replace(rows, classes=tuple(classes)), name=repository, split=split, source=where)
    except CorpusError as error:
        if here:
            raise
        raise CorpusError(f"{sources.lacking(folder)} {file} ({count:,} pairs). Then: {error}") from None


# ---------------------------------------------------------------- lexicon


DEBIAN = Path("/usr/share/wordnet")


@cache
def spelling() -> Callable[[Iterable[str]], set[str]]:
    """Return a function that finds the words missing from the English word list; numbers are never among them."""
    try:
        from spellchecker import SpellChecker
    except ModuleNotFoundError:
        raise PackageError("the spelling measure needs pyspellchecker: pip install pyspellchecker") from None
    return SpellChecker(language="en", distance=1).unknown


class Wordnet:
    """Antonyms and base forms of English words. Raises `PackageError` if no WordNet is found."""

    def __init__(self) -> None:
        self._reader = _open_wordnet()

    def antonyms_of(self, word: str) -> set[str]:
        """First antonym of every lemma of every synset of `word`, inflected or not; several words are joined by "_".

        References
        ----------
        The difficulty paper's `heuristics.py` (H6), which takes the first antonym of each lemma only.
        """
        lemmas = (lemma for synset in self._reader.synsets(word) for lemma in synset.lemmas())
        return {found[0].name() for lemma in lemmas if (found := lemma.antonyms())}

    def antonyms_in(self, word: str, context: list[str]) -> set[str]:
        """Antonyms of `word` in the sense that Lesk's rule picks: its gloss shares the most words with `context`.

        References
        ----------
        Naik et al. (2018), who substitute antonyms in the sense that Lesk picks.
        """
        from nltk.wsd import lesk

        senses = self._reader.synsets(word)
        if not any(lemma.antonyms() for sense in senses for lemma in sense.lemmas()):
            return set()
        lemmas = lesk(context, word, synsets=senses).lemmas()
        return {antonym.name() for lemma in lemmas for antonym in lemma.antonyms()}

    def base_form(self, word: str) -> str:
        """`word` without its inflection by WordNet's rules; the word itself if they know none."""
        return self._reader.morphy(word) or word


def dictionaries() -> tuple[dict[str, object], dict[str, str]]:
    """The installed dictionaries, by the names that `measure.dynamics.every_measure` takes, and the missing ones: name
    of the measure -> what to install.
    """
    found, missing = {}, {}
    for name, look_up, measure in (("unknown", spelling, "misspelled"), ("wordnet", Wordnet, "antonyms")):
        try:
            found[name] = look_up()
        except PackageError as error:
            missing[measure] = str(error)
    return found, missing


@cache
def _open_wordnet():
    try:
        import nltk
        from nltk.corpus import wordnet
        from nltk.corpus.reader import WordNetCorpusReader
    except ModuleNotFoundError:
        raise PackageError("antonyms need nltk and WordNet's files: pip install nltk") from None
    with contextlib.suppress(LookupError):
        wordnet.ensure_loaded()
        return wordnet
    if not (DEBIAN / "data.noun").is_file():
        packages = "apt-get install wordnet-base (Debian), or python -m nltk.downloader wordnet"
        raise PackageError(f"antonyms need WordNet's files: {packages}")

    nltk.data.path.append(str(DEBIAN))  # nltk only reads folders on its path

    class DebianReader(WordNetCorpusReader):
        def open(self, file: str):
            if file == "lexnames":  # the names of WordNet's 45 files, which Debian's package leaves out
                return io.StringIO("".join(f"{i:02d}\tfile-{i:02d}\t0\n" for i in range(45)))
            return super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            """Skip the map to other languages, because Debian's package leaves out their files too."""

    with warnings.catch_warnings(action="ignore"):  # about those missing languages
        return DebianReader(str(DEBIAN), omw_reader=None)


# ---------------------------------------------------------------- stress


WORD = re.compile(r"[A-Za-z]{3,}")
ENDING = re.compile(r"[\"']?[.!?]*")  # of a sentence, read backwards: forwards, every blank would be a possible start
# a whole number from 2 to 999 that is not part of a longer one, a date, a time or a fraction
NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBER = re.compile(rf"(?i)(?<![\w.,:/-])(?:[2-9]|[1-9]\d{{1,2}}|{'|'.join(NUMBER_WORDS)})(?![\w/-]|[.,:]\d)")
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def stress(kind: str, corpus: Corpus, *, seed: int = 0, wordnet: Wordnet | None = None) -> Corpus:
    """Make the stress set of one of `KINDS` from `corpus`; examples without a row are counted in `skipped`.

    word overlap, negation, length mismatch
        a tautology is added; the label stays
    spelling: swap
        two neighbouring letters in a word of the hypothesis are swapped
    spelling: keyboard
        a letter in a word of the hypothesis becomes its neighbour on a QWERTY keyboard
    antonym
        the premise, and as hypothesis the premise with one word replaced by its antonym in the sense that Lesk's rule
        picks; always contradiction
    numerical
        the premise, and as hypothesis the premise with its number replaced: an entailment ("more than" a smaller
        number) and a contradiction; and the entailment with its sides swapped, which is neutral

    "antonym" needs `wordnet`. "antonym" and "numerical" use each premise once, under its first uid.
    """
    if corpus.classes != LABELS:
        raise CorpusError(f"a stress set is made from a three-way corpus; {corpus.name} has {corpus.classes}")
    if kind not in KINDS:
        raise CorpusError(f"stress: kind={kind!r} is not one of {', '.join(KINDS)}")
    if kind == "antonym" and wordnet is None:
        raise CorpusError("stress: antonyms need wordnet=Wordnet() (nli_lib.corpora.suites)")
    once = corpus[~corpus.table["premise"].duplicated()] if kind in ("antonym", "numerical") else corpus
    made, empty = [], 0
    for pair in once.table.itertuples():
        # a separate random stream for each example
        random = np.random.default_rng([seed, KINDS.index(kind), zlib.crc32(pair.uid.encode())])
        rows = list(MAKERS[kind](pair, random, wordnet))
        uid = f"{pair.uid}#{kind}"
        made += [(f"{uid}#{at}" if len(rows) > 1 else uid, pair.uid, *row) for at, row in enumerate(rows)]
        empty += not rows
    table = pd.DataFrame(made, columns=["uid", "origin_uid", "premise", "hypothesis", "label", "rule"])
    table = table.astype({"label": np.int64}).assign(corpus=corpus.name, split=corpus.split, origin_corpus=corpus.name)
    table = table.assign(maker="rule", intended_label=np.array(LABELS, dtype=object)[table["label"]])
    skipped = {f"nothing to change ({kind})": empty} if empty else {}
    return Corpus(table, corpus.name, f"{corpus.split}, {kind}", LABELS, skipped, f"{corpus.source}, stress: {kind}")


Row = tuple[str, str, int, str]  # premise, hypothesis, label, rule


def _longer(side: str, words: str, times: int, pair: tuple, *_: object) -> Iterator[Row]:
    """Add a tautology before the end of one side."""
    texts = {"premise": pair.premise, "hypothesis": pair.hypothesis}
    text = texts[side].rstrip()
    marks = ENDING.match(text[::-1])[0][::-1]
    texts[side] = text.removesuffix(marks).rstrip() + f" {words}" * times + marks
    yield *texts.values(), pair.label, f'"{words}" {times} x at the end of the {side}'


def _one_word(side: str, change: Callable, pair: tuple, random: np.random.Generator, *given: object) -> Iterator[Row]:
    """Change one word of a side; words are tried in random order until one can be changed, often none. A changed
    premise becomes the hypothesis, and contradicts the premise."""
    text = getattr(pair, side)
    words = list(WORD.finditer(text))
    for at in random.permutation(len(words)):
        old, (start, end) = words[at][0], words[at].span()
        if (new := change(old, random, text, *given)) != old:
            label = C if side == "premise" else pair.label
            yield pair.premise, text[:start] + new + text[end:], label, f"{old} -> {new}"
            return


def _swap(word: str, random: np.random.Generator, *_: object) -> str:
    if not (places := [at for at in range(len(word) - 1) if word[at].lower() != word[at + 1].lower()]):
        return word
    at = int(random.choice(places))
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _keyboard(word: str, random: np.random.Generator, *_: object) -> str:
    at = int(random.integers(len(word)))
    old = word[at]
    row = next(row for row in KEYBOARD if old.lower() in row)
    place = row.index(old.lower())
    new = str(random.choice([row[i] for i in (place - 1, place + 1) if 0 <= i < len(row)]))
    return word[:at] + (new.upper() if old.isupper() else new) + word[at + 1 :]


def _antonym(word: str, random: np.random.Generator, text: str, wordnet: Wordnet) -> str:
    context = [each.lower() for each in WORD.findall(text)]
    if not (known := sorted(filter(str.isalpha, wordnet.antonyms_in(word.lower(), context)))):
        return word
    new = str(random.choice(known))
    return new.capitalize() if word[0].isupper() else new


def _numerical(pair: tuple, random: np.random.Generator, *_: object) -> Iterator[Row]:
    premise = pair.premise
    if not (numbers := list(NUMBER.finditer(premise))):
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


# kind -> function that makes its rows from an example, a random stream and a WordNet
MAKERS = {kind: partial(_longer, *how) for kind, how in TAUTOLOGIES.items()}
MAKERS["spelling: swap"] = partial(_one_word, "hypothesis", _swap)
MAKERS["spelling: keyboard"] = partial(_one_word, "hypothesis", _keyboard)
MAKERS |= {"antonym": partial(_one_word, "premise", _antonym), "numerical": _numerical}
KINDS = tuple(MAKERS)  # the order matters: the random stream of an example depends on the position of the kind


# ---------------------------------------------------------------- counterfactuals


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """M originals, K revisions, and the position of each revision's original.

    Attributes
    ----------
    original
        Corpus of M; revised: Corpus of K
    origin
        (K,) positions in `original`; an original can have several revisions
    """

    original: Corpus
    revised: Corpus
    origin: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.revised)

    def __getitem__(self, keep: NDArray) -> Counterfactuals:
        """Select revisions by a mask (K,) or positions, with all originals."""
        return replace(self, revised=self.revised[keep], origin=self.origin[keep])

    @property
    def old_labels(self) -> NDArray[np.int64]:
        """Gold labels of the originals, (K,)."""
        return self.original.labels[self.origin]

    @property
    def direction(self) -> NDArray[np.object_]:
        """Old and new label, (K,), in DISCO's notation: "e2n"."""
        initials = np.array([name[0] for name in self.original.classes], dtype=object)
        return initials[self.old_labels] + "2" + initials[self.revised.labels]

    @property
    def side(self) -> NDArray[np.object_]:
        """The text that was revised, (K,): "premise", "hypothesis", "both" or "none"."""
        moved = [getattr(self.revised, side) != getattr(self.original, side)[self.origin] for side in SIDES]
        return np.array(["none", "premise", "hypothesis", "both"], dtype=object)[moved[0] + 2 * moved[1]]

    def texts(self) -> tuple[list[str], list[str]]:
        """The revised text before and after the revision, (K,) each: the hypothesis if only it was revised."""
        chosen = self.side == "hypothesis"
        old = np.where(chosen, self.original.hypothesis[self.origin], self.original.premise[self.origin])
        return old.tolist(), np.where(chosen, self.revised.hypothesis, self.revised.premise).tolist()


def load_pairs(name: str, split: str, data_dir: Folder = None, *, originals: int = 500) -> Counterfactuals:
    """Load a set of counterfactuals by name: "disco" (split "e2n", "all", ...), "cad" ("train", "validation", "test")
    or "planted" (a split of the planted corpus; the given number of ``originals``, each with two revisions)."""
    if name == "planted":
        original, revised = counterfactuals(originals, split=split)
        return pair_up(revised, original)
    if name == "cad":
        revised = sources.load(name, f"revised_combined/{split}", data_dir)
        return pair_up(revised, sources.load(name, f"original/{split}", data_dir))
    return pair_up(sources.load(name, split, data_dir))


def pair_up(revised: Corpus, original: Corpus | None = None) -> Counterfactuals:
    """Match revisions with their originals; revisions without their original are left out and counted.

    Parameters
    ----------
    original
        the corpus with the uids in the revisions' origin_uid; None: use the columns origin_premise and origin_label of
        ``revised``, and origin_hypothesis if it exists (else the hypothesis is the original's)

    Raises
    ------
    CorpusError
        If a column is missing, naming those that are needed.
    """
    if original is None:
        original, origin = _from_columns(revised)
    elif "origin_uid" not in revised.table:
        where = f"{revised.name}/{revised.split}"
        raise CorpusError(f"{where}: the column origin_uid is missing, which names the originals")
    else:
        origin = pd.Index(original.uid).get_indexer(revised.table["origin_uid"])
    known = origin >= 0
    if not known.all():
        revised = replace(revised[known], skipped={**revised.skipped, "original not found": int((~known).sum())})
    return Counterfactuals(original, revised, origin[known])


def _from_columns(revised: Corpus) -> tuple[Corpus, NDArray[np.int64]]:
    """The distinct originals given in the revisions' columns, and the position of each revision's original."""
    if missing := [column for column in ("origin_premise", "origin_label") if column not in revised.table]:
        raise CorpusError(f"{revised.name}/{revised.split}: columns {missing} are missing, which hold the originals")
    table = revised.table
    hypothesis = table["origin_hypothesis"] if "origin_hypothesis" in table else table["hypothesis"]
    labels = to_index(table["origin_label"], revised.classes)
    whole = pd.DataFrame({"premise": table["origin_premise"], "hypothesis": hypothesis, "label": labels})
    known = ((labels >= 0) & whole.notna().all(axis=1)).to_numpy()
    origin = np.full(len(whole), -1)
    origin[known] = whole[known].groupby(list(whole), sort=False).ngroup()  # numbered by first appearance
    kept = whole[known].drop_duplicates()
    name = str(table["origin_corpus"].iloc[0]) if "origin_corpus" in table and len(table) else revised.name
    uid = [f"{name}-origin-{revised.split}-{at}" for at in range(len(kept))]
    kept = kept.assign(uid=uid, corpus=name, split=revised.split)
    return Corpus(kept, name, revised.split, revised.classes, source=revised.source), origin


def directions() -> list[str]:
    """The six directions between three labels, "e2n" and so on, in the order of the labels."""
    return [f"{one[0]}2{other[0]}" for one, other in permutations(LABELS, 2)]


def join(sets: list[Counterfactuals], *, name: str) -> Counterfactuals:
    """Join several sets, for example the directions of one maker; the number of originals does not change."""
    shift = np.cumsum([0] + [len(each.original) for each in sets[:-1]])
    origin = np.concatenate([each.origin + by for each, by in zip(sets, shift, strict=True)])
    original = concat([each.original for each in sets], name=name, split="original")
    return Counterfactuals(original, concat([each.revised for each in sets], name=name, split="revised"), origin)
