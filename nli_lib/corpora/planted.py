"""The planted corpus: pairs from a small grammar, with planted and recorded artifacts, label noise and ambiguity.

It tests methods and is no evidence about language: a method that claims to find artifacts, wrong labels or ambiguous
examples is compared with columns that have the truth::

    corpus = make_split("train", 2_000, seed=0)
    corpus.table["flipped"], corpus.table["ambiguous"]

The grammar has sentence patterns (patterns.yaml; its head describes their form) and words (words.yaml). A pattern names
slots, and `draw` fills them: {a} "the nurse", {a.kind} "a health worker", {w} "carried", {w.b} "carry". Each slot comes
in two wordings, the second with a synonym if there is one. Slots are drawn independently of any label.

A counterfactual pair is one edit of the premise after which another label is true. Both premises have the same pattern
and the same words, so the grammar knows the label of each::

    originals, revised = counterfactuals(500, seed=0)
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import permutations, zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml
from numpy.random import Generator
from numpy.typing import NDArray

from nli_lib.corpora.corpus import COLUMNS, LABELS, C, Corpus, CorpusError, E, N

_ALL = yaml.safe_load(Path(__file__).with_name("patterns.yaml").read_text(encoding="utf-8"))


class Pattern(NamedTuple):
    """One hypothesis and the premises that decide it.

    A premise that decides the label for one person leaves it open for another, so such premises are also used as
    neutral ones: otherwise the wording of the premise alone would identify neutral pairs.
    """

    family: str
    hypothesis: str
    premises: tuple[list[str], ...]  # entailing, open, contradicting; the open ones that say less


def _pattern(family: str, entry: dict) -> Pattern:
    hypothesis, entailing, contradicting = entry["hypothesis"], entry["entailment"], entry["contradiction"]
    neutral = [premise["specific"] if isinstance(premise, dict) else premise for premise in entry["neutral"]]
    specific = [premise["specific"] for premise in entry["neutral"] if isinstance(premise, dict)]
    if family != "transfer":  # there, saying it of another person nearly denies it
        # the other premises said of someone (or something) that the hypothesis is not about, if possible
        subject = re.search(r"\{(\w)", hypothesis).group(1)
        other = "y" if subject == "x" else "d"
        exclusive = (f"it was {{{subject}}}", "only ")  # these rule everyone else out
        for premise in entailing + contradicting:
            said = re.sub(rf"\{{{subject}(?=[.}}])", f"{{{other}", premise)
            if said != premise and f"{{{other}" not in premise and not premise.startswith(exclusive):
                neutral.append(said)
    return Pattern(family, hypothesis, (entailing, neutral, contradicting, specific))


PATTERNS = [_pattern(family, entry) for family, entries in _ALL["families"].items() for entry in entries]
AMBIGUOUS: list[dict] = _ALL["ambiguous"]  # family, premise, hypothesis, and the two defensible labels


# ---------------------------------------------------------------- lexicon


WORDS = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))

Column = NDArray[np.object_]
Entry = str | list[str]  # a word, or a word and its synonym
Plan = dict[str, NDArray]  # facts about n pairs: name -> (n, ...)


def draw(n: int, rng: Generator) -> dict[str, Column]:
    """Draw one set of words for each of n pairs, slot name -> (2, n): the two wordings, which differ if the word has a
    synonym. People, things and verbs of one pair differ."""
    phrases = {}

    def below(size: int) -> NDArray[np.int64]:
        return rng.integers(size, size=n)

    def distinct(size: int, k: int) -> NDArray[np.int64]:
        """(k, n) integers below `size`, without repeats in a column."""
        return rng.random((n, size)).argsort(axis=1)[:, :k].T

    def put(names: Iterable[str], picks: Iterable[NDArray[np.int64]]) -> None:
        """Fill each slot in all its forms with its entries[pick]; a coin toss decides which of two synonyms comes
        first."""
        for name, pick in zip(names, picks, strict=True):
            entries, swap = lexicon()[name][0], below(2)
            for form in entries[0]:
                words = np.array([entry[form] for entry in entries], dtype=object)  # (words, 2)
                phrases[name + form] = words[pick, [swap, 1 - swap]]

    # Nouns of different kinds, so that none is included in the kind of another.
    for names, kinds in (("abcd", "people"), ("xy", "things")):
        first = distinct(len(WORDS[kinds]), len(names)).T * 5
        put(names, (first + rng.integers(5, size=first.shape)).T)
    for names, verbs in (("vu", "meet"), ("w", "handle"), ("ijk", "act")):
        put(names, distinct(len(WORDS[verbs]), len(names)))
    # {l} and {p} are two places on one side of the door, {m} is on the other; {l.side} says which.
    each = len(WORDS["indoors"])
    door, (one, two), other = below(2), distinct(each, 2), below(len(WORDS["outdoors"]))
    put("lpm", (door * each + one, door * each + two, (1 - door) * each + other))
    put("t", [below(len(WORDS["times"]))])
    # {month} lies in {month.season}, {later} in {later.season}, another; {day} is a weekday, {free} is not.
    for name, season in zip(("month", "later"), distinct(len(WORDS["seasons"]), 2), strict=True):
        put([name], [season * 3 + below(3)])
    for name, days in (("day", "weekdays"), ("free", "weekend")):
        put([name], [below(len(WORDS[days]))])
    # {few} < {some} < {many}, and {both} = {few} + {some}.
    few = 2 + below(7)
    some = few + 1 + below(5)
    put(("few", "some", "many", "both"), (few, some, some + 1 + below(4), few + some))
    # Two slots that exclude each other, in either order; an entry and its opposite are neighbours.
    for names, pairs in (("gh", "grades"), ("fo", "looks"), ("sr", "states")):
        pick, side = below(len(WORDS[pairs])), below(2)
        put(names, (2 * pick + side, 2 * pick + 1 - side))
    put(("give", "take"), [below(len(WORDS["transfers"]))] * 2)
    return phrases


@cache
def lexicon() -> dict[str, tuple[list[dict[str, tuple[str, str]]], list[object]]]:
    """The entries of each slot, and the keys by which the grammar compares them: the kind, side, season or pair of each
    entry, or its number. An entry is the word in each form ("", ".s", ".b"), and its synonym in that form."""
    found = {}

    def put(slots: Iterable[str], groups: Mapping[object, list[Entry]], forms: Mapping = PLAIN, **of_key: Callable):
        """Add the words of each group; ``of_key`` makes a form from the group's key."""
        made = []
        for key, words in groups.items():
            more = {f".{name}": _two(make(key)) for name, make in of_key.items()}
            entries = [{form: tuple(map(make, _two(word))) for form, make in forms.items()} for word in words]
            made += [(entry | more, key) for entry in entries]
        found.update(dict.fromkeys(slots, tuple(zip(*made, strict=True))))

    put("abcd", WORDS["people"], NOUN, kind=_article)
    put("xy", WORDS["things"], NOUN, kind=_article)
    put("lpm", {side: WORDS[side] for side in ("indoors", "outdoors")}, side=str)
    put(["month", "later"], {_two(each["season"]): each["months"] for each in WORDS["seasons"]}, season=list)
    put(("few", "some", "many", "both"), {value: [word] for value, word in enumerate(WORDS["numbers"])})
    for slots, name in (("vu", "meet"), ("w", "handle"), ("ijk", "act")):
        put(slots, {name: WORDS[name]}, VERB)
    for slot, name in (("t", "times"), ("day", "weekdays"), ("free", "weekend")):
        put([slot], {name: WORDS[name]})
    for slots, name in (("fo", "looks"), ("sr", "states")):
        put(slots, dict(enumerate(WORDS[name])))
    for side, slot in enumerate(("give", "take")):
        put([slot], {at: [pair[side]] for at, pair in enumerate(WORDS["transfers"])}, VERB)
    grades = [(at, *grade.items()) for at, pair in enumerate(WORDS["grades"]) for grade in pair]
    compared = [{"": _two(base), ".er": _two(more)} for _, (base, more) in grades]
    return found | dict.fromkeys("gh", (compared, [at for at, _ in grades]))


def _two(entry: Entry) -> tuple[str, str]:
    """The word and its synonym, or the word twice."""
    words = [entry] if isinstance(entry, str) else entry
    return words[0], words[-1]


def _article(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def _verb(verb: str) -> list[str]:
    """The past of a verb, and its participle if that is a different word."""
    return WORDS["irregular"].get(verb, [verb.removesuffix("e") + "ed"])


# The forms of a word class, each with the function that makes it.
PLAIN = {"": str}
NOUN = {"": "the {}".format, ".n": str, ".one": _article, ".s": lambda noun: WORDS["plurals"].get(noun, noun + "s")}
VERB = {"": lambda verb: _verb(verb)[0], ".b": str, ".p": lambda verb: _verb(verb)[-1]}


# ---------------------------------------------------------------- edits


def edit(before: str, after: str) -> tuple[str, str]:
    """The shortest run of whole words of ``before`` and its replacement in ``after``; neither is empty.

    Equal words at the beginning are skipped first, then equal words at the end.

    Raises
    ------
    ValueError
        If the texts are equal or have no word in common.
    """
    a, b = (re.findall(r"\s*(?:\w+|[^\w\s])", text.rstrip()) for text in (before, after))  # a mark is a word
    start, end = shared_ends(a, b)
    if before == after or not start + end:
        raise ValueError(f"no single edit makes {after!r} of {before!r}")
    if start + end == min(len(a), len(b)):  # pure insertion or deletion: a neighbouring word joins the run
        start, end = (start - 1, end) if start else (start, end - 1)
    while start and not (a[start][0] == b[start][0] == " "):  # a run does not begin with a mark
        start -= 1
    return "".join(a[start : len(a) - end]).strip(), "".join(b[start : len(b) - end]).strip()


def shared_ends(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    """Number of words that two sequences share at the beginning, and number of the other words that they share at the
    end."""
    shorter = min(len(a), len(b))
    start = next((at for at in range(shorter) if a[at] != b[at]), shorter)
    end = next((at for at in range(shorter - start) if a[-1 - at] != b[-1 - at]), shorter - start)
    return start, end


# ---------------------------------------------------------------- planted


SPLITS = ("train", "validation", "test", "challenge")
# For each label, the words and the phrase that may predict it; see words.yaml.
ARTIFACT_WORDS = {LABELS.index(label): tuple(words) for label, words in WORDS["artifact_words"].items()}
GIVEAWAYS = {LABELS.index(label): phrase for label, phrase in WORDS["giveaways"].items()}
TRUTH = ("true_label", "family", "planted", "flipped", "ambiguous", "artifact_word")
STRENGTHS = {"flips": 0.06, "ambiguous": 0.08, "artifact": 0.3, "overlap": 0.3, "length": 0.25, "giveaway": 0.05}
STRAY_WORD = 0.1  # share of hypotheses with an artifact word of a random label, so that no word is a sure sign
SPECIFIC_SHARE = 0.75  # of the flipped labels: entailment given to a hypothesis more specific than its premise
ATTEMPTS = 20


def make(n: int, seed: int = 0, *, split: str = "train", against: bool = False, **strengths: float) -> Corpus:
    """Make a corpus of n pairs with balanced labels; equal arguments give equal corpora.

    flips
        share of pairs with a wrong label; three in four are true neutrals labelled entailment with a hypothesis that is
        more specific than the premise (as the consensus cleaning paper found in SNLI)
    ambiguous
        share of pairs with two defensible labels; the label is drawn between the two
    artifact
        share of hypotheses with a word that goes with their label (`ARTIFACT_WORDS`), in addition to `STRAY_WORD`
    overlap
        share of pairs where entailed hypotheses repeat the premise's words and others avoid them
    length
        share of pairs where neutral hypotheses get a long tail and entailed ones none
    giveaway
        share of hypotheses with a phrase that no other label has (`GIVEAWAYS`)
    against
        the same artifacts attached to a wrong label instead, as in the challenge split

    A strength that is not given is taken from `STRENGTHS`.

    Artifacts follow the given label, because annotators write towards it; they do not change the truth. Extra columns
    (`TRUTH`): true_label (for an ambiguous pair, its label), family (of the pattern), planted (the artifacts that were
    forced, of word, overlap, length and giveaway, joined by ";"), flipped, ambiguous, artifact_word (the word in the
    hypothesis, forced or stray, or "").

    With every strength at 0 the hypothesis alone carries no information about the label (see patterns.yaml).
    """
    _check(n, split, strengths)
    strengths = STRENGTHS | strengths
    rng = np.random.default_rng([seed, SPLITS.index(split), 0x9A1])
    # decide label, true label and the reason why they differ, before any word is chosen
    label = rng.permutation(np.arange(n) % len(LABELS))
    # Neutral is part of both kinds of ambiguity (E or N, N or C): with twice the share, each draw between two is fair.
    blur_rate = strengths["ambiguous"] * np.where(label == N, 1.5, 0.75)
    blurred, entailed = rng.random(n) < blur_rate, label == E
    flip_rate = strengths["flips"] * np.where(entailed, 3 * SPECIFIC_SHARE, 1.5 * (1 - SPECIFIC_SHARE))
    flipped = ~blurred & (rng.random(n) < flip_rate / (1 - blur_rate))
    other = (label + rng.integers(1, 3, size=n)) % len(LABELS)
    plan = {"label": label, "true_label": np.where(flipped, np.where(entailed, N, other), label)}
    plan |= {"flipped": flipped, "ambiguous": blurred, "specific": flipped & entailed}
    plan |= _artifacts((label + against * rng.integers(1, 3, size=n)) % len(LABELS), strengths, rng)
    plan |= _drawn(plan, _pairs, rng) | {"corpus": "planted", "split": split}
    plan["uid"] = f"planted-{split}-{seed}-" + pd.Series(np.arange(n)).astype(str).str.zfill(6)
    table = pd.DataFrame(plan, columns=[*COLUMNS, *TRUTH])
    return Corpus(table, "planted", split, source=f"planted grammar, seed {seed}")


def make_split(split: str, n: int = 2_000, seed: int = 0, **strengths: float) -> Corpus:
    """Make one split: train and validation have flips and ambiguous pairs, test and challenge only true labels.

    The artifacts of train, validation and test are the same; those of challenge point to a wrong label.

    Examples
    --------
    >>> from nli_lib.corpora.planted import make_split
    >>> train = make_split("train", 300)
    >>> sorted(set(train.table.columns) & {"flipped", "ambiguous", "planted"})
    ['ambiguous', 'flipped', 'planted']
    """
    clean = {"flips": 0.0, "ambiguous": 0.0} if split in ("test", "challenge") else {}
    return make(n, seed, split=split, against=split == "challenge", **(clean | strengths))


def make_obvious(split: str, n: int = 2_000, *, slips: float, **strengths: float) -> Corpus:
    """A split of the planted corpus whose wrong labels even a small model finds; seed 0.

    A label that `make` flips is followed by the artifacts, and three in four come of a rule, which models learn. Here
    labels are flipped at random once the texts are written, so that the artifacts contradict them.

    Parameters
    ----------
    slips
        share of the pairs of train and validation whose label is so flipped; none of them is ambiguous
    strengths
        of the artifacts, as in `make`
    """
    corpus, rng = make_split(split, n, flips=0.0, **strengths), np.random.default_rng(0x511B)
    table, number = corpus.table.copy(), round(slips * n) if split in ("train", "validation") else 0
    chosen = rng.choice(np.flatnonzero(~table["ambiguous"]), number, replace=False)
    table.loc[chosen, "label"] = (table.loc[chosen, "label"] + rng.integers(1, 3, size=number)) % len(LABELS)
    table.loc[chosen, "flipped"] = True
    return Corpus(table, "planted", split, source=f"{corpus.source}, made obvious")


def check_truth(corpus: Corpus) -> None:
    """Raise `CorpusError` if other pairs were joined to a planted corpus, because their missing values would be
    cast."""
    if (missing := corpus.table[[name for name in TRUTH if name in corpus.table]].isna()).any(axis=None):
        row = int(missing.any(axis=1).argmax())
        field = missing.columns[missing.iloc[row]][0]
        fault = f"row {row} has no {field}: nothing was planted in it. Ask for the truth of the planted pairs alone."
        raise CorpusError(f"corpus {corpus.name}/{corpus.split}: {fault}")


def _check(n: int, split: str, shares: dict[str, float]) -> None:
    if split not in SPLITS:
        raise CorpusError(f"planted has no split {split!r}: choose from {', '.join(SPLITS)}")
    if n < 1:
        raise CorpusError(f"planted: n={n} pairs asked for, at least 1 is needed")
    for name, share in shares.items():
        if name not in STRENGTHS:
            raise CorpusError(f"planted: there is no strength {name!r}: choose from {', '.join(STRENGTHS)}")
        most = {"flips": 0.3, "ambiguous": 0.4}.get(name, 1.0)  # above these one label runs out of ordinary pairs
        if not 0 <= share <= most:
            raise CorpusError(f"planted: {name}={share} is not a share between 0 and {most}")


def _artifacts(towards: NDArray, strengths: dict[str, float], rng: Generator) -> Plan:
    """The artifacts that fire on each pair, for the label they point to."""
    n = len(towards)
    fires = {name: rng.random(n) < strengths[name] for name in ("artifact", "overlap", "length", "giveaway")}
    fires["length"] &= towards != C
    word_of = np.where(fires["artifact"], towards, rng.integers(len(LABELS), size=n))
    words = np.array(list(ARTIFACT_WORDS.values()), dtype=object)  # (C, 5)
    word = words[word_of, rng.integers(words.shape[1], size=n)]
    word[~fires["artifact"] & (rng.random(n) >= STRAY_WORD)] = ""
    tail = np.where(fires["length"], towards == N, rng.random(n) < 0.15)  # 15%: a long tail for no reason
    other_words = np.where(fires["overlap"], towards != E, rng.random(n) < 0.5)  # half use other words
    phrases = np.array(list(GIVEAWAYS.values()), dtype=object)  # (C,)
    tails = np.array(WORDS["tails"], dtype=object)
    fired = pd.DataFrame(fires).rename(columns={"artifact": "word"})
    plan = {"artifact_word": word, "word_first": rng.integers(2, size=n).astype(bool), "other_words": other_words}
    plan["tail"] = np.where(tail, tails[rng.integers(len(tails), size=n)], "")
    plan["phrase"] = np.where(fires["giveaway"], phrases[towards], "")
    return plan | {"planted": (fired @ (fired.columns + ";")).str.rstrip(";").to_numpy(dtype=object)}


def _drawn(plan: Plan, draw_texts: Callable, rng: Generator) -> Plan:
    """Draw texts for the planned rows with ``draw_texts``; repeats, and texts equal to their original, are drawn
    again."""
    n, rows = len(plan["label"]), {}
    todo = np.arange(n)
    for _ in range(ATTEMPTS):
        for name, values in draw_texts({name: values[todo] for name, values in plan.items()}, rng).items():
            rows.setdefault(name, np.empty((n, *values.shape[1:]), values.dtype))[todo] = values
        again = pd.DataFrame({side: rows[side] for side in ("premise", "hypothesis")}).duplicated().to_numpy()
        if "revised" in rows:
            premises = np.column_stack([rows["premise"], rows["revised"]])  # (n, 3)
            again = again | np.any([premises[:, i] == premises[:, j] for i, j in ((0, 1), (0, 2), (1, 2))], axis=0)
        if not len(todo := np.flatnonzero(again)):
            return rows
    raise CorpusError(f"planted: {len(todo)} of n={n} pairs still repeat others after {ATTEMPTS} draws: ask for fewer")


def _pairs(rows: Plan, rng: Generator) -> Plan:
    """One draw of premise, hypothesis and family for each row of the plan."""
    chosen, blurred = np.empty((len(rows["label"]), 3), dtype=object), rows["ambiguous"]
    for mask, choose in ((~blurred, _choose_patterns), (blurred, _choose_ambiguous)):
        chosen[mask] = np.column_stack(choose({name: values[mask] for name, values in rows.items()}, rng))
    family, premise, hypothesis = chosen.T
    (premise,), hypothesis = _texts([premise], hypothesis, rows, rng)
    return {"premise": premise, "hypothesis": hypothesis, "family": family}


def _texts(premises: list[Column], hypothesis: Column, rows: Plan, rng: Generator) -> tuple[list[Column], Column]:
    """Fill forms with one set of words for each row. Four premises in ten get a second sentence, the same in each of
    ``premises``, that has nothing to do with the hypothesis; the hypothesis gets its phrase, tail and artifact word."""
    n = len(hypothesis)
    slots, as_said = draw(n, rng), np.zeros(n, dtype=int)
    extra = _sentence(_fill(np.full(n, "{d} {k} {t}", dtype=object), slots, as_said))  # no pattern names {d}
    where = np.where(rng.random(n) < 0.4, rng.integers(1, 3, size=n), 0)  # none, before, after
    said = (_sentence(_fill(forms, slots, as_said)) for forms in premises)
    texts = [np.where(where == 1, extra + " " + text, np.where(where == 2, text + " " + extra, text)) for text in said]
    clause, word = _fill(hypothesis, slots, rows["other_words"].astype(int)), rows["artifact_word"]
    clause = np.where(rows["phrase"] != "", rows["phrase"] + " " + clause, clause)
    clause = np.where(rows["tail"] != "", clause + " " + rows["tail"], clause)
    dressed = np.where(rows["word_first"], word + ", " + clause, clause + ", " + word)
    return texts, _sentence(np.where(word == "", clause, dressed))


def _choose_patterns(rows: Plan, rng: Generator) -> tuple[Column, Column, Column]:
    """Choose a family, one of its patterns (both independent of the label), then a premise that gives the true
    label."""
    families, hypotheses, options = zip(*PATTERNS, strict=True)
    families, hypotheses = np.array(families, dtype=object), np.array(hypotheses, dtype=object)
    chances = 1 / pd.Series(families).map(Counter(families)).to_numpy()
    sizes = np.array([[len(side) for side in sides] for sides in options])  # (patterns, 4)
    pick = rng.choice(len(PATTERNS), len(rows["label"]), p=chances / chances.sum())
    specific = np.flatnonzero(rows["specific"])
    chances = chances * (sizes[:, 3] > 0)
    pick[specific] = rng.choice(len(PATTERNS), len(specific), p=chances / chances.sum())
    side = np.where(rows["specific"], 3, rows["true_label"])
    premises = np.array(list(zip_longest(*(side for sides in options for side in sides))), dtype=object)
    return families[pick], premises[rng.integers(sizes[pick, side]), sizes.shape[1] * pick + side], hypotheses[pick]


def _choose_ambiguous(rows: Plan, rng: Generator) -> tuple[Column, Column, Column]:
    """Choose a pair with the given label as one of its two defensible ones."""
    label = rows["label"]
    kind = np.where(label == N, rng.integers(2, size=len(label)), label // 2)  # 0: E or N, 1: N or C
    table = np.array([(each["family"], each["premise"], each["hypothesis"]) for each in AMBIGUOUS], dtype=object)
    kinds = [np.flatnonzero([side in each["labels"] for each in AMBIGUOUS]) for side in (LABELS[E], LABELS[C])]
    pick = np.where(kind == 0, rng.choice(kinds[0], len(kind)), rng.choice(kinds[1], len(kind)))
    return table[pick, 0], table[pick, 1], table[pick, 2]


def _fill(forms: Column, slots: dict[str, Column], otherwise: NDArray[np.int_]) -> Column:
    """Fill the slots of each form from the same row, in wording 0 or 1; rows with the same form are filled together."""
    out = np.empty(len(forms), dtype=object)
    codes, distinct = pd.factorize(forms)
    order = np.argsort(codes, kind="stable")
    for form, rows in zip(distinct, np.split(order, np.cumsum(np.bincount(codes))[:-1]), strict=True):
        text = np.full(len(rows), "", dtype=object)
        for literal, slot in re.findall(r"([^{]*)(?:\{([^}]*)\}|$)", form):
            text = text + literal
            if slot:
                text = text + slots[slot][otherwise[rows], rows]
        out[rows] = text
    return out


def _sentence(clauses: Column) -> Column:
    """Turn clauses into sentences, with a capital first letter and a full stop."""
    text = pd.Series(clauses, dtype="str")
    return (text.str[:1].str.upper() + text.str[1:] + ".").to_numpy(dtype=object)


# ---------------------------------------------------------------- counterfactuals


def counterfactuals(
    n: int, seed: int = 0, *, split: str = "test", broken: float = 0.0, **strengths: float
) -> tuple[Corpus, Corpus]:
    """Make original pairs (n,) and their revisions (2 n,): for each original, one towards each of the other labels.

    The labels of the originals are balanced and true. Rows 2 i and 2 i + 1 of the revisions belong to original i.
    Columns of the revisions: label is the intended label, by number, and intended_label by name; true_label is the
    revised pair's label by the grammar, by number; broken is True if the two differ. `span` is the run of words in the
    original's premise that `replacement` replaces; neither is empty, and the rest of the two premises is equal. The
    span may occur twice in the premise. Equal arguments give equal corpora.

    Parameters
    ----------
    split
        as in `planted.make_split`; in "challenge" the artifacts point to a wrong label
    broken
        share of the revisions that miss their label: the edit keeps the original's label or produces the third one
    strengths
        strengths of the artifacts in the hypothesis, as in `planted.make`. They follow the original's label, and its
        revisions have the same hypothesis; there are neither flips nor ambiguous pairs

    Raises
    ------
    CorpusError
        If a share, split or strength does not exist.

    Examples
    --------
    >>> from nli_lib.corpora.planted import counterfactuals
    >>> originals, revisions = counterfactuals(5)
    >>> len(originals), len(revisions)
    (5, 10)
    """
    if not 0 <= broken <= 1:
        raise CorpusError(f"planted: broken={broken} is not a share between 0 and 1")
    if named := {"flips", "ambiguous"} & strengths.keys():
        raise CorpusError(f"planted: counterfactuals have only true labels, there is no strength {min(named)!r}")
    _check(n, split, strengths)
    rng = np.random.default_rng([seed, SPLITS.index(split), 0xCF])
    label = rng.permutation(np.arange(n) % len(LABELS))
    against = (split == "challenge") * rng.integers(1, 3, size=n)
    plan = _artifacts((label + against) % len(LABELS), STRENGTHS | strengths, rng)
    intended = np.column_stack([(label + 1) % 3, (label + 2) % 3])  # (n, 2)
    missed = rng.random((n, 2)) < broken
    rows = _drawn(plan | {"label": label, "intended": intended, "missed": missed}, _revisions, rng)
    source = f"planted grammar, counterfactuals, seed {seed}"
    uid = (f"planted-edited-{split}-{seed}-" + pd.Series(np.arange(n)).astype(str).str.zfill(6)).to_numpy(dtype=object)
    texts = {"uid": uid, "premise": rows["premise"], "hypothesis": rows["hypothesis"], "label": label}
    texts |= {"corpus": "planted", "split": split, "true_label": label, "family": rows["family"]}
    originals = Corpus(pd.DataFrame(texts), "planted", split, source=source)
    name, of = "planted_counterfactuals", np.repeat(np.arange(n), 2)
    asked = np.array(LABELS, dtype=object)[intended.ravel()]
    made = {"uid": uid[of] + ">" + asked, "premise": rows["revised"].ravel(), "hypothesis": rows["hypothesis"][of]}
    made |= {"label": intended.ravel(), "corpus": name, "split": split, "origin_uid": uid[of]}
    made |= {"origin_corpus": "planted", "maker": "grammar", "intended_label": asked}
    made |= {"true_label": rows["true_label"].ravel(), "family": rows["family"][of], "broken": missed.ravel()}
    made["span"], made["replacement"] = zip(*map(edit, rows["premise"][of], made["premise"]), strict=True)
    return originals, Corpus(pd.DataFrame(made), name, split, source=source)


@cache
def edits() -> pd.DataFrame:
    """All premise forms of the grammar that one edit can turn to each of the other two labels: columns family,
    hypothesis, premise, label (the true one), becomes (for each label, the forms for which it is true)."""
    found = []
    for pattern in PATTERNS:
        sides = [(label, form) for label in range(len(LABELS)) for form in pattern.premises[label]]
        becomes = defaultdict(list)
        for (_, form), (label, other) in permutations(sides, 2):
            a, b = form.split(), other.split()
            start, end = shared_ends(a, b)
            # at least two words or slots in common, and at most three removed or added
            if form != other and start + end >= 2 and max(len(a), len(b)) - start - end <= 3:
                becomes[form, label].append(other)
        for label, form in sides:
            options = [becomes[form, other] for other in range(len(LABELS))]
            if all(options[other] for other in range(len(LABELS)) if other != label):
                found.append((pattern.family, pattern.hypothesis, form, label, options))
    return pd.DataFrame(found, columns=["family", "hypothesis", "premise", "label", "becomes"])


def _revisions(rows: Plan, rng: Generator) -> Plan:
    """Draw forms and words for each row: a pair, two revisions of its premise, and their true labels."""
    label, intended, known = rows["label"], rows["intended"], edits()
    pick = np.empty(len(label), dtype=int)
    for side in range(len(LABELS)):  # all families equally, as in the planted corpus
        families = known["family"][known["label"] == side]
        chances = 1 / families.map(families.value_counts()).to_numpy()
        pick[label == side] = rng.choice(families.index, int((label == side).sum()), p=chances / chances.sum())
    counts = np.array([[len(forms) for forms in each] for each in known["becomes"]])
    # a revision that misses gets, by a coin toss, the original's label, if an edit can keep it, or the third one
    kept = (counts[pick, label] > 0)[:, None] & (rng.random((len(label), 2)) < 0.5)
    true = np.where(rows["missed"], np.where(kept, label[:, None], 3 - label[:, None] - intended), intended)
    size = counts[pick[:, None], true]
    which = rng.integers(size)
    again = (true[:, 0] == true[:, 1]) & (which[:, 0] == which[:, 1])
    which[:, 1] = np.where(again, (which[:, 1] + 1) % size[:, 1], which[:, 1])
    family, hypothesis, premise, _, becomes = known.iloc[pick].astype(object).to_numpy().T
    chosen = zip(becomes.repeat(2), true.ravel(), which.ravel(), strict=True)
    forms = np.array([each[to][at] for each, to, at in chosen], dtype=object).reshape(-1, 2)
    (premise, *revised), hypothesis = _texts([premise, *forms.T], hypothesis, rows, rng)
    made = {"premise": premise, "hypothesis": hypothesis, "family": family}
    return made | {"revised": np.column_stack(revised), "true_label": true}
